//! A small table with every type of column, for this crate's tests.

use crate::{Memory, Strings, Sym, Table, TableBuilder, define_table};

define_table! {
    /// Rows to test with.
    ///
    /// Nothing else.
    pub table EXAMPLE: ExampleRow = "example" {
        sorted_by: "ts_ns", version: 3, evidence: Verified("nothing"),
        /// When
        /// it was.
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
        /// Fields.
        fields: Box<str> [None, Message],
    }
}

/// Four rows.
pub(crate) fn example() -> Table {
    example_with(&Memory::unlimited(), 4)
}

/// Row `i` equals row `i % 4` in all but the time.
pub(crate) fn example_with(memory: &Memory, rows: usize) -> Table {
    let mut strings = Strings::new();
    let mut builder = TableBuilder::<ExampleRow>::new(memory);
    for i in 0..rows {
        let k = i % 4;
        builder.push(ExampleRow {
            ts_ns: i as i64 * 10,
            cpu: k as i32,
            wait_ns: [Some(1_500_000), Some(2_000_000), Some(7_000_000_000), None][k],
            size: [100, 4096, 1 << 30, 0][k],
            process: ["cmd.exe", "cmdkey.exe", "System", ""]
                .get(k)
                .filter(|t| !t.is_empty())
                .map(|t| strings.intern(t)),
            address: [0x7ff0_0000_1000u64, 0xffff_f800_0000_0000, 0xffff_f801_dead_beef, 0][k] as i64,
            status: [0, 0x103, 0xc000_0034u32 as i32, 1][k],
            share: [Some(12.5), Some(50.0), None, Some(0.0)][k],
            in_dpc: [Some(true), Some(false), Some(true), None][k],
            fields: ["{\"a\":1}", "two", "\u{1b}[31mred\u{202e}", ""][k].into(),
        });
    }
    builder.finish(&strings.freeze().unwrap()).unwrap()
}
