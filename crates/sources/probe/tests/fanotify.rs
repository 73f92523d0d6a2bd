//! A listener that must allow each open: `file-open` shows what it costs, and who it is. Without it nobody is accused.
//!
//! A process of its own: it measures what opens cost, and a copy of this program is the listener.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/listener.rs"]
mod listener;
mod support;

use etwhy_doc::terminal::Terminal;
use etwhy_probe::compare::{Comparison, Difference, Verdict, files, tax};
use etwhy_probe::machine::Machine;
use etwhy_probe::outcome::{Outcome, ProbeOutcome};
use etwhy_probe::run::{Options, Run};
use etwhy_probe::show::{compared, results};
use etwhy_probe::who::{LIKELY, PROVEN, Suspect, Watch};
use etwhy_probe::{Interrupt, Probe};
use listener::{DELAY_US, Listener, Mount, NAME};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rounds of each state: enough for an exact interval, and for the narrower widening of two files.
const ROUNDS: u32 = 10;
const FILES: u64 = 150;

const STATES: [&str; 2] = ["off", "on"];

/// One test at a time: each measures.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mount() -> Option<Mount> {
    Mount::new()
        .map_err(|why| etwhy_testkit::skipped(&format!("a file system in memory cannot be mounted: {why}")))
        .ok()
}

fn probe() -> (&'static Probe, [(&'static str, &'static str); 3]) {
    (support::probe("file-open"), [("files", "150"), ("bytes", "4096"), ("operations", "open")])
}

fn file_open(folder: &Path, rounds: Range<u32>) -> ProbeOutcome {
    let (probe, set) = probe();
    let options = Options { rounds: ROUNDS, ..support::options(folder, &set) };
    let watch = Watch::start(folder);
    let made = Run::rounds(probe, &options, rounds, &Interrupt::new(), &mut |_, _, _| ()).unwrap();
    let result = ProbeOutcome::new(probe.name, made, watch.finish());
    assert_eq!(result.ended, "");
    result
}

/// Two files of results, written, read again and compared.
fn compare(place: &Path, results: [ProbeOutcome; 2]) -> Comparison {
    let mut at = 0;
    let [before, after] = results.map(|result| {
        at += 1;
        let outcome = Outcome { machine: Machine::read(place), ..support::outcome(vec![result], at) };
        let path = place.join(format!("{at}.json"));
        std::fs::write(&path, serde_json::to_string(&outcome).unwrap()).unwrap();
        [(path.display().to_string(), Outcome::read(&path).unwrap())]
    });
    let comparison = files(&before, &after, STATES.map(str::to_owned)).unwrap();
    println!("{}", Terminal::plain(100).render(&compared::text(&comparison, tax::PER_DAY, false)));
    comparison
}

fn opens(comparison: &Comparison) -> Vec<&Difference> {
    let opens: Vec<_> = comparison.differences.iter().filter(|one| one.measure == "open").collect();
    assert_eq!(opens.iter().map(|d| d.variant.as_str()).collect::<Vec<_>>(), ["first run", "second run"]);
    opens
}

fn guilty(suspects: &[Suspect]) -> Vec<&Suspect> {
    suspects.iter().filter(|s| s.confidence == PROVEN || s.confidence == LIKELY).collect()
}

