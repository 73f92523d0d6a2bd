//! Names in a trace are chosen by whoever made it: markup, escape codes, formulas, direction marks and as
//! many characters as a record holds go through every finding's culprit into every form of output, and do nothing there.

use crate::{ETWHY, Json as _, Str as _};
use etwhy_base::Guid;
use etwhy_etl::abi::header::CHANNEL_TRACELOGGING;
use etwhy_etl::write::{
    EventHead, RecordBuf, TraceSetup, TraceWriter, tracelogging_schema, tracelogging_traits,
};
use std::path::{Path, PathBuf};

/// As TOML escapes it: a formula, markup, an escape code, a direction mark, a bell.
const HOSTILE: &str = "=cmd|'C calc'#A0<img src=x onerror=alert(1)>\\u001b[31m\\u202e\\u0007{{x}}|`b`";

fn etwhy(arguments: &[&str]) -> String {
    let (code, out, errors) = ETWHY.ran(arguments);
    assert!(code < 2, "{arguments:?}: {errors}");
    no_control(&errors, "standard error");
    out
}

/// Nothing but line ends steers a terminal.
fn no_control(text: &str, what: &str) {
    let bad = text.chars().find(|&c| c != '\n' && c != '\t' && etwhy_export::is_unsafe(c));
    assert_eq!(bad, None, "{what}");
}

/// Scenarios with the program that they blame.
fn blamed() -> Vec<(PathBuf, String)> {
    let files = etwhy_testkit::scenarios(&["scenarios/findings"]);
    let culprit = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("culprit = \"").map(str::to_owned))?;
        let name = line.split('"').next()?.to_owned();
        // A literal string of TOML cannot hold the other name.
        let literal = text.lines().any(|line| line.contains('\'') && line.contains(&name));
        // The end of a longer name would be renamed, too.
        let inner = text.match_indices(&name).any(|(at, _)| text[..at].ends_with(char::is_alphanumeric));
        let named = text.contains(&format!("\nname = \"{name}\""));
        (name.ends_with(".exe") && named && !literal && !inner).then_some(name)
    };
    files.into_iter().filter_map(|file| culprit(&file).map(|name| (file, name))).collect()
}

/// A trace of the scenario in which the program has another name.
fn renamed(scenario: &Path, old: &str, new: &str, folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(scenario).unwrap().replace(old, new);
    let (file, trace) = (folder.join("renamed.toml"), folder.join("renamed.etl"));
    std::fs::write(&file, text).unwrap();
    ETWHY.synth(&file, &trace, &["--scale", "0.2"]);
    trace
}

#[test]
fn a_culprit_with_a_hostile_name_is_named_and_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let (html, md) = (folder.path().join("why.html"), folder.path().join("why.md"));
    let scenarios = blamed();
    assert!(scenarios.len() >= 15, "{}", scenarios.len());
    let mut found = 0;
    // Every third: each kind of finding takes the same way out.
    for (scenario, name) in scenarios.iter().step_by(3) {
        let trace = renamed(scenario, name, HOSTILE, folder.path());
        let trace = trace.str();
        let terminal = etwhy(&["why", trace, "--quiet"]);
        no_control(&terminal, "terminal");
        let files = ["--html", html.str(), "--md", md.str()];
        let json = etwhy(&[&["why", trace, "--quiet", "--json"], &files[..]].concat());
        no_control(&json, "JSON");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let hits = value["findings"].list().iter();
        found += hits
            .flat_map(|f| f["hits"].list())
            .filter(|hit| hit["culprit"].as_str().is_some_and(|c| c.contains("<img src=x onerror=alert(1)>")))
            .count();
        let page = std::fs::read_to_string(&html).unwrap();
        no_control(&page, "HTML");
        assert!(!page.contains("<img src=x"), "markup in the page of {name}");
        let text = std::fs::read_to_string(&md).unwrap();
        no_control(&text, "Markdown");
        assert!(!text.contains("<img"), "markup in the text of {name}");
        let query = "SELECT name, name AS again FROM process WHERE name LIKE '%calc%'";
        let csv = etwhy(&["sql", trace, query, "--format", "csv", "--quiet"]);
        no_control(&csv, "CSV");
        let cells: Vec<&str> = csv.lines().skip(1).flat_map(|line| line.split(',')).collect();
        assert!(
            !cells.is_empty() && cells.iter().all(|c| c.trim_start_matches('"').starts_with("'=cmd")),
            "{csv}"
        );
    }
    assert!(found >= 5, "only {found} findings name the program");
}

