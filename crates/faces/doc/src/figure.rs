//! Drawings.

use crate::layout::width;
use crate::sanitize;
use etwhy_base::units::{decimal, duration};
use serde::{Serialize, Serializer};

/// What draws itself: a chart of one crate. What the others know is a [`Timeline`] or a [`crate::Span`].
pub trait Figure: std::fmt::Debug {
    /// Lines of text, at most so many columns wide. They are made visible by the renderer.
    fn text(&self, columns: usize) -> Vec<String>;

    /// HTML, without scripts. Its text is escaped already.
    fn html(&self) -> String;

    /// What it shows, in words.
    fn alt(&self) -> String;
}

impl Serialize for dyn Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.alt())
    }
}

/// Sums in slices of equal length.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// What is summed up.
    pub title: String,
    /// The sums.
    pub sums: Vec<f64>,
    /// Length of a slice.
    pub slice_ns: f64,
    /// What they count: `records`.
    pub unit: String,
}

impl Timeline {
    /// The bars in so many columns, with what a bar is: slices that share one are added up.
    pub(crate) fn drawn(&self, columns: usize) -> (String, String) {
        let each = self.sums.len().div_ceil(columns.max(1)).max(1);
        let sums: Vec<f64> = self.sums.chunks(each).map(|slices| slices.iter().sum()).collect();
        let most = sums.iter().copied().fold(0.0, f64::max);
        let bars: Vec<Option<f64>> = sums.iter().map(|sum| Some(*sum).filter(|sum| *sum > 0.0)).collect();
        let unit = sanitize(&self.unit);
        let largest = decimal(most, 0);
        let unit: &str = if largest == "1" { unit.strip_suffix('s').unwrap_or(&unit) } else { &unit };
        let scale = format!("{} each, at most {largest} {unit}", duration(self.slice_ns * each as f64));
        (spark(&bars, most, columns), scale)
    }
}

/// Values as bars, at most so many columns wide: the largest of those that share a bar.
pub(crate) fn spark(values: &[Option<f64>], whole: f64, columns: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let each = values.len().div_ceil(columns.max(1)).max(1);
    let largest = |group: &[Option<f64>]| group.iter().flatten().copied().reduce(f64::max);
    let bar = |value: Option<f64>| match value {
        None => ' ',
        Some(value) => {
            let step = (value.max(0.0) / whole.max(f64::MIN_POSITIVE) * 7.0).round().clamp(0.0, 7.0) as usize;
            BARS.get(step).copied().unwrap_or(' ')
        }
    };
    let line: String = values.chunks(each).map(|group| bar(largest(group))).collect();
    debug_assert!(width(&line) <= columns.max(1));
    line
}

#[cfg(test)]
mod tests {
    use super::Timeline;

    #[test]
    fn one_record_is_one() {
        let scale = |sums: &[f64]| {
            let sums = sums.to_vec();
            Timeline { title: String::new(), sums, slice_ns: 1e6, unit: "records".to_owned() }.drawn(10).1
        };
        assert!(scale(&[1.0, 0.0]).ends_with("at most 1 record"), "{}", scale(&[1.0, 0.0]));
        assert!(scale(&[2.0, 0.0]).ends_with("at most 2 records"), "{}", scale(&[2.0, 0.0]));
    }
}
