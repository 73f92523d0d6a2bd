//! Results for people: one document, as text for a terminal and as a page for a browser.

pub mod compared;
pub mod page;
mod plot;
pub mod results;
mod svg;

use crate::compare::{Against, Verdict};
use crate::law::Curve;
use crate::outcome::ProbeOutcome;
use crate::summary::Series;
use crate::{amount, summary};
use etwhy_doc::{Column, Line, Table};
use etwhy_stats::growth::{Form, Verdict as Grown};

/// A table: names in the first column, numbers in all others.
fn table(first: &str, others: impl IntoIterator<Item = impl Into<String>>) -> Table {
    Table::new(std::iter::once(Column::name(first).least(28)).chain(others.into_iter().map(Column::number)))
}

/// A row of texts.
fn row(table: &mut Table, cells: impl IntoIterator<Item = String>) {
    table.row(cells.into_iter().map(Line::from));
}

/// Series of which more sizes than this are a curve and not listed.
const MOST_SIZES: usize = 8;
/// Rows that are shown of one probe; tables have all.
const MOST_ROWS: usize = 60;

/// The operations of a probe: what was done in rows, under which conditions in columns, where it has several of both; else a row
/// for each kind with what is known of it; `wide`: both.
pub fn operations(result: &ProbeOutcome, wide: bool) -> Vec<Table> {
    let all = summary::of_probe(result);
    let sizes = |one: &Series| {
        all.iter().filter(|s| s.key.measure == one.key.measure && s.key.variant == one.key.variant).count()
    };
    let listed: Vec<&Series> = all
        .iter()
        .filter(|one| one.key.n.is_none() || sizes(one) <= MOST_SIZES)
        .take(MOST_ROWS * 4)
        .collect();
    let mut measures: Vec<&str> = Vec::new();
    let mut variants: Vec<&str> = Vec::new();
    for one in &listed {
        for (list, word) in
            [(&mut measures, one.key.measure.as_str()), (&mut variants, one.key.variant.as_str())]
        {
            if !list.contains(&word) {
                list.push(word);
            }
        }
    }
    let mut tables = Vec::new();
    let matrix = variants.len() > 1
        && variants.len() <= 6
        && measures.len() > 1
        && listed.iter().all(|one| one.key.n.is_none())
        && listed.len() * 2 > variants.len() * measures.len();
    if matrix {
        let heads = variants.iter().map(|variant| if variant.is_empty() { "once" } else { variant });
        let mut all = table("operation", heads);
        for measure in measures {
            let cell = |variant: &&str| {
                let one = listed.iter().find(|s| s.key.measure == measure && s.key.variant == **variant);
                one.map_or_else(String::new, |one| amount::value(one.median, &one.unit))
            };
            row(&mut all, std::iter::once(measure.to_owned()).chain(variants.iter().map(cell)));
        }
        tables.push(all.at_most(MOST_ROWS));
    }
    if wide || !matrix {
        tables.push(list(&listed));
    }
    tables
}

fn list(series: &[&Series]) -> Table {
    let heads = [
        "typical",
        "95 % interval",
        "rounds differ",
        "CPU",
        "blocked",
        "mean",
        "95 % below",
        "99 % below",
        "no processor",
        "waits",
        "rounds",
        "operations",
    ];
    let mut all = table("operation", heads);
    for one in series {
        let time = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), amount::time);
        let size = one.key.n.map_or_else(String::new, |n| format!(" ({})", amount::size(n)));
        let cells = [
            one.key.title() + &size,
            amount::value(one.median, &one.unit),
            one.interval.map_or_else(
                || "needs 6 rounds".to_owned(),
                |i| format!("{}–{}", amount::value(i.low, &one.unit), amount::value(i.high, &one.unit)),
            ),
            one.spread.map_or_else(|| "–".to_owned(), |spread| format!("{:.0} %", spread * 100.0)),
            time(one.cpu_ns),
            time(one.blocked_ns),
            amount::value(one.mean, &one.unit),
            time(one.p95_ns),
            time(one.p99_ns),
            time(one.queue_ns),
            one.waits.map_or_else(|| "–".to_owned(), amount::digits),
            one.rounds.len().to_string(),
            etwhy_base::units::thousands(one.operations.into()),
        ];
        row(&mut all, cells);
    }
    all.hint = "--dump probe_series has all".to_owned();
    all.at_most(MOST_ROWS)
}

/// What a curve says, in sentences.
pub fn growth(curve: &Curve) -> String {
    let g = &curve.growth;
    let per = if g.form == Form::PerCall { "one" } else { "all" };
    let mut text = format!("{}: ", curve.title());
    text.push_str(&match g.verdict {
        Grown::Constant => format!("the cost of {per} does not depend on the number of {}", curve.n_is),
        Grown::Slight => format!(
            "the cost of {per} grows slightly, {} times from first to last",
            amount::digits(g.factor())
        ),
        Grown::Logarithmic | Grown::Linear | Grown::SuperLinear => {
            let (law, all) = (g.law.name(), g.law.total_name());
            match g.form {
                Form::PerCall => {
                    format!("each costs like {law} of the {}, all together like {all}", curve.n_is)
                }
                Form::Total => format!("it costs like {law} of the {}", curve.n_is),
            }
        }
        Grown::WithTime => "it grows with time rather than with n".to_owned(),
        Grown::CannotTell => format!(
            "how it grows cannot be determined: {}",
            g.doubt.map_or("the points do not decide", etwhy_stats::growth::Doubt::text)
        ),
    });
    if let Some(p) = g.exponent.filter(|_| curve.extends()) {
        let high = if p.high.is_finite() { amount::digits(p.high) } else { "?".to_owned() };
        text.push_str(&format!("; exponent {} ({}–{high})", amount::digits(p.value), amount::digits(p.low)));
    }
    text.push_str(&format!(". Cost: {}.", curve.cost.text()));
    if curve.rounds < 2 {
        text.push_str(" There is one round only, in which n and time are the same.");
    }
    if let Some(one) = curve.one_at_scale() {
        let n = etwhy_base::units::thousands(curve.scale as i128);
        text.push_str(&match curve.all_at_scale() {
            Some(all) => format!(
                " At {n} {}, one takes {}, all together {}.",
                curve.n_is,
                amount::value(one, &curve.unit),
                amount::value(all, &curve.unit)
            ),
            None => format!(" At {n} {}, it takes {}.", curve.n_is, amount::value(one, &curve.unit)),
        });
    }
    text
}

/// What a contrast says.
pub fn contrast(one: &Against) -> String {
    let d = &one.difference;
    let [cheap, dear] = d.typical.map(|v| amount::value(v, &d.unit));
    let ratio = d.sure().map_or_else(
        || d.ratio.map_or_else(String::new, |r| amount::factor(r.value)),
        |s| {
            let end = if s.value >= 1.0 { s.low } else { s.high };
            format!("{}, at least {}", amount::factor(s.value), amount::factor(end))
        },
    );
    // From nothing to something there is no factor.
    let ratio = if d.ratio.is_none() {
        let more = d.typical[1] - d.typical[0];
        format!("{} {}", amount::value(more.abs(), &d.unit), if more >= 0.0 { "more" } else { "less" })
    } else {
        ratio
    };
    let verdict = match d.verdict {
        Verdict::Slower | Verdict::Faster => ratio,
        Verdict::TooFew => format!("{ratio}; six rounds are needed to be sure"),
        Verdict::Small => "a difference, but two equal rounds differ as much".to_owned(),
        Verdict::NotShown => "no difference shown".to_owned(),
    };
    format!("{}: {}: {dear} against {cheap} ({verdict})", one.title, d.title())
}
