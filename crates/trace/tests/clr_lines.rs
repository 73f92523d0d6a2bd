//! Source lines of .NET methods: maps from machine code to IL in real traces, and the way from an address to a line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use etwhy_decode::Value;
use etwhy_decode::read::Decoded;
use etwhy_decode::schema::EventSchema;
use std::collections::HashMap;
use support::*;

fn numbers(schema: &EventSchema, fields: &Decoded<'_>, name: &str) -> Vec<u64> {
    match fields.get(schema, name) {
        Some(Value::Numbers(numbers)) => numbers.iter().filter_map(|v| v.as_u64()).collect(),
        other => panic!("{name}: {other:?}"),
    }
}

/// All maps of the two traces are complete, and belong to the body that is told of right before them, or right behind them in a
/// rundown at the end: their offsets lie within it.
#[test]
fn maps_of_real_traces_fit_their_methods() {
    let Some(corpus) = corpus() else { return };
    for trace in ["net.4.5.2.x64.etl", "net.4.5.x86_PerfViewData.etl"] {
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
        println!("{trace}: {count:?}");
    }
}
