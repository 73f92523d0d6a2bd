//! Statistics that verdicts rest on. Numbers in, numbers out: no tables, no events.
//!
//! * [`growth`]: does a cost grow with the number of calls or with size, and by which law?
//! * [`resample`]: bootstrap intervals of a mean, a median, a difference, a ratio.
//! * [`rank`]: Mann-Whitney, Hodges-Lehmann, Mann-Kendall, Theil-Sen.
//! * [`exact`]: intervals of few values by counting ranks.
//! * [`dispersion`]: how much more does a load in bursts vary than one of independent pieces?
//! * [`rate`]: are there more events per second than before?
//! * [`periodic`]: is there a period in counts per bucket?
//! * [`percentile`]: percentiles of weighted values.
//! * [`steps`]: from which run on is the level of a series another one?
//!
//! Nothing here is random: resampling takes a seed, and equal input gives equal output.
#![forbid(unsafe_code)]

pub mod dispersion;
pub mod exact;
pub mod growth;
pub mod normal;
pub mod percentile;
pub mod periodic;
pub mod rank;
pub mod rate;
pub mod resample;
pub mod steps;

/// Chance of naming anything at all where nothing changed, however many names are looked at. One in twenty is what users are promised; noise that
/// is shaped unlike that of the tests takes up to a fifth more than was asked for.
pub const FALSE_ALARMS: f64 = 0.04;

/// An estimate with the interval that holds the true value with the confidence that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// True if `value` lies within.
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
