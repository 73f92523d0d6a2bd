//! The file of a finding.

use super::advice::Advice;
use super::shipped;
use super::text::{fill, fill_known, is_key, names, placeholder};
use etwhy_base::files::read_at_most;
use etwhy_base::units::digits;
use etwhy_sql::{Cell, placeholders};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// How much a finding matters when it is found.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs something.
    Notice,
    /// Costs much, or will.
    Warning,
    /// Explains why the machine was slow, or endangers it.
    Critical,
}

impl Severity {
    /// The name in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Notice => "notice",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }

    /// The severity with this name.
    pub fn from_name(name: &str) -> Option<Severity> {
        [Severity::Info, Severity::Notice, Severity::Warning, Severity::Critical]
            .into_iter()
            .find(|s| s.name() == name)
    }
}

/// What a finding's question is asked of.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// A trace: there is a table `trace`.
    #[default]
    Trace,
    /// Event logs: there is a table `log_file`.
    Logs,
    /// Counter logs: there is a table `counter`.
    Counters,
}

impl Subject {
    /// All of them.
    pub const ALL: [Subject; 3] = [Subject::Trace, Subject::Logs, Subject::Counters];

    /// The table that shows that it was read.
    pub const fn table(self) -> &'static str {
        match self {
            Subject::Trace => "trace",
            Subject::Logs => "log_file",
            Subject::Counters => "counter",
        }
    }
}

/// Events without which the question cannot be answered, or not be answered with *not found*.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Kernel events any of which will do, by the names in `event_type` (`DPC`, or with the group `FileIo/Create`).
    #[serde(default)]
    pub events: Vec<String>,
    /// Providers any event of which will do as well.
    #[serde(default)]
    pub providers: Vec<String>,
    /// What is needed, in words that fit behind "no" and before "were recorded": `DPC events`.
    pub what: String,
    /// The recording profile that has them (`etwhy record --print NAME`).
    pub record: String,
    /// A query: these events are needed only to say *not found*, and only where it has rows. Other evidence is enough to find something, or shows
    /// that there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_rule_out: Option<String>,
    /// CPU samples of some processors tell as much as those of all: where threads ran on others without samples, that hides nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_processor: bool,
}

/// Where a threshold comes from.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A vendor's document, which is cited.
    Doc,
    /// It follows from statistics or physics, as is said.
    Derived,
    /// A value of a real case.
    Case,
    /// A sensible default that nobody has calibrated.
    Heuristic,
}

/// A number that the query compares with.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The number; `{name}` in the query and the texts.
    pub value: f64,
    /// What it is measured in.
    pub unit: String,
    /// Where it comes from.
    pub source: Source,
    /// The document, the reasoning, the case.
    pub reference: String,
}

/// What the cost of a finding is a sum of.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum CostOf {
    /// Times of CPU samples.
    Samples,
    /// Time that passed: waits, delays, service of a disk. It is no processor's, and the same on any number of them.
    Elapsed,
}

/// A finding.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// `area.pattern`, as the file is called.
    pub id: String,
    /// What was seen, in a line.
    pub title: String,
    /// How much it matters when it is found; a column `severity` of the query overrides it.
    pub severity: Severity,
    /// What it is asked of; questions about what was not read are not asked.
    #[serde(default)]
    pub over: Subject,
    /// What it is about: trace, cpu, interrupts, security, disk, memory, …
    pub topic: String,
    /// It says that nothing is wrong: it is found only if nothing above info is, and if nothing that was lost could hide it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_clear: bool,
    /// It concludes from how something develops, which some seconds do not show: of a trace that is followed, it is asked of the whole
    /// window only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trend: bool,
    /// It says where work is done, and not who makes it: whom it names stands for others, and an equally severe finding that names who it
    /// is comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blames_nobody: bool,
    /// What `cost_ns` of the query is a sum of. If samples are missing, the texts say what the whole may be; elapsed time is compared as a
    /// share of the trace's time, all else as one of the processors'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_of: Option<CostOf>,
    /// The manual page, Markdown: what it shows, why it matters, how it is computed, what fools it, an example.
    pub manual: String,
    /// What must have been recorded; each of them.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// Counters that a counter log must have, each of them, by English path: `\Processor(*)\% DPC Time` for single instances,
    /// `(_Total)` for their sum. Where one is missing the answer is *cannot tell* instead of *not found*.
    #[serde(default)]
    pub counters: Vec<String>,
    /// A query whose rows (column `reason`, optionally `record`) say why the question cannot be answered although the
    /// events are there.
    #[serde(default)]
    pub cannot_tell: Option<String>,
    /// Numbers that the query compares with.
    #[serde(default)]
    pub thresholds: BTreeMap<String, Threshold>,
    /// The query: a row for each culprit, the worst first.
    pub sql: String,
    /// One sentence with numbers: `{column}` or `{column:format}`.
    pub headline: String,
    /// What it did, for the verdict's first sentence: the end of "… cost this machine 49 % of its CPU and …".
    #[serde(default)]
    pub effect: Option<String>,
    /// Why it is slow, for people who have never heard of it.
    pub explanation: String,
    /// What to do, concretely: a text, or steps of which those are shown that fit.
    pub fix: Advice,
    /// What would disprove it.
    pub disproof: String,
    /// Tests: rows in, verdict out.
    #[serde(default, rename = "test", skip_serializing)]
    pub tests: Vec<RuleTest>,
    /// The file, if it is a user's.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// A file of a finding that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// It cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is not what a finding looks like.
    #[error("{file}: {message}")]
    Wrong {
        /// The file.
        file: String,
        /// Line, column and what is wrong.
        message: String,
    },
}

