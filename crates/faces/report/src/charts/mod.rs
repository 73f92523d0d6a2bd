//! What charts show, in amounts that a page can hold.

mod growth;
mod histogram;

pub use growth::{GrowthCurve, GrowthPoint};
pub use histogram::{Bin, DurationHistogram};

use etwhy_analysis::flame::{self, Flame};
use etwhy_analysis::timeline::{self, Timeline};
use etwhy_table::Database;
use serde::Serialize;

/// Processes that have a band of their own in the timeline.
const BANDS: usize = 8;
/// Nodes of the flame graph. On a page 1,500 pixels wide, the 2,500th is rarely a pixel.
const NODES: usize = 2500;
/// Drivers with a histogram of their own, and growth curves.
const DRIVERS: usize = 6;
const CURVES: usize = 8;

/// What charts show.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Charts {
    /// CPU time by process over time; null without samples and context switches.
    pub timeline: Option<Timeline>,
    /// CPU time along stacks; null without samples.
    pub flame: Option<Flame>,
    /// Durations of DPCs and ISRs: of all drivers, then of those with the most time over the limit.
    pub histograms: Vec<DurationHistogram>,
    /// Laws by which the cost of a call grows, the worst first.
    pub growth: Vec<GrowthCurve>,
}

/// Tables that a report reads, besides those of the verdict.
pub const TABLES: &[&str] = &[
    "bill",
    "cpu_time",
    "dpc_histogram",
    "frame",
    "growth",
    "growth_point",
    "image",
    "process",
    "process_slice",
    "stack",
    "stack_cost",
    "stack_frame",
];

impl Charts {
    /// Reads them from tables; what is not there makes no chart.
    pub fn read(db: &Database) -> Charts {
        Charts {
            timeline: timeline::timeline(db, BANDS),
            flame: flame::flame(db, NODES),
            histograms: histogram::read(db, DRIVERS),
            growth: growth::read(db, CURVES),
        }
    }
}
