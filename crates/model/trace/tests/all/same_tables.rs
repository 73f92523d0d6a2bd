//! A table is a function of the trace: its rows, and every number in them, are the same whatever else is asked for,
//! and with any number of threads.
//!
//! Every trace is read twice: for all tables, and with a setting that is drawn (some tables, some threads). The draw is that of
//! `ETWHY_SEED`, else of the crate's version, so that a failure can be repeated. `every_setting` is the full product; it takes long:
//! `cargo test -p etwhy-trace --test all same_tables -- --ignored`.

use crate::support;
use etwhy_base::rng::{Rng, fnv1a};
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::Ledger;
use etwhy_etl::read::EtlFile;
use etwhy_table::{Memory, Table};
use etwhy_trace::catalog::event::RowsLater;
use etwhy_trace::{Inputs, Options, Output, analyse, catalog};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What is counted depends on who counts: the ledger is that of the tables that were asked for.
const OF_WHAT_WAS_ASKED: [&str; 1] = ["ledger"];

fn all_tables() -> Vec<&'static str> {
    let tables = catalog::ALL.iter().flat_map(|spec| spec.tables.iter());
    tables.map(|table| table.name.as_ref()).filter(|name| !OF_WHAT_WAS_ASKED.contains(name)).collect()
}

fn traces() -> Vec<PathBuf> {
    // Written traces, of which there is a folder where a script has made them.
    let folders = support::corpus().into_iter().chain(std::env::var_os("ETWHY_WRITTEN").map(PathBuf::from));
    folders.flat_map(|folder| etwhy_testkit::traces(&folder)).collect()
}

fn read(path: &Path, tables: &BTreeSet<&str>, threads: usize) -> Output {
    read_with(&[support::open(path)], tables, threads, Inputs::default())
}

fn read_with(files: &[EtlFile], tables: &BTreeSet<&str>, threads: usize, inputs: Inputs) -> Output {
    let mut ledger = Ledger::new();
    let options = Options {
        tables: Some(tables.iter().map(|&name| name.to_owned()).collect()),
        memory: Memory::unlimited(),
        symbols: etwhy_trace::Symbols::new(&[]),
        threads,
        decoder: Decoder::new(&DecoderOptions::default(), &mut ledger),
        inputs,
    };
    analyse(files, options, &mut (), ledger).unwrap()
}

/// Hashes of all rows of a table, each with its text if it is to be shown.
fn rows(output: &Output, name: &str) -> Vec<u64> {
    hashes(support::table(output, name))
}

fn hashes(table: &Table) -> Vec<u64> {
    let columns = table.spec().columns.len();
    support::rows(table)
        .map(|row| {
            let mut hasher = DefaultHasher::new();
            line(table, row, columns).hash(&mut hasher);
            hasher.finish()
        })
        .collect()
}

fn line(table: &Table, row: u32, columns: usize) -> String {
    let mut text = String::new();
    for column in 0..columns {
        let name = &table.spec().columns[column].name;
        write!(text, "{name}={:?} ", table.cell(row, column)).unwrap();
    }
    text
}

/// How a table differs from what it is when all are read; `None` if it does not.
fn difference(all: &Output, some: &Output, name: &str) -> Option<String> {
    let (had, has) = (rows(all, name), rows(some, name));
    let at = had.iter().zip(&has).position(|(a, b)| a != b);
    if at.is_none() && had.len() == has.len() {
        return None;
    }
    let mut text = format!("{} rows, but {} with all tables", has.len(), had.len());
    if let Some(at) = at {
        for output in [some, all] {
            let table = support::table(output, name);
            write!(text, "\n    {}", line(table, at as u32, table.spec().columns.len())).unwrap();
        }
    }
    Some(text)
}

/// A draw that is the same on every machine.
fn draw(path: &Path, round: u64) -> Rng {
    let seed = std::env::var("ETWHY_SEED").unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned());
    let name = path.file_name().unwrap().to_string_lossy();
    Rng::new(fnv1a(format!("{seed} {name} {round}")))
}

/// Compares the tables of a pass with those of the pass over all; what differs goes to `failures`.
fn compare(path: &Path, all: &Output, tables: &BTreeSet<&str>, threads: usize, failures: &mut Vec<String>) {
    let some = read(path, tables, threads);
    for name in tables {
        if let Some(how) = difference(all, &some, name) {
            let file = path.file_name().unwrap().to_string_lossy();
            let beside =
                if tables.len() > 8 { format!("{} tables", tables.len()) } else { format!("{tables:?}") };
            failures.push(format!("{file}: {name} of {beside}, {threads} threads: {how}"));
        }
    }
    let named = support::ledger_count(&some, "named_by_tables");
    if named > 0 {
        failures.push(format!("{}: {named} named by tables of {tables:?}", path.display()));
    }
}

