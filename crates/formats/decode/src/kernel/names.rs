//! Names of values that kernel events carry: thread states, wait reasons, flags. Declared in
//! `layouts/enums.txt`.

use super::files::ENUMS;
use crate::schema::ValueMap;
use hashbrown::HashMap;
use std::sync::{Arc, LazyLock};

static MAPS: LazyLock<HashMap<Arc<str>, Arc<ValueMap>>> =
    LazyLock::new(|| parse(ENUMS).0.into_iter().map(|map| (map.name.clone(), Arc::new(map))).collect());

/// The list of that name in `enums.txt`, e.g. `WaitReason`.
pub fn value_map(name: &str) -> Option<&'static Arc<ValueMap>> {
    MAPS.get(name)
}

/// The name of a value in a list that is not a bit mask.
pub fn value_name(map: &str, value: u32) -> Option<&'static str> {
    let map = MAPS.get(map)?;
    if map.bitmap {
        return None;
    }
    map.entries.iter().find(|(v, _)| *v == value).map(|(_, name)| name.as_ref())
}

/// The names of the bits that are set, in the order of the list. Bits without a name are left out.
pub fn bit_names(map: &str, value: u32) -> Vec<&'static str> {
    let Some(map) = MAPS.get(map).filter(|m| m.bitmap) else { return Vec::new() };
    map.entries.iter().filter(|(v, _)| *v != 0 && value & v == *v).map(|(_, name)| name.as_ref()).collect()
}

/// `KTHREAD_STATE`, e.g. `Waiting` for 5.
pub fn thread_state(value: u32) -> Option<&'static str> {
    value_name("ThreadState", value)
}

/// `KWAIT_REASON`, e.g. `UserRequest` for 6.
pub fn wait_reason(value: u32) -> Option<&'static str> {
    value_name("WaitReason", value)
}

/// What an opening of a file asked for, from the CreateOptions of a FileIo/Create: its top byte.
pub fn create_disposition(create_options: u32) -> Option<&'static str> {
    value_name("CreateDisposition", create_options >> 24)
}

/// `IO_PRIORITY_HINT` of a disk request, from its IrpFlags: bits 17 to 19, one more than the hint, 0 when there
/// is none.
pub fn io_priority(irp_flags: u32) -> Option<&'static str> {
    value_name("IoPriority", irp_flags >> 17 & 7)
}

/// Parses the text form. Returns the lists and the lines that make no sense.
pub(super) fn parse(text: &str) -> (Vec<ValueMap>, Vec<String>) {
    let mut maps: Vec<ValueMap> = Vec::new();
    let mut bad = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let parsed = line.split_once(' ').and_then(|(first, rest)| {
            let name: Arc<str> = rest.trim().into();
            match first {
                "values" | "bits" => {
                    maps.push(ValueMap { name, bitmap: first == "bits", entries: Vec::new() });
                }
                _ => maps.last_mut()?.entries.push((number(first)?, name)),
            }
            Some(())
        });
        if parsed.is_none() {
            bad.push(line.to_string());
        }
    }
    (maps, bad)
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_parses_and_no_value_is_named_twice() {
        let (maps, bad) = parse(ENUMS);
        assert!(bad.is_empty(), "{bad:?}");
        for map in &maps {
            let mut values: Vec<u32> = map.entries.iter().map(|e| e.0).collect();
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), map.entries.len(), "{}", map.name);
        }
        let mut names: Vec<&str> = maps.iter().map(|m| m.name.as_ref()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), maps.len());
    }

    #[test]
    fn values_and_bits_have_names() {
        assert_eq!(thread_state(5), Some("Waiting"));
        assert_eq!(wait_reason(0), Some("Executive"));
        assert_eq!(wait_reason(42), Some("WrRcu"));
        assert_eq!(wait_reason(43), None);
        assert_eq!(value_name("ReadyThreadFlags", 1), None);
        assert_eq!(bit_names("ReadyThreadFlags", 0x89), ["InDpc", "DirectSwitch"]);
        assert_eq!(bit_names("ProcessFlags", 2), ["Wow64"]);
        assert_eq!(create_disposition(0x0100_0060), Some("FILE_OPEN"));
        assert_eq!(io_priority(3 << 17 | 1), Some("Normal"));
        assert!(bit_names("NoSuchMap", 1).is_empty());
        assert_eq!(parse("1 lost\nvalues A\nx y\n7 B\nz").1, ["1 lost", "x y", "z"]);
    }
}
