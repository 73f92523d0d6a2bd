//! `etwhy record` as users call it.

use crate::{ETWHY, Str as _};
use etwhy_testkit::text;
use std::process::Output;

fn record(arguments: &[&str]) -> Output {
    ETWHY.output(&[&["record"], arguments].concat())
}

#[test]
fn a_profile_goes_to_standard_output_or_a_file() {
    let output = record(&["--print", "cpu,registry"]);
    assert_eq!(output.status.code(), Some(0));
    let xml = text(&output.stdout);
    assert!(xml.starts_with("<?xml") && xml.contains("Name=\"cpu-registry\""), "{xml}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.wprp");
    let output = record(&["--print", "cpu", "--print", "registry", "-o", file.str()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(file).unwrap(), xml);
}

#[test]
fn options_reach_the_recording() {
    let lines = text(&record(&["--print", "dpc", "--format", "xperf", "--large=192", "--when-taken"]).stdout);
    assert!(
        lines.contains("-MaxBuffers 1536") && lines.contains("\"Circular Kernel Context Logger\""),
        "{lines}"
    );
    let xml = text(&record(&["--print", "dpc", "--large", "--when-taken=system"]).stdout);
    assert!(xml.contains("<Buffers Value=\"1024\"/>") && xml.contains("Name=\"etwhy kernel\""), "{xml}");
}

#[test]
fn wrong_use_is_told() {
    for (arguments, hint) in [
        (&["--print", "cpus"][..], "no profile is called `cpus`; there are cpu"),
        (&["--print", ""], "name a profile"),
        (&["--print", "cpu", "--format", "tracelog"], "wprp"),
        (&["--list", "--print", "cpu"], "--print"),
        (&["--print", "cpu", "--large=0"], "0"),
        (&["--print", "cpu", "-o", "/no/such/folder/x"], "/no/such/folder/x: cannot write"),
        (&[], "--print"),
    ] {
        let output = record(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(hint), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}
