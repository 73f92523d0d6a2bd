//! Manifests and provider names that ship with the program.

mod notation;
#[cfg(test)]
mod published;

use crate::manifest::Manifests;
use etwhy_base::Guid;
use foldhash::HashMap;
use std::sync::{Arc, LazyLock};

/// The files of this folder, with their names for messages.
const FILES: [(&str, &str); 4] = [
    ("clr.txt", include_str!("clr.txt")),
    ("clr_private.txt", include_str!("clr_private.txt")),
    ("system.txt", include_str!("system.txt")),
    ("windows.txt", include_str!("windows.txt")),
];

/// Names of providers; of two for one GUID the later one wins.
const PROVIDERS: [&str; 2] = [include_str!("windows_providers.txt"), include_str!("providers.txt")];

/// The manifests that ship, parsed once.
pub fn manifests() -> &'static Manifests {
    static MANIFESTS: LazyLock<Manifests> = LazyLock::new(|| {
        let mut manifests = Manifests::new();
        for (_, text) in FILES {
            for provider in notation::parse(text).0 {
                manifests.add(provider);
            }
        }
        manifests
    });
    &MANIFESTS
}

/// The name of a well-known provider.
pub fn provider_name(guid: Guid) -> Option<&'static Arc<str>> {
    names().get(&guid)
}

/// The well-known provider of this name, in any case.
pub fn provider_guid(name: &str) -> Option<Guid> {
    let listed = names().iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(guid, _)| *guid);
    listed.or_else(|| manifests().provider_named(name))
}

fn names() -> &'static HashMap<Guid, Arc<str>> {
    static NAMES: LazyLock<HashMap<Guid, Arc<str>>> = LazyLock::new(|| {
        let lines = PROVIDERS.iter().flat_map(|text| text.lines()).filter(|l| !l.starts_with('#'));
        lines
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(g, name)| Some((g.parse().ok()?, name.into())))
            .collect()
    });
    &NAMES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_found_by_name() {
        let runtime = provider_guid("microsoft-windows-dotnetruntime").unwrap();
        assert_eq!(provider_name(runtime).unwrap().as_ref(), "Microsoft-Windows-DotNETRuntime");
        assert!(provider_guid("Microsoft-Windows-Win32k").is_some());
        assert_eq!(provider_guid("Nobody"), None);
    }

    #[test]
    fn every_line_parses() {
        for (name, text) in FILES {
            let (providers, bad) = notation::parse(text);
            assert!(bad.is_empty(), "{name}: {bad:#?}");
            assert!(!providers.is_empty());
            for provider in providers {
                let mut keys: Vec<_> = provider.events.iter().map(|e| (e.id, e.version, e.opcode)).collect();
                keys.sort_unstable();
                let all = keys.len();
                keys.dedup();
                assert_eq!(all, keys.len(), "{name}: {} lists an event twice", provider.name);
            }
        }
        for line in PROVIDERS.iter().flat_map(|text| text.lines()).filter(|l| !l.starts_with('#')) {
            let (guid, name) = line.split_once(' ').unwrap();
            assert!(guid.parse::<Guid>().is_ok() && !name.is_empty(), "{line}");
        }
    }

    #[test]
    fn files_are_small() {
        let all: usize = FILES.iter().map(|(_, text)| text.len()).sum::<usize>()
            + PROVIDERS.map(str::len).iter().sum::<usize>();
        assert!(all < 400 * 1024, "{all} bytes");
    }
}
