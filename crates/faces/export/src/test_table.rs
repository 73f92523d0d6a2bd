//! A small table for the tests of all formats.

use etwhy_table::{Memory, Selection, Strings, Sym, Table, TableBuilder, define_table};

use crate::{Format, Options};

define_table! {
    /// Rows to test with.
    pub table SAMPLE: SampleRow = "sample" {
        sorted_by: "ts_ns", version: 2,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Processor.
        cpu: i32 [None, Cpu],
        /// Wait.
        wait_ns: Option<i64> [Ns, Duration],
        /// Size.
        size: i64 [Bytes, Bytes],
        /// Process.
        process: Option<Sym> [None, Name],
        /// Address.
        address: i64 [Address, Address],
        /// Status.
        status: i32 [Hex32, Status],
        /// Share.
        share: Option<f64> [Percent, Other],
        /// In a DPC.
        in_dpc: Option<bool> [None, Flag],
        /// Path.
        path: Box<str> [None, Path],
    }
}

/// Two rows: one with everything, one with as little as can be.
pub(crate) fn sample() -> Table {
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<SampleRow>::new(&Memory::unlimited());
    rows.push(SampleRow {
        ts_ns: 1_500_000_000,
        cpu: 0,
        wait_ns: Some(1_500_000),
        size: 4096,
        process: Some(strings.intern("cmd.exe")),
        address: 0xffff_f800_0000_0000u64 as i64,
        status: 0xc000_0034u32 as i32,
        share: Some(12.5),
        in_dpc: Some(true),
        path: "=a,\"b\"".into(),
    });
    rows.push(SampleRow {
        ts_ns: 1_500_000_001,
        cpu: 1,
        wait_ns: None,
        size: 0,
        process: None,
        address: 0,
        status: 0,
        share: None,
        in_dpc: None,
        path: "\u{1b}[31mred".into(),
    });
    rows.finish(&strings.freeze().unwrap()).unwrap()
}

/// Rows with long texts, wide characters and large numbers.
pub(crate) fn long() -> Table {
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<SampleRow>::new(&Memory::unlimited());
    let names = ["SearchIndexer.exe", "日本語日本語日本語日本語.exe", "a", ""];
    for i in 0..20i64 {
        let name = names.get(i as usize % 4).copied().unwrap_or_default();
        rows.push(SampleRow {
            ts_ns: i * 1_234_567_890,
            cpu: i as i32 % 8,
            wait_ns: (i % 3 != 0).then_some(i * i * 1_000_003),
            size: i * 123_456_789,
            process: Some(strings.intern(name)),
            address: (0xffff_f800_0000_0000u64 + i as u64 * 4096) as i64,
            status: if i % 5 == 0 { 0xc000_0022u32 as i32 } else { 0 },
            share: Some(i as f64 * 3.3),
            in_dpc: Some(i % 2 == 0),
            path: format!("C:\\Windows\\System32\\DriverStore\\FileRepository\\{i}\\{name}").into(),
        });
    }
    rows.finish(&strings.freeze().unwrap()).unwrap()
}

/// A whole table as text.
pub(crate) fn text(format: &Format, table: &Table, options: &Options) -> String {
    let mut out = Vec::new();
    (format.write)(&Selection::all(table), options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
