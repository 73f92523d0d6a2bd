//! What a cost is said to be where samples are missing: at least what was seen, and a range only where the losses are spread.

use crate::{ETWHY, Json as _, Str as _};
use etwhy_base::rng::Xoshiro;
use serde_json::Value;
use std::path::Path;

const FINDING: &str = "security.driver-hot-path";

/// A scanner that works in bouts of a few hundred milliseconds, beside steady work.
fn scenario(seed: u64) -> String {
    format!(
        r#"
[machine]
cpus = 4
duration = "10s"
buffer_size = "4KB"
seed = {seed}

[[process]]
name = "build.exe"
threads = ["main", "steady*2"]

[[samples]]
process = "build.exe"
thread = "main"
busy = 1
burst = {{ on = "{}ms", off = "{}ms" }}
stack = "ntdll!RtlUserThreadStart;build.exe!main;ntdll!NtCreateFile;nt!NtCreateFile;fltmgr.sys!FltpDispatch;tedrdrv.sys!PreCreate"

[[samples]]
process = "build.exe"
thread = "steady"
busy = 1.3
stack = "ntdll!RtlUserThreadStart;build.exe!main;build.exe!Compile"
"#,
        100 + seed * 37 % 400,
        150 + seed * 53 % 500
    )
}

/// Where a buffer of the file begins and ends, and its processor.
fn buffers(trace: &[u8]) -> Vec<(usize, usize, u16)> {
    let mut at = 0;
    let mut found = Vec::new();
    while at < trace.len() {
        let size = u32::from_le_bytes(trace[at..at + 4].try_into().unwrap()) as usize;
        let cpu = u16::from_le_bytes(trace[at + 40..at + 42].try_into().unwrap());
        found.push((at, at + size, cpu));
        at += size;
    }
    found
}

/// The trace without the buffers for which `lost` holds: by place in the file, 0 to 1, and processor. Headers and rundown stay.
fn damaged(trace: &[u8], mut lost: impl FnMut(f64, u16) -> bool) -> Vec<u8> {
    let all = buffers(trace);
    let mut out = Vec::new();
    let mut gone = 0;
    for (number, &(from, to, cpu)) in all.iter().enumerate() {
        let place = number as f64 / all.len() as f64;
        if number > 8 && place < 0.95 && lost(place, cpu) {
            gone += 1;
        } else {
            out.extend_from_slice(&trace[from..to]);
        }
    }
    // TRACE_LOGFILE_HEADER.BuffersWritten.
    let written = 72 + 32 + 36;
    let left = u32::from_le_bytes(out[written..written + 4].try_into().unwrap()) - gone;
    out[written..written + 4].copy_from_slice(&left.to_le_bytes());
    assert!(gone > 5, "{gone} of {}", all.len());
    out
}

/// The hit of the finding, if there is one.
fn hit(trace: &Path) -> Option<Value> {
    let verdict: Value = ETWHY.partly().json(&["why", trace.str(), "--json"]);
    let found = verdict["findings"].list().iter().find(|finding| finding["id"] == FINDING)?;
    found["hits"].list().first().cloned()
}

#[test]
fn a_cost_has_a_range_where_losses_are_spread_and_none_where_they_are_not() {
    let (mut inside, mut ranges, mut seen) = (0, 0, 0);
    for seed in 1..=20u64 {
        let folder = tempfile::tempdir().unwrap();
        let (text, path) = (folder.path().join("machine.toml"), folder.path().join("trace.etl"));
        std::fs::write(&text, scenario(seed)).unwrap();
        ETWHY.synth(&text, &path, &[]);
        let whole = std::fs::read(&path).unwrap();
        let truth = hit(&path).expect("found in the whole trace");
        assert!(truth["values"]["cost_low_ns"].is_null() && !truth["explanation"].str().contains("at least"));
        let truth = truth["cost_ns"].int();
        let mut rng = Xoshiro::seeded(seed);
        let share = [0.05, 0.1][seed as usize % 2];
        std::fs::write(&path, damaged(&whole, |_, _| rng.uniform() < share)).unwrap();
        if let Some(even) = hit(&path) {
            seen += 1;
            assert!(
                even["cost_ns"].int() <= truth && even["explanation"].str().contains("so this is at least"),
                "{seed}"
            );
            if let Some(low) = even["values"]["cost_low_ns"].as_i64() {
                ranges += 1;
                let high = even["values"]["cost_high_ns"].int();
                inside += usize::from(low <= truth && truth <= high);
                println!("{seed}: {low} {truth} {high}");
            }
        }
        if seed > 6 {
            continue;
        }
        let burst = |place: f64, _| (0.3..0.36).contains(&place) || (0.6..0.64).contains(&place);
        let one = |_, cpu| cpu == 1 && rng.uniform() < 0.4;
        for (kind, trace) in [("burst", damaged(&whole, burst)), ("one processor", damaged(&whole, one))] {
            std::fs::write(&path, trace).unwrap();
            let Some(hit) = hit(&path) else { continue };
            assert!(hit["values"]["cost_low_ns"].is_null(), "{seed}, {kind}: {hit}");
            assert!(
                hit["explanation"].str().contains("How much more cannot be determined"),
                "{seed}, {kind}: {hit}"
            );
        }
    }
    println!("{seen} of 20 found with losses, {ranges} with a range, {inside} of them hold the truth");
    assert!(seen >= 18 && ranges >= 15, "{seen}, {ranges}");
    assert!(inside * 100 >= ranges * 95, "{inside} of {ranges}");
}
