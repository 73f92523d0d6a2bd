//! What must hold of processes, threads, images and stacks of the two traces of PerfView, whose events and
//! samples `perfview_baselines.rs` compares with PerfView's own reading.

use crate::support::{corpus, ledger_count, number, pass, rows, table, text, walk};
use etwhy_decode::Value;
use etwhy_decode::format::format_value;
use etwhy_etl::abi::guids::IMAGE_ID;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

const TRACES: [&str; 2] = ["net.4.5.2.x64.etl", "net.4.5.x86_PerfViewData.etl"];

fn traces() -> Vec<PathBuf> {
    corpus().map_or(Vec::new(), |c| TRACES.iter().map(|t| c.join("microsoft+perfview").join(t)).collect())
}

/// A value as text.
fn shown(value: &Value<'_>) -> String {
    let mut text = String::new();
    format_value(&mut text, value, None);
    text
}

/// Samples are those of the records, one by one; all of them have a process, and all that are not idle have the
/// stack that was recorded for them.
#[test]
fn samples_have_processes_and_stacks() {
    for path in traces() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let output = pass(&path, "sample thread process stack ledger");
        let (samples, threads) = (table(&output, "sample"), table(&output, "thread"));
        let (processes, all_stacks) = (table(&output, "process"), table(&output, "stack"));
        let (mut raw, mut ticks, mut walked) = (Vec::new(), Vec::new(), HashSet::new());
        walk(&path, |record, ns, decoded, _| {
            let Some((schema, fields)) = decoded else { return };
            let get = |name| fields.get(schema, name).and_then(Value::as_u64).unwrap();
            match &*schema.name {
                "SampledProfile" => {
                    let (ip, tid) = (get("InstructionPointer"), get("ThreadId"));
                    raw.push((ns, i64::from(record.cpu), ip as i64, tid as i64));
                    ticks.push((record.ticks as u64, tid));
                }
                "StackWalk/Stack" | "StackWalk/StackKeyKernel" | "StackWalk/StackKeyUser" => {
                    walked.insert((get("EventTimeStamp"), get("StackThread")));
                }
                _ => {}
            }
        });
        let seen: Vec<(i64, i64, i64, i64)> = rows(samples)
            .map(|row| {
                let get = |column| number(samples, row, column).unwrap();
                let tid = number(threads, get("utid") as u32, "tid").unwrap();
                (get("ts_ns"), get("cpu"), get("ip"), tid)
            })
            .collect();
        assert_eq!(seen, raw, "{name}: time, processor, address and thread of all samples");

        // A stack of the instruction pointer alone stands where none was recorded.
        let recorded = |row| {
            let stack = number(samples, row, "stack_id").map(|id| id as u32);
            stack.is_some_and(|id| number(all_stacks, id, "leaf_only") == Some(0))
        };
        let (mut busy, mut stacks, mut named, mut bare) = (0u64, 0u64, 0u64, 0u64);
        let mut lost = 0u64;
        for row in rows(samples) {
            let upid = number(samples, row, "upid").unwrap_or(-1);
            let process = if upid < 0 { "[unknown]" } else { text(processes, upid as u32, "name") };
            named += u64::from(process != "[unknown]");
            let wanted = number(samples, row, "stack_id").is_some();
            bare += u64::from(wanted && !recorded(row));
            lost += u64::from(wanted && recorded(row) != walked.contains(&ticks[row as usize]));
            if process != "Idle" {
                busy += 1;
                stacks += u64::from(recorded(row));
            }
        }
        println!(
            "{name}: {} samples, {named} of a named process, {busy} not idle, {stacks} with stack",
            raw.len()
        );
        assert_eq!(named, raw.len() as u64, "{name}: samples of unknown processes");
        assert_eq!(lost, 0, "{name}: samples whose recorded stack is missing");
        assert!(stacks * 100 >= busy * 96, "{name}: {stacks} of {busy} busy samples have stacks");
        assert_eq!(ledger_count(&output, "stack_keys_undefined"), 0, "{name}");
        // For these no stack was recorded, as the ledger says.
        assert_eq!(ledger_count(&output, "samples_without_stack"), bare, "{name}");
        assert_eq!(ledger_count(&output, "threads_without_process"), 0, "{name}");
    }
}

