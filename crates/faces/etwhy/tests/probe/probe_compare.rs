//! `etwhy probe report`, `compare` and `run --ab` through the real program.

use etwhy_testkit::Program;
use std::path::Path;
use std::process::Output;

/// The program.
const ETWHY: Program = crate::ETWHY.wide("100");

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Results of six rounds in which an open takes so many nanoseconds.
fn results(path: &Path, started: u64, open_ns: u64) {
    let sample = |round: u64| {
        let (open, value) = (open_ns + round * open_ns / 50, open_ns + round * open_ns / 40);
        format!(
            r#"{{"measure":"open","variant":"first run","round":{round},"start_ns":0,"operations":100,"value":{value},"unit":"ns","wall_ns":1,"cpu_ns":null,"queue_ns":null,"blocked_ns":null,"waits":null,"p50_ns":{open},"p95_ns":null,"p99_ns":null,"max_ns":null}}"#
        )
    };
    let samples: Vec<String> = (0..6).map(sample).collect();
    let json = format!(
        r#"{{"schema":"etwhy.probe/1","version":"0.1.0","started_utc_s":{started},"took_ns":1,"machine":{{"facts":[]}},"products":[],
        "probes":[{{"probe":"file-open","parameters":{{}},"samples":[{}],"notes":[],"suspects":[]}}]}}"#,
        samples.join(",")
    );
    std::fs::write(path, json).unwrap();
}

#[test]
fn files_are_shown_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, page] = ["a.json", "b.json", "page.html"].map(|name| folder.path().join(name));
    results(&a, 1, 2_000);
    results(&b, 2, 1_900_000);
    let [a, b, page] = [&a, &b, &page].map(|path| path.to_str().unwrap());
    let compared = ETWHY.output(&["probe", "compare", a, b, "--html", page]);
    assert_eq!(compared.status.code(), Some(0), "{compared:?}");
    // 1,900,000 / 2,000 = 950; 10,000 times the mean of 1.898 ms are 19 s, and the mean of six rounds is 6.25 % above the first.
    let shown = text(&compared);
    assert!(shown.contains("950 times") && shown.contains("slower"), "{shown}");
    assert!(shown.contains("10,000 a day cost 20.2 s ("), "{shown}");
    assert!(std::fs::read_to_string(page).unwrap().contains("<svg"));
    let rows = ETWHY.output(&[
        "probe",
        "compare",
        a,
        b,
        "--sql",
        "SELECT verdict, round(ratio) FROM probe_difference",
        "-f",
        "csv",
    ]);
    assert!(text(&rows).contains("slower,950"), "{}", text(&rows));
    let series = ETWHY.output(&["probe", "report", a, "--dump", "probe_series", "-f", "csv"]);
    assert_eq!(text(&series).lines().count(), 2, "{}", text(&series));
    let all: serde_json::Value =
        serde_json::from_slice(&ETWHY.output(&["probe", "report", a, "--json"]).stdout).unwrap();
    assert_eq!(all.get("probe_run").and_then(|t| t.as_array()).map(Vec::len), Some(6));
    let same = ETWHY.output(&["probe", "compare", a, a]);
    assert_eq!(same.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&same.stderr).contains("same run"));
    assert_eq!(ETWHY.output(&["probe", "compare", a]).status.code(), Some(2));
    assert_eq!(ETWHY.output(&["probe", "report", page]).status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn states_alternate_and_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (log, work) = (folder.path().join("log"), folder.path().join("work"));
    std::fs::create_dir(&work).unwrap();
    let command = |word: &str| format!("echo {word} >> '{}'", log.display());
    let (on, off) = (command("on"), command("off"));
    let run = ETWHY.output(&[
        "probe",
        "run",
        "name-search",
        "--set",
        "files=100",
        "--rounds",
        "3",
        "--settle",
        "0",
        "--ab",
        &on,
        &off,
        "--folder",
        work.to_str().unwrap(),
        "--json",
    ]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    // Two runs in one state; off on, on off, off on, where nothing is switched that is already so; the end restores.
    let words = std::fs::read_to_string(&log).unwrap();
    assert_eq!(words.split_whitespace().collect::<Vec<_>>(), ["off", "on", "off", "on", "off"]);
    let all: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let states: Vec<&str> = all
        .get("probes")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|p| p.get("state")?.as_str())
        .collect();
    assert_eq!(states, ["off-1", "off-2", "off", "on"]);
    let failed = ETWHY.output(&[
        "probe",
        "run",
        "name-search",
        "--settle",
        "0",
        "--ab",
        "true",
        "echo why not; exit 3",
        "--folder",
        work.to_str().unwrap(),
    ]);
    assert_eq!(failed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("why not"), "{failed:?}");
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0);
}

