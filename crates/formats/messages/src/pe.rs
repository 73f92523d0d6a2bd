//! Resources of PE files: DLLs, programs, drivers, and the `.mui` files with their translations.
//!
//! Layout: [PE format, the .rsrc section](https://learn.microsoft.com/windows/win32/debug/pe-format#the-rsrc-section).
//! Three levels of directories tell type, name and language.

use crate::error::Error;
use crate::table::{self, Message};
use crate::version::{self, Version};
use crate::wevt::{self, Manifest};
use object::LittleEndian as LE;
use object::read::pe::{
    ImageNtHeaders, PeFile, ResourceDirectory, ResourceDirectoryEntryData, ResourceNameOrId,
};
use object::read::{FileKind, ReadRef};

/// `RT_MESSAGETABLE` (winuser.h).
const RT_MESSAGETABLE: u16 = 11;
/// `RT_VERSION` (winuser.h).
const RT_VERSION: u16 = 16;
/// Resources that are read of one file. Windows' largest files have some thousands, of which icons and dialogs do
/// not count here.
const RESOURCES_MAX: usize = 4096;
/// Kinds of resources in one file; each may have a long name.
const KINDS_MAX: usize = 1024;
/// Entries of directories that are looked at for them: those of a hostile file all lead to the same directory.
const ENTRIES_MAX: usize = 1 << 16;
/// Bytes that all resources of one file may have together. The largest tables of messages have some megabytes.
const BYTES_MAX: u64 = 256 << 20;
/// How many times larger than their file all resources together may be: in sound files few stand in several places.
const SHARED_MAX: u64 = 4;

/// What a PE file holds of interest.
#[derive(Debug, Default)]
pub struct Image {
    /// Texts by language and id.
    pub messages: Vec<Message>,
    /// Event providers.
    pub manifest: Manifest,
    /// Name and version of the file.
    pub version: Option<Version>,
    /// Language of its `MUI` resource: of a `.mui` file its own, of others the one they fall back to.
    pub mui_language: Option<String>,
    /// What is damaged; the rest is there.
    pub damage: Vec<String>,
}

impl Image {
    /// Whether there is nothing that helps to render events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.manifest.providers.is_empty()
    }
}

/// Reads a PE file from memory, or from a file through [`object::ReadCache`].
///
/// # Errors
/// If it is no PE file. Damaged resources are told in [`Image::damage`].
pub fn read<'data, R: ReadRef<'data>>(data: R) -> Result<Image, Error> {
    parse(data, &|_| true)
}

/// Reads the version resource of a PE file alone: of a file through [`object::ReadCache`], little more than its headers is read.
/// `None` if it has none.
///
/// # Errors
/// If it is no PE file.
pub fn version<'data, R: ReadRef<'data>>(data: R) -> Result<Option<Version>, Error> {
    parse(data, &|kind| matches!(kind, Kind::Version)).map(|image| image.version)
}

fn parse<'data, R: ReadRef<'data>>(data: R, wanted: &dyn Fn(&Kind) -> bool) -> Result<Image, Error> {
    match FileKind::parse(data) {
        Ok(FileKind::Pe32) => resources::<object::pe::ImageNtHeaders32, R>(data, wanted),
        Ok(FileKind::Pe64) => resources::<object::pe::ImageNtHeaders64, R>(data, wanted),
        _ => Err(Error::malformed("PE file", 0, "it is none")),
    }
}

/// What kind of resource it is, if it is of interest.
enum Kind {
    Messages,
    Events,
    Version,
    Mui,
}

fn resources<'data, P: ImageNtHeaders, R: ReadRef<'data>>(
    data: R,
    wanted: &dyn Fn(&Kind) -> bool,
) -> Result<Image, Error> {
    let file = PeFile::<P, R>::parse(data).map_err(|e| Error::malformed("PE header", 0, e.to_string()))?;
    let sections = file.section_table();
    let mut image = Image::default();
    let directory = match file.data_directories().resource_directory(data, &sections) {
        Ok(Some(directory)) => directory,
        Ok(None) => return Ok(image),
        Err(e) => {
            image.damage.push(format!("resource directory: {e}"));
            return Ok(image);
        }
    };
    let mut found = Vec::new();
    if let Err(e) = walk(directory, &mut found) {
        image.damage.push(format!("resource directory: {e}"));
    }
    let mut bytes = 0u64;
    let most = data.len().unwrap_or(0).saturating_mul(SHARED_MAX).min(BYTES_MAX);
    for (kind, language, rva, size) in found.into_iter().filter(|(kind, ..)| wanted(kind)) {
        let resource = sections
            .iter()
            .find_map(|section| section.pe_file_range_at(rva))
            .filter(|&(_, available)| available >= size)
            .and_then(|(offset, _)| data.read_bytes_at(offset.into(), size.into()).ok());
        let Some(resource) = resource else {
            image.damage.push(format!(
                "resource at address {rva:#x} needs {size} bytes, which the file does not have"
            ));
            continue;
        };
        bytes = bytes.saturating_add(resource.len() as u64);
        if bytes > most {
            image.damage.push(format!("its resources have more than {most} bytes"));
            break;
        }
        match kind {
            Kind::Messages => table::read(resource, language, &mut image.messages, &mut image.damage),
            Kind::Events => match wevt::read(resource) {
                Ok(mut manifest) => {
                    image.damage.append(&mut manifest.damage);
                    image.manifest.providers.append(&mut manifest.providers);
                }
                Err(e) => image.damage.push(format!("WEVT_TEMPLATE: {e}")),
            },
            Kind::Version => image.version = image.version.take().or_else(|| version::read(resource)),
            Kind::Mui => image.mui_language = image.mui_language.take().or_else(|| version::mui(resource)),
        }
    }
    Ok(image)
}

/// Lists kind, language, address and size of the resources that matter; of a hostile file the first of them.
fn walk(
    directory: ResourceDirectory<'_>,
    found: &mut Vec<(Kind, u16, u32, u32)>,
) -> Result<(), object::read::Error> {
    let mut seen = 0;
    for kind in directory.root()?.entries.iter().take(KINDS_MAX) {
        let of = || match kind.name_or_id() {
            ResourceNameOrId::Id(RT_MESSAGETABLE) => Some(Kind::Messages),
            ResourceNameOrId::Id(RT_VERSION) => Some(Kind::Version),
            ResourceNameOrId::Id(_) => None,
            ResourceNameOrId::Name(name) => match name.to_string_lossy(directory).ok()?.as_str() {
                "WEVT_TEMPLATE" => Some(Kind::Events),
                "MUI" => Some(Kind::Mui),
                _ => None,
            },
        };
        if of().is_none() {
            continue;
        }
        let ResourceDirectoryEntryData::Table(names) = kind.data(directory)? else {
            continue;
        };
        for name in names.entries {
            seen += 1;
            if seen >= ENTRIES_MAX {
                return Ok(());
            }
            let ResourceDirectoryEntryData::Table(languages) = name.data(directory)? else {
                continue;
            };
            for language in languages.entries {
                seen += 1;
                if found.len() >= RESOURCES_MAX || seen >= ENTRIES_MAX {
                    return Ok(());
                }
                let ResourceDirectoryEntryData::Data(entry) = language.data(directory)? else {
                    continue;
                };
                let ResourceNameOrId::Id(id) = language.name_or_id() else {
                    continue;
                };
                if let Some(kind) = of() {
                    found.push((kind, id, entry.offset_to_data.get(LE), entry.size.get(LE)));
                }
            }
        }
    }
    Ok(())
}
