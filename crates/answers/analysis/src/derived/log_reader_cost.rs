//! What one full read of a log with formatted messages costs, by the way it is read.
//!
//! # How it is computed
//!
//! Records of `log_file` by rates that were measured elsewhere on one machine: the old API formatted 10,000 messages in 1.85 to 1.98 s
//! (5,041 to 5,410 messages/s); the newer API of .NET took 10.4 s for 10,000 of Application and 129.4 s for 10,000 of Security before
//! a fix of .NET, 2.7 s and 4.3 s after it; 60,232 messages through WMI took 35 s. `etwhy evtx why` took 3.2 s for 328,973
//! records of Security on a busy virtual machine with two processors, without the texts of messages.
//!
//! # What fools it
//!
//! The rates are of one machine, and of the messages that it had: read the rows beside each other, not against a clock. Logs that
//! are neither Application nor Security are counted as Application.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use etwhy_evtx::tables::LogFileRow;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};

define_table! {
    /// Estimated time of one full read of a log, by the way it is read.
    pub table LOG_READER_COST: LogReaderCostRow = "log_reader_cost" {
        version: 1,
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// Way to read it.
        reader: Sym [None, Name],
        /// Records of the log.
        records: i64 [Count, Count],
        /// Estimated time, at the fastest rate that was measured.
        low_ns: i64 [Ns, Duration],
        /// Estimated time, at the slowest rate that was measured.
        high_ns: i64 [Ns, Duration],
        /// What was measured.
        measured: Sym [None, Other],
        /// What makes it uncertain.
        caveat: Sym [None, Other],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec =
    DerivedSpec { tables: &[&LOG_READER_COST], reads: reads::<LogFileRow>, on_demand: false, make };

/// A way to read and what was measured of it.
struct Reader {
    name: &'static str,
    /// `Some(true)`: for Security logs alone; `Some(false)`: for others.
    security: Option<bool>,
    /// Messages and seconds, at best and at worst.
    best: (f64, f64),
    worst: (f64, f64),
    measured: &'static str,
    formats: bool,
}

const fn reader(
    name: &'static str,
    security: Option<bool>,
    best: (f64, f64),
    worst: (f64, f64),
    measured: &'static str,
) -> Reader {
    Reader { name, security, best, worst, measured, formats: true }
}

/// Name of the way that this program reads.
pub const OWN: &str = "etwhy";

static READERS: [Reader; 7] = [
    reader("old API (ReadEventLog)", None, (5_410.0, 1.0), (5_041.0, 1.0), "5,041 to 5,410 messages/s"),
    reader(
        ".NET EventLogReader, before the fix",
        Some(false),
        (10_000.0, 10.4),
        (10_000.0, 10.4),
        "10,000 messages of Application in 10.4 s",
    ),
    reader(
        ".NET EventLogReader, before the fix",
        Some(true),
        (10_000.0, 129.4),
        (10_000.0, 129.4),
        "10,000 messages of Security in 129.4 s",
    ),
    reader(
        ".NET EventLogReader, after the fix",
        Some(false),
        (10_000.0, 2.7),
        (10_000.0, 2.7),
        "10,000 messages of Application in 2.7 s",
    ),
    reader(
        ".NET EventLogReader, after the fix",
        Some(true),
        (10_000.0, 4.3),
        (10_000.0, 4.3),
        "10,000 messages of Security in 4.3 s",
    ),
    reader("WMI (Win32_NTLogEvent)", None, (60_232.0, 35.0), (60_232.0, 35.0), "60,232 messages in 35 s"),
    Reader {
        name: OWN,
        security: None,
        best: (328_973.0, 3.2),
        worst: (328_973.0, 3.2),
        measured: "328,973 records of Security (265 MB): fields, rates and findings in 3.2 s",
        formats: false,
    },
];

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<LogReaderCostRow>::new(memory);
    for row in &db.read_or_empty::<LogFileRow>() {
        let channel = row.channel().unwrap_or("");
        let is_security = channel.eq_ignore_ascii_case("Security");
        let known = is_security || channel.eq_ignore_ascii_case("Application");
        let records = row.records();
        for reader in READERS.iter().filter(|r| r.security.is_none_or(|only| only == is_security)) {
            let time = |(messages, seconds): (f64, f64)| (records as f64 * seconds / messages * 1e9) as i64;
            let caveat = match (reader.formats, known || reader.security.is_none()) {
                (true, true) => "measured on one machine; another may be some times faster or slower",
                (true, false) => "measured on one machine with the Application log; this is another log",
                (false, _) => "without the texts of messages, on two shared processors, file in memory",
            };
            rows.push(LogReaderCostRow {
                log: row.log() as i32,
                reader: strings.intern(reader.name),
                records,
                low_ns: time(reader.best),
                high_ns: time(reader.worst),
                measured: strings.intern(reader.measured),
                caveat: strings.intern(caveat),
            });
        }
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{derived, table};
    use etwhy_table::Value;

    #[test]
    fn as_measured() {
        let mut db = Database::new();
        let columns = "log channel records";
        let row = |log, channel: &'static str, n| vec![Value::I64(log), Value::Text(channel), Value::I64(n)];
        db.insert(table("log_file", columns, &[row(0, "Security", 10_000), row(1, "System", 60_232)]));
        derived(&mut db, &["log_reader_cost"]);
        let t = db.get("log_reader_cost").unwrap();
        let ms = |log: i64, reader: &str| {
            let mut rows = (0..t.rows() as u32).filter(|r| t.i64(*r, "log") == Some(log));
            let at = rows.find(|r| t.text(*r, "reader").unwrap().starts_with(reader)).unwrap();
            (t.i64(at, "low_ns").unwrap() / 1_000_000, t.i64(at, "high_ns").unwrap() / 1_000_000)
        };
        // The figures themselves: 1.85 to 1.98 s for 10,000 with the old API.
        assert_eq!(ms(0, "old"), (1_848, 1_983));
        assert_eq!(ms(0, ".NET EventLogReader, before"), (129_400, 129_400));
        assert_eq!(ms(0, ".NET EventLogReader, after"), (4_300, 4_300));
        assert_eq!(ms(1, "WMI"), (35_000, 35_000));
        assert_eq!(ms(1, ".NET EventLogReader, after"), (16_262, 16_262));
        assert_eq!(t.rows(), 10);
    }
}
