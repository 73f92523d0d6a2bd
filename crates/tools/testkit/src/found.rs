//! What was found, as what it must be: anything else fails and is shown.

use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::path::Path;

/// A text: of JSON, or the name of a file.
pub trait Str {
    /// The text.
    fn str(&self) -> &str;
}

impl Str for Value {
    #[track_caller]
    fn str(&self) -> &str {
        self.as_str().unwrap_or_else(|| panic!("no text: {self:#}"))
    }
}

impl Str for Path {
    #[track_caller]
    fn str(&self) -> &str {
        self.to_str().unwrap_or_else(|| panic!("no UTF-8: {}", self.display()))
    }
}

impl Str for OsStr {
    #[track_caller]
    fn str(&self) -> &str {
        Path::new(self).str()
    }
}

/// JSON of one kind.
pub trait Json {
    /// A whole number.
    fn int(&self) -> i64;
    /// A whole number that is not negative.
    fn uint(&self) -> u64;
    /// A number.
    fn float(&self) -> f64;
    /// A list.
    fn list(&self) -> &Vec<Value>;
    /// The fields of an object.
    fn fields(&self) -> &Map<String, Value>;
}

impl Json for Value {
    #[track_caller]
    fn int(&self) -> i64 {
        self.as_i64().unwrap_or_else(|| panic!("no whole number: {self:#}"))
    }

    #[track_caller]
    fn uint(&self) -> u64 {
        self.as_u64().unwrap_or_else(|| panic!("no whole number: {self:#}"))
    }

    #[track_caller]
    fn float(&self) -> f64 {
        self.as_f64().unwrap_or_else(|| panic!("no number: {self:#}"))
    }

    #[track_caller]
    fn list(&self) -> &Vec<Value> {
        self.as_array().unwrap_or_else(|| panic!("no list: {self:#}"))
    }

    #[track_caller]
    fn fields(&self) -> &Map<String, Value> {
        self.as_object().unwrap_or_else(|| panic!("no object: {self:#}"))
    }
}
