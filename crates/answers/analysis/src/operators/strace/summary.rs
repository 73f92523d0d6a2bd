//! System calls counted, as `strace -c` does.

use super::Calls;
use crate::operators::add;
use etwhy_table::Sym;
use foldhash::HashMap;
use serde::Serialize;

/// Calls of one function.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sum {
    /// `module!function`; empty for calls that began before the trace.
    pub function: String,
    /// How many.
    pub calls: u64,
    /// Of them with an error.
    pub errors: u64,
    /// Of them without a known time.
    pub untimed: u64,
    /// Sum of the times.
    pub time_ns: i64,
    /// Shortest time.
    pub min_ns: i64,
    /// Longest time.
    pub max_ns: i64,
}

impl Sum {
    /// Time of a call on average.
    pub fn mean_ns(&self) -> i64 {
        let timed = self.calls.saturating_sub(self.untimed);
        i64::try_from(timed).ok().and_then(|n| self.time_ns.checked_div(n)).unwrap_or(0)
    }

    fn count(&mut self, failed: bool, time_ns: Option<i64>) {
        self.calls += 1;
        self.errors += u64::from(failed);
        let Some(ns) = time_ns else {
            self.untimed += 1;
            return;
        };
        self.min_ns = if self.calls - self.untimed == 1 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        add(&mut self.time_ns, ns);
    }
}

/// Calls by function, and all of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Sorted.
    pub functions: Vec<Sum>,
    /// All calls. Its time is that of calls that lie in no other one, so that nothing counts twice.
    pub total: Sum,
}

/// What functions are sorted by, largest first (names: alphabetically).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryOrder {
    /// Sum of the times.
    #[default]
    Time,
    /// Shortest time.
    MinTime,
    /// Longest time.
    MaxTime,
    /// Time of a call on average.
    MeanTime,
    /// Number of calls.
    Calls,
    /// Number of errors.
    Errors,
    /// Name.
    Name,
}

impl SummaryOrder {
    /// The names that `strace -S` has for it.
    pub const NAMES: [(&'static str, SummaryOrder); 15] = [
        ("time", SummaryOrder::Time),
        ("time-percent", SummaryOrder::Time),
        ("time-total", SummaryOrder::Time),
        ("total-time", SummaryOrder::Time),
        ("min-time", SummaryOrder::MinTime),
        ("time-min", SummaryOrder::MinTime),
        ("max-time", SummaryOrder::MaxTime),
        ("time-max", SummaryOrder::MaxTime),
        ("avg-time", SummaryOrder::MeanTime),
        ("time-avg", SummaryOrder::MeanTime),
        ("calls", SummaryOrder::Calls),
        ("count", SummaryOrder::Calls),
        ("errors", SummaryOrder::Errors),
        ("name", SummaryOrder::Name),
        ("syscall", SummaryOrder::Name),
    ];
}

/// Counts the calls of `rows`: by wall-clock time if `wall`, else by time on processors.
pub fn summary(calls: &Calls<'_>, rows: &[u32], wall: bool, order: SummaryOrder) -> Summary {
    let mut by_function: HashMap<Option<Sym>, (u32, Sum)> = HashMap::default();
    let mut total = Sum::default();
    for &row in rows {
        let ((time, depth), failed) = (calls.cost(row, wall), calls.failed(row));
        let (_, sum) = by_function.entry(calls.function_key(row)).or_insert((row, Sum::default()));
        sum.count(failed, time);
        let before = total.time_ns;
        total.count(failed, time);
        if depth.is_some_and(|depth| depth > 0) {
            total.time_ns = before;
        }
    }
    let name = |row| calls.get(row).function.unwrap_or("").to_owned();
    let mut functions: Vec<Sum> =
        by_function.into_values().map(|(row, sum)| Sum { function: name(row), ..sum }).collect();
    let key = |sum: &Sum| match order {
        SummaryOrder::Time => sum.time_ns,
        SummaryOrder::MinTime => sum.min_ns,
        SummaryOrder::MaxTime => sum.max_ns,
        SummaryOrder::MeanTime => sum.mean_ns(),
        SummaryOrder::Calls => sum.calls as i64,
        SummaryOrder::Errors => sum.errors as i64,
        SummaryOrder::Name => 0,
    };
    functions.sort_by(|a, b| {
        let by_key = key(b).cmp(&key(a));
        let by_name = a.function.cmp(&b.function);
        if order == SummaryOrder::Name { by_name } else { by_key.then(b.calls.cmp(&a.calls)).then(by_name) }
    });
    Summary { functions, total }
}
