//! What recorders call the kernel's events: keywords and stacks of `.wprp` files, flags of `xperf`, bits of the group
//! masks.

use etwhy_base::Guid;
use std::sync::LazyLock;

/// Number of a kernel session's group masks (`PERFINFO_GROUPMASK`, phnt's ntwmi.h).
pub const MASKS: usize = 8;

/// A kernel keyword: a set of kernel events that can be switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// Name in a `.wprp` file, e.g. `ReadyThread`.
    pub wpr: &'static str,
    /// Kernel flag of `xperf`, e.g. `DISPATCHER`; none if it has none.
    pub xperf: Option<&'static str>,
    /// Group mask and its bits; none if no public header tells them. Mask 0 is the documented flag word.
    pub bits: Option<(usize, u32)>,
}

impl Keyword {
    /// Its bits in the flag word that `logman` and `StartTrace` take (`EVENT_TRACE_FLAG_*`); none if it has none there.
    pub fn flag_word(&self) -> Option<u32> {
        self.bits.filter(|(mask, _)| *mask == 0).map(|(_, bits)| bits)
    }
}

/// A kernel event whose call stack can be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Name in a `.wprp` file, e.g. `SystemCallEnter`.
    pub wpr: &'static str,
    /// Flag of `xperf -stackwalk`, e.g. `SyscallEnter`; none if it has none.
    pub xperf: Option<&'static str>,
    /// Class and type of the event, which `StartTrace`'s callers name it by; none if no profile needs it.
    pub event: Option<EventClass>,
}

/// A kernel event as `CLASSIC_EVENT_ID` (evntrace.h) names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventClass {
    /// GUID of the class.
    pub class: Guid,
    /// Type within the class.
    pub kind: u8,
}

/// GUIDs of the kernel's event classes (<https://learn.microsoft.com/en-us/windows/win32/etw/nt-kernel-logger-constants>;
/// Pool, Object and PerfInfo from the MOF of the public WDK).
const CLASSES: &[(&str, Guid)] = &[
    ("ALPC", Guid::from_text("45d8cccd-539f-4b72-a8b7-5c683142609a")),
    ("DiskIo", Guid::from_text("3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c")),
    ("FileIo", Guid::from_text("90cbdc39-4a3e-11d1-84f4-0000f80464e3")),
    ("Image", Guid::from_text("2cb15d1d-5fc1-11d2-abe1-00a0c911f518")),
    ("Object", Guid::from_text("89497f50-effe-4440-8cf2-ce6b1cdcaca7")),
    ("PageFault", Guid::from_text("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c")),
    ("PerfInfo", Guid::from_text("ce1dbfb4-137e-4da6-87b0-3f59aa102cbc")),
    ("Pool", Guid::from_text("0268a8b6-74fd-4302-9dd0-6e8f1795c0cf")),
    ("Process", Guid::from_text("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c")),
    ("Registry", Guid::from_text("ae53722e-c863-11d2-8659-00c04fa321a1")),
    ("Thread", Guid::from_text("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c")),
];

static KEYWORDS: LazyLock<Vec<Keyword>> =
    LazyLock::new(|| rows(include_str!("../data/keywords.txt")).filter_map(keyword_of_row).collect());
static STACKS: LazyLock<Vec<Stack>> =
    LazyLock::new(|| rows(include_str!("../data/stacks.txt")).filter_map(stack_of_row).collect());

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
}

fn known(cell: &'static str) -> Option<&'static str> {
    (cell != "-").then_some(cell)
}

fn keyword_of_row(row: Vec<&'static str>) -> Option<Keyword> {
    let [wpr, xperf, mask, bits] = row.as_slice() else { return None };
    let bits = known(mask)
        .zip(known(bits))
        .and_then(|(mask, bits)| Some((mask.parse().ok()?, u32::from_str_radix(bits, 16).ok()?)));
    Some(Keyword { wpr, xperf: known(xperf), bits })
}

fn stack_of_row(row: Vec<&'static str>) -> Option<Stack> {
    let [wpr, xperf, class, kind] = row.as_slice() else { return None };
    let class = CLASSES.iter().find(|(name, _)| name == class).map(|(_, guid)| *guid);
    let event = class.zip(kind.parse().ok()).map(|(class, kind)| EventClass { class, kind });
    Some(Stack { wpr, xperf: known(xperf), event })
}

/// Keywords that Microsoft's schema has and that no public profile was seen to use.
const UNPROVEN: &[&str] = &["Alpc", "FilterIO", "FilterIOFailure", "FilterIOFastIO", "FilterIOInit"];

/// What is not proven of these keywords: a sentence, if anything is.
pub fn unproven<'a>(keywords: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = keywords.filter(|name| UNPROVEN.contains(name)).collect();
    let them = if names.len() == 1 { "it" } else { "them" };
    (!names.is_empty()).then(|| {
        format!(
            "Not proven: {}. The schema of .wprp files and xperf's flags have {them}, no public profile uses {them}, and no Windows was \
             there to try: if wpr refuses {them}, delete the lines or take the format xperf.",
            names.join(", ")
        )
    })
}