/// Line, column and what is wrong, without the line itself: it may be long.
fn placed(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count().saturating_add(1);
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()).saturating_add(1);
    format!("line {line}, column {column}: {}", error.message().trim())
}

impl Rule {
    /// Reads a finding. `file` is for messages.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub fn parse(file: &str, text: &str) -> Result<Rule, RuleError> {
        let wrong = |message: String| RuleError::Wrong { file: file.to_owned(), message };
        let rule: Rule = toml::from_str(text).map_err(|e| wrong(placed(text, &e)))?;
        let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
        if rule.id.is_empty() || !rule.id.chars().all(name) || !rule.id.contains('.') {
            return Err(wrong(format!("id `{}` should look like `area.pattern-seen`", rule.id)));
        }
        // Texts within the query are a row's: they may name its columns.
        let queries = rule.queries().map(|(name, query)| (name, placeholders(query)));
        let manual: Vec<&str> = names(&rule.manual).into_iter().filter(|key| is_key(key)).collect();
        for (part, keys) in queries.chain([("manual", manual)]) {
            if let Some(key) = keys.into_iter().find(|key| !rule.thresholds.contains_key(*key)) {
                return Err(wrong(format!("{part} names `{{{key}}}`, which is no threshold of the finding")));
            }
        }
        Ok(rule)
    }

    /// Whether some seconds of a trace can show it: no trend, and nothing about the trace as such.
    pub fn is_of_seconds(&self) -> bool {
        !self.trend && self.topic != "trace"
    }

    /// A text for people, the only way in which one is made: `{column}` is what the row says, `{threshold}` its number (the text has
    /// the unit). Without a row, what only a row tells is in capitals, as commands write what is to be typed in.
    pub fn fill(&self, text: &str, row: Option<&BTreeMap<String, Cell>>) -> String {
        fill(text.trim(), &|name| self.value(name, row))
    }

    /// As [`Rule::fill`], if the row has all that the text names.
    pub fn fill_known(&self, text: &str, row: &BTreeMap<String, Cell>) -> Option<String> {
        fill_known(text.trim(), &|name| self.value(name, Some(row)))
    }

    /// Fills `spread`, with which a query says in how many processes a program did it: ` in {processes} processes`.
    pub(super) fn fill_spread(&self, row: &mut BTreeMap<String, Cell>) {
        if let Some(Cell::Text(spread)) = row.get("spread") {
            let spread = fill(spread, &|name| self.value(name, Some(&*row)));
            row.insert("spread".to_owned(), Cell::Text(spread));
        }
    }

    /// What a name in a text means: a column of the row, or a threshold.
    pub(super) fn value(&self, name: &str, row: Option<&BTreeMap<String, Cell>>) -> Option<Cell> {
        let told = row.and_then(|row| row.get(name)).cloned();
        told.or_else(|| self.thresholds.get(name).map(|t| Cell::Text(digits(t.value))))
            .or_else(|| row.is_none().then(|| Cell::Text(placeholder(name))))
    }

    /// Whether the answer rests on CPU samples of all processors.
    pub fn rests_on_samples(&self) -> bool {
        let needs = self.needs.iter().filter(|need| !need.any_processor);
        needs.flat_map(|need| &need.events).any(|event| event == "SampledProfile")
    }

    /// The texts that a row fills.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let sentences = [&self.headline, &self.explanation, &self.disproof].into_iter().chain(&self.effect);
        sentences.map(String::as_str).chain(self.fix.texts())
    }

    /// The first name in the texts that neither a row nor a threshold has.
    pub fn unknown(&self, row: &BTreeMap<String, Cell>) -> Option<&str> {
        self.texts().flat_map(names).find(|name| self.value(name, Some(row)).is_none())
    }

    /// The query with its thresholds.
    pub fn query(&self) -> String {
        self.with_thresholds(&self.sql)
    }

    /// A text in which `{name}` of each threshold is its value.
    pub fn with_thresholds(&self, text: &str) -> String {
        let fill = |text: String, (name, t): (&String, &Threshold)| {
            text.replace(&format!("{{{name}}}"), &t.value.to_string())
        };
        self.thresholds.iter().fold(text.to_owned(), fill).trim().to_owned()
    }

    /// Its queries by their names in the file.
    pub fn queries(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let doubts = self.cannot_tell.as_deref().map(|query| ("cannot_tell", query));
        let needs = self.needs.iter().filter_map(|need| Some(("to_rule_out", need.to_rule_out.as_deref()?)));
        std::iter::once(("sql", self.sql.as_str())).chain(doubts).chain(needs)
    }

    /// Words of the queries that may be names of tables or views.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.queries().flat_map(|(_, query)| etwhy_sql::words(query))
    }

    /// False if its queries certainly read no column of this name.
    pub fn may_ask_for(&self, column: &str) -> bool {
        self.queries().any(|(_, query)| etwhy_sql::may_ask_for(query, column))
    }
}

