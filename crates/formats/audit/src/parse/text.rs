//! `auditpol /get /category:*` as people read it.

use super::lines::{cut, lines, unknown};
use crate::names;
use crate::policy::{Doubt, Entry, Policy, Subject};
use crate::setting::Setting;

pub fn read(text: &str, policy: &mut Policy) {
    let mut seen = false;
    for (number, line) in lines(text, policy) {
        let trimmed = line.trim_matches(|c: char| c.is_whitespace() || c == '\0' || c == '\u{feff}');
        if trimmed.is_empty() {
            continue;
        }
        if let Some((subcategory, name, rest)) =
            names::leading(trimmed).filter(|(_, _, rest)| !rest.is_empty())
        {
            let setting = names::setting(&rest).unwrap_or(Setting::Unknown);
            let inclusion = columns(trimmed).1.unwrap_or(&rest);
            let entry = Entry {
                line: number,
                account: None,
                subject: Subject::Subcategory(subcategory),
                name: cut(name),
                inclusion: cut(inclusion),
                exclusion: String::new(),
                value: None,
                setting,
                per_user: None,
                doubt: (setting == Setting::Unknown).then_some(Doubt::Word),
            };
            policy.entries.push(entry);
            seen = true;
            continue;
        }
        match columns(trimmed) {
            // Titles, categories and remarks have one column.
            (_, None) => {}
            // `Category/Subcategory   Setting` in whatever language stands above the first subcategory, at the margin.
            (_, Some(_)) if !seen && !line.starts_with([' ', '\t']) => {}
            (_, Some(setting)) if names::setting(setting).is_some() => {
                unknown(
                    policy,
                    number,
                    line,
                    "a subcategory whose name is not known; /r or /backup would name its GUID",
                );
            }
            (_, Some(_)) => {
                unknown(policy, number, line, "neither a subcategory nor a setting that is known")
            }
        }
    }
}

/// Name and setting, which at least two blanks or a tab part.
fn columns(line: &str) -> (&str, Option<&str>) {
    let at = line.find("  ").or_else(|| line.find('\t'));
    match at.and_then(|at| Some((line.get(..at)?, line.get(at..)?.trim()))) {
        Some((name, setting)) if !setting.is_empty() => (name, Some(setting)),
        _ => (line, None),
    }
}
