//! A culprit inside the program: a library that was preloaded and sleeps in each open is found, and nobody else is blamed.
#![cfg(target_os = "linux")]

use crate::ETWHY;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Every open takes 2 ms longer, as with hooks of security products.
const HOOK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>
typedef int (*opens)(const char *, int, ...);
static int slowly(const char *name, const char *path, int flags, mode_t mode) {
    opens real = (opens)dlsym(RTLD_NEXT, name);
    usleep(2000);
    return real(path, flags, mode);
}
#define HOOK(name) int name(const char *path, int flags, ...) { \
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    return slowly(#name, path, flags, mode); }
HOOK(open)
HOOK(open64)
"#;

/// Programs that do nothing but use processors, as on a machine that builds; ended with their owner.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn start() -> Neighbours {
        let spin =
            || Command::new("sh").args(["-c", "while :; do :; done"]).stdout(Stdio::null()).spawn().unwrap();
        Neighbours((0..2).map(|_| spin()).collect())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn suspects(folder: &Path, preload: Option<&Path>) -> (Vec<Value>, String) {
    let mut command = ETWHY.command(&[
        "probe",
        "run",
        "file-open",
        "--quick",
        "--rounds",
        "1",
        "--json",
        "--quiet",
        "--folder",
    ]);
    command.arg(folder).args(["--set", "files=60", "--set", "bytes=4096", "--set", "operations=open"]);
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (all["probes"][0]["suspects"].as_array().unwrap().clone(), text)
}

#[test]
fn a_preloaded_library_that_sleeps_is_named_and_its_neighbours_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("hook.c"), folder.path().join("libslowhook.so"));
    std::fs::write(&source, HOOK).unwrap();
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl")
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return etwhy_testkit::skipped("no C compiler");
    }
    let _busy = Neighbours::start();
    let is_inside = |one: &&Value| one["kind"] == "library inside this program";
    // Who waits is looked at every few milliseconds. A machine that leaves the looking thread no processor in that time has proven nothing; named it must
    // be all the same.
    let look = || {
        let (seen, text) = suspects(folder.path(), Some(&library));
        let inside: Vec<&Value> = seen.iter().filter(is_inside).collect();
        let [hook] = inside.as_slice() else { panic!("{text}") };
        assert_eq!(hook["name"], "libslowhook.so", "{text}");
        let hook = (*hook).clone();
        (hook["confidence"] == "proven").then_some((hook, seen))
    };
    let (hook, seen) = (0..5).find_map(|_| look()).expect("proven in one of five runs");
    assert!(hook["blocked_ns"].as_u64().unwrap() > 10_000_000, "{hook}");
    let evidence = hook["evidence"].to_string();
    for part in ["a return address into it was on the thread's stack", "LD_PRELOAD names it", "open, open64"]
    {
        assert!(evidence.contains(part), "{part}: {evidence}");
    }
    // Without it nothing is inside; and those that merely worked are never named.
    let (without, text) = suspects(folder.path(), None);
    assert!(!without.iter().any(|one| is_inside(&one)), "{text}");
    for one in &seen {
        assert!(one["name"] != "sh" || one["evidence"].to_string().contains("had no processor"), "{one}");
    }
    // Whoever is named is named for a reason.
    for one in seen.iter().chain(&without) {
        assert!(
            !one["evidence"].as_array().unwrap().is_empty() && !one.to_string().contains("nothing else"),
            "{one}"
        );
    }
}