/// The findings that ship, in order of id, without their tests.
///
/// # Errors
/// The first file that is none: a finding that is left out would be a question that nobody asks.
pub fn builtin() -> Result<Vec<Rule>, RuleError> {
    shipped::FILES.iter().map(|file| Rule::parse(file.name, file.head)).collect()
}

/// As [`builtin`], with their tests.
///
/// # Errors
/// The first file that is none.
pub fn builtin_with_tests() -> Result<Vec<Rule>, RuleError> {
    shipped::FILES.iter().map(|file| Rule::parse(file.name, &file.whole())).collect()
}

/// The findings in force.
#[derive(Clone, Debug)]
pub struct Rules {
    /// In order of id.
    pub rules: Vec<Rule>,
    /// What a user's file changed: which finding it stands for, and in whose place.
    pub replaced: Vec<String>,
}

/// The findings that ship and those of a user's folders. A finding takes the place of one of the same id that came
/// before it.
///
/// # Errors
/// The first file that cannot be used.
pub fn with_folders(folders: &[PathBuf]) -> Result<Rules, RuleError> {
    let mut found = Rules { rules: builtin()?, replaced: Vec::new() };
    for folder in folders {
        for rule in load_folder(folder)? {
            match found.rules.iter_mut().find(|r| r.id == rule.id) {
                Some(old) => {
                    let old_file = old
                        .file
                        .as_deref()
                        .map_or_else(|| "the one that ships".to_owned(), |file| file.display().to_string());
                    let file = rule.file.as_deref().unwrap_or(folder).display();
                    found.replaced.push(format!("{}: {file} takes the place of {old_file}", rule.id));
                    *old = rule;
                }
                None => found.rules.push(rule),
            }
        }
    }
    found.rules.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

/// Bytes of a file at most: those that ship have some thousands.
const MOST_BYTES: u64 = 4 << 20;

/// Reads a user's file.
///
/// # Errors
/// If it cannot be read or is no finding.
pub fn load_file(file: &Path) -> Result<Rule, RuleError> {
    let text = read_at_most(file, MOST_BYTES)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|e| Error::new(ErrorKind::InvalidData, e)))
        .map_err(|source| RuleError::Read { file: file.to_path_buf(), source })?;
    let mut rule = Rule::parse(&file.display().to_string(), &text)?;
    rule.file = Some(file.to_path_buf());
    Ok(rule)
}

