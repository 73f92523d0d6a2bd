//! What tests of this crate share.

use etwhy_evtx::binxml::{Decoder, Event, Fault};
use etwhy_evtx::read::{Chunk, Damage, LogFile, RecordRef};
use std::path::{Path, PathBuf};

/// The logs of the corpus, or none after saying why there are none.
pub fn logs() -> Vec<PathBuf> {
    let Some(folder) = etwhy_testkit::corpus_file("evtx") else { return Vec::new() };
    let found = etwhy_testkit::files(&folder, "evtx");
    assert!(found.len() >= 90, "only {} logs in the corpus", found.len());
    found
}

/// (file below `evtx`, live records) of `INDEX.md`: counted by an independent walk.
pub fn counted() -> Vec<(String, u64)> {
    let Some(dir) = logs().first().and_then(|f| f.parent()?.parent().map(Path::to_path_buf)) else {
        return Vec::new();
    };
    let text = std::fs::read_to_string(dir.join("INDEX.md")).unwrap();
    let rows = text.lines().filter(|l| l.starts_with("| ") && l.contains(".evtx"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[1].to_owned(), cells[3].parse().unwrap())
    })
    .collect()
}

/// Reads all records of a log in order of the file.
pub fn each(path: &Path, mut f: impl FnMut(&mut Decoder, &RecordRef, Result<Event<'_>, Fault>)) -> Damage {
    let log = LogFile::open(path, path).unwrap();
    let mut damage = log.damage.clone();
    let (mut buffer, mut decoder) = (Vec::new(), Decoder::default());
    for place in &log.chunks {
        let mut walked = Damage::default();
        let chunk = Chunk::read(&log, place, &mut buffer, &mut damage).unwrap();
        decoder.next_chunk();
        let records: Vec<RecordRef> = chunk.records(&mut walked).collect();
        for record in records {
            let (from, to) = record.xml();
            let event = decoder.event(chunk.data(), from, to);
            f(&mut decoder, &record, event);
        }
        damage.merge(&walked);
    }
    damage
}
