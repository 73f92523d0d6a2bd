//! Names in braces that a reader should never see.

pub use etwhy_rules::text::unfilled;
use serde_json::Value;

/// Those of all texts of a document, each with its text. Queries and figures are not sentences.
pub fn in_json(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => unfilled(text).map(|name| format!("{{{name}}}: {text}")).into_iter().collect(),
        Value::Array(list) => list.iter().flat_map(in_json).collect(),
        Value::Object(fields) => {
            let said = fields.iter().filter(|(key, _)| !["sql", "values"].contains(&key.as_str()));
            said.flat_map(|(_, value)| in_json(value)).collect()
        }
        _ => Vec::new(),
    }
}
