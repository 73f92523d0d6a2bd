//! A log file: its header, and where its chunks are.

use super::handle::Handle;
use super::{Damage, anomalies};
use crate::abi::{chunk, file};
use crate::error::EvtxError;
use etwhy_base::Bytes as _;
use etwhy_os::Mapped;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open log.
#[derive(Clone, Debug)]
pub struct LogFile {
    file: Arc<Handle>,
    /// Path as it is shown.
    pub path: PathBuf,
    /// Size of the file when it was opened.
    pub size: u64,
    /// Major and minor version of the format.
    pub version: (u16, u16),
    /// Flags of the header.
    pub flags: u32,
    /// Chunks that the header counts.
    pub header_chunks: u16,
    /// Number that the header keeps for the next record.
    pub next_record: u64,
    /// Chunks with the magic of one, in order of the file.
    pub chunks: Vec<ChunkPlace>,
    /// Where the next chunk would begin.
    pub end: u64,
    /// What was wrong so far.
    pub damage: Damage,
}

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkPlace {
    /// Its offset in the file.
    pub offset: u64,
    /// Bytes that the file has of it: 65,536 unless it is cut.
    pub len: usize,
    /// Number of its first record; `u64::MAX` if it has none.
    pub first_record: u64,
    /// Number of its last record.
    pub last_record: u64,
}

impl LogFile {
    /// Opens a log and finds its chunks, also those of a damaged one.
    ///
    /// # Errors
    /// If the file cannot be read, has neither a header nor chunks, or is of a newer format.
    pub fn open(path: &Path, shown: &Path) -> Result<LogFile, EvtxError> {
        let io = |source| EvtxError::Io { file: shown.to_path_buf(), offset: 0, source };
        let file = Handle::open(path).map_err(io)?;
        let size = file.look(File::metadata).map_err(io)?.len();
        let mut log = LogFile {
            file: Arc::new(file),
            path: shown.to_path_buf(),
            size,
            version: (0, 0),
            flags: 0,
            header_chunks: 0,
            next_record: 0,
            chunks: Vec::new(),
            end: 0,
            damage: Damage::default(),
        };
        let begin = log.header()?;
        log.find(begin)?;
        if begin == 0 && log.chunks.is_empty() {
            let mut head = [0u8; 8];
            let had = log.read_at(0, &mut head)?;
            let bytes: Vec<String> = head.iter().take(had).map(|b| format!("{b:02x}")).collect();
            let had = if had == 0 { "nothing".to_owned() } else { bytes.join(" ") };
            return Err(EvtxError::NotALog { file: log.path, needed: "`ElfFile`", had });
        }
        log.compare();
        if let Some(file) = Arc::get_mut(&mut log.file) {
            file.settle();
        }
        Ok(log)
    }

    /// True if these bytes begin a log.
    pub fn is_log(head: &[u8]) -> bool {
        head.starts_with(file::MAGIC) || head.starts_with(chunk::MAGIC)
    }

    /// Reads the header; gives where the first chunk should be.
    fn header(&mut self) -> Result<u64, EvtxError> {
        let mut head = [0u8; file::SIZE];
        let had = self.read_at(0, &mut head)?;
        if had < file::SIZE || !head.starts_with(file::MAGIC) {
            if had > 0 {
                self.damage.note(&anomalies::NO_HEADER, 1, || "at offset 0".to_owned());
            }
            return Ok(0);
        }
        self.version =
            (head.u16_at(file::MAJOR_VERSION).unwrap_or(0), head.u16_at(file::MINOR_VERSION).unwrap_or(0));
        self.flags = head.u32_at(file::FLAGS).unwrap_or(0);
        self.header_chunks = head.u16_at(file::CHUNKS).unwrap_or(0);
        self.next_record = head.u64_at(file::NEXT_RECORD).unwrap_or(0);
        let sound =
            crc32fast::hash(head.get(..120).unwrap_or(&[])) == head.u32_at(file::CHECKSUM).unwrap_or(0);
        if !sound && self.flags & file::FLAG_NO_CRC32 == 0 {
            self.damage.note(&anomalies::HEADER_CHECKSUM, 1, || "at offset 124".to_owned());
        }
        let (major, minor) = self.version;
        if sound && major > 3 {
            return Err(EvtxError::Newer { file: self.path.clone(), major, minor });
        }
        if self.flags & file::FLAG_DIRTY != 0 {
            self.damage.note(&anomalies::DIRTY, 1, || "flags of the header".to_owned());
        }
        let block = u64::from(head.u16_at(file::HEADER_BLOCK_SIZE).unwrap_or(0));
        Ok(if sound && block >= file::SIZE as u64 { block } else { file::USUAL_BLOCK })
    }

