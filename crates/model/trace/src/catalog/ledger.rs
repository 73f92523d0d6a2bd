//! The ledger: everything that went wrong, was lost or was assumed.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Anomalies: what was lost, damaged, missing or assumed, and what that means for the results.
    pub table LEDGER: LedgerRow = "ledger" {
        version: 1, evidence: Verified("damaged copies of corpus traces"),
        /// Name of the anomaly.
        name: Sym [None, Name],
        /// info, warning, data_loss or error.
        severity: Sym [None, Kind],
        /// Where it was noticed: recording, input, read, order, decode, analysis, symbols.
        stage: Sym [None, Kind],
        /// How often.
        count: i64 [Count, Count],
        /// What it means.
        meaning: Sym [None, Message],
        /// Where it happened first.
        first: Option<Sym> [None, Message],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&LEDGER],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Ledger { rows: TableBuilder::new(memory) }),
};

struct Ledger {
    rows: TableBuilder<LedgerRow>,
}

impl Analysis for Ledger {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        fill(&mut self.rows, end.counted, end.strings);
        Ok(vec![self.rows.into()])
    }

    fn reads_counts(&self) -> bool {
        true
    }
}

fn fill(rows: &mut TableBuilder<LedgerRow>, ledger: &etwhy_etl::Ledger, strings: &mut etwhy_table::Strings) {
    for entry in ledger.entries() {
        rows.push(LedgerRow {
            name: strings.intern(entry.anomaly.name),
            severity: strings.intern(entry.anomaly.severity.name()),
            stage: strings.intern(entry.anomaly.stage.name()),
            count: i64::try_from(entry.count).unwrap_or(i64::MAX),
            meaning: strings.intern(entry.anomaly.meaning),
            first: (!entry.first.is_empty()).then(|| strings.intern(&entry.first)),
        });
    }
}

/// The table of a ledger that no pass filled: of event logs, of counter logs.
///
/// # Errors
/// Those of the table builder.
pub fn table(ledger: &etwhy_etl::Ledger) -> etwhy_table::Result<etwhy_table::Table> {
    let mut rows = TableBuilder::<LedgerRow>::new(&etwhy_table::Memory::default());
    let mut strings = etwhy_table::Strings::new();
    fill(&mut rows, ledger, &mut strings);
    rows.finish(&strings.freeze().map_err(etwhy_table::TableError::texts)?)
}
