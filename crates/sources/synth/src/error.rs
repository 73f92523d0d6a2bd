//! What can be wrong with a scenario, always with the line.

use std::ops::Range;
use std::path::PathBuf;

/// A scenario that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The text is wrong.
    #[error("{name}:{line}:{column}: {message}")]
    Text {
        /// Name of the scenario file as given.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A file could not be written.
    #[error("{file}: cannot write: {source}")]
    Io {
        /// Which file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Shorthand for results of this crate.
pub type Result<T, E = ScenarioError> = std::result::Result<T, E>;

/// The text of a scenario with its name: turns byte ranges into lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceText {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl SourceText {
    /// An error at a byte range of the text.
    pub(crate) fn error(&self, span: Option<Range<usize>>, message: impl Into<String>) -> ScenarioError {
        let at = span.map_or(0, |s| s.start).min(self.text.len());
        let before = self.text.get(..at).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        ScenarioError::Text { name: self.name.clone(), line, column, message: message.into() }
    }
}

/// `a, b or c`, for messages that say what is allowed.
pub(crate) fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_last() {
        None => "nothing".into(),
        Some((last, [])) => (*last).into(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}