    /// Finds chunks from here on, and takes note of what is no chunk.
    fn find(&mut self, begin: u64) -> Result<(), EvtxError> {
        let mut at = begin;
        let mut head = [0u8; 40];
        while at < self.size {
            let had = self.read_at(at, &mut head)?;
            if head.get(..had).is_some_and(|head| head.starts_with(chunk::MAGIC)) {
                let len = (self.size - at).min(chunk::SIZE as u64) as usize;
                let first_record = head.u64_at(chunk::FIRST_RECORD).unwrap_or(u64::MAX);
                let last_record = head.u64_at(chunk::LAST_RECORD).unwrap_or(u64::MAX);
                self.chunks.push(ChunkPlace { offset: at, len, first_record, last_record });
                at = at.saturating_add(chunk::SIZE as u64);
                continue;
            }
            at = self.search(at)?;
        }
        self.end = at;
        Ok(())
    }

    /// Looks for the next chunk behind something that is none.
    fn search(&mut self, from: u64) -> Result<u64, EvtxError> {
        let mut block = vec![0u8; chunk::SIZE + 7];
        let mut at = from;
        let mut junk = false;
        while at < self.size {
            let had = self.read_at(at, &mut block)?;
            let block = block.get(..had).unwrap_or(&[]);
            let found = find_bytes(block, chunk::MAGIC);
            let skipped = block.get(..found.unwrap_or(had).min(chunk::SIZE)).unwrap_or(&[]);
            junk |= skipped.iter().any(|byte| *byte != 0);
            match found {
                // A regular place is taken up by the caller.
                Some(n) => {
                    at = at.saturating_add(n as u64);
                    break;
                }
                None => at = at.saturating_add(chunk::SIZE as u64),
            }
        }
        if junk {
            let whole = self.size.saturating_sub(from) >= chunk::SIZE as u64;
            let kind = if whole { &anomalies::CHUNK_MAGIC } else { &anomalies::TRAILING_BYTES };
            self.damage.note(kind, 1, || format!("at offset {from}"));
        }
        Ok(at.min(self.size))
    }

    /// Compares header and chunks.
    fn compare(&mut self) {
        let used = self.chunks.iter().filter(|c| c.has_records()).count();
        let counted = usize::from(self.header_chunks);
        if self.version.0 != 0 && used != counted && self.chunks.len() != counted {
            let found = self.chunks.len();
            self.damage
                .note(&anomalies::CHUNK_COUNT, 1, || format!("{counted} in the header, {found} in the file"));
        }
    }

    /// Reads bytes at an offset; gives how many there were.
    ///
    /// # Errors
    /// The system's.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, EvtxError> {
        let mut had = 0;
        while let Some(rest) = into.get_mut(had..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(had as u64);
            match self.file.look(|file| read_some(file, at, rest)) {
                Ok(0) => break,
                Ok(n) => had += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(EvtxError::Io { file: self.path.clone(), offset: at, source }),
            }
        }
        Ok(had)
    }

    /// Chunks that follow each other in the file, mapped at once; `None` if they do not, or the file is cut there.
    pub fn window(&self, places: &[ChunkPlace]) -> Option<(u64, Mapped)> {
        let (first, last) = (places.first()?, places.last()?);
        let len = last.offset.checked_sub(first.offset)?.checked_add(chunk::SIZE as u64)?;
        let follow =
            len == (places.len() * chunk::SIZE) as u64 && places.iter().all(|p| p.len == chunk::SIZE);
        if !follow {
            return None;
        }
        let len = usize::try_from(len).ok()?;
        let map = self.file.look(|file| Mapped::window(file, first.offset, len)).ok()?;
        Some((first.offset, map))
    }

    /// Counts it if the file has become shorter since it was opened, or a map of it was not `whole`.
    pub(crate) fn judge_end(&self, whole: bool, damage: &mut Damage) {
        let whole = whole && self.file.look(File::metadata).is_ok_and(|now| now.len() >= self.size);
        damage.note(&anomalies::SHRANK, u64::from(!whole), || self.path.display().to_string());
    }

    /// Places of chunks with the oldest records first: a log that wraps begins in the middle of its file.
    pub fn in_order(&self) -> Vec<ChunkPlace> {
        let mut chunks = self.chunks.clone();
        // Numbers of records only order chunks of one log; a file that was put together from several keeps its order.
        let used: Vec<&ChunkPlace> = chunks.iter().filter(|c| c.has_records()).collect();
        let steps_back =
            used.windows(2).filter(|w| matches!(w, [a, b] if b.first_record < a.first_record)).count();
        if steps_back == 1 {
            chunks.sort_by_key(|c| if c.has_records() { c.first_record } else { u64::MAX });
        }
        chunks
    }
}

impl ChunkPlace {
    /// False for a chunk that its header calls empty.
    pub const fn has_records(&self) -> bool {
        self.first_record != u64::MAX
    }
}

#[cfg(unix)]
fn read_some(file: &File, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(windows)]
fn read_some(file: &File, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

/// Where `needle` is.
pub(super) fn find_bytes(hay: &[u8], needle: &[u8; 8]) -> Option<usize> {
    // The first byte is rare enough in logs, which are UTF-16.
    let mut at = 0;
    while let Some(n) = hay.get(at..)?.iter().position(|byte| *byte == needle[0]) {
        at += n;
        if hay.get(at..at + 8) == Some(needle) {
            return Some(at);
        }
        at += 1;
    }
    None
}