/// A folder from somebody else may have given a file its name, and a shell completes it.
#[cfg(unix)]
#[test]
fn paths_of_what_is_written_are_harmless_in_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(format!("x\u{1b}[2J\n\u{202e}\u{9b}{name}")).str().to_owned();
    let (tables, html, md, stacks) = (path("a.tables"), path("a.html"), path("a.md"), path("a.folded"));
    for line in [
        &["extract", "--demo", "--only", "process", "-o", &tables][..],
        &["why", "--demo", "--html", &html, "--md", &md],
        &["export", "folded", "--demo", "-o", &stacks],
    ] {
        let (code, _, errors) = ETWHY.ran(line);
        assert!(code < 2, "{errors}");
        no_control(&errors, "standard error");
        assert!(errors.contains("x␛[2J␊"), "{line:?} names what it wrote: {errors}");
    }
    for line in [&["why", "--x\u{1b}[2J"][..], &["\u{202e}y"], &["why", &path("missing.etl")]] {
        let (code, _, errors) = ETWHY.ran(line);
        assert!(code > 1 && !errors.is_empty());
        no_control(&errors, "standard error");
    }
}

#[test]
fn the_longest_name_is_cut_for_people_and_whole_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    // Symbol files are written for the modules on stacks, and file systems have limits of their own.
    let on_no_stack = |(file, name): &(PathBuf, String)| {
        !std::fs::read_to_string(file).unwrap().contains(&format!("{name}!"))
    };
    let (scenario, name) = blamed().into_iter().find(on_no_stack).unwrap();
    // The record of a process has the name three times over, twice in UTF-16, and at most 64 KiB.
    let long = "x".repeat(13_000);
    let trace = renamed(&scenario, &name, &long, folder.path());
    let trace = trace.str();
    let page = folder.path().join("why.html");
    etwhy(&["why", trace, "--quiet", "--json", "--html", page.str()]);
    let json = etwhy(&["dump", "process", trace, "--quiet", "--format", "json"]);
    assert!(json.contains(&long));
    assert!(std::fs::metadata(page).unwrap().len() < 2_000_000);
    let terminal = etwhy(&["why", trace, "--quiet"]);
    let widest = terminal.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest < 1000, "a line of {widest} characters");
}

/// A trace of events of programs alone: their providers, names and whoever describes them are hostile.
fn without_kernel_events(folder: &Path) -> PathBuf {
    const NAME: &str = "=cmd|'C calc'#A0<img src=x onerror=alert(1)>![i](http://evil.example/p.png)\u{1b}[31m\u{202e}\u{7}{{x}}`b`";
    let path = folder.join("user.etl");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = TraceWriter::new(file, TraceSetup::default()).unwrap();
    let mut record = RecordBuf::new();
    let start = 1_000_000;
    for n in 0..40 {
        // Starts and stops, errors among them; every fifth of a provider that nobody describes.
        let described = n % 5 != 4;
        let head = EventHead {
            provider: Guid([if described { 7 } else { 9 }; 16]),
            id: if described { 0 } else { 3 },
            channel: if described { CHANNEL_TRACELOGGING } else { 0 },
            level: if n % 8 == 1 { 2 } else { 4 },
            opcode: 1 + (n % 2) as u8,
            tid: 8,
            pid: 4,
            ..EventHead::default()
        };
        record.event(8, start + n * 10_000, &head);
        if described {
            record.ext(11, &tracelogging_schema(NAME, &[])).ext(12, &tracelogging_traits(NAME));
        }
        writer.write(0, &mut record).unwrap();
    }
    writer.finish_into().unwrap();
    path
}

