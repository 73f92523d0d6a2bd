//! `etwhy tree`, `etwhy flame`, `etwhy explain`: the story of the syscall hook with its milliseconds, sums that are those of
//! the tables, pictures that are well-formed.

use etwhy_testkit::{Json as _, Program, Str as _};
use serde_json::Value;
use std::collections::BTreeMap;

/// The program.
const ETWHY: Program = crate::ETWHY.wide("200").partly();

fn run_in(arguments: &[&str], columns: usize) -> String {
    let output = ETWHY.command(arguments).env("COLUMNS", columns.to_string()).output().unwrap();
    // What a real trace lost is no failure.
    let errors = etwhy_testkit::text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    ETWHY.json(arguments)
}

/// Weight of each node by the names from the root to it.
fn paths(tree: &Value) -> BTreeMap<String, (i64, i64)> {
    let mut names: Vec<String> = Vec::new();
    let mut out = BTreeMap::new();
    for node in tree["nodes"].list() {
        let name = node["name"].str();
        let path = match node["parent"].as_u64() {
            Some(parent) => format!("{}>{name}", names[parent as usize]),
            None => name.to_owned(),
        };
        out.insert(path.clone(), (node["weight"].int(), node["self"].int()));
        names.push(path);
    }
    out
}

fn own_sum(tree: &Value) -> i64 {
    tree["nodes"].list().iter().map(|node| node["self"].int()).sum()
}

/// The story as its investigator published it: milliseconds with what was called, and calls by depth.
const STORY: &[(usize, &str, i64)] = &[
    (0, "KernelBase.dll!SleepEx", 2_522_541),
    (1, "ntdll.dll!NtDelayExecution", 2_510_323),
    (2, "ntoskrnl.exe!KiSystemServiceExitPico", 2_489_111),
    (3, "ntoskrnl.exe!PerfInfoLogSysCallEntry", 1_387_533),
    (4, "ntoskrnl.exe!EtwTraceKernelEvent", 1_386_492),
    (5, "ntoskrnl.exe!EtwpLogKernelEvent", 1_384_792),
    (6, "tedrdrv.sys!?", 1_251_146),
    (7, "ntoskrnl.exe!ExfReleaseRundownProtection", 435_011),
    (7, "ntoskrnl.exe!ExfAcquireRundownProtection", 431_336),
    (3, "ntoskrnl.exe!PerfInfoLogSysCallExit", 1_061_081),
    (4, "ntoskrnl.exe!EtwTraceKernelEvent", 1_059_181),
    (5, "ntoskrnl.exe!EtwpLogKernelEvent", 1_056_491),
    (6, "tedrdrv.sys!?", 916_549),
];

#[test]
fn the_story_of_the_syscall_hook() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("hook.etl");
    ETWHY.synth(&etwhy_testkit::root().join("scenarios/syscall_hook.toml"), &trace, &[]);
    let trace = trace.str();
    let focus = ["--focus", "SleepEx", "--trim-above", "SleepEx", "--by", "none", "--quiet"];
    let tree = json(&[&["tree", trace, "--json"], &focus[..]].concat());
    let found = paths(&tree);
    let mut above: Vec<&str> = Vec::new();
    for (depth, name, ms) in STORY {
        above.truncate(*depth);
        above.push(name);
        let path = format!("[all]>{}", above.join(">"));
        let (weight, _) = *found.get(&path).unwrap_or_else(|| panic!("no {path}: {found:?}"));
        let off = (weight as f64 / 1e6 - *ms as f64).abs() / *ms as f64;
        assert!(off < 0.02, "{path}: {weight} ns, the story has {ms} ms");
    }
    // tedrdrv.sys took 41,649 ms itself below the entry.
    let entry =
        STORY[..7].iter().map(|(_, name, _)| *name).filter(|n| !n.contains("Exit") || n.contains("Pico"));
    let path = format!("[all]>{}", entry.collect::<Vec<_>>().join(">"));
    assert!((found[&path].1 as f64 / 1e6 / 41_649.0 - 1.0).abs() < 0.02, "{:?}", found[&path]);
    // What the terminal prints are those milliseconds.
    let text = run_in(&[&["tree", trace], &focus[..]].concat(), 80);
    for (_, name, ms) in STORY {
        let ms = etwhy_base::units::thousands((*ms).into());
        let is = |line: &str| line.trim_start().starts_with(&ms) && line.contains(name);
        assert!(text.lines().any(is), "{ms} {name}\n{text}");
    }
    let driver = json(&["tree", trace, "--butterfly", "tedrdrv.sys", "--json", "--quiet"]);
    let ms = |key: &str| driver[key].int() / 1_000_000;
    assert_eq!((ms("inclusive"), ms("exclusive")), (2_167_695, 958_198));
    let explained = json(&["explain", "tedrdrv.sys", trace, "--json", "--quiet"]);
    assert_eq!(explained["knowledge"]["module"]["vendor"], "Palo Alto Networks");
    assert_eq!(explained["here"][0]["inclusive"], driver["inclusive"]);
    let callers = explained["here"][0]["callers"].list();
    assert_eq!(callers[0]["name"], "ntoskrnl.exe!EtwpLogKernelEvent");
    // What was not recorded is said, with the recording that has it.
    let text = ETWHY.run(&["tree", trace, "--metric", "wait", "--quiet"]);
    assert!(text.starts_with("cannot tell, because table cswitch is empty"), "{text}");
    assert!(text.contains("etwhy record --print cpu"), "{text}");
}

