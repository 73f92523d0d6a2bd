//! Traces without kernel events: what `why` says of them equals SQL over the tables of single events and intervals, and an independent
//! reader's counts; providers with a public name are never shown as GUIDs.

use etwhy_base::Guid;
use etwhy_testkit::{Json as _, Program, Str as _};
use serde_json::Value;
use std::path::Path;

/// The program.
const ETWHY: Program = crate::ETWHY.partly();

fn sql(trace: &str, query: &str) -> Vec<Value> {
    ETWHY.sql(Path::new(trace), query)
}

/// The first row of a query.
fn row(trace: &str, query: &str) -> Value {
    sql(trace, query).into_iter().next().unwrap_or_else(|| panic!("{trace}: no row: {query}"))
}

fn int(value: &Value, key: &str) -> i64 {
    value[key].as_i64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// SQL that makes `a = b` true where both are null, for a text of a trace.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[test]
fn the_section_equals_the_tables_and_an_independent_reader() {
    let Some(corpus) = etwhy_testkit::corpus_file("etl") else { return };
    let (mut with, mut intervals, mut undecoded, mut problems) = (0, 0, 0, 0);
    for path in etwhy_testkit::traces(&corpus) {
        let trace = path.str();
        let report: Value = serde_json::from_str(&ETWHY.run(&["why", trace, "--json", "--quiet"])).unwrap();
        let activity = &report["activity"];
        let telling =
            "SELECT count(*) AS n FROM kernel_class WHERE class NOT IN ('PROCESS', 'THREAD', 'LOADER')";
        assert_eq!(activity.is_null(), int(&row(trace, telling), "n") > 0, "{trace}: {activity}");
        if activity.is_null() {
            assert!(!report["sentence"].str().contains("no kernel events"), "{trace}");
            continue;
        }
        with += 1;
        assert!(report["sentence"].str().contains(activity["cannot"].str()), "{trace}");

        // Counts: the independent reader's, and rows of `event`.
        let name = path.strip_prefix(&corpus).unwrap().str();
        let counts = std::fs::read(corpus.join("counts").join(format!("{name}.json"))).unwrap();
        let counts: Value = serde_json::from_slice(&counts).unwrap();
        assert_eq!(int(activity, "events"), int(&counts, "records"), "{trace}");
        assert_eq!(
            int(activity, "events"),
            int(&row(trace, "SELECT count(*) AS n FROM event"), "n"),
            "{trace}"
        );
        intervals += check_intervals(trace, activity);
        problems += check_rates(trace, activity);
        undecoded += check_undecoded(trace, activity);
    }
    // The corpus has all of it: the test would be empty else.
    assert!(with >= 30, "{with} traces");
    assert!(intervals > 500 && undecoded > 1000 && problems > 1000, "{intervals} {undecoded} {problems}");
}

fn check_intervals(trace: &str, activity: &Value) -> i64 {
    let sums = row(
        trace,
        "SELECT count(*) AS n, coalesce(sum(state = 'complete'), 0) AS complete, coalesce(sum(state = 'unfinished'), 0) AS \
         unfinished, coalesce(sum(state = 'no_start'), 0) AS no_start, coalesce(sum(state = 'doubtful'), 0) AS doubtful FROM interval",
    );
    assert_eq!(int(activity, "intervals"), int(&sums, "n"), "{trace}");
    for state in ["complete", "unfinished", "no_start", "doubtful"] {
        assert_eq!(int(activity, state), int(&sums, state), "{trace}: {state}");
    }
    let times = |list: &Value| list.list().iter().map(|one| int(one, "dur_ns")).collect::<Vec<_>>();
    let longest =
        sql(trace, "SELECT dur_ns FROM interval WHERE state = 'complete' ORDER BY dur_ns DESC LIMIT 10");
    assert_eq!(times(&activity["longest"]), times(&Value::Array(longest)), "{trace}");
    let totals = sql(
        trace,
        "SELECT sum(dur_ns) AS total_ns, count(dur_ns) AS complete, max(dur_ns) AS longest_ns FROM interval GROUP BY provider, name, \
         upid HAVING count(dur_ns) > 0 ORDER BY total_ns DESC LIMIT 10",
    );
    let listed = activity["by_total"].list();
    assert_eq!(listed.len(), totals.len(), "{trace}");
    for (one, wanted) in listed.iter().zip(&totals) {
        for key in ["total_ns", "complete", "longest_ns"] {
            assert_eq!(int(one, key), int(wanted, key), "{trace}: {key}");
        }
        let (median, p95) = (int(one, "median_ns"), int(one, "p95_ns"));
        assert!(median <= p95 && p95 <= int(one, "longest_ns"), "{trace}: {one}");
    }
    let most = sql(
        trace,
        "SELECT count(*) AS count FROM interval GROUP BY provider, name, upid ORDER BY 1 DESC LIMIT 10",
    );
    let by_count = activity["by_count"].list();
    let counts = |list: &[Value]| list.iter().map(|one| int(one, "count")).collect::<Vec<_>>();
    assert_eq!(counts(by_count), counts(&most), "{trace}");
    int(activity, "complete")
}

fn check_rates(trace: &str, activity: &Value) -> i64 {
    // Kinds of one name, from single events.
    let seconds = sql(
        trace,
        "SELECT provider, name, max(n) AS peak, sum(n) AS count FROM (SELECT provider, name, ts_ns / 1000000000 AS second, count(*) AS n \
         FROM event GROUP BY 1, 2, 3) AS s GROUP BY 1, 2",
    );
    for rate in activity["rates"].list() {
        let same = |one: &&Value| one["provider"] == rate["provider"] && one["name"] == rate["name"];
        let one = seconds.iter().find(same).unwrap_or_else(|| panic!("{trace}: {rate}"));
        for key in ["peak", "count"] {
            assert_eq!(int(rate, key), int(one, key), "{trace}: {key} of {rate}");
        }
        // That second holds so many, and no earlier one does.
        let (provider, name) = (rate["provider"].str(), rate["name"].str());
        let query = format!(
            "SELECT ts_ns / 1000000000 AS second FROM event WHERE provider = {} AND name = {} GROUP BY 1 HAVING count(*) = {} \
             ORDER BY 1 LIMIT 1",
            text(provider),
            text(name),
            int(rate, "peak")
        );
        assert_eq!(
            int(rate, "peak_ns"),
            int(&row(trace, &query), "second") * 1_000_000_000,
            "{trace}: {rate}"
        );
    }
    let levels = sql(
        trace,
        "SELECT provider, sum(level IN (1, 2)) AS errors, sum(level = 3) AS warnings FROM event GROUP BY 1 HAVING sum(level IN \
         (1, 2, 3)) > 0",
    );
    let problems = activity["problems"].list();
    assert_eq!(problems.len(), levels.len().min(10), "{trace}");
    let mut all = 0;
    for one in problems {
        let wanted = levels.iter().find(|l| l["provider"] == one["provider"]).unwrap();
        assert_eq!(
            (int(one, "errors"), int(one, "warnings")),
            (int(wanted, "errors"), int(wanted, "warnings"))
        );
        all += int(one, "errors") + int(one, "warnings");
    }
    all
}

fn check_undecoded(trace: &str, activity: &Value) -> i64 {
    // Records that a merge adds describe other events.
    let merge: Vec<String> =
        etwhy_etl::abi::guids::WRITTEN_BY_MERGE.iter().map(|guid| text(&guid.to_string())).collect();
    let query = format!(
        "SELECT coalesce(sum(count), 0) AS n FROM event_type WHERE decoded_by = 'none' AND coalesce(guid, '') NOT IN ({})",
        merge.join(", ")
    );
    assert_eq!(int(activity, "undecoded_events"), int(&row(trace, &query), "n"), "{trace}");
    for one in activity["undecoded"].list() {
        let kind = one["kind"].str();
        let option = one["option"].as_str();
        assert_eq!(option.is_some(), one["needs"].is_string(), "{trace}: {one}");
        assert!(
            option.is_none()
                || matches!((kind, option), ("manifest", Some("--manifests")) | ("wpp", Some("--tmf")))
        );
    }
    // A GUID stands only where no name is known.
    for list in ["longest", "by_total", "by_count", "rates", "problems", "undecoded"] {
        for one in activity[list].list() {
            let provider = one["provider"].str();
            if let Ok(guid) = provider.parse::<Guid>() {
                assert_eq!(etwhy_decode::builtin::provider_name(guid), None, "{trace}: {one}");
            }
        }
    }
    int(activity, "undecoded_events")
}

#[test]
fn a_trace_with_kernel_events_has_no_such_section() {
    let report: Value = serde_json::from_str(&ETWHY.run(&["why", "--demo", "--json", "--quiet"])).unwrap();
    assert!(report["activity"].is_null());
    let text = ETWHY.run(&["why", "--demo", "--quiet"]);
    assert!(!text.contains("Longest operations") && !text.contains("by number"), "{text}");
    let markdown = ETWHY.run(&["why", "--demo", "--quiet", "--md"]);
    assert!(!markdown.contains("## What the trace shows"), "{markdown}");
}
