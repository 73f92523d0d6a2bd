//! Families of machines that differ in what must not matter: names, sizes, formats, dice, missing parts; and hard cases, which look like a finding and
//! are none, or are one in disguise.
//!
//! Every family walks the folders of scenarios. Without more each draws a few scenarios and variants; `ETWHY_SEED` draws others, `ETWHY_FAMILIES=all`
//! takes all of them:
//!
//! ```sh
//! ETWHY_FAMILIES=all cargo test -p etwhy --test all families:: -- --nocapture
//! ```
//!
//! Where a variant cannot have the verdict of its scenario, the reason stands in the scenario: `"x0.3" = "too few starts to show growth"` in
//! `[truth.finding."<id>"]`, under the name of the variant.

mod unrecorded;

use crate::{ETWHY, Json as _, Str as _};
use etwhy_testkit::Program;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is missing is the point of some families.
const PARTLY: Program = ETWHY.partly();

/// A scenario and what it must lead to.
struct Story {
    name: String,
    text: String,
    /// `[truth.finding]`.
    truth: Value,
}

impl Story {
    fn read(path: &Path) -> Story {
        let text = std::fs::read_to_string(path).unwrap();
        let parsed: toml::Table = text.parse().unwrap();
        let truth = parsed.get("truth").and_then(|truth| truth.get("finding")).cloned();
        let truth = truth.map_or(Value::Null, |truth| serde_json::to_value(truth).unwrap());
        Story { name: path.file_stem().unwrap().to_string_lossy().into_owned(), text, truth }
    }

    /// Findings that must be found: not those that may be, nor those that must be undecided.
    fn planted(&self) -> Vec<(&String, &Value)> {
        let all = self.truth.as_object().into_iter().flatten();
        all.filter(|(_, f)| f["role"] != "also" && f["answer"].is_null()).collect()
    }

    /// Why this variant cannot have the verdict.
    fn excused(&self, variant: &str) -> bool {
        self.truth.as_object().into_iter().flatten().any(|(_, f)| f[variant].is_string())
    }
}

fn stories(folder: &str) -> Vec<Story> {
    etwhy_testkit::scenarios(&[folder]).iter().map(|path| Story::read(path)).collect()
}

fn all() -> bool {
    std::env::var("ETWHY_FAMILIES").is_ok_and(|value| value == "all")
}

/// Some of them, by the seed and the family's name; all if all are wanted.
fn drawn<T>(family: &str, mut list: Vec<T>, number: usize) -> Vec<T> {
    if all() {
        return list;
    }
    let seed = std::env::var("ETWHY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    let mut state = family.bytes().fold(seed, |state, byte| step(state ^ u64::from(byte)));
    let mut some = Vec::new();
    while !list.is_empty() && some.len() < number {
        state = step(state);
        some.push(list.swap_remove((state >> 33) as usize % list.len()));
    }
    some
}

fn step(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// Writes a scenario as a trace; `None` if the machine of the variant cannot be written.
fn written(folder: &Path, text: &str, synth: &[&str]) -> Option<PathBuf> {
    let (scenario, trace) = (folder.join("s.toml"), folder.join("s.etl"));
    std::fs::write(&scenario, text).unwrap();
    let mut arguments = vec!["synth", scenario.str(), "-o", trace.str(), "--quiet"];
    arguments.extend(synth);
    (PARTLY.ran(&arguments).0 == 0).then_some(trace)
}

fn why(text: &str, synth: &[&str]) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let trace = written(folder.path(), text, synth)?;
    Some(PARTLY.json(&["why", "--json", "-q", trace.str()]))
}

fn answer<'r>(report: &'r Value, id: &str) -> &'r Value {
    report["findings"].list().iter().find(|finding| finding["id"] == id).unwrap()
}

/// How a culprit is named, with its instance where the report says which.
fn label(hit: &Value) -> &str {
    hit["values"]["culprit"].as_str().filter(|label| !label.is_empty()).unwrap_or(hit["culprit"].str())
}

/// Findings above info and whom they name.
fn accused(report: &Value) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for finding in report["findings"].list() {
        for hit in finding["hits"].list().iter().filter(|hit| hit["severity"] != "info") {
            all.insert((finding["id"].str().to_owned(), label(hit).to_owned()));
        }
    }
    all
}

