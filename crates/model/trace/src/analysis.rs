//! What an analysis is: its declaration, its state during the pass, and the tables that it hands over.

pub use crate::finish::Finish;

use crate::event::{Context, Event, Select};
use etwhy_table::{Memory, Row, Table, TableBuilder, TableSpec, Texts};

/// Declaration of an analysis: one file of the catalogue holds it and its code.
pub struct AnalysisSpec {
    /// Tables that it fills.
    pub tables: &'static [&'static TableSpec],
    /// Events that it wants.
    pub selects: &'static [Select],
    /// It takes stack tickets.
    pub stacks: bool,
    /// Only run when one of its tables is asked for by name (large, or seldom wanted).
    pub on_demand: bool,
    /// Makes it.
    pub new: fn(&Memory) -> Box<dyn Analysis>,
}

/// State of an analysis during the pass.
pub trait Analysis {
    /// One event that it asked for.
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>);

    /// The end of the pass: fills in what was not known before and hands over its tables.
    ///
    /// # Errors
    /// Those of the table builder (a spill file that cannot be written).
    fn finish(self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>>;

    /// It shows what the others have counted, so it is finished after them.
    fn reads_counts(&self) -> bool {
        false
    }
}

/// A table with all its rows, waiting for the text pool to be complete.
pub struct Filled(pub(crate) Option<Finisher>);

/// Makes the table when the texts are known.
pub(crate) type Finisher = Box<dyn FnOnce(&Texts) -> etwhy_table::Result<Table> + Send>;

impl<R: Row + 'static> From<TableBuilder<R>> for Filled {
    fn from(builder: TableBuilder<R>) -> Filled {
        Filled(builder.is_kept().then(|| -> Finisher { Box::new(move |texts| builder.finish(texts)) }))
    }
}
