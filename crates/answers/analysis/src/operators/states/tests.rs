//! Hand-made switches whose states are easy to see.

use super::lanes::{Detail, Piece, lanes};
use super::threads::{Choice, sql, threads};
use super::*;
use crate::fold::tests::table;
use crate::operators::among::Among;
use etwhy_sql::Engine;
use etwhy_table::Value;
use etwhy_testkit::Are as _;

/// ts, cpu, new, old, run, since, wait, ready, by, state, reason, old state, old reason.
type Row = (
    i64,
    i64,
    i64,
    i64,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    &'static str,
    &'static str,
);

fn switched(rows: &[Row]) -> Database {
    let mut db = Database::new();
    let thread = |tid: i64, upid: i64| vec![Value::I64(tid), Value::I64(upid)];
    let threads = [thread(0, 0), thread(11, 1), thread(12, 1), thread(21, 2)];
    let utids: Vec<Vec<Value<'_>>> =
        threads.iter().enumerate().map(|(n, t)| [vec![Value::I64(n as i64)], t.clone()].concat()).collect();
    db.insert(table("thread", "utid tid upid", &utids));
    let upids = [0, 1, 1, 2];
    let cells: Vec<Vec<Value<'_>>> = rows
        .iter()
        .map(|&(ts, cpu, new, old, run, since, wait, ready, by, state, reason)| {
            let number = |n: Option<i64>| n.map_or(Value::Null, Value::I64);
            let text = |t: &'static str| if t.is_empty() { Value::Null } else { Value::Text(t) };
            let (state, old_state) = state.split_once('>').unwrap_or((state, ""));
            let (reason, old_reason) = reason.split_once('>').unwrap_or((reason, ""));
            let upid = |u: i64| Value::I64(upids[u as usize]);
            vec![
                Value::I64(ts),
                Value::I64(cpu),
                upid(new),
                Value::I64(new),
                Value::I64(old),
                number(run),
                number(since),
                number(wait),
                number(ready),
                number(ready.filter(|_| wait != Some(0)).map(|r| ts - r)),
                by.map_or(Value::Null, upid),
                number(by),
                if state == "Waiting" { Value::Bool(by.is_none()) } else { Value::Null },
                text(state),
                text(reason),
                text(old_state),
                text(old_reason),
                Value::I64(8),
                Value::I64(0),
                Value::I64(0),
            ]
        })
        .collect();
    let columns = "ts_ns cpu new_upid new_utid old_utid run_ns since_last_ns wait_ns ready_ns ready_ts_ns readying_upid readying_utid readied_in_dpc prev_state prev_wait_reason old_state old_wait_reason new_priority stack_id ready_stack_id";
    db.insert(table("cswitch", columns, &cells));
    db
}

/// Thread 1 runs 10 to 20, waits to 50, is ready to 52, runs to 60 and waits for good. Thread 2 runs 20 to 41, is preempted to
/// 45, runs to 51. Thread 3 runs from 60 on.
fn story() -> Database {
    switched(&[
        (10, 0, 1, 0, Some(10), None, None, None, None, "", ""),
        (20, 0, 2, 1, Some(21), None, None, None, None, ">Waiting", ">UserRequest"),
        (45, 1, 2, 0, Some(6), Some(4), Some(0), Some(4), None, "Ready", "WrPreempted"),
        (52, 0, 1, 0, Some(8), Some(32), Some(30), Some(2), Some(2), "Waiting", "UserRequest"),
        (60, 0, 3, 1, None, None, None, Some(5), Some(1), ">Waiting", ">WrQueue"),
    ])
}

fn of(db: &Database, utid: u32, range: Range) -> Vec<(i64, i64, &'static str)> {
    let (index, switches) = (Index::read(db), Switches::read(db).unwrap());
    let mut out = Vec::new();
    intervals(&switches, &index, utid, range, |one| out.push((one.range.0, one.range.1, one.state.name())));
    out
}

#[test]
fn a_thread_is_somewhere_all_the_time() {
    let db = story();
    of(&db, 1, (0, 100)).are(&[
        (0, 10, "unknown"),
        (10, 20, "run"),
        (20, 50, "wait"),
        (50, 52, "ready"),
        (52, 60, "run"),
        (60, 100, "wait"),
    ]);
    assert_eq!(of(&db, 1, (30, 51)), [(30, 50, "wait"), (50, 51, "ready")]);
    assert_eq!(of(&db, 1, (70, 80)), [(70, 80, "wait")]);
    of(&db, 2, (0, 60)).are(&[
        (0, 20, "unknown"),
        (20, 41, "run"),
        (41, 45, "ready"),
        (45, 51, "run"),
        (51, 60, "unknown"),
    ]);
    assert_eq!(of(&db, 3, (50, 70)), [(50, 55, "unknown"), (55, 60, "ready"), (60, 70, "run")]);
}

