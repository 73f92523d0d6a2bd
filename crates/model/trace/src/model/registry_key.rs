//! Registry keys by the address of their key control block (KCB), which events call `KeyHandle`.
//!
//! An operation names the KCB that it starts from and, for creates and opens, the rest of the path; KCB 0 means
//! that the rest is the whole path. The path of a KCB is told when it is made (KCBCreate), when it goes
//! (KCBDelete), and in the rundowns at the begin and the end of a session. Addresses are reused. A KCB that is
//! used before anything names it therefore takes the name of the next record about it, unless that record makes a
//! new KCB at the address.

use crate::event::fields::Event;
use crate::event::select::{Select, What};
use etwhy_decode::kernel::events::Registry;
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;
use std::borrow::Cow;

const CREATE: u8 = Registry::KCBCreate.opcode;
const DELETE: u8 = Registry::KCBDelete.opcode;
const RUNDOWN: u8 = Registry::KCBRundownEnd.opcode;

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(Registry::KCBCreate, FIELDS),
    Select::kernel(Registry::KCBDelete, FIELDS),
    Select::with(What::Kernel(Registry::KCBRundownBegin), RUNDOWN, FIELDS),
    Select::kernel(Registry::KCBRundownEnd, FIELDS),
];

/// In version 1 the Index stands between the handle and the name.
const FIELDS: &[&str] = &["KeyHandle", "Index"];

/// A KCB from its creation to its end.
#[derive(Clone, Copy, Debug)]
struct Key {
    /// Native path.
    path: Option<Sym>,
}

/// What operations name: a KCB and the rest of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyPath {
    key: Option<u32>,
    rest: Sym,
}

/// All keys that were named or used.
#[derive(Clone, Debug, Default)]
pub struct RegistryKeys {
    all: Vec<Key>,
    by_kcb: HashMap<u64, u32>,
    pub(crate) paths: Vec<KeyPath>,
    known: HashMap<KeyPath, u32>,
}

impl RegistryKeys {
    fn at(&mut self, kcb: u64) -> Option<u32> {
        if kcb == 0 {
            return None;
        }
        Some(self.by_kcb.get(&kcb).copied().unwrap_or_else(|| self.add(kcb, None)))
    }

    fn add(&mut self, kcb: u64, path: Option<Sym>) -> u32 {
        let key = self.all.len() as u32;
        self.all.push(Key { path });
        self.by_kcb.insert(kcb, key);
        key
    }

    /// A record about a KCB.
    fn named(&mut self, tag: u8, kcb: u64, path: Option<Sym>) {
        let current = self.by_kcb.get(&kcb).and_then(|&k| self.all.get_mut(k as usize));
        match (tag, current) {
            (CREATE, _) | (_, None) => {
                self.add(kcb, path);
            }
            (_, Some(key)) if key.path.is_none() => key.path = path,
            (_, Some(key)) if path.is_some() && key.path != path => {
                self.add(kcb, path);
            }
            _ => {}
        }
        if tag == DELETE {
            self.by_kcb.remove(&kcb);
        }
    }

    /// The number of a path: the KCB's at this moment with the rest behind it. Rows hold it until the end of the
    /// pass, see [`Finish::keys_of`].
    pub(crate) fn path(&mut self, kcb: u64, rest: Sym) -> u32 {
        let path = KeyPath { key: self.at(kcb), rest };
        let paths = &mut self.paths;
        *self.known.entry(path).or_insert_with(|| {
            paths.push(path);
            (paths.len() - 1) as u32
        })
    }

    /// A path as people write it, `None` if nothing of it is known.
    pub(crate) fn text(&self, path: u32, strings: &Strings) -> Option<String> {
        let KeyPath { key, rest } = *self.paths.get(path as usize)?;
        let rest = strings.get(rest);
        let base = key.map(|key| self.all.get(key as usize).and_then(|key| key.path));
        let whole = is_native(rest);
        match base {
            Some(Some(base)) if !whole => {
                let base = strings.get(base).trim_end_matches('\\');
                let rest = rest.trim_start_matches('\\');
                let base = if rest.is_empty() { Cow::Borrowed(base) } else { without_middle(base) };
                let separator = if rest.is_empty() { "" } else { "\\" };
                Some(short(&format!("{base}{separator}{rest}")))
            }
            Some(None) if !whole && rest.is_empty() => None,
            Some(None) if !whole => Some(format!("[unknown]\\{}", rest.trim_start_matches('\\'))),
            _ if rest.is_empty() => None,
            _ => Some(short(rest)),
        }
    }

    /// Paths that are shown without their middle.
    pub(crate) fn shortened(&self, strings: &Strings) -> u64 {
        let long = |path: &&KeyPath| {
            let base = path.key.and_then(|key| self.all.get(key as usize)?.path);
            path.rest != Sym::EMPTY && base.is_some_and(|base| strings.get(base).len() > MOST_BASE)
        };
        self.paths.iter().filter(long).count() as u64
    }

    /// Keys that operations used and nobody named.
    pub(crate) fn unnamed(&self) -> u64 {
        let mut used: Vec<u32> = self.paths.iter().filter_map(|path| path.key).collect();
        used.sort_unstable();
        used.dedup();
        let nameless = |key: &&u32| self.all.get(**key as usize).is_some_and(|key| key.path.is_none());
        used.iter().filter(nameless).count() as u64
    }
}

/// The root of all keys in the kernel's names.
const ROOT: &str = "\\REGISTRY\\";

