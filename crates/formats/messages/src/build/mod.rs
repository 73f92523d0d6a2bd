//! Databases from what machines have: folders of DLLs, mounted images of Windows, archives that the collector made.

mod archive;
mod collect;
mod folder;
mod hive;
mod reg;
mod registry;
mod source;

pub use collect::SCRIPT as COLLECTOR;

use crate::error::Error;
use crate::pe::Image;
use crate::store::{Registration, Store, Writer, module_name};
use etwhy_scratch::Scratch;
use source::{Entry, Source};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// How a database is built.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Languages (LCIDs) that are kept beside neutral ones and English; all if there are none.
    pub languages: Vec<u16>,
}

/// What building found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that were looked at.
    pub files_seen: u64,
    /// Files with texts or providers.
    pub files_used: u64,
    /// Providers that registries name.
    pub registered: u64,
    /// Where the registry was read: hives, `.reg` files, `providers.csv`.
    pub registries: Vec<String>,
    /// Files that could not be read, and why.
    pub failed: Vec<String>,
    /// How many more there are than `failed` lists.
    pub more_failed: u64,
}

impl Report {
    fn fail(&mut self, path: &str, why: impl std::fmt::Display) {
        if self.failed.len() < 100 {
            self.failed.push(format!("{path}: {why}"));
        } else {
            self.more_failed += 1;
        }
    }
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Database,
    Folder,
    Zip,
    SevenZip,
    Image,
}

/// Looks at a path.
pub(crate) fn kind(path: &Path) -> Result<Kind, Error> {
    let meta = std::fs::metadata(path).map_err(Error::io(path))?;
    if meta.is_dir() {
        return Ok(Kind::Folder);
    }
    let mut head = [0u8; 16];
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut have = 0;
    while let Some(rest) = head.get_mut(have..).filter(|rest| !rest.is_empty()) {
        match file.read(rest).map_err(Error::io(path))? {
            0 => break,
            n => have += n,
        }
    }
    if Store::is_one(&head) {
        Ok(Kind::Database)
    } else if head.starts_with(b"PK\x03\x04") {
        Ok(Kind::Zip)
    } else if head.starts_with(b"7z\xbc\xaf\x27\x1c") {
        Ok(Kind::SevenZip)
    } else if head.starts_with(b"MZ") {
        Ok(Kind::Image)
    } else {
        Err(Error::NotUsable {
            path: path.to_owned(),
            what: "is neither a folder, a DLL, an archive (.zip, .7z) nor a database of messages; disk images have to be \
                   mounted first"
                .to_owned(),
        })
    }
}

/// A database that was just built.
pub(crate) struct Built {
    pub(crate) store: Store,
    pub(crate) report: Report,
}

/// Builds a database in a file from folders, archives and single files.
///
/// Half a database never stands in its place, and what stands there is only replaced by `force`, when the new one is whole.
///
/// # Errors
/// If a source or the database cannot be opened. Single files in folders that cannot be read are told in the report.
pub fn build_file(
    sources: &[PathBuf],
    to: &Path,
    options: &BuildOptions,
    force: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, Error> {
    if to.exists() && !force {
        return Err(Error::NotUsable { path: to.to_owned(), what: "is there already".to_owned() });
    }
    let scratch = Scratch::beside(to).map_err(Error::io(to))?;
    let whole = scratch.path().join("whole");
    let built = build(sources, Some(&whole), options, progress)?;
    drop(built.store);
    std::fs::rename(&whole, to).map_err(Error::io(to))?;
    Ok(built.report)
}

/// Builds a database in a file or in memory.
pub(crate) fn build(
    sources: &[PathBuf],
    to: Option<&Path>,
    options: &BuildOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Built, Error> {
    let mut writer = Writer::new(to, &options.languages)?;
    let mut report = Report::default();
    let mut registrations: Vec<Registration> = Vec::new();
    for path in sources {
        let mut source: Box<dyn Source> = match kind(path)? {
            Kind::Folder => Box::new(folder::Folder::open(path, &mut report)),
            Kind::Image => Box::new(folder::Folder::single(path)?),
            Kind::Zip => Box::new(archive::Zip::open(path)?),
            Kind::SevenZip => Box::new(archive::SevenZip::open(path)?),
            Kind::Database => {
                return Err(Error::NotUsable {
                    path: path.clone(),
                    what: "is a database of messages already".to_owned(),
                });
            }
        };
        add(source.as_mut(), &mut writer, &mut report, &mut registrations, progress)?;
    }
    for registration in &registrations {
        writer.register(registration)?;
    }
    report.registered = registrations.len() as u64;
    writer
        .meta("sources", &sources.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join("\n"))?;
    writer.meta("registries", &report.registries.join("\n"))?;
    writer.meta(
        "mapping",
        match registrations.is_empty() {
            true => "guessed: no registry was there, classic providers are found by the names of files",
            false => "from the registry",
        },
    )?;
    let db = writer.finish()?;
    Ok(Built { store: Store::new(db, to.unwrap_or(Path::new("files in memory"))), report })
}

/// Reads what one source has.
fn add(
    source: &mut dyn Source,
    writer: &mut Writer,
    report: &mut Report,
    registrations: &mut Vec<Registration>,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    // Files of a name belong together: builds of a DLL and its translations.
    let mut groups: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let mut registries = Vec::new();
    for entry in source.entries() {
        match source::wanted(&entry.path) {
            Some(source::Wants::Image) => groups.entry(module_name(&entry.path)).or_default().push(entry),
            Some(source::Wants::Registry) => registries.push(entry),
            None => {}
        }
    }
    for (name, entries) in groups {
        progress(&name);
        let mut images: Vec<(usize, Entry, Image)> = Vec::new();
        for entry in entries {
            report.files_seen += 1;
            match source.image(&entry) {
                Ok(image) if image.is_empty() && image.damage.is_empty() => {}
                Ok(image) => images.push((source::penalty(&entry.path), entry, image)),
                Err(e) => report.fail(&entry.path, e),
            }
        }
        // The newest build first.
        images.sort_by(|a, b| {
            let version = |image: &Image| image.version.as_ref().map(|v| v.numbers);
            a.0.cmp(&b.0)
                .then_with(|| version(&b.2).cmp(&version(&a.2)))
                .then_with(|| a.1.path.cmp(&b.1.path))
        });
        for (_, entry, image) in &images {
            for damage in &image.damage {
                report.fail(&entry.path, damage);
            }
            if !image.is_empty() {
                report.files_used += 1;
                writer.file(&entry.path, image)?;
            }
        }
    }
    for entry in registries {
        progress(&entry.path);
        match registry::read(source, &entry) {
            Ok(found) if found.is_empty() => {}
            Ok(mut found) => {
                report.registries.push(entry.path.clone());
                registrations.append(&mut found);
            }
            Err(e) => report.fail(&entry.path, e),
        }
    }
    Ok(())
}
