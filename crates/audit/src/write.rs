//! Writing a policy that `auditpol /restore` reads, and Group Policy's `audit.csv`: the seven columns of MS-GPAC 2.2.

use crate::advise::{Proposal, Tier};
use crate::policy::{Policy, Subject};
use crate::setting::Setting;

/// The header that an English Windows writes.
const HEADER: &str = "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value";

/// A policy with the safe proposals applied, and the number of lines that changed. Lines of options and accounts stay as they are;
/// what was not understood, or says nothing, is left out.
pub fn proposed(policy: &Policy, proposals: &[Proposal]) -> (String, usize) {
    let mut text = String::from(HEADER);
    text.push_str("\r\n");
    let mut changed = 0;
    let machine = policy.machine.as_deref().unwrap_or("");
    for entry in &policy.entries {
        let (name, guid) = match &entry.subject {
            Subject::Subcategory(s) => (s.name.to_owned(), format!("{{{}}}", s.guid)),
            Subject::Guid(guid) => (entry.name.clone(), format!("{{{guid}}}")),
            Subject::Option(name) => (format!("Option:{name}"), String::new()),
            Subject::GlobalSacl(name) => (name.clone(), String::new()),
        };
        let is_option = matches!(entry.subject, Subject::Option(_) | Subject::GlobalSacl(_));
        let kept = entry.value.map(|value| value.to_string()).unwrap_or_default();
        let fields = match (&entry.account, is_option) {
            (_, true) => [
                machine.to_owned(),
                String::new(),
                name,
                guid,
                entry.inclusion.clone(),
                entry.exclusion.clone(),
                kept,
            ],
            (Some(account), _) => [
                machine.to_owned(),
                account.clone(),
                name,
                guid,
                entry.inclusion.clone(),
                entry.exclusion.clone(),
                kept,
            ],
            (None, _) => {
                let after = match &entry.subject {
                    Subject::Subcategory(s) => after(entry.setting, s.guid, proposals),
                    _ => entry.setting,
                };
                let Some(value) = after.value() else { continue };
                changed += usize::from(after != entry.setting);
                let words = after.text().to_owned();
                [machine.to_owned(), "System".to_owned(), name, guid, words, String::new(), value.to_string()]
            }
        };
        text.push_str(&fields.map(|field| quote(&field)).join(","));
        text.push_str("\r\n");
    }
    (text, changed)
}

/// A setting without the outcomes that are safe to switch off.
fn after(setting: Setting, guid: &str, proposals: &[Proposal]) -> Setting {
    let off = |success: bool| {
        let is = |p: &&Proposal| p.tier == Tier::Safe && p.success == success && p.subcategory.guid == guid;
        proposals.iter().any(|p| is(&p))
    };
    match (setting.success(), setting.failure()) {
        (Some(success), Some(failure)) => Setting::of(success && !off(true), failure && !off(false)),
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
        let (text, _) = proposed(&policy, &[]);
        assert_eq!(parse(text.as_bytes()).settings(), policy.settings());
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
        let (text, changed) = proposed(&policy, &proposals);
        assert_eq!(changed, 1);
        let again = parse(text.as_bytes());
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
