//! Metrics, one file each.

mod cpu;

use super::Metric;

/// All metrics, in the order in which they are listed.
pub static METRICS: &[&Metric] = &[&cpu::METRIC];
