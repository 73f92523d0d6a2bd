//! speedscope: a sampled profile for each thread and metric, in order of time.
//!
//! The schema is <https://www.speedscope.app/file-format-schema.json>. Threads stand in order of weight, so that the heaviest
//! opens first. The time axis of speedscope is the weight itself: samples stand in order of time, without the gaps between
//! them. Neighbours with the same stack are one sample; weights that are not positive are left out. Addresses of one function are
//! one frame.

use std::io::Write;

use etwhy_table::Unit;
use foldhash::HashMap;

use crate::profile::{At, People, Profile, ProfileFormat, Stacks, Weights};
use crate::{Result, sanitize};

/// Declaration.
pub static FORMAT: ProfileFormat = ProfileFormat {
    name: "speedscope",
    extensions: &["speedscope.json", "speedscope"],
    about: "speedscope JSON, a profile for each thread",
    open: "https://www.speedscope.app (nothing is uploaded); npx speedscope FILE",
    weighted: true,
    most_weights: 8,
    always_gzip: false,
    binary: false,
    parts: &[],
    write,
};

/// One weight.
struct Entry {
    upid: Option<u32>,
    utid: Option<u32>,
    ts_ns: i64,
    weight: i64,
    at: At,
}

/// Numbers of frames, in order of their first use.
#[derive(Default)]
struct Frames<'a> {
    by_row: HashMap<u32, u32>,
    by_name: HashMap<(&'a str, Option<&'a str>), u32>,
    list: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Frames<'a> {
    fn number(&mut self, row: u32, stacks: &Stacks<'a>) -> u32 {
        if let Some(number) = self.by_row.get(&row) {
            return *number;
        }
        let frame = stacks.frame(row);
        let name = (frame.label, frame.file);
        let next = self.list.len() as u32;
        let number = *self.by_name.entry(name).or_insert(next);
        if number == next {
            self.list.push(name);
        }
        self.by_row.insert(row, number);
        number
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "nanoseconds",
        Unit::Us => "microseconds",
        Unit::Ms => "milliseconds",
        Unit::S => "seconds",
        Unit::Bytes => "bytes",
        _ => "none",
    }
}

