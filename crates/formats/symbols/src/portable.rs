//! Portable PDBs: source lines of .NET methods, by token and offset in the method's IL.
//!
//! Nothing is decoded before it is asked for, and nothing in the file is believed. Source: "Portable PDB v1.0: Format
//! Specification" (dotnet/runtime), ECMA-335 II.24.2 for the streams and the compressed numbers.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use etwhy_base::{Bytes, Guid};

use crate::key::store_id;
use crate::{ModuleKey, SymbolError};

/// Largest file that is read. Those of the largest assemblies have some ten megabytes.
const MAX_BYTES: u64 = 512 << 20;
/// Longest file name; Windows has 32 767 characters at most.
const MAX_NAME: usize = 32_767;
const MAX_STREAMS: u16 = 64;
/// Tables of a portable PDB that are read; all others stand behind them.
const DOCUMENT: u32 = 0x30;
const METHOD_DEBUG_INFORMATION: u32 = 0x31;
/// Bits of `HeapSizes`: indexes have four bytes, not two.
const WIDE_GUIDS: u8 = 2;
const WIDE_BLOBS: u8 = 4;
/// Table of a token of a method (`MethodDef`).
const METHOD_DEF: u32 = 0x06;

/// The lines of an assembly.
#[derive(Debug)]
pub struct PortableLines {
    data: Vec<u8>,
    guid: Guid,
    /// Offset and size of the heap of blobs.
    blobs: (usize, usize),
    documents: Rows,
    methods: Rows,
    wide_blobs: bool,
}

/// A table.
#[derive(Clone, Copy, Debug)]
struct Rows {
    start: usize,
    count: u32,
    width: usize,
}

impl Rows {
    /// Offset of a row; the first has number 1.
    fn at(self, row: u32) -> Option<usize> {
        let before = row.checked_sub(1).filter(|_| row <= self.count)?;
        self.start.checked_add(self.width.checked_mul(before as usize)?)
    }
}

/// Reads a portable PDB. With `wanted` its GUID must be that; a portable PDB has no age.
///
/// # Errors
/// The file cannot be read, is no portable PDB, damaged, or of another build.
pub fn open(file: &Path, wanted: Option<&ModuleKey>) -> Result<PortableLines, SymbolError> {
    let io = |source| SymbolError::Io { file: file.to_path_buf(), source };
    let mut data = Vec::new();
    File::open(file).and_then(|f| f.take(MAX_BYTES + 1).read_to_end(&mut data)).map_err(io)?;
    if data.len() as u64 > MAX_BYTES {
        let bytes = data.len() as u64;
        return Err(SymbolError::TooLarge { file: file.to_path_buf(), bytes, limit: MAX_BYTES });
    }
    read(data, file, wanted)
}

/// Reads a portable PDB from memory; `file` is its name for messages. See [`open`].
///
/// # Errors
/// Those of [`open`] but for reading the file.
pub fn read(data: Vec<u8>, file: &Path, wanted: Option<&ModuleKey>) -> Result<PortableLines, SymbolError> {
    if !data.starts_with(b"BSJB") {
        let reason = "not a portable PDB; lines of .NET methods are read from portable PDBs only".to_owned();
        return Err(SymbolError::Unsupported { file: file.to_path_buf(), reason });
    }
    let damaged = |reason: String| SymbolError::Damaged { file: file.to_path_buf(), reason };
    let lines = parse(data).map_err(damaged)?;
    match wanted {
        Some(wanted) if wanted.guid != lines.guid => Err(SymbolError::Mismatch {
            file: file.to_path_buf(),
            wanted: store_id(wanted.guid, u32::MAX),
            found: store_id(lines.guid, u32::MAX),
        }),
        _ => Ok(lines),
    }
}

