//! A policy file as it was read.

use crate::setting::{PerUser, Setting};
use etwhy_knowledge::AuditSubcategory;
use std::collections::BTreeMap;

/// Which of its forms a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// `auditpol /get /category:* /r`: the policy in force when it ran.
    Report,
    /// `auditpol /backup`: the policy in force, with options and accounts.
    Backup,
    /// `audit.csv` of a Group Policy object: what it will set.
    Gpo,
    /// `auditpol /get /category:*` as people read it.
    Text,
}

impl Form {
    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Report => "report",
            Form::Backup => "backup",
            Form::Gpo => "gpo",
            Form::Text => "text",
        }
    }

    /// What it is, in words.
    pub const fn about(self) -> &'static str {
        match self {
            Form::Report => "auditpol /get /r",
            Form::Backup => "auditpol /backup",
            Form::Gpo => "audit.csv of a Group Policy object",
            Form::Text => "auditpol /get",
        }
    }

    /// True if it says what is in force, false if it says what will be set.
    pub const fn is_in_force(self) -> bool {
        !matches!(self, Form::Gpo)
    }
}

/// What a line of a policy is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A subcategory that is known.
    Subcategory(&'static AuditSubcategory),
    /// A GUID that is not known, in upper case: a later Windows has more subcategories.
    Guid(String),
    /// An option such as `CrashOnAuditFail`.
    Option(String),
    /// SACLs for all files or all keys (`FileGlobalSacl`, `RegistryGlobalSacl`).
    GlobalSacl(String),
}

/// A line of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Line in the file, from 1.
    pub line: u64,
    /// Account it is for; `None` is the whole system.
    pub account: Option<String>,
    /// What it is about.
    pub subject: Subject,
    /// The name that stands in the file.
    pub name: String,
    /// The words for what is audited.
    pub inclusion: String,
    /// The words for what is kept from an account's audit.
    pub exclusion: String,
    /// The number, where the file has one.
    pub value: Option<u32>,
    /// What it means for the system.
    pub setting: Setting,
    /// What it means for the account, where it has a number.
    pub per_user: Option<PerUser>,
    /// Why the line may mean something else than was read, if it may.
    pub doubt: Option<Doubt>,
}

impl Entry {
    /// True for a line about a subcategory, false for options and SACLs.
    pub fn is_switch(&self) -> bool {
        matches!(self.subject, Subject::Subcategory(_) | Subject::Guid(_))
    }
}

/// Why a line may mean something else than was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Its word for the setting is in no list.
    Word,
    /// Its number and its words say different things; the number counts.
    Disagree,
    /// It is neither for `System` in a language that is known nor for an account that is.
    Target,
}

impl Doubt {
    /// What is wrong, as a sentence goes on behind the line's number.
    pub const fn reason(self) -> &'static str {
        match self {
            Doubt::Word => "unknown setting",
            Doubt::Disagree => "number and words disagree",
            Doubt::Target => "neither System nor a known account",
        }
    }
}

/// A line that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Line in the file, from 1.
    pub line: u64,
    /// Its text.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// A policy file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its form.
    pub form: Form,
    /// Name of its encoding.
    pub encoding: &'static str,
    /// The encoding was guessed.
    pub encoding_guessed: bool,
    /// What separates its columns; `None` for text.
    pub separator: Option<char>,
    /// The language of most of its names and words, where they tell.
    pub language: Option<&'static str>,
    /// The machine it is of, where it names one.
    pub machine: Option<String>,
    /// Its lines.
    pub entries: Vec<Entry>,
    /// The first lines that were not understood.
    pub unknown: Vec<Unknown>,
    /// Number of lines that were not understood.
    pub unknown_count: u64,
    /// Lines behind the largest number that is read.
    pub left_out: u64,
    /// Bytes behind the largest size that is read.
    pub left_out_bytes: usize,
    /// Characters that could not be read.
    pub replaced: usize,
    /// Settings that name what no list has.
    pub unknown_settings: u64,
    /// Subcategories that the file names more than once with different settings; the last counts.
    pub repeated: Vec<&'static str>,
}

impl Policy {
    /// The settings of the system by GUID of the subcategory: the last line of each that says something, so that a damaged
    /// line does not hide a good one.
    pub fn settings(&self) -> BTreeMap<&'static str, Setting> {
        let mut settings = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| entry.account.is_none()) {
            if let Subject::Subcategory(subcategory) = entry.subject
                && (entry.setting.value().is_some() || !settings.contains_key(subcategory.guid))
            {
                settings.insert(subcategory.guid, entry.setting);
            }
        }
        settings
    }

    /// True if nothing in the file was understood.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if lines name subcategories, and of none the setting is known.
    pub fn says_nothing(&self) -> bool {
        let mut switches = self.entries.iter().filter(|entry| entry.is_switch()).peekable();
        switches.peek().is_some() && switches.all(|entry| entry.doubt == Some(Doubt::Word))
    }

    /// Lines with this doubt.
    pub fn with_doubt(&self, doubt: Doubt) -> u64 {
        self.entries.iter().filter(|entry| entry.doubt == Some(doubt)).count() as u64
    }

    /// All that keeps the file from being certain, in the order of lines: the first lines that were not understood, and those in doubt.
    pub fn uncertain(&self) -> Vec<Unknown> {
        let doubts = self.entries.iter().filter_map(|entry| {
            let number = entry.value.map_or(String::new(), |value| format!(" ({value})"));
            let text = format!("`{}`{number} for {}", entry.inclusion, entry.name);
            Some(Unknown { line: entry.line, text, reason: entry.doubt?.reason() })
        });
        let mut all: Vec<Unknown> = self.unknown.iter().cloned().chain(doubts).collect();
        all.sort_by_key(|unknown| unknown.line);
        all
    }

    /// The value of an option, in upper and lower case as the file has it.
    pub fn option(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| match &entry.subject {
            Subject::Option(option) => option.eq_ignore_ascii_case(name),
            _ => false,
        })
    }
}