#[test]
fn sums_are_those_of_sql() {
    let db = story();
    let index = Index::read(&db);
    for range in [(0, 100), (15, 51), (46, 53), (20, 21), (61, 90)] {
        let choice = Choice { range, ..Choice::default() };
        let mut ours: Vec<_> = threads(&db, &index, &choice, || true)
            .into_iter()
            .filter(|s| s.run_ns + s.ready_ns + s.wait_ns + s.switches > 0)
            .map(|s| [i64::from(s.utid), s.run_ns, s.ready_ns, s.wait_ns, s.switches])
            .collect();
        let answer = Engine::new(&db).unwrap().query("t", &sql(range, &[])).unwrap();
        let cell = |row: u32, name: &str| answer.i64(row, name).unwrap_or(0);
        let mut theirs: Vec<_> = (0..answer.rows() as u32)
            .map(|row| ["new_utid", "run_ns", "ready_ns", "wait_ns", "switches"].map(|name| cell(row, name)))
            .filter(|line| line[1..].iter().sum::<i64>() > 0)
            .collect();
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{range:?}");
    }
}

#[test]
fn waits_know_why_and_who() {
    let db = story();
    let index = Index::read(&db);
    let all = threads(&db, &index, &Choice { range: (0, 100), ..Choice::default() }, || true);
    let one = all.iter().find(|s| s.utid == 1).unwrap();
    assert_eq!((one.run_ns, one.ready_ns, one.wait_ns, one.open_wait_ns, one.switches), (18, 2, 30, 40, 2));
    assert_eq!(one.top_reason, Some(("UserRequest".to_owned(), 30)));
    assert_eq!(one.top_readier, Some((Some(1), 30)));
    let some = Choice { range: (0, 100), processes: Some(vec![false, false, true]), ..Choice::default() };
    let utids: Vec<u32> = threads(&db, &index, &some, || true).iter().map(|s| s.utid).collect();
    assert_eq!(utids, [3]);
    let on_cpu = Choice { range: (0, 100), cpus: Among::from_iter([(1, true)]), ..Choice::default() };
    let found = threads(&db, &index, &on_cpu, || true);
    assert_eq!(found.iter().map(|s| (s.utid, s.run_ns)).collect::<Vec<_>>(), [(2, 6)]);
}

#[test]
fn lanes_are_exact_or_buckets_that_add_up() {
    let db = story();
    let index = Index::read(&db);
    let detail = Detail { width: 10, exact: 100, wakeups: 5 };
    let exact = lanes(&db, &index, &[1, 2], (0, 100), detail, || true);
    assert_eq!((exact.bucket_ns, exact.pieces.len()), (None, 11));
    assert_eq!(exact.lanes[0].ns, [18, 2, 70, 10]);
    assert_eq!(exact.lanes[0].open_wait_ns, 40);
    assert_eq!(exact.reasons, ["UserRequest", "WrQueue", "WrPreempted"]);
    // Thread 2 woke thread 1 at 50.
    let woken: Vec<_> = exact.wakeups.iter().map(|w| (w.ts, w.from, w.to, w.row)).collect();
    assert_eq!((woken, exact.wakeups_total), (vec![(50, 1, 0, 3)], 1));

    let rough = lanes(&db, &index, &[1, 2], (0, 100), Detail { exact: 3, ..detail }, || true);
    assert_eq!(rough.bucket_ns, Some(10));
    assert_eq!(rough.lanes, exact.lanes);
    let of = |start: i64| -> Vec<(State, i64)> {
        let here = |p: &&Piece| p.lane == 0 && p.start == start;
        rough.pieces.iter().filter(here).map(|p| (p.state, p.dur)).collect()
    };
    assert_eq!(of(50), [(State::Run, 8), (State::Ready, 2)]);
    assert_eq!(of(40), [(State::Wait, 10)]);
    for lane in [0, 1] {
        let sum: i64 = rough.pieces.iter().filter(|p| p.lane == lane).map(|p| p.dur).sum();
        assert_eq!(sum, 100);
    }
    let none = lanes(&db, &index, &[1, 2], (0, 100), Detail { wakeups: 0, ..detail }, || true);
    assert_eq!((none.wakeups.len(), none.wakeups_total), (0, 1));
}

#[test]
fn a_path_goes_over_to_who_ended_the_wait() {
    let db = story();
    let index = Index::read(&db);
    let links = path::path_of(&db, &index, 1, (5, 60), || true);
    let short: Vec<_> =
        links.iter().map(|l| (l.range.0, l.range.1, l.utid, l.kind.name(), l.depth)).collect();
    short.are(&[
        (52, 60, 1, "run", 0),
        (50, 52, 1, "ready", 0),
        (45, 50, 2, "run", 1),
        (41, 45, 2, "ready", 1),
        (20, 41, 2, "run", 1),
        (10, 20, 1, "run", 0),
        (5, 10, 1, "unknown", 0),
    ]);
    let causes = path::causes(&links);
    assert_eq!((causes[0].utid, causes[0].kind, causes[0].dur_ns, causes[0].pieces), (2, State::Run, 26, 2));
    assert_eq!(links[causes[0].longest].range, (20, 41));
    assert_eq!(causes.iter().map(|c| c.dur_ns).sum::<i64>(), 55);
}

#[test]
fn nothing_recorded_is_unknown() {
    let db = switched(&[]);
    assert_eq!(of(&db, 1, (3, 9)), [(3, 9, "unknown")]);
    assert!(of(&db, 1, (9, 9)).is_empty());
    assert_eq!(of(&db, 77, (3, 9)), [(3, 9, "unknown")]);
}
