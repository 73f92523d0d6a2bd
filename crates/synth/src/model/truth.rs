//! `[truth]`: the numbers that an analysis of the trace has to find, stated by the scenario's author.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// Figures by name: `count = 163230, total_ms = 36800`.
pub(crate) type Figures = BTreeMap<String, Spanned<f64>>;

/// Table, name in it, figures: `[truth.dpc."ndis.sys"]`.
pub(crate) type TruthText = BTreeMap<String, BTreeMap<String, Figures>>;

/// `[loggers]`: what `xperf -loggers` said on the machine, written beside the trace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Loggers {
    pub(crate) text: String,
}
