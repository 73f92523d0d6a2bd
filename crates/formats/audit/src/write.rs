//! Writing a policy that `auditpol /restore` reads, and Group Policy's `audit.csv`: the seven columns of MS-GPAC 2.2.

use crate::advise::{Proposal, Tier};
use crate::policy::{Entry, Policy, Subject, Unknown};
use crate::setting::Setting;

/// The header that an English Windows writes.
const HEADER: &str = "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value";

/// A policy with the safe proposals applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The file.
    pub text: String,
    /// What becomes of each line that it was made from.
    pub rows: Vec<Change>,
}

impl Proposed {
    /// Lines whose setting changes.
    pub fn changed(&self) -> usize {
        self.rows.iter().filter(|row| row.changes()).count()
    }
}

/// What becomes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Line in the file that was read, from 1.
    pub line: u64,
    /// The account that it is for; `None` is the system.
    pub account: Option<String>,
    /// The subcategory, option or SACL.
    pub name: String,
    /// GUID of the subcategory in upper case; empty for others.
    pub guid: String,
    /// The setting that was read.
    pub before: String,
    /// The setting that is written; `None` where the line says nothing and is left out.
    pub after: Option<String>,
}

impl Change {
    /// True if another setting is written than was read.
    pub fn changes(&self) -> bool {
        self.after.as_ref().is_some_and(|after| *after != self.before)
    }
}

/// A policy that cannot be restored because it is not certain what its lines mean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} lines are not certain", lines.len())]
pub struct Uncertain {
    /// The lines.
    pub lines: Vec<Unknown>,
    /// Lines that were not read, or not understood beyond those of [`lines`](Uncertain::lines).
    pub others: u64,
}

/// A policy with the safe proposals applied, from a file each line of which was understood: who restores it gets nothing that was
/// guessed. Lines of options and accounts stay as they are; those that leave a subcategory as it is are left out.
///
/// # Errors
/// If a line was not understood, or is ambiguous, or was not read.
pub fn proposed(policy: &Policy, proposals: &[Proposal]) -> Result<Proposed, Uncertain> {
    let mut lines = policy.uncertain();
    let twice = policy.repeated.iter().filter_map(|name| {
        let of = |e: &&Entry| matches!(e.subject, Subject::Subcategory(s) if s.name == *name);
        let entry = policy.entries.iter().rev().find(of)?;
        let reason = "named before with another setting";
        Some(Unknown { line: entry.line, text: (*name).to_owned(), reason })
    });
    lines.extend(twice);
    let kept = policy.unknown.len() as u64;
    let unread = policy.left_out + policy.left_out_bytes as u64;
    let others = policy.unknown_count.saturating_sub(kept).saturating_add(unread);
    if !lines.is_empty() || others > 0 {
        return Err(Uncertain { lines, others });
    }
    let mut proposed = Proposed { text: format!("{HEADER}\r\n"), rows: Vec::new() };
    let machine = policy.machine.as_deref().unwrap_or("");
    for entry in &policy.entries {
        let (row, fields) = line(entry, machine, proposals);
        if row.after.is_some() {
            proposed.text.push_str(&fields.map(|field| quote(&field)).join(","));
            proposed.text.push_str("\r\n");
        }
        proposed.rows.push(row);
    }
    Ok(proposed)
}

/// What becomes of a line, and its columns.
fn line(entry: &Entry, machine: &str, proposals: &[Proposal]) -> (Change, [String; 7]) {
    let (name, guid) = match &entry.subject {
        Subject::Subcategory(s) => (s.name.to_owned(), s.guid.to_owned()),
        Subject::Guid(guid) => (entry.name.clone(), guid.clone()),
        Subject::Option(name) => (format!("Option:{name}"), String::new()),
        Subject::GlobalSacl(name) => (name.clone(), String::new()),
    };
    let in_braces = if guid.is_empty() { String::new() } else { format!("{{{guid}}}") };
    let as_it_was = entry.account.is_some() || !entry.is_switch();
    let mut row = Change {
        line: entry.line,
        account: entry.account.clone(),
        name: name.clone(),
        guid,
        before: entry.inclusion.clone(),
        after: Some(entry.inclusion.clone()),
    };
    let (target, inclusion, exclusion, value) = if as_it_was {
        let value = entry.value.map(|value| value.to_string()).unwrap_or_default();
        let account = entry.account.clone().unwrap_or_default();
        (account, entry.inclusion.clone(), entry.exclusion.clone(), value)
    } else {
        let after = after(entry.setting, &row.guid, proposals);
        row.before = entry.setting.text().to_owned();
        row.after = after.value().map(|_| after.text().to_owned());
        let value = after.value().map(|value| value.to_string()).unwrap_or_default();
        ("System".to_owned(), after.text().to_owned(), String::new(), value)
    };
    (row, [machine.to_owned(), target, name, in_braces, inclusion, exclusion, value])
}