/// Every thread that a rundown or a start names belongs to the process that it names.
#[test]
fn threads_belong_to_their_processes() {
    for path in traces() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let output = pass(&path, "thread process");
        let (threads, processes) = (table(&output, "thread"), table(&output, "process"));
        let mut pids: HashMap<i64, BTreeSet<i64>> = HashMap::new();
        for row in rows(threads) {
            let upid = number(threads, row, "upid").unwrap() as u32;
            let pid = number(processes, upid, "pid").unwrap();
            pids.entry(number(threads, row, "tid").unwrap()).or_default().insert(pid);
        }
        let mut named = 0;
        walk(&path, |_, _, decoded, _| {
            let Some((schema, fields)) = decoded else { return };
            if !matches!(&*schema.name, "Thread/Start" | "Thread/End" | "Thread/DCStart" | "Thread/DCEnd") {
                return;
            }
            let get = |name| fields.get(schema, name).and_then(Value::as_u64).unwrap() as i64;
            named += 1;
            let (tid, pid) = (get("TThreadId"), get("ProcessId"));
            assert!(pids[&tid].contains(&pid), "{name}: thread {tid} of {pid}: {:?}", pids[&tid]);
        });
        println!("{name}: {} threads, {named} events name them", threads.rows());
    }
}

/// All RSDS identities of the records are those of images, and no others.
#[test]
fn images_have_the_identities_of_the_records() {
    for path in traces() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut raw: [BTreeSet<(String, String)>; 2] = Default::default();
        walk(&path, |record, _, decoded, _| {
            let Some((schema, fields)) = decoded.filter(|_| record.guid() == Some(IMAGE_ID)) else { return };
            let kind = match record.opcode() {
                36 => 0,
                37 => 1,
                _ => return,
            };
            let text = |name| shown(fields.get(schema, name).unwrap());
            let guid = fields.get(schema, "GuidSig").and_then(Value::as_guid).unwrap();
            let age = fields.get(schema, "Age").and_then(Value::as_u64).unwrap();
            let identity = if kind == 0 { format!("{guid}-{age}") } else { guid.to_string() };
            raw[kind].insert((text("PdbFileName"), identity));
        });
        let output = pass(&path, "image");
        let images = table(&output, "image");
        let mut seen: [BTreeSet<(String, String)>; 2] = Default::default();
        for row in rows(images) {
            let pdb = text(images, row, "pdb_name");
            if !pdb.is_empty() {
                let age = number(images, row, "pdb_age").unwrap();
                seen[0].insert((pdb.to_owned(), format!("{}-{age}", text(images, row, "pdb_guid"))));
            }
            let pdb = text(images, row, "il_pdb_name");
            if !pdb.is_empty() {
                seen[1].insert((pdb.to_owned(), text(images, row, "il_pdb_guid").to_owned()));
            }
        }
        println!("{name}: {} native and {} managed identities", raw[0].len(), raw[1].len());
        assert_eq!(seen[0], raw[0], "{name}: native");
        assert_eq!(seen[1], raw[1], "{name}: managed");
        let without = rows(images).filter(|r| {
            text(images, *r, "pdb_name").is_empty() && text(images, *r, "il_pdb_name").is_empty()
        });
        let without: BTreeSet<&str> = without.map(|r| text(images, r, "name")).collect();
        println!("{name}: {} images, file names without identity: {without:?}", images.rows());
    }
}

/// Paths have drive letters, or are shares.
#[test]
fn images_have_drive_letters() {
    for path in traces() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let output = pass(&path, "image file");
        let images = table(&output, "image");
        for row in rows(images) {
            let file = text(images, row, "path");
            let drive = file.as_bytes().get(1) == Some(&b':');
            assert!(drive || file.starts_with("\\\\") || file == "[hypercall page]", "{name}: {file}");
        }
        // Files on volumes that have a letter.
        let mut volumes = Vec::new();
        walk(&path, |_, _, decoded, _| {
            let Some((schema, fields)) = decoded else { return };
            if &*schema.name == "SysConfigEx/VolumeMapping" {
                let text = |name| fields.get(schema, name).map_or(String::new(), shown);
                volumes.push((text("NtPath"), text("DosPath")));
            }
        });
        let files = table(&output, "file");
        let mut lettered = 0;
        for row in rows(files) {
            let file = text(files, row, "path");
            lettered += usize::from(file.as_bytes().get(1) == Some(&b':'));
            let mapped =
                volumes.iter().find(|(nt, dos)| !dos.is_empty() && nt.len() > 4 && file.starts_with(nt));
            assert!(mapped.is_none(), "{name}: {file} {mapped:?}");
        }
        println!("{name}: {lettered} of {} files have a drive letter", files.rows());
        assert!(lettered * 10 > files.rows() * 9, "{name}: {lettered}");
    }
}

