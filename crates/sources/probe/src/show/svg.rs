//! Charts as SVG: static, no scripts, colours by class so that they follow the theme.

use crate::amount;
use crate::law::Curve;
use etwhy_doc::{Figure, escape_markup as escape};
use etwhy_stats::Interval;
use std::fmt::Write as _;

/// A bar: name, value with its unit, ends of the interval.
#[derive(Debug)]
pub(super) struct Bar {
    /// Name.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: String,
    /// Interval.
    pub interval: Option<Interval>,
}

const LABELS: f64 = 300.0;
const WIDTH: f64 = 900.0;

/// Bars with whiskers on a logarithmic axis.
#[derive(Debug)]
pub(super) struct Bars {
    /// Title.
    pub title: String,
    /// What is drawn, and how.
    pub what: String,
    /// The bars.
    pub bars: Vec<Bar>,
    /// Values are ratios, and bars begin at 1.
    pub from_one: bool,
}

impl Figure for Bars {
    fn text(&self, _: usize) -> Vec<String> {
        // The table has the same figures.
        Vec::new()
    }

    fn html(&self) -> String {
        let chart = bars(&self.title, &self.bars, self.from_one);
        if chart.is_empty() { chart } else { format!("<p class=\"muted\">{}</p>{chart}", escape(&self.what)) }
    }

    fn alt(&self) -> String {
        self.title.clone()
    }
}

fn bars(title: &str, bars: &[Bar], from_one: bool) -> String {
    let shown: Vec<&Bar> = bars.iter().filter(|bar| bar.value > 0.0 && bar.value.is_finite()).collect();
    if shown.is_empty() {
        return String::new();
    }
    let ends =
        |bar: &Bar| match bar.interval.filter(|i| i.low > 0.0 && i.low.is_finite() && i.high.is_finite()) {
            Some(i) => (i.low.min(bar.value), i.high.max(bar.value)),
            None => (bar.value, bar.value),
        };
    let mut low = shown.iter().map(|bar| ends(bar).0).fold(f64::INFINITY, f64::min);
    let mut high = shown.iter().map(|bar| ends(bar).1).fold(0.0, f64::max);
    if from_one {
        (low, high) = (low.min(0.8), high.max(1.25));
    } else {
        (low, high) = (low / 3.0, high * 1.05);
    }
    let right = WIDTH - 110.0;
    let x = |value: f64| LABELS + (value.max(low) / low).ln() / (high / low).ln() * (right - LABELS);
    let height = 26.0 * shown.len() as f64 + 30.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(&format!("{title}; the same figures stand in the table"))
    );
    let start = if from_one { x(1.0) } else { LABELS };
    for tick in ticks(low, high) {
        let at = x(tick);
        let unit = shown.first().map_or("", |bar| bar.unit.as_str());
        let _ = write!(
            out,
            "<line class=\"tick\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{0}\"/><text class=\"label\" x=\"{at:.1}\" y=\"{1}\" \
             text-anchor=\"middle\">{2}</text>",
            height - 26.0,
            height - 8.0,
            escape(&amount::value(tick, unit))
        );
    }
    for (at, bar) in shown.iter().enumerate() {
        let y = 26.0 * at as f64 + 4.0;
        let (from, to) = (start.min(x(bar.value)), start.max(x(bar.value)));
        let (left, whisker) = ends(bar);
        let class = if from_one && bar.value < 1.0 { "bar less" } else { "bar" };
        let name = etwhy_doc::layout::truncate_middle(&etwhy_doc::sanitize(&bar.name), 44);
        let _ = write!(
            out,
            "<text class=\"name\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect class=\"{class}\" x=\"{from:.1}\" y=\"{y}\" \
             width=\"{:.1}\" height=\"16\"/>",
            LABELS - 8.0,
            y + 12.0,
            escape(&name),
            (to - from).max(1.0)
        );
        if whisker > left {
            let middle = y + 8.0;
            let (a, b) = (x(left), x(whisker));
            let _ = write!(
                out,
                "<path class=\"whisker\" d=\"M{a:.1} {middle}H{b:.1}M{a:.1} {0}V{1}M{b:.1} {0}V{1}\"/>",
                middle - 4.0,
                middle + 4.0
            );
        }
        let _ = write!(
            out,
            "<text class=\"value\" x=\"{:.1}\" y=\"{}\">{}</text>",
            x(whisker).max(to) + 7.0,
            y + 12.0,
            escape(&amount::value(bar.value, &bar.unit))
        );
    }
    out.push_str("</svg>");
    out
}

