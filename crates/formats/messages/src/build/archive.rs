//! Archives: what the collector makes.

use super::source::{Entry, Source, WHOLE_MAX, wanted};
use crate::error::Error;
use etwhy_scratch::Scratch;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Files that are taken from an archive.
const FILES_MAX: usize = 500_000;
/// Bytes that all files of an archive together may unpack to.
const UNPACKED_MAX: u64 = 32 << 30;

fn unusable(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::NotUsable { path: path.to_owned(), what: what.to_string() }
}

/// A `.zip`.
pub(crate) struct Zip {
    archive: zip::ZipArchive<BufReader<File>>,
    path: PathBuf,
    /// Bytes that files may still unpack to.
    left: u64,
}

impl Zip {
    /// Opens it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|e| unusable(path, e))?;
        Ok(Self { archive, path: path.to_owned(), left: UNPACKED_MAX })
    }
}

impl Source for Zip {
    fn entries(&mut self) -> Vec<Entry> {
        (0..self.archive.len().min(FILES_MAX))
            .filter_map(|index| {
                let path = self.archive.name_for_index(index)?.ok()?.replace('\\', "/");
                wanted(&path)?;
                Some(Entry { path, index })
            })
            .collect()
    }

    fn bytes(&mut self, entry: &Entry) -> Result<Vec<u8>, Error> {
        let path = &self.path;
        let most = WHOLE_MAX.min(self.left);
        let file = self.archive.by_index(entry.index).map_err(|e| unusable(path, e))?;
        let mut bytes = Vec::new();
        // What the archive says of the size is not believed.
        let read = file.take(most + 1).read_to_end(&mut bytes).map_err(Error::io(path))? as u64;
        self.left = self.left.saturating_sub(read);
        if read > most {
            return Err(unusable(path, format!("unpacks to more than {most} bytes")));
        }
        Ok(bytes)
    }
}

/// A `.7z`, whose files are packed together: those that are wanted are unpacked into a folder under numbers.
pub(crate) struct SevenZip {
    folder: Scratch,
    names: Vec<String>,
}

impl SevenZip {
    /// Unpacks it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let folder = Scratch::new(None).map_err(Error::io(path))?;
        let mut names = Vec::new();
        let file = BufReader::new(File::open(path).map_err(Error::io(path))?);
        let mut reader = etwhy_input::seven_zip::open(file).map_err(|e| unusable(path, e))?;
        let mut left = UNPACKED_MAX;
        reader
            .for_each_entries(|entry, data| {
                let name = entry.name().replace('\\', "/");
                if entry.is_directory() || wanted(&name).is_none() || names.len() >= FILES_MAX {
                    // The stream has to be read to get behind it.
                    left = left.saturating_sub(std::io::copy(&mut data.take(left), &mut std::io::sink())?);
                    return Ok(left > 0);
                }
                let mut file = File::create(folder.path().join(names.len().to_string()))?;
                left = left.saturating_sub(std::io::copy(&mut data.take(left.min(WHOLE_MAX)), &mut file)?);
                names.push(name);
                Ok(left > 0)
            })
            .map_err(|e| unusable(path, e))?;
        if left == 0 {
            return Err(unusable(path, format!("unpacks to more than {UNPACKED_MAX} bytes")));
        }
        Ok(Self { folder, names })
    }
}

impl Source for SevenZip {
    fn entries(&mut self) -> Vec<Entry> {
        self.names.iter().enumerate().map(|(index, path)| Entry { path: path.clone(), index }).collect()
    }

    fn bytes(&mut self, entry: &Entry) -> Result<Vec<u8>, Error> {
        let path = self.folder.path().join(entry.index.to_string());
        std::fs::read(&path).map_err(Error::io(path))
    }
}
