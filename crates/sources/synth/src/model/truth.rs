//! `[truth]`: the numbers that an analysis of the trace has to find, stated by the scenario's author.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// What an author states: a number nearly always; texts say who is to blame for a finding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Figure {
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Figure, D::Error> {
        match Value::deserialize(d)? {
            Value::Integer(n) => Ok(Figure::Number(n as f64)),
            Value::Float(n) if n.is_finite() => Ok(Figure::Number(n)),
            Value::String(text) => Ok(Figure::Text(text)),
            other => {
                Err(D::Error::custom(format!("expected a number or a text, found {}", other.type_str())))
            }
        }
    }
}

/// Figures by name: `count = 163230, total_ms = 36800`.
pub(crate) type Figures = BTreeMap<String, Spanned<Figure>>;

/// Table, name in it, figures: `[truth.dpc."ndis.sys"]`.
pub(crate) type TruthText = BTreeMap<String, BTreeMap<String, Figures>>;

/// `[loggers]`: what `xperf -loggers` said on the machine, written beside the trace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Loggers {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) cause: Option<bool>,
}