#[test]
fn every_metric_answers_or_says_why_not() {
    let listed = ETWHY.run(&["tree", "--list-metrics"]);
    let names = listed
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next());
    let mut answered = 0;
    for name in names.chain(["virtual_alloc.committed_bytes", "cswitch.count"]) {
        let text = ETWHY.run(&["tree", "--demo", "--quiet", "--metric", name]);
        if text.starts_with("cannot tell, because ") {
            continue;
        }
        answered += 1;
        let tree = json(&["tree", "--demo", "--quiet", "--metric", name, "--json"]);
        assert_eq!(own_sum(&tree), tree["total"].int(), "{name}");
        let inverted = json(&[
            "tree",
            "--demo",
            "--quiet",
            "--metric",
            name,
            "--json",
            "--invert",
            "--min-percent",
            "3",
        ]);
        assert_eq!(inverted["total"], tree["total"], "{name}");
        assert_eq!(own_sum(&inverted), tree["total"].int(), "{name}");
    }
    assert!(answered >= 15, "{answered}");
}

#[test]
fn trees_fit_the_terminal() {
    for (columns, more) in [
        (80, &[][..]),
        (200, &[]),
        (80, &["--butterfly", "libiomp5md.dll"]),
        (80, &["--metric", "busy", "--by", "process,thread"]),
    ] {
        let text = run_in(&[&["tree", "--demo", "--quiet"], more].concat(), columns);
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        assert!(text.contains("└─") || more.contains(&"--butterfly"), "{text}");
    }
}

#[test]
fn an_extract_answers_as_the_trace_does() {
    let folder = tempfile::tempdir().unwrap();
    let extract = folder.path().join("extract");
    ETWHY.run(&["extract", "--demo", "--quiet", "-o", extract.str()]);
    for more in [&[][..], &["--metric", "wait", "--by", "thread"], &["--metric", "energy", "--just-my-code"]]
    {
        let of_trace = json(&[&["tree", "--demo", "--quiet", "--json"], more].concat());
        let of_extract = json(&[&["tree", extract.str(), "--quiet", "--json"], more].concat());
        assert_eq!(of_trace, of_extract, "{more:?}");
    }
}

#[test]
fn energy_is_that_of_the_bill() {
    let tree = json(&["tree", "--demo", "--quiet", "--json", "--metric", "energy"]);
    let bill = ETWHY.run(&[
        "sql",
        "--demo",
        "--quiet",
        "--format",
        "json",
        "SELECT culprit, energy_j FROM bill WHERE kind = 'process' AND culprit LIKE 'solver.exe%'",
    ]);
    let bill: Value = serde_json::from_str(&bill).unwrap();
    let joules = bill[0]["energy_j"].float();
    let found = paths(&tree);
    let (_, (weight, _)) = found
        .iter()
        .find(|(path, _)| path.starts_with("[all]>solver.exe") && path.matches('>').count() == 1)
        .unwrap();
    // The bill has three digits.
    assert!((*weight as f64 / 1e6 / joules - 1.0).abs() < 0.005, "{weight} µJ, {joules} J");
}

