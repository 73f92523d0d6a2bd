//! The HTML report in a browser: `web/test/report.test.mjs` on the example and on the demonstration trace.
//!
//! `scripts/test` installs Chromium and what `web/` needs, and names the browser in `ETWHY_BROWSER`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

#[test]
fn reports_work_in_a_browser() {
    let Some(browser) = std::env::var_os("ETWHY_BROWSER").filter(|name| !name.is_empty()) else {
        println!(
            "skipped: the HTML report in a browser, ETWHY_BROWSER names none (scripts/test installs it)"
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let example = folder.path().join("example.html");
    let mut file = std::fs::File::create(&example).unwrap();
    etwhy_report::html::write(&etwhy_report::example::report(), &mut file).unwrap();
    let demo = folder.path().join("demo.html");
    let status = Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(["why", "--demo", "--quiet", "--html"])
        .arg(&demo)
        .status()
        .unwrap();
    assert!(status.success());
    let reports: OsString = std::env::join_paths([example, demo]).unwrap();
    let output = Command::new("node")
        .args(["--test", "test/report.test.mjs"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web"))
        .env("ETWHY_BROWSER", browser)
        .env("ETWHY_REPORTS", reports)
        .output()
        .expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
