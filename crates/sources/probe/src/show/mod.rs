//! Results for people: text for a terminal, a page for a browser. Both show the same figures.
//!
//! All names come from files or from `/proc`: everything that is shown goes through [`etwhy_export::sanitize`] (text) or
//! [`etwhy_export::escape_markup`] (HTML) in one place.

pub mod compared;
pub mod page;
pub mod plot;
pub mod svg;
pub mod text;

use crate::compare::{Against, Verdict};
use crate::law::Curve;
use crate::outcome::ProbeOutcome;
use crate::summary::Series;
use crate::{amount, summary};
use etwhy_stats::growth::{Form, Verdict as Grown};

/// A table of texts: first column on the left, all others on the right.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Heads of columns.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

/// Series of which more sizes than this are a curve and not listed.
const MOST_SIZES: usize = 8;
/// Rows that are shown of one probe; tables have all.
const MOST_ROWS: usize = 60;

/// The operations of a probe: what was done in rows, under which conditions in columns, where it has several of both; else a row
/// for each kind with what is known of it. The number is that of rows left out.
pub fn operations(result: &ProbeOutcome, wide: bool) -> (Vec<Grid>, usize) {
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
    let mut grids = Vec::new();
    let matrix = variants.len() > 1
        && variants.len() <= 6
        && measures.len() > 1
        && listed.iter().all(|one| one.key.n.is_none())
        && listed.len() * 2 > variants.len() * measures.len();
    if matrix {
        let mut head = vec![String::new()];
        head.extend(variants.iter().map(|v| if v.is_empty() { "once".to_owned() } else { (*v).to_owned() }));
        let row = |measure: &&str| {
            let mut row = vec![(*measure).to_owned()];
            row.extend(variants.iter().map(|variant| {
                let one = listed.iter().find(|s| s.key.measure == *measure && s.key.variant == *variant);
                one.map_or_else(String::new, |one| amount::value(one.median, &one.unit))
            }));
            row
        };
        grids.push(Grid { head, rows: measures.iter().take(MOST_ROWS).map(row).collect() });
    }
    if !listed.is_empty() && (wide || !matrix) {
        grids.push(list(&listed, wide));
    }
    (grids, listed.len().saturating_sub(MOST_ROWS))
}

fn list(series: &[&Series], wide: bool) -> Grid {
    let mut head = vec!["", "typical", "95 % interval", "rounds differ"];
    if wide {
        head.extend(["mean", "95 % below", "99 % below"]);
    }
    head.extend(["CPU", "blocked"]);
    if wide {
        head.extend(["no processor", "waits", "rounds", "operations"]);
    }
    let row = |one: &&Series| {
        let time = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), amount::time);
        let mut title = one.key.title();
        if let Some(n) = one.key.n {
            title.push_str(&format!(" ({})", amount::size(n)));
        }
        let mut row = vec![
            title,
            amount::value(one.median, &one.unit),
            one.interval.map_or_else(
                || "needs 6 rounds".to_owned(),
                |i| format!("{}–{}", amount::value(i.low, &one.unit), amount::value(i.high, &one.unit)),
            ),
            one.spread.map_or_else(|| "–".to_owned(), |spread| format!("{:.0} %", spread * 100.0)),
        ];
        if wide {
            row.extend([amount::value(one.mean, &one.unit), time(one.p95_ns), time(one.p99_ns)]);
        }
        row.extend([time(one.cpu_ns), time(one.blocked_ns)]);
        if wide {
            row.extend([
                time(one.queue_ns),
                one.waits.map_or_else(|| "–".to_owned(), amount::digits),
                one.rounds.len().to_string(),
                etwhy_base::units::thousands(one.operations.into()),
            ]);
        }
        row
    };
    Grid {
        head: head.into_iter().map(str::to_owned).collect(),
        rows: series.iter().take(MOST_ROWS).map(row).collect(),
    }
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
