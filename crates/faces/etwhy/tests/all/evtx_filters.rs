//! One filter for all outputs: random filters over logs of the corpus give the same records as lines, JSON, CSV, XML, counts, SQL,
//! columns and files, and those are the records that the filter asks for.

use crate::{ETWHY, Json as _, Str as _};
use etwhy_base::rng::Rng;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::Value;
use std::collections::BTreeMap;

/// Logs that are looked at, and filters for each.
const LOGS: usize = 14;
const FILTERS: usize = 3;
/// Larger logs take longer and say no more.
const LARGEST: u64 = 1_200_000;

fn etwhy(arguments: &[String]) -> String {
    let out = ETWHY.command(arguments).output().unwrap();
    // Damaged logs of the corpus are read in part.
    let code = out.status.code().unwrap();
    assert!(code < 2, "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// One of a list that is not empty.
fn one<'a, T>(list: &'a [T], draw: &mut Rng) -> &'a T {
    draw.pick(list).unwrap()
}

/// A condition on the command line, and whether a record meets it, where the test can say so by itself.
type Condition = (Vec<String>, Option<Box<dyn Fn(&Value) -> bool>>);

fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_owned()
}

/// A condition that some record meets, as a rule.
fn condition(kind: usize, rows: &[Value], draw: &mut Rng) -> Condition {
    let row = one(rows, draw).clone();
    let other = one(rows, draw).clone();
    let args = |option: &str, value: String| vec![option.to_owned(), value];
    let number = move |row: &Value, name: &str| row[name].as_u64().unwrap_or(u64::MAX);
    match kind {
        0 => {
            let (a, b) = (number(&row, "event_id"), number(&other, "event_id"));
            let (a, b) = (a.min(b), a.max(b));
            (
                args("--id", format!("{a}-{b}")),
                Some(Box::new(move |r| (a..=b).contains(&number(r, "event_id")))),
            )
        }
        1 => {
            let wanted = text(&row, "provider");
            (args("--provider", wanted.clone()), Some(Box::new(move |r| text(r, "provider") == wanted)))
        }
        2 => {
            let (name, of) = [("--channel", "channel"), ("--computer", "computer")][draw.index(2)];
            let half: String = text(&row, of).chars().take(5).collect();
            let start = half.to_lowercase();
            let holds = move |r: &Value| text(r, of).to_lowercase().starts_with(&start);
            (args(name, format!("{half}*")), Some(Box::new(holds)))
        }
        3 => {
            let level = number(&row, "level");
            (
                args("--level", format!("{level}")),
                Some(Box::new(move |r| {
                    number(r, "level") == level || (level == 4 && number(r, "level") == 0)
                })),
            )
        }
        4 => {
            let failure = draw.index(2) == 0;
            let holds = move |r: &Value| {
                let bits = u64::from_str_radix(text(r, "keywords").trim_start_matches("0x"), 16).unwrap();
                let success = bits & 0x0020_0000_0000_0000 != 0;
                if failure { !success && bits & 0x0010_0000_0000_0000 != 0 } else { success }
            };
            let word = if failure { "audit_failure" } else { "audit_success" };
            (args("--level", word.to_owned()), Some(Box::new(holds)))
        }
        5 => {
            let task = number(&row, "task");
            (args("--task", task.to_string()), Some(Box::new(move |r| number(r, "task") == task)))
        }
        6 => {
            let (a, b) = (number(&row, "record_id"), number(&other, "record_id"));
            let (a, b) = (a.min(b), a.max(b));
            let holds = move |r: &Value| (a..=b).contains(&number(r, "record_id"));
            (args("--record", format!("{a}-{b}")), Some(Box::new(holds)))
        }
        7 => match row["pid"].as_u64() {
            Some(pid) => {
                (args("--pid", pid.to_string()), Some(Box::new(move |r| r["pid"].as_u64() == Some(pid))))
            }
            None => (
                args("--user", "S-1-5-*".to_owned()),
                Some(Box::new(|r| text(r, "user_sid").starts_with("S-1-5-"))),
            ),
        },
        8 => {
            // Times of one form order as texts do.
            let option = *one(&["--since", "--until"], draw);
            let at = text(&row, "time");
            let bound = at.clone();
            let holds = move |r: &Value| {
                if option == "--since" { text(r, "time") >= bound } else { text(r, "time") < bound }
            };
            (args(option, at), Some(Box::new(holds)))
        }
        9 => {
            let fields = row["fields"].as_object().cloned().unwrap_or_default();
            let texts: Vec<(&String, &str)> = fields
                .iter()
                .filter_map(|(name, value)| {
                    Some((name, value.as_str().filter(|v| !v.is_empty() && !v.contains(['*', '\0']))?))
                })
                .collect();
            let Some((name, value)) = (!texts.is_empty()).then(|| *one(&texts, draw)) else {
                return (args("--where", "NoSuchField=x".to_owned()), Some(Box::new(|_| false)));
            };
            let operator = *one(&["=", "!=", "~"], draw);
            (args("--where", format!("{name}{operator}{value}")), None)
        }
        _ => {
            let words = [
                text(&row, "provider"),
                text(&row, "computer"),
                row["event_id"].to_string(),
                row["fields"].to_string(),
            ];
            let word: String = one(&words, draw).chars().filter(|c| c.is_alphanumeric()).take(4).collect();
            (args("--grep", if word.is_empty() { "e".to_owned() } else { word }), None)
        }
    }
}

