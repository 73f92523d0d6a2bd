//! Large event logs for the benchmark, put together from the corpus.

use etwhy_evtx::binxml::Decoder;
use etwhy_evtx::read::{Chunk, Damage, RecordRef};
use std::path::Path;

/// Chunks with less in them are left out: they say little about large logs.
const LEAST_USED: usize = 40_000;
const CHUNK: usize = 65_536;

/// Writes a log of about so many bytes from full, sound chunks of the corpus: of those that have `provider` (UTF-16 text anywhere in
/// them), or of all. Records are numbered from 1, and each round of the chunks begins when the one before ended. Repeats are
/// kind to caches.
pub fn written(corpus: &Path, to: &Path, bytes: usize, provider: Option<&str>) -> anyhow::Result<()> {
    let wanted: Option<Vec<u8>> =
        provider.map(|text| text.encode_utf16().flat_map(u16::to_le_bytes).collect());
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut files = Vec::new();
    for folder in std::fs::read_dir(corpus.join("evtx"))? {
        let folder = folder?.path();
        if folder.is_dir() {
            for file in std::fs::read_dir(folder)? {
                files.push(file?.path());
            }
        }
    }
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "evtx")) {
        let data = std::fs::read(file)?;
        for chunk in data.get(4096..).unwrap_or(&[]).chunks_exact(CHUNK) {
            let used = number(chunk, 48) as usize;
            let sound = chunk.starts_with(b"ElfChnk\0")
                && (LEAST_USED..=CHUNK).contains(&used)
                && crc32fast::hash(chunk.get(512..used).unwrap_or(&[])) == number(chunk, 52);
            let has = |name: &Vec<u8>| chunk.windows(name.len()).any(|window| window == name);
            if sound && wanted.as_ref().is_none_or(has) {
                chunks.push(chunk.to_vec());
            }
        }
    }
    anyhow::ensure!(!chunks.is_empty(), "no logs in {}", corpus.display());
    let count = bytes / CHUNK;
    let mut out = vec![0u8; 4096];
    put(&mut out, 0, b"ElfFile\0");
    put(&mut out, 16, &(count as u64 - 1).to_le_bytes());
    put(&mut out, 32, &128u32.to_le_bytes());
    put(&mut out, 36, &1u16.to_le_bytes());
    put(&mut out, 38, &3u16.to_le_bytes());
    put(&mut out, 40, &4096u16.to_le_bytes());
    put(&mut out, 42, &(count as u16).to_le_bytes());
    let mut next = Next { id: 1, time: 132_223_104_000_000_000 };
    let mut body = Vec::with_capacity(count * CHUNK);
    for chunk in chunks.iter().cycle().take(count) {
        body.extend_from_slice(&next.continued(chunk));
    }
    put(&mut out, 24, &next.id.to_le_bytes());
    let checksum = crc32fast::hash(out.get(..120).unwrap_or(&[]));
    put(&mut out, 124, &checksum.to_le_bytes());
    out.extend_from_slice(&body);
    std::fs::write(to, out)?;
    println!(
        "{}: {} records, written from {} chunks of the corpus, each {:.1} times",
        to.display(),
        next.id - 1,
        chunks.len(),
        count as f64 / chunks.len() as f64
    );
    Ok(())
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Number and time of the next record.
struct Next {
    id: u64,
    time: u64,
}

impl Next {
    /// The chunk with records that continue those before: as far apart as they were, if that is forwards and less than an hour.
    fn continued(&mut self, chunk: &[u8]) -> Vec<u8> {
        const HOUR: u64 = 36_000_000_000;
        let mut out = chunk.to_vec();
        let mut damage = Damage::default();
        let parsed = Chunk::parse(chunk, CHUNK, 0, &mut damage);
        let records: Vec<RecordRef> = parsed.records(&mut Damage::default()).collect();
        let mut decoder = Decoder::default();
        decoder.next_chunk();
        let (first, mut before) = (self.id, None);
        for record in &records {
            self.time += before.map_or(1, |before| record.time.checked_sub(before).unwrap_or(1).min(HOUR));
            before = Some(record.time);
            let (from, to) = record.xml();
            if let Ok(event) = decoder.event(chunk, from, to) {
                // Its own time stands among its values.
                let old = decoder.system(&event).time.map(u64::to_le_bytes);
                let place =
                    old.and_then(|old| chunk.get(from..to)?.windows(8).position(|window| window == old));
                if let Some(place) = place {
                    put(&mut out, from + place, &self.time.to_le_bytes());
                }
            }
            put(&mut out, record.at + 8, &self.id.to_le_bytes());
            put(&mut out, record.at + 16, &self.time.to_le_bytes());
            self.id += 1;
        }
        for (at, n) in [(8, first), (16, self.id - 1), (24, first), (32, self.id - 1)] {
            put(&mut out, at, &n.to_le_bytes());
        }
        let used = number(&out, 48) as usize;
        let records = crc32fast::hash(out.get(512..used).unwrap_or(&[]));
        put(&mut out, 52, &records.to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        [out.get(..120), out.get(128..512)].into_iter().flatten().for_each(|part| hasher.update(part));
        put(&mut out, 124, &hasher.finalize().to_le_bytes());
        out
    }
}
