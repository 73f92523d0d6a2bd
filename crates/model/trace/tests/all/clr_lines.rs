//! Source lines of .NET methods: maps from machine code to IL in real traces, and the way from an address to a line.

use crate::support::written::{Written, shown};
use crate::support::*;
use etwhy_base::Guid;
use etwhy_decode::Value;
use etwhy_decode::read::Decoded;
use etwhy_decode::schema::EventSchema;
use etwhy_etl::write::RecordBuf;
use etwhy_trace::Symbols;
use std::collections::HashMap;

fn numbers(schema: &EventSchema, fields: &Decoded<'_>, name: &str) -> Vec<u64> {
    match fields.get(schema, name) {
        Some(Value::Numbers(numbers)) => numbers.iter().filter_map(|v| v.as_u64()).collect(),
        other => panic!("{name}: {other:?}"),
    }
}

const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
const RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";
const PROCESS: (u32, u32) = (100, 101);
const MODULE: u64 = 0x6000;

fn method<'r>(r: &'r mut RecordBuf, id: u64, start: u64, token: u32, name: &str) -> &'r mut RecordBuf {
    r.u64(id).u64(MODULE).u64(start).u32(0x100).u32(0x0600_0000 | token).u32(8);
    r.utf16z("N.C").utf16z(name).utf16z("void ()")
}

/// Pairs of IL offset and offset in the code.
fn map<'r>(r: &'r mut RecordBuf, id: u64, pairs: &[(i32, u32)]) -> &'r mut RecordBuf {
    r.u64(id).u64(0).u8(0).u16(pairs.len() as u16);
    for pair in pairs {
        r.u32(pair.0 as u32);
    }
    for pair in pairs {
        r.u32(pair.1);
    }
    r.u16(1)
}

/// Two bodies of one method, each with the map behind it, and one method of the rundown at the end, with the map before it.
fn trace(guid: Guid) -> Written {
    let mut t = Written::new();
    t.process(1, 1, PROCESS.0, PROCESS.1, "a.exe").thread(2, 1, PROCESS.0, PROCESS.1);
    t.event_version(3, PROCESS, RUNTIME, (152, 2), |r| {
        r.u64(MODULE).u64(0).u32(0).u32(0).utf16z(r"C:\a\a.dll").utf16z("").u16(1);
        r.guid(guid).u32(1).utf16z(r"D:\build\a.pdb").zeros(16).u32(0).utf16z("")
    });
    t.event(4, PROCESS, RUNTIME, 143, |r| method(r, 0x5000, 0x10000, 1, "First"));
    t.event(5, PROCESS, RUNTIME, 190, |r| map(r, 0x5000, &[(6, 0x20), (-2, 0), (-3, 0xF0), (0, 0x10)]));
    t.event(6, PROCESS, RUNTIME, 143, |r| method(r, 0x5000, 0x20000, 1, "First"));
    t.event(7, PROCESS, RUNTIME, 190, |r| map(r, 0x5000, &[(0, 0), (6, 8)]));
    // Of another method: it says nothing of the body before it.
    t.event(8, PROCESS, RUNTIME, 190, |r| map(r, 0x5555, &[(0, 0)]));
    t.event(100, PROCESS, RUNDOWN, 150, |r| map(r, 0x5100, &[(0, 0), (2, 4)]));
    t.event(101, PROCESS, RUNDOWN, 144, |r| method(r, 0x5100, 0x30000, 3, "Third"));
    t.event(102, PROCESS, RUNDOWN, 144, |r| method(r, 0x5200, 0x40000, 3, "NoMap"));
    let stacks: [&[u64]; 3] =
        [&[0x10020, 0x10020, 0x10021, 0x20008, 0x20009, 0x30003, 0x30005, 0x40005], &[0x10005], &[0x100F0]];
    for (frames, us) in stacks.iter().zip([20, 30, 40]) {
        t.perf(us, 0, 0x0F2E, |r| r.ptr(frames[0]).u32(PROCESS.1).u16(1).u16(0));
        t.stack(us + 1, us, PROCESS, frames);
    }
    t
}

