//! Stacks with weights: what call trees, flame graphs and exports are made of.
//!
//! A [`Metric`] says what is added up along stacks (CPU samples, waiting, bytes, …) and where its rows stand. Each is one
//! declaration in `metrics/`; [`METRICS`] lists them.

mod metrics;

pub use metrics::METRICS;

use etwhy_table::{Database, Unit};

/// A weight at a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightedStack {
    /// When, in nanoseconds since the start of the trace; `None` if the rows are sums over time.
    pub ts_ns: Option<i64>,
    /// Process that it is charged to.
    pub upid: Option<i64>,
    /// Thread that it is charged to; `None` if the rows are sums over threads.
    pub utid: Option<i64>,
    /// Row of table `stack`; `None` if no stack was recorded.
    pub stack: Option<i64>,
    /// How much, in the metric's unit.
    pub weight: i64,
    /// How many events it stands for.
    pub count: i64,
}

/// Something that can be added up along stacks.
pub struct Metric {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What fools it, and how it is computed.
    pub manual: &'static str,
    /// Unit of the weight.
    pub unit: Unit,
    /// Tables that it reads, besides those of stacks and processes.
    pub reads: &'static [&'static str],
    /// Hands over all its weights.
    pub each: fn(&Database, &mut dyn FnMut(WeightedStack)),
}

impl Metric {
    /// The metric with this name.
    pub fn by_name(name: &str) -> Option<&'static Metric> {
        METRICS.iter().copied().find(|metric| metric.name.eq_ignore_ascii_case(name))
    }
}