/// The field of `[machine]`, whether the scenario has it or not.
fn machine(text: &str, field: &str, value: &str) -> String {
    let head = text.find("\n[[").unwrap_or(text.len());
    let (machine, rest) = text.split_at(head);
    let kept: Vec<&str> = machine.lines().filter(|line| !line.starts_with(&format!("{field} ="))).collect();
    format!("{}{rest}", kept.join("\n").replacen("[machine]", &format!("[machine]\n{field} = {value}"), 1))
}

/// The planted findings are found with the culprit of the base, and nobody else is accused.
fn same_verdict(story: &Story, variant: &str, base: &Value, report: &Value, faults: &mut Vec<String>) {
    for (id, _) in story.planted() {
        let (was, is) = (answer(base, id), answer(report, id));
        if was["answer"] != "found" || story.excused(variant) {
            continue;
        }
        if is["answer"] != "found" {
            faults.push(format!("{} {variant}: {id} is {}", story.name, is["answer"]));
        } else if label(&is["hits"][0]) != label(&was["hits"][0]) {
            faults.push(format!("{} {variant}: {id} names {}", story.name, label(&is["hits"][0])));
        }
    }
    nobody_else(story, variant, &accused(base), report, faults);
}

fn nobody_else(
    story: &Story,
    variant: &str,
    before: &BTreeSet<(String, String)>,
    report: &Value,
    faults: &mut Vec<String>,
) {
    for (id, who) in accused(report) {
        let known = before.iter().any(|(finding, name)| *finding == id && *name == who);
        // Who is behind it was not recorded: nobody is accused.
        let nobody = who == "[unknown]";
        if !known && !nobody && story.truth.get(&id).is_none() && !id.starts_with("trace.") {
            faults.push(format!("{} {variant}: {id} accuses {who}", story.name));
        }
    }
}

fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// `scenarios/hard`: whoever is named above info must be the one that the scenario says, and must be named.
#[test]
fn hard_cases_accuse_nobody_else() {
    let mut faults = Vec::new();
    let stories = stories("scenarios/hard");
    assert!(stories.len() >= 40);
    for story in stories {
        let report = why(&story.text, &[]).unwrap();
        let accused = accused(&report);
        let all = || story.truth.as_object().into_iter().flatten();
        for (id, who) in &accused {
            let named = |f: &Value, key: &str| f[key].as_str().is_some_and(|name| name == who);
            let fits = |f: &Value| named(f, "culprit") || named(f, "others") || f["culprit"] == "";
            if !all().any(|(finding, f)| finding == id && fits(f)) {
                faults.push(format!("{}: {id} accuses {who}", story.name));
            }
        }
        for (id, f) in all().filter(|(_, f)| f["role"] != "also") {
            let wanted = f["answer"].as_str().unwrap_or("found");
            if answer(&report, id)["answer"] != wanted {
                faults.push(format!(
                    "{}: {id} is {}, not {wanted}",
                    story.name,
                    answer(&report, id)["answer"]
                ));
            }
            for key in ["culprit", "others"] {
                let who = f[key].as_str().unwrap_or_default().to_owned();
                if wanted == "found" && !who.is_empty() && !accused.contains(&(id.clone(), who.clone())) {
                    faults.push(format!("{}: {id} does not name {who}", story.name));
                }
            }
        }
        // The all-clear never stands beside a finding that matters.
        if !accused.is_empty() && answer(&report, "trace.nothing-slow")["answer"] == "found" {
            faults.push(format!("{}: nothing slow beside {accused:?}", story.name));
        }
    }
    none(&faults);
}

/// A smaller and a larger part of the story, fewer and more processors.
#[test]
fn verdicts_do_not_depend_on_size() {
    let mut faults = Vec::new();
    for story in drawn("scale", stories("scenarios/findings"), 8) {
        let base = why(&story.text, &[]).unwrap();
        let cpus = |n: &str| (machine(&story.text, "cpus", n), Vec::new());
        let part = |share: &'static str| (story.text.clone(), vec!["--scale", share]);
        for (variant, (text, synth)) in [
            ("x0.3", part("0.3")),
            ("x3", part("3")),
            ("2 processors", cpus("2")),
            ("64 processors", cpus("64")),
            ("320 processors", cpus("320")),
        ] {
            // Some stories name processors that a small machine does not have.
            if let Some(report) = why(&text, &synth) {
                same_verdict(&story, variant, &base, &report, &mut faults);
            }
        }
    }
    none(&faults);
}

