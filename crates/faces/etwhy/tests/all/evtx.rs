//! `etwhy evtx`: records of real logs in all forms, damage, texts, a log that grows.

use etwhy_testkit::{Json as _, Program, Run as _, Str as _};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;

/// The program.
const ETWHY: Program = crate::ETWHY.wide("100");

/// A log of the corpus, or `None` after saying why there is none.
fn log(name: &str) -> Option<String> {
    Some(etwhy_testkit::corpus_file(&format!("evtx/{name}"))?.str().to_owned())
}

const SYSTEM: &str = "log2timeline+plaso/System.evtx";
const SECURITY: &str = "mdecrevoisier+EVTX-to-MITRE-Attack/ID5145-4624-DonPAPI_full_extraction.evtx";
const CUT: &str = "log2timeline+plaso/System2.evtx";

#[test]
fn every_form_has_every_record() {
    // 5,009 records by the corpus's own walk.
    let Some(file) = log(SYSTEM) else { return };
    let (code, lines, errors) = ETWHY.ran(&["evtx", &file]);
    assert_eq!((code, lines.lines().count()), (0, 5009), "{errors}");
    let (_, json, _) = ETWHY.ran(&["evtx", &file, "--json"]);
    let rows: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(rows.len(), 5009);
    let (_, csv, _) = ETWHY.ran(&["evtx", &file, "--csv"]);
    assert_eq!(csv.lines().next().unwrap().split(',').count(), 18);
    assert!(csv.lines().count() > 5009);
    let (_, xml, _) = ETWHY.ran(&["evtx", &file, "--xml"]);
    let options = roxmltree::ParsingOptions { nodes_limit: 10_000_000, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&xml, options).unwrap();
    let events: Vec<_> = document.root_element().children().filter(roxmltree::Node::is_element).collect();
    assert_eq!(events.len(), 5009);
    // JSON and XML are written by different code.
    let mut ids: BTreeMap<u64, usize> = BTreeMap::new();
    rows.iter().for_each(|r| *ids.entry(r["event_id"].uint()).or_default() += 1);
    let mut of_xml: BTreeMap<u64, usize> = BTreeMap::new();
    for event in &events {
        let id = event.descendants().find(|n| n.has_tag_name_without_namespace("EventID")).unwrap();
        *of_xml.entry(id.text().unwrap().parse().unwrap()).or_default() += 1;
    }
    assert_eq!(ids, of_xml);
    let (_, counted, _) = ETWHY.ran(&["evtx", &file, "--counts", "--format", "csv"]);
    let mut reader = counted.lines();
    let head: Vec<&str> = reader.next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|c| *c == name).unwrap();
    let (id, records) = (column("event_id"), column("records"));
    let mut of_counts: BTreeMap<u64, usize> = BTreeMap::new();
    for line in reader {
        let cells: Vec<&str> = line.split(',').collect();
        *of_counts.entry(cells[id].parse().unwrap()).or_default() += cells[records].parse::<usize>().unwrap();
    }
    assert_eq!(ids, of_counts);
}

trait WithoutNamespace {
    fn has_tag_name_without_namespace(&self, name: &str) -> bool;
}

