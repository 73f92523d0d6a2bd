//! A part of a trace that was saved says of its stretch what the whole trace says.

use crate::growing::batch;
use crate::growing_segments::written;
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline};
use etwhy_live::Window;
use etwhy_table::Table;
use etwhy_trace::Output;

/// Cells of a row whose meaning does not depend on what else a trace holds: numbers of instances and stacks do.
fn row(table: &Table, row: u32) -> String {
    let columns = table.spec().columns.iter().enumerate();
    let own = columns.filter(|(_, column)| !column.name.ends_with("id"));
    own.map(|(at, column)| format!("{}={:?} ", column.name, table.cell(row, at))).collect()
}

/// Rows of a table, with the name of the process where it has one.
pub fn rows(output: &Output, name: &str) -> Vec<(String, Option<String>)> {
    let (table, processes) = (output.db.get(name).unwrap(), output.db.get("process").unwrap());
    let column = |table: &Table, name: &str| table.spec().columns.iter().position(|c| c.name == name);
    let (upid, called) = (column(table, "upid"), column(processes, "name").unwrap());
    let all = 0..u32::try_from(table.rows()).unwrap();
    let who = |at: u32| {
        let cell = format!("{:?}", table.cell(at, upid?));
        let number = cell.chars().filter(char::is_ascii_digit).collect::<String>();
        // The digits of a type's name come first: `I32(7)`.
        let number = number.strip_prefix("32").or(number.strip_prefix("64")).unwrap_or(&number);
        Some(format!("{:?}", processes.cell(number.parse().ok()?, called)))
    };
    all.map(|at| (row(table, at), who(at))).collect()
}

#[test]
fn a_part_has_the_rows_of_its_stretch() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = written(folder.path(), "dpc_flood.toml", 0.5);
    let (whole, part) = (folder.path().join("written.etl"), folder.path().join("part.etl"));
    let file = EtlFile::open(&whole, &whole, &OpenOptions::default()).unwrap();
    let timeline = Timeline::read(std::slice::from_ref(&file), &mut Ledger::new());
    let [from_ns, to_ns] = [3_000_000_000, 4_000_000_000];
    let [from, to] = [from_ns, to_ns].map(|ns| timeline.ns_to_key(ns));
    let mut out = Vec::new();
    let done = file.write_part(from, to - 1, &mut out).unwrap();
    assert!(done.inside > 0 && done.state > 0 && done.bytes == out.len() as u64, "{done:?}");
    assert!(out.len() * 4 < bytes.len() * 3, "{} of {} bytes", out.len(), bytes.len());
    std::fs::write(&part, &out).unwrap();
    // As many buffers as its header says.
    let saved = EtlFile::open(&part, &part, &OpenOptions::default()).unwrap();
    assert_eq!(u64::from(saved.header().buffers_written), saved.buffers_found());
    let window = Window { from, to, from_ns, to_ns, start_unix_ns: timeline.start_unix_ns() };
    let (a, b) = (batch(&[whole], &window, true), batch(&[part], &window, true));
    for name in ["sample", "dpc", "isr", "disk_io"] {
        let (a, b) = (rows(&a, name), rows(&b, name));
        assert_eq!(a.len(), b.len(), "{name}");
        let mut unknown = 0;
        for (a, b) in a.iter().zip(&b) {
            assert_eq!(a.0, b.0, "{name}");
            // Who ran on a processor before its first switch in the part is not known there, except where a record says it.
            unknown += usize::from(b.1.is_none() && a.1.is_some());
            assert!(b.1.is_none() || a.1 == b.1, "{name}: {a:?} {b:?}");
        }
        if name == "sample" {
            assert!(unknown * 20 < a.len(), "{unknown} of {}", a.len());
        }
    }
    assert!(a.db.get("dpc").unwrap().rows() > 1000);
}
