//! `etwhy evtx why` on a real log.
//!
//! The expected sums are those of a walk over chunks and record headers in Python (`struct`), which shares nothing with this program.

use crate::{ETWHY, Json as _, Str as _};
use etwhy_testkit::Run as _;
use serde_json::Value;
use std::path::PathBuf;

fn corpus() -> Option<PathBuf> {
    etwhy_testkit::corpus_file("evtx")
}

#[test]
fn sums_of_a_real_log_are_those_of_its_record_headers() {
    let Some(corpus) = corpus() else { return };
    let log = corpus.join("log2timeline+plaso/System.evtx");
    let run = ETWHY.command(&["evtx", "why", "--json", "--quiet", "--retention", "30d"]).arg(&log).outcome();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let json: Value = serde_json::from_slice(&run.stdout).unwrap();
    let file = &json["log_file"][0];
    let (records, bytes) = (5_009, 1_707_144);
    assert_eq!((&file["records"], &file["record_bytes"]), (&records.into(), &bytes.into()));
    assert_eq!((&file["first_record_id"], &file["last_record_id"]), (&1.into(), &5_009.into()));
    let sum = |table: &str, column: &str, only: &dyn Fn(&Value) -> bool| -> i64 {
        let rows = json[table].list().iter().filter(|row| only(row));
        rows.map(|row| row[column].int()).sum()
    };
    let of = |column: &'static str, word: &'static str| move |row: &Value| row[column] == word;
    let all = |_: &Value| true;
    assert_eq!((sum("log_rate", "records", &all), sum("log_rate", "bytes", &all)), (records, bytes));
    for kind in ["process", "account"] {
        assert_eq!(sum("log_party", "bytes", &of("kind", kind)), bytes, "{kind}");
    }
    for scope in ["log", "provider", "kind"] {
        assert_eq!(sum("log_retention", "records", &of("scope", scope)), records, "{scope}");
    }
    let buckets: std::collections::BTreeSet<i64> =
        json["log_rate"].list().iter().map(|r| r["start_utc_ns"].int()).collect();
    assert!(buckets.len() <= 241);
    // 5,041 to 5,410 messages/s: 926 to 994 ms for 5,009.
    let old = json["log_reader_cost"].list().iter().find(|r| r["reader"].str().starts_with("old"));
    assert_eq!(old.unwrap()["low_ns"].int() / 1_000_000, 925);
    let too_small = json["findings"].list().iter().find(|f| f["id"] == "log.too-small").unwrap();
    assert_eq!(too_small["thresholds"]["wanted_days"]["value"], 30.0);
}

#[test]
fn narrow_reports_fit() {
    let Some(corpus) = corpus() else { return };
    let run = ETWHY
        .command(&["evtx", "why", "--quiet"])
        .arg(corpus.join("log2timeline+plaso/System.evtx"))
        .env("COLUMNS", "80")
        .outcome();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(
        text.contains("5,009 records") && text.contains("What fills it") && text.contains("One full read"),
        "{text}"
    );
    let wide: Vec<&str> = text.lines().skip(1).filter(|l| l.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
}

/// Periods are those that the gaps between the records show (looked at by hand, from a list of times); computers that were started now and
/// then have none.
#[test]
fn periods_of_real_logs_are_real() {
    let Some(corpus) = corpus() else { return };
    let periods = |log: &str| -> Vec<(i64, i64)> {
        let run = ETWHY.command(&["evtx", "why", "--json", "--quiet"]).arg(corpus.join(log)).outcome();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let json: Value = serde_json::from_slice(&run.stdout).unwrap();
        let rows = json["log_burst"].list().iter().filter(|row| row["kind"] == "periodic");
        rows.map(|r| (r["event_id"].int(), r["period_ns"].int() / 1_000_000_000)).collect()
    };
    // A service that is started every five minutes, a start type that changes every hour, tickets of Kerberos that last ten hours.
    let mut system = periods("log2timeline+plaso/System.evtx");
    system.sort_unstable();
    let kinds: Vec<i64> = system.iter().map(|(id, _)| *id).collect();
    assert_eq!(kinds, [29, 7036, 7040]);
    for ((_, found), truth) in system.iter().zip([36_000_i64, 300, 3_600]) {
        assert!((found - truth).abs() * 100 <= truth, "{found} {truth}");
    }
    assert_eq!(periods("omerbenamram+evtx/security.evtx"), []);
}