/// A user's own findings: all `.toml` files of a folder.
///
/// # Errors
/// The first file that cannot be used; a folder without any, which is not the one that was meant.
pub fn load_folder(folder: &Path) -> Result<Vec<Rule>, RuleError> {
    let read = |source| RuleError::Read { file: folder.to_path_buf(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        // A pipe that came with others' files has no end.
        if path.extension().is_some_and(|e| e == "toml") && path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        let message = "no finding in this folder (*.toml)".to_owned();
        return Err(RuleError::Wrong { file: folder.display().to_string(), message });
    }
    files.sort();
    files.iter().map(|file| load_file(file)).collect()
}

/// A test of a finding.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTest {
    /// What it shows.
    pub name: String,
    /// Rows by table. Columns that are not named are 0, empty or null.
    #[serde(default)]
    pub tables: BTreeMap<String, Vec<toml::Table>>,
    /// Events and providers that are not in the trace, although the finding needs them.
    #[serde(default)]
    pub without: Vec<String>,
    /// found, not_found or cannot_tell.
    pub expect: String,
    /// Culprit of the first row.
    #[serde(default)]
    pub culprit: Option<String>,
    /// Severity of the first row.
    #[serde(default)]
    pub severity: Option<String>,
    /// Number of rows.
    #[serde(default)]
    pub hits: Option<usize>,
    /// Values of the first row; numbers within one millionth.
    #[serde(default)]
    pub values: toml::Table,
    /// What the first row's sentences must hold.
    #[serde(default)]
    pub says: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_finding_of_its_name() {
        for file in shipped::FILES {
            let name = file.name;
            match Rule::parse(name, &file.whole()) {
                Ok(rule) => {
                    assert_eq!(rule.id, name);
                    assert!(!rule.tests.is_empty(), "{name} has no test");
                    for part in
                        ["What it shows", "Why it matters", "How it is computed", "What fools it", "Example"]
                    {
                        assert!(rule.manual.contains(&format!("# {part}")), "{name}: no section `{part}`");
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_mistake_is_placed_without_its_line() {
        let long = "x".repeat(1_000_000);
        let told = |text: &str| Rule::parse("a.toml", text).unwrap_err().to_string();
        let string = told(&format!("title = \"a\"\nid = \"\\q{long}\"\n"));
        assert!(string.starts_with("a.toml: line 2, column "), "{string}");
        assert!(string.len() < 300, "{} bytes", string.len());
    }

    #[test]
    fn names_enter_commands_as_placeholders_only() {
        for rule in builtin().unwrap() {
            // What a query joins to a half of a command is not checked by anybody.
            for text in etwhy_sql::texts(&rule.sql).into_iter().chain(rule.texts()) {
                assert_eq!(text.matches('`').count() % 2, 0, "{}: {text}", rule.id);
            }
        }
    }

    #[test]
    fn a_number_of_processes_has_commas() {
        for rule in builtin().unwrap() {
            let spread = Cell::Text(" in {processes} processes that {make}.exe (7) started".to_owned());
            let mut row =
                BTreeMap::from([("processes".to_owned(), Cell::I64(1500)), ("spread".to_owned(), spread)]);
            rule.fill_spread(&mut row);
            let filled = Cell::Text(" in 1,500 processes that {make}.exe (7) started".to_owned());
            assert_eq!(row.get("spread"), Some(&filled), "{}", rule.id);
        }
    }

    #[test]
    fn a_users_finding_takes_the_place_of_ours() {
        let folder = std::env::temp_dir().join(format!("etwhy-rules-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (name, text) = (shipped::FILES[0].name, shipped::FILES[0].whole());
        std::fs::write(folder.join("mine.toml"), text.replace("title = \"", "title = \"My ")).unwrap();
        std::fs::write(folder.join("other.toml"), text.replace(name, "my.own")).unwrap();
        std::fs::write(folder.join("readme.txt"), "no finding").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/dev/zero", folder.join("endless.toml")).unwrap();
        let found = with_folders(std::slice::from_ref(&folder)).unwrap();
        assert_eq!(found.rules.len(), shipped::FILES.len() + 1);
        assert!(found.rules.iter().any(|r| r.id == name && r.title.starts_with("My ")));
        assert!(found.replaced.len() == 1 && found.replaced[0].contains("the one that ships"));
        std::fs::write(folder.join("wrong.toml"), "id = \"x\"").unwrap();
        let error = with_folders(std::slice::from_ref(&folder)).unwrap_err().to_string();
        assert!(error.contains("wrong.toml"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