#[test]
fn a_listener_that_must_allow_opens() {
    let _alone = alone();
    let (Some(mount), place) = (mount(), tempfile::tempdir().unwrap()) else { return };
    let without = file_open(&mount.1, 0..ROUNDS);
    let listener = match Listener::start(&mount.1) {
        Ok(listener) => listener,
        Err(why) => {
            return etwhy_testkit::skipped(&format!(
                "no fanotify listener that is asked for permission: {why}"
            ));
        }
    };
    let pid = listener.0.id();
    let with = file_open(&mount.1, 0..ROUNDS);
    drop(listener);

    let suspect = with.suspects[0].clone();
    println!("{suspect:#?}\n{:#?}", with.notes);
    assert_eq!((suspect.name.as_str(), suspect.process), (NAME, Some(pid)));
    assert_eq!(suspect.kind, "fanotify listener");
    assert_eq!(suspect.confidence, PROVEN);
    // In each round all files are created and opened twice, each at least the delay, of which looks must have seen half.
    let asked = u64::from(ROUNDS) * 3 * FILES * DELAY_US * 1000;
    let blocked = suspect.blocked_ns.unwrap();
    assert!(blocked > asked / 2 && blocked < asked * 25, "{blocked} of {asked} ns");
    assert!(suspect.evidence[0].contains("/wchan"), "{:?}", suspect.evidence);
    assert!(suspect.evidence[1].contains("must allow opens"), "{:?}", suspect.evidence);
    assert!(guilty(&without.suspects).is_empty(), "{:#?}", without.suspects);
    let said = |result: &ProbeOutcome| (probe().0.conclude)(&result.samples).join("\n");
    println!("without:\n{}\nwith:\n{}", said(&without), said(&with));

    let comparison = compare(place.path(), [without, with]);
    // The listener remembers nothing: the second run is no faster.
    for open in opens(&comparison) {
        assert_eq!(open.verdict, Verdict::Slower, "{open:#?}");
        assert_eq!(open.rounds, [ROUNDS as usize; 2]);
        let [off, on] = open.typical;
        // Other load makes the listener late, and no earlier.
        let delay = (DELAY_US * 1000) as f64;
        assert!((delay..25.0 * delay).contains(&(on - off)), "{open:#?}");
        // An open takes microseconds where nobody must allow it: a delay of 400 of them is a multiple.
        let sure = open.sure().unwrap();
        assert!(sure.low > 1.0 && sure.value > 3.0 && sure.high > sure.value, "{open:#?}");
        let tax = tax::estimate(&comparison, open, 10_000.0);
        assert!(tax.sentence.contains("(on) instead of "), "{}", tax.sentence);
        // 10,000 times 400 us are 4 s.
        assert!((4e9..100e9).contains(&tax.day_ns.unwrap().value), "{}", tax.sentence);
    }
    let [nobody, somebody] = &comparison.suspects;
    assert!(nobody.is_empty(), "{nobody:#?}");
    assert_eq!(somebody[0], suspect);
    let shown = Terminal::plain(1000).render(&compared::text(&comparison, tax::PER_DAY, false));
    assert!(shown.contains(&format!("on: {}", results::suspect(&suspect))), "{shown}");
    assert!(shown.starts_with("file-open, open, ") || shown.starts_with("file-open, create"), "{shown}");
}

/// Rounds of two files that take turns, so that no other load hits one of them only.
fn alternating(folder: &Path) -> [ProbeOutcome; 2] {
    let mut sides: [Option<ProbeOutcome>; 2] = [None, None];
    for round in 0..ROUNDS {
        for turn in 0..2 {
            let side = &mut sides[(round as usize + turn) % 2];
            let result = file_open(folder, round..round + 1);
            match side {
                Some(there) => {
                    there.samples.extend(result.samples);
                    there.suspects.extend(result.suspects);
                }
                None => *side = Some(result),
            }
        }
    }
    sides.map(Option::unwrap)
}

#[test]
fn nobody_costs_nothing() {
    let _alone = alone();
    let (Some(mount), place) = (mount(), tempfile::tempdir().unwrap()) else { return };
    // Of comparisons of equal states one in twenty may call some series different (`tests/all/coverage.rs`): three in a row are one
    // in eight thousand.
    let silent = (0..3).any(|_| {
        let results = alternating(&mount.1);
        assert!(results.iter().all(|result| guilty(&result.suspects).is_empty()), "{results:#?}");
        let comparison = compare(place.path(), results);
        assert!(comparison.suspects.iter().all(Vec::is_empty));
        let equal = |one: &&Difference| matches!(one.verdict, Verdict::NotShown | Verdict::Small);
        if !comparison.differences.iter().all(|one| equal(&one)) {
            return false;
        }
        // On a machine that is too busy to exclude a tax it must say so.
        let is_none = |words: &str| words.contains("none measurable") || words.contains("not excluded");
        let summary = tax::summary(&comparison);
        assert!(is_none(&summary), "{summary}");
        for open in opens(&comparison) {
            let tax = tax::estimate(&comparison, open, 10_000.0);
            assert!(is_none(&tax.sentence), "{}", tax.sentence);
            assert_eq!((tax.day_ns, tax.day_cpu_ns, tax.day_joules), (None, None, None));
        }
        true
    });
    assert!(silent, "equal states were called different three times in a row");
}
