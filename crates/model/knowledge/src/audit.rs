//! Windows audit subcategories: what they are called, what they make, what Microsoft recommends.

use crate::table::rows;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a document says of auditing one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Audit it.
    Yes,
    /// Do not audit it.
    No,
    /// Audit it if a scenario or a role needs it.
    If,
    /// The document recommends nothing.
    Nothing,
    /// The document was not read for this.
    Unread,
}

/// Advice for successes and failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Of successes.
    pub success: Advice,
    /// Of failures.
    pub failure: Advice,
}

impl Pair {
    fn parse(text: &str) -> Pair {
        let one = |c: Option<char>| match c {
            Some('Y') => Advice::Yes,
            Some('N') => Advice::No,
            Some('I') => Advice::If,
            Some('-') => Advice::Nothing,
            _ => Advice::Unread,
        };
        let mut letters = text.chars();
        Pair { success: one(letters.next()), failure: one(letters.next()) }
    }

    /// The advice for an outcome.
    pub fn for_outcome(self, success: bool) -> Advice {
        if success { self.success } else { self.failure }
    }

    /// In words: `Success and Failure`, `Success`, `Failure, Success if needed`, `No Auditing`, `-` for nothing said.
    pub fn text(self) -> String {
        let outcomes = [("Success", self.success), ("Failure", self.failure)];
        let those = |wanted: Advice| -> Vec<&str> {
            outcomes.iter().filter(|(_, advice)| *advice == wanted).map(|(name, _)| *name).collect()
        };
        let mut parts: Vec<String> = Vec::new();
        if !those(Advice::Yes).is_empty() {
            parts.push(those(Advice::Yes).join(" and "));
        }
        if !those(Advice::If).is_empty() {
            parts.push(format!("{} if needed", those(Advice::If).join(" and ")));
        }
        match (parts.is_empty(), those(Advice::No).is_empty()) {
            (true, false) => "No Auditing".to_owned(),
            (true, true) => "-".to_owned(),
            _ => parts.join(", "),
        }
    }
}

/// What kind of machine a recommendation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Workstation.
    Client,
    /// Member server.
    Server,
    /// Domain controller.
    Dc,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::Client, Role::Server, Role::Dc];

    /// The name on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
            Role::Dc => "dc",
        }
    }

    /// The role with this name.
    pub fn from_name(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// How many events a subcategory makes, as documents say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// low, medium, high, very high; sacl (set by SACLs), varies, none, unknown.
    pub level: &'static str,
    /// On what it depends, in words; may be empty.
    pub note: &'static str,
    /// Key of the source.
    pub source: &'static str,
}

/// One audit subcategory. Sources are keys of `data/README.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSubcategory {
    /// Category, in English.
    pub category: &'static str,
    /// Name, in English, as `auditpol` prints it.
    pub name: &'static str,
    /// GUID in upper case without braces: the only name that no language changes.
    pub guid: &'static str,
    /// `Task` of its records in the Security log.
    pub task: i32,
    /// Its event ids as ranges, both ends included.
    pub event_ids: Vec<(u16, u16)>,
    /// Source of the ids.
    pub ids_source: &'static str,
    /// Volume as documents state it.
    pub volume: Volume,
    /// What Windows audits as installed: clients, servers.
    pub default: [Pair; 2],
    /// Source of the defaults.
    pub default_source: &'static str,
    /// Microsoft's baseline recommendation by role.
    pub baseline: [Pair; 3],
    /// Microsoft's stronger recommendation by role.
    pub stronger: [Pair; 3],
    /// Source of both; empty where the page does not list the subcategory.
    pub baseline_source: &'static str,
    /// What Microsoft's page of this subcategory recommends, by role.
    pub page: [Pair; 3],
    /// What that page recommends where security needs more, by role.
    pub page_stronger: [Pair; 3],
    /// Source of it.
    pub page_source: &'static str,
    /// What else switches it: see [`SwitchRule`].
    pub rules: Vec<SwitchRule>,
}

