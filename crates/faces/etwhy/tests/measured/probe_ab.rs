//! `etwhy probe run --ab` with a tax that is real: the commands start and end a listener that must allow each open.
#![cfg(target_os = "linux")]

#[path = "../../../../sources/probe/tests/support/listener.rs"]
mod listener;

use etwhy_testkit::Program;
use listener::{DELAY_US, FOLDER, Listener, Mount, NAME, arguments};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The program.
const ETWHY: Program = crate::ETWHY.wide("100");

/// Starts the listener and returns when it listens. Its standard input is a pipe that it holds open itself, since it ends with that.
fn start(program: &Path, folder: &Path, place: &Path) -> String {
    let words = arguments().join(" ");
    format!(
        "cd '{0}' && {FOLDER}='{1}' '{2}' {words} <>input >said 2>&1 & echo $! > '{0}/pid'; \
         for i in $(seq 600); do grep -q 'listener: ready' '{0}/said' && exit 0; sleep 0.05; done; cat '{0}/said'; exit 1",
        place.display(),
        folder.display(),
        program.display()
    )
}

/// Ends it, if it runs, and returns when it is gone.
fn end(place: &Path) -> String {
    format!(
        "cd '{}'; : > said; [ -e pid ] || exit 0; kill $(cat pid); for i in $(seq 600); do \
         [ -e /proc/$(cat pid)/fdinfo/0 ] || {{ rm pid; exit 0; }}; sleep 0.05; done; exit 1",
        place.display()
    )
}

/// The listener must not outlive the test, whatever happens to the program.
struct Ends(String);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = Command::new("sh").args(["-c", &self.0]).status();
    }
}

fn rows<'v>(all: &'v Value, table: &str) -> &'v Vec<Value> {
    all[table].as_array().unwrap()
}

#[test]
fn a_listener_that_is_switched_on_and_off() {
    let _turn = etwhy_testkit::alone();
    let mount = match Mount::new() {
        Ok(mount) => mount,
        Err(why) => {
            return etwhy_testkit::skipped(&format!("a file system in memory cannot be mounted: {why}"));
        }
    };
    if let Err(why) = Listener::start(&mount.1) {
        return etwhy_testkit::skipped(&format!("no fanotify listener that is asked for permission: {why}"));
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join(NAME);
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    assert!(Command::new("mkfifo").arg(place.path().join("input")).status().unwrap().success());
    let (on, off) = (start(&program, &mount.1, place.path()), end(place.path()));
    let ends = Ends(off.clone());
    let (results, folder) = (place.path().join("ab.json"), mount.1.to_str().unwrap().to_owned());
    let results = results.to_str().unwrap();
    let mut words = vec!["probe", "run", "file-open", "--rounds", "8", "--settle", "0", "--folder", &folder];
    for set in ["files=200", "bytes=4096", "operations=open"] {
        words.extend(["--set", set]);
    }
    let run = ETWHY.run(&[words, vec!["--quiet", "-o", results, "--ab", &on, &off]].concat());
    assert!(!place.path().join("pid").exists(), "the end did not restore the state");
    drop(ends);
    println!("{}", run);

    let all: Value = ETWHY.json(&["probe", "compare", results, "--json"]);
    let opens: Vec<&Value> =
        rows(&all, "probe_difference").iter().filter(|row| row["measure"] == "open").collect();
    assert_eq!(opens.len(), 2, "first and second run: {opens:?}");
    for open in opens {
        assert_eq!(open["verdict"], "slower", "{open}");
        let number = |name: &str| open[name].as_f64().unwrap_or_else(|| panic!("{name}: {open}"));
        assert!(number("ratio_low") > 1.0 && number("ratio") > 3.0, "{open}");
        // What the listener did is measured by operation: it answers, nobody does while it is off.
        assert!(
            open["others_cpu_before_ns"].as_i64() == Some(0) && number("others_cpu_after_ns") >= 0.0,
            "{open}"
        );
        // Other load makes the listener late, and no earlier.
        let delay = (DELAY_US * 1000) as f64;
        let tax = number("after") - number("before");
        assert!((delay..25.0 * delay).contains(&tax), "{open}");
    }
    // Who it is: in the state in which it listens, and in no other.
    let accused: Vec<(&Value, &Value, &Value)> = rows(&all, "probe_suspect")
        .iter()
        .filter(|row| row["confidence"] != "possible")
        .map(|row| (&row["state"], &row["name"], &row["confidence"]))
        .collect();
    assert_eq!(accused, [(&Value::from("on"), &Value::from(NAME), &Value::from("proven"))]);
    let shown = ETWHY.run(&["probe", "compare", results]);
    assert!(
        shown.contains(&format!("on: {NAME} (")) && shown.contains("fanotify listener, proven"),
        "{shown}"
    );
}