/// Bytes of a key's path before that of an operation. Real ones have some hundred. A trace that names one key by
/// 60,000 and opens thousands below it would make a text of that length for each.
const MOST_BASE: usize = 512;

/// A path that is too long, with `…` in its middle.
fn without_middle(path: &str) -> Cow<'_, str> {
    if path.len() <= MOST_BASE {
        return Cow::Borrowed(path);
    }
    let (mut head, mut tail) = (MOST_BASE / 2, path.len() - MOST_BASE / 2);
    while !path.is_char_boundary(head) {
        head -= 1;
    }
    while !path.is_char_boundary(tail) {
        tail += 1;
    }
    Cow::Owned(format!("{}…{}", path.get(..head).unwrap_or(""), path.get(tail..).unwrap_or("")))
}

fn is_native(path: &str) -> bool {
    path.get(..ROOT.len()).is_some_and(|start| start.eq_ignore_ascii_case(ROOT))
}

/// `\REGISTRY\MACHINE\…` as `HKLM\…`, `\REGISTRY\USER\…` as `HKU\…`, others as they are.
fn short(native: &str) -> String {
    for (long, name) in [("\\REGISTRY\\MACHINE", "HKLM"), ("\\REGISTRY\\USER", "HKU")] {
        let rest = native.get(long.len()..).filter(|rest| rest.is_empty() || rest.starts_with('\\'));
        if let (Some(start), Some(rest)) = (native.get(..long.len()), rest)
            && start.eq_ignore_ascii_case(long)
        {
            return format!("{name}{rest}");
        }
    }
    native.to_owned()
}

pub(crate) fn event(event: &Event<'_>, keys: &mut RegistryKeys, strings: &mut Strings) {
    let Some(kcb) = event.u64(0).filter(|&kcb| kcb != 0) else { return };
    let old = event.record.version() < 2;
    let path = event.text_after(usize::from(old));
    let path = strings.intern_non_empty(path.trim_end_matches('\\'));
    // Version 1 knows type 22 only, and means a name that is told when a handle is first used.
    let tag = if old { RUNDOWN } else { event.tag };
    keys.named(tag, kcb, path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_reach_back_but_not_over_a_create() {
        let mut strings = Strings::new();
        let mut path = |text: &str| Some(strings.intern(text));
        let (a, b) = (path("\\REGISTRY\\MACHINE\\A"), path("\\REGISTRY\\USER\\S-1-5-18\\B"));
        let c = path("\\REGISTRY\\MACHINE\\C");
        let sub = path("Sub\\Key").unwrap();
        let mut keys = RegistryKeys::default();
        let early = keys.path(9, Sym::EMPTY);
        let open = keys.path(9, sub);
        assert_eq!(keys.path(9, sub), open);
        assert_eq!(keys.text(open, &strings).as_deref(), Some("[unknown]\\Sub\\Key"));
        assert_eq!(keys.text(early, &strings), None);
        assert_eq!(keys.unnamed(), 1);
        // A delete names what was used before it.
        keys.named(DELETE, 9, a);
        assert_eq!(keys.text(early, &strings).as_deref(), Some("HKLM\\A"));
        assert_eq!(keys.text(open, &strings).as_deref(), Some("HKLM\\A\\Sub\\Key"));
        // The address is used again, twice; a create in between hides the rundown from the first.
        let lost = keys.path(9, Sym::EMPTY);
        keys.named(CREATE, 9, b);
        let second = keys.path(9, Sym::EMPTY);
        keys.named(RUNDOWN, 9, b);
        keys.named(RUNDOWN, 9, c);
        let third = keys.path(9, Sym::EMPTY);
        assert_eq!(keys.text(lost, &strings), None);
        assert_eq!(keys.text(second, &strings).as_deref(), Some("HKU\\S-1-5-18\\B"));
        assert_eq!(keys.text(third, &strings).as_deref(), Some("HKLM\\C"));
        assert_eq!(keys.unnamed(), 1);
    }

    #[test]
    fn a_whole_path_needs_no_key() {
        let mut strings = Strings::new();
        let whole = strings.intern("\\Registry\\Machine\\SOFTWARE");
        let mut keys = RegistryKeys::default();
        let (without, with) = (keys.path(0, whole), keys.path(7, whole));
        assert_eq!(keys.text(without, &strings).as_deref(), Some("HKLM\\SOFTWARE"));
        assert_eq!(keys.text(with, &strings).as_deref(), Some("HKLM\\SOFTWARE"));
        assert_eq!(short("\\REGISTRY\\MACHINERY\\x"), "\\REGISTRY\\MACHINERY\\x");
        assert_eq!(short("\\REGISTRY\\A\\{1}"), "\\REGISTRY\\A\\{1}");
        assert_eq!(short("\\REGISTRY\\MACHINE"), "HKLM");
    }

    #[test]
    fn a_long_key_is_not_repeated_for_each_that_is_opened_below_it() {
        let mut strings = Strings::new();
        let long = strings.intern(&format!("\\REGISTRY\\MACHINE\\{}", "ü".repeat(20_000)));
        let rest = strings.intern("Sub");
        let mut keys = RegistryKeys::default();
        keys.named(RUNDOWN, 9, Some(long));
        let (whole, below) = (keys.path(9, Sym::EMPTY), keys.path(9, rest));
        assert_eq!(keys.text(whole, &strings).map(|t| t.len()), Some(40_005));
        let text = keys.text(below, &strings).unwrap();
        assert!(text.len() < 600 && text.starts_with("HKLM\\üü") && text.ends_with("ü\\Sub"), "{text}");
        assert_eq!(keys.shortened(&strings), 1);
    }
}