/// No two images of a process lie on each other at the same time.
#[test]
fn images_have_places_of_their_own() {
    let mut all = traces();
    if let Some(corpus) = corpus() {
        for trace in [
            "microsoft+Tx/Process.etl",
            "airbus-cert+etl-parser/ShutdownPerfDiagLogger.etl",
            "Siemens-Healthineers+ETWAnalyzer/TraceLoggingTester.etl",
        ] {
            all.push(corpus.join(trace));
        }
    }
    for path in all {
        let name = path.file_name().unwrap().to_str().unwrap();
        let output = pass(&path, "image");
        let images = table(&output, "image");
        let mut by_process: BTreeMap<Option<i64>, Vec<u32>> = BTreeMap::new();
        for row in rows(images) {
            by_process.entry(number(images, row, "upid")).or_default().push(row);
        }
        let mut pairs = 0u64;
        for list in by_process.values_mut() {
            let unsigned = |row: u32, column| number(images, row, column).unwrap() as u64;
            list.sort_by_key(|row| unsigned(*row, "base"));
            for (i, &a) in list.iter().enumerate() {
                let end = unsigned(a, "base") + unsigned(a, "size_bytes");
                for &b in list[i + 1..].iter().take_while(|b| unsigned(**b, "base") < end) {
                    pairs += 1;
                    let from = |row| number(images, row, "load_ns").unwrap_or(i64::MIN);
                    let to = |row| number(images, row, "unload_ns").unwrap_or(i64::MAX);
                    let apart = to(a) <= from(b) || to(b) <= from(a);
                    let show = |row| (text(images, row, "path").to_owned(), from(row), to(row));
                    assert!(apart, "{name}: {:?} and {:?}", show(a), show(b));
                }
            }
        }
        println!("{name}: {} images, {pairs} pairs share addresses at different times", images.rows());
    }
}

/// Frames: kernel frames lie in images, managed code has method names.
#[test]
fn frames_are_named() {
    for path in traces() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let output = pass(&path, "stack frame stack_frame ledger");
        let (frames, stack_frames) = (table(&output, "frame"), table(&output, "stack_frame"));
        let mut uses = vec![0u64; frames.rows()];
        for row in rows(stack_frames) {
            uses[number(stack_frames, row, "frame_id").unwrap() as usize] += 1;
        }
        // By kind: all, in an image, with function.
        let mut kinds: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
        for row in rows(frames) {
            let counts = kinds.entry(text(frames, row, "kind")).or_default();
            let n = uses[row as usize];
            counts[0] += n;
            counts[1] += n * u64::from(number(frames, row, "image_id").is_some());
            counts[2] += n * u64::from(!text(frames, row, "function").is_empty());
        }
        println!(
            "{name}: {} stacks, frames by kind [all, in image, named]: {kinds:?}",
            table(&output, "stack").rows()
        );
        let share = |kind: &str, part: usize| {
            let [all, ..] = kinds[kind];
            kinds[kind][part] as f64 / all as f64
        };
        assert!(share("kernel", 1) > 0.999, "{name}: kernel frames in images: {}", share("kernel", 1));
        assert!(share("user", 1) > 0.999, "{name}: user frames in images: {}", share("user", 1));
        assert_eq!(share("managed", 2), 1.0, "{name}: managed frames with names");
        let all: u64 = kinds.values().map(|k| k[0]).sum();
        let unknown = kinds.get("unknown").map_or(0, |k| k[0]);
        assert!((unknown as f64) < 0.02 * all as f64, "{name}: {unknown} of {all} frames unknown");
    }
}
