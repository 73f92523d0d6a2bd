//! What the scenario writer lays out by hand, read by the reader and measured against the kernel layouts.

use crate::EVERYTHING;
use etwhy_decode::kernel::{KernelLayouts, measure};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_synth::{Scenario, write};
use std::collections::BTreeMap;

/// Payloads that differ from their layout: (event, version, length, covered) to count.
type Misfits = BTreeMap<(String, u16, usize, usize), u64>;

fn read_back(text: &str, name: &str) -> Misfits {
    let folder = std::env::temp_dir().join(format!("etwhy-layouts-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.join("out.etl");
    let report = write(&Scenario::parse(text, name).unwrap(), &out, &mut |_| ()).unwrap();
    let mut ledger = Ledger::new();
    let files = vec![EtlFile::open(&out, &out, &OpenOptions::default()).unwrap()];
    let timeline = Timeline::read(&files, &mut ledger);
    let layouts = KernelLayouts::builtin();
    let mut misfits = Misfits::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut last = i64::MIN;
    Walk::new(&files, &timeline).for_each(&mut ledger, |record, _| {
        assert!(record.ticks >= last, "records come in time order");
        last = record.ticks;
        let (group, op, version) = (record.group(), record.opcode(), record.version());
        let key = match record.guid() {
            Some(guid) if record.kind.is_event() => format!("event/{guid}/{}/{op}", record.id()),
            Some(guid) => format!("classic/{guid}/{op}"),
            None => format!("kernel/{group}/{op}"),
        };
        *counts.entry(key).or_default() += 1;
        let schema = match record.guid() {
            Some(guid) if record.kind.is_classic() => layouts.class_schema(&guid, op, version),
            Some(_) => return,
            None => layouts.schema(group, op, version),
        };
        let (payload, pointer) = (record.payload(), record.pointer_size());
        match schema {
            Some(schema) => {
                let m = measure(schema, pointer, payload);
                if m.short.is_some() || m.consumed != payload.len() {
                    *misfits
                        .entry((schema.name.to_string(), version, payload.len(), m.consumed))
                        .or_default() += 1;
                }
            }
            None => *misfits.entry((format!("no layout: {group}/{op}"), version, 0, 0)).or_default() += 1,
        }
    });
    assert_eq!(counts, report.events, "{name}: the reader counts what was written");
    std::fs::remove_dir_all(folder).unwrap();
    misfits
}

#[test]
fn every_payload_fits_its_layout() {
    for (name, more) in
        [("wide", ""), ("narrow", "pointer_size = 4"), ("packed", "compressed = true\nstack_style = 'keys'")]
    {
        let misfits = read_back(&EVERYTHING.replacen("cpus = 4", &format!("cpus = 4\n{more}"), 1), name);
        assert!(misfits.is_empty(), "{name}: {misfits:#?}");
    }
}