/// A setting without the outcomes that are safe to switch off.
fn after(setting: Setting, guid: &str, proposals: &[Proposal]) -> Setting {
    let off = |success: bool| {
        let is = |p: &&Proposal| p.tier == Tier::Safe && p.success == success && p.subcategory.guid == guid;
        proposals.iter().any(|p| is(&p))
    };
    match (setting.success(), setting.failure()) {
        (Some(success), Some(failure)) => Setting::new(success && !off(true), failure && !off(false)),
        _ => setting,
    }
}

fn quote(field: &str) -> String {
    // A file of one line per subcategory must stay one.
    let field: String = field.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use etwhy_knowledge::audit_subcategory;

    /// The smallest input of a campaign: a damaged second line for a subcategory was dropped when it was written, and the first
    /// counted again.
    #[test]
    fn a_damaged_line_hides_no_good_one() {
        let policy = parse(
            b"Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\r\n\
              W1,System,Logon,{0cce9215-69ae-11d9-bed3-505054503030},Success and Failure,,3\r\n\
              W1,System,Logon,{0cce9215-69ae-11d9-bed3-505054503030},Success,,77\r\n",
        );
        assert_eq!(policy.settings().values().collect::<Vec<_>>(), [&Setting::Both]);
        // Which of them is meant cannot be known, so nothing is written that could be restored.
        let refused = proposed(&policy, &[]).unwrap_err();
        assert_eq!((refused.lines[0].line, refused.lines[0].reason), (3, "unknown setting"));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let policy = parse(
            b"Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\r\n\
              \"W,1\",System,Logon,{0cce9215-69ae-11d9-bed3-505054503030},Success and Failure,,3\r\n\
              \"W,1\",System,WFP,{0cce9226-69ae-11d9-bed3-505054503030},Success and Failure,,3\r\n\
              \"W,1\",System,Strange,{0cce92ff-69ae-11d9-bed3-505054503030},Success,,1\r\n\
              \"W,1\",S-1-5-21-1-2-3-1001,Logon,{0cce9215-69ae-11d9-bed3-505054503030},Success,Failure,9\r\n\
              \"W,1\",,Option:CrashOnAuditFail,,Disabled,,0\r\n",
        );
        let off = |guid: &str, tier| Proposal {
            subcategory: audit_subcategory(guid).unwrap(),
            success: true,
            tier,
            bytes: 1,
            records: 1,
            of_gpo: false,
            reasons: Vec::new(),
        };
        let proposals = [
            off("0CCE9226-69AE-11D9-BED3-505054503030", Tier::Safe),
            off("0CCE9215-69AE-11D9-BED3-505054503030", Tier::Decide),
        ];
        let written = proposed(&policy, &proposals).unwrap();
        assert_eq!((written.changed(), written.rows.len()), (1, 5));
        let changed = written.rows.iter().find(|row| row.changes()).unwrap();
        assert_eq!(
            (changed.line, changed.before.as_str(), changed.after.as_deref()),
            (3, "Success and Failure", Some("Failure"))
        );
        let again = parse(written.text.as_bytes());
        assert_eq!(
            (again.entries.len(), again.machine.as_deref(), again.form),
            (5, Some("W,1"), policy.form)
        );
        let before = policy.settings();
        for (guid, setting) in again.settings() {
            let expected = if guid.starts_with("0CCE9226") { Setting::Failure } else { before[guid] };
            assert_eq!(setting, expected, "{guid}");
        }
        assert_eq!(again.entries[2].setting, Setting::Success);
        assert_eq!(again.entries[3].per_user, policy.entries[3].per_user);
        assert_eq!(again.option("CrashOnAuditFail").and_then(|e| e.value), Some(0));
    }
}
