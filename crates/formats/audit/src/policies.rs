//! Several policies put together: what is in force, what Group Policy will set, where they differ.

use crate::policy::{Form, Policy};
use crate::setting::Setting;
use etwhy_knowledge::{AuditSubcategory, audit_subcategories};

/// What is known of one subcategory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The subcategory.
    pub subcategory: &'static AuditSubcategory,
    /// What is in force: by the last file that says so, else what Group Policy will set. `None` if no file names it.
    pub setting: Option<Setting>,
    /// Number of the file that says so.
    pub file: Option<usize>,
    /// What a Group Policy object sets, and the number of its file. The last one if there are several.
    pub gpo: Option<(Setting, usize)>,
}

impl Effective {
    /// True if Group Policy sets it: a local change lasts until the next refresh.
    pub fn is_of_gpo(&self) -> bool {
        self.gpo.is_some_and(|(setting, _)| setting != Setting::Unspecified)
    }
}

/// Two files that say different things of one subcategory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The subcategory.
    pub subcategory: &'static AuditSubcategory,
    /// Number of each file and what it says, in their order.
    pub said: Vec<(usize, Setting)>,
}

/// What all files say together, one for each subcategory that is known.
pub fn effective(policies: &[(String, Policy)]) -> Vec<Effective> {
    let settings: Vec<_> = policies.iter().map(|(_, policy)| policy.settings()).collect();
    let last = |guid: &str, in_force: bool| {
        policies.iter().zip(&settings).enumerate().rev().find_map(|(at, ((_, policy), settings))| {
            let setting = settings.get(guid).filter(|_| policy.form.is_in_force() == in_force)?;
            Some((*setting, at))
        })
    };
    let one = |subcategory: &'static AuditSubcategory| {
        let gpo = last(subcategory.guid, false);
        let said = last(subcategory.guid, true).or(gpo);
        Effective { subcategory, setting: said.map(|(s, _)| s), file: said.map(|(_, at)| at), gpo }
    };
    audit_subcategories().iter().map(one).collect()
}

/// Where files differ. A file that does not name a subcategory, or not in a way that is understood, says nothing of it.
pub fn differences(policies: &[(String, Policy)]) -> Vec<Difference> {
    let settings: Vec<_> = policies.iter().map(|(_, policy)| policy.settings()).collect();
    let one = |subcategory: &'static AuditSubcategory| {
        let said: Vec<(usize, Setting)> = settings
            .iter()
            .enumerate()
            .filter_map(|(at, settings)| Some((at, *settings.get(subcategory.guid)?)))
            .filter(|(_, setting)| !matches!(setting, Setting::Unspecified | Setting::Unknown))
            .collect();
        let differ = said.iter().any(|(_, setting)| said.first().is_some_and(|(_, first)| first != setting));
        differ.then_some(Difference { subcategory, said })
    };
    audit_subcategories().iter().filter_map(one).collect()
}

/// True if a policy says what all subcategories are, so that one that it does not name is one that Windows did not know.
pub fn is_complete(policy: &Policy) -> bool {
    // Windows 7 has 52 subcategories and Windows 10 59; a part of the categories has fewer.
    policy.form != Form::Gpo && policy.settings().len() >= 50
}

#[cfg(test)]
#[path = "policies_tests.rs"]
mod tests;