fn ids(rows: &[Value]) -> Vec<(u64, u64)> {
    let mut ids: Vec<(u64, u64)> =
        rows.iter().map(|row| (row["record_id"].uint(), row["event_id"].uint())).collect();
    ids.sort_unstable();
    ids
}

/// JSON of all records that were read.
fn json_lines(arguments: &[String]) -> Vec<Value> {
    etwhy(arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Records of CSV behind its head: line ends outside of quotes.
fn csv_records(csv: &str) -> usize {
    let mut quoted = false;
    let ends = csv.bytes().filter(|&b| {
        quoted ^= b == b'"';
        b == b'\n' && !quoted
    });
    ends.count() - 1
}

#[test]
fn every_output_has_the_records_that_the_filter_takes() {
    let Some(corpus) = etwhy_testkit::corpus_file("evtx") else { return };
    let mut all = etwhy_testkit::files(&corpus, "evtx");
    all.retain(|log| log.metadata().unwrap().len() <= LARGEST);
    let folder = tempfile::tempdir().unwrap();
    let mut draw = Rng::new(20_261_124);
    let (mut kind, mut some, mut none) = (0, 0, 0);
    for _ in 0..LOGS {
        let log = one(&all, &mut draw).to_string_lossy().into_owned();
        let run = |filter: &[String], form: &[&str]| {
            let mut arguments = vec!["evtx".to_owned(), log.clone(), "--quiet".to_owned()];
            arguments.extend(filter.iter().cloned());
            arguments.extend(form.iter().map(|part| (*part).to_owned()));
            arguments
        };
        let whole = json_lines(&run(&[], &["--json"]));
        if whole.is_empty() {
            continue;
        }
        for _ in 0..FILTERS {
            let conditions: Vec<Condition> = (0..=draw.index(2))
                .map(|_| {
                    kind += 1;
                    condition(kind % 11, &whole, &mut draw)
                })
                .collect();
            // The same option twice means either.
            let mut seen = std::collections::BTreeSet::new();
            let conditions: Vec<&Condition> =
                conditions.iter().filter(|(args, _)| seen.insert(args[0].clone())).collect();
            let filter: Vec<String> = conditions.iter().flat_map(|(args, _)| args.clone()).collect();
            let rows = json_lines(&run(&filter, &["--json"]));
            let case = format!("{log} {filter:?}");
            if conditions.iter().all(|(_, holds)| holds.is_some()) {
                let wanted: Vec<Value> = whole
                    .iter()
                    .filter(|row| {
                        conditions.iter().all(|(_, holds)| holds.as_ref().is_some_and(|holds| holds(row)))
                    })
                    .cloned()
                    .collect();
                assert_eq!(ids(&rows), ids(&wanted), "{case}");
            }
            let count = rows.len();
            if count == 0 {
                none += 1
            } else {
                some += usize::from(count < whole.len())
            }
            assert_eq!(etwhy(&run(&filter, &[])).lines().count(), count, "lines: {case}");
            let full = etwhy(&run(&filter, &["--full"]));
            assert_eq!(
                full.lines().filter(|l| !l.is_empty() && !l.starts_with(' ')).count(),
                count,
                "full: {case}"
            );
            assert_eq!(csv_records(&etwhy(&run(&filter, &["--csv"]))), count, "CSV: {case}");
            assert_eq!(etwhy(&run(&filter, &["--xml"])).matches("</Event>").count(), count, "XML: {case}");
            let counted: Vec<Value> =
                serde_json::from_str(&etwhy(&run(&filter, &["--counts", "--format", "json"]))).unwrap();
            let (mut by_id, mut of_rows) = (BTreeMap::new(), BTreeMap::new());
            for row in &counted {
                *by_id.entry(row["event_id"].uint()).or_insert(0) += row["records"].uint();
            }
            rows.iter().for_each(|row| *of_rows.entry(row["event_id"].uint()).or_insert(0) += 1);
            assert_eq!(by_id, of_rows, "counts: {case}");
            let sql = "SELECT r.record_id, r.event_id, (SELECT coalesce(sum(records), 0) FROM log_type) AS of_types FROM log_record r";
            let found: Vec<Value> =
                serde_json::from_str(&etwhy(&run(&filter, &["--format", "json", "--sql", sql]))).unwrap();
            assert_eq!(ids(&found), ids(&rows), "SQL: {case}");
            assert!(
                found.iter().all(|row| row["of_types"].as_u64() == Some(count as u64)),
                "log_type: {case}"
            );
            let file = folder.path().join("r.parquet");
            etwhy(&run(&filter, &["-o", file.str()]));
            let reader = SerializedFileReader::new(std::fs::File::open(&file).unwrap()).unwrap();
            assert_eq!(reader.metadata().file_metadata().num_rows(), count as i64, "Parquet: {case}");
            let columns = etwhy(&run(&filter, &["--columns", "--format", "jsonl"]));
            assert_eq!(
                columns.lines().filter(|line| line.starts_with('{')).count(),
                count,
                "columns: {case}"
            );
        }
    }
    assert!(some >= 10 && none >= 1, "filters that take a part: {some}, none: {none}");
}
