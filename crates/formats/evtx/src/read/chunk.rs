//! A chunk and its records.

use super::file::{ChunkPlace, LogFile};
use super::{Damage, anomalies};
use crate::abi::{chunk, record};
use crate::error::EvtxError;
use etwhy_base::Bytes as _;
use etwhy_base::units::thousands;

/// A chunk in memory.
pub struct Chunk<'d> {
    data: &'d [u8],
    /// Bytes that the file has of it.
    len: usize,
    /// Offset in the file.
    pub offset: u64,
    /// Where live records end.
    free_space: usize,
    /// Numbers of its first and last record, if its header is sound.
    numbers: Option<(u64, u64)>,
    /// Its checksums are wrong, or it is cut.
    pub damaged: bool,
}

/// A record: where it stands in its chunk.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef {
    /// Offset in the chunk.
    pub at: usize,
    /// Size with header and trailer.
    pub size: usize,
    /// Number in its header. In an exported log it is not that of the event.
    pub id: u64,
    /// When it was written: FILETIME.
    pub time: u64,
}

impl RecordRef {
    /// Where its binary XML stands.
    pub const fn xml(&self) -> (usize, usize) {
        (self.at + record::HEADER, self.at + self.size - record::TRAILER)
    }
}

impl<'d> Chunk<'d> {
    /// Reads a chunk into a buffer and checks it; what is wrong is counted.
    ///
    /// # Errors
    /// The system's.
    pub fn read(
        log: &LogFile,
        place: &ChunkPlace,
        buffer: &'d mut Vec<u8>,
        damage: &mut Damage,
    ) -> Result<Chunk<'d>, EvtxError> {
        buffer.resize(chunk::SIZE, 0);
        let len = log.read_at(place.offset, buffer)?;
        // What the file does not have is 0.
        buffer.get_mut(len..).unwrap_or(&mut []).fill(0);
        Ok(Chunk::parse(buffer, len, place.offset, damage))
    }

    /// The chunk in these bytes, of which the file has the first `len`; what is wrong is counted.
    pub fn parse(data: &'d [u8], len: usize, offset: u64, damage: &mut Damage) -> Chunk<'d> {
        let mut chunk = Chunk { data, len, offset, free_space: 0, numbers: None, damaged: false };
        chunk.check(damage);
        chunk
    }

    fn check(&mut self, damage: &mut Damage) {
        let at = self.offset;
        let data = self.data;
        let get = |at| data.u32_at(at).unwrap_or(0);
        let free_space = get(chunk::FREE_SPACE) as usize;
        let is_sound = (chunk::HEADER..=chunk::SIZE).contains(&free_space);
        self.free_space = if is_sound { free_space } else { chunk::SIZE };
        // What the file does not have no checksum can confirm: that it is cut says all.
        let is_cut = self.len < self.free_space;
        self.damaged = !is_sound || is_cut;
        let number = |at| data.u64_at(at).unwrap_or(u64::MAX);
        self.numbers = Some((number(chunk::FIRST_RECORD), number(chunk::LAST_RECORD)));
        let head = [data.get(..120), data.get(128..chunk::HEADER)];
        if get(chunk::FLAGS) & chunk::FLAG_NO_CRC32 == 0 {
            let mut hasher = crc32fast::Hasher::new();
            head.into_iter().flatten().for_each(|part| hasher.update(part));
            if hasher.finalize() != get(chunk::CHECKSUM) {
                self.damaged = true;
                self.numbers = None;
                if !is_cut || self.len >= chunk::HEADER {
                    damage.note(&anomalies::CHUNK_HEADER_CHECKSUM, 1, || format!("chunk at offset {at}"));
                }
            }
            // Before the records are looked at: reading them in order brings them into the cache.
            let records = data.get(chunk::HEADER..free_space).unwrap_or(&[]);
            if crc32fast::hash(records) != get(chunk::RECORDS_CHECKSUM) {
                self.damaged = true;
                if !is_cut {
                    damage.note(&anomalies::CHUNK_CHECKSUM, 1, || format!("chunk at offset {at}"));
                }
            }
        }
        if is_cut {
            let len = self.len;
            damage.note(&anomalies::CUT, 1, || {
                let (len, size) = (thousands(len as i128), thousands(chunk::SIZE as i128));
                format!("chunk at offset {at}: {len} of {size} bytes")
            });
        }
    }

    /// All of its bytes; those that the file does not have are 0.
    pub const fn data(&self) -> &'d [u8] {
        self.data
    }

    /// Its live records. What is no record is counted.
    pub fn records<'c>(&'c self, damage: &'c mut Damage) -> Records<'c>
    where
        'd: 'c,
    {
        let end = self.free_space.min(self.len.max(chunk::HEADER));
        Records {
            data: self.data,
            at: chunk::HEADER,
            end,
            offset: self.offset,
            numbers: self.numbers,
            ahead: record_at(self.data, chunk::HEADER, end),
            damage,
        }
    }
}