/// Why switching a subcategory off is not all that decides about its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchRule {
    /// SACLs of objects decide how much is written.
    Sacl,
    /// Its 4658 are enabled by Handle Manipulation.
    Handle,
    /// It enables 4658, which then carries the Task of File System, Registry, Kernel Object, SAM or Removable Storage.
    Enables4658,
    /// It writes only if Logon is audited too.
    Logon,
    /// It covers all shares of the machine: there are no SACLs of shares.
    AllShares,
}

impl SwitchRule {
    fn parse(text: &str) -> Option<SwitchRule> {
        Some(match text {
            "sacl" => SwitchRule::Sacl,
            "handle" => SwitchRule::Handle,
            "switch-4658" => SwitchRule::Enables4658,
            "logon" => SwitchRule::Logon,
            "all-shares" => SwitchRule::AllShares,
            _ => return None,
        })
    }

    /// One sentence.
    pub const fn text(self) -> &'static str {
        match self {
            SwitchRule::Sacl => "SACLs on objects decide the volume: narrowing them keeps what matters",
            SwitchRule::Handle => {
                "its events 4658 are enabled by Handle Manipulation, not by this subcategory alone"
            }
            SwitchRule::Enables4658 => {
                "it also enables 4658, which is counted under File System, Registry, Kernel Object, SAM and Removable Storage"
            }
            SwitchRule::Logon => "it writes only where Logon is audited too",
            SwitchRule::AllShares => "shares have no SACLs: it covers every share of the machine",
        }
    }
}

impl AuditSubcategory {
    /// What Windows audits as installed. Domain controllers count as servers.
    pub fn default_of(&self, role: Role) -> Pair {
        match role {
            Role::Client => self.default[0],
            Role::Server | Role::Dc => self.default[1],
        }
    }

    /// Microsoft's baseline for a role.
    pub fn baseline_of(&self, role: Role) -> Pair {
        self.baseline[role as usize]
    }

    /// Microsoft's stronger recommendation for a role.
    pub fn stronger_of(&self, role: Role) -> Pair {
        self.stronger[role as usize]
    }

    /// What Microsoft's page of the subcategory says for a role.
    pub fn page_of(&self, role: Role) -> Pair {
        self.page[role as usize]
    }

    /// What Microsoft's page of the subcategory says for a role where security needs more.
    pub fn page_stronger_of(&self, role: Role) -> Pair {
        self.page_stronger[role as usize]
    }

    /// True if the event id is among its ids. Many ids belong to several subcategories: the Task of a record decides.
    pub fn makes(&self, event_id: i32) -> bool {
        self.event_ids.iter().any(|&(from, to)| (i32::from(from)..=i32::from(to)).contains(&event_id))
    }

    /// The event ids as text: `4656-4658,4660`.
    pub fn event_ids_text(&self) -> String {
        let one =
            |&(from, to): &(u16, u16)| if from == to { from.to_string() } else { format!("{from}-{to}") };
        self.event_ids.iter().map(one).collect::<Vec<_>>().join(",")
    }
}

fn ranges(text: &str) -> Vec<(u16, u16)> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    text.split(',').filter(|part| !part.is_empty()).filter_map(range).collect()
}

static ALL: LazyLock<Vec<AuditSubcategory>> = LazyLock::new(|| {
    rows::<27>(include_str!("../data/audit_subcategories.tsv"))
        .map(|c| {
            let [category, name, guid, task, ids, ids_source, level, note, volume_source, rest @ ..] = c;
            let [default_client, default_server, default_source, rest @ ..] = rest;
            let [base_c, strong_c, base_s, strong_s, base_d, strong_d, base_source, rest @ ..] = rest;
            let [page_c, page_s, page_d, more_c, more_s, more_d, page_source, rules] = rest;
            AuditSubcategory {
                category,
                name,
                guid,
                task: task.parse().unwrap_or(-1),
                event_ids: ranges(ids),
                ids_source,
                volume: Volume { level, note, source: volume_source },
                default: [default_client, default_server].map(Pair::parse),
                default_source,
                baseline: [base_c, base_s, base_d].map(Pair::parse),
                stronger: [strong_c, strong_s, strong_d].map(Pair::parse),
                baseline_source: base_source,
                page: [page_c, page_s, page_d].map(Pair::parse),
                page_stronger: [more_c, more_s, more_d].map(Pair::parse),
                page_source,
                rules: rules.split(',').filter_map(SwitchRule::parse).collect(),
            }
        })
        .collect()
});

