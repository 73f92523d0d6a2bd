//! `ntstatus(code)`: the name of an NTSTATUS.

use crate::scalar::Scalar;
use etwhy_table::Database;
use etwhy_vtab::{Connection, Result};
use rusqlite::functions::FunctionFlags;

/// Declaration.
pub static SCALAR: Scalar = Scalar {
    usage: "ntstatus(code)",
    about: "Name of an NTSTATUS (STATUS_ACCESS_DENIED), else its hexadecimal number",
    register,
};

fn register(connection: &Connection, _: &Database) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("ntstatus", 1, flags, |call| {
        let Some(code) = call.get::<Option<i64>>(0)? else { return Ok(None) };
        // The bits count, whichever sign they came with.
        let code = code as u32;
        Ok(Some(etwhy_knowledge::ntstatus_name(code).map_or_else(|| format!("0x{code:08x}"), str::to_owned)))
    })
}