/// Records of a chunk, in order.
pub struct Records<'c> {
    data: &'c [u8],
    at: usize,
    end: usize,
    offset: u64,
    numbers: Option<(u64, u64)>,
    /// The record at `at`. It is looked at while the one before is read, so that nobody waits for its header.
    ahead: Option<RecordRef>,
    damage: &'c mut Damage,
}

/// Size, number and time of the record at `at`, if there is one.
#[inline]
fn record_at(data: &[u8], at: usize, end: usize) -> Option<RecordRef> {
    let header: [u8; record::HEADER] = data.array(at)?;
    let size = header.u32_at(4)? as usize;
    let whole = size >= record::HEADER + record::TRAILER && at.checked_add(size)? <= end;
    if !header.starts_with(record::MAGIC) || !whole {
        return None;
    }
    let (id, time) = (header.u64_at(record::ID)?, header.u64_at(record::TIME)?);
    Some(RecordRef { at, size, id, time })
}

impl Iterator for Records<'_> {
    type Item = RecordRef;

    #[inline]
    fn next(&mut self) -> Option<RecordRef> {
        if let Some(found) = self.ahead {
            self.at += found.size;
            self.ahead = record_at(self.data, self.at, self.end);
            return Some(found);
        }
        if self.at >= self.end {
            return None;
        }
        self.next_behind_damage()
    }
}

impl Records<'_> {
    #[cold]
    fn next_behind_damage(&mut self) -> Option<RecordRef> {
        let from = self.at;
        // Records begin at multiples of 8. Behind damage one must also end with a copy of its size, and be one of those that the
        // chunk's header names: others are left from what the place held before.
        let mut at = from.next_multiple_of(8);
        let mut foreign = 0;
        let found = loop {
            if at >= self.end {
                break None;
            }
            if let Some(record) = record_at(self.data, at, self.end)
                && self.data.u32_at(at + record.size - record::TRAILER) == Some(record.size as u32)
            {
                if self.numbers.is_none_or(|(first, last)| (first..=last).contains(&record.id)) {
                    break Some(record);
                }
                foreign += 1;
                at += record.size.next_multiple_of(8);
                continue;
            }
            at += 8;
        };
        let place = self.offset.saturating_add(from as u64);
        self.damage.note(&anomalies::FOREIGN, foreign, || format!("behind offset {place}"));
        let to = found.map_or(self.end, |record| record.at);
        // A chunk without records, or one that was cut, ends in zeros.
        let junk = self.data.get(from..to).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0));
        if junk {
            self.damage
                .note(&anomalies::RECORD_MAGIC, 1, || format!("{} bytes at offset {place}", to - from));
        }
        self.at = found.map_or(self.end, |record| record.at + record.size);
        self.ahead = record_at(self.data, self.at, self.end);
        found
    }
}
