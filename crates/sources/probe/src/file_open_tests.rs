use super::*;
use crate::interrupt::Interrupt;
use crate::run::{Made, Options};
use crate::sample::Sample;
use crate::support::options;
use std::path::Path;

fn made(folder: &Path, set: &[(&str, &str)], interrupt: &Interrupt, stop_at: Option<&str>) -> Made {
    let set = [&[("files", "20")], set].concat();
    let options = Options { rounds: 2, ..options(folder, &set) };
    Run::all_rounds(&PROBE, &options, interrupt, &mut |doing, _, _| {
        if stop_at == Some(doing) {
            interrupt.set();
        }
    })
    .unwrap()
}

#[test]
fn every_operation_twice_in_both_folders() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let other_path = other.path().display().to_string();
    let made = made(folder.path(), &[("other-folder", &other_path)], &Interrupt::new(), None);
    assert!(made.error.is_none(), "{:?}", made.error);
    for measure in ["list", "open", "read 4 KB", "read 64 KB"] {
        for variant in ["first run", "second run", "first run, other folder", "second run, other folder"] {
            let found: Vec<_> = made
                .samples
                .iter()
                .filter(|s| s.case.measure == measure && s.case.variant == variant)
                .collect();
            assert_eq!(found.len(), 2, "{measure} {variant}");
            assert!(found.iter().all(|s| s.operations == 20 && s.failures == 0 && s.value > 0.0));
            assert_eq!(found[0].p50_ns.is_some(), measure != "list");
        }
    }
    for place in [&folder, &other] {
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
    let said = (PROBE.conclude)(&made.samples).join("\n");
    assert!(
        said.starts_with("Listing a folder of 20 files") && said.contains("In the other folder"),
        "{said}"
    );
}

#[test]
fn kinds_of_files_have_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let set = [("extensions", "exe,.txt"), ("header", "none,pe"), ("names", "setup"), ("operations", "open")];
    let made = made(folder.path(), &set, &Interrupt::new(), None);
    assert!(made.error.is_none(), "{:?}", made.error);
    let mut measures: Vec<&str> = made.samples.iter().map(|s| s.case.measure.as_str()).collect();
    measures.retain(|m| m.starts_with("open"));
    measures.sort_unstable();
    measures.dedup();
    assert_eq!(
        measures,
        ["open, setup*.exe", "open, setup*.exe, pe", "open, setup*.txt", "open, setup*.txt, pe"]
    );
}

#[test]
fn copies_of_a_folder() {
    let (folder, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = source.path().display().to_string();
    let none = made(folder.path(), &[("source", &path)], &Interrupt::new(), None);
    assert!(none.error.unwrap().to_string().contains("no file of 1 to"));
    std::fs::write(source.path().join("signed.exe"), "MZ").unwrap();
    let some = made(folder.path(), &[("source", &path), ("operations", "read-4k")], &Interrupt::new(), None);
    assert!(some.error.is_none() && some.samples.len() == 4, "{:?}", some.error);
}

#[test]
fn names_of_users_never_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(folder.path(), &[("extensions", "/../../x")], &Interrupt::new(), None);
    assert!(made.error.unwrap().to_string().contains("letters and digits only"));
}

#[test]
fn ctrl_c_leaves_nothing_and_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(folder.path(), &[], &Interrupt::new(), Some("read 4 KB"));
    assert!(matches!(made.error, Some(ProbeError::Interrupted)));
    assert!(made.samples.iter().any(|s| s.case.measure == "open"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
#[cfg(unix)]
fn a_refused_open_is_a_failure_and_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), &[("files", "20"), ("operations", "open")]);
    // A scanner removes half of the files before they are opened for the first time.
    let made = Run::all_rounds(&PROBE, &options, &Interrupt::new(), &mut |doing, done, _| {
        if doing == "open" && done == 0 {
            let scratch = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
            for number in 0..10 {
                let _ = std::fs::remove_file(scratch.join(format!("files/file{number:06}.dat")));
            }
        }
    })
    .unwrap();
    assert!(made.error.is_none(), "{:?}", made.error);
    let opens: Vec<_> = made.samples.iter().filter(|s| s.case.measure == "open").collect();
    assert_eq!(opens.iter().map(|s| s.failures).collect::<Vec<_>>(), [10, 10]);
    let said = (PROBE.conclude)(&made.samples).join("\n");
    assert!(said.contains("20 of 40 accesses were refused"), "{said}");
}

#[test]
fn shares_of_first_opens_add_up() {
    let round = |parts: [u64; 3]| Sample {
        case: Case::new("open").when("first run"),
        operations: 10,
        value: 10.0,
        unit: "ns".into(),
        wall_ns: parts.iter().sum(),
        blocked_ns: Some(parts[0]),
        cpu_ns: Some(parts[1]),
        queue_ns: Some(parts[2]),
        ..Sample::default()
    };
    // The middles of the shares would be 0, 50 and 40 %.
    let samples = [[0, 100, 0], [40, 20, 40], [0, 50, 50]].map(round);
    let said = (PROBE.conclude)(&samples).join("\n");
    let expected = "Of the time of first opens 13 % was waiting for somebody, 57 % CPU time of this program, 30 % waiting for";
    assert!(said.contains(expected), "{said}");
}
