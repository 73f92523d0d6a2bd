//! What charts show, in amounts that a page can hold.

mod growth;
mod histogram;

pub use growth::{GrowthCurve, GrowthPoint};
pub use histogram::{Bin, DurationHistogram};

use etwhy_query::flame::{self, Flame};
use etwhy_query::timeline::{self, Timeline};
use etwhy_table::Database;
use serde::Serialize;

/// Slices of the timeline, and processes that have a band of their own.
const SLICES: usize = 200;
const BANDS: usize = 8;
/// Nodes of the flame graph. On a page 1,500 pixels wide, the 2,500th is rarely a pixel.
const NODES: usize = 2500;
/// Drivers with a histogram of their own, and growth curves.
const DRIVERS: usize = 6;
const CURVES: usize = 8;

/// What charts show.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Charts {
    /// CPU time by process over time; null without samples.
    pub timeline: Option<Timeline>,
    /// CPU time along stacks; null without samples.
    pub flame: Option<Flame>,
    /// Durations of DPCs and ISRs: of all drivers, then of those with the most time over the limit.
    pub histograms: Vec<DurationHistogram>,
    /// Cost per call against the number of earlier ones.
    pub growth: Vec<GrowthCurve>,
}

/// Tables that charts read, besides those of the verdict.
pub const TABLES: &[&str] =
    &["sample", "stack", "stack_frame", "frame", "stack_cost", "dpc_histogram", "growth", "growth_point"];

impl Charts {
    /// Reads them from tables; what is not there makes no chart.
    pub fn read(db: &Database) -> Charts {
        Charts {
            timeline: timeline::timeline(db, SLICES, BANDS),
            flame: flame::flame(db, NODES),
            histograms: histogram::read(db, DRIVERS),
            growth: growth::read(db, CURVES),
        }
    }
}