/// All subcategories, in the order of `auditpol`'s categories.
pub fn audit_subcategories() -> &'static [AuditSubcategory] {
    &ALL
}

static BY_TASK: LazyLock<HashMap<i32, usize>> =
    LazyLock::new(|| ALL.iter().enumerate().map(|(at, sub)| (sub.task, at)).collect());

/// The subcategory whose records have this `Task`.
pub fn audit_subcategory_of_task(task: i64) -> Option<&'static AuditSubcategory> {
    BY_TASK.get(&i32::try_from(task).ok()?).and_then(|&at| ALL.get(at))
}

/// The subcategory with this GUID, with or without braces, in any case.
pub fn audit_subcategory(guid: &str) -> Option<&'static AuditSubcategory> {
    let guid = guid.trim().trim_start_matches('{').trim_end_matches('}');
    ALL.iter().find(|sub| sub.guid.eq_ignore_ascii_case(guid))
}

/// What a word for a setting means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingWord {
    /// Success.
    Success,
    /// Failure.
    Failure,
    /// Success and Failure.
    Both,
    /// No Auditing.
    None,
    /// Not configured, not specified.
    Unspecified,
}

/// A word that some language's Windows has for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingName {
    /// Language: `de`.
    pub language: &'static str,
    /// The word, as Windows writes it.
    pub text: &'static str,
    /// What it means.
    pub means: SettingWord,
}

/// A name that some language's Windows has for a subcategory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubcategoryName {
    /// Language: `de`.
    pub language: &'static str,
    /// The name, as Windows writes it.
    pub text: &'static str,
    /// GUID of the subcategory, as in [`AuditSubcategory::guid`].
    pub guid: &'static str,
}

static NAMES: LazyLock<(Vec<SettingName>, Vec<SubcategoryName>)> = LazyLock::new(|| {
    let (mut settings, mut names) = (Vec::new(), Vec::new());
    for sub in ALL.iter() {
        names.push(SubcategoryName { language: "en", text: sub.name, guid: sub.guid });
    }
    for [language, kind, key, text, _source] in rows::<5>(include_str!("../data/audit_names.tsv")) {
        let means = match key {
            "S" => Some(SettingWord::Success),
            "F" => Some(SettingWord::Failure),
            "SF" => Some(SettingWord::Both),
            "N" => Some(SettingWord::None),
            "U" => Some(SettingWord::Unspecified),
            _ => None,
        };
        match (kind, means) {
            ("setting", Some(means)) => settings.push(SettingName { language, text, means }),
            ("name", _) => {
                if let Some(sub) = ALL.iter().find(|s| s.guid.get(4..8) == Some(key)) {
                    names.push(SubcategoryName { language, text, guid: sub.guid });
                }
            }
            _ => {}
        }
    }
    (settings, names)
});

/// Words for settings in the languages that are known.
pub fn audit_setting_names() -> &'static [SettingName] {
    &NAMES.0
}

