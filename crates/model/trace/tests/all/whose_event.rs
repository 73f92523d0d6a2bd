//! Rows of `event` name the process and thread that other tables know for the same record.

use crate::support::{corpus, number, pass, rows, table, text};
use etwhy_testkit::traces;
use std::collections::HashMap;

/// Tables of kernel events that name their thread in the payload, with the events' names.
const SAME: [(&str, &str); 1] = [("sample", "SampledProfile")];

#[test]
fn events_have_the_thread_of_their_payload() {
    let Some(corpus) = corpus() else { return };
    for name in ["net.4.5.2.x64.etl", "net.4.5.x86_PerfViewData.etl"] {
        let output =
            pass(&corpus.join("microsoft+perfview").join(name), "event sample network process thread");
        let events = table(&output, "event");
        for (of, event) in SAME {
            let rows_of = table(&output, of);
            let mut there: HashMap<(i64, i64), Vec<_>> = HashMap::new();
            for row in rows(rows_of) {
                let key = (number(rows_of, row, "ts_ns").unwrap(), number(rows_of, row, "cpu").unwrap());
                there.entry(key).or_default().push(number(rows_of, row, "utid"));
            }
            let mut compared = 0;
            for row in rows(events).filter(|&row| text(events, row, "name") == event) {
                let key = (number(events, row, "ts_ns").unwrap(), number(events, row, "cpu").unwrap());
                let utid = number(events, row, "utid");
                assert!(
                    utid.is_some() && there[&key].contains(&utid),
                    "{name}: {event} at {key:?}: {utid:?}"
                );
                compared += 1;
            }
            assert_eq!(compared, rows_of.rows(), "{name}: {event}");
        }
        // Who sent and received stands in the payload.
        for row in rows(events).filter(|&row| text(events, row, "name").starts_with("TcpIp/")) {
            assert!(number(events, row, "upid").is_some(), "{name}: {}", text(events, row, "fields"));
        }
        // Where there is a thread of a known process, there is that process.
        let threads = table(&output, "thread");
        for row in rows(events) {
            let Some(utid) = number(events, row, "utid") else { continue };
            let of_thread = number(threads, u32::try_from(utid).unwrap(), "upid");
            let upid = number(events, row, "upid");
            assert!(
                of_thread.is_none() || upid == of_thread,
                "{name}: {} {upid:?}",
                text(events, row, "name")
            );
        }
    }
}

/// A thread id that seems to change its owner back and forth is one that two kinds of records tell differently.
#[test]
fn a_thread_comes_back_only_after_a_start() {
    let Some(corpus) = corpus() else { return };
    for path in traces(&corpus) {
        let output = pass(&path, "thread");
        let threads = table(&output, "thread");
        let mut seen: HashMap<(Option<i64>, Option<i64>), bool> = HashMap::new();
        for row in rows(threads) {
            let who = (number(threads, row, "tid"), number(threads, row, "upid"));
            let began = number(threads, row, "start_ns").is_some();
            let ended = number(threads, row, "end_ns").is_some();
            let before = seen.insert(who, ended);
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(before.is_none_or(|ended| ended || began), "{name}: thread {who:?} again in row {row}");
        }
    }
}
