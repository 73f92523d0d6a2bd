//! A comparison as a document.

use super::MOST_ROWS;
use super::results::{self, suspect};
use super::svg::{Bar, Bars};
use crate::amount;
use crate::compare::{Comparison, Difference, Verdict, tax};
use crate::who::Suspect;
use etwhy_doc::{Doc, Level, Line, Span, Table};

/// How the method is named under each comparison.
pub fn method(comparison: &Comparison) -> &'static str {
    if comparison.paired {
        "Ratios: of typical values (medians over rounds). Intervals and verdicts come from one test, for all comparisons together at 95 % \
         (Westfall-Young maxT over exchanged rounds): an interval without 1 is a difference. Costs per day: means of all operations, bootstrap \
         over rounds."
    } else {
        "Ratios: of typical values (medians over rounds). Intervals and verdicts come from one test, for all comparisons together at 95 % \
         (Westfall-Young maxT over exchanged rounds), widened because rounds of one file resemble each other (5 times below ten rounds, \
         2.5 times from there on): an interval without 1 is a difference. Costs per day: means of all operations, bootstrap over rounds. \
         --ab is sharper."
    }
}

/// The differences as a table.
pub fn table(comparison: &Comparison) -> Table {
    let [off, on] = &comparison.labels;
    let heads = [
        off.as_str(),
        on,
        "ratio (95 %)",
        "verdict",
        "noise",
        "p",
        "ratio of means",
        "CPU before",
        "CPU after",
        "rounds",
    ];
    let mut all = super::table("operation", heads);
    let several = comparison
        .differences
        .iter()
        .any(|d| Some(&d.probe) != comparison.differences.first().map(|d| &d.probe));
    for d in &comparison.differences {
        let title = if several { format!("{}: {}", d.probe, d.title()) } else { d.title() };
        let dash = || "–".to_owned();
        let time = |ns: Option<f64>| ns.map_or_else(dash, amount::time);
        let ratio = match (&d.ratio, d.difference) {
            (Some(ratio), _) => amount::ratio(ratio),
            (None, Some(difference)) => amount::difference(&difference, &d.unit),
            _ => dash(),
        };
        let p = |p: f64| if p < 0.0005 { "<0.001".into() } else { format!("{p:.3}") };
        let first =
            [title, amount::value(d.typical[0], &d.unit), amount::value(d.typical[1], &d.unit), ratio];
        let verdict = match d.verdict {
            Verdict::Slower => Span::Mark(Level::Bad, d.verdict.text().to_owned()).into(),
            _ => Line::from(d.verdict.text()),
        };
        let others = [
            d.floor.map_or_else(dash, |f| format!("{:.0} %", (f - 1.0) * 100.0)),
            d.p.map_or_else(dash, p),
            d.mean_ratio.map_or_else(dash, amount::digits),
            time(d.cpu_ns[0]),
            time(d.cpu_ns[1]),
            format!("{}/{}", d.rounds[0], d.rounds[1]),
        ];
        all.row(first.map(Line::from).into_iter().chain([verdict]).chain(others.map(Line::from)));
    }
    all.hint = "--dump probe_difference has all".to_owned();
    all.at_most(MOST_ROWS)
}

/// The sentences of the tax: of what changed, or if nothing did of everything, the largest effects first.
pub fn taxes(comparison: &Comparison, per_day: f64) -> Vec<String> {
    let mut shown: Vec<&Difference> = comparison
        .differences
        .iter()
        .filter(|d| matches!(d.verdict, Verdict::Slower | Verdict::Faster))
        .collect();
    let size = |d: &Difference| d.sure().map_or(0.0, |s| s.value.ln().abs());
    shown.sort_by(|a, b| size(b).total_cmp(&size(a)));
    if shown.is_empty() {
        shown = comparison.differences.iter().collect();
    }
    shown.into_iter().take(6).map(|d| tax::estimate(comparison, d, per_day).sentence).collect()
}

/// Suspects of a side that are told.
const MOST_SUSPECTS: usize = 8;

/// Who was at work meanwhile, on each side: those who were proven or likely.
pub fn suspects(comparison: &Comparison) -> Vec<String> {
    let sides = comparison.labels.iter().zip(&comparison.suspects);
    let of_side = |(label, suspects): (&String, &Vec<Suspect>)| -> Vec<String> {
        suspects.iter().take(MOST_SUSPECTS).map(|one| format!("{label}: {}", suspect(one))).collect()
    };
    sides.flat_map(of_side).collect()
}

/// What is assumed.
pub fn assumption(per_day: f64, given: bool) -> String {
    let n = etwhy_base::units::thousands(per_day as i128);
    if given {
        format!("Per day: {n} operations (--per-day).")
    } else {
        format!("Per day: {n} operations are an assumption; --per-day takes yours.")
    }
}

/// A comparison for a terminal, which shows no titles.
pub fn text(comparison: &Comparison, per_day: f64, given: bool) -> Doc {
    let mut doc = Doc::default();
    doc.text(tax::summary(comparison));
    doc.append(document(comparison, per_day, given));
    doc
}

/// A comparison as a document; its title is what it says in a sentence.
pub fn document(comparison: &Comparison, per_day: f64, given: bool) -> Doc {
    let mut doc = Doc::titled(tax::summary(comparison));
    for warning in comparison.warnings.iter().take(40) {
        doc.note(Line::mark("warning"), warning);
    }
    doc.heading("Ratio of costs");
    doc.figure(ratios(comparison));
    doc.table(table(comparison));
    doc.heading("The tax");
    taxes(comparison, per_day).into_iter().for_each(|sentence| doc.item(sentence, None::<Line>));
    results::suspects(&mut doc, suspects(comparison).into_iter());
    doc.space();
    comparison.notes.iter().for_each(|note| doc.note("Note:", note));
    let [before, after] = comparison.alone;
    if before + after > 0 {
        doc.text(format!("Only on one side, not compared: {before} before, {after} after."));
    }
    doc.text(assumption(per_day, given));
    doc.text("Energy: CPU time (of the probe and of those proven or likely at work for it) times the marginal watts of a busy logical processor.");
    doc.text(method(comparison));
    doc
}

/// The chart of ratios, for pages.
fn ratios(comparison: &Comparison) -> Bars {
    let [off, on] = &comparison.labels;
    let bar = |d: &Difference| {
        let interval = d.ratio?;
        let name = format!("{}: {}", d.probe, d.title());
        Some(Bar { name, value: interval.value, unit: String::new(), interval: Some(interval) })
    };
    Bars {
        title: "Ratio of costs".to_owned(),
        what: format!(
            "{on} divided by {off}: to the right of 1 is slower. Logarithmic axis; whiskers are 95 % intervals."
        ),
        bars: comparison.differences.iter().filter_map(bar).take(60).collect(),
        from_one: true,
    }
}
