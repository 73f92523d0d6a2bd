//! `counter_note`: what was strange about counter logs.

use etwhy_table::{Sym, define_table};

define_table! {
    /// What was strange about the counter logs, counted: nothing is left out in silence.
    pub table COUNTER_NOTE: CounterNoteRow = "counter_note" {
        version: 1,
        /// Name of what happened.
        name: Sym [None, Name],
        /// info: results are complete; warning: something was assumed; data_loss: something could not be used.
        severity: Sym [None, Kind],
        /// How often.
        count: i64 [Count, Count],
        /// What it means for the results.
        meaning: Sym [None, Message],
        /// Where it happened first: file and line.
        first: Sym [None, Message],
    }
}
