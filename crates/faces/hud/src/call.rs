//! A question of the page, and the work on it.

pub use crate::fault::{Cancel, Fault};
use crate::hud::Hud;
pub use crate::lines::Work;
use crate::reply::Reply;
use crate::trace::Trace;
use etwhy_table::TableSpec;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Something that the page may ask.
pub struct Endpoint {
    /// The last part of the address: `/{token}/api/v1/{name}`.
    pub name: &'static str,
    /// What it gives, and what the body holds.
    pub about: &'static str,
    /// What it takes.
    pub work: Work,
    /// Answers.
    pub answer: fn(&Call<'_>) -> Result<Reply, Fault>,
}

/// A question.
pub struct Call<'a> {
    /// The server's state.
    pub hud: &'a Hud,
    /// The body.
    pub body: serde_json::Value,
    /// Whether anybody waits.
    pub cancel: Cancel,
}

impl Call<'_> {
    /// The trace that the body names by number (`trace`, else the first).
    ///
    /// # Errors
    /// If there is none.
    pub fn trace(&self) -> Result<Arc<Trace>, Fault> {
        self.trace_named("trace")
    }

    /// As [`Call::trace`], by another key.
    ///
    /// # Errors
    /// If there is none.
    pub fn trace_named(&self, key: &str) -> Result<Arc<Trace>, Fault> {
        self.trace_number(self.body.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0))
    }

    /// The trace with this number. Where the body names a table that is still to be made, it is made.
    ///
    /// # Errors
    /// If there is none, or the table cannot be made.
    pub fn trace_number(&self, number: u64) -> Result<Arc<Trace>, Fault> {
        let mut texts = Vec::new();
        texts_of(&self.body, &mut texts);
        let words =
            texts.iter().flat_map(|text| text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()));
        self.hud.trace(number, words, &self.cancel)
    }

    /// The body says of which window of the trace it speaks (`window`), and that one has passed.
    pub fn is_of_passed_window(&self) -> bool {
        let asked = self.body.get("window").and_then(serde_json::Value::as_u64);
        let number = self.body.get("trace").and_then(serde_json::Value::as_u64).unwrap_or(0);
        let traces = self.hud.traces();
        let now = usize::try_from(number).ok().and_then(|number| traces.get(number));
        now.zip(asked).is_some_and(|(now, asked)| now.window() != asked)
    }

    /// The declaration of a table, by its name in any case.
    pub fn spec(&self, table: &str) -> Option<&'static TableSpec> {
        self.hud.host.specs().into_iter().find(|spec| spec.name.eq_ignore_ascii_case(table))
    }

    /// The body as a value of `T`.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_value(self.body.clone()).map_err(Fault::wrong)
    }
}

/// All texts in a body.
fn texts_of<'a>(value: &'a serde_json::Value, texts: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::String(text) => texts.push(text),
        serde_json::Value::Array(list) => list.iter().for_each(|value| texts_of(value, texts)),
        serde_json::Value::Object(object) => object.values().for_each(|value| texts_of(value, texts)),
        _ => {}
    }
}
