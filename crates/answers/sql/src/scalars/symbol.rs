//! `symbol(upid, address)`: the module of an address, and the function if a stack has named it.
//!
//! Images of the process count first, then the kernel's. Give null as process for kernel addresses.

use crate::scalar::Scalar;
use etwhy_table::Database;
use etwhy_trace::catalog::{image::ImageRow, stack::FrameRow};
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
    let images = db.read_or_empty::<ImageRow>();
    let image = images.iter().find(|image| {
        let inside = address.checked_sub(image.base() as u64);
        (image.upid().is_none() || image.upid() == upid)
            && inside.is_some_and(|rva| rva < image.size_bytes().max(0) as u64)
    })?;
    let (name, rva) = (image.name(), address.wrapping_sub(image.base() as u64));
    let frames = db.read_or_empty::<FrameRow>();
    let named = frames
        .iter()
        .find(|frame| frame.image_id() == Some(image.image_id()) && frame.rva() == i64::try_from(rva).ok());
    let named = named.map(|frame| frame.label().to_owned());
    Some(named.unwrap_or_else(|| format!("{name}+0x{rva:x}")))
}
