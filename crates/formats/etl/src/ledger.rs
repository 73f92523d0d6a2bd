//! The ledger: every anomaly that did not stop the work, counted by name.
//!
//! The idea (a typed statistics table with severity and meaning, shown to the user and queryable) is
//! taken from perfetto's trace processor.

use std::collections::BTreeMap;

/// How much an anomaly matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A fact worth knowing; results are complete.
    Info,
    /// Results are complete but something was repaired or assumed.
    Warning,
    /// Data is missing: results that depend on it are lower bounds.
    DataLoss,
    /// Bytes were damaged or could not be understood.
    Error,
}

impl Severity {
    /// The word shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::DataLoss => "data_loss",
            Severity::Error => "error",
        }
    }
}

/// Where in the flow an anomaly was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// While it was recorded, on the machine traced.
    Recording,
    /// While files were opened and unpacked.
    Input,
    /// While buffers and records were read.
    Read,
    /// While records were brought into time order.
    Order,
    /// While payloads were decoded.
    Decode,
    /// While processes, stacks and tables were built.
    Analysis,
    /// While addresses were named.
    Symbols,
}

impl Stage {
    /// The word shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Recording => "recording",
            Stage::Input => "input",
            Stage::Read => "read",
            Stage::Order => "order",
            Stage::Decode => "decode",
            Stage::Analysis => "analysis",
            Stage::Symbols => "symbols",
        }
    }
}

/// A kind of anomaly. Declare one as a `static`, count it with [`Ledger::count`].
#[derive(Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Stable name in `snake_case`, the key of the `ledger` table.
    pub name: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Where it was noticed.
    pub stage: Stage,
    /// One sentence for the user: what it means for the results.
    pub meaning: &'static str,
}

/// Declares the anomalies of a module, one a line, and `ALL`, which names them all for the reference.
///
/// ```
/// etwhy_etl::define_anomalies! {
///     CLOCK_STOOD "clock_stood_still" Warning Order "Events with the same time as the one before.";
/// }
/// assert_eq!(ALL[0].name, CLOCK_STOOD.name);
/// ```
#[macro_export]
macro_rules! define_anomalies {
    ($($id:ident $name:literal $severity:ident $stage:ident $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub static $id: $crate::Anomaly = $crate::Anomaly {
                name: $name,
                severity: $crate::Severity::$severity,
                stage: $crate::Stage::$stage,
                meaning: $meaning,
            };
        )*
        /// All anomalies of this module.
        pub static ALL: &[&$crate::Anomaly] = &[$(&$id),*];
    };
}

/// One line of the ledger.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The kind.
    pub anomaly: &'static Anomaly,
    /// How often (events, buffers or bytes, as the meaning says).
    pub count: u64,
    /// Where it happened first, e.g. file and offset; empty if nobody said.
    pub first: String,
}

/// Counts of anomalies, in the order of their names.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: BTreeMap<&'static str, Entry>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// Counts `n` more of `anomaly` (nothing happens for 0).
    pub fn count(&mut self, anomaly: &'static Anomaly, n: u64) {
        self.note(anomaly, n, String::new);
    }

    /// Counts `n` more of `anomaly`; `place` is asked for only if none is known yet.
    pub fn note(&mut self, anomaly: &'static Anomaly, n: u64, place: impl FnOnce() -> String) {
        if n == 0 {
            return;
        }
        let entry = self.entries.entry(anomaly.name).or_insert_with(|| Entry {
            anomaly,
            count: 0,
            first: String::new(),
        });
        entry.count = entry.count.saturating_add(n);
        if entry.first.is_empty() {
            entry.first = place();
        }
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Ledger) {
        for entry in other.entries.values() {
            self.note(entry.anomaly, entry.count, || entry.first.clone());
        }
    }

    /// The count of one anomaly, 0 if it never happened.
    pub fn get(&self, anomaly: &'static Anomaly) -> u64 {
        self.entries.get(anomaly.name).map_or(0, |e| e.count)
    }

    /// All lines, by name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// True when nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
