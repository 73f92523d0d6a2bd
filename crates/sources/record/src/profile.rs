//! Profiles: what to record to answer a kind of question.

use serde::Deserialize;
use std::fmt;
use std::sync::LazyLock;

/// How much a recording costs the machine that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Cost {
    /// Can run for hours.
    #[serde(rename = "low")]
    Low,
    /// Minutes; nobody notices it.
    #[serde(rename = "medium")]
    Medium,
    /// Minutes; what is measured gets slower.
    #[serde(rename = "high")]
    High,
    /// Seconds.
    #[serde(rename = "very high")]
    VeryHigh,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cost::Low => "low",
            Cost::Medium => "medium",
            Cost::High => "high",
            Cost::VeryHigh => "very high",
        })
    }
}

/// A provider of events other than the kernel's own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Registered name.
    pub name: String,
    /// GUID in lower case, without braces.
    pub guid: String,
    /// Keywords, hexadecimal, which add up; none means all of them.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Highest level (1 critical to 5 verbose, 255 all).
    pub level: u8,
    /// Record call stacks.
    #[serde(default)]
    pub stack: bool,
    /// Record stacks of these events only.
    #[serde(default)]
    pub stack_of_events: Vec<u16>,
    /// Leave these events out.
    #[serde(default)]
    pub without_events: Vec<u16>,
    /// Keywords of the state that the provider tells when the recording stops.
    #[serde(default)]
    pub capture_at_stop: Option<String>,
    /// Only that state is wanted, no events before.
    #[serde(default)]
    pub capture_only: bool,
}

impl Provider {
    /// All keywords in one; `u64::MAX` if it has none.
    pub fn keyword_bits(&self) -> u64 {
        let bits = self.keywords.iter().fold(0, |bits, keyword| bits | hex(keyword).unwrap_or(0));
        if self.keywords.is_empty() { u64::MAX } else { bits }
    }

    /// Keywords of the state that it tells at the end.
    pub fn capture_bits(&self) -> Option<u64> {
        self.capture_at_stop.as_deref().and_then(hex)
    }
}

/// A hexadecimal number that begins with `0x`.
fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// What to record to answer a kind of question.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name on the command line; that of its file.
    #[serde(skip)]
    pub name: &'static str,
    /// A few words.
    pub title: String,
    /// What it makes visible.
    pub shows: String,
    /// What it costs.
    pub cost: Cost,
    /// Where the cost comes from: sizes and rates of its events, an estimate.
    pub rate: String,
    /// Tables that it is there for. A table stands in one profile only.
    pub tables: Vec<String>,
    /// Tables of other profiles that it fills too.
    #[serde(default)]
    pub also: Vec<String>,
    /// Kernel keywords, by their names in `.wprp` files.
    pub keywords: Vec<String>,
    /// Kernel events with stacks, by their names in `.wprp` files.
    pub stacks: Vec<String>,
    /// Providers.
    #[serde(default, rename = "provider")]
    pub providers: Vec<Provider>,
    /// Profiles that it consists of.
    #[serde(default)]
    pub includes: Vec<String>,
    /// What else the user should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The files, in the order in which they are listed.
const FILES: &[(&str, &str)] = &[
    ("cpu", include_str!("../profiles/cpu.toml")),
    ("dpc", include_str!("../profiles/dpc.toml")),
    ("syscall", include_str!("../profiles/syscall.toml")),
    ("file", include_str!("../profiles/file.toml")),
    ("registry", include_str!("../profiles/registry.toml")),
    ("memory", include_str!("../profiles/memory.toml")),
    ("handle", include_str!("../profiles/handle.toml")),
    ("ui", include_str!("../profiles/ui.toml")),
    ("network", include_str!("../profiles/network.toml")),
    ("alpc", include_str!("../profiles/alpc.toml")),
    ("power", include_str!("../profiles/power.toml")),
    ("dotnet", include_str!("../profiles/dotnet.toml")),
    ("wmi", include_str!("../profiles/wmi.toml")),
    ("session", include_str!("../profiles/session.toml")),
    ("base", include_str!("../profiles/base.toml")),
    ("all", include_str!("../profiles/all.toml")),
];

