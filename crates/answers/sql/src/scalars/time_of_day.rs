//! `time_of_day(ns)`: the time of day (UTC) of a moment of the trace.

use crate::scalar::Scalar;
use etwhy_table::Database;
use etwhy_trace::catalog::trace::TraceRow;
use etwhy_vtab::{Connection, Result};
use rusqlite::functions::FunctionFlags;

/// Declaration.
pub static SCALAR: Scalar = Scalar {
    usage: "time_of_day(ns)",
    about: "Time of day, UTC, of a moment of the trace (HH:MM:SS.mmm); names table trace in the query for the start",
    register,
};

fn register(connection: &Connection, db: &Database) -> Result<()> {
    let start = db.read_or_empty::<TraceRow>().first().map(|trace| trace.start_unix_ns());
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("time_of_day", 1, flags, move |call| {
        let (Some(ns), Some(start)) = (call.get::<Option<i64>>(0)?, start) else { return Ok(None) };
        Ok(Some(text(start.saturating_add(ns))))
    })
}

fn text(unix_ns: i64) -> String {
    let ms = unix_ns.div_euclid(1_000_000).rem_euclid(86_400_000);
    format!("{:02}:{:02}:{:02}.{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
}

#[cfg(test)]
mod tests {
    #[test]
    fn midnight_and_before_1970() {
        assert_eq!(super::text(1_740_816_000_000_000_000), "08:00:00.000");
        assert_eq!(super::text(-1_000_000), "23:59:59.999");
    }
}
