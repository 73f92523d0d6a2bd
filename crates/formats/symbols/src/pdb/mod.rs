//! Program databases (`.pdb`): procedures, public names, lines and inlined calls of a whole module.
//!
//! The container (MSF) is read by the crate `pdb2`. What is in its streams is read here: there are tens of millions of
//! records in large files, and nothing in them may be believed.
//!
//! A PDB belongs to an image if GUID and age are those of the image's `RSDS` record. The GUID stands in the
//! information stream; the age in the DBI stream is the linker's, while the one in the information stream goes up
//! whenever a tool (`pdbstr`, `mspdbsrv`) writes the file again, so it counts only if the other is 0.

mod addresses;
mod bytes;
mod dbi;
mod inlinees;
mod module;
mod source;
mod types;

use etwhy_base::Guid;
use std::fs::File;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use etwhy_os::Mapped;
use pdb2::{PDB, StreamIndex};

use crate::builder::ModuleBuilder;
use crate::key::store_id;
use crate::{ModuleKey, ModuleSymbols, Origin, SymbolError};

use addresses::Addresses;
use bytes::Records;
use dbi::Dbi;
use etwhy_base::Bytes as _;
use source::Bytes;

/// Streams with a fixed number ("The PDB File Format", LLVM documentation).
const INFORMATION: u16 = 1;
const TPI: u16 = 2;
const DBI: u16 = 3;
const IPI: u16 = 4;
/// Public names, with a zero behind the text and with its length in front.
const S_PUB32: u16 = 0x110E;
const S_PUB32_ST: u16 = 0x1009;

/// Reads a PDB from a file. With `wanted`, its GUID and age must be those; `key` goes into the compact cache.
///
/// # Errors
/// The file cannot be read, is no PDB or one that cannot be used here, damaged, or of another build.
pub fn open(file: &Path, wanted: Option<&ModuleKey>, key: &str) -> Result<ModuleSymbols, SymbolError> {
    let io = |source| SymbolError::Io { file: file.to_path_buf(), source };
    let mapped = Mapped::new(&File::open(file).map_err(io)?).map_err(io)?;
    convert(Bytes::Mapped(Arc::new(mapped)), file, wanted, key)
}

/// Reads a PDB from memory; `file` is its name for messages. See [`open`].
///
/// # Errors
/// Those of [`open`] but for reading the file.
pub fn read(
    data: Vec<u8>,
    file: &Path,
    wanted: Option<&ModuleKey>,
    key: &str,
) -> Result<ModuleSymbols, SymbolError> {
    convert(Bytes::Owned(Arc::new(data)), file, wanted, key)
}

fn convert(
    data: Bytes,
    file: &Path,
    wanted: Option<&ModuleKey>,
    key: &str,
) -> Result<ModuleSymbols, SymbolError> {
    let size = data.all().len();
    recognise(data.all()).map_err(|reason| SymbolError::Unsupported { file: file.to_path_buf(), reason })?;
    let damaged = |reason: String| SymbolError::Damaged { file: file.to_path_buf(), reason };
    let mut container = Container(PDB::open(data).map_err(|e| damaged(format!("container (MSF): {e}")))?);
    let information = container.stream(INFORMATION).and_then(|stream| Information::read(&stream));
    let information =
        information.ok_or_else(|| damaged("no information stream with GUID and age".to_owned()))?;
    let dbi = match container.stream(DBI) {
        Some(stream) => Dbi::read(&stream).map_err(damaged)?,
        None => Dbi::default(),
    };
    let age = if dbi.age == 0 { information.age } else { dbi.age };
    let guid = information.guid;
    if let Some(wanted) = wanted
        && (wanted.guid, wanted.age) != (guid, age)
    {
        return Err(SymbolError::Mismatch {
            file: file.to_path_buf(),
            wanted: wanted.store_id(),
            found: store_id(guid, age),
        });
    }
    let names = information.names.and_then(|s| container.stream(s));
    let types = [container.stream(TPI), container.stream(IPI)];
    let [types, ids] = [0, 1].map(|i| types.get(i).and_then(|s| s.as_ref()).map_or(&[][..], |s| &**s));
    let addresses = container.addresses(&dbi, size).map_err(damaged)?;
    let mut builder = ModuleBuilder::of_file(size);
    builder.machine(dbi.machine);
    let names = names.as_ref().map_or(&[][..], |s| &**s);
    let mut reader =
        module::Reader::new(&dbi, &addresses, types::Types::new(types, ids), names, &mut builder);
    // Each stream is of one compiland, so all of them together are no larger than the file.
    let mut left = size;
    for (number, module) in dbi.modules.iter().enumerate() {
        let Some(stream) = module.stream.and_then(|s| container.stream(s)) else { continue };
        left =
            left.checked_sub(stream.len()).ok_or_else(|| damaged("compilands share streams".to_owned()))?;
        reader.module(number, module, &stream);
    }
    reader.finish();
    let origin = if builder.functions() > 0 { Origin::Pdb } else { Origin::PdbPublics };
    if let Some(stream) = dbi.symbol_records.and_then(|s| container.stream(s)) {
        publics(&stream, &addresses, &mut builder);
    }
    Ok(builder.finish(origin, key))
}