fn parse(data: Vec<u8>) -> Result<PortableLines, String> {
    let short = |what: &str, at: usize, needed: usize| {
        format!("{what} at offset {at}: needs {needed} bytes, file has {}", data.len())
    };
    let (mut pdb, mut tables, mut blobs) = (None, None, None);
    let version = data.u32_at(12).ok_or_else(|| short("metadata root", 12, 4))? as usize;
    let mut at = version.saturating_add(16);
    let count = data.u16_at(at.saturating_add(2)).ok_or_else(|| short("number of streams", at, 4))?;
    at = at.saturating_add(4);
    for _ in 0..count.min(MAX_STREAMS) {
        let header = || Some((data.u32_at(at)? as usize, data.u32_at(at.checked_add(4)?)? as usize));
        let (offset, size) = header().ok_or_else(|| short("stream header", at, 8))?;
        let name = data.get(at.saturating_add(8)..).unwrap_or_default();
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        if offset.checked_add(size).is_none_or(|end| end > data.len()) {
            return Err(short("stream", offset, size));
        }
        match name {
            b"#Pdb" => pdb = Some(offset),
            b"#~" => tables = Some(offset),
            b"#Blob" => blobs = Some((offset, size)),
            _ => {}
        }
        // The name ends with a nul and is padded to four bytes.
        at = at.saturating_add(8).saturating_add((name.len() / 4 + 1) * 4);
    }
    let pdb = pdb.ok_or("no stream #Pdb")?;
    let tables = tables.ok_or("no stream #~")?;
    let guid = data.guid_at(pdb).ok_or_else(|| short("#Pdb", pdb, 16))?;
    let header = || Some((*data.get(tables.checked_add(6)?)?, data.u64_at(tables.checked_add(8)?)?));
    let (heaps, valid) = header().ok_or_else(|| short("#~", tables, 24))?;
    if valid & ((1 << DOCUMENT) - 1) != 0 {
        return Err("#~ holds tables of an assembly, not of a PDB alone".to_owned());
    }
    let counts = tables.saturating_add(24);
    let rows = |table: u32| match valid >> table & 1 {
        0 => Some(0),
        _ => {
            let before = (valid & ((1 << table) - 1)).count_ones() as usize;
            data.u32_at(counts.checked_add(before * 4)?)
        }
    };
    let count_of = |table| rows(table).ok_or_else(|| short("row counts of #~", counts, 8));
    let (documents, methods) = (count_of(DOCUMENT)?, count_of(METHOD_DEBUG_INFORMATION)?);
    let blob = if heaps & WIDE_BLOBS == 0 { 2 } else { 4 };
    let guids = if heaps & WIDE_GUIDS == 0 { 2 } else { 4 };
    // Name, hash algorithm, hash, language; then document and sequence points.
    let documents = Rows {
        start: counts.saturating_add(valid.count_ones() as usize * 4),
        count: documents,
        width: 2 * blob + 2 * guids,
    };
    let start = documents.width.checked_mul(documents.count as usize);
    let methods = Rows {
        start: start.and_then(|s| s.checked_add(documents.start)).ok_or("table of documents: too long")?,
        count: methods,
        width: document_width(documents.count) + blob,
    };
    let end = methods.width.checked_mul(methods.count as usize).and_then(|s| s.checked_add(methods.start));
    if end.is_none_or(|end| end > data.len()) {
        return Err(short("tables of #~", documents.start, end.unwrap_or(usize::MAX)));
    }
    let blobs = blobs.ok_or("no stream #Blob")?;
    Ok(PortableLines { guid, blobs, documents, methods, wide_blobs: blob == 4, data })
}

/// Bytes of a row number of the table of documents.
fn document_width(count: u32) -> usize {
    if count > 0xFFFF { 4 } else { 2 }
}

impl PortableLines {
    /// The id's GUID.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// How many methods the assembly has.
    pub fn methods(&self) -> u32 {
        self.methods.count
    }

    /// File and line of the instruction at an offset of a method's IL: the last point at or before it that is not hidden, as
    /// .NET's own stack traces have it (`StackTraceSymbols`, dotnet/runtime).
    pub fn lookup(&self, token: u32, il_offset: u32) -> Option<(String, u32)> {
        let row = (token >> 24 == METHOD_DEF).then_some(token & 0xFF_FFFF)?;
        let at = self.methods.at(row)?;
        let index = document_width(self.documents.count);
        let document = self.index(at, index == 4)?;
        let points = self.index(at.checked_add(index)?, self.wide_blobs)?;
        if points == 0 {
            return None;
        }
        let (document, line) = nearest(self.blob(points)?, document, il_offset)?;
        Some((self.document(document)?, line))
    }

    fn document(&self, row: u32) -> Option<String> {
        let blob = self.blob(self.index(self.documents.at(row)?, self.wide_blobs)?)?;
        let (separator, mut parts) = blob.split_first()?;
        let mut name = Vec::new();
        let mut first = true;
        while !parts.is_empty() {
            let part = unsigned(&mut parts)?;
            if !first && *separator != 0 {
                name.push(*separator);
            }
            first = false;
            name.extend_from_slice(if part == 0 { &[] } else { self.blob(part)? });
            if name.len() > MAX_NAME {
                return None;
            }
        }
        (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned())
    }

