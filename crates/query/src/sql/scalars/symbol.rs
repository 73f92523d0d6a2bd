//! `symbol(upid, address)`: the module of an address, and the function if a stack has named it.
//!
//! Images of the process count first, then the kernel's. Give null as process for kernel addresses.

use crate::sql::scalar::Scalar;
use etwhy_table::Database;
use etwhy_vtab::{Connection, Result};
use rusqlite::functions::FunctionFlags;
use std::panic::AssertUnwindSafe;

/// Declaration.
pub static SCALAR: Scalar = Scalar {
    usage: "symbol(upid, address)",
    about: "`module!function` of an address, or `module+0xrva`; names table image (and frame for functions) in the query",
    register,
};

fn register(connection: &Connection, db: &Database) -> Result<()> {
    let db = AssertUnwindSafe(db.clone());
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("symbol", 2, flags, move |call| {
        let Some(address) = call.get::<Option<i64>>(1)? else { return Ok(None) };
        Ok(find(&db, call.get::<Option<i64>>(0)?, address as u64))
    })
}

fn find(db: &Database, upid: Option<i64>, address: u64) -> Option<String> {
    let images = db.get("image")?;
    let holds = |row: &u32| {
        let base = images.i64(*row, "base").unwrap_or(0) as u64;
        let size = images.i64(*row, "size_bytes").unwrap_or(0).max(0) as u64;
        let owner = images.i64(*row, "upid");
        (owner.is_none() || owner == upid) && address.checked_sub(base).is_some_and(|rva| rva < size)
    };
    let row = (0..images.rows() as u32).find(holds)?;
    let rva = address.wrapping_sub(images.i64(row, "base").unwrap_or(0) as u64);
    let name = images.text(row, "name").unwrap_or("");
    let image = images.i64(row, "image_id");
    let named = db.get("frame").and_then(|frames| {
        let same = |f: &u32| frames.i64(*f, "image_id") == image && frames.i64(*f, "rva") == i64::try_from(rva).ok();
        let frame = (0..frames.rows() as u32).find(same)?;
        frames.text(frame, "label").map(str::to_owned)
    });
    Some(named.unwrap_or_else(|| format!("{name}+0x{rva:x}")))
}
