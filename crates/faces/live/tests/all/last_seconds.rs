//! The last seconds of a window: what they show is seen soon, is what the batch says of them, and agrees with the whole window.

use crate::findings::{asked, tables_of};
use crate::growing::{Growing, all_tables, batch, difference, drawn, follow, followed, options};
use crate::growing_segments::written;
use etwhy_live::view::{Local, screen};
use etwhy_live::{FollowOptions, Follower, Looks, Range, StopWhen, Watch, no_schemas};
use etwhy_table::Memory;
use etwhy_trace::Symbols;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const S: i64 = 1_000_000_000;
/// When the flood of `flood.toml` begins and ends.
const FLOOD: [i64; 2] = [6 * S, 9 * S];
/// From one look at the last seconds to the next where they cost an eighth of a second, and that cost, on a clock that runs with the trace.
const EVERY: i64 = S / 2;
const COST: i64 = S / 8;

fn flood(folder: &Path) -> PathBuf {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/flood.toml");
    let bytes = written(folder, scenario.to_str().unwrap(), 1.0);
    assert!(bytes.len() > 20_000_000, "{} bytes are no trace at speed", bytes.len());
    folder.join("written.etl")
}

fn watch(rules: &[&str]) -> Watch {
    let rules = asked(rules);
    let tables = tables_of(&rules);
    Watch::new(rules, tables, None, Memory::unlimited())
}

fn replay(path: &Path) -> Follower {
    let options = FollowOptions { patience_ns: 10 * S, ..options(Some(60 * S)) };
    Follower::replay(path, options, Symbols::new(&[]), no_schemas()).unwrap()
}

#[test]
fn a_flood_that_begins_amid_a_minute_is_seen_within_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let (mut watch, mut follower) = (watch(&["dpc.over-limit", "dpc.flood"]), replay(&flood(folder.path())));
    let mut stop = StopWhen::new(vec![etwhy_live::trigger("finding:dpc.over-limit").unwrap()], true);
    let (mut now, mut seen, mut fired) = (0, None, None);
    while !follower.has_ended() {
        now += EVERY;
        follower.play(now);
        let Some(look) = watch.look_at_last(&mut follower).unwrap() else { continue };
        assert!(look.sum.window.length_ns() >= 2 * S && look.sum.whole.length_ns() >= 4 * S);
        fired = fired.or_else(|| stop.check(&look, watch.history()).map(|_| now + COST));
        if let Some(episode) = watch.history().lasting().iter().find(|one| one.id == "dpc.over-limit") {
            seen.get_or_insert(now + COST);
            assert_eq!(episode.said.range, Range::Last);
            // Without symbols nobody knows what the filter hands on.
            assert!(episode.said.headline.contains("ndis.sys"), "{}", episode.said.headline);
            // The screen names each range once, above what was found in it.
            let shown = screen(&watch, "flood.etl", Local { offset_ns: 0 }).unwrap();
            let shown = etwhy_doc::markdown::render(&shown);
            let heads: Vec<&str> = shown.lines().filter(|line| line.starts_with("Found in ")).collect();
            let known: BTreeSet<&str> = heads.iter().copied().collect();
            assert_eq!(heads.len(), known.len(), "{shown}");
            // What the newest look no longer saw is of a range before it: how often one looks depends on the machine.
            let is_old = shown.contains("not since");
            assert!(is_old || heads.iter().any(|head| head.contains("the last")), "{shown}");
            assert!(shown.contains("longer than 100") && !shown.contains("; in the last"), "{shown}");
        }
    }
    let seen = seen.expect("not found");
    assert!((FLOOD[0]..=FLOOD[0] + 2 * S).contains(&seen), "seen at {seen}");
    assert_eq!(fired, Some(seen));
    // It ended once, and when the last seconds had passed it.
    let start = watch.latest(Range::Last).unwrap().window.start_unix_ns;
    let over: Vec<i64> =
        watch.history().ended().iter().map(|one| one.over_unix_ns.unwrap() - start).collect();
    assert!(over.iter().all(|over| (FLOOD[1]..=FLOOD[1] + 4 * S).contains(over)), "{over:?}");
    assert!(watch.history().lasting().is_empty() || over.is_empty(), "it began twice");
}

#[test]
fn the_last_seconds_are_those_of_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    for (scenario, scale) in [("dpc_flood.toml", 0.3), ("clean_web_server.toml", 0.5)] {
        let bytes = written(folder.path(), scenario, scale);
        let piece = bytes.len() as u64 / 12;
        let mut file = Growing::new(&folder.path().join("growing.etl"), bytes);
        let mut follower = follow(&file.path, Some(60 * S));
        let (mut compared, mut rng) = (0, drawn(scenario));
        while file.write(1 + usize::try_from(rng.below(piece)).unwrap()) {
            follower.poll().unwrap();
            let Some(whole) = follower.advance().unwrap() else { continue };
            let Some(last) = follower.last(&whole, 100_000_000) else { continue };
            assert!(last.from > whole.from && last.to == whole.to);
            if follower.late_for_last() == 0 {
                let seen = followed(&mut follower, &last);
                let expected = batch(std::slice::from_ref(&file.path), &last, true);
                assert_eq!(difference(&seen, &expected), None, "{last:?}");
                // On a thread of its own too, while the trace goes on.
                let part = follower.part(&last);
                file.write(usize::try_from(piece).unwrap());
                follower.poll().unwrap();
                follower.advance().unwrap();
                let tables = all_tables();
                let beside = part.tables(&mut Symbols::new(&[]), &tables, &Memory::unlimited()).unwrap();
                assert_eq!(difference(&beside, &seen), None, "{last:?}");
                compared += 1;
            }
        }
        assert!(compared > 0, "{scenario}");
    }
}

/// Half of a processor is shared; both ranges are looked at, and the end waits for what is under way.
#[test]
fn both_ranges_are_looked_at_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "dpc_flood.toml", 1.0);
    let follower = replay(&folder.path().join("written.etl"));
    let mut looks = Looks::new(follower, watch(&["dpc.over-limit", "trace.nothing-slow"]), Symbols::new(&[]));
    let (mut at, mut ranges, begin) = (0, Vec::new(), std::time::Instant::now());
    while !looks.follower.has_ended() && begin.elapsed().as_secs() < 120 {
        at += S / 4;
        looks.follower.play(at);
        looks.came();
        while let Some(look) = looks.due().unwrap() {
            let asked: Vec<&str> = look.outcomes.iter().map(|outcome| outcome.id.as_str()).collect();
            assert_eq!(asked.contains(&"trace.nothing-slow"), look.sum.range == Range::Whole, "{asked:?}");
            ranges.push(look.sum.range);
        }
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    ranges.extend(looks.under_way().unwrap().map(|look| look.sum.range));
    ranges.extend(looks.now().unwrap().iter().map(|look| look.sum.range));
    for range in [Range::Last, Range::Whole] {
        assert!(ranges.iter().filter(|one| **one == range).count() >= 2, "{ranges:?}");
        assert!(looks.watch.latest(range).is_some());
    }
    let episode = looks.watch.history().lasting().iter().find(|one| one.id == "dpc.over-limit").unwrap();
    assert_eq!(episode.said.range, Range::Whole);
}
