//! A curve as text: both axes logarithmic, `●` measured, `·` the law.

use super::svg;
use crate::amount;
use crate::law::Curve;
use etwhy_doc::Figure;

/// A curve: drawn with characters, or as SVG.
#[derive(Debug)]
pub(super) struct Plot {
    pub curve: Curve,
    /// It is drawn in text too.
    pub in_text: bool,
}

impl Figure for Plot {
    fn text(&self, columns: usize) -> Vec<String> {
        if self.in_text { plot(&self.curve, columns, 11) } else { Vec::new() }
    }

    fn html(&self) -> String {
        svg::curve(&self.curve)
    }

    fn alt(&self) -> String {
        format!("Growth: {}", self.curve.title())
    }
}

/// Lines of a plot, `columns` wide and `rows` high, axes included. Empty if there is nothing to draw.
fn plot(curve: &Curve, columns: usize, rows: usize) -> Vec<String> {
    let points: Vec<(f64, f64)> =
        curve.points.iter().copied().filter(|(n, cost)| *n > 0.0 && *cost > 0.0).collect();
    let label = 10;
    let (width, height) = (columns.saturating_sub(label + 2).min(90), rows.saturating_sub(2));
    if points.len() < 3 || width < 16 || height < 3 {
        return Vec::new();
    }
    let fitted = |n: f64| {
        Some(curve.growth.cost_at(n)).filter(|cost| curve.extends() && *cost > 0.0 && cost.is_finite())
    };
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (left, right) = ends(&mut points.iter().map(|p| p.0));
    let (bottom, top) = ends(&mut points.iter().map(|p| p.1));
    // An order of magnitude at least: noise on a constant shall not look like a mountain.
    let middle = (bottom * top).sqrt();
    let (bottom, top) = (bottom.min(middle / 2.0), top.max(middle * 2.0));
    let place = |value: f64, low: f64, high: f64, cells: usize| -> usize {
        let share = if high > low { (value / low).ln() / (high / low).ln() } else { 0.5 };
        ((share * (cells - 1) as f64).round().max(0.0) as usize).min(cells - 1)
    };
    let mut cells = vec![vec![' '; width]; height];
    let mut put = |n: f64, cost: f64, mark: char| {
        let row = height - 1 - place(cost.clamp(bottom, top), bottom, top, height);
        let column = place(n, left, right, width);
        if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = mark;
        }
    };
    for column in 0..width {
        let n = left * (right / left).powf(column as f64 / (width - 1) as f64);
        if let Some(cost) = fitted(n) {
            put(n, cost, '·');
        }
    }
    for (n, cost) in &points {
        put(*n, *cost, '●');
    }
    let mut lines: Vec<String> = cells
        .iter()
        .enumerate()
        .map(|(at, row)| {
            let name = match at {
                0 => amount::value(top, &curve.unit),
                at if at + 1 == height => amount::value(bottom, &curve.unit),
                _ => String::new(),
            };
            format!("{name:>label$} │{}", row.iter().collect::<String>()).trim_end().to_owned()
        })
        .collect();
    lines.push(format!("{:label$} └{}", "", "─".repeat(width)));
    let (from, to) = (amount::digits(left), format!("{} {}", amount::digits(right), curve.n_is));
    let gap = width.saturating_sub(from.chars().count() + to.chars().count()).max(1);
    lines.push(format!("{:label$}  {from}{}{to}", "", " ".repeat(gap)));
    lines
}
