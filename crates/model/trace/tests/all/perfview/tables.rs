//! Our tables, looked up by time or address: what PerfView adds to events (processes, threads, paths,
//! durations) comes from there.

use super::value::Plain;
use crate::support::{number, rows, table, text};
use etwhy_table::{Table, Value};
use etwhy_trace::Output;
use std::collections::HashMap;

/// The tables that rules may name, besides `process`, `image` and `trace`.
pub const BY_TIME: &str = "sample disk_io hard_fault network";

/// Tables of one trace with indexes.
pub struct Tables {
    pub output: Output,
    by_time: HashMap<(&'static str, i64), Vec<u32>>,
    by_base: HashMap<(i64, i64), Vec<u32>>,
    /// pid and tid by upid and utid.
    pids: Vec<i64>,
    tids: Vec<i64>,
}

impl Tables {
    pub fn new(output: Output) -> Tables {
        let mut by_time: HashMap<_, Vec<u32>> = HashMap::new();
        for name in BY_TIME.split_whitespace() {
            let of = table(&output, name);
            for row in rows(of) {
                by_time.entry((name, number(of, row, "ts_ns").unwrap())).or_default().push(row);
            }
        }
        let column = |name: &str, column: &str| {
            let of = table(&output, name);
            rows(of).map(|row| number(of, row, column).unwrap()).collect::<Vec<i64>>()
        };
        let (pids, tids) = (column("process", "pid"), column("thread", "tid"));
        let images = table(&output, "image");
        let mut by_base: HashMap<_, Vec<u32>> = HashMap::new();
        for row in rows(images) {
            let pid = number(images, row, "upid").map_or(0, |upid| pids[upid as usize]);
            by_base.entry((pid, number(images, row, "base").unwrap())).or_default().push(row);
        }
        Tables { output, by_time, by_base, pids, tids }
    }

    fn cell(&self, of: &Table, row: u32, column: &str) -> Plain {
        let id = |column| number(of, row, column).and_then(|v| usize::try_from(v).ok());
        match column {
            "pid" => Plain::Number(id("upid").map_or(-1, |upid| i128::from(self.pids[upid])), 64),
            "tid" => Plain::Number(id("utid").map_or(-1, |utid| i128::from(self.tids[utid])), 64),
            "path" if of.name() != "image" && of.name() != "file" => {
                let files = table(&self.output, "file");
                Plain::Text(id("file_id").map_or(String::new(), |f| text(files, f as u32, "path").to_owned()))
            }
            _ => {
                assert!(of.spec().column(column).is_some(), "{} has no column {column}", of.name());
                match of.value(row, column) {
                    Value::Text(t) => Plain::Text(t.to_owned()),
                    Value::F64(v) => Plain::Real(v),
                    other => other
                        .as_i64()
                        .map_or(Plain::Text(String::new()), |v| Plain::Number(i128::from(v), 64)),
                }
            }
        }
    }

    /// Cells of the rows of a table that belong to an event at `ns` on `cpu`.
    pub fn at(&self, name: &str, ns: i64, cpu: u16, column: &str) -> Vec<Plain> {
        let of = table(&self.output, name);
        let name = BY_TIME.split_whitespace().find(|t| *t == name).unwrap_or_else(|| panic!("{name}"));
        let rows = self.by_time.get(&(name, ns)).map_or(&[][..], Vec::as_slice);
        let of_cpu = |row: &&u32| number(of, **row, "cpu") == Some(i64::from(cpu));
        let by_cpu = of.spec().column("cpu").is_some();
        rows.iter().filter(|row| !by_cpu || of_cpu(row)).map(|row| self.cell(of, *row, column)).collect()
    }

    /// Cells of the images of a process with a base address.
    pub fn image(&self, pid: i64, base: i64, column: &str) -> Vec<Plain> {
        let of = table(&self.output, "image");
        let rows = self.by_base.get(&(pid, base)).map_or(&[][..], Vec::as_slice);
        rows.iter().map(|row| self.cell(of, *row, column)).collect()
    }

    /// A cell of the only row of the table `trace`.
    pub fn trace(&self, column: &str) -> Plain {
        self.cell(table(&self.output, "trace"), 0, column)
    }

    /// Names of the process instances with a pid that lived at a time; of all if none lived then.
    pub fn names_of(&self, pid: i64, ns: i64) -> Vec<&str> {
        let of = table(&self.output, "process");
        let all: Vec<u32> = rows(of).filter(|row| self.pids[*row as usize] == pid).collect();
        let alive: Vec<u32> = all
            .iter()
            .copied()
            .filter(|row| number(of, *row, "start_ns").is_none_or(|start| start <= ns))
            .filter(|row| number(of, *row, "end_ns").is_none_or(|end| ns <= end))
            .collect();
        let rows = if alive.is_empty() { all } else { alive };
        rows.into_iter().map(|row| text(of, row, "name")).collect()
    }
}
