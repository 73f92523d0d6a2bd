//! Counts of what was written, by table and name, and the comparison with what the scenario's author states.

use crate::error::{Result, SourceText};
use crate::model::{Figure, TruthText};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Figures of one name: whole numbers; those that end in `_ns` are times.
type Figures = BTreeMap<&'static str, i64>;

/// Figures by table and name.
#[derive(Default)]
pub(crate) struct Tally {
    tables: BTreeMap<&'static str, BTreeMap<String, Figures>>,
}

/// What a stated figure may differ by, beside the share.
const SHARE: f64 = 1e-3;

impl Tally {
    /// Adds to figures of a name.
    pub(crate) fn add(&mut self, table: &'static str, name: &str, figures: &[(&'static str, i64)]) {
        let names = self.tables.entry(table).or_default();
        if !names.contains_key(name) {
            names.insert(name.to_string(), Figures::new());
        }
        let Some(sums) = names.get_mut(name) else { return };
        for (figure, n) in figures {
            *sums.entry(figure).or_default() += n;
        }
    }

    /// A figure as the truth file shows it: milliseconds for times.
    fn shown(figure: &str, value: i64) -> (String, f64) {
        match figure.strip_suffix("_ns") {
            Some(stem) => (format!("{stem}_ms"), value as f64 / 1e6),
            None => (figure.to_string(), value as f64),
        }
    }

    /// The value of a figure, whatever the case of the name.
    fn get(&self, table: &str, name: &str, figure: &str) -> Option<f64> {
        let names = self.tables.get(table)?;
        let figures = names.get(name).or_else(|| {
            names.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, figures)| figures)
        })?;
        figures.iter().map(|(f, v)| Tally::shown(f, *v)).find(|(f, _)| f == figure).map(|(_, v)| v)
    }

    /// All tables.
    pub(crate) fn json(&self) -> Value {
        let figures = |figures: &Figures| {
            let shown = figures.iter().map(|(figure, value)| Tally::shown(figure, *value));
            object(shown.map(|(figure, value)| (figure, number(value))))
        };
        let names = |names: &BTreeMap<String, Figures>| object(names.iter().map(|(n, f)| (n, figures(f))));
        object(self.tables.iter().map(|(table, all)| (*table, names(all))))
    }

    /// Compares with what the author states. What a table does not count (`law`) is passed on as it is.
    ///
    /// Counts must be exact when nothing is scaled. A scaled scenario rounds: up to three events of a figure.
    pub(crate) fn check(&self, stated: &TruthText, factors: &Scaled, place: &SourceText) -> Result<Stated> {
        let mut all = Stated::new();
        let number = |figure: &Figure| match figure {
            Figure::Number(n) => Some(*n),
            Figure::Text(_) => None,
        };
        for (table, names) in stated.iter().filter(|(table, _)| *table != FINDING) {
            for (name, figures) in names {
                let count = figures.get("count").and_then(|c| number(c.get_ref()));
                for (figure, value) in figures {
                    let span = value.span();
                    let Some(value) = number(value.get_ref()) else {
                        return Err(place.error(Some(span), "write a number"));
                    };
                    let mut keep = |value: f64| {
                        all.entry(table.clone())
                            .or_default()
                            .entry(name.clone())
                            .or_default()
                            .insert(figure.clone(), value);
                    };
                    if table == "law" {
                        keep(value);
                        continue;
                    }
                    let sampled = table.starts_with("cpu");
                    let factor = if sampled { factors.time } else { factors.counts };
                    let wanted = value * factor;
                    let Some(found) = self.get(table, name, figure) else {
                        let message = format!(
                            "truth {table}.{name:?}.{figure}: the trace has no such figure; {}",
                            self.known(table, name)
                        );
                        return Err(place.error(Some(span), message));
                    };
                    let one = count.filter(|c| *c > 0.0).map_or(1.0, |c| value / c);
                    let exact = figure == "count" && (factor - 1.0).abs() < 1e-9;
                    let allowed = match (exact, sampled) {
                        (true, false) => 0.0,
                        (_, true) => factors.sample_ms * factors.samples + SHARE * wanted,
                        (false, false) if (factor - 1.0).abs() < 1e-9 => SHARE * wanted,
                        (false, false) => 3.0 * one + SHARE * wanted,
                    };
                    if (found - wanted).abs() > allowed + 1e-6 {
                        let message = format!(
                            "truth {table}.{name:?}.{figure}: stated {wanted}, written {found}; the scenario's \
                             tables do not bring what [truth] says{}",
                            factors.note
                        );
                        return Err(place.error(Some(span), message));
                    }
                    keep(found);
                }
            }
        }
        Ok(all)
    }

    fn known(&self, table: &str, name: &str) -> String {
        let list = |names: Vec<&str>| names.into_iter().take(40).collect::<Vec<_>>().join(", ");
        match self.tables.get(table) {
            None => format!("tables: {}, law", list(self.tables.keys().copied().collect())),
            Some(names) => match names.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
                None => format!("names: {}", list(names.keys().map(String::as_str).collect())),
                Some((_, figures)) => {
                    let figures: Vec<String> = figures.iter().map(|(f, v)| Tally::shown(f, *v).0).collect();
                    format!("figures: {}", figures.join(", "))
                }
            },
        }
    }
}

