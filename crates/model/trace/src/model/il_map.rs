//! Which IL instruction of a .NET method its machine code comes from (`MethodILToNativeMap`), and which PDB has the method's
//! source lines.
//!
//! A map names its method by `MethodID` and `ReJITID`, not by address, and a method may be compiled several times (tiered
//! compilation). The runtime writes the map right behind the `MethodLoadVerbose` or `MethodDCStartVerbose` that it belongs to, and
//! right before a `MethodDCEndVerbose` (`ETW::MethodLog::SendEventsForJitMethodsHelper`, dotnet/runtime); so it is given to that
//! body, if its offsets fit into it. Code that was compiled ahead of time has no maps.

use super::clr::{Methods, RUNDOWN, RUNTIME};
use super::image::PdbId;
use super::process::Processes;
use crate::anomalies::{IL_MAPS_BEYOND_LIMIT, PAYLOAD_TOO_SHORT};
use crate::event::fields::{Event, Fields};
use crate::event::select::{Select, What};
use etwhy_decode::Value;
use etwhy_etl::Ledger;
use etwhy_table::Strings;
use foldhash::HashMap;

const METHOD: u8 = 1;
const METHOD_AT_END: u8 = 2;
const MAP: u8 = 3;
const MAP_AT_END: u8 = 4;
const MODULE: u8 = 5;

/// Ids and layouts: `ClrEtwAll.man` (dotnet/runtime).
pub(crate) const SELECTS: &[Select] = &[
    Select::new(What::Manifest(RUNTIME, 143), METHOD),
    Select::new(What::Manifest(RUNTIME, 190), MAP),
    Select::new(What::Manifest(RUNDOWN, 143), METHOD),
    Select::new(What::Manifest(RUNDOWN, 144), METHOD_AT_END),
    Select::new(What::Manifest(RUNDOWN, 149), MAP),
    Select::new(What::Manifest(RUNDOWN, 150), MAP_AT_END),
    Select::new(What::Manifest(RUNTIME, 152), MODULE),
    Select::new(What::Manifest(RUNTIME, 153), MODULE),
    Select::new(What::Manifest(RUNDOWN, 153), MODULE),
    Select::new(What::Manifest(RUNDOWN, 154), MODULE),
];

/// Entries that are kept: 128 MiB. Real traces of large services have some hundred thousand.
const MAX_ENTRIES: usize = 16 << 20;
/// Modules and bodies that are remembered: more is damage.
const MAX_KNOWN: usize = 4_000_000;

/// Process, `MethodID` and `ReJITID`.
type MethodKey = (u32, u64, u64);

/// Offsets in the machine code, ascending, and the IL offset of each; that is negative for code that comes from none (-1), the
/// prolog (-2) and the epilog (-3).
type Entries = Vec<(u32, i32)>;

/// The maps of all methods.
#[derive(Clone, Debug, Default)]
pub struct IlMaps {
    entries: Entries,
    /// First and last entry by number of the method.
    of_method: HashMap<u32, (usize, usize)>,
    /// Token and module of each method.
    tokens: HashMap<u32, (u32, u64)>,
    /// The last body told of, by method.
    latest: HashMap<MethodKey, u32>,
    /// A map whose method comes next, by process.
    pending: HashMap<u32, (MethodKey, Entries)>,
    /// PDB of the managed code of modules, by process and `ModuleID`.
    pdbs: HashMap<(u32, u64), PdbId>,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IlPlace {
    /// The assembly's PDB.
    pub pdb: PdbId,
    /// Token of the method.
    pub token: u32,
    /// Offset in its IL.
    pub il_offset: u32,
}

impl IlMaps {
    /// Where the instruction at an offset of the code of a method (by number) comes from, if the runtime has told.
    pub fn place(&self, upid: u32, method: u32, offset: u64) -> Option<IlPlace> {
        let &(from, to) = self.of_method.get(&method)?;
        let il_offset = il_offset(self.entries.get(from..to)?, offset)?;
        let &(token, module) = self.tokens.get(&method)?;
        let &pdb = self.pdbs.get(&(upid, module))?;
        Some(IlPlace { pdb, token, il_offset })
    }

