//! Facts of the user's own, from a file: they win over those that ship.
//!
//! The file is a table of text: commas, semicolons or tabs between cells, the first line names the columns. `file`
//! is the image's file name; `vendor`, `product`, `category`, `altitudes`, `load_order_groups`, `confidence` and
//! `source` are optional, and a cell that is empty leaves what ships as it is. Lines that begin with `# ` are remarks.

use crate::Confidence;
use crate::drivers::{self, DriverFact, DriverKind};
use crate::processes::{self, ProcessFact};
use crate::table::{compare_lower, file_name};
use std::borrow::Cow;
use std::sync::OnceLock;

/// How sources of the user's rows begin.
pub(crate) const USER: &str = "USER:";

/// Rows that a file may have: more are no facts but a mistake.
const MOST_ROWS: usize = 100_000;

const COLUMNS: [&str; 8] =
    ["file", "vendor", "product", "category", "altitudes", "load_order_groups", "confidence", "source"];

/// What is wrong with a file of facts; says where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeError {
    /// The file, as its user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl std::fmt::Display for KnowledgeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for KnowledgeError {}

/// Facts of the user's own, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extension {
    drivers: Vec<DriverFact>,
    processes: Vec<ProcessFact>,
}

static EXTENSION: OnceLock<Extension> = OnceLock::new();

/// Puts facts in front of those that ship, for the rest of the program's life. False if that was done already.
pub fn extend(extension: Extension) -> bool {
    EXTENSION.set(extension).is_ok()
}

/// The driver of this file name, in any case, with or without a path. What the user says comes first.
pub fn driver(name: &str) -> Option<&'static DriverFact> {
    let name = file_name(name);
    EXTENSION.get().and_then(|own| own.driver(name)).or_else(|| drivers::built_in(name))
}

/// The program of this image name, in any case, with or without a path. What the user says comes first.
pub fn process(name: &str) -> Option<&'static ProcessFact> {
    let name = file_name(name);
    EXTENSION.get().and_then(|own| own.process(name)).or_else(|| processes::built_in(name))
}

/// As much of a cell as a message shows: a file that is no table is one cell, as a rule.
pub(crate) fn cut(cell: &str) -> Cow<'_, str> {
    const MOST: usize = 100;
    match cell.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", cell.split_at(end).0)),
        None => Cow::Borrowed(cell),
    }
}

impl Extension {
    /// Adds the facts of a file; of several facts about one image the last counts.
    ///
    /// # Errors
    /// The first line that cannot be used.
    pub fn read(&mut self, text: &str, file: &str) -> Result<(), KnowledgeError> {
        let mut lines = text.trim_start_matches('\u{feff}').lines().zip(1..).filter(|(line, _)| {
            let line = line.trim();
            !line.is_empty() && line != "#" && !line.starts_with("# ")
        });
        let fail = |line, message: String| KnowledgeError { file: file.to_owned(), line, message };
        let Some((head, at)) = lines.next() else { return Ok(()) };
        let head = head.strip_prefix('#').unwrap_or(head);
        let separator = ['\t', ';', ','].into_iter().find(|s| head.contains(*s)).unwrap_or(',');
        let names = cells(head, separator).map_err(|e| fail(at, e))?;
        let names: Vec<String> = names.iter().map(|n| n.to_ascii_lowercase()).collect();
        if let Some(unknown) = names.iter().find(|n| !COLUMNS.contains(&n.as_str())) {
            let known = COLUMNS.join(", ");
            return Err(fail(
                at,
                format!("there is no column {:?}; the first line names columns: {known}", cut(unknown)),
            ));
        }
        if !names.iter().any(|n| n == "file") {
            return Err(fail(at, "the first line names no column \"file\"".to_owned()));
        }
        for (line, at) in lines {
            let cells = cells(line, separator).map_err(|e| fail(at, e))?;
            if cells.len() > names.len() {
                let (found, wanted) = (cells.len(), names.len());
                return Err(fail(
                    at,
                    format!("{found} cells, but {wanted} columns; put quotes around a cell with separators"),
                ));
            }
            let get = |name: &str| {
                let cell = names.iter().position(|n| n == name).and_then(|at| cells.get(at));
                cell.map_or("", String::as_str)
            };
            self.add(&get, file, at).map_err(|e| fail(at, e))?;
            if self.drivers.len() + self.processes.len() > MOST_ROWS {
                return Err(fail(at, format!("more than {MOST_ROWS} rows")));
            }
        }
        Ok(())
    }

