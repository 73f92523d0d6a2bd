//! Forms with columns: reports, backups, Group Policy's `audit.csv`.

use super::fields::{guid_in, split};
use super::lines::{cut, lines, unknown};
use crate::names;
use crate::policy::{Doubt, Entry, Form, Policy, Subject};
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
        match entry(number, &fields) {
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
    if policy.form.is_in_force() {
        policy.entries.iter_mut().for_each(zero_in_force);
    }
}

/// A machine's own file has no "unchanged", so its 0 is No Auditing in whatever language the words beside it are.
fn zero_in_force(entry: &mut Entry) {
    let is_open = entry.account.is_none() && entry.setting == Setting::Unknown;
    if is_open && entry.is_switch() && entry.value == Some(0) {
        (entry.setting, entry.doubt) = (Setting::None, None);
    }
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

fn entry(line: u64, fields: &[String]) -> Result<Entry, &'static str> {
    let at_guid = fields.iter().position(|field| guid_in(field).is_some());
    let field = |at: usize| fields.get(at).map_or("", String::as_str);
    if let Some(at) = at_guid {
        let guid = guid_in(field(at)).unwrap_or_default();
        let before = |n: usize| at.checked_sub(n).map_or("", field);
        let subject = audit_subcategory(&guid).map_or(Subject::Guid(guid), Subject::Subcategory);
        if fields.len() <= at + 1 {
            return Err("a subcategory without a setting");
        }
        return Ok(fill(line, subject, [before(2), before(1), field(at + 1), field(at + 2), field(at + 3)]));
    }
    // Without a GUID: options, SACLs for all objects, and what scripts write.
    for (at, name) in fields.iter().enumerate() {
        let rest = [at.checked_sub(1).map_or("", field), name, field(at + 2), field(at + 3), field(at + 4)];
        let option = name.get(..7).filter(|head| head.eq_ignore_ascii_case("option:")).and(name.get(7..));
        if let Some(option) = option.filter(|option| !option.trim().is_empty()) {
            return Ok(fill(line, Subject::Option(cut(option)), rest));
        }
        if name.to_ascii_lowercase().ends_with("globalsacl") {
            return Ok(fill(line, Subject::GlobalSacl(cut(name)), rest));
        }
        if let Some(subcategory) = names::subcategory(name) {
            let words =
                fields.get(at + 1..).unwrap_or(&[]).iter().find(|field| names::setting(field).is_some());
            let value = fields.last().map_or("", String::as_str);
            if let Some(words) = words {
                let parts = ["", name.as_str(), words.as_str(), "", value];
                return Ok(fill(line, Subject::Subcategory(subcategory), parts));
            }
        }
    }
    Err("neither a subcategory's GUID nor an option")
}

/// Puts an entry together from target, name, inclusion, exclusion and value.
fn fill(line: u64, subject: Subject, parts: [&str; 5]) -> Entry {
    let [target, name, inclusion, exclusion, value] = parts;
    let account = account(target, exclusion);
    // What is kept from an audit is kept from an account's: in a line of the system it is a word that a separator cut.
    let whole = format!("{inclusion}, {exclusion}");
    let (inclusion, exclusion) =
        if account.is_none() && says(exclusion) { (whole.as_str(), "") } else { (inclusion, exclusion) };
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
    let doubt = match (setting, words, &account) {
        _ if !is_switch => None,
        // A line of an account holds its number as it is.
        (Setting::Unknown, ..) if account.is_none() || value.is_none() => Some(Doubt::Word),
        (_, Some(words), None) if value.is_some() && words != setting => Some(Doubt::Disagree),
        (.., None) if !is_system(target) => Some(Doubt::Target),
        _ => None,
    };
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
        doubt,
    }
}

fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    (!text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// True if a target is known to be the whole system.
fn is_system(target: &str) -> bool {
    let folded = names::fold(target);
    folded.is_empty() || SYSTEM.contains(&folded.as_str())
}

/// Control characters of a damaged file say nothing.
fn says(text: &str) -> bool {
    text.chars().any(|c| !c.is_whitespace() && !c.is_control())
}

/// The account that a line is for. A name without a domain is one only if something is kept from its audit: the system's target is
/// localised, and not all languages are known.
fn account(target: &str, exclusion: &str) -> Option<String> {
    if is_system(target) {
        return None;
    }
    let folded = names::fold(target);
    let is_account = folded.starts_with("s-1-") || target.contains(['\\', '@']) || says(exclusion);
    is_account.then(|| cut(target))
}