/// Names of subcategories in the languages that are known, English first.
pub fn audit_subcategory_names() -> &'static [SubcategoryName] {
    &NAMES.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        // 59 subcategories are listed by `auditpol` up to Windows 10, Access Rights is the 60th (Windows 11).
        assert_eq!(audit_subcategories().len(), 60);
        for sub in audit_subcategories() {
            assert_eq!(sub.guid.len(), 36, "{}", sub.name);
            assert!(sub.guid.starts_with("0CCE92") && sub.guid.ends_with("-69AE-11D9-BED3-505054503030"));
            assert!((12288..=14339).contains(&sub.task), "{}", sub.name);
            assert!(
                ["low", "medium", "high", "very high", "sacl", "varies", "none", "unknown"]
                    .contains(&sub.volume.level)
            );
            assert_eq!(sub.volume.level == "unknown", sub.volume.source.is_empty(), "{}", sub.name);
            assert_eq!(sub.event_ids.is_empty(), sub.ids_source.is_empty(), "{}", sub.name);
            assert!(
                sub.event_ids.iter().all(|(from, to)| from <= to && (4608..=6424).contains(from)),
                "{}",
                sub.name
            );
            let read = sub.page.iter().all(|pair| pair.success != Advice::Unread);
            assert!(
                sub.page_stronger
                    .iter()
                    .zip(sub.page)
                    .all(|(more, page)| (more.success == Advice::Unread) == (page.success == Advice::Unread))
            );
            assert_eq!(read, !sub.page_source.is_empty(), "{}", sub.name);
        }
        let mut guids: Vec<&str> = audit_subcategories().iter().map(|s| s.guid).collect();
        guids.sort_unstable();
        guids.dedup();
        assert_eq!(guids.len(), 60);
        let mut tasks: Vec<i32> = audit_subcategories().iter().map(|s| s.task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        assert_eq!(tasks.len(), 60);
    }

    #[test]
    fn facts_of_the_pages() {
        let sub = |name: &str| audit_subcategories().iter().find(|s| s.name == name).unwrap();
        let yes_no = Pair { success: Advice::Yes, failure: Advice::No };
        // "Audit Process Creation": baseline `Yes | No` for clients and servers (Audit Policy Recommendations).
        assert_eq!(sub("Process Creation").baseline, [yes_no; 3]);
        // "Audit Computer Account Management" of servers: `Yes | DC`.
        let computers = sub("Computer Account Management");
        assert_eq!(computers.baseline_of(Role::Server).failure, Advice::Nothing);
        assert_eq!(computers.baseline_of(Role::Dc).failure, Advice::Yes);
        // "Audit Filtering Platform Connection": not in the baseline; its page: success No, failure Yes, on all.
        let wfp = audit_subcategory("{0cce9226-69ae-11d9-bed3-505054503030}").unwrap();
        assert_eq!((wfp.name, wfp.task), ("Filtering Platform Connection", 12810));
        assert_eq!(wfp.baseline_of(Role::Server).success, Advice::Nothing);
        assert_eq!(wfp.page_of(Role::Server), Pair { success: Advice::No, failure: Advice::Yes });
        assert_eq!(wfp.page_stronger_of(Role::Dc), Pair { success: Advice::If, failure: Advice::Yes });
        assert!(wfp.makes(5156) && wfp.makes(5158) && !wfp.makes(5152) && !wfp.makes(4698));
        assert_eq!(wfp.event_ids_text(), "5031,5150,5151,5154-5159");
        assert_eq!(audit_subcategory_of_task(12810), Some(wfp));
        assert_eq!(audit_subcategory_of_task(65280), None);
        assert_eq!(sub("Handle Manipulation").rules, [SwitchRule::Sacl, SwitchRule::Enables4658]);
        assert_eq!(Role::from_name("dc"), Some(Role::Dc));
    }

    #[test]
    fn advice_in_words() {
        for (code, text) in [
            ("YY", "Success and Failure"),
            ("YN", "Success"),
            ("NY", "Failure"),
            ("IY", "Failure, Success if needed"),
            ("II", "Success and Failure if needed"),
            ("NN", "No Auditing"),
            ("--", "-"),
            ("Y-", "Success"),
            ("", "-"),
        ] {
            assert_eq!(Pair::parse(code).text(), text, "{code}");
        }
    }

    #[test]
    fn a_name_means_one_thing() {
        let fold = |text: &str| text.to_lowercase().replace('’', "'");
        let names = audit_subcategory_names();
        // 60 English, 60 German, 59 French, 59 Spanish names, and some of others.
        for (language, count) in [("en", 60), ("de", 60), ("fr", 59), ("es", 59)] {
            assert_eq!(names.iter().filter(|n| n.language == language).count(), count, "{language}");
        }
        for one in names {
            for other in names {
                if fold(one.text) == fold(other.text) {
                    assert_eq!(one.guid, other.guid, "{}", one.text);
                }
            }
        }
        for one in audit_setting_names() {
            for other in audit_setting_names() {
                if fold(one.text) == fold(other.text) {
                    assert_eq!(one.means, other.means, "{}", one.text);
                }
            }
        }
        assert_eq!(audit_setting_names().len(), 254 - (names.len() - 60));
    }
}
