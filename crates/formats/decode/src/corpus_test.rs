//! The decoder on real traces: which records are described, and whether payloads fit their layouts.

use crate::format::to_json;
use crate::read::read;
use crate::schema::DecodedBy;
use crate::testing::corpus;
use crate::{Decoder, DecoderOptions, EventTypes};
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_etl::{Ledger, Record};
use std::collections::BTreeMap;
use std::path::Path;

/// Calls back with every record of a trace after the decoder has seen all of them.
fn with_trace(path: &Path, mut each: impl FnMut(&Record<'_>, &mut Decoder)) -> (Decoder, Ledger) {
    let files = [EtlFile::open(path, path, &OpenOptions::default()).unwrap()];
    let mut ledger = Ledger::new();
    let timeline = Timeline::read(&files, &mut ledger);
    let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
    let mut learnt = Ledger::new();
    Walk::new(&files, &timeline).for_each(&mut ledger, |record, _| decoder.observe(record, &mut learnt));
    Walk::new(&files, &timeline).for_each(&mut ledger, |record, _| each(record, &mut decoder));
    (decoder, learnt)
}

/// JSON of the events whose name contains `name`.
fn json_of(trace: &str, name: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    with_trace(&corpus()?.join("etl").join(trace), |record, decoder| {
        if let Some((schema, decoded)) = decoder.decode(record)
            && schema.name.contains(name)
        {
            let mut out = String::new();
            to_json(&mut out, &schema, &decoded);
            found.push(out);
        }
    });
    Some(found)
}

#[derive(Default)]
struct Fit {
    exact: u64,
    short: u64,
    rest: u64,
    none: u64,
}

/// Every user event of the corpus: described and exact, but for the few that are listed here.
#[test]
fn payloads_fit_their_layouts() {
    let Some(corpus) = corpus() else { return };
    let mut odd: BTreeMap<String, u64> = BTreeMap::new();
    let mut by: BTreeMap<&str, u64> = BTreeMap::new();
    for path in crate::files::find(&corpus.join("etl"), &["etl"], 1000, &mut Ledger::new()) {
        if path.to_string_lossy().contains("syzygy") {
            // Kernel classes with payloads put together by hand; see the tests of `kernel`.
            continue;
        }
        let mut types = EventTypes::new();
        let mut fits: Vec<Fit> = Vec::new();
        let (decoder, ledger) = with_trace(&path, |record, decoder| {
            let index = types.index(record) as usize;
            if record.kind.is_system() {
                return;
            }
            fits.resize_with(fits.len().max(index + 1), Fit::default);
            let schema = decoder.schema(record).filter(|s| s.decoded_by != DecodedBy::None);
            match schema.as_deref().map(|s| read(s, record.payload(), record.pointer_size())) {
                None => fits[index].none += 1,
                Some(decoded) if decoded.truncated => fits[index].short += 1,
                Some(decoded) if !decoded.rest.is_empty() => fits[index].rest += 1,
                Some(_) => fits[index].exact += 1,
            }
        });
        assert!(ledger.is_empty(), "{}: {ledger:?}", path.display());
        for (index, fit) in fits.iter().enumerate() {
            let info = types.describe(index as u32, &decoder).unwrap();
            *by.entry(info.decoded_by.name()).or_default() += fit.exact + fit.short + fit.rest + fit.none;
            for (what, n) in [("short", fit.short), ("rest", fit.rest), ("none", fit.none)] {
                if n > 0 {
                    *odd.entry(format!("{what} {} {}", info.provider, info.name)).or_default() += n;
                }
            }
        }
    }
    println!("{by:?}\n{odd:#?}");
    // No manifest of HTTP.SYS ships, and no TMF files. Histories of old CLRs are C structures; PerfView's
    // own event has 4 bytes that its manifest does not tell of. EventMetadata is read by `observe`.
    let known = |line: &str| {
        line.starts_with("none Microsoft-Windows-HttpService ")
            || line.starts_with("none 2818ef08-6a54-396f-2244-5a6ea4a98cf0 Message")
            || line.starts_with("none KernelTraceControl")
            || line.starts_with("none PerfTrack")
            || line.starts_with("none WinSAT")
            || line.starts_with("none Microsoft-Windows-Kernel-EventTracing StackTrace")
            || line == "none Microsoft-Windows-DotNETRuntimePrivate GC/PerHeapHistory"
            || line == "rest PerfView ClrEnableParameters"
    };
    let unknown: Vec<_> = odd.iter().filter(|(line, _)| !known(line)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(by["manifest"] > 100_000 && by["metadata"] > 60_000 && by["tracelogging"] > 13_000, "{by:?}");
}

/// Which of the layouts that ship occur in the corpus and fit; the `seen` lines say the same.
#[test]
fn shipped_layouts_that_were_seen_are_marked() {
    let Some(corpus) = corpus() else { return };
    let mut fits: BTreeMap<(String, u16, u8), (bool, bool)> = BTreeMap::new();
    for path in crate::files::find(&corpus.join("etl"), &["etl"], 1000, &mut Ledger::new()) {
        with_trace(&path, |record, _| {
            let Some(guid) = record.guid().filter(|_| record.kind.is_event()) else { return };
            let version = record.version() as u8;
            let shipped = crate::builtin::manifests().schema(guid, record.id(), version, record.opcode());
            let Some(shipped) = shipped.filter(|s| s.decoded_by != DecodedBy::None) else { return };
            let decoded = read(shipped, record.payload(), record.pointer_size());
            let fit = fits
                .entry((shipped.provider.to_string(), record.id(), version))
                .or_insert((true, shipped.verified));
            fit.0 &= !decoded.truncated && decoded.rest.is_empty();
        });
    }
    let mut wrong: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((provider, id, version), (fits, marked)) in &fits {
        if fits != marked {
            wrong.entry(provider).or_default().push(format!("{id}.{version}"));
        }
    }
    let lines: Vec<String> = wrong.iter().map(|(p, ids)| format!("{p}: seen {}", ids.join(" "))).collect();
    assert!(wrong.is_empty(), "{}", lines.join("\n"));
}

/// The layouts that ship against descriptions that Windows put into the traces.
#[test]
fn shipped_layouts_agree_with_embedded_metadata() {
    let Some(corpus) = corpus() else { return };
    let mut compared: BTreeMap<String, u64> = BTreeMap::new();
    for path in crate::files::find(&corpus.join("etl"), &["etl"], 1000, &mut Ledger::new()) {
        with_trace(&path, |record, decoder| {
            if !record.kind.is_event() {
                return;
            }
            let Some(provider) = record.guid() else { return };
            let version = record.version() as u8;
            let shipped = crate::builtin::manifests().schema(provider, record.id(), version, record.opcode());
            let Some(shipped) = shipped.filter(|s| s.decoded_by != DecodedBy::None) else { return };
            let Some(schema) = decoder.schema(record).filter(|s| s.decoded_by == DecodedBy::Metadata) else {
                return;
            };
            let theirs = read(&schema, record.payload(), record.pointer_size());
            let ours = read(shipped, record.payload(), record.pointer_size());
            let key = format!("{} {} v{version}", schema.provider, schema.name);
            assert_eq!(ours.truncated, theirs.truncated, "{key}");
            assert_eq!(ours.rest, theirs.rest, "{key}");
            assert_eq!(ours.values.len(), theirs.values.len(), "{key}");
            for ((a, b), field) in ours.values.iter().zip(&theirs.values).zip(&shipped.fields) {
                assert_eq!(a.as_u64(), b.as_u64(), "{key} {}", field.name);
                assert_eq!(a.as_text(), b.as_text(), "{key} {}", field.name);
            }
            *compared.entry(key).or_default() += 1;
        });
    }
    println!("{compared:#?}");
    assert!(compared.len() >= 25, "{compared:#?}");
}

#[test]
fn self_describing_events_of_a_native_writer() {
    let Some(events) = json_of("microsoft+perfview/primitive-types.etl", "PrimitiveTypesTest") else {
        return;
    };
    assert_eq!(events.len(), 5);
    // int64_type is declared as UInt64 by its writer; times are local times that its writer stored.
    assert_eq!(
        events[0],
        r#"{"string_type":"Mercury","boolean_type":false,"char_type":"M","int16_type":-51,"int32_type":-102,"uint16_type":51,"uint32_type":102,"int64_type":18446744073709551412,"uint64_type":204,"guid_type":"0ad614c4-0ef4-4225-8013-f44f37cb0397","file_time_type":"2021-09-09T14:59:35.7990000Z","system_time_type":"2021-09-09T14:59:35.799Z"}"#
    );
    assert!(
        events[4]
            .starts_with(r#"{"string_type":"Jupiter","boolean_type":true,"char_type":"J","int16_type":-69"#)
    );
}

#[test]
fn self_describing_events_of_event_source() {
    let trace = "Siemens-Healthineers+ETWAnalyzer/TraceLoggingTester.etl";
    let Some(events) = json_of(trace, "Mark") else { return };
    assert_eq!(
        events.iter().filter(|e| **e == r#"{"input":"Hello, ETW with number","number1":42}"#).count(),
        10
    );
    let all = r#"{"boolean":true,"b":1,"c":"A","d":3.14,"i16":-32768,"i32":2147483647,"i64":9223372036854775807,"sb":-128,"u16":65535,"u32":4294967295,"u64":18446744073709551615}"#;
    assert!(events.iter().any(|e| e == all), "{events:#?}");
    let writes = json_of(trace, "Write").unwrap();
    for wanted in [
        r#"{"numbers":[5,2,3,4]}"#,
        r#"{"dateTime":"2000-01-01T00:00:00.0000000Z"}"#,
        r#"{"timeSpan":420000000}"#,
        r#"{"guid":"00000000-0000-0000-0000-000000000001"}"#,
    ] {
        assert!(writes.iter().any(|e| e == wanted), "{wanted} in {writes:#?}");
    }
}

#[test]
fn runtime_events_without_metadata() {
    let trace = "microsoft+perfview/gcevents.PerfViewData.etl";
    let Some(events) = json_of(trace, "GC/GlobalHeapHistory") else { return };
    // Values as in PerfView's baseline of the same trace.
    assert!(
        events[0].starts_with(
            r#"{"FinalYoungestDesired":4677560,"NumHeaps":1,"CondemnedGeneration":1,"Gen0ReductionCount":0,"Reason":"Induced","GlobalMechanisms":"Compaction|Promotion"#
        ),
        "{}",
        events[0]
    );
    let buckets = json_of(trace, "GC/FitBucketInfo").unwrap();
    assert!(buckets[0].starts_with(r#"{"ClrInstanceID":8,"BucketKind":1,"TotalSize":310848,"Count":9,"#));
}

#[test]
fn embedded_event_source_manifests() {
    let Some(events) = json_of("microsoft+Tx/BondEtwSample.v2.etl", "WriteManifestPayload") else { return };
    assert!(
        events[0].contains(r#""inputProtocol":"BondManifest","source":"BondEtwObserver""#),
        "{}",
        events[0]
    );
}