/// Section of `[truth]` that says what a verdict must find: neither scaled nor checked.
const FINDING: &str = "finding";

/// The findings that the scenario plants, as its author states them.
pub(crate) fn findings(stated: &TruthText) -> Value {
    let value = |figure: &Figure| match figure {
        Figure::Number(n) => number(*n),
        Figure::Text(text) => json!(text),
    };
    object(stated.get(FINDING).into_iter().flatten().map(|(id, figures)| {
        (id, object(figures.iter().map(|(name, figure)| (name, value(figure.get_ref())))))
    }))
}

/// A JSON object of these, in their order.
pub(crate) fn object<K: Into<String>>(fields: impl IntoIterator<Item = (K, Value)>) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// A figure with at most six digits behind the point, and no point if it is whole. What is no number is 0.
pub(crate) fn number(value: f64) -> Value {
    let value = if value.is_finite() { (value * 1e6).round() / 1e6 } else { 0.0 };
    let whole = value as i64;
    if whole as f64 == value { whole.into() } else { value.into() }
}

/// Every finding names its culprit.
pub(crate) fn check_findings(stated: &TruthText, place: &SourceText) -> Result<()> {
    for (id, figures) in stated.get(FINDING).into_iter().flatten() {
        if !matches!(figures.get("culprit").map(|c| c.get_ref()), Some(Figure::Text(_))) {
            let span = figures.values().next().map(|f| f.span());
            return Err(place.error(span, format!("truth.finding.{id:?}: it needs culprit = \"text\"")));
        }
    }
    Ok(())
}

/// Stated figures, as they are in the trace that was written.
pub(crate) type Stated = BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>;

/// How figures scale.
pub(crate) struct Scaled {
    pub(crate) counts: f64,
    pub(crate) time: f64,
    /// Length of a sampling interval.
    pub(crate) sample_ms: f64,
    /// So many samples may be missing or too many: a round of all processors, and one for each stack.
    pub(crate) samples: f64,
    /// What went wrong while writing, for the message.
    pub(crate) note: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::parse;

    fn stated(text: &str) -> (TruthText, SourceText) {
        let place = SourceText { name: "s".into(), text: text.into() };
        (parse(&place).unwrap().truth, place)
    }

    #[test]
    fn objects_nest_and_whole_figures_have_no_point() {
        let inner = object([("c", number(1.0)), ("d", number(f64::NAN))]);
        let all =
            object([("a\"", json!("C:\\x\n")), ("b", inner), ("d", object::<&str>([])), ("e", number(1.5))]);
        assert_eq!(all.to_string(), r#"{"a\"":"C:\\x\n","b":{"c":1,"d":0},"d":{},"e":1.5}"#);
    }

    #[test]
    fn counts_are_exact_and_scaled_ones_are_rounded() {
        let mut tally = Tally::default();
        tally.add("dpc", "ndis.sys", &[("count", 1632), ("total_ns", 368_100_000)]);
        let (text, place) = stated("[truth.dpc.'NDIS.SYS']\ncount = 163230\ntotal_ms = 36800\n");
        let scaled =
            |counts| Scaled { counts, time: counts, sample_ms: 1.0, samples: 5.0, note: String::new() };
        let found = tally.check(&text, &scaled(0.01), &place).unwrap();
        assert_eq!(found["dpc"]["NDIS.SYS"]["count"], 1632.0);
        let error = tally.check(&text, &scaled(1.0), &place).unwrap_err().to_string();
        assert!(error.starts_with("s:2:") && error.contains("163230"), "{error}");
        let (text, place) = stated("[truth.dpc.'NDIS.SYS']\nbytes = 1\n");
        let error = tally.check(&text, &scaled(1.0), &place).unwrap_err().to_string();
        assert!(error.contains("total_ms"), "{error}");
    }
}