    fn add<'c>(&mut self, get: &dyn Fn(&str) -> &'c str, file: &str, line: usize) -> Result<(), String> {
        let name = get("file").to_lowercase();
        if name.is_empty() || name.contains(['\\', '/']) {
            return Err(format!(
                "file = {:?}: write a file name without folders, such as mydriver.sys",
                cut(get("file"))
            ));
        }
        let confidence = match get("confidence").to_ascii_lowercase().as_str() {
            "" | "high" => Confidence::High,
            "medium" => Confidence::Medium,
            "low" => Confidence::Low,
            other => return Err(format!("confidence = {:?}: allowed are high, medium and low", cut(other))),
        };
        if let Some(wrong) = get("altitudes")
            .split(';')
            .map(str::trim)
            .find(|a| !a.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
        {
            let wrong = cut(wrong);
            return Err(format!("altitudes = {wrong:?}: an altitude is a number; separate several with ;"));
        }
        let source =
            if get("source").is_empty() { format!("{file}:{line}") } else { get("source").to_owned() };
        // Facts live as long as the program, as those that ship do.
        let keep = |text: &str| -> &'static str { if text.is_empty() { "" } else { Box::leak(text.into()) } };
        let or = |column: &str, known: &'static str| match get(column) {
            "" => known,
            text => keep(text),
        };
        let sources = keep(&format!("{USER}{source}"));
        let category = |known: &'static str| match or("category", known) {
            "" => {
                Err(format!("{} is not known: it needs a category (antivirus, EDR, backup, …)", cut(&name)))
            }
            category => Ok(category),
        };
        if name.ends_with(".sys") || name.ends_with(".dll") {
            let known = drivers::built_in(&name);
            let altitudes = or("altitudes", known.map_or("", |k| k.altitudes));
            let fact = DriverFact {
                file: keep(&name),
                vendor: or("vendor", known.map_or("", |k| k.vendor)),
                product: or("product", known.map_or("", |k| k.product)),
                category: category(known.map_or("", |k| k.category))?,
                category_basis: "user",
                kind: match known {
                    Some(known) => known.kind,
                    None if !altitudes.is_empty() => DriverKind::Minifilter,
                    None if name.ends_with(".dll") => DriverKind::UserModeDll,
                    None => DriverKind::Driver,
                },
                altitudes,
                load_order_groups: or("load_order_groups", known.map_or("", |k| k.load_order_groups)),
                confidence,
                sources,
            };
            insert(&mut self.drivers, fact, |d| d.file);
        } else {
            let known = processes::built_in(&name);
            let fact = ProcessFact {
                process: keep(&name),
                vendor: or("vendor", known.map_or("", |k| k.vendor)),
                product: or("product", known.map_or("", |k| k.product)),
                category: category(known.map_or("", |k| k.category))?,
                confidence,
                ambiguous: false,
                sources,
            };
            insert(&mut self.processes, fact, |p| p.process);
        }
        Ok(())
    }

    /// The user's fact about a driver or library.
    fn driver(&self, name: &str) -> Option<&DriverFact> {
        let at = self.drivers.binary_search_by(|d| compare(d.file, name)).ok()?;
        self.drivers.get(at)
    }

    /// The user's fact about a program.
    fn process(&self, name: &str) -> Option<&ProcessFact> {
        let at = self.processes.binary_search_by(|p| compare(p.process, name)).ok()?;
        self.processes.get(at)
    }

    /// Number of facts.
    pub fn len(&self) -> usize {
        self.drivers.len() + self.processes.len()
    }

    /// True if there are no facts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Names of the user may have letters beyond ASCII.
fn compare(key: &str, name: &str) -> std::cmp::Ordering {
    if name.is_ascii() { compare_lower(key, name) } else { key.cmp(name.to_lowercase().as_str()) }
}

fn insert<T>(list: &mut Vec<T>, fact: T, key: impl Fn(&T) -> &'static str) {
    match list.binary_search_by(|other| key(other).cmp(key(&fact))) {
        Ok(at) => {
            if let Some(old) = list.get_mut(at) {
                *old = fact;
            }
        }
        Err(at) => list.insert(at, fact),
    }
}