#[test]
fn addresses_of_methods_have_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let pdb = etwhy_testkit::small_pdb::small();
    std::fs::write(folder.path().join("a.pdb"), &pdb).unwrap();
    let with = |guid: [u8; 16]| {
        trace(Guid(guid))
            .pass_with("frame sample stack process", Symbols::new(&[folder.path().to_path_buf()]))
    };
    let mut guid = [0; 16];
    guid.copy_from_slice(&(1..=16).collect::<Vec<u8>>());
    let output = with(guid);
    assert_eq!(ledger_count(&output, "symbols_mismatched"), 0);
    shown(&output, "frame", "address function file line").are(&[
        "65568 N.C.First b.cs 7",
        // The call stands before the address to which it returns.
        r"65568 N.C.First C:\src\a.cs 10",
        "65569 N.C.First b.cs 7",
        r"131080 N.C.First C:\src\a.cs 10",
        "131081 N.C.First b.cs 7",
        "196611 N.C.Third - -",
        "196613 N.C.Third b.cs 300",
        "262149 N.C.NoMap - -",
        // Prolog and epilog.
        "65541 N.C.First - -",
        "65776 N.C.First - -",
    ]);
    guid[0] = 99;
    let output = with(guid);
    assert_eq!(ledger_count(&output, "symbols_mismatched"), 1);
    let frames = shown(&output, "frame", "address function file line");
    assert_eq!(frames.len(), 9, "{frames:?}");
    assert!(frames.iter().all(|frame| frame.ends_with(" - -")), "{frames:?}");
}

/// Maps while the trace ran, maps of the rundown at the end, and their entries: counted by dissect.etl 3.14 and a few lines of
/// Python over the payloads, each of which has the length that its count of entries says.
const MAPS: [(&str, [u64; 3]); 2] =
    [("net.4.5.2.x64.etl", [273, 16_221, 195_311]), ("net.4.5.x86_PerfViewData.etl", [176, 201, 7_450])];

/// All maps of the two traces are complete, and belong to the body that is told of right before them, or right behind them in a
/// rundown at the end: their offsets lie within it.
#[test]
fn maps_of_real_traces_fit_their_methods() {
    let Some(corpus) = corpus() else { return };
    for (trace, [maps, at_end, entries]) in MAPS {
        let path = corpus.join("microsoft+perfview").join(trace);
        // Process, MethodID, ReJITID: size of the last body told of.
        let mut bodies: HashMap<(u32, u64, u64), u64> = HashMap::new();
        let mut waiting: HashMap<u32, ((u32, u64, u64), u64)> = HashMap::new();
        let mut count: HashMap<&str, u64> = HashMap::new();
        walk(&path, |record, _, decoded, _| {
            let Some((schema, fields)) = decoded else { return };
            let Some((_, pid)) = record.tid_pid() else { return };
            let get = |name| fields.get(schema, name).and_then(Value::as_u64);
            let key = || (pid, get("MethodID").unwrap(), get("ReJITID").unwrap_or(0));
            match &*schema.name {
                "Method/LoadVerbose" | "Method/DCStartVerbose" => {
                    bodies.insert(key(), get("MethodSize").unwrap());
                }
                "Method/DCStopVerbose" => {
                    let size = get("MethodSize").unwrap();
                    bodies.insert(key(), size);
                    if let Some((of, last)) = waiting.remove(&pid) {
                        *count.entry("at end").or_default() += 1;
                        *count.entry("at end, fits").or_default() += u64::from(of == key() && last <= size);
                    }
                }
                name if name.contains("ILToNativeMap") => {
                    let il = numbers(schema, fields, "ILOffsets");
                    let native = numbers(schema, fields, "NativeOffsets");
                    let entries = get("CountOfMapEntries").unwrap() as usize;
                    assert_eq!((il.len(), native.len()), (entries, entries));
                    // A method's IL is below 16 MiB, or there is none: -1, -2, -3.
                    assert!(il.iter().all(|&n| n < 1 << 24 || n >= u64::from(u32::MAX) - 2), "{il:?}");
                    let last = native.iter().max().copied().unwrap_or(0);
                    let which = if name.ends_with("DCStop") { "maps at end" } else { "maps" };
                    *count.entry(which).or_default() += 1;
                    *count.entry("entries").or_default() += entries as u64;
                    if which == "maps" {
                        let fits = bodies.get(&key()).is_some_and(|&size| last <= size);
                        *count.entry("fits").or_default() += u64::from(fits);
                    } else {
                        waiting.insert(pid, (key(), last));
                    }
                }
                _ => {}
            }
        });
        let want = [
            ("maps", maps),
            ("fits", maps),
            ("maps at end", at_end),
            ("at end", at_end),
            ("at end, fits", at_end),
            ("entries", entries),
        ];
        assert_eq!(count, HashMap::from(want), "{trace}");
    }
}