fn write(profile: &Profile<'_>, out: &mut dyn Write) -> Result<()> {
    let people = People::read(profile.db);
    let stacks = Stacks::read(profile.db);
    let mut frames = Frames::default();
    let exporter = concat!("etwhy@", env!("CARGO_PKG_VERSION"));
    write!(
        out,
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"{exporter}\",\"profiles\":["
    )?;
    let mut first = true;
    for weights in &profile.weights {
        let several = profile.weights.len() > 1;
        for entries in threads(profile, weights, &people) {
            if !std::mem::take(&mut first) {
                out.write_all(b",")?;
            }
            write_thread(weights, several, &entries, (&people, &stacks), &mut frames, out)?;
        }
    }
    out.write_all(b"],\"shared\":{\"frames\":[")?;
    for (number, (name, file)) in frames.list.iter().enumerate() {
        out.write_all(if number == 0 { b"{\"name\":" } else { b",{\"name\":" })?;
        serde_json::to_writer(&mut *out, &sanitize(name))?;
        if let Some(file) = file {
            out.write_all(b",\"file\":")?;
            serde_json::to_writer(&mut *out, &sanitize(file))?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"]}}")?;
    Ok(())
}

/// The wanted weights of one kind by thread, the heaviest thread first, each in order of time.
fn threads(profile: &Profile<'_>, weights: &Weights<'_>, people: &People) -> Vec<Vec<Entry>> {
    // Total and weights, by process and thread.
    type Whose = (Option<u32>, Option<u32>);
    let mut threads: HashMap<Whose, (i64, Vec<Entry>)> = HashMap::default();
    profile.each_weight(weights, people, &mut |weight| {
        if weight.weight > 0 {
            let (total, entries) = threads.entry((weight.upid, weight.utid)).or_default();
            *total = total.saturating_add(weight.weight);
            entries.push(Entry {
                upid: weight.upid,
                utid: weight.utid,
                ts_ns: weight.ts_ns.unwrap_or(0),
                weight: weight.weight,
                at: weight.at,
            });
        }
    });
    let mut list: Vec<_> = threads.into_iter().collect();
    list.sort_by_key(|(who, (total, _))| (std::cmp::Reverse(*total), *who));
    list.into_iter()
        .map(|(_, (_, mut entries))| {
            entries.sort_by_key(|entry| entry.ts_ns);
            entries
        })
        .collect()
}

fn write_thread<'a>(
    weights: &Weights<'_>,
    several: bool,
    entries: &[Entry],
    (people, stacks): (&People, &Stacks<'a>),
    frames: &mut Frames<'a>,
    out: &mut dyn Write,
) -> Result<()> {
    let Some(whose) = entries.first() else { return Ok(()) };
    let process = people.process_label(whose.upid);
    let thread = people.thread(whose.utid).map_or("all threads", |thread| &thread.label);
    let metric = if several { format!("{}: ", weights.name) } else { String::new() };
    let total = entries.iter().fold(0i64, |total, entry| total.saturating_add(entry.weight));
    out.write_all(b"{\"type\":\"sampled\",\"name\":")?;
    serde_json::to_writer(&mut *out, &format!("{metric}{process} / {thread}"))?;
    write!(out, ",\"unit\":\"{}\",\"startValue\":0,\"endValue\":{total},\"samples\":[", unit(weights.unit))?;
    let same = |a: &Entry, b: &Entry| a.at == b.at;
    for (number, run) in entries.chunk_by(same).enumerate() {
        out.write_all(if number == 0 { b"[" } else { b",[" })?;
        let at = run.first().map_or_else(At::default, |entry| entry.at);
        for (depth, frame) in stacks.at(at).rev().enumerate() {
            let comma = if depth == 0 { "" } else { "," };
            write!(out, "{comma}{}", frames.number(frame, stacks))?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"],\"weights\":[")?;
    for (number, run) in entries.chunk_by(same).enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let weight = run.iter().fold(0i64, |sum, entry| sum.saturating_add(entry.weight));
        write!(out, "{comma}{weight}")?;
    }
    out.write_all(b"]}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::test_profile::{profile, written};
    use serde_json::{Value, json};

    #[test]
    fn samples_stand_in_order_of_time_root_first() {
        let file: Value = serde_json::from_slice(&written(&FORMAT, &profile())).unwrap();
        let profiles = file["profiles"].as_array().unwrap();
        assert_eq!(profiles.len(), 1, "the idle thread is left out");
        assert_eq!(
            profiles[0],
            json!({
                "type": "sampled", "name": "evil;name␊ 12.exe (40) / worker (44)", "unit": "nanoseconds",
                "startValue": 0, "endValue": 4500, "samples": [[0, 1], [0, 2]], "weights": [3000, 1500],
            })
        );
        assert_eq!(
            file["shared"]["frames"],
            json!([
                { "name": "a.dll!main", "file": "c:\\a.c" }, { "name": "a.dll!work" }, { "name": "ntoskrnl.exe!+0x10" },
            ])
        );
    }

    #[test]
    fn a_stretch_of_time_and_the_idle_threads_can_be_asked_for() {
        let mut profile = profile();
        profile.scope.from_ns = Some(2_000_000);
        profile.scope.idle = true;
        let file: Value = serde_json::from_slice(&written(&FORMAT, &profile)).unwrap();
        let ends: Vec<_> =
            file["profiles"].as_array().unwrap().iter().map(|p| p["endValue"].clone()).collect();
        assert_eq!(ends, [json!(3500), json!(9)]);
        profile.scope.to_ns = Some(2_000_001);
        profile.scope.processes = Some(vec![false, true]);
        let file: Value = serde_json::from_slice(&written(&FORMAT, &profile)).unwrap();
        assert_eq!(file["profiles"][0]["weights"], json!([2000]));
    }
}
