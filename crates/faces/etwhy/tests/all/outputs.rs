//! Standard output in every command: results that do not arrive are exit code 1 with a message, a reader that goes away is
//! no failure, and `-o -` means standard output. The list of commands is the program's own.
#![cfg(target_os = "linux")] // `/dev/full`

use etwhy_testkit::text;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn etwhy(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_etwhy"));
    command.args(line.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace('~', " ")));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What the help lists as commands of `of`.
fn commands(folder: &Path, of: &str) -> Vec<String> {
    let output = etwhy(folder, &format!("{of} --help")).output().unwrap();
    let help = text(&output.stdout);
    let list = help.split("Commands:\n").nth(1).unwrap_or("").split("\n\n").next().unwrap_or("");
    let names = list.lines().filter_map(|l| l.strip_prefix("  ")).filter(|l| !l.starts_with(' '));
    names.filter_map(|l| l.split(' ').next()).filter(|n| *n != "help").map(str::to_owned).collect()
}

/// Inputs of all kinds, small.
fn inputs(folder: &Path) {
    let made = etwhy(folder, "synth --demo --scale 0.02 -o t.etl --quiet").output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    for line in ["extract t.etl -o x.tables --quiet", "fleet run t.etl -o store --quiet"] {
        let made = etwhy(folder, line).output().unwrap();
        assert!(made.status.success(), "{line}: {}", text(&made.stderr));
    }
    let policy = "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting\r\n\
                  PC,System,Logon,{0CCE9215-69AE-11D9-BED3-505054503030},Success,\r\n";
    std::fs::write(folder.join("policy.csv"), policy).unwrap();
    let counters = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\PC\\Processor(_Total)\\% Processor Time\"\r\n\
                    \"01/02/2024 10:00:00.000\",\"5\"\r\n\"01/02/2024 10:00:10.000\",\"7\"\r\n";
    std::fs::write(folder.join("counters.csv"), counters).unwrap();
}

/// Lines that print something, for every command; subcommands stand for themselves.
const LINES: &[(&str, &[&str])] = &[
    ("audit", &["audit policy.csv"]),
    ("counters", &["counters counters.csv", "counters counters.csv --json"]),
    ("diff", &["diff t.etl t.etl"]),
    (
        "dump",
        &["dump process t.etl", "dump process t.etl --format csv", "dump process x.tables --format json"],
    ),
    ("evtx", &[]),
    ("explain", &[]),
    ("export", &["export folded t.etl", "export speedscope t.etl", "export --list"]),
    ("extract", &[]),
    ("flame", &["flame --list-metrics"]),
    ("fleet", &["fleet rank processes store", "fleet coverage store --json"]),
    ("follow", &["follow t.etl", "follow t.etl --json"]),
    ("info", &["info t.etl"]),
    ("live", &["live --replay t.etl --speed max"]),
    ("modules", &["modules t.etl"]),
    ("path", &[]),
    ("probe", &["probe list"]),
    (
        "record",
        &[
            "record --print cpu",
            "record --evidence",
            "record start cpu --on host",
            "record merge t.etl --force -o m.etl",
        ],
    ),
    ("rules", &["rules"]),
    ("segments", &["segments t.etl", "segments t.etl --json"]),
    ("serve", &[]),
    ("sql", &["sql t.etl -c SELECT~*~FROM~process"]),
    ("strace", &[]),
    ("symbols", &["symbols path", "symbols plan t.etl"]),
    ("synth", &["synth --demo --print", "synth --demo --scale 0.01 --quiet -o again.etl"]),
    ("tree", &["tree t.etl"]),
    ("why", &["why t.etl", "why t.etl --json", "why x.tables"]),
];

#[test]
fn results_that_do_not_arrive_are_said_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    inputs(folder);
    let all = commands(folder, "");
    let known: Vec<&str> = LINES.iter().map(|(name, _)| *name).collect();
    assert_eq!(all, known, "a new command needs a line here");
    let mut lines: Vec<String> =
        LINES.iter().flat_map(|(_, lines)| *lines).map(|l| (*l).to_owned()).collect();
    lines.extend(["--help".to_owned(), "--version".to_owned()]);
    for name in &all {
        lines.push(format!("{name} --help"));
        lines.extend(commands(folder, name).iter().map(|sub| format!("{name} {sub} --help")));
    }
    for line in &lines {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = etwhy(folder, line).stdout(full).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("standard output cannot be written: No space left"), "{line}: {said}");
        assert!(said.contains("; make room, or choose a place on another disk"), "{line}: {said}");
        assert!(!said.contains("panicked"), "{line}: {said}");

        // Nobody reads.
        let mut child = etwhy(folder, line).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {said}");
        assert!(!said.contains("panicked") && !said.contains("roken pipe"), "{line}: {said}");
    }
}