/// All keywords, in the order of the published schema.
pub fn keywords() -> &'static [Keyword] {
    &KEYWORDS
}

/// All stacks, in the order of the published schema.
pub fn stacks() -> &'static [Stack] {
    &STACKS
}

/// The keyword of that name in a `.wprp` file.
pub fn keyword(wpr: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|k| k.wpr == wpr)
}

/// The keyword of that kernel flag of `xperf`; letter case does not matter.
pub fn keyword_of_flag(xperf: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|k| k.xperf.is_some_and(|flag| flag.eq_ignore_ascii_case(xperf)))
}

/// The stack of that name in a `.wprp` file.
pub fn stack(wpr: &str) -> Option<&'static Stack> {
    STACKS.iter().find(|s| s.wpr == wpr)
}

/// The stack of that flag of `xperf -stackwalk`; letter case does not matter.
pub fn stack_of_flag(xperf: &str) -> Option<&'static Stack> {
    STACKS.iter().find(|s| s.xperf.is_some_and(|flag| flag.eq_ignore_ascii_case(xperf)))
}

/// The group masks that switch these keywords on.
pub fn masks_of<'a>(keywords: impl IntoIterator<Item = &'a Keyword>) -> [u32; MASKS] {
    let mut masks = [0; MASKS];
    for (mask, bits) in keywords.into_iter().filter_map(|k| k.bits) {
        if let Some(mask) = masks.get_mut(mask) {
            *mask |= bits;
        }
    }
    masks
}