/// A run of name-search in both states, in a folder of its own.
#[cfg(unix)]
fn alternate(folder: &Path, rounds: &str, on: &str, off: &str) -> (Output, String) {
    let (log, work) = (folder.join("log"), folder.join("work"));
    std::fs::create_dir(&work).unwrap();
    let command = |word: &str, then: &str| format!("echo {word} >> '{}'; {then}", log.display());
    let (on, off) = (command("on", on), command("off", off));
    let mut words = vec!["probe", "run", "name-search", "--set", "files=100", "--settle", "0", "--json"];
    words.extend(["--rounds", rounds, "--folder", work.to_str().unwrap(), "--ab", &on, &off]);
    let run = ETWHY.output(&words);
    let log = std::fs::read_to_string(&log).unwrap();
    (run, log.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(unix)]
#[test]
fn what_is_off_is_not_switched_off_again() {
    let folder = tempfile::tempdir().unwrap();
    // As `net stop`: it fails if the service does not run.
    let state = folder.path().join("runs");
    let (on, off) = (
        format!("touch '{0}'", state.display()),
        format!("[ ! -e '{0}.once' ] && touch '{0}.once' || rm '{0}'", state.display()),
    );
    let (run, log) = alternate(folder.path(), "2", &on, &off);
    assert_eq!((run.status.code(), log.as_str()), (Some(0), "off on off"), "{run:?}");
    assert!(!String::from_utf8_lossy(&run.stderr).contains("restored"), "{run:?}");
}

#[cfg(unix)]
#[test]
fn a_command_that_fails_later_costs_the_rest_alone() {
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("once");
    let on = format!("[ ! -e '{0}' ] && touch '{0}' || {{ echo no more; exit 3; }}", once.display());
    let (run, log) = alternate(folder.path(), "4", &on, "true");
    // off on, on off, off and the second on, which fails; the end restores.
    assert_eq!((run.status.code(), log.as_str()), (Some(1), "off on off on off"), "{run:?}");
    let all: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let probes = all["probes"].as_array().unwrap();
    let rounds = |at: usize| {
        let rounds = probes[at]["samples"].as_array().unwrap().iter().map(|s| s["round"].as_u64().unwrap());
        rounds.max().unwrap() + 1
    };
    // off-1, off-2, off, on
    assert_eq!((probes.len(), rounds(2), rounds(3)), (4, 3, 2));
    let ended = |p: &serde_json::Value| p["ended"].as_str().is_some_and(|why| why.contains("no more"));
    assert!(probes.iter().all(ended), "{run:?}");
}

#[test]
fn a_wrong_value_for_a_later_probe_is_told_before_the_first_starts() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("results.json");
    let words = [
        "probe",
        "run",
        "name-search",
        "file-open",
        "--quick",
        "--rounds",
        "1",
        "--set",
        "files=100",
        "--set",
    ];
    let place = ["--folder", folder.path().to_str().unwrap(), "-o", kept.to_str().unwrap()];
    let run = ETWHY.output(&[&words[..], &["bytes=99999999999999"], &place[..]].concat());
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(said.contains("file-open: bytes=99999999999999: from "), "{said}");
    assert!(run.stdout.is_empty() && !kept.exists(), "{run:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_kept_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let words =
        ["probe", "run", "name-search", "--quick", "--rounds", "1", "--set", "files=100", "--folder", place];
    // A device on which nothing can be written: full(4).
    let full = ETWHY.output(&[&words[..], &["-o", "/dev/full"]].concat());
    assert_eq!(full.status.code(), Some(1), "{full:?}");
    assert!(text(&full).contains("A new file took"), "{full:?}");
    assert!(String::from_utf8_lossy(&full.stderr).contains("cannot write /dev/full"), "{full:?}");
    let null = ETWHY.output(&[&words[..], &["-o", "/dev/null"]].concat());
    assert_eq!(null.status.code(), Some(0), "{null:?}");
    let missing = ETWHY.output(&[&words[..], &["--html", "/no/such/folder/page.html"]].concat());
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert!(missing.stdout.is_empty(), "{missing:?}");
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_says_what_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (log, work) = (folder.path().join("log"), folder.path().join("work"));
    std::fs::create_dir(&work).unwrap();
    // The first command that makes a state goes on until the test has ended the program.
    let on = format!("echo on > '{}'; sleep 60 & echo $! >> '{0}'; wait", log.display());
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_etwhy"));
    command.args(["probe", "run", "name-search", "--set", "files=100", "--settle", "0", "--folder"]);
    command.arg(&work).args(["--ab", &on, "true restore-me"]);
    let child =
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let sleeper = || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.strip_suffix('\n').and_then(|text| text.lines().nth(1).map(str::to_owned))
    };
    let start = std::time::Instant::now();
    while sleeper().is_none() {
        assert!(start.elapsed().as_secs() < 60);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let signal = |name: &str, process: &str| {
        std::process::Command::new("kill").args([name, process]).status().unwrap()
    };
    let process = child.id().to_string();
    signal("-INT", &process);
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal("-INT", &process);
    let output = child.wait_with_output().unwrap();
    signal("-KILL", &sleeper().unwrap());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("the state was not restored, please do it: true restore-me"), "{said}");
}
