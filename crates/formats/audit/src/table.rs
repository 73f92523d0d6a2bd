//! `audit_policy`: what policies say, as a table of the contract.

use crate::policy::{Policy, Subject};
use crate::setting::Setting;
use etwhy_table::{Memory, Strings, Table, TableBuilder, TableError, TableSpec, define_table};

define_table! {
    /// One row per line of an audit policy: subcategories, options, accounts.
    ///
    /// From files of `auditpol /get`, `auditpol /backup` and Group Policy (`audit.csv`). `form` says which: what is `gpo` will be set,
    /// the others say what is in force.
    pub table AUDIT_POLICY: AuditPolicyRow = "audit_policy" {
        version: 2,
        /// File as it was named.
        file: etwhy_table::Sym [None, Path],
        /// Its form: report, backup, gpo, text.
        form: etwhy_table::Sym [None, Kind],
        /// Line in the file.
        line: i64 [Count, Other],
        /// Machine that the file names.
        machine: Option<etwhy_table::Sym> [None, Name],
        /// Account that the line is for; null for the system.
        account: Option<etwhy_table::Sym> [None, Name],
        /// What the line is about: subcategory, option, global_sacl, unknown.
        kind: etwhy_table::Sym [None, Kind],
        /// GUID of the subcategory, in upper case.
        guid: Option<etwhy_table::Sym> [None, Name],
        /// Name of the subcategory in English, of the option, or as the file has it.
        name: etwhy_table::Sym [None, Name],
        /// Category in English.
        category: Option<etwhy_table::Sym> [None, Name],
        /// Task of its records in the Security log.
        task: Option<i32> [None, Other],
        /// none, success, failure, both, unspecified, unknown.
        setting: etwhy_table::Sym [None, Kind],
        /// Successes are audited; null where the policy does not say.
        success: Option<bool> [None, Other],
        /// Failures are audited; null where the policy does not say.
        failure: Option<bool> [None, Other],
        /// Words of the file for what is audited.
        inclusion: Option<etwhy_table::Sym> [None, Name],
        /// Words of the file for what is kept from an account's audit.
        exclusion: Option<etwhy_table::Sym> [None, Name],
        /// Number of the file.
        value: Option<i32> [None, Other],
        /// Why the line may mean something else than was read: its word is in no list, number and words disagree, its target is not known.
        doubt: Option<etwhy_table::Sym> [None, Message],
    }
}

/// All tables of this crate.
pub static ALL: &[&TableSpec] = &[&AUDIT_POLICY];

/// The table of several policies, each with the name of its file.
///
/// # Errors
/// Those of the table builder.
pub fn table(policies: &[(String, Policy)], memory: &Memory) -> Result<Table, TableError> {
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<AuditPolicyRow>::new(memory);
    for (file, policy) in policies {
        let (file, form) = (strings.intern(file), strings.intern(policy.form.name()));
        let machine = policy.machine.as_deref().map(|name| strings.intern(name));
        for entry in &policy.entries {
            let (kind, guid, name, subcategory) = match &entry.subject {
                Subject::Subcategory(s) => ("subcategory", Some(s.guid), s.name, Some(*s)),
                Subject::Guid(guid) => ("unknown", Some(guid.as_str()), entry.name.as_str(), None),
                Subject::Option(name) => ("option", None, name.as_str(), None),
                Subject::GlobalSacl(name) => ("global_sacl", None, name.as_str(), None),
            };
            let setting =
                if entry.account.is_some() { entry.per_user.map(|p| p.include) } else { Some(entry.setting) };
            let setting = setting.unwrap_or(entry.setting);
            let mut text = |text: &str| (!text.is_empty()).then(|| strings.intern(text));
            let row = AuditPolicyRow {
                account: entry.account.as_deref().and_then(&mut text),
                guid: guid.and_then(&mut text),
                category: subcategory.and_then(|s| text(s.category)),
                inclusion: text(&entry.inclusion),
                exclusion: text(&entry.exclusion),
                file,
                form,
                line: i64::try_from(entry.line).unwrap_or(i64::MAX),
                machine,
                kind: strings.intern(kind),
                name: strings.intern(name),
                task: subcategory.map(|s| s.task),
                setting: strings.intern(setting.name()),
                success: setting.success(),
                failure: setting.failure(),
                value: entry.value.and_then(|value| i32::try_from(value).ok()),
                doubt: entry.doubt.map(|doubt| strings.intern(doubt.reason())),
            };
            rows.push(row);
        }
    }
    rows.finish(&strings.freeze().map_err(TableError::texts)?)
}

/// The word of a setting that stands in the table.
pub fn setting(word: Option<&str>) -> Setting {
    word.and_then(Setting::from_name).unwrap_or(Setting::Unknown)
}