/// Powers of ten within a range; 1, 2 and 5 times where the range is small.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let wide = (high / low).log10() > 2.5;
    let every = ((high / low).log10() / 6.0).ceil().max(1.0) as i32;
    let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let from = low.log10().floor() as i32;
    let to = high.log10().ceil() as i32;
    let all = (from..=to.min(from.saturating_add(60))).filter(|power| !wide || power % every == 0);
    all.flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)))
        .filter(|tick| *tick >= low && *tick <= high)
        .collect()
}

/// A curve with its law, both axes logarithmic.
pub(super) fn curve(curve: &Curve) -> String {
    let points: Vec<(f64, f64)> =
        curve.points.iter().copied().filter(|(n, cost)| *n > 0.0 && *cost > 0.0).collect();
    if points.len() < 3 {
        return String::new();
    }
    let fold = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (left, right) = fold(&mut points.iter().map(|p| p.0));
    let (bottom, top) = fold(&mut points.iter().map(|p| p.1));
    let middle = (bottom * top).sqrt();
    let (bottom, top) = ((bottom / 1.2).min(middle / 2.0), (top * 1.2).max(middle * 2.0));
    let (x0, x1, y0, y1) = (80.0, WIDTH - 20.0, 270.0, 12.0);
    let x = |n: f64| if right > left { x0 + (n / left).ln() / (right / left).ln() * (x1 - x0) } else { x0 };
    let y = |cost: f64| y0 - (cost.clamp(bottom, top) / bottom).ln() / (top / bottom).ln() * (y0 - y1);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} 320\" role=\"img\" aria-label=\"{}\">",
        escape(&format!("{} against {}; the same figures stand in the table", curve.title(), curve.n_is))
    );
    for tick in ticks(bottom, top) {
        let _ = write!(
            out,
            "<line class=\"tick\" x1=\"{x0}\" x2=\"{x1}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/><text class=\"label\" x=\"{1}\" y=\"{2:.1}\" \
             text-anchor=\"end\">{3}</text>",
            y(tick),
            x0 - 6.0,
            y(tick) + 4.0,
            escape(&amount::value(tick, &curve.unit))
        );
    }
    for tick in ticks(left, right) {
        let _ = write!(
            out,
            "<text class=\"label\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(tick),
            y0 + 18.0,
            escape(&amount::digits(tick))
        );
    }
    let _ = write!(
        out,
        "<line class=\"axis\" x1=\"{x0}\" x2=\"{x1}\" y1=\"{y0}\" y2=\"{y0}\"/><text class=\"label\" x=\"{}\" y=\"312\" \
         text-anchor=\"middle\">{}</text>",
        f64::midpoint(x0, x1),
        escape(&curve.n_is)
    );
    if curve.extends() && right > left {
        let mut path = String::new();
        for step in 0..=60 {
            let n = left * (right / left).powf(f64::from(step) / 60.0);
            let cost = curve.growth.cost_at(n);
            if cost > 0.0 && cost.is_finite() {
                let _ = write!(path, "{}{:.1} {:.1}", if path.is_empty() { "M" } else { "L" }, x(n), y(cost));
            }
        }
        let _ = write!(out, "<path class=\"fit\" d=\"{path}\"/>");
    }
    for (n, cost) in points.iter().take(500) {
        let _ = write!(
            out,
            "<circle class=\"point\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}</title></circle>",
            x(*n),
            y(*cost),
            escape(&format!("{}: {}", amount::digits(*n), amount::value(*cost, &curve.unit)))
        );
    }
    out.push_str("</svg>");
    out
}