/// Whoever asks for JSON gets it or is told why not, whatever else is asked: every switch of every command.
#[test]
fn json_is_json_or_refused_with_every_switch() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    inputs(folder);
    let mut asked = 0;
    // Those whose JSON nothing above asks for.
    let more = ["explain ntoskrnl.exe t.etl", "path t.etl", "strace t.etl", "rules show dpc.over-limit"];
    let lines =
        LINES.iter().flat_map(|(_, lines)| lines.iter().copied()).chain(more).chain(["record --list"]);
    for line in lines.filter(|line| !line.contains("--json") && !line.contains("--format")) {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let sub = words.next().filter(|word| commands(folder, name).iter().any(|sub| sub == word));
        let of = format!("{name} {}", sub.unwrap_or_default());
        let switches = switches(folder, &of);
        if !switches.iter().any(|switch| switch == "--json") {
            continue;
        }
        // Programs that wait for a browser or for more do not end.
        let waits = ["--json", "--help", "--verbose", "--version", "--open"];
        let with = switches.iter().map(String::as_str).filter(|switch| !waits.contains(switch));
        for switch in std::iter::once("").chain(with) {
            let output = etwhy(folder, &format!("{line} --json {switch}")).output().unwrap();
            let (out, said) = (text(&output.stdout), text(&output.stderr));
            let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
            let fits = match output.status.code() {
                // Lines of JSON may be none.
                Some(0 | 1) => is_json(&out) || out.lines().all(is_json),
                Some(2) => out.is_empty() && !said.trim().is_empty(),
                _ => false,
            };
            assert!(fits, "{line} --json {switch}: {:?} {said}\n{out}", output.status.code());
            asked += 1;
        }
    }
    assert!(asked > 100, "{asked}");
    for line in ["dump --list", "dump process --help-table", "tree --list-metrics", "record --list"] {
        let output = etwhy(folder, &format!("{line} --json")).output().unwrap();
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert!(rows.len() > 5 && rows.iter().all(|row| row["name"].is_string()), "{line}: {rows:?}");
    }
    let output = etwhy(folder, "dump --list -o list.csv").output().unwrap();
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    assert!(std::fs::read_to_string(folder.join("list.csv")).unwrap().contains("\nsample,"));
}

/// Options of a command that take no value.
fn switches(folder: &Path, of: &str) -> Vec<String> {
    let help = text(&etwhy(folder, &format!("{of} --help")).output().unwrap().stdout);
    let options = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let names = options.filter_map(|line| {
        let head = line.split("  ").next().unwrap_or(line);
        let name = head.split(' ').find(|word| word.starts_with("--"))?;
        (!head.contains('<')).then(|| name.trim_end_matches('.').to_owned())
    });
    names.collect()
}

#[test]
fn a_dash_is_standard_output_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    inputs(folder);
    let same = |line: &str| -> (Output, Output) {
        let run = |line: &str| etwhy(folder, line).output().unwrap();
        (run(line), run(&format!("{line} -o -")))
    };
    for name in commands(folder, "") {
        let help = text(&etwhy(folder, &format!("{name} --help")).output().unwrap().stdout);
        if !help.contains("--output <") {
            continue;
        }
        let lines = LINES.iter().find(|(known, _)| *known == name).unwrap().1;
        for line in lines.iter().filter(|line| !line.contains("-o ") && !line.contains("--list")) {
            let (plain, dash) = same(line);
            assert_eq!(text(&dash.stdout), text(&plain.stdout), "{line}: {}", text(&dash.stderr));
            assert_eq!(dash.status.code(), plain.status.code(), "{line}");
        }
    }
    // What is no stream says so.
    for line in ["synth --demo -o -", "extract t.etl -o -", "extract t.etl --sqlite -", "flame t.etl -o -"] {
        let output = etwhy(folder, line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{line}");
    }
    assert!(!folder.join("-").exists());
}

#[test]
fn a_trace_is_written_where_the_user_is() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let scenario = elsewhere.path().join("story.toml");
    let print = etwhy(folder.path(), "synth --demo --print").output().unwrap();
    std::fs::write(&scenario, print.stdout).unwrap();
    let line = format!("synth {} --scale 0.01 --quiet", scenario.display());
    let output = etwhy(folder.path(), &line).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(folder.path().join("story.etl").is_file());
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn a_trace_without_system_calls_is_no_failure_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let made = etwhy(folder.path(), "synth --demo --scale 0.01 --without SysCall -o t.etl --quiet")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let output = etwhy(folder.path(), "strace t.etl").output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no system calls"));
}

/// Half a trace would look like a damaged one.
#[test]
fn a_trace_that_does_not_fit_is_not_left() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_etwhy");
    let line = format!("trap '' XFSZ; ulimit -f 100; exec '{program}' synth --demo -o half.etl");
    let output = Command::new("sh").args(["-c", &line]).current_dir(folder.path()).output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("half.etl: cannot write: File too large"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!folder.path().join("half.etl").exists());
}

/// What happened, where, and what to do, whatever is written.
#[test]
fn a_file_that_does_not_fit_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    inputs(folder);
    let formats = ["csv", "json", "jsonl", "parquet", "table"];
    let mut lines: Vec<String> = formats.iter().map(|f| format!("dump event t.etl --format {f}")).collect();
    lines.extend(formats.iter().map(|f| format!("sql t.etl -c SELECT~*~FROM~sample --format {f}")));
    lines.extend(["export folded t.etl", "record --print cpu", "tree t.etl"].map(str::to_owned));
    for line in &lines {
        let output = etwhy(folder, &format!("{line} -o /dev/full")).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("/dev/full: ") && said.contains(": No space left"), "{line}: {said}");
        assert!(said.contains("; make room, or choose a place on another disk"), "{line}: {said}");
    }
    // In the middle of the rows, not at their end; and no half of a file is left.
    let program = env!("CARGO_BIN_EXE_etwhy");
    for format in formats {
        let line = format!(
            "trap '' XFSZ; ulimit -f 10; exec '{program}' dump event t.etl --format {format} -o rows"
        );
        let output = Command::new("sh").args(["-c", &line]).current_dir(folder).output().unwrap();
        let said = text(&output.stderr);
        assert!(said.contains("cannot write rows: File too large"), "{format}: {said}");
        assert!(said.contains("choose another place"), "{format}: {said}");
        assert!(output.status.code() == Some(1) && !folder.join("rows").exists(), "{format}: {said}");
    }
}