#[test]
fn sums_of_real_traces_are_those_of_their_samples() {
    let Some(corpus) = etwhy_testkit::corpus_file("etl") else { return };
    let mut compared = 0;
    for file in etwhy_testkit::traces(&corpus) {
        // Counts that another reader made: which traces have samples, and how many.
        let relative = file.strip_prefix(&corpus).unwrap();
        let counts = corpus.join("counts").join(format!("{}.json", relative.display()));
        let Ok(counts) = std::fs::read_to_string(&counts) else { continue };
        let counts: Value = serde_json::from_str(&counts).unwrap();
        let Some(samples) = counts["events"]["PerfInfo/SampledProfile"].as_i64() else { continue };
        let file = file.str();
        let tree = json(&["tree", file, "--quiet", "--metric", "busy", "--by", "process,module", "--json"]);
        let rows = ETWHY.run(&[
            "dump",
            "sample",
            file,
            "--quiet",
            "--format",
            "csv",
            "--columns",
            "process,weight_ns,in_dpc,in_isr",
        ]);
        let (mut busy, mut weight, mut all) = (0, 0, 0);
        for row in rows.lines().skip(1) {
            all += 1;
            let cells: Vec<&str> = row.rsplitn(4, ',').collect();
            let idle = cells[3].trim_matches('"') == "Idle (0)" || cells[3].ends_with(" (0)");
            if !idle || cells[0] == "true" || cells[1] == "true" {
                busy += 1;
                weight += cells[2].parse::<i64>().unwrap();
            }
        }
        assert_eq!(all, samples, "{file}: samples of another reader");
        assert_eq!((tree["count"].as_i64(), tree["total"].as_i64()), (Some(busy), Some(weight)), "{file}");
        for more in [
            &["--invert"][..],
            &["--merge-recursion", "--collapse", "ntoskrnl.exe"],
            &["--just-my-code", "--min-percent", "2"],
        ] {
            let folded = json(&[&["tree", file, "--quiet", "--metric", "busy", "--json"], more].concat());
            assert_eq!(
                (folded["total"].as_i64(), own_sum(&folded)),
                (Some(weight), weight),
                "{file} {more:?}"
            );
        }
        compared += 1;
    }
    assert!(compared >= 2, "{compared} traces with samples");
}

#[test]
fn pictures_are_well_formed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).str().to_owned();
    let (svg, html, change) = (path("a.svg"), path("a.html"), path("change.svg"));
    ETWHY.run(&["flame", "--demo", "--quiet", "-o", &svg, "--icicle"]);
    ETWHY.run(&["flame", "--demo", "--quiet", "-o", &html, "--metric", "wait", "--color", "category"]);
    let text = std::fs::read_to_string(&svg).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    assert_eq!((root.tag_name().name(), root.attribute("role")), ("svg", Some("img")));
    for name in ["title", "desc"] {
        assert!(
            root.children().any(|n| n.tag_name().name() == name && n.text().is_some_and(|t| !t.is_empty())),
            "{name}"
        );
    }
    let boxes: Vec<_> = document.descendants().filter(|n| n.attribute("data-n").is_some()).collect();
    assert!(boxes.len() > 20);
    let number =
        |node: &roxmltree::Node<'_, '_>, name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
    for one in &boxes {
        assert!(number(one, "data-l") >= 0.0 && number(one, "data-l") + number(one, "data-w") <= 1.0 + 1e-6);
    }
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(
        page.contains("default-src 'none'") && !page.contains("http://")
            || page.matches("http://www.w3.org/2000/svg").count() == page.matches("http://").count()
    );
    // A trace is as it was before itself.
    let trace = ETWHY.story("openmp_spin", "0.05", folder.path());
    let trace = trace.str();
    ETWHY.run(&["flame", trace, trace, "--diff", "--quiet", "-o", &change]);
    let text = std::fs::read_to_string(&change).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let classes: Vec<&str> = document
        .descendants()
        .filter(|n| n.attribute("data-n").is_some())
        .filter_map(|n| n.attribute("class"))
        .collect();
    assert!(classes.len() > 5 && classes.iter().all(|class| *class == "n same"), "{classes:?}");
    assert!(text.contains("as before"), "the legend");
}

#[test]
fn knowledge_needs_no_trace() {
    let text = ETWHY.run(&["explain", "WdFilter.sys"]);
    assert!(text.contains("328010") && text.contains("antivirus"), "{text}");
    assert!(ETWHY.run(&["explain", "nothing!known"]).contains("nothing is known"));
}
