//! What to do about a finding, fit for who is found and for the Windows of the trace.
//!
//! A finding's advice is a text, or steps of which those are shown that fit: `for` names whose the culprit has to be, and a step that names a
//! command, a setting or an interface that the trace's Windows does not have (`etwhy_knowledge::commands`) is left out.

use crate::instance::Instance;
use crate::text::fill;
use etwhy_analysis::derived::{machine::MachineRow, module::ModuleRow};
use etwhy_knowledge::{Owner, commands_in, owner_of_module, owner_of_program, windows_of_build};
use etwhy_sql::Cell;
use etwhy_table::Database;
use serde::{Deserialize, Serialize};

/// Whose a culprit is, as far as advice goes.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A part of Windows: a process, a driver, a library. Never to be stopped or removed.
    Windows,
    /// A `svchost.exe`: services of Windows, asked by others.
    Service,
    /// A driver or filter of somebody else.
    Driver,
    /// Somebody else's program or library.
    Product,
    /// A program or library whose maker nobody knows: perhaps the user's own.
    Program,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 5] =
        [Class::Windows, Class::Service, Class::Driver, Class::Product, Class::Program];

    /// In words that fit behind "if the culprit is".
    pub const fn meaning(self) -> &'static str {
        match self {
            Class::Windows => "part of Windows",
            Class::Service => "a svchost.exe",
            Class::Driver => "somebody's driver",
            Class::Product => "somebody's product",
            Class::Program => "a program whose maker is not known",
        }
    }

    /// The class of a culprit by its name and the company of its version resource; nothing for what is no program, driver or library.
    pub fn for_culprit(name: &str, kind: &str, company: &str) -> Option<Class> {
        // "svchost.exe (EventLog)", "a.dll!Function"
        let name = name.split(" (").next().unwrap_or(name);
        let name = name.split('!').next().unwrap_or(name).trim();
        let lower = name.to_ascii_lowercase();
        let driver = kind == "driver" || lower.ends_with(".sys");
        let library = kind == "module" || lower.ends_with(".dll");
        let program = matches!(kind, "process" | "program" | "service") || lower.ends_with(".exe");
        if name.is_empty() || !(driver || library || program) {
            return None;
        }
        if lower == "svchost.exe" {
            return Some(Class::Service);
        }
        let owner =
            if driver || library { owner_of_module(name, company) } else { owner_of_program(name, company) };
        Some(match owner {
            Owner::Windows => Class::Windows,
            _ if driver => Class::Driver,
            // The name of a service says nothing about its maker.
            Owner::Unknown if kind == "service" && !lower.ends_with(".exe") => return None,
            Owner::Maker => Class::Product,
            Owner::Unknown => Class::Program,
        })
    }
}

/// A part of the advice.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What to do.
    pub text: String,
    /// Whose the culprit has to be; empty: it does not matter.
    #[serde(default, rename = "for", skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// The column that names who is meant by `for`; the culprit if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

/// What to do.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Advice {
    /// The same for everybody.
    Text(String),
    /// In this order, those that fit.
    Steps(Vec<Step>),
}

impl Advice {
    /// All steps.
    pub fn steps(&self) -> Vec<Step> {
        match self {
            Advice::Text(text) => vec![Step { text: text.clone(), classes: Vec::new(), of: None }],
            Advice::Steps(steps) => steps.clone(),
        }
    }

    /// The text of each step, whomever it is for.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Advice::Text(text) => vec![text],
            Advice::Steps(steps) => steps.iter().map(|step| step.text.as_str()).collect(),
        }
    }

    /// All texts, one after the other, whomever they are for.
    pub fn all(&self) -> String {
        self.texts().into_iter().map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// The advice for a row. `chosen` is the text that the query chose itself, if it did: it stands for the steps that are for everybody.
    /// `class` says whose the thing in a column is, `build` is the Windows build of the trace.
    pub fn render(
        &self,
        chosen: Option<&str>,
        value: &dyn Fn(&str) -> Option<Cell>,
        class: &dyn Fn(&str) -> Option<Class>,
        build: Option<i32>,
    ) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut steps = self.steps();
        if let Some(text) = chosen {
            steps.retain(|step| !step.classes.is_empty());
            steps.insert(0, Step { text: text.to_owned(), classes: Vec::new(), of: None });
        }
        for step in steps {
            let fits = || class(step.of.as_deref().unwrap_or("culprit"));
            if step.classes.is_empty() || fits().is_some_and(|class| step.classes.contains(&class)) {
                parts.extend(available(&fill(step.text.trim(), value), build));
            }
        }
        parts.join(" ")
    }
}

