//! Forms with columns: reports, backups, Group Policy's `audit.csv`.

use super::fields::{guid_in, split};
use super::{cut, lines, unknown};
use crate::names;
use crate::policy::{Entry, Form, Policy, Subject};
use crate::setting::{PerUser, Setting};
use etwhy_knowledge::audit_subcategory;

/// How Windows' languages write the target `System`, as far as seen.
const SYSTEM: [&str; 5] = ["system", "système", "sistema", "система", "システム"];

pub fn read(text: &str, separator: char, policy: &mut Policy) {
    let mut headed = false;
    let (mut machines, mut backup) = (0usize, false);
    for (number, line) in lines(text, policy) {
        if line.trim_matches(|c: char| c.is_whitespace() || c == '\0').is_empty() {
            continue;
        }
        let fields = split(line, separator);
        match entry(number, &fields, policy) {
            Ok(entry) => {
                machines += usize::from(machine(&fields, policy));
                backup |= entry.account.is_some()
                    || matches!(entry.subject, Subject::Option(_) | Subject::GlobalSacl(_));
                policy.entries.push(entry);
                headed = true;
            }
            // `Export-Csv` of PowerShell puts a line of its own above the header.
            Err(_) if !headed && line.trim_start().starts_with("#TYPE") => {}
            Err(_) if !headed && fields.len() >= 5 => headed = true,
            Err(reason) => unknown(policy, number, line, reason),
        }
    }
    // The console of Group Policy names no machine; options and accounts stand in its file too (MS-GPAC 2.2).
    policy.form = match (machines, backup) {
        (0, _) if !policy.entries.is_empty() => Form::Gpo,
        (_, true) => Form::Backup,
        _ => Form::Report,
    };
}

/// Takes the machine's name from a line; true if it names one.
fn machine(fields: &[String], policy: &mut Policy) -> bool {
    let Some(name) = fields.first().filter(|name| !name.is_empty() && guid_in(name).is_none()) else {
        return false;
    };
    if policy.machine.is_none() {
        policy.machine = Some(cut(name));
    }
    true
}

fn entry(line: u64, fields: &[String], policy: &mut Policy) -> Result<Entry, &'static str> {
    let at_guid = fields.iter().position(|field| guid_in(field).is_some());
    let field = |at: usize| fields.get(at).map_or("", String::as_str);
    if let Some(at) = at_guid {
        let guid = guid_in(field(at)).unwrap_or_default();
        let before = |n: usize| at.checked_sub(n).map_or("", field);
        let subject = audit_subcategory(&guid).map_or(Subject::Guid(guid), Subject::Subcategory);
        if fields.len() <= at + 1 {
            return Err("a subcategory without a setting");
        }
        return Ok(fill(
            line,
            subject,
            [before(2), before(1), field(at + 1), field(at + 2), field(at + 3)],
            policy,
        ));
    }
    // Without a GUID: options, SACLs for all objects, and what scripts write.
    for (at, name) in fields.iter().enumerate() {
        let rest = [at.checked_sub(1).map_or("", field), name, field(at + 2), field(at + 3), field(at + 4)];
        let option = name.get(..7).filter(|head| head.eq_ignore_ascii_case("option:")).and(name.get(7..));
        if let Some(option) = option.filter(|option| !option.trim().is_empty()) {
            return Ok(fill(line, Subject::Option(cut(option)), rest, policy));
        }
        if name.to_ascii_lowercase().ends_with("globalsacl") {
            return Ok(fill(line, Subject::GlobalSacl(cut(name)), rest, policy));
        }
        if let Some(subcategory) = names::subcategory(name) {
            let words =
                fields.get(at + 1..).unwrap_or(&[]).iter().find(|field| names::setting(field).is_some());
            let value = fields.last().map_or("", String::as_str);
            if let Some(words) = words {
                let parts = ["", name.as_str(), words.as_str(), "", value];
                return Ok(fill(line, Subject::Subcategory(subcategory), parts, policy));
            }
        }
    }
    Err("neither a subcategory's GUID nor an option")
}

/// Puts an entry together from target, name, inclusion, exclusion and value.
fn fill(line: u64, subject: Subject, parts: [&str; 5], policy: &mut Policy) -> Entry {
    let [target, name, inclusion, exclusion, value] = parts;
    let account = account(target, exclusion);
    // Some write the number where words belong.
    let value = number(value).or_else(|| number(inclusion));
    let words = names::setting(inclusion);
    let is_switch = matches!(subject, Subject::Subcategory(_) | Subject::Guid(_));
    let setting = match (is_switch, value) {
        (false, _) => Setting::Unknown,
        (true, Some(_)) if account.is_some() => words.unwrap_or(Setting::Unknown),
        (true, Some(value)) => Setting::of_value(value, words),
        (true, None) => words.unwrap_or(Setting::Unknown),
    };
    let differ = account.is_none() && value.is_some() && words.is_some_and(|words| words != setting);
    policy.disagreeing += u64::from(is_switch && differ);
    let per_user = value.filter(|_| is_switch && account.is_some()).and_then(PerUser::of_value);
    Entry {
        line,
        account,
        subject,
        name: cut(name),
        inclusion: cut(inclusion),
        exclusion: cut(exclusion),
        value,
        setting,
        per_user,
        inferred: false,
    }
}

fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    (!text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// The account that a line is for. A name without a domain is one only if something is kept from its audit: the system's target is
/// localised, and not all languages are known.
fn account(target: &str, exclusion: &str) -> Option<String> {
    let folded = names::fold(target);
    if folded.is_empty() || SYSTEM.contains(&folded.as_str()) {
        return None;
    }
    // Control characters of a damaged file say nothing.
    let says = |text: &str| text.chars().any(|c| !c.is_whitespace() && !c.is_control());
    let is_account = folded.starts_with("s-1-") || target.contains(['\\', '@']) || says(exclusion);
    is_account.then(|| cut(target))
}
