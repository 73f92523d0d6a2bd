//! Firefox Profiler: a processed profile in JSON, as profiler.firefox.com reads it.
//!
//! The format is written by the crate `fxprof-processed-profile`. Each sample weighs 1. Frames of code in images carry the
//! image with name and id of its PDB, and the name that was resolved here, so that Firefox can look up those without one.
//! Samples in DPCs and ISRs stand on a track of their processor, in categories of their own.
//!
//! The CPU time of a sample is what its thread ran since the sample before, by context switches; where a thread was off
//! processors for longer than an interval, samples without weight mark the end and the begin of its runs. Without context
//! switches a sample's CPU time is what it stands for.

mod counters;
mod cpu;
mod libs;
mod markers;
mod tracks;

use etwhy_trace::catalog::trace::TraceRow;
use std::io::Write;
use std::time::Duration;

use fxprof_processed_profile as fx;

use crate::Result;
use crate::profile::{People, Profile, ProfileFormat, ProfilePart};
use tracks::Tracks;

/// Declaration.
pub static FORMAT: ProfileFormat = ProfileFormat {
    name: "firefox",
    extensions: &["json", "firefox"],
    about: "Firefox Profiler (processed profile, JSON)",
    open: "https://profiler.firefox.com (the file stays on your machine; names and ids of PDBs are asked from Mozilla's symbol server)",
    weighted: false,
    most_weights: 0,
    always_gzip: false,
    binary: false,
    parts: &[
        ProfilePart {
            name: "sample",
            about: "CPU samples with stacks; those in DPCs and ISRs by processor",
            tables: &["sample"],
        },
        ProfilePart {
            name: "sched",
            about: "CPU time of threads from context switches",
            tables: &["cswitch"],
        },
        ProfilePart {
            name: "counter",
            about: "CPU use and memory of the machine",
            tables: &["cpu_time", "memory_counter"],
        },
        ProfilePart {
            name: "interrupt",
            about: "DPCs over 100 µs and ISRs over 25 µs as markers",
            tables: &["dpc", "isr"],
        },
        ProfilePart { name: "gc", about: ".NET garbage collections as markers", tables: &["clr_gc"] },
        ProfilePart { name: "exception", about: ".NET exceptions as markers", tables: &["clr_exception"] },
        ProfilePart {
            name: "contention",
            about: ".NET lock contention as markers",
            tables: &["clr_contention"],
        },
        ProfilePart { name: "disk_io", about: "disk transfers as markers", tables: &["disk_io", "file"] },
        ProfilePart { name: "file_io", about: "file operations as markers", tables: &["file_io", "file"] },
        ProfilePart {
            name: "hard_fault",
            about: "hard page faults as markers",
            tables: &["hard_fault", "file"],
        },
        ProfilePart { name: "hang", about: "delays of user interfaces as markers", tables: &["ui_delay"] },
        ProfilePart { name: "mark", about: "marks as markers", tables: &["mark"] },
    ],
    write,
};

/// A moment. The format has none before its start.
fn timestamp(ts_ns: i64) -> fx::Timestamp {
    fx::Timestamp::from_nanos_since_reference(ts_ns.max(0) as u64)
}

fn write(profile: &Profile<'_>, out: &mut dyn Write) -> Result<()> {
    let people = People::read(profile.db);
    let start = fx::ReferenceTimestamp::from_duration_since_unix_epoch(Duration::from_nanos(
        profile.start_unix_ns().max(0) as u64,
    ));
    let interval = fx::SamplingInterval::from_nanos(profile.sample_interval_ns().max(1) as u64);
    let mut made = fx::Profile::new("Windows, by etwhy", start, interval);
    if let Some(os) = profile.db.read_or_empty::<TraceRow>().first().map(|trace| trace.os()) {
        made.set_os_name(&crate::sanitize(os));
    }
    let mut tracks = Tracks::new(profile, &people, &mut made);
    cpu::samples(profile, &mut tracks, &mut made);
    markers::write(profile, &FORMAT, &mut tracks, &mut made);
    if profile.has("counter") {
        counters::write(profile, &mut tracks, &mut made);
    }
    serde_json::to_writer(out, &made)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::test_profile::{profile, written};
    use serde_json::{Value, json};

    #[test]
    fn samples_carry_modules_names_and_cpu_time() {
        let file: Value = serde_json::from_slice(&written(&FORMAT, &profile())).unwrap();
        assert_eq!(file["meta"]["startTime"], json!(1_700_000_000_000.0));
        assert_eq!(file["libs"][0]["breakpadId"], json!("00112233445566778899AABBCCDDEEFFa"));
        assert_eq!(file["libs"][0]["debugName"], json!("a.pdb"));
        assert_eq!(file["libs"][0]["codeId"], json!("0000123410000"));
        let threads = file["threads"].as_array().unwrap();
        assert_eq!(threads.len(), 1, "the idle thread is left out");
        let thread = &threads[0];
        assert_eq!(thread["name"], json!("worker"));
        assert_eq!(thread["processName"], json!("evil;name␊ 12.exe"));
        assert_eq!(thread["pid"], json!("40"));
        assert_eq!(thread["samples"]["length"], json!(3));
        assert_eq!(thread["samples"]["weight"], json!([1, 1, 1]));
        assert_eq!(thread["samples"]["timeDeltas"], json!([1.0, 1.0, 1.0]));
        // 1000, 2000 and 1500 ns; rests of microseconds are carried on.
        assert_eq!(thread["samples"]["threadCPUDelta"], json!([1, 2, 1]));
        assert_eq!(thread["registerTime"], json!(0.001));
        let text = |index: &Value| thread["stringArray"][index.as_u64().unwrap() as usize].clone();
        let functions: Vec<Value> =
            thread["funcTable"]["name"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(functions, [json!("main"), json!("work"), json!("0x10")]);
        // A return address is looked up one byte before itself.
        assert_eq!(thread["frameTable"]["address"], json!([0xfff, 0x2000, 0x10]));
    }
}
