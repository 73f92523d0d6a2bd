//! Text within a block.

use serde::Serialize;

/// How bad something is, for colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Only a word.
    #[default]
    Plain,
    /// Worth knowing.
    Info,
    /// Costs something, or may be wrong.
    Warning,
    /// Costs much, or is wrong.
    Bad,
}

impl Level {
    /// The level that a word of ours means: severities of findings and of the ledger. Other words are plain.
    pub fn from_word(word: &str) -> Level {
        match word {
            "info" | "notice" => Level::Info,
            "warning" => Level::Warning,
            "critical" | "error" | "data_loss" => Level::Bad,
            _ => Level::Plain,
        }
    }
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// Words of ours, which may hold names.
    Text(String),
    /// Words that stand out.
    Strong(String),
    /// A name of a file, process or function, or a command to type: code in Markdown and HTML.
    Name(String),
    /// A severity, with its colour.
    Mark(Level, String),
    /// An address that is shown, and a link where it is `https`.
    Link(String),
    /// A bar for a share of 0 to 1.
    Bar(f64),
    /// Values over time as bars beside each other; `None` where there are none. The number is that of a full bar.
    Spark(Vec<Option<f64>>, f64),
}

/// A line of spans. Texts and strings become one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line(pub Vec<Span>);

impl Line {
    /// A name from a trace, a log or a file, or a command.
    pub fn name(name: impl Into<String>) -> Line {
        Line(vec![Span::Name(name.into())])
    }

    /// Words that stand out.
    pub fn strong(text: impl Into<String>) -> Line {
        Line(vec![Span::Strong(text.into())])
    }

    /// A severity by its word: `warning`, `error`, `data_loss`, ….
    pub fn mark(word: impl Into<String>) -> Line {
        let word = word.into();
        Line(vec![Span::Mark(Level::from_word(&word), word)])
    }

    /// The line with another one behind it.
    #[must_use]
    pub fn and(mut self, more: impl Into<Line>) -> Line {
        self.0.extend(more.into().0);
        self
    }

    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|span| matches!(span, Span::Text(text) | Span::Strong(text) | Span::Name(text) if text.is_empty()))
    }
}

impl From<Span> for Line {
    fn from(span: Span) -> Line {
        Line(vec![span])
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line(vec![Span::Text(text)])
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Line {
        text.to_owned().into()
    }
}

impl From<&String> for Line {
    fn from(text: &String) -> Line {
        text.clone().into()
    }
}