static PROFILES: LazyLock<Vec<Profile>> =
    LazyLock::new(|| FILES.iter().filter_map(|(name, text)| parse(name, text).ok()).collect());

fn parse(name: &'static str, text: &str) -> Result<Profile, toml::de::Error> {
    toml::from_str::<Profile>(text).map(|profile| Profile { name, ..profile })
}

/// All profiles.
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The profile of that name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|p| p.name == name)
}

/// The profile to record for a table; none for tables that no recording fills.
pub fn profile_of_table(table: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|p| p.tables.iter().any(|t| t == table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_parses_and_every_file_is_listed() {
        for (name, text) in FILES {
            parse(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert_eq!(profiles().len(), FILES.len());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap().trim_end_matches(".toml").to_owned())
            .collect();
        assert_eq!(files, FILES.iter().map(|(name, _)| (*name).to_owned()).collect());
    }

    #[test]
    fn profiles_name_what_there_is() {
        let mut tables = BTreeSet::new();
        for p in profiles() {
            for name in &p.keywords {
                let keyword =
                    vocabulary::keyword(name).unwrap_or_else(|| panic!("{}: keyword {name}", p.name));
                assert!(keyword.xperf.is_some() && keyword.bits.is_some(), "{}: {name} for xperf", p.name);
            }
            for name in &p.stacks {
                let stack = vocabulary::stack(name).unwrap_or_else(|| panic!("{}: stack {name}", p.name));
                assert!(stack.xperf.is_some(), "{}: {name} for xperf", p.name);
            }
            for name in &p.includes {
                assert!(profile(name).is_some_and(|inner| inner.includes.is_empty()), "{}: {name}", p.name);
            }
            for table in &p.tables {
                assert!(tables.insert(table.clone()), "{table} stands in two profiles");
            }
            for table in &p.also {
                assert!(
                    profile_of_table(table).is_some_and(|owner| owner.name != p.name),
                    "{}: {table}",
                    p.name
                );
            }
            for provider in &p.providers {
                assert!(provider.keywords.iter().all(|k| hex(k).is_some()), "{}", provider.name);
                assert!(provider.capture_at_stop.iter().all(|k| hex(k).is_some()), "{}", provider.name);
                assert!(!provider.capture_only || provider.capture_at_stop.is_some(), "{}", provider.name);
                assert!(provider.guid.parse::<etwhy_base::Guid>().is_ok(), "{}", provider.name);
                // EventFilters and StackFilters hold up to 64 ids (WPRControlProfiles.xsd, EventIdFilterType).
                assert!(provider.without_events.len() <= 64 && provider.stack_of_events.len() <= 64);
            }
            assert!(!p.title.contains('\n') && !p.shows.is_empty() && !p.rate.is_empty());
        }
    }

    #[test]
    fn everything_means_every_profile() {
        let all = profile("all").unwrap();
        let rest: BTreeSet<&str> =
            profiles().iter().map(|p| p.name).filter(|n| !["all", "base"].contains(n)).collect();
        assert_eq!(all.includes.iter().map(String::as_str).collect::<BTreeSet<_>>(), rest);
    }

    #[test]
    fn tables_lead_to_profiles() {
        assert_eq!(profile_of_table("sample").unwrap().name, "cpu");
        assert_eq!(profile_of_table("isr").unwrap().name, "dpc");
        assert_eq!(profile_of_table("minifilter").unwrap().name, "file");
        assert_eq!(profile_of_table("hard_fault").unwrap().name, "memory");
        assert!(profile_of_table("no_such_table").is_none());
    }

    #[test]
    fn win32k_asks_for_hangs_handles_and_focus() {
        let win32k = &profile("ui").unwrap().providers[0];
        assert_eq!(win32k.keyword_bits(), 0x8000_0300_002c_2000);
        assert_eq!(profile("network").unwrap().providers[1].keyword_bits(), u64::MAX);
    }
}