impl WithoutNamespace for roxmltree::Node<'_, '_> {
    fn has_tag_name_without_namespace(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

#[test]
fn threads_change_nothing() {
    let Some(file) = log(SYSTEM) else { return };
    for form in [
        &["--json"][..],
        &["--full"],
        &["--counts", "--format", "json"],
        &["--xml"],
        &["--xml", "--id", "7036"],
        &["--columns", "--format", "json"],
        &["--sql", "SELECT * FROM log_record", "--format", "json"],
    ] {
        let run = |threads: &str| {
            let mut arguments = vec!["evtx", file.as_str(), "--threads", threads];
            arguments.extend(form);
            ETWHY.ran(&arguments).1
        };
        let one = run("1");
        assert!(one == run("2") && one == run("7"), "{form:?}");
    }
    let why = |threads: &str| ETWHY.ran(&["evtx", "why", &file, "--json", "--threads", threads]).1;
    let one = why("1");
    assert!(one == why("2") && one == why("7"), "why");
}

#[test]
fn ids_have_no_thousands_and_hexadecimal_stays() {
    let Some(file) = log(SECURITY) else { return };
    let sql = |query: &str| {
        let (code, out, errors) = ETWHY.ran(&["evtx", &file, "--sql", query]);
        assert_eq!(code, 0, "{errors}");
        out
    };
    // As Event Viewer writes them: 4624 of task 12544, successful audit, by the system itself.
    let out =
        sql("SELECT event_id, task, keywords, count(*) * 1000 AS many FROM log_record WHERE event_id = 4624");
    let cells: Vec<&str> = out.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(cells[..3], ["4624", "12544", "0x8020000000000000"], "{out}");
    assert!(cells[3].ends_with(",000"), "{out}");
    // The same number as programs read it.
    let query =
        "SELECT TargetLogonId, LogonType FROM event_4624 WHERE TargetLogonId > 1000 ORDER BY 1 LIMIT 1";
    let (_, csv, _) = ETWHY.ran(&["evtx", &file, "--format", "csv", "--sql", query]);
    let id: u64 = csv.lines().nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    let out = sql(query);
    let cells: Vec<&str> = out.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(cells[0].trim_start_matches("0x").trim_start_matches('0'), format!("{id:x}"), "{out}");
    assert!(cells[0].starts_with("0x") && cells[1].parse::<u32>().is_ok(), "{out}");
}

#[test]
fn fields_are_there_for_those_who_ask() {
    let Some(file) = log(SECURITY) else { return };
    let sql = |query: &str| {
        let (code, out, errors) = ETWHY.ran(&["evtx", &file, "--format", "csv", "--sql", query]);
        assert_eq!(code, 0, "{errors}");
        out.lines().nth(1).unwrap().to_owned()
    };
    let all = sql("SELECT count(*) FROM log_record");
    assert!(all.parse::<u32>().unwrap() > 100);
    assert_eq!(sql("SELECT count(*) FROM log_record WHERE fields LIKE '{%'"), all);
    assert_eq!(sql("SELECT count(*) FROM (SELECT * FROM log_record) WHERE \"FIELDS\" IS NOT NULL"), all);
    // Table functions name tables and columns in texts.
    assert_eq!(sql("SELECT sum(count) FROM aggregate('log_record', 'level')"), all);
    assert_ne!(sql("SELECT count(*) FROM aggregate('log_record', 'fields')"), "1");
}

#[test]
fn names_that_are_not_there_are_told_with_those_that_are() {
    let Some(file) = log(SYSTEM) else { return };
    let sql = |query: &str| {
        let (code, out, errors) = ETWHY.ran(&["evtx", &file, "--sql", query]);
        assert!(code != 0 && out.is_empty(), "{out}");
        errors
    };
    let text = sql("SELECT evnt_id FROM log_record");
    assert!(text.contains("did you mean `event_id`?") && text.contains("record_id, channel"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(sql("SELECT time FROM log_record").contains("did you mean `utc_ns`?"));
    assert!(sql("SELECT 1 FROM log_recrd").contains("did you mean `log_record`?"));
}

#[test]
fn filters_agree_with_sql() {
    let Some(file) = log(SECURITY) else { return };
    let sql = |query: &str| -> u64 {
        let (code, out, errors) = ETWHY.ran(&["evtx", &file, "--format", "csv", "--sql", query]);
        assert_eq!(code, 0, "{errors}");
        out.lines().nth(1).unwrap().parse().unwrap()
    };
    let lines = |more: &[&str]| -> u64 {
        let mut arguments = vec!["evtx", file.as_str()];
        arguments.extend(more);
        let (code, out, errors) = ETWHY.ran(&arguments);
        assert_eq!(code, 0, "{errors}");
        out.lines().count() as u64
    };
    let all = sql("SELECT count(*) FROM log_record");
    assert_eq!(all, 750);
    assert_eq!(all, sql("SELECT sum(records) FROM log_type"));
    for (more, query) in [
        (&["--id", "4624"][..], "SELECT count(*) FROM event_4624"),
        (
            &["--id", "4624,5140-5145"],
            "SELECT count(*) FROM log_record WHERE event_id = 4624 OR event_id BETWEEN 5140 AND 5145",
        ),
        (
            &["--where", "TargetUserName=admmig"],
            "SELECT count(*) FROM log_record WHERE fields ->> 'TargetUserName' = 'admmig'",
        ),
        (&["--id", "4624", "--where", "LogonType=3"], "SELECT count(*) FROM event_4624 WHERE LogonType = 3"),
        (&["--provider", "*auditing*", "--level", "0"], "SELECT count(*) FROM log_record WHERE level = 0"),
        (&["--task", "12544"], "SELECT count(*) FROM log_record WHERE task = 12544"),
    ] {
        let (filtered, asked) = (lines(more), sql(query));
        assert_eq!(filtered, asked, "{more:?}");
        assert!(filtered > 0, "{more:?} finds nothing");
    }
    for form in ["--json", "--counts"] {
        let (code, _, errors) = ETWHY.ran(&["evtx", &file, "--where", "LogonTyp=10", form]);
        let said = "no record has a field `LogonTyp`; did you mean `LogonType`?";
        assert!(code == 0 && errors.contains(said), "{form}: {errors}");
    }
    assert_eq!(lines(&["--first", "7"]), 7);
    assert_eq!(lines(&["--last", "5"]), 5);
    // The last five are those with the highest numbers.
    let (_, out, _) = ETWHY.ran(&["evtx", &file, "--last", "5", "--json"]);
    let last: Vec<u64> = out
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["record_id"].uint())
        .collect();
    assert_eq!(sql(&format!("SELECT count(*) FROM log_record WHERE record_id > {}", last[4])), 0);
}

#[test]
fn damage_is_said_and_costs_only_itself() {
    let Some(file) = log(CUT) else { return };
    let (code, out, errors) = ETWHY.ran(&["evtx", &file]);
    // 284 records begin in the file; it ends within the last.
    assert_eq!((code, out.lines().count()), (1, 283));
    // A chunk that is cut is one fault, not a wrong checksum too.
    assert!(errors.contains("log_cut") && !errors.contains("log_chunk_checksum"), "{errors}");
    let (_, ledger, _) =
        ETWHY.ran(&["evtx", &file, "--sql", "SELECT name, count FROM ledger", "--format", "csv"]);
    assert!(ledger.contains("log_cut,1"), "{ledger}");
}

#[test]
fn what_is_no_log_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("text.evtx"), "this is a text and no log, whatever its name says").unwrap();
    std::fs::write(path("empty.evtx"), "").unwrap();
    for (name, wanted) in [("text.evtx", 3), ("empty.evtx", 3), ("missing.evtx", 2)] {
        let (code, out, errors) = ETWHY.ran(&["evtx", &path(name)]);
        assert_eq!((code, out.as_str()), (wanted, ""), "{name}: {errors}");
        assert!(errors.contains(name), "{errors}");
    }
    let (code, _, errors) = ETWHY.ran(&["evtx", &folder.path().to_string_lossy(), "--id", "x"]);
    assert_eq!(code, 2, "{errors}");
    let (code, _, errors) = ETWHY.ran(&["evtx"]);
    assert_eq!(code, 2, "{errors}");
}

#[test]
fn a_log_that_grows_is_followed() {
    let Some(file) = log(SYSTEM) else { return };
    let whole = std::fs::read(file).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing.evtx");
    // Two chunks now, a third one later.
    std::fs::write(&path, &whole[..4096 + 2 * 65_536]).unwrap();
    let count = |data: &[u8]| -> usize {
        let other = folder.path().join("part.evtx");
        std::fs::write(&other, data).unwrap();
        ETWHY.ran(&["evtx", &other.to_string_lossy()]).1.lines().count()
    };
    let (two, three) = (count(&whole[..4096 + 2 * 65_536]), count(&whole[..4096 + 3 * 65_536]));
    let mut child = ETWHY
        .command(&["evtx", &path.to_string_lossy(), "--follow", "--last", "3", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .started();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let id = |line: String| serde_json::from_str::<serde_json::Value>(&line).unwrap()["record_id"].uint();
    let first: Vec<u64> = (&mut lines).take(3).map(id).collect();
    let mut grown = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    grown.write_all(&whole[4096 + 2 * 65_536..4096 + 3 * 65_536]).unwrap();
    drop(grown);
    let more: Vec<u64> = (&mut lines).take(three - two).map(id).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // Each once, one after the other.
    let all: Vec<u64> = first.into_iter().chain(more).collect();
    assert!(all.windows(2).all(|w| w[1] == w[0] + 1), "{all:?}");
}

/// The real message file that the crate `evtx` brings for its own tests.
fn adtschema() -> Option<PathBuf> {
    etwhy_testkit::packaged("evtx-0.15.1/samples/dlls/adtschema.dll")
}

#[test]
fn messages_of_a_real_log_come_from_a_real_message_file() {
    let Some(file) = log(SECURITY) else { return };
    let Some(dll) = adtschema() else {
        etwhy_testkit::skipped("no sources of the crate evtx in the package cache, so no message file");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("messages.db").to_string_lossy().into_owned();
    let (code, _, errors) = ETWHY.ran(&["evtx", "messages", "build", &dll.to_string_lossy(), "-o", &db]);
    assert_eq!(code, 0, "{errors}");
    let (code, out, errors) = ETWHY.ran(&["evtx", &file, "--messages", &db, "--id", "4624", "--json"]);
    assert_eq!(code, 0, "{errors}");
    let mut seen = 0;
    for line in out.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let message = row["message"].str();
        // Microsoft documents the text of event 4624.
        assert!(message.starts_with("An account was successfully logged on."), "{message}");
        for field in ["TargetUserName", "TargetDomainName", "IpAddress", "LogonProcessName", "TargetLogonId"]
        {
            let value = &row["fields"][field];
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert!(message.contains(text.trim()), "{field} = {text} is not in {message}");
        }
        // `%%1833` is a parameter of msobjs.dll, which is not there.
        assert!(!message.replace("%%1", "").contains("%1"), "{message}");
        seen += 1;
    }
    assert_eq!(seen, 15);
    // Without texts Event Viewer's words, the values, and what is wanted.
    let Some(system) = log(SYSTEM) else { return };
    let (_, out, errors) =
        ETWHY.ran(&["evtx", &system, "--messages", &db, "--full", "--id", "7036", "--first", "1"]);
    assert!(out.contains("cannot be found") && out.contains("param1: "), "{out}");
    assert!(errors.contains("Service Control Manager"), "{errors}");
}
