//! Reading policy files.
//!
//! The forms, and where they are described:
//!
//! * `audit.csv` of a Group Policy object: MS-GPAC 2.2 and 2.2.1 (UTF-8, seven columns, `System` or a SID as target, numbers). The
//!   German console writes header and words in German and leaves the machine's name empty (the project SAMADCON, `audit_policy.py`).
//! * `auditpol /get /category:* /r`: lines of `Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion
//!   Setting` behind empty ones; some builds add `Setting Value`. Headers, names and words are localised.
//! * `auditpol /backup`: the seven columns, with options (`Option:CrashOnAuditFail`) and a line per account with a policy.
//! * `auditpol /get /category:*`: `System audit policy`, `Category/Subcategory   Setting`, categories at the margin and
//!   subcategories behind two blanks, settings from column 42 on.
//!
//! Each line is read on its own, so that damage costs no more than the lines that it hits. Nothing is inferred: a word that is in no
//! list is [`Setting::Unknown`], and what makes a line uncertain is its [`Doubt`](crate::policy::Doubt).

mod fields;
mod lines;
mod report;
#[cfg(test)]
mod tests;
mod text;

use crate::encoding::decode;
use crate::names;
use crate::policy::{Entry, Form, Policy, Subject};
use crate::setting::Setting;
use std::collections::{BTreeMap, BTreeSet};

pub use fields::split;

/// Reads a policy. It never fails: what is not understood is counted in the result.
pub fn parse(bytes: &[u8]) -> Policy {
    let decoded = decode(bytes);
    let separator = fields::separator(&decoded.text);
    let mut policy = Policy {
        form: if separator.is_some() { Form::Report } else { Form::Text },
        encoding: decoded.encoding,
        encoding_guessed: decoded.guessed,
        separator,
        language: None,
        machine: None,
        entries: Vec::new(),
        unknown: Vec::new(),
        unknown_count: 0,
        left_out: 0,
        left_out_bytes: decoded.left_out,
        replaced: decoded.replaced,
        unknown_settings: 0,
        repeated: Vec::new(),
    };
    match separator {
        Some(separator) => report::read(&decoded.text, separator, &mut policy),
        None => text::read(&decoded.text, &mut policy),
    }
    policy.unknown_settings =
        policy.entries.iter().filter(|e| e.setting == Setting::Unknown && e.is_switch()).count() as u64;
    policy.language = language(&policy.entries);
    policy.repeated = repeated(&policy.entries);
    policy
}

/// The language that most names and words are of.
fn language(entries: &[Entry]) -> Option<&'static str> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for entry in entries {
        let of_name = names::languages_of_name(&entry.name);
        let of_word = names::languages_of_setting(&entry.inclusion);
        for language in of_name.iter().chain(of_word) {
            *counts.entry(language).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .max_by_key(|(language, count)| (*count, *language == "en"))
        .map(|(language, _)| language)
}

fn repeated(entries: &[Entry]) -> Vec<&'static str> {
    let mut seen: BTreeMap<(&'static str, Option<&str>), Setting> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for entry in entries {
        if let Subject::Subcategory(subcategory) = entry.subject {
            let before = seen.insert((subcategory.guid, entry.account.as_deref()), entry.setting);
            if before.is_some_and(|before| before != entry.setting) {
                found.insert(subcategory.name);
            }
        }
    }
    found.into_iter().collect()
}