/// What a file is by its first bytes; an error if it is nothing that this reader knows.
fn recognise(data: &[u8]) -> Result<(), String> {
    let known: [&[u8]; 2] = [
        b"Microsoft C/C++ MSF 7.00\r\n\x1a\x44\x53",
        b"Microsoft C/C++ program database 2.00\r\n\x1a\x4a\x47",
    ];
    if known.iter().any(|magic| data.starts_with(magic)) {
        return Ok(());
    }
    Err(if data.starts_with(b"BSJB") {
        "a portable PDB: it has lines of .NET methods by token, no addresses".to_owned()
    } else if data.starts_with(b"Microsoft MSFZ Container") {
        "a PDB compressed as MSFZ, which cannot be read: unpack it with `pdbtool`, or have the linker write a plain one"
            .to_owned()
    } else if data.starts_with(b"MSCF") {
        "a cabinet: unpack it first".to_owned()
    } else {
        "not a PDB: it starts with neither the magic of MSF 7.00 nor of program database 2.00".to_owned()
    })
}

/// The streams of a file.
struct Container<'s>(PDB<'s, Bytes>);

impl<'s> Container<'s> {
    fn stream(&mut self, number: u16) -> Option<impl Deref<Target = [u8]> + use<'s>> {
        self.0.raw_stream(StreamIndex(number)).ok().flatten()
    }

    fn addresses(&mut self, dbi: &Dbi, size: usize) -> Result<Addresses, String> {
        let mut sections = |number: Option<u16>| {
            let stream = number.and_then(|n| self.stream(n));
            stream.map(|stream| addresses::section_headers(&stream))
        };
        let image = match &dbi.mapped_sections {
            Some(sections) => sections.clone(),
            None => sections(dbi.section_headers).ok_or("the stream of section headers is missing")?,
        };
        let Some(omap) = dbi.omap_from_source else { return Ok(Addresses::plain(image)) };
        let original = sections(dbi.original_headers).unwrap_or_else(|| image.clone());
        let omap = self.stream(omap).ok_or("the map of addresses (OMAP) is missing")?;
        Ok(Addresses::rearranged(original, &omap, image, size))
    }
}

/// GUID, age, and the stream of file names.
struct Information {
    guid: Guid,
    age: u32,
    names: Option<u16>,
}

impl Information {
    /// Version, signature, age, GUID, then a map from names to streams ("The PDB Info Stream", LLVM documentation).
    fn read(bytes: &[u8]) -> Option<Information> {
        let guid = bytes.guid_at(12)?;
        let mut information = Information { guid, age: bytes.u32_at(8)?, names: None };
        information.names = Information::names_stream(bytes);
        Some(information)
    }

    fn names_stream(bytes: &[u8]) -> Option<u16> {
        let texts = bytes.sub(32, bytes.u32_at(28)? as usize)?;
        // Count, capacity, bits of the places that are in use and of those that were, then offset and stream of each.
        let map = bytes.get(32 + texts.len()..)?;
        let count = map.u32_at(0)? as usize;
        let mut at = 8usize;
        for _ in 0..2 {
            at = at.checked_add(4)?.checked_add((map.u32_at(at)? as usize).checked_mul(4)?)?;
        }
        let entries = map.get(at..)?.chunks_exact(8).take(count);
        let found = entries.filter_map(|e| Some((e.u32_at(0)?, e.u32_at(4)?)));
        let mut names = found.filter(|(name, _)| texts.text_at(*name as usize) == Some(b"/names"));
        u16::try_from(names.next()?.1).ok()
    }
}

/// Names without a size; each reaches up to the next one, or the end of its section.
fn publics(bytes: &[u8], addresses: &Addresses, builder: &mut ModuleBuilder) {
    for record in Records::new(bytes, 0) {
        let name = match record.kind {
            S_PUB32 => record.data.text_at(10),
            // The name has its length in front.
            S_PUB32_ST => record.data.get(10).and_then(|size| record.data.sub(11, usize::from(*size))),
            _ => continue,
        };
        let place = record.data.u16_at(8).zip(record.data.u32_at(4));
        let (Some(name), Some((section, offset))) = (name, place) else {
            builder.malformed();
            continue;
        };
        // Absolute values have a section number behind the last one.
        if let Some(rva) = addresses.rva(section, offset) {
            builder.public(rva, &String::from_utf8_lossy(name));
        }
    }
    for bound in addresses.bounds() {
        builder.end_of_publics(bound);
    }
}
