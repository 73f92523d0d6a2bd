//! The page of `etwhy serve` in a browser: `web/test/hud` on written scenarios, on names that attack, and on a real trace.
//!
//! `scripts/test` installs Chromium and what `web/` needs, and names the browser in `ETWHY_BROWSER`. With `ETWHY_SHOTS=folder` pictures of
//! every panel are left there.

use crate::ETWHY;
use crate::server::Server;
use etwhy_testkit::root;
use std::path::{Path, PathBuf};
use std::process::Command;

fn serve(arguments: &[&Path]) -> Server {
    Server::start(arguments)
}

/// A scenario whose blamed program has a name that attacks: markup, an escape code, a direction mark, a formula.
fn hostile(folder: &Path) -> PathBuf {
    const NAME: &str = "=cmd|'C calc'#A0<img src=x onerror=alert(1)>\\u001b[31m\\u202e\\u0007{{x}}|`b`";
    let text = std::fs::read_to_string(root().join("scenarios/syscall_hook.toml")).unwrap();
    let driver = text.replace("tedrdrv.sys", "<svg onload=alert(2)>.sys");
    let first = driver
        .lines()
        .find_map(|l| l.strip_prefix("name = \"")?.strip_suffix("\"").filter(|n| n.ends_with(".exe")));
    let program = first.expect("a program").to_owned();
    let (file, trace) = (folder.join("hostile.toml"), folder.join("hostile.etl"));
    std::fs::write(&file, driver.replace(&program, NAME)).unwrap();
    ETWHY.synth(&file, &trace, &["--scale", "0.01"]);
    trace
}

/// The real trace, if there is a corpus. Where CI says that there is one, it must be there.
fn real() -> Option<PathBuf> {
    etwhy_testkit::corpus_file("etl/microsoft+perfview/net.4.5.x86_PerfViewData.etl")
}

#[test]
fn the_page_works_in_a_browser() {
    let _turn = etwhy_testkit::alone();
    let Some(browser) = std::env::var_os("ETWHY_BROWSER").filter(|name| !name.is_empty()) else {
        etwhy_testkit::skipped(
            "the page of etwhy serve in a browser, ETWHY_BROWSER names none (scripts/test installs it)",
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    ETWHY.synth(&root().join("scenarios/dpc_flood.toml"), &at("dpc.etl"), &["--scale", "0.1"]);
    ETWHY.synth(
        &root().join("scenarios/dpc_flood_ids_uninstalled.toml"),
        &at("dpc_after.etl"),
        &["--scale", "0.1"],
    );
    // A replay needs buffers that come one after the other: the whole story.
    ETWHY.synth(&root().join("scenarios/dpc_flood.toml"), &at("full.etl"), &["--scale", "1"]);
    ETWHY.synth(&root().join("scenarios/syscall_hook.toml"), &at("hook.etl"), &["--scale", "0.02"]);
    let mut servers = vec![
        ("demo", serve(&[Path::new("--demo")])),
        ("dpc", serve(&[&at("dpc.etl"), &at("dpc_after.etl")])),
        ("hook", serve(&[&at("hook.etl")])),
        // Two machines, and the same two in another order.
        ("pair", serve(&[&at("hook.etl"), &at("dpc.etl")])),
        ("swapped", serve(&[&at("dpc.etl"), &at("hook.etl")])),
        ("hostile", serve(&[&hostile(folder.path())])),
    ];
    if let Some(trace) = real() {
        servers.push(("real", serve(&[&trace])));
    }
    let firefox = std::env::var_os("ETWHY_FIREFOX")
        .map_or_else(|| PathBuf::from("/usr/bin/firefox-esr"), PathBuf::from);
    if !firefox.exists() {
        etwhy_testkit::skipped(
            "the tasks of the page in Firefox, ETWHY_FIREFOX names none (scripts/test installs it)",
        );
    }
    let named: Vec<String> =
        servers.iter().map(|(name, server)| format!("{name}={}", server.url())).collect();
    let output = Command::new("npm")
        .args(["run", "--silent", "test-hud"])
        .current_dir(root().join("web"))
        .env("ETWHY_BROWSER", browser)
        .env("ETWHY_HUD", named.join(";"))
        // For those that are started by the tests themselves.
        .env("ETWHY_PROGRAM", env!("CARGO_BIN_EXE_etwhy"))
        .env("ETWHY_TRACE", at("dpc.etl"))
        .env("ETWHY_REPLAY", at("full.etl"))
        .output()
        .expect("npm runs");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
}
