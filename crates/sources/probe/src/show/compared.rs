//! A comparison as text.

use super::text::{self, grid};
use super::{Grid, MOST_ROWS};
use crate::amount;
use crate::compare::{Comparison, Difference, Verdict, tax};
use crate::who::Suspect;
use etwhy_export::sanitize;
use etwhy_export::text::{hanging, wrap};

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
pub fn table(comparison: &Comparison, wide: bool) -> Grid {
    let [off, on] = &comparison.labels;
    let mut head = vec![String::new(), off.clone(), on.clone(), "ratio (95 %)".into(), "verdict".into()];
    if wide {
        head.extend(["noise", "p", "ratio of means", "CPU before", "CPU after", "rounds"].map(str::to_owned));
    }
    let several = comparison
        .differences
        .iter()
        .any(|d| Some(&d.probe) != comparison.differences.first().map(|d| &d.probe));
    let row = |d: &Difference| {
        let title = if several { format!("{}: {}", d.probe, d.title()) } else { d.title() };
        let time = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), amount::time);
        let ratio = match (&d.ratio, d.difference) {
            (Some(ratio), _) => amount::ratio(ratio),
            (None, Some(difference)) => amount::difference(&difference, &d.unit),
            _ => "–".to_owned(),
        };
        let mut row = vec![
            title,
            amount::value(d.typical[0], &d.unit),
            amount::value(d.typical[1], &d.unit),
            ratio,
            d.verdict.text().to_owned(),
        ];
        if wide {
            row.extend([
                d.floor.map_or_else(|| "–".to_owned(), |f| format!("{:.0} %", (f - 1.0) * 100.0)),
                d.p.map_or_else(
                    || "–".to_owned(),
                    |p| if p < 0.0005 { "<0.001".into() } else { format!("{p:.3}") },
                ),
                d.mean_ratio.map_or_else(|| "–".to_owned(), amount::digits),
                time(d.cpu_ns[0]),
                time(d.cpu_ns[1]),
                format!("{}/{}", d.rounds[0], d.rounds[1]),
            ]);
        }
        row
    };
    Grid { head, rows: comparison.differences.iter().take(MOST_ROWS).map(row).collect() }
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
    shown.into_iter().take(6).map(|d| tax::of(comparison, d, per_day).sentence).collect()
}

/// Suspects of a side that are told.
const MOST_SUSPECTS: usize = 8;

/// Who was at work meanwhile, on each side: those who were proven or likely.
pub fn suspects(comparison: &Comparison) -> Vec<String> {
    let sides = comparison.labels.iter().zip(&comparison.suspects);
    let of_side = |(label, suspects): (&String, &Vec<Suspect>)| -> Vec<String> {
        suspects.iter().take(MOST_SUSPECTS).map(|one| format!("{label}: {}", text::suspect(one))).collect()
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

/// Lines of a comparison.
pub fn report(comparison: &Comparison, per_day: f64, given: bool, columns: usize) -> Vec<String> {
    let mut lines = wrap(&sanitize(&tax::summary(comparison)), columns);
    if !comparison.warnings.is_empty() {
        lines.push(String::new());
        for warning in comparison.warnings.iter().take(20) {
            lines.extend(hanging("! ", "  ", &sanitize(warning), columns));
        }
    }
    lines.push(String::new());
    lines.extend(grid(&table(comparison, columns >= 140), columns));
    let left = comparison.differences.len().saturating_sub(MOST_ROWS);
    if left > 0 {
        lines.push(format!("  … and {left} more; --dump probe_difference has all"));
    }
    lines.push(String::new());
    for sentence in taxes(comparison, per_day) {
        lines.extend(hanging("  ", "    ", &sanitize(&sentence), columns));
    }
    lines.push(String::new());
    let suspects = suspects(comparison);
    if !suspects.is_empty() {
        lines.push("  Who it is".to_owned());
        for one in suspects {
            lines.extend(hanging("    ", "      ", &sanitize(&one), columns));
        }
        lines.push(String::new());
    }
    for note in &comparison.notes {
        lines.extend(hanging("! ", "  ", &sanitize(note), columns));
    }
    let [before, after] = comparison.alone;
    if before + after > 0 {
        lines.extend(wrap(
            &format!("Only on one side, not compared: {before} before, {after} after."),
            columns,
        ));
    }
    lines.extend(wrap(&assumption(per_day, given), columns));
    lines.extend(wrap("Energy: CPU time (of the probe and of those proven or likely at work for it) times the marginal watts of a busy logical processor.", columns));
    lines.extend(wrap(method(comparison), columns));
    lines
}
