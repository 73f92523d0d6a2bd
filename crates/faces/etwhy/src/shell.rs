//! The interactive shell of `etwhy sql`: history, completion, and commands that begin with a dot.

use crate::catalog;
use etwhy_sql::{functions, scalars, views};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::path::PathBuf;

/// What a line asks for.
pub enum Line {
    /// A query.
    Query(String),
    /// The plan of a query.
    Explain(String),
    /// Names of tables, views and functions.
    Tables,
    /// Columns of a table or view.
    Schema(String),
    /// Another output format.
    Mode(String),
    /// What there is to type.
    Help,
    /// The end.
    Quit,
    /// Nothing.
    Empty,
    /// A mistake.
    Wrong(String),
}

/// What the shell understands, for `.help`.
pub const HELP: &str = "\
SELECT …;            a question; it ends with a semicolon and may go over several lines
.tables              tables, views and functions
.schema NAME         columns with their units and meaning
.explain SELECT …    how SQLite would answer
.mode FORMAT         table, csv, json, jsonl
.quit                the end (also Ctrl-D)
Tab completes names of tables, columns and functions; the arrow keys bring back earlier questions.";

/// The meaning of a line.
pub fn parse(line: &str) -> Line {
    let text = line.trim().trim_end_matches(';').trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word {
        "" => Line::Empty,
        ".tables" => Line::Tables,
        ".schema" if !rest.is_empty() => Line::Schema(rest.trim().to_owned()),
        ".schema" => Line::Wrong(".schema wants the name of a table".to_owned()),
        ".explain" if !rest.is_empty() => Line::Explain(rest.trim().to_owned()),
        ".explain" => Line::Wrong(".explain wants a query".to_owned()),
        ".mode" => Line::Mode(rest.trim().to_owned()),
        ".help" | "help" | "?" => Line::Help,
        ".quit" | ".exit" | "exit" | "quit" => Line::Quit,
        word if word.starts_with('.') => {
            Line::Wrong(format!("there is no {word}; .help lists what there is"))
        }
        _ => Line::Query(text.to_owned()),
    }
}

/// Completes names, and waits for the semicolon.
struct Assistant {
    names: Vec<String>,
}

impl Helper for Assistant {}
impl Highlighter for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input().trim();
        let whole = text.is_empty() || text.ends_with(';') || !matches!(parse(text), Line::Query(_));
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

/// Names that begin like the word before `at`, and where that word begins.
fn completions(names: &[String], line: &str, at: usize) -> (usize, Vec<String>) {
    let before = line.get(..at).unwrap_or(line);
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let word = before.rsplit(|c: char| !part_of_word(c)).next().unwrap_or("");
    // Behind an alias only the column counts.
    let word = if word.starts_with('.') { word } else { word.rsplit('.').next().unwrap_or(word) };
    let lower = word.to_ascii_lowercase();
    let found = names
        .iter()
        .filter(|name| !word.is_empty() && name.to_ascii_lowercase().starts_with(&lower))
        .cloned()
        .collect();
    (at.saturating_sub(word.len()), found)
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = completions(&self.names, line, at);
        Ok((start, found.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

/// All names that can be completed.
fn names() -> Vec<String> {
    let mut names: Vec<String> =
        [".tables", ".schema", ".explain", ".mode", ".help", ".quit"].map(str::to_owned).to_vec();
    let keywords = "SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT ON AS WITH HAVING DISTINCT COUNT SUM MIN MAX AVG CASE WHEN THEN ELSE END UNION ALL";
    names.extend(keywords.split(' ').map(str::to_owned));
    for spec in catalog::specs() {
        names.push(spec.name.to_string());
        names.extend(spec.columns.iter().map(|c| c.name.to_string()));
    }
    for view in views::all() {
        names.push(view.name.to_owned());
        names.extend(view.columns.into_iter().map(|(name, _)| name));
    }
    names.extend(functions::ALL.iter().map(|f| format!("{}(", f.name)));
    names.extend(scalars::ALL.iter().filter_map(|s| s.usage.split_inclusive('(').next()).map(str::to_owned));
    names.sort();
    names.dedup();
    names
}

/// Where earlier questions are kept.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || {
        std::env::var_os("HOME")
            .or_else(|| std::env::var_os("USERPROFILE"))
            .map(|h| PathBuf::from(h).join(".local/state"))
    };
    let folder = state.or_else(home)?.join("etwhy");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("sql_history"))
}

/// Reads lines and hands each to `answer` until it says that it is the end. What cannot be answered is said and the
/// shell goes on.
///
/// # Errors
/// If the terminal cannot be read.
pub fn run(mut answer: impl FnMut(Line) -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(true).build();
    let mut editor: Editor<Assistant, DefaultHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Assistant { names: names() }));
    let history = history_file();
    if let Some(file) = &history {
        // There is none at first.
        let _ = editor.load_history(file);
    }
    loop {
        match editor.readline("etwhy> ") {
            Ok(line) => match answer(parse(&line)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => say!("etwhy: {error:#}"),
            },
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(file) = &history {
        // A history that cannot be kept is no reason to fail.
        let _ = editor.save_history(file);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_mean_something() {
        assert!(matches!(parse("  .tables ;"), Line::Tables));
        assert!(matches!(parse(".schema dpc"), Line::Schema(name) if name == "dpc"));
        assert!(matches!(parse("select 1;"), Line::Query(sql) if sql == "select 1"));
        assert!(matches!(parse(".nonsense"), Line::Wrong(_)));
        assert!(matches!(parse(" "), Line::Empty));
    }

    #[test]
    fn names_are_completed() {
        let names = names();
        let (at, found) = completions(&names, "SELECT * FROM interrupt_c", 25);
        assert_eq!((at, found), (14, vec!["interrupt_cost".to_owned()]));
        let (at, found) = completions(&names, "SELECT i.over_limit_", 20);
        assert_eq!((at, found), (9, vec!["over_limit_ns".to_owned()]));
        assert!(completions(&names, "SELECT ", 7).1.is_empty());
        assert!(completions(&names, ".sch", 4).1.contains(&".schema".to_owned()));
    }
}
