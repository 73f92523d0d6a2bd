//! Names of inlined functions, from the streams of ids and types.
//!
//! Layout: "The PDB TPI and IPI Streams" and "CodeView Type Records", LLVM documentation.

use super::bytes::{Record, Records};
use etwhy_base::Bytes as _;

/// A scope stands in a scope; deeper ones are damage.
const MAX_SCOPES: usize = 8;

/// Records by index.
#[derive(Default)]
struct Table<'a> {
    bytes: &'a [u8],
    begin: u32,
    /// Where each record begins.
    starts: Vec<u32>,
}

impl<'a> Table<'a> {
    fn of(bytes: &'a [u8]) -> Table<'a> {
        let (Some(header), Some(begin)) = (bytes.u32_at(4), bytes.u32_at(8)) else { return Table::default() };
        let starts = Records::new(bytes, header as usize).map(|r| r.at as u32).collect();
        Table { bytes, begin, starts }
    }

    fn get(&self, index: u32) -> Option<Record<'a>> {
        let at = *self.starts.get(index.checked_sub(self.begin)? as usize)?;
        Records::new(self.bytes, at as usize).next()
    }
}

/// Names by id.
#[derive(Default)]
pub struct Types<'a> {
    types: Table<'a>,
    ids: Table<'a>,
}

impl<'a> Types<'a> {
    /// Of the two streams, which may be missing.
    pub fn new(types: &'a [u8], ids: &'a [u8]) -> Types<'a> {
        Types { types: Table::of(types), ids: Table::of(ids) }
    }

    /// `scope::name` of a function's id.
    pub fn function(&self, id: u32) -> Option<String> {
        name_of(&self.types, &self.ids, id, MAX_SCOPES)
    }
}

fn name_of(types: &Table<'_>, ids: &Table<'_>, id: u32, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let record = ids.get(id)?;
    let text = |at| record.data.text_at(at).map(String::from_utf8_lossy);
    let number = |at| record.data.u32_at(at);
    let scope = match record.kind {
        // LF_FUNC_ID: scope, type, name
        0x1601 => match number(0)? {
            0 => None,
            scope => name_of(types, ids, scope, depth),
        },
        // LF_MFUNC_ID: class, type, name
        0x1602 => types.get(number(0)?).and_then(type_name),
        // LF_STRING_ID: list of further parts, text
        0x1605 => return Some(text(4)?.into_owned()),
        _ => return None,
    };
    let name = text(8)?;
    Some(match scope {
        Some(scope) => format!("{scope}::{name}"),
        None => name.into_owned(),
    })
}

/// Name of a class, structure, interface, union or enumeration.
fn type_name(record: Record<'_>) -> Option<String> {
    let at = match record.kind {
        // LF_CLASS, LF_STRUCTURE, LF_INTERFACE: count, properties, fields, derived, vtable, size, name
        0x1504 | 0x1505 | 0x1519 => skip_numeric(record.data, 16)?,
        // LF_UNION: count, properties, fields, size, name
        0x1506 => skip_numeric(record.data, 8)?,
        // LF_ENUM: count, properties, underlying, fields, name
        0x1507 => 12,
        // LF_CLASS2, LF_STRUCTURE2: properties 32, fields, derived, vtable, count 16, size, name
        0x1608 | 0x1609 => skip_numeric(record.data, 18)?,
        _ => return None,
    };
    Some(String::from_utf8_lossy(record.data.text_at(at)?).into_owned())
}

/// Where the field behind a numeric leaf begins.
fn skip_numeric(data: &[u8], at: usize) -> Option<usize> {
    let leaf = data.u16_at(at)?;
    let size = match leaf {
        0..=0x7FFF => 0,
        // LF_CHAR, LF_SHORT, LF_USHORT, LF_LONG, LF_ULONG, LF_QUADWORD, LF_UQUADWORD
        0x8000 => 1,
        0x8001 | 0x8002 => 2,
        0x8003 | 0x8004 => 4,
        0x8009 | 0x800A => 8,
        _ => return None,
    };
    Some(at + 2 + size)
}