/// Another form of the same recording.
#[test]
fn verdicts_do_not_depend_on_the_form_of_the_trace() {
    let mut faults = Vec::new();
    let forms = [
        ("32 bit", "pointer_size", "4"),
        ("small buffers", "buffer_size", "\"16KB\""),
        ("large buffers", "buffer_size", "\"1MB\""),
        ("compressed", "compressed", "true"),
        ("shifted", "start", "\"2031-12-31T23:59:58\""),
        ("clock of the system", "clock", "\"system\""),
        ("another frequency", "perf_freq", "2435000"),
        ("keys for stacks", "stack_style", "\"keys\""),
        ("other dice", "seed", "77"),
    ];
    for story in drawn("form", stories("scenarios/findings"), 8) {
        let base = why(&story.text, &[]).unwrap();
        for (variant, field, value) in drawn(&story.name, forms.to_vec(), 3) {
            let report = why(&machine(&story.text, field, value), &[]).unwrap();
            same_verdict(&story, variant, &base, &report, &mut faults);
        }
    }
    none(&faults);
}

/// Leaves out the buffers of a file that are not wanted: by processor, place (0 to 1) and number.
fn without_buffers(trace: &Path, wanted: impl Fn(u16, f64) -> bool) {
    let bytes = std::fs::read(trace).unwrap();
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let (mut kept, count) = (Vec::new(), bytes.len() / size);
    for (at, buffer) in bytes.chunks(size).enumerate() {
        let processor = u16::from_le_bytes(buffer[0x28..0x2a].try_into().unwrap());
        if at == 0 || wanted(processor, at as f64 / count as f64) {
            kept.extend_from_slice(buffer);
        }
    }
    std::fs::write(trace, kept).unwrap();
}

/// Whether a buffer is kept.
type Wanted = fn(u16, f64) -> bool;

/// The second half is missing, a burst in the middle, and one processor for a while: nobody is accused whom the whole trace does not accuse, and what
/// was there is not denied.
#[test]
fn what_is_missing_accuses_nobody() {
    let mut faults = Vec::new();
    for story in drawn("missing", stories("scenarios/findings"), 12) {
        let text = machine(&story.text, "buffer_size", "\"8KB\"");
        let folder = tempfile::tempdir().unwrap();
        let base = why(&text, &[]).unwrap();
        let parts: [(&str, Wanted); 4] = [
            ("cut in half", |_, place| place < 0.5),
            ("a burst", |_, place| !(0.45..0.6).contains(&place)),
            ("a processor", |processor, place| processor != 1 || !(0.2..0.8).contains(&place)),
            ("the first third", |_, place| place > 0.33),
        ];
        for (variant, wanted) in parts {
            let trace = written(folder.path(), &text, &[]).unwrap();
            without_buffers(&trace, wanted);
            let report: Value = PARTLY.json(&["why", "--json", "-q", trace.str()]);
            nobody_else(&story, variant, &accused(&base), &report, &mut faults);
        }
    }
    none(&faults);
}

/// Names of one kind that stand for nobody in particular.
const ANYBODY: [(&str, &str); 2] = [(".exe", "qolvant.exe"), (".sys", "qolvant.sys")];

/// The verdict follows the role, not the name: the culprit has a name that no list knows, and beside it a known vendor's driver passes calls on.
#[test]
fn verdicts_follow_roles_not_names() {
    let mut faults = Vec::new();
    for story in drawn("shuffle", stories("scenarios/findings"), 8) {
        let base = why(&story.text, &[]).unwrap();
        let before = accused(&base);
        for (id, f) in story.planted() {
            let culprit = f["culprit"].str();
            let Some((_, other)) = ANYBODY.iter().find(|(ending, _)| culprit.ends_with(ending)) else {
                continue;
            };
            if answer(&base, id)["answer"] != "found" || story.excused("renamed") {
                continue;
            }
            let report = why(&story.text.replace(culprit, other), &[]).unwrap();
            let hit = &answer(&report, id)["hits"][0];
            if hit["culprit"].as_str().is_none_or(|name| name != *other) {
                faults.push(format!("{} renamed: {id} names {}", story.name, hit["culprit"]));
            }
            let again: BTreeSet<(String, String)> =
                before.iter().map(|(id, who)| (id.clone(), who.replace(culprit, other))).collect();
            nobody_else(&story, "renamed", &again, &report, &mut faults);
        }
        let report = why(&format!("{}{}", story.text, decoy(&story.text)), &[]).unwrap();
        same_verdict(&story, "a vendor beside it", &base, &report, &mut faults);
        if accused(&report)
            .iter()
            .any(|(_, who)| who.starts_with("SentinelMonitor") || who.starts_with("epfwlwf"))
        {
            faults.push(format!("{}: the decoy is accused", story.name));
        }
    }
    none(&faults);
}

