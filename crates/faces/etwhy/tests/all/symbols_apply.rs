//! Symbols that come later: an extract made without any, named by `etwhy symbols apply`, says what a pass with symbols says.

use crate::{Are as _, ETWHY, Json as _, Str as _, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

fn run(arguments: &[&str]) -> Output {
    // What one run has read must not name anything in the next.
    ETWHY.command(arguments).env("ETWHY_CACHE", "").output().unwrap()
}

fn etwhy(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn ask(input: &str, query: &str, options: &[&str]) -> Vec<Value> {
    let lines = etwhy(&[&["sql", input, query, "--format", "jsonl", "--quiet"], options].concat());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What must be the same: names, sums by name, stacks by name. Numbers of frames may differ.
const QUESTIONS: [&str; 7] = [
    "SELECT module, function, file, line, symbol_source, inlined, count(*) AS n FROM frame \
     GROUP BY module, function, file, line, symbol_source, inlined ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT class, module, function, inclusive_ns, exclusive_ns, samples FROM function_cost \
     ORDER BY class, module, function, inclusive_ns, exclusive_ns",
    "SELECT class, category, tag, inclusive_ns, exclusive_ns FROM tag_cost ORDER BY 1, 2, 3, 4, 5",
    "SELECT stack_id, depth, kernel_depth, leaf, root, tag FROM stack ORDER BY stack_id",
    "SELECT s.stack_id, s.position, f.label FROM stack_frame s JOIN frame f ON f.frame_id = s.frame_id ORDER BY 1, 2",
    "SELECT kind, routine, module, count(*) AS n, sum(exclusive_ns) AS ns FROM dpc GROUP BY kind, routine, module ORDER BY 1, 2, 3",
    "SELECT start_function, count(*) AS n FROM thread GROUP BY start_function ORDER BY 1",
];

fn check(trace: &Path, symbols: &Path, folder: &Path) -> String {
    let path = |name: &str| folder.join(name).str().to_owned();
    let (bare, later, direct) = (path("bare"), path("later"), path("direct"));
    let (trace, symbols) = (trace.str(), symbols.str());
    etwhy(&["extract", trace, "-o", &bare, "--quiet"]);
    etwhy(&["extract", trace, "-o", &direct, "--quiet", "--symbols", symbols]);
    let output = run(&["symbols", "apply", &bare, "-o", &later, "--symbols", symbols]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    for question in QUESTIONS {
        let (a, b) = (ask(&direct, question, &[]), ask(&later, question, &[]));
        let first = a.iter().zip(&b).find(|(a, b)| a != b);
        assert_eq!((a.len(), first), (b.len(), None), "{question}");
        assert!(!a.is_empty() || question.contains("FROM dpc"), "{question}");
    }
    // In place, the same.
    etwhy(&["symbols", "apply", &bare, "--symbols", symbols]);
    assert_eq!(ask(&bare, QUESTIONS[1], &[]), ask(&later, QUESTIONS[1], &[]));
    said
}

#[test]
fn a_story_named_later_is_the_story() {
    let folder = tempfile::tempdir().unwrap();
    let trace = ETWHY.story("syscall_hook", "0.02", folder.path());
    // Symbols beside the trace would be used by themselves.
    let away = folder.path().join("away");
    std::fs::rename(folder.path().join("symbols"), &away).unwrap();
    let said = check(&trace, &away, folder.path());
    assert!(said.contains("places without a name have one now"), "{said}");
}

const INLINED: &str = r#"
[machine]
name = "INLINED"
cpus = 2
duration = "2s"

[[process]]
name = "app.exe"

[[samples]]
process = "app.exe"
busy = 1
arrival = "exact"
stacks = [
  { weight = 3, frames = "ntdll!RtlUserThreadStart;app.exe!main;app.exe!Work" },
  { weight = 1, frames = "ntdll!RtlUserThreadStart;app.exe!main;app.exe!Work;ntdll!NtTraceEvent;nt!EtwpLogKernelEvent" },
]
"#;

/// Writes into the symbol file of a module that in all of `function` `middle` is inlined, and in that `inner`.
fn inline(symbols: &Path, module: &str, function: &str, [middle, inner]: [&str; 2]) {
    let folder =
        std::fs::read_dir(symbols.join(format!("{module}.pdb"))).unwrap().next().unwrap().unwrap().path();
    let file = folder.join(format!("{module}.sym"));
    let mut out = String::new();
    for line in std::fs::read_to_string(&file).unwrap().lines() {
        out.push_str(&format!("{line}\n"));
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "MODULE" {
            out.push_str(&format!(
                "FILE 1 c:\\src\\a.cc\nINLINE_ORIGIN 0 {middle}\nINLINE_ORIGIN 1 {inner}\n"
            ));
        } else if words[0] == "FUNC" && words[4] == function {
            let (start, size) = (words[1], words[2]);
            out.push_str(&format!("INLINE 0 11 1 0 {start} {size}\nINLINE 1 21 1 1 {start} {size}\n"));
            out.push_str(&format!("{start} {size} 31 1\n"));
        }
    }
    assert!(out.contains("\nINLINE 1 "), "{module} has no {function}");
    std::fs::write(file, out).unwrap();
}

#[test]
fn inlined_functions_are_frames_innermost_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).str().to_owned();
    let (story, trace, away) = (path("story.toml"), path("story.etl"), path("away"));
    std::fs::write(&story, INLINED).unwrap();
    ETWHY.synth(Path::new(&story), Path::new(&trace), &[]);
    std::fs::rename(folder.path().join("symbols"), &away).unwrap();
    inline(Path::new(&away), "app", "Work", ["ns::Middle(int)", "Inner"]);
    inline(Path::new(&away), "ntkrnlmp", "EtwpLogKernelEvent", ["EtwpMiddle", "EtwpInner"]);
    check(Path::new(&trace), Path::new(&away), folder.path());
    let symbols = ["--symbols", away.as_str()];

    // Every stack of the program, with what is inlined, file and line of each place.
    let query = "SELECT s.stack_id, s.depth, s.kernel_depth, s.leaf, s.root, f.label, f.inlined, f.line, f.file \
         FROM sample m JOIN stack s ON s.stack_id = m.stack_id JOIN stack_frame sf ON sf.stack_id = s.stack_id \
         JOIN frame f ON f.frame_id = sf.frame_id JOIN process p ON p.upid = m.upid WHERE p.name = 'app.exe' \
         GROUP BY s.stack_id, sf.position ORDER BY s.stack_id, sf.position";
    let mut stacks: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for row in ask(&trace, query, &symbols) {
        stacks.entry(row["stack_id"].int()).or_default().push(row);
    }
    let own = [
        ("app.exe!Inner", 1, Some(31)),
        ("app.exe!ns::Middle", 1, Some(21)),
        ("app.exe!Work", 0, Some(11)),
        ("app.exe!main", 0, None),
        ("ntdll.dll!RtlUserThreadStart", 0, None),
    ];
    let kernel = [
        ("ntoskrnl.exe!EtwpInner", 1, Some(31)),
        ("ntoskrnl.exe!EtwpMiddle", 1, Some(21)),
        ("ntoskrnl.exe!EtwpLogKernelEvent", 0, Some(11)),
    ];
    let whole: Vec<_> =
        kernel.iter().chain(&[("ntdll.dll!NtTraceEvent", 0, None)]).chain(&own).copied().collect();
    let mut seen = [0, 0];
    for rows in stacks.values() {
        let in_kernel = rows[0]["label"].str().starts_with("ntoskrnl");
        let wanted = if in_kernel { &whole[..] } else { &own[..] };
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                assert_eq!(row["file"].is_null(), row["line"].is_null());
                (row["label"].str(), row["inlined"].int(), row["line"].as_i64())
            })
            .collect();
        assert_eq!(found, wanted);
        let first = &rows[0];
        assert_eq!(
            (first["depth"].as_u64(), &first["leaf"]),
            (Some(wanted.len() as u64), &Value::from(wanted[0].0))
        );
        assert_eq!(first["kernel_depth"], if in_kernel { 3 } else { 0 });
        assert_eq!(first["root"], "ntdll.dll!RtlUserThreadStart");
        seen[usize::from(in_kernel)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");

    // What is inlined innermost has the exclusive time: three quarters and one.
    let costs = ask(
        &trace,
        "SELECT function, sum(inclusive_ns) AS inclusive, sum(exclusive_ns) AS exclusive FROM function_cost \
         JOIN process p USING (upid) WHERE p.name = 'app.exe' GROUP BY 1",
        &symbols,
    );
    let cost = |function: &str| {
        let row = costs.iter().find(|row| row["function"] == function).unwrap_or_else(|| panic!("{costs:?}"));
        (row["inclusive"].int(), row["exclusive"].int())
    };
    let (all, outside) = cost("app.exe!main");
    let (_, own_time) = cost("app.exe!Inner");
    let (_, kernel_time) = cost("ntoskrnl.exe!EtwpInner");
    assert!(all > 1_900_000_000, "{all}");
    assert_eq!((outside, own_time + kernel_time), (0, all));
    assert!((own_time - 3 * kernel_time).abs() <= all / 50, "{own_time} {kernel_time}");
    for function in ["app.exe!Work", "app.exe!ns::Middle"] {
        assert_eq!(cost(function), (all, 0));
    }
    assert_eq!(cost("app.exe!Inner").0, all);
    for function in ["ntoskrnl.exe!EtwpLogKernelEvent", "ntoskrnl.exe!EtwpMiddle"] {
        assert_eq!(cost(function), (kernel_time, 0));
    }

    // The tree has them as callers and callees.
    let json = etwhy(
        &[&["tree", &trace, "--focus", "main", "--by", "none", "--json", "--quiet"], &symbols[..]].concat(),
    );
    let tree: Value = serde_json::from_str(&json).unwrap();
    let nodes = tree["nodes"].list();
    let inner = nodes.iter().find(|node| node["name"] == "app.exe!Inner").unwrap();
    assert_eq!((inner["weight"].as_i64(), inner["self"].as_i64()), (Some(all), Some(own_time)));
    let mut up = Vec::new();
    let mut at = inner["parent"].as_u64();
    while let Some(parent) = at {
        let node = &nodes[parent as usize];
        up.push(node["name"].str());
        at = node["parent"].as_u64();
    }
    up.are(&["app.exe!ns::Middle", "app.exe!Work", "app.exe!main", "ntdll.dll!RtlUserThreadStart", "[all]"]);
}

#[test]
fn a_real_trace_named_later_is_the_same() {
    let Some(corpus) = etwhy_testkit::corpus_file("etl/microsoft+perfview") else { return };
    let trace = corpus.join("net.4.5.x86_PerfViewData.etl");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("trace.etl");
    std::fs::copy(&trace, &copy).unwrap();
    check(&copy, &corpus.join("symbols"), folder.path());
}

#[test]
fn a_trace_is_no_extract() {
    let output = run(&["symbols", "apply", "/nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no extract"));
}
