//! Results as one HTML file: static, without scripts, with a policy that forbids everything but its own style.

use super::svg::{Bar, bars, curve};
use super::{Grid, compared, contrast, growth, operations, text};
use crate::amount;
use crate::compare::{self, Comparison, tax};
use crate::law;
use crate::outcome::Outcome;
use crate::summary;
use etwhy_base::time::{UNIX_EPOCH, filetime_text};
use etwhy_export::escape_markup as escape;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

fn document(title: &str, sentence: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header><span \
         class=\"brand\">etwhy probe · {0}</span><h1>{1}</h1></header>\n<main>\n{body}</main>\n<footer>etwhy {2}. All figures hold for this \
         machine, at that time.</footer>\n</body>\n</html>\n",
        escape(title),
        escape(sentence),
        env!("CARGO_PKG_VERSION")
    )
}

fn table(grid: &Grid) -> String {
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table><thead><tr>",
    );
    for head in &grid.head {
        let head = if head.is_empty() { "operation" } else { head };
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &grid.rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let class = if cell == "slower" { " class=\"slower\"" } else { "" };
            let _ = match at {
                0 => write!(out, "<th scope=\"row\">{}</th>", escape(cell)),
                _ => write!(out, "<td{class}>{}</td>", escape(cell)),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn facts(outcome: &Outcome) -> String {
    let mut out = String::from("<dl>");
    let mut fact = |name: &str, value: &str| {
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
    };
    let ticks = i64::try_from(outcome.started_utc_s)
        .ok()
        .and_then(|s| s.checked_mul(10_000_000)?.checked_add(UNIX_EPOCH));
    if let Some(ticks) = ticks {
        fact("measured (UTC)", &filetime_text(ticks, 3));
    }
    for one in outcome.machine.facts.iter().take(40) {
        let (name, value) = one.shown();
        fact(&name, &value);
    }
    let products: Vec<String> = outcome
        .products
        .iter()
        .take(40)
        .map(|p| format!("{} ({}; {})", p.name, p.kind, p.evidence))
        .collect();
    fact(
        "security products",
        &if products.is_empty() { "none found running".to_owned() } else { products.join(", ") },
    );
    out.push_str("</dl>\n");
    out
}

fn paragraphs(out: &mut String, texts: impl Iterator<Item = String>) {
    for text in texts {
        let _ = writeln!(out, "<p>{}</p>", escape(&text));
    }
}

/// Curves and bars of one page: a file of results shall not make it unbounded.
const MOST_CHARTS: usize = 40;

/// The page of results.
pub fn report(outcome: &Outcome, scale: Option<f64>) -> String {
    let mut body = facts(outcome);
    let curves = law::curves(outcome, scale);
    let mut sentence = None;
    let mut charts = 0;
    for result in &outcome.probes {
        if compare::TWICE.contains(&result.state.as_str()) {
            continue;
        }
        let state = if result.state.is_empty() { String::new() } else { format!(" ({})", result.state) };
        let _ = writeln!(body, "<section><h2>{}</h2>", escape(&format!("{}{state}", result.probe)));
        if let Some(probe) = crate::probes::ALL.iter().find(|probe| probe.name == result.probe) {
            let conclusions = (probe.conclude)(&result.samples);
            sentence = sentence.or_else(|| conclusions.first().cloned());
            paragraphs(&mut body, conclusions.into_iter());
        }
        let series = summary::of_probe(result);
        let own = || curves.iter().filter(|c| c.probe == result.probe && c.state == result.state);
        let plain: Vec<Bar> = series
            .iter()
            .filter(|one| one.key.n.is_none() || own().next().is_none() || series.len() <= 12)
            .take(30)
            .map(|one| Bar {
                name: one.key.n.map_or_else(
                    || one.key.title(),
                    |n| format!("{} ({})", one.key.title(), amount::size(n)),
                ),
                value: one.median,
                unit: one.unit.clone(),
                interval: one.interval,
            })
            .collect();
        let chart = bars(&result.probe, &plain, false);
        if !chart.is_empty() && charts < MOST_CHARTS {
            charts += 1;
            let _ = writeln!(
                body,
                "<div class=\"card\"><h3>Typical cost of one operation</h3><p class=\"muted\">Logarithmic axis; whiskers are 95 % \
                 intervals over rounds.</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Chart\">{chart}</div></div>"
            );
        }
        for one in operations(result, true).0 {
            let _ = writeln!(body, "<div class=\"card\">{}</div>", table(&one));
        }
        paragraphs(&mut body, compare::contrasts(result).iter().take(12).map(contrast));
        for one in own() {
            let drawn = if charts < MOST_CHARTS { curve(one) } else { String::new() };
            charts += 1;
            let _ = writeln!(
                body,
                "<div class=\"card\"><h3>{}</h3><p>{}</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Chart\">{drawn}</div></div>",
                escape(&format!("Growth: {}", one.title())),
                escape(&growth(one))
            );
        }
        if !result.ended.is_empty() {
            let _ = writeln!(
                body,
                "<p class=\"warning\">{}</p>",
                escape(&format!("Ended early: {}", result.ended))
            );
        }
        list(&mut body, "Notes", result.notes.iter().cloned());
        list(&mut body, "Who it is", result.suspects.iter().map(text::suspect));
        body.push_str("</section>\n");
    }
    let sentence = sentence.unwrap_or_else(|| "What this machine takes".to_owned());
    document("results", &sentence, &body)
}

fn list(out: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.take(40).collect();
    if items.is_empty() {
        return;
    }
    let _ = write!(out, "<div class=\"card\"><h3>{}</h3><ul>", escape(title));
    for item in items {
        let _ = write!(out, "<li>{}</li>", escape(&item));
    }
    out.push_str("</ul></div>\n");
}

/// The page of a comparison, with the machine of `outcome`.
pub fn comparison(comparison: &Comparison, outcome: &Outcome, per_day: f64, given: bool) -> String {
    let mut body = facts(outcome);
    for warning in comparison.warnings.iter().take(40) {
        let _ = writeln!(body, "<p class=\"warning\">{}</p>", escape(warning));
    }
    let ratios: Vec<Bar> = comparison
        .differences
        .iter()
        .filter_map(|d| {
            let interval = d.ratio?;
            Some(Bar {
                name: format!("{}: {}", d.probe, d.title()),
                value: interval.value,
                unit: String::new(),
                interval: Some(interval),
            })
        })
        .take(60)
        .collect();
    let [off, on] = &comparison.labels;
    let _ = writeln!(
        body,
        "<section><h2>Ratio of costs</h2><div class=\"card\"><p class=\"muted\">{}</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Chart\">{}</div></div>",
        escape(&format!(
            "{on} divided by {off}: to the right of 1 is slower. Logarithmic axis; whiskers are 95 % intervals."
        )),
        bars("Ratio of costs", &ratios, true)
    );
    let _ =
        writeln!(body, "<div class=\"card\">{}</div></section>", table(&compared::table(comparison, true)));
    body.push_str("<section><h2>The tax</h2>\n");
    paragraphs(&mut body, compared::taxes(comparison, per_day).into_iter());
    list(&mut body, "Who it is", compared::suspects(comparison).into_iter());
    paragraphs(&mut body, comparison.notes.iter().cloned());
    let _ = writeln!(
        body,
        "<p class=\"muted\">{} {}</p></section>",
        escape(&compared::assumption(per_day, given)),
        escape(compared::method(comparison))
    );
    document("comparison", &tax::summary(comparison), &body)
}
