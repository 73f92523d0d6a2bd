//! Which files have the same content.
//!
//! Files are told apart by their samples: reading them all would take as long as reading the traces. Who knows one file can make another
//! with its samples, so two are the same only if all of their bytes are. The process that reads a trace hashes it, and the ledger keeps that;
//! a file is hashed here only if another one has its samples.

use crate::inbox::{Found, text};
use etwhy_etl::read::{content_id, file_sha256, joint_trace_id};
use std::collections::HashMap;

/// Names of contents, each with the first file that has it.
#[derive(Debug, Default)]
pub struct Contents(HashMap<String, First>);

#[derive(Debug)]
struct First {
    found: Found,
    /// Its hash, once it is known.
    sha256: Option<String>,
}

/// What is known of the content of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Its name.
    pub id: String,
    /// SHA-256 of the file, if it had to be hashed.
    pub sha256: Option<String>,
}

impl Contents {
    /// A file has this content; the first one that says so is compared with others.
    pub fn learn(&mut self, found: &Found, id: &str, sha256: Option<&str>) {
        let first =
            self.0.entry(id.to_owned()).or_insert_with(|| First { found: found.clone(), sha256: None });
        if first.sha256.is_none() {
            first.sha256 = sha256.map(str::to_owned);
        }
    }

    /// The content of a file. One that has the samples of another and is not the same is named after its hash, too: the same in each run.
    pub fn of(&mut self, found: &Found) -> Content {
        // What cannot be read is told apart by its path; its process says why.
        let unread = || Content { id: joint_trace_id(&[text(&found.path), String::new()]), sha256: None };
        let Ok(samples) = content_id(&found.path) else { return unread() };
        let Some(first) = self.0.get_mut(&samples) else {
            self.learn(found, &samples, None);
            return Content { id: samples, sha256: None };
        };
        if first.found == *found {
            return Content { id: samples, sha256: first.sha256.clone() };
        }
        let Ok(own) = file_sha256(&found.path) else { return unread() };
        if first.sha256.is_none() && first.found.is_unchanged() {
            first.sha256 = file_sha256(&first.found.path).ok();
        }
        // The ledger once kept no hashes: what it knows of a file that is gone since cannot be compared, and is not read a second time.
        let is_same = first.sha256.as_ref().is_none_or(|sha256| *sha256 == own);
        let id = if is_same { samples } else { joint_trace_id(&[samples, own.clone()]) };
        Content { id, sha256: Some(own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::list;
    use std::fs;

    /// Files of the same samples: only the first bytes behind the first block differ.
    fn inbox() -> (tempfile::TempDir, Vec<Found>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, byte) in [("a.etl", 1u8), ("b.etl", 1), ("c.etl", 2), ("d.etl", 2)] {
            let mut bytes = vec![0u8; 1 << 20];
            bytes[5000] = byte;
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let files = list(&[folder.path().to_path_buf()]).unwrap().files;
        let samples: Vec<String> = files.iter().map(|file| content_id(&file.path).unwrap()).collect();
        assert!(samples.iter().all(|one| *one == samples[0]), "{samples:?}");
        (folder, files)
    }

    #[test]
    fn a_twin_with_the_same_samples_is_another_content() {
        let (_folder, files) = inbox();
        let mut contents = Contents::default();
        let ids: Vec<String> = files.iter().map(|file| contents.of(file).id).collect();
        assert_eq!((&ids[0], &ids[2]), (&ids[1], &ids[3]));
        assert_ne!(ids[0], ids[2]);
        assert_eq!(contents.of(&files[2]).id, ids[2], "whenever it is asked");
        assert_eq!(contents.of(&files[0]).id, ids[0]);
    }

    #[test]
    fn what_the_ledger_knows_is_compared_when_the_file_is_gone() {
        let (folder, files) = inbox();
        let samples = content_id(&files[0].path).unwrap();
        let sha256 = file_sha256(&files[0].path).unwrap();
        fs::remove_file(folder.path().join("a.etl")).unwrap();
        let mut contents = Contents::default();
        contents.learn(&files[0], &samples, Some(&sha256));
        assert_eq!(contents.of(&files[1]), Content { id: samples.clone(), sha256: Some(sha256) });
        assert_ne!(contents.of(&files[2]).id, samples);
        let mut old = Contents::default();
        old.learn(&files[0], &samples, None);
        assert_eq!(old.of(&files[1]).id, samples, "of before hashes were kept");
    }
}