/// The keywords that these group masks switch on, in the order of the schema.
pub fn keywords_of(masks: &[u32]) -> Vec<&'static Keyword> {
    let on = |(mask, bits): (usize, u32)| masks.get(mask).is_some_and(|m| m & bits == bits);
    KEYWORDS.iter().filter(|k| k.bits.is_some_and(on)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_read_and_no_name_or_bit_stands_twice() {
        let count = |text: &'static str| rows(text).count();
        assert_eq!(keywords().len(), count(include_str!("../data/keywords.txt")));
        assert_eq!(stacks().len(), count(include_str!("../data/stacks.txt")));
        let distinct = |names: Vec<&'static str>| names.len() == names.iter().collect::<BTreeSet<_>>().len();
        assert!(distinct(keywords().iter().map(|k| k.wpr).collect()));
        assert!(distinct(keywords().iter().filter_map(|k| k.xperf).collect()));
        assert!(distinct(stacks().iter().map(|s| s.wpr).collect()));
        assert!(distinct(stacks().iter().filter_map(|s| s.xperf).collect()));
        let bits: Vec<(usize, u32)> = keywords().iter().filter_map(|k| k.bits).collect();
        for (at, (mask, a)) in bits.iter().enumerate() {
            assert!(*mask < MASKS);
            assert!(bits.iter().skip(at + 1).all(|(other, b)| other != mask || a & b == 0));
        }
    }

    #[test]
    fn classes_and_types_are_those_that_traces_are_read_with() {
        let layouts = etwhy_decode::kernel::KernelLayouts::builtin();
        for (name, guid) in CLASSES {
            let group = layouts.group_of(guid).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(layouts.group_name(group), Some(*name));
        }
        // What the names of the two sides have in common says that the types are not mixed up.
        let plain = |text: &str| {
            let text = text.replace(['-', '_'], "").to_lowercase();
            let text = ["pagefault", "registry", "handle", "minifilter", "file", "disk", "alpc", "session"]
                .iter()
                .fold(text, |text, word| text.replace(word, ""));
            let aliases = [
                ("systemcallenter", "sysclenter"),
                ("systemcallexit", "sysclexit"),
                ("dirnotification", "dirnotify"),
                ("setinformation", "setinfo"),
                ("queryinformation", "queryinfo"),
                ("fsctl", "fscontrol"),
                ("opend", "operationend"),
                ("transition", "transitionfault"),
                ("demandzero", "demandzerofault"),
                ("av", "accessviolation"),
                ("guard", "guardpagefault"),
                ("virtualallocation", "virtualalloc"),
                ("querykey", "query"),
                ("processcreate", "start"),
                ("processdelete", "end"),
                ("threadcreate", "start"),
                ("threaddelete", "end"),
                ("imageload", "load"),
                ("imageunload", "unload"),
            ];
            aliases.iter().find(|(from, _)| *from == text).map_or(text, |(_, to)| (*to).to_owned())
        };
        let mut seen = BTreeSet::new();
        for (stack, event) in stacks().iter().filter_map(|s| Some((s, s.event?))) {
            assert!(seen.insert(event), "{}: twice", stack.wpr);
            let group = layouts.group_of(&event.class).unwrap();
            let name = layouts.type_name(group, event.kind).unwrap_or_else(|| panic!("{}", stack.wpr));
            let (ours, theirs) = (plain(stack.wpr), plain(name));
            let there = ours.contains(&theirs) || theirs.contains(&ours);
            assert!(there, "{}: type {} is {name} ({ours}, {theirs})", stack.wpr, event.kind);
        }
        for name in crate::profiles().iter().flat_map(|p| &p.stacks) {
            assert!(stack(name).unwrap().event.is_some(), "{name} cannot be started");
        }
    }

    #[test]
    fn names_and_masks_lead_to_each_other() {
        // EVENT_TRACE_FLAG_PROCESS 1, THREAD 2, IMAGE_LOAD 4, CSWITCH 0x10, DISPATCHER 0x800 (evntrace.h);
        // PERF_POOL 0x20000040: bit 0x40 of mask 1 (ntwmi.h).
        let names = ["ProcessThread", "Loader", "CSwitch", "ReadyThread", "Pool"];
        let chosen: Vec<&Keyword> = names.iter().map(|n| keyword(n).unwrap()).collect();
        let masks = masks_of(chosen.iter().copied());
        assert_eq!(masks, [0x817, 0x40, 0, 0, 0, 0, 0, 0]);
        let back: BTreeSet<&str> = keywords_of(&masks).iter().map(|k| k.wpr).collect();
        assert_eq!(back, names.into_iter().collect());
        assert_eq!(keyword("Pool").unwrap().flag_word(), None);
        assert_eq!(keyword_of_flag("dispatcher").unwrap().wpr, "ReadyThread");
        assert_eq!(stack_of_flag("sysclenter"), None);
        assert_eq!(stack_of_flag("syscallenter").unwrap().wpr, "SystemCallEnter");
    }

    #[test]
    fn whatever_bits_are_set_come_back() {
        let all = masks_of(keywords());
        assert_eq!(masks_of(keywords_of(&all)), all);
        assert!(keywords_of(&[]).is_empty());
        // Half of PROC_THREAD is not PROC_THREAD.
        assert!(keywords_of(&[1]).is_empty());
    }

    #[test]
    fn flags_are_those_that_traces_are_read_with() {
        // Where the reader of traces gives the same bit another name than xperf does.
        let aliases = [
            ("CONTMEMGEN", "CONTMEM_GEN"),
            ("IDLE_STATES", "PROCESSOR_IDLE"),
            ("KQUEUE", "KERNEL_QUEUE"),
            ("SYNCOBJECTS", "SYNC_OBJECTS"),
        ];
        for (flag, (mask, bits)) in keywords().iter().filter_map(|k| Some((k.xperf?, k.bits?))) {
            let mut masks = [0; MASKS];
            masks[mask] = bits;
            let names = etwhy_decode::kernel::keyword_names(&masks);
            let expected =
                aliases.iter().find(|(xperf, _)| *xperf == flag).map_or(flag, |(_, reader)| *reader);
            // Bits that no reader of traces needs have no name there.
            assert!(names.is_empty() || names.contains(&expected), "{flag}: {names:?}");
        }
    }
}