/// A program whose reads pass a well-known product's driver; one without guilt in this story.
fn decoy(text: &str) -> String {
    let driver = if text.contains("SentinelMonitor.sys") { "epfwlwf.sys" } else { "SentinelMonitor.sys" };
    let call = format!(
        "ntdll!RtlUserThreadStart;reader.exe!Read;ntdll!NtReadFile;nt!NtReadFile;nt!IofCallDriver;{driver}+0x2100"
    );
    format!(
        r#"
[[process]]
name = "reader.exe"

[[samples]]
process = "reader.exe"
cpu_time = "0.1s"
stack = "{call};nt!IofCallDriver;Ntfs.sys!NtfsFsdRead;Ntfs.sys!NtfsCommonRead"

[[samples]]
process = "reader.exe"
cpu_time = "0.002s"
stack = "{call}"
"#
    )
}

/// A word of a text in place of another one, where it stands alone.
fn instead(text: &str, word: &str, other: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let (mut result, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let alone = !before.ends_with(part) && !after.starts_with(part);
        result.push_str(before);
        result.push_str(if alone { other } else { word });
        rest = after;
    }
    result + rest
}

/// Programs of a scenario: the names behind `[[process]]`.
fn programs(text: &str) -> BTreeSet<String> {
    let parsed: toml::Table = text.parse().unwrap();
    let list = parsed.get("process").and_then(|list| list.as_array()).cloned().unwrap_or_default();
    let names = list.iter().filter_map(|process| process.get("name")?.as_str().map(str::to_owned));
    names.filter(|name| name.ends_with(".exe")).collect()
}

/// Two programs of the story have each other's names: the verdict goes with the role.
#[test]
fn verdicts_follow_exchanged_names() {
    let mut faults = Vec::new();
    for story in drawn("exchange", stories("scenarios/findings"), 8) {
        let planted: Vec<String> =
            story.planted().iter().map(|(_, f)| f["culprit"].str().to_owned()).collect();
        let all = programs(&story.text);
        let Some(culprit) = planted.iter().find(|name| all.contains(*name)) else { continue };
        // Windows' own programs have parts that others cannot play.
        let mut innocents =
            all.iter().filter(|n| !planted.contains(n) && *n != "explorer.exe" && *n != "dwm.exe");
        let Some(innocent) = innocents.next_back() else { continue };
        if story.excused("exchanged") {
            continue;
        }
        let base = why(&story.text, &[]).unwrap();
        let swap = |text: &str| {
            let one = instead(text, culprit, "<culprit>");
            instead(&one, innocent, culprit).replace("<culprit>", innocent)
        };
        let report = why(&swap(&story.text), &[]).unwrap();
        for (id, _) in story.planted() {
            let (was, is) = (answer(&base, id), answer(&report, id));
            if was["answer"] != "found" {
                continue;
            }
            if is["answer"] != "found" || label(&is["hits"][0]) != swap(label(&was["hits"][0])) {
                faults.push(format!(
                    "{} exchanged: {id} is {}, {}",
                    story.name, is["answer"], is["hits"][0]["culprit"]
                ));
            }
        }
        let before = accused(&base).into_iter().map(|(id, who)| (id, swap(&who))).collect();
        nobody_else(&story, "exchanged", &before, &report, &mut faults);
    }
    none(&faults);
}

/// `TRACE_LOGFILE_HEADER.LogFileMode`, behind buffer header (72) and record header (32), and its bit for series.
const MODE: (usize, u8) = (72 + 32 + 0x20, 8);

