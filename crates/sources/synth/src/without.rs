//! Leaving out kinds of events, as if the session had not recorded them.

use etwhy_base::{Bytes, Guid};
use etwhy_decode::builtin::provider_guid;
use etwhy_decode::kernel::events::StackWalk;
use etwhy_decode::kernel::keywords::keywords;
use etwhy_decode::kernel::{KernelEvent, KernelLayouts};
use etwhy_etl::{HeaderKind, Record};
use std::collections::{BTreeSet, HashSet, VecDeque};

/// What a kernel keyword records: names of events, or of groups if all of a group's are meant. Keywords that are not
/// here record things that scenarios have no tables for.
const KEYWORDS: &[(&str, &[&str])] = &[
    ("PROFILE", &["SampledProfile"]),
    ("CSWITCH", &["CSwitch"]),
    ("DISPATCHER", &["ReadyThread"]),
    ("DPC", &["DPC", "ThreadedDPC", "TimerDPC"]),
    ("INTERRUPT", &["ISR", "ISR-MSI"]),
    ("SYSCALL", &["SysClEnter", "SysClExit"]),
    ("DISK_IO", &["DiskIo/Read", "DiskIo/Write", "DiskIo/FlushBuffers"]),
    ("DISK_IO_INIT", &["DiskIo/ReadInit", "DiskIo/WriteInit", "DiskIo/FlushInit"]),
    ("FILE_IO", &["FileIo/OperationEnd"]),
    ("FILE_IO_INIT", &["FileIo/Create", "FileIo/Read", "FileIo/Write", "FileIo/Cleanup", "FileIo/Close"]),
    ("HARD_FAULTS", &["HardFault"]),
    ("ALL_FAULTS", &["PageFault/DemandZeroFault", "PageFault/TransitionFault", "PageFault/CopyOnWrite"]),
    ("VIRT_ALLOC", &["VirtualAlloc", "VirtualFree"]),
    ("NETWORKTRACE", &["TcpIp", "UdpIp"]),
    ("REGISTRY", &["Registry"]),
    ("ALPC", &["ALPC"]),
    ("POOL", &["Pool"]),
    ("OB_HANDLE", &["Object"]),
];

/// So many events that were left out may still get their stacks.
const STACKS_AHEAD: usize = 1 << 16;

/// Stacks that name an event by its time.
const STACKS: [KernelEvent; 3] = [StackWalk::Stack, StackWalk::StackKeyKernel, StackWalk::StackKeyUser];

/// Which events are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Without {
    /// Group and type of kernel events, as records carry them.
    hooks: BTreeSet<u16>,
    providers: BTreeSet<Guid>,
    /// Mask and bits of keywords whose events are all left out.
    bits: Vec<(usize, u32)>,
    /// Times of events that were left out: their stacks go too.
    dropped: HashSet<i64>,
    order: VecDeque<i64>,
}

impl Without {
    /// From names of events, groups, keywords and providers; `own` are those of the scenario.
    pub(crate) fn new(names: &[String], own: Vec<(Guid, String)>) -> Result<Without, String> {
        let mut without = Without::default();
        for name in names.iter().map(|n| n.trim()).filter(|n| !n.is_empty()) {
            let hooks = hooks_of(name);
            let guids: Vec<Guid> = match name.parse::<Guid>() {
                Ok(guid) => vec![guid],
                Err(()) => {
                    own.iter().filter(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(g, _)| *g).collect()
                }
            };
            let known = provider_guid(name);
            if hooks.is_empty() && guids.is_empty() && known.is_none() {
                return Err(format!(
                    "--without {name:?}: no kernel event (CSwitch, FileIo/Create), group (Registry, StackWalk), \
                     keyword (PROFILE) or provider has this name"
                ));
            }
            without.hooks.extend(hooks);
            without.providers.extend(guids);
            without.providers.extend(known);
        }
        let gone = |name: &&str| hooks_of(name).iter().all(|hook| without.hooks.contains(hook));
        let silent =
            |keyword: &str| KEYWORDS.iter().any(|(k, events)| *k == keyword && events.iter().all(&gone));
        without.bits = keywords()
            .iter()
            .filter(|k| k.bits.is_power_of_two() && silent(k.name))
            .map(|k| (k.mask, k.bits))
            .collect();
        Ok(without)
    }

