//! What is measured.

/// A measurement: calls around the n-th, or work on n things.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Number of the call (from 1), or size.
    pub n: f64,
    /// Cost, typical of the calls that the point stands for.
    pub cost: f64,
    /// How many calls it stands for; points of fewer calls than most count for less.
    pub weight: f64,
    /// When, in any unit, if it is known.
    pub time: Option<f64>,
}