#[test]
fn providers_of_a_trace_without_kernel_events_do_nothing_in_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let trace = without_kernel_events(folder.path());
    let trace = trace.str();
    let (html, md) = (folder.path().join("why.html"), folder.path().join("why.md"));
    let terminal = etwhy(&["why", trace, "--quiet"]);
    no_control(&terminal, "terminal");
    // The section is there, with the names in it, wherever lines break.
    let words = terminal.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["no kernel events", "Longest operations", "=cmd|", "Errors and warnings", "--manifests"] {
        assert!(words.contains(part), "no `{part}` in {terminal}");
    }
    // What is to be typed in has no name that a shell could take for more.
    let typed = terminal.lines().filter(|line| line.contains("PerfView /nogui"));
    assert!(typed.clone().count() <= 1 && typed.into_iter().all(|line| !line.contains(['|', '&', '`'])));
    let files = ["--html", html.str(), "--md", md.str()];
    let json = etwhy(&[&["why", trace, "--quiet", "--json"], &files[..]].concat());
    no_control(&json, "JSON");
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let activity = &value["activity"];
    assert_eq!(activity["problems"][0]["errors"], 4, "{activity}");
    assert!(activity["longest"][0]["name"].str().starts_with("=cmd|"));
    let page = std::fs::read_to_string(&html).unwrap();
    no_control(&page, "HTML");
    assert!(!page.contains("<img src=x"), "markup in the page");
    let text = std::fs::read_to_string(&md).unwrap();
    no_control(&text, "Markdown");
    assert!(!text.contains("<img") && !text.contains("![i]("), "markup in {text}");
}

/// What a file name may hold where all systems allow it, and what a line of a file may hold.
const FILE: &str = "![i](x)@me `b` \u{202e}gpj";
const CELL: &str = "![i](http://evil.example/p.png)<img src=x onerror=alert(1)>\u{1b}[31m\u{202e}|`b` @me";

/// Outside of code nothing is markup, and in a table no name makes a cell.
fn no_markup(markdown: &str, what: &str) {
    for line in markdown.lines() {
        let bare: String = line.split('`').step_by(2).collect();
        for part in ["![i](", "<img", "http://", " @me"] {
            assert!(!bare.contains(part), "{what}: `{part}` in {line}");
        }
    }
}

/// Every report that is a document: policies, counter logs, event logs, traces whose files have such names and hold them.
#[test]
fn documents_about_hostile_files_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |ending: &str| folder.path().join(format!("{FILE}{ending}")).to_str().unwrap().to_owned();
    let policy = format!(
        "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting\n\
         {CELL},System,Logon,{{0CCE9215-69AE-11D9-BED3-505054503030}},No Auditing,\n\
         {CELL},{CELL},Logoff,{{0CCE9216-69AE-11D9-BED3-505054503030}},Success,\n"
    );
    std::fs::write(file(".csv"), policy).unwrap();
    let counters = format!(
        "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\{CELL}\\Processor({CELL})\\% Processor Time\",\"\\\\{CELL}\\Processor({CELL})\\% DPC Time\"\n\
         \"05/01/2024 08:00:00.000\",\"99\",\"80\"\n\"05/01/2024 08:00:05.000\",\"98\",\"81\"\n\"05/01/2024 08:00:10.000\",\"98\",\"81\"\n"
    );
    std::fs::write(file("2.csv"), counters).unwrap();
    let scenario = &blamed()[0];
    let trace = renamed(&scenario.0, &scenario.1, HOSTILE, folder.path());
    std::fs::rename(trace, file(".etl")).unwrap();
    let mut commands: Vec<Vec<String>> = vec![
        vec!["audit".into(), file(".csv"), "--all".into()],
        vec!["counters".into(), file("2.csv"), "--all".into()],
        vec!["info".into(), file(".etl")],
        vec!["modules".into(), file(".etl")],
        vec!["symbols".into(), "missing".into(), file(".etl")],
    ];
    if let Some(corpus) = etwhy_testkit::corpus() {
        let log = corpus.join("evtx/omerbenamram+evtx/new-user-security.evtx");
        std::fs::copy(log, file(".evtx")).unwrap();
        commands.push(vec!["evtx".into(), "why".into(), file(".evtx"), "--all".into()]);
    }
    for command in commands {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        for columns in ["40", "80", "200"] {
            let (code, text, errors) = ETWHY.wide(columns).ran(&words);
            assert!(code < 2 && !text.is_empty(), "{words:?}: {errors}");
            no_control(&text, words[0]);
            no_control(&errors, words[0]);
        }
        if ["audit", "evtx"].contains(&words[0]) {
            let markdown = etwhy(&[&words[..], &["--md"]].concat());
            no_control(&markdown, words[0]);
            no_markup(&markdown, words[0]);
            assert!(markdown.contains("gpj"), "it names them: {markdown}");
        }
    }
}
