//! CPU time by process in slices of the trace, for timelines.
//!
//! # How it is computed
//!
//! The trace is cut into at most 200 equal slices; rows of `sample` are added up by slice and process. Time in DPCs and ISRs
//! is nobody's: it stands in rows of its own without a process, as does idle time. Slices without samples
//! have no row.
//!
//! # What fools it
//!
//! Few samples per slice and processor say little: in a trace of 10 s a slice is 50 ms. Without samples the table is
//! empty; `cpu_time` then tells at least what the processors did.

use crate::derive::DerivedSpec;
use crate::fold::{Class, freeze, id};
use crate::operators::{ProcessRow, TraceRow, add, process_names, span};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::sample::SampleRow;

define_table! {
    /// CPU time by process in at most 200 equal slices of the trace, from samples.
    pub table PROCESS_SLICE: ProcessSliceRow = "process_slice" {
        sorted_by: "start_ns", version: 1,
        /// Start of the slice.
        start_ns: i64 [Ns, Time],
        /// Length of the slice; the last one ends with the trace.
        dur_ns: i64 [Ns, Duration],
        /// thread, dpc, isr or idle.
        class: Sym [None, Kind],
        /// Process; null for DPCs, ISRs and idle time, and where it is not known.
        upid: Option<i32> [None, Process],
        /// CPU time in the slice, of all processors.
        cpu_ns: i64 [Ns, Weight],
        /// Samples.
        samples: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&PROCESS_SLICE],
    reads: reads::<(TraceRow, ProcessRow, SampleRow)>,
    on_demand: false,
    make,
};

const SLICES: i64 = 200;
const CLASSES: [&str; 4] = ["thread", "dpc", "isr", "idle"];
/// Sums begin with those of no process: thread (process not known), dpc and isr as in [`Class`], idle.
const FIRST: usize = CLASSES.len();

/// Sums of one slice.
struct Slice {
    cells: Vec<(i64, i64)>,
    touched: Vec<usize>,
}

impl Slice {
    fn add(&mut self, cell: usize, weight: i64) {
        let Some(sum) = self.cells.get_mut(cell) else { return };
        if sum.1 == 0 {
            self.touched.push(cell);
        }
        sum.1 += 1;
        add(&mut sum.0, weight);
    }
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<ProcessSliceRow>::new(memory);
    let mut strings = Strings::new();
    let classes = CLASSES.map(|class| strings.intern(class));
    let names = process_names(db);
    let (first, last) = span(db).filter(|(first, last)| first <= last).unwrap_or_default();
    let width = ((last.saturating_sub(first)).max(1).saturating_add(SLICES - 1) / SLICES).max(1);
    let mut slice = Slice { cells: vec![(0, 0); FIRST + names.len()], touched: Vec::new() };
    let mut current = 0i64;
    let mut flush = |slice: &mut Slice, number: i64| {
        let start_ns = first.saturating_add(number.saturating_mul(width));
        slice.touched.sort_unstable();
        for cell in std::mem::take(&mut slice.touched) {
            let Some((cpu_ns, samples)) = slice.cells.get_mut(cell).map(std::mem::take) else { continue };
            rows.push(ProcessSliceRow {
                start_ns,
                dur_ns: width.min(last.saturating_sub(start_ns)).max(0),
                class: classes.get(if cell < FIRST { cell } else { 0 }).copied().unwrap_or(Sym::EMPTY),
                upid: cell.checked_sub(FIRST).and_then(|upid| id(upid as i64)),
                cpu_ns,
                samples,
            });
        }
    };
    for row in &db.read_or_empty::<SampleRow>() {
        let number = (row.ts_ns().saturating_sub(first) / width).clamp(0, SLICES - 1);
        if number != current {
            flush(&mut slice, current);
            current = number;
        }
        let process = row.upid().and_then(|u| usize::try_from(u).ok());
        let cell = match Class::of_sample(row.in_dpc(), row.in_isr()) {
            Class::Thread => match process.and_then(|p| Some((p, names.get(p)?.1))) {
                Some((_, 0)) => 3,
                Some((process, _)) => FIRST + process,
                None => 0,
            },
            interrupt => interrupt as usize,
        };
        slice.add(cell, row.weight_ns());
    }
    flush(&mut slice, current);
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{shown, table};
    use etwhy_table::Value;
    use etwhy_testkit::Are as _;

    #[test]
    fn samples_fall_into_their_slices() {
        let mut db = Database::new();
        db.insert(table("trace", "first_ns last_ns", &[vec![Value::I64(1000), Value::I64(5000)]]));
        let process = |name, pid| vec![Value::Text(name), Value::I64(pid)];
        db.insert(table("process", "name pid", &[process("Idle", 0), process("a.exe", 7)]));
        let sample = |ts, upid, dpc| {
            vec![Value::I64(ts), Value::I64(upid), Value::I64(10), Value::Bool(dpc), Value::Bool(false)]
        };
        let columns = "ts_ns upid weight_ns in_dpc in_isr";
        // 4000 ns in 200 slices of 20 ns.
        let samples = [
            sample(1000, 1, false),
            sample(1019, 1, false),
            sample(1019, 0, false),
            sample(1020, 1, false),
            sample(1025, 1, true),
            sample(5000, -1, false),
        ];
        db.insert(table("sample", columns, &samples));
        let made = make(&db, &Memory::default()).unwrap().remove(0);
        shown(&made, "start_ns class upid cpu_ns", 1).are(&[
            "1000 idle - 10",
            "1000 thread 1 20",
            "1020 dpc - 10",
            "1020 thread 1 10",
            "4980 thread - 10",
        ]);
    }
}