fn finish(failures: &[String]) {
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} tables depend on what is asked:\n{shown}", failures.len());
}

#[test]
fn a_drawn_setting_changes_no_table() {
    let names = all_tables();
    let mut failures = Vec::new();
    for path in traces() {
        let mut draw = draw(&path, 0);
        let all = read(&path, &names.iter().copied().collect(), 2);
        let most = if draw.index(2) == 0 { 1 } else { 12 };
        let count = 1 + draw.index(most);
        let some: BTreeSet<&str> = (0..count).map(|_| names[draw.index(names.len())]).collect();
        compare(&path, &all, &some, 1 + draw.index(4), &mut failures);
    }
    finish(&failures);
}

/// Traces whose every table is read alone: with stacks, with stack keys, of .NET, of a shutdown, of processes.
const ALONE: [&str; 5] = [
    "net.4.5.2.x64.etl",
    "ShutdownPerfDiagLogger.etl",
    "Process.etl",
    "KernelNetwork.etl",
    "gcevents.PerfViewData.etl",
];

/// Tables whose numbers others refer to, and some that refer to them.
const REFERRED_TO: [&str; 12] = [
    "process",
    "thread",
    "image",
    "stack",
    "frame",
    "stack_frame",
    "file",
    "event",
    "sample",
    "stack_cost",
    "clr_method",
    "event_type",
];

#[test]
fn tables_with_numbers_are_the_same_alone() {
    let names = all_tables();
    let mut failures = Vec::new();
    for path in traces() {
        if ALONE.contains(&path.file_name().unwrap().to_str().unwrap()) {
            let all = read(&path, &names.iter().copied().collect(), 2);
            for name in names.iter().filter(|name| REFERRED_TO.contains(name)) {
                compare(&path, &all, &BTreeSet::from([*name]), 1, &mut failures);
            }
        }
    }
    finish(&failures);
}

#[test]
#[ignore = "every table of every trace alone and beside others: minutes"]
fn every_setting() {
    let names = all_tables();
    let mut failures = Vec::new();
    for path in traces() {
        println!("{}", path.display());
        let all = read(&path, &names.iter().copied().collect(), 2);
        for name in &names {
            compare(&path, &all, &BTreeSet::from([*name]), 1, &mut failures);
        }
        for round in 1..20 {
            let mut draw = draw(&path, round);
            let count = 1 + draw.index(30);
            let some: BTreeSet<&str> = (0..count).map(|_| names[draw.index(names.len())]).collect();
            compare(&path, &all, &some, 1 + draw.index(8), &mut failures);
        }
    }
    finish(&failures);
}

/// A pass that keeps no rows of table `event`.
fn without_events(files: &[EtlFile]) -> Output {
    let output = read_with(files, &BTreeSet::from(["event"]), 2, Inputs::default().with(vec![RowsLater]));
    assert!(output.db.get("event").is_none());
    output
}

#[test]
fn rows_that_are_made_later_are_those_that_are_kept() {
    for path in traces() {
        let threads = [1, 2, 7][draw(&path, 1).below(3) as usize];
        let kept = rows(&read(&path, &BTreeSet::from(["event"]), threads), "event");
        let files = [support::open(&path)];
        let late = without_events(&files).events.unwrap();
        let mut made = Vec::new();
        let count = late.each(&files, threads, &mut |part| {
            made.extend(hashes(&part));
            ControlFlow::Continue(())
        });
        assert_eq!((count.unwrap(), late.rows()), (kept.len(), kept.len()), "{}", path.display());
        assert!(made == kept, "{}, {threads} threads", path.display());
    }
}

/// Windows lets nobody cut a file that is mapped.
#[cfg(unix)]
#[test]
fn a_file_that_shrinks_between_pass_and_rows_gives_fewer_of_them() {
    let Some(path) = etwhy_testkit::corpus_file("etl/microsoft+perfview/net.4.5.x86_PerfViewData.etl") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.etl");
    std::fs::copy(path, &copy).unwrap();
    let files = [support::open(&copy)];
    let late = without_events(&files).events.unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let made = late.each(&files, 2, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(made > 0 && made < late.rows(), "{made} of {}", late.rows());
}