    /// False if it is one too many.
    fn give(&mut self, method: u32, size: u32, map: &[(u32, i32)]) -> bool {
        // The rundown repeats what the compilation said; offsets behind the end are those of another body.
        if self.of_method.contains_key(&method) || map.last().is_none_or(|last| last.0 > size) {
            return true;
        }
        let from = self.entries.len();
        if from.saturating_add(map.len()) > MAX_ENTRIES {
            return false;
        }
        self.entries.extend_from_slice(map);
        self.of_method.insert(method, (from, self.entries.len()));
        true
    }
}

/// The IL offset at an offset of the code, by the last entry at or before it; `None` where that says that there is none.
fn il_offset(map: &[(u32, i32)], offset: u64) -> Option<u32> {
    let behind = map.partition_point(|entry| u64::from(entry.0) <= offset);
    u32::try_from(map.get(behind.checked_sub(1)?)?.1).ok()
}

pub(crate) fn event(
    event: &Event<'_>,
    maps: &mut IlMaps,
    methods: &Methods,
    processes: &mut Processes,
    strings: &mut Strings,
    ledger: &mut Ledger,
) {
    let fields = event.fields();
    let Some(pid) = event.pid() else { return };
    let upid = processes.at(pid, event.ns);
    let key = (upid, fields.u64("MethodID"), fields.u64("ReJITID"));
    let kept = match event.tag {
        MODULE => {
            module(upid, &fields, maps, strings);
            return;
        }
        METHOD | METHOD_AT_END => method(event.tag, key, &fields, maps, methods),
        tag => {
            let Some(map) = entries(&fields) else {
                ledger.count(&PAYLOAD_TOO_SHORT, 1);
                return;
            };
            if tag == MAP_AT_END {
                maps.pending.insert(upid, (key, map));
                return;
            }
            let latest = maps.latest.get(&key).copied();
            let size = latest.and_then(|m| methods.all().get(m as usize)).map(|m| m.size);
            latest.zip(size).is_none_or(|(number, size)| maps.give(number, size, &map))
        }
    };
    if !kept {
        ledger.count(&IL_MAPS_BEYOND_LIMIT, 1);
    }
}

fn method(tag: u8, key: MethodKey, fields: &Fields<'_>, maps: &mut IlMaps, methods: &Methods) -> bool {
    // The tracker of methods has seen the event before.
    let Some(number) = methods.number(key.0, fields.u64("MethodStartAddress"), key.1) else {
        return true;
    };
    let size = methods.all().get(number as usize).map_or(0, |m| m.size);
    if maps.tokens.len() < MAX_KNOWN {
        maps.tokens.insert(number, (fields.u64("MethodToken") as u32, fields.u64("ModuleID")));
        maps.latest.insert(key, number);
    }
    if tag != METHOD_AT_END {
        return true;
    }
    let pending = maps.pending.remove(&key.0).filter(|(of, _)| *of == key);
    pending.is_none_or(|(_, map)| maps.give(number, size, &map))
}

fn module(upid: u32, fields: &Fields<'_>, maps: &mut IlMaps, strings: &mut Strings) {
    let name = strings.intern_non_empty(&fields.text("ManagedPdbBuildPath"));
    let (Some(name), Some(guid)) = (name, fields.guid("ManagedPdbSignature")) else { return };
    let pdb = PdbId { name, guid, age: fields.u32("ManagedPdbAge").unwrap_or(0) };
    if maps.pdbs.len() < MAX_KNOWN {
        maps.pdbs.insert((upid, fields.u64("ModuleID")), pdb);
    }
}

/// Of several entries at one place all but the last have no code; real offsets go before special ones.
fn entries(fields: &Fields<'_>) -> Option<Entries> {
    let numbers = |name| match fields.get(name) {
        Some(Value::Numbers(numbers)) => Some(*numbers),
        _ => None,
    };
    let (il, native) = (numbers("ILOffsets")?, numbers("NativeOffsets")?);
    let number = |value: Value<'_>| value.as_u64().map(|n| n as u32);
    let pairs = native.iter().zip(il.iter());
    let mut map: Entries = pairs.filter_map(|(n, i)| Some((number(n)?, number(i)? as i32))).collect();
    map.sort_unstable();
    Some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_before_tells_the_offset() {
        // Prolog, IL 0 from 4, nothing from IL 7 (its code begins where that of IL 9 does), no mapping, epilog.
        let map = [(0, -2), (4, 0), (12, 7), (12, 9), (30, -1), (40, -3)];
        let at = |offset| il_offset(&map, offset);
        assert_eq!([at(0), at(3), at(4), at(11)], [None, None, Some(0), Some(0)]);
        assert_eq!([at(12), at(29), at(30), at(40), at(u64::MAX)], [Some(9), Some(9), None, None, None]);
        assert_eq!(il_offset(&[], 0), None);
        assert_eq!(il_offset(&[(4, 0)], 3), None);
    }

    #[test]
    fn a_map_is_given_once_and_to_a_body_that_it_fits() {
        let mut maps = IlMaps::default();
        assert!(maps.give(0, 10, &[(0, 0), (11, 4)]) && maps.of_method.is_empty());
        assert!(maps.give(0, 11, &[(0, 0), (11, 4)]) && maps.give(0, 11, &[(0, 9)]));
        assert_eq!((maps.entries.len(), maps.of_method.get(&0)), (2, Some(&(0, 2))));
    }
}