/// Splits a file as sessions do that go on in another one: the later buffers are in the second file.
fn split(trace: &Path) -> [PathBuf; 2] {
    let mut bytes = std::fs::read(trace).unwrap();
    bytes[MODE.0] |= MODE.1;
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let number = |buffer: &[u8]| i64::from_le_bytes(buffer[0x18..0x20].try_into().unwrap());
    let (header, buffers) = bytes.split_at(size);
    let mut numbers: Vec<i64> = buffers.chunks(size).map(number).collect();
    numbers.sort_unstable();
    let half = numbers[numbers.len() / 2];
    let part = |first: bool| {
        let path = trace.with_file_name(if first { "s_000001.etl" } else { "s_000002.etl" });
        let mine = buffers.chunks(size).filter(|buffer| (number(buffer) < half) == first);
        std::fs::write(
            &path,
            mine.fold(header.to_vec(), |mut file, buffer| {
                file.extend_from_slice(buffer);
                file
            }),
        )
        .unwrap();
        path
    };
    [part(true), part(false)]
}

/// A session that went on in a second file: read together, both say what one file says.
#[test]
fn two_files_of_a_recording_say_what_one_says() {
    let mut faults = Vec::new();
    // What is said of the session itself may differ: it has another file.
    let stories = stories("scenarios/findings").into_iter().filter(|story| !story.name.starts_with("trace."));
    for story in drawn("merged", stories.collect(), 6) {
        let folder = tempfile::tempdir().unwrap();
        let trace = written(folder.path(), &machine(&story.text, "buffer_size", "\"8KB\""), &[]).unwrap();
        let base: Value = PARTLY.json(&["why", "--json", "-q", trace.str()]);
        let [one, two] = split(&trace);
        let report: Value = PARTLY.json(&["why", "--json", "-q", one.str(), two.str()]);
        same_verdict(&story, "two files", &base, &report, &mut faults);
    }
    none(&faults);
}

/// Somebody sets the machine's clock while the session takes its times from it: durations across are wrong, but nobody is accused for that.
#[test]
fn clock_jumps_accuse_nobody() {
    let mut faults = Vec::new();
    for story in drawn("clock", stories("scenarios/findings"), 6) {
        let base = why(&machine(&story.text, "clock", "\"system\""), &[]).unwrap();
        for (variant, by) in [("an hour forth", "\"1h\""), ("a fifth of a second back", "-0.2")] {
            let jump = format!("{{ at = \"1500ms\", by = {by} }}");
            let text = machine(&machine(&story.text, "clock", "\"system\""), "clock_jump", &jump);
            let Some(report) = why(&text, &[]) else { continue };
            let mut before = accused(&base);
            // Who is to blame may be blamed for more: a rate over a time that is not that long, a size that grows backwards.
            let guilty: BTreeSet<String> = before.iter().map(|(_, who)| who.clone()).collect();
            before.extend(accused(&report).into_iter().filter(|(_, who)| guilty.contains(who)));
            nobody_else(&story, variant, &before, &report, &mut faults);
        }
    }
    none(&faults);
}

/// Two runs of the same story with other dice: of all findings one pair in a hundred may be called changed. All: 200 pairs of each story.
#[test]
fn equal_runs_have_equal_findings() {
    let folder = tempfile::tempdir().unwrap();
    let (mut compared, mut changed) = (0, Vec::new());
    let pairs = if all() { 200 } else { 2 };
    for story in drawn("pairs", stories("scenarios/findings"), 8) {
        for pair in 0..pairs {
            let run = |side: &str, seed: u32| {
                let folder = folder.path().join(side);
                std::fs::create_dir_all(&folder).unwrap();
                written(&folder, &machine(&story.text, "seed", &seed.to_string()), &[]).unwrap()
            };
            let (a, b) = (run("a", 1000 + 2 * pair), run("b", 1001 + 2 * pair));
            let diff: Value = PARTLY.json(&["diff", "--json", "--quiet", a.str(), b.str()]);
            let mut wrong = 0;
            for verdict in diff["verdicts"].list() {
                compared += 1;
                if !["same", "cannot_tell", "absent"].contains(&verdict["changes"][0].str()) {
                    wrong += 1;
                    changed
                        .push(format!("{} {pair}: {} {}", story.name, verdict["id"], verdict["changes"][0]));
                }
            }
            assert!(wrong <= 2, "{changed:?}");
        }
    }
    println!("{compared} findings of equal runs compared, {} called changed", changed.len());
    assert!(compared > 0 && changed.len() * 100 <= compared + 99, "{}", changed.join("\n"));
}