    /// Takes the keywords whose events are left out from a session's masks.
    pub(crate) fn clear(&self, masks: &mut [u32]) {
        for (mask, bits) in &self.bits {
            if let Some(m) = masks.get_mut(*mask) {
                *m &= !bits;
            }
        }
    }

    /// True for a record that is left out.
    pub(crate) fn drops(&mut self, kind: HeaderKind, bytes: &[u8], ticks: i64) -> bool {
        if self.hooks.is_empty() && self.providers.is_empty() {
            return false;
        }
        let record = Record { bytes, kind, ticks, cpu: 0, logger_id: 0, file: 0 };
        let (gone, stack) = if kind.is_system() {
            let hook = bytes.u16_at(6).unwrap_or(0);
            (self.hooks.contains(&hook), STACKS.iter().any(|stack| stack.hook == hook))
        } else {
            (record.guid().is_some_and(|guid| self.providers.contains(&guid)), false)
        };
        if stack {
            return gone || record.payload().u64_at(0).is_some_and(|at| self.dropped.contains(&(at as i64)));
        }
        if gone && self.dropped.insert(ticks) {
            self.order.push_back(ticks);
            if self.order.len() > STACKS_AHEAD
                && let Some(old) = self.order.pop_front()
            {
                self.dropped.remove(&old);
            }
        }
        gone
    }
}

/// Group and type of the kernel events that a name means: an event (`FileIo/Create`, `Create`), a group (`FileIo`,
/// `Stack` for `StackWalk`) or a keyword (`FILE_IO`).
fn hooks_of(name: &str) -> Vec<u16> {
    let layouts = KernelLayouts::builtin();
    let keyword = KEYWORDS.iter().filter(|(keyword, _)| keyword.eq_ignore_ascii_case(name));
    let mut hooks: Vec<u16> = keyword
        .flat_map(|(_, events)| events.iter())
        .filter(|e| !e.eq_ignore_ascii_case(name))
        .flat_map(|e| hooks_of(e))
        .collect();
    let name = if name.eq_ignore_ascii_case("Stack") { "StackWalk" } else { name };
    let same = |other: Option<&str>| other.is_some_and(|o| o.eq_ignore_ascii_case(name));
    hooks.extend((0..=u16::MAX).filter(|hook| {
        let [ty, group] = hook.to_le_bytes();
        let named = layouts.event_name(group, ty).is_some();
        named
            && (same(layouts.event_name(group, ty))
                || same(layouts.type_name(group, ty))
                || same(layouts.group_name(layouts.home_group(group, ty))))
    }));
    hooks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Without {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        Without::new(&names, vec![(Guid([7; 16]), "Example.Own".to_owned())]).unwrap()
    }

    #[test]
    fn names_of_all_kinds() {
        let dpc = of(&["DPC"]);
        assert_eq!(dpc.hooks, BTreeSet::from([0x0F42, 0x0F44, 0x0F45]));
        let mut masks = [0x70, 0, 0, 0, 0, 0, 0, 0];
        dpc.clear(&mut masks);
        assert_eq!(masks[0], 0x50);
        // The hypervisor has context switches of its own.
        assert_eq!(of(&["cswitch", "ReadyThread"]).hooks, BTreeSet::from([0x0524, 0x0532, 0x1924]));
        assert!(of(&["Stack"]).hooks.contains(&0x1820) && of(&["Stack"]).hooks.contains(&0x1825));
        assert_eq!(of(&["Example.Own"]).providers.len(), 1);
        assert_eq!(of(&["Microsoft-Windows-DotNETRuntime"]).providers.len(), 1);
        // Half of what a keyword records leaves it on.
        let mut masks = [0x80, 0, 0, 0, 0, 0, 0, 0];
        of(&["SysClEnter"]).clear(&mut masks);
        assert_eq!(masks[0], 0x80);
        let error = Without::new(&["Nothing".to_owned()], Vec::new()).unwrap_err();
        assert!(error.contains("\"Nothing\""), "{error}");
    }

    #[test]
    fn keywords_have_events() {
        for (keyword, events) in KEYWORDS {
            assert!(keywords().iter().any(|k| k.name == *keyword), "{keyword}");
            for event in *events {
                assert!(!hooks_of(event).is_empty(), "{event}");
            }
        }
    }
}