/// The cells of a line. A cell in quotes may hold separators, and a quote when it is doubled.
fn cells(line: &str, separator: char) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut rest = line.chars().peekable();
    loop {
        let mut cell = String::new();
        while rest.next_if(|c| c.is_whitespace() && *c != separator).is_some() {}
        if rest.next_if_eq(&'"').is_some() {
            loop {
                match rest.next() {
                    Some('"') if rest.next_if_eq(&'"').is_some() => cell.push('"'),
                    Some('"') => break,
                    Some(c) => cell.push(c),
                    None => return Err("a quote is not closed".to_owned()),
                }
            }
            while rest.next_if(|c| c.is_whitespace() && *c != separator).is_some() {}
            if rest.peek().is_some_and(|c| *c != separator) {
                return Err(
                    "there is text behind a closed quote; write a quote inside a cell twice".to_owned()
                );
            }
        } else {
            while let Some(c) = rest.next_if(|c| *c != separator) {
                cell.push(c);
            }
        }
        found.push(cell.trim().to_owned());
        if rest.next().is_none() {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Extension, String> {
        let mut extension = Extension::default();
        extension.read(text, "my.csv").map(|()| extension).map_err(|e| e.to_string())
    }

    #[test]
    fn the_users_rows_win_and_leave_the_rest() {
        let text = "\u{feff}File,Category,Product,Altitudes\n# a remark\n\nTEDRDRV.sys,backup,\"My \"\"own\"\", thing\"\n\
                    mine.sys,EDR,,370000;370001.5\nüber.exe,build-tool\n";
        let extension = read(text).unwrap();
        assert_eq!(extension.len(), 3);
        let cortex = extension.driver("tedrdrv.SYS").unwrap();
        assert_eq!((cortex.category, cortex.vendor), ("backup", "Palo Alto Networks"));
        assert_eq!((cortex.product, cortex.category_basis), ("My \"own\", thing", "user"));
        assert_eq!(cortex.altitudes().collect::<Vec<_>>(), ["380430"]);
        assert_eq!(cortex.sources, "USER:my.csv:4");
        let mine = extension.driver("mine.sys").unwrap();
        assert_eq!((mine.kind, mine.altitudes().count()), (DriverKind::Minifilter, 2));
        assert_eq!(extension.process("Über.exe").unwrap().category, "build-tool");
        assert_eq!(extension.driver("other.sys"), None);
    }

    #[test]
    fn tabs_and_semicolons_separate_too() {
        assert_eq!(read("#file\tcategory\nx.sys\tEDR\n").unwrap().driver("x.sys").unwrap().category, "EDR");
        assert_eq!(
            read("file;vendor;category\nx.exe;Me;EDR\n").unwrap().process("x.exe").unwrap().vendor,
            "Me"
        );
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, message) in [
            ("file,colour\nx.sys,red\n", "my.csv:1: there is no column \"colour\""),
            ("vendor\nMe\n", "my.csv:1: the first line names no column"),
            ("file,category\n# x\nx.sys,EDR,more\n", "my.csv:3: 3 cells, but 2 columns"),
            ("file,category\nx.sys,\n", "my.csv:2: x.sys is not known: it needs a category"),
            ("file,category\nC:\\x.sys,EDR\n", "my.csv:2: file = "),
            ("file,category\n\"x.sys,EDR\n", "my.csv:2: a quote is not closed"),
            ("file,category\n\"x\".sys,EDR\n", "my.csv:2: there is text behind"),
            ("file,category,confidence\nx.sys,EDR,sure\n", "my.csv:2: confidence = \"sure\""),
            ("file,category,altitudes\nx.sys,EDR,high\n", "my.csv:2: altitudes = \"high\""),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        let long = "x".repeat(1 << 20);
        for text in [
            format!("{long}\n"),
            format!("file,category\n{long},\n"),
            format!("file,category\n/{long},\n"),
            format!("file,category,confidence\nx.sys,EDR,{long}\n"),
            format!("file,category,altitudes\nx.sys,EDR,{long}\n"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.chars().count() < 400 && error.contains("xxx…"), "{} bytes", error.len());
        }
    }
}