    fn index(&self, at: usize, wide: bool) -> Option<u32> {
        if wide { self.data.u32_at(at) } else { self.data.u16_at(at).map(u32::from) }
    }

    fn blob(&self, index: u32) -> Option<&[u8]> {
        let heap = self.data.get(self.blobs.0..)?.get(..self.blobs.1)?;
        let mut rest = heap.get(index as usize..)?;
        let size = unsigned(&mut rest)?;
        rest.get(..size as usize)
    }
}

/// Document and line of the last visible point at or before `il_offset`.
fn nearest(mut blob: &[u8], mut document: u32, il_offset: u32) -> Option<(u32, u32)> {
    unsigned(&mut blob)?; // signature of local variables
    if document == 0 {
        document = unsigned(&mut blob)?;
    }
    let (mut offset, mut first, mut line, mut found) = (0u32, true, None::<u32>, None);
    while !blob.is_empty() {
        let step = unsigned(&mut blob)?;
        if step == 0 && !first {
            document = unsigned(&mut blob)?;
            continue;
        }
        first = false;
        offset = offset.checked_add(step)?;
        if offset > il_offset {
            break;
        }
        let lines = unsigned(&mut blob)?;
        let columns = if lines == 0 { unsigned(&mut blob)? as i32 } else { signed(&mut blob)? };
        if lines == 0 && columns == 0 {
            continue; // hidden
        }
        let start = match line {
            None => {
                let start = unsigned(&mut blob)?;
                unsigned(&mut blob)?;
                start
            }
            Some(before) => {
                let start = before.checked_add_signed(signed(&mut blob)?)?;
                signed(&mut blob)?;
                start
            }
        };
        line = Some(start);
        found = Some((document, start));
    }
    found
}

/// A compressed number and its size in bits (ECMA-335 II.23.2).
fn compressed(bytes: &mut &[u8]) -> Option<(u32, u32)> {
    let first = *bytes.first()?;
    let (size, mask, bits) = match first {
        0..0x80 => (1, 0x7F, 7),
        0x80..0xC0 => (2, 0x3F, 14),
        0xC0..0xE0 => (4, 0x1F, 29),
        _ => return None,
    };
    let (number, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    let low = number.iter().skip(1).fold(u32::from(first & mask), |n, b| n << 8 | u32::from(*b));
    Some((low, bits))
}

fn unsigned(bytes: &mut &[u8]) -> Option<u32> {
    compressed(bytes).map(|(number, _)| number)
}

/// The sign is the lowest bit; the rest is in two's complement of that size.
fn signed(bytes: &mut &[u8]) -> Option<i32> {
    let (number, bits) = compressed(bytes)?;
    let rest = (number >> 1) as i32;
    Some(if number & 1 == 0 { rest } else { rest - (1 << (bits - 1)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_the_standard_shows_them() {
        // Examples of ECMA-335 II.23.2.
        for (bytes, value) in [
            (&[0x03][..], 3),
            (&[0x80, 0x80], 0x80),
            (&[0xAE, 0x57], 0x2E57),
            (&[0xDF, 255, 255, 255], 0x1FFF_FFFF),
        ] {
            assert_eq!(unsigned(&mut &*bytes), Some(value));
        }
        let signs: [(&[u8], i32); 8] = [
            (&[0x06], 3),
            (&[0x7B], -3),
            (&[0x80, 0x80], 64),
            (&[0x01], -64),
            (&[0xC0, 0, 0x40, 0], 8192),
            (&[0x80, 0x01], -8192),
            (&[0xDF, 255, 255, 254], 268_435_455),
            (&[0xC0, 0, 0, 1], -268_435_456),
        ];
        for (bytes, value) in signs {
            assert_eq!(signed(&mut &*bytes), Some(value));
        }
    }

    #[test]
    fn points_are_those_before_and_not_hidden() {
        // Signature 0; IL 0: line 10, columns 5 to 9; IL 4: hidden; IL 6: document 2, line 7 (-3), over two lines.
        let blob = [0, 0, 0, 4, 10, 5, 4, 0, 0, 0, 2, 2, 2, 2, 0x7B, 0];
        let at = |il| nearest(&blob, 1, il);
        assert_eq!([at(0), at(3), at(4), at(5)], [Some((1, 10)); 4]);
        assert_eq!([at(6), at(100)], [Some((2, 7)); 2]);
        // The first point is at IL 3: nothing stands before it. The document is in the blob.
        let blob = [0, 9, 3, 0, 4, 10, 5];
        assert_eq!([nearest(&blob, 0, 2), nearest(&blob, 0, 3)], [None, Some((9, 10))]);
    }
}
