//! Files of results of probes.

use super::target::accepted;
use crate::seeds::Seed;
use etwhy_doc::terminal::Terminal;
use etwhy_probe::compare;
use etwhy_probe::outcome::Outcome;
use etwhy_probe::show::{compared, page, results as shown};
use etwhy_probe::tables;
use etwhy_table::Memory;
use std::path::Path;

/// Results: shown as text and page, compared with themselves, made into tables.
pub fn results(data: &[u8]) {
    let Ok(outcome) = Outcome::parse(data) else { return };
    let terminal = Terminal::plain(80);
    for line in terminal.render(&shown::document(&outcome, None, false)).lines() {
        assert!(!line.contains(['\u{1b}', '\r', '\n']), "{line:?} would do something in a terminal");
    }
    let page = page::report(&outcome, None);
    assert!(!page.contains("<script"), "a name became markup");
    let labels = || ["off".to_owned(), "on".to_owned()];
    let states = compare::states(&outcome, labels()).ok();
    if let Some(comparison) = &states {
        let _ = terminal.render(&compared::text(comparison, 1.0, true));
        let _ = page::comparison(comparison, &outcome, 1.0, false);
    }
    let rows: usize = outcome.probes.iter().map(|probe| probe.samples.len()).sum();
    let files = [("mutant.json".to_owned(), outcome)];
    let Ok(db) = tables::database(&files, states.as_ref(), None, &Memory::unlimited()) else { return };
    assert_eq!(db.get("probe_run").map(|table| table.rows()), Some(rows), "each sample is a row");
    if states.is_some() {
        accepted();
    }
}

/// Results with two states, sizes, failures and suspects.
pub fn results_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let sample = |round: u32, n: u32| {
        format!(
            r#"{{"measure":"new file","variant":"first run","n":{n},"round":{round},"start_ns":5,"operations":10,"failures":1,"value":{},"unit":"ns","wall_ns":{},"cpu_ns":900,"queue_ns":1,"blocked_ns":0,"waits":1,"p50_ns":{n},"p95_ns":99,"p99_ns":99,"max_ns":999}}"#,
            n * 100 + round,
            n * 1000
        )
    };
    let samples: Vec<String> = (0..6).flat_map(|round| [1, 2, 5, 9, 20].map(|n| sample(round, n))).collect();
    let samples = samples.join(",");
    let probe = |state: &str| {
        format!(
            r#"{{"probe":"name-search","state":"{state}","parameters":{{"files":"500"}},"samples":[{samples}],"notes":["n"],"suspects":[{{"name":"clamd","process":7,"kind":"process","evidence":["e"],"cpu_ns":77,"confidence":"proven"}}]}}"#
        )
    };
    let text = format!(
        r#"{{"schema":"etwhy.probe/1","version":"0.1.0","started_utc_s":1700000000,"took_ns":5,"machine":{{"facts":[{{"name":"cpu","value":"AMD EPYC"}}]}},"products":[{{"name":"ClamAV","kind":"process","evidence":"e"}}],"probes":[{},{}]}}"#,
        probe("off"),
        probe("on")
    );
    vec![Seed { name: "states".into(), data: text.into() }]
}