/// The text, if the Windows has all that it names. Where nobody knows the Windows, it says what needs which.
fn available(text: &str, build: Option<i32>) -> Option<String> {
    let newer = commands_in(text).filter(|c| c.since_build > etwhy_knowledge::FIRST_BUILD);
    match build {
        Some(build) => {
            let mut newer = newer;
            newer.all(|c| c.since_build <= build).then(|| text.to_owned())
        }
        None => {
            let notes: Vec<String> =
                newer.map(|c| format!("`{}` needs {}", c.name, windows_of_build(c.since_build))).collect();
            let note = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
            Some(format!("{text}{note}"))
        }
    }
}

/// What the tables say of the machine and of programs.
pub(super) struct Surroundings<'a> {
    db: &'a Database,
    /// Build of the trace's Windows.
    pub build: Option<i32>,
}

impl<'a> Surroundings<'a> {
    pub fn read(db: &'a Database) -> Surroundings<'a> {
        let build = db.read_or_empty::<MachineRow>().first().map(|machine| machine.os_build());
        Surroundings { db, build: build.and_then(|b| i32::try_from(b).ok()).filter(|b| *b > 0) }
    }

    /// Which process a number means.
    pub fn instance(&self, upid: i64) -> Option<Instance> {
        Instance::find(self.db, upid)
    }

    /// The class of a culprit, with the company that the trace's images tell.
    pub fn class(&self, name: &str, kind: &str) -> Option<Class> {
        let image = name.split(" (").next().unwrap_or(name);
        let modules = self.db.read_or_empty::<ModuleRow>();
        let mut named = modules.iter().filter(|row| row.name().eq_ignore_ascii_case(image));
        let company = named.find_map(|row| row.company());
        Class::for_culprit(name, kind, company.unwrap_or(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        for (name, kind, class) in [
            ("svchost.exe (EventLog)", "process", Some(Class::Service)),
            ("System", "process", Some(Class::Windows)),
            ("ntoskrnl.exe", "driver", Some(Class::Windows)),
            ("WdFilter.sys", "driver", Some(Class::Windows)),
            ("edr.sys", "driver", Some(Class::Driver)),
            ("mine.exe", "process", Some(Class::Program)),
            ("acronis_mms.exe", "process", Some(Class::Product)),
            ("Windows Update", "service", None),
            ("disk 0", "disk", None),
        ] {
            assert_eq!(Class::for_culprit(name, kind, ""), class, "{name}");
        }
    }

    #[test]
    fn steps_that_fit() {
        let advice: Advice = toml::from_str::<toml::Table>(
            "[[fix]]\ntext = \"Look.\"\n[[fix]]\nfor = [\"product\"]\ntext = \"Stop {culprit}.\"\n[[fix]]\ntext = \"`Set-NetAdapterRss`.\"",
        )
        .unwrap()["fix"]
            .clone()
            .try_into()
            .unwrap();
        let value = |name: &str| (name == "culprit").then(|| Cell::Text("a.exe".to_owned()));
        let said = |class, build| advice.render(None, &value, &|_| Some(class), build);
        assert_eq!(said(Class::Product, Some(7601)), "Look. Stop a.exe.");
        assert_eq!(said(Class::Windows, Some(9200)), "Look. `Set-NetAdapterRss`.");
        assert_eq!(
            said(Class::Windows, None),
            "Look. `Set-NetAdapterRss`. (`Set-NetAdapterRss` needs Windows 8 and Server 2012)"
        );
        let chosen = advice.render(Some("Chosen."), &value, &|_| Some(Class::Product), Some(7601));
        assert_eq!(chosen, "Chosen. Stop a.exe.");
    }
}
