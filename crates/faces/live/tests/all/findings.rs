//! Findings appear soon after their evidence, and conditions end following.

use crate::growing::options;
use crate::growing_segments::written;
use etwhy_live::{Follower, StopWhen, Watch, no_schemas};
use etwhy_rules::{Rule, Subject};
use etwhy_sql::views::{self, View};
use etwhy_sql::words;
use etwhy_table::Memory;
use etwhy_trace::Symbols;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// These findings over traces.
pub fn asked(ids: &[&str]) -> Vec<Rule> {
    let all = etwhy_rules::builtin().unwrap().into_iter();
    all.filter(|rule| rule.over == Subject::Trace && ids.contains(&rule.id.as_str())).collect()
}

/// The tables that they read, views followed.
pub fn tables_of(rules: &[Rule]) -> BTreeSet<String> {
    let views: BTreeMap<&str, View> = views::all().map(|view| (view.name, view)).collect();
    let mut open: Vec<&str> = rules.iter().flat_map(Rule::words).collect();
    let mut seen = BTreeSet::new();
    while let Some(word) = open.pop() {
        if seen.insert(word.to_owned())
            && let Some(view) = views.get(word)
        {
            open.extend(words(view.sql));
        }
    }
    let made = etwhy_analysis::derived::ALL.iter().flat_map(|d| d.tables.iter());
    let read = etwhy_trace::catalog::ALL.iter().flat_map(|spec| spec.tables.iter());
    made.chain(read).map(|table| table.name.to_string()).filter(|name| seen.contains(name)).collect()
}

/// Follows a trace second by second until a condition is met; when that was seen, and when it happened, in nanoseconds since the start.
fn seen(path: &Path, rules: &[&str], when: &str) -> Option<(i64, i64)> {
    let rules = asked(rules);
    let tables = tables_of(&rules);
    let mut watch = Watch::new(rules, tables, None, Memory::unlimited());
    let options = options(Some(60_000_000_000));
    let mut follower = Follower::replay(path, options, Symbols::new(&[]), no_schemas()).unwrap();
    let mut stop = StopWhen::new(vec![etwhy_live::trigger(when).unwrap()], true);
    watch.also(stop.tables());
    let mut at = 0;
    while !follower.has_ended() {
        at += 1_000_000_000;
        follower.play(at);
        let Some(look) = watch.look(&mut follower).unwrap() else { continue };
        if let Some(fired) = stop.check(&look, watch.history()) {
            let start = look.sum.window.start_unix_ns;
            return Some((at, fired.cause_unix_ns - start));
        }
    }
    None
}

#[test]
fn a_process_that_ends_is_seen_within_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "process_start_growth.toml", 0.02);
    let path = folder.path().join("written.etl");
    let (at, cause) = seen(&path, &[], "exit:verified").expect("nobody ends");
    assert!(at - cause <= 2_000_000_000, "{cause} was seen at {at}");
    let (at, cause) = seen(&path, &[], "start:verified").expect("nobody starts");
    assert!(at - cause <= 2_000_000_000, "{cause} was seen at {at}");
    assert_eq!(seen(&path, &[], "start:nobody"), None);
}

#[test]
fn an_event_is_seen_within_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "process_start_growth.toml", 0.05);
    let path = folder.path().join("written.etl");
    // When each process starts is what the table of processes says, which is made from the same events in another way.
    let (at, _) = seen(&path, &[], "event:Windows Kernel/Process/Start").expect("no event");
    let (_, first) = seen(&path, &[], "start:verified").expect("nobody starts");
    assert!((0..=2_000_000_000).contains(&(at - first)), "{first} was seen at {at}");
    let named = "event:Windows Kernel/Process/Start/ImageFileName=VERIFIED.exe";
    let (at, cause) = seen(&path, &[], named).expect("no such event");
    assert_eq!(cause, first);
    assert!(at - cause <= 2_000_000_000, "{cause} was seen at {at}");
    for none in
        ["event:Windows Kernel/Process/Start/ImageFileName=other.exe", "event:Windows Kernel/Process/Defunct"]
    {
        assert_eq!(seen(&path, &[], none), None, "{none}");
    }
}

/// A fact is told to nobody unasked; who waits for it is told.
#[test]
fn a_finding_that_only_informs_is_one() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "clean_web_server.toml", 0.5);
    let path = folder.path().join("written.etl");
    let (at, cause) = seen(&path, &["cpu.dominant"], "finding:cpu.dominant").expect("not found");
    assert!(at <= 3_000_000_000 && cause <= at, "{cause} was seen at {at}");
}

#[test]
fn a_finding_is_seen_within_two_seconds_of_its_evidence() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "findings/cpu.starvation.toml", 1.0);
    let path = folder.path().join("written.etl");
    let (at, _) = seen(&path, &["cpu.starvation"], "finding:cpu.starvation").expect("not found");
    assert!(at <= 3_000_000_000, "seen at {at}");
}
