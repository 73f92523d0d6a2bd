//! The export table of an image, as the last resort.
//!
//! Exports are a small part of a module's functions. An address is named after the nearest export before it, which may
//! well be another function's: names from here are approximate, and whoever shows them says so.

use std::fs::File;
use std::path::Path;

use etwhy_os::Mapped;
use object::LittleEndian as LE;
use object::pe;
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile, PeFile32, PeFile64};

use crate::builder::ModuleBuilder;
use crate::{ImageKey, ModuleSymbols, Origin, SymbolError};

/// Reads an image's export table. With `wanted`, time stamp and size of its header must be those; `key` goes into the
/// compact cache.
///
/// # Errors
/// The file cannot be read, is no image, damaged, or of another build.
pub fn open(file: &Path, wanted: Option<&ImageKey>, key: &str) -> Result<ModuleSymbols, SymbolError> {
    let io = |source| SymbolError::Io { file: file.to_path_buf(), source };
    let mapped = Mapped::new(&File::open(file).map_err(io)?).map_err(io)?;
    read(&mapped, file, wanted, key)
}

/// Reads an image from memory; `file` is its name for messages. See [`open`].
///
/// # Errors
/// Those of [`open`] but for reading the file.
pub fn read(
    data: &[u8],
    file: &Path,
    wanted: Option<&ImageKey>,
    key: &str,
) -> Result<ModuleSymbols, SymbolError> {
    if !data.starts_with(b"MZ") {
        let reason = "not an image: it does not start with MZ".to_owned();
        return Err(SymbolError::Unsupported { file: file.to_path_buf(), reason });
    }
    let damaged = |e: object::read::Error| SymbolError::Damaged {
        file: file.to_path_buf(),
        reason: format!("image: {e}"),
    };
    match object::read::pe::optional_header_magic(data).map_err(damaged)? {
        pe::IMAGE_NT_OPTIONAL_HDR32_MAGIC => {
            names(&PeFile32::parse(data).map_err(damaged)?, file, wanted, key)
        }
        _ => names(&PeFile64::parse(data).map_err(damaged)?, file, wanted, key),
    }
}

fn names<'data, Pe: ImageNtHeaders>(
    image: &PeFile<'data, Pe, &'data [u8]>,
    file: &Path,
    wanted: Option<&ImageKey>,
    key: &str,
) -> Result<ModuleSymbols, SymbolError> {
    let damaged = |e| SymbolError::Damaged { file: file.to_path_buf(), reason: format!("export table: {e}") };
    let header = image.nt_headers();
    let found = ImageKey {
        name: String::new(),
        time_date_stamp: header.file_header().time_date_stamp.get(LE),
        size_of_image: header.optional_header().size_of_image(),
    };
    if let Some(wanted) = wanted
        && (wanted.time_date_stamp, wanted.size_of_image) != (found.time_date_stamp, found.size_of_image)
    {
        return Err(SymbolError::Mismatch {
            file: file.to_path_buf(),
            wanted: wanted.store_id(),
            found: found.store_id(),
        });
    }
    let mut builder = ModuleBuilder::of_file(image.data().len());
    builder.machine(header.file_header().machine.get(LE).0);
    if let Some(table) = image.export_table().map_err(damaged)? {
        let mut pointers = vec![None; table.addresses().len()];
        for (pointer, index) in table.name_iter() {
            if let Some(place) = pointers.get_mut(index.0 as usize) {
                *place = Some(pointer);
            }
        }
        for ((_, ordinal, address), pointer) in table.address_iter().zip(pointers) {
            // Forwarders have no code here, and address 0 is an ordinal that is not used.
            if address == 0 || table.is_forward(address) {
                continue;
            }
            if builder.is_full() {
                return Err(SymbolError::Damaged {
                    file: file.to_path_buf(),
                    reason: "export table: its names overlap".to_owned(),
                });
            }
            match pointer {
                Some(pointer) => {
                    let name = table.name_from_pointer(pointer).map_err(damaged)?;
                    builder.public(address, &String::from_utf8_lossy(name));
                }
                None => builder.public(address, &format!("#{}", ordinal.0)),
            }
        }
    }
    for section in image.section_table().iter() {
        let (start, size) = (section.virtual_address.get(LE), section.virtual_size.get(LE));
        builder.end_of_publics(start);
        builder.end_of_publics(start.saturating_add(size));
    }
    Ok(builder.finish(Origin::Export, key))
}
