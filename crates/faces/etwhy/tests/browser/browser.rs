//! Pages in a browser: `web/test/report.test.mjs` on the example report and on that of the demonstration trace, and
//! `web/test/probe.test.mjs` on pages of probes.
//!
//! `scripts/test` installs Chromium and what `web/` needs, and names the browser in `ETWHY_BROWSER`.

use crate::ETWHY;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Runs tests of `web/test` with a browser, if there is one.
fn in_a_browser(test: &str, variable: &str, pages: impl FnOnce(&Path) -> OsString) {
    let _turn = etwhy_testkit::alone();
    let Some(browser) = std::env::var_os("ETWHY_BROWSER").filter(|name| !name.is_empty()) else {
        etwhy_testkit::skipped(&format!("{test}: ETWHY_BROWSER names no browser (scripts/test installs it)"));
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("node")
        .args(["--test", test])
        .current_dir(etwhy_testkit::root().join("web"))
        .env("ETWHY_BROWSER", browser)
        .env(variable, pages(folder.path()))
        .output()
        .expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn reports_work_in_a_browser() {
    in_a_browser("test/report.test.mjs", "ETWHY_REPORTS", |folder| {
        let example = folder.join("example.html");
        let mut file = std::fs::File::create(&example).unwrap();
        etwhy_report::html::write(&etwhy_report::example::report(), &mut file).unwrap();
        let demo = folder.join("demo.html");
        ETWHY.run(&["why", "--demo", "--quiet", "--html", demo.to_str().unwrap()]);
        std::env::join_paths([example, demo]).unwrap()
    });
}

/// The name of a process that would be markup if it were not shown as text.
const HOSTILE: &str = "<img src=x onerror=\"document.title='owned'\"> & </style><script>alert(1)</script>";

/// Results of six rounds in which an open takes so many nanoseconds; names grow slower with their number.
fn results(started: u64, open_ns: u64) -> Value {
    let sample = |measure: &str, variant: &str, n: Option<u64>, round: u64, ns: u64| {
        let ns = ns + round * ns / 50;
        json!({
            "measure": measure, "variant": variant, "n": n, "round": round, "start_ns": round, "operations": 100,
            "value": ns * 11 / 10, "unit": "ns", "wall_ns": ns * 110, "cpu_ns": ns * 60, "queue_ns": ns * 10,
            "blocked_ns": ns * 40, "waits": 100, "p50_ns": ns, "p95_ns": ns * 2, "p99_ns": ns * 3, "max_ns": ns * 9
        })
    };
    let (mut opens, mut names) = (Vec::new(), Vec::new());
    for round in 0..6 {
        opens.push(sample("list", "first run", None, round, 1_234));
        opens.push(sample("open", "first run", None, round, open_ns));
        opens.push(sample("open", "second run", None, round, 2_345));
        names.extend((1..=12).map(|n| sample("new file", "", Some(n * 100), round, 500 + n * n * 100)));
    }
    let suspect = json!({
        "name": HOSTILE, "process": 7, "kind": "fanotify listener", "evidence": ["it must allow opens"], "cpu_ns": 1_000_000,
        "blocked_ns": 2_000_000, "confidence": "proven"
    });
    json!({
        "schema": "etwhy.probe/1", "version": "0.1.0", "started_utc_s": started, "took_ns": 1,
        "machine": {"facts": [{"name": "cpu", "value": "AMD EPYC"}]}, "products": [],
        "probes": [
            {"probe": "file-open", "parameters": {}, "samples": opens, "notes": [HOSTILE], "suspects": [suspect]},
            {"probe": "name-search", "parameters": {}, "samples": names, "notes": [], "suspects": []}
        ]
    })
}

#[test]
fn pages_of_probes_work_in_a_browser() {
    in_a_browser("test/probe.test.mjs", "ETWHY_PROBE_PAGES", |folder| {
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        std::fs::write(path("name.txt"), HOSTILE).unwrap();
        let (before, after) = (path("before.json"), path("after.json"));
        std::fs::write(&before, results(1, 2_000).to_string()).unwrap();
        std::fs::write(&after, results(2, 1_900_000).to_string()).unwrap();
        for (name, words) in [
            ("report", vec!["probe", "report", after.as_str()]),
            ("compared", vec!["probe", "compare", before.as_str(), after.as_str()]),
        ] {
            let page = path(&format!("{name}.html"));
            let json = ETWHY.run(&[words, vec!["--html", &page, "--json"]].concat());
            std::fs::write(path(&format!("{name}.json")), json).unwrap();
        }
        folder.into()
    });
}
