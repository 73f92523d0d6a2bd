//! A look at a file without reading it all: records of some of its buffers, and what tells its content from others'.

use super::file::EtlFile;
use super::index::BufferEntry;
use super::tokens::{Tokenizer, ticks_of};
use crate::abi::buffer::LEN;
use crate::{Ledger, Record};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of a block that [`EtlFile::trace_id`] reads.
const BLOCK: u64 = 4096;
/// Blocks between the first and the last one.
const BLOCKS: u64 = 30;
/// Bytes that [`EtlFile::sha256`] reads at a time.
const PIECE: u64 = 1 << 20;
/// Characters of a trace id: 128 bits.
const ID_DIGITS: usize = 32;

impl EtlFile {
    /// Name of the content, for links and stores: 32 hexadecimal digits made from the length of the file, its first bytes (which
    /// hold the session's header) and blocks spread over all of it. Equal files have equal ids whatever they are called and however they
    /// were packed; it costs some hundred kilobytes of reading. Two files that differ between the blocks have the same:
    /// [`EtlFile::sha256`] knows them apart.
    pub fn trace_id(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.len().to_le_bytes());
        let mut scratch = Vec::new();
        for offset in block_offsets(self.len()) {
            self.hash_bytes(offset, BLOCK, &mut hash, &mut scratch);
        }
        shortened(&hash)
    }

    /// The SHA-256 of the whole file, as other programs print it. Reads everything.
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        let mut scratch = Vec::new();
        let mut offset = 0;
        while offset < self.len() {
            self.hash_bytes(offset, PIECE, &mut hash, &mut scratch);
            offset = offset.saturating_add(PIECE);
        }
        hex(&hash.finalize())
    }

    fn hash_bytes(&self, offset: u64, len: u64, hash: &mut Sha256, scratch: &mut Vec<u8>) {
        let len = usize::try_from(len.min(self.len().saturating_sub(offset))).unwrap_or(0);
        // What cannot be read is counted where its records are read.
        if let Some(bytes) = self.raw_bytes(offset, len, scratch) {
            hash.update(bytes);
        }
    }

    /// Pushes the records of the first and last `ends` buffers and of up to `between` buffers spread over the rest, in the order
    /// of the file.
    pub fn sample(&self, ends: usize, between: usize, mut each: impl FnMut(&Record<'_>)) {
        let all = self.buffers().len();
        let middle = all.saturating_sub(ends.saturating_mul(2));
        let step = (middle / between.max(1)).max(1);
        let (mut owned, mut packed, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for (n, entry) in self.buffers().iter().enumerate() {
            let at_an_end = n < ends || n >= all.saturating_sub(ends);
            if !at_an_end && (between == 0 || n.saturating_sub(ends) % step != 0) {
                continue;
            }
            tokens.clear();
            let bytes = match self.mapped_buffer(entry) {
                Some(bytes) => bytes,
                None => {
                    self.load_buffer(entry, &mut owned, &mut packed, &mut Ledger::new());
                    owned.as_slice()
                }
            };
            Tokenizer::new(LEN).block(bytes, usize::MAX, &mut tokens);
            for token in &tokens {
                let (at, len) = (token.at as usize, usize::from(token.len));
                let Some(bytes) = bytes.get(at..at.saturating_add(len)) else { break };
                each(&record(entry, bytes, token.kind, token.key));
            }
        }
    }
}

/// Where the blocks of a file of this length begin that name its content.
fn block_offsets(len: u64) -> impl Iterator<Item = u64> {
    let last = len.saturating_sub(BLOCK);
    (0..=BLOCKS.saturating_add(1)).map(move |n| {
        let offset = u128::from(last).saturating_mul(u128::from(n)) / u128::from(BLOCKS + 1);
        u64::try_from(offset).unwrap_or(last)
    })
}

fn shortened(hash: &Sha256) -> String {
    let mut id = hex(&hash.clone().finalize());
    id.truncate(ID_DIGITS);
    id
}

/// Name of the content of any file: of a trace its [`EtlFile::trace_id`], without opening it as one.
///
/// # Errors
/// If the file cannot be read.
pub fn content_id(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut hash = Sha256::new();
    hash.update(len.to_le_bytes());
    let mut block = Vec::new();
    for offset in block_offsets(len) {
        block.clear();
        file.seek(SeekFrom::Start(offset))?;
        Read::by_ref(&mut file).take(BLOCK).read_to_end(&mut block)?;
        hash.update(&block);
    }
    Ok(shortened(&hash))
}

/// The SHA-256 of any file, as other programs print it.
///
/// # Errors
/// If the file cannot be read.
pub fn file_sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut left = file.metadata()?.len();
    let mut hash = Sha256::new();
    let mut piece = Vec::new();
    // What is written meanwhile is another content.
    while left > 0 {
        piece.clear();
        let read = Read::by_ref(&mut file).take(left.min(PIECE)).read_to_end(&mut piece)?;
        if read == 0 {
            break;
        }
        hash.update(&piece);
        left = left.saturating_sub(read as u64);
    }
    Ok(hex(&hash.finalize()))
}

pub(super) fn record<'a>(
    entry: &BufferEntry,
    bytes: &'a [u8],
    kind: crate::HeaderKind,
    key: i64,
) -> Record<'a> {
    let ticks = ticks_of(bytes, kind, key);
    Record { bytes, kind, ticks, cpu: entry.cpu, logger_id: entry.logger_id, file: 0 }
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The id of several files that are read as one: the same in whatever order they are named.
pub fn joint_trace_id(ids: &[String]) -> String {
    if let [one] = ids {
        return one.clone();
    }
    let mut sorted: Vec<&str> = ids.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let mut id = hex(&Sha256::digest(sorted.join("\n").as_bytes()));
    id.truncate(ID_DIGITS);
    id
}

/// A short name for facts that are told apart by their text: 16 hexadecimal digits.
pub fn short_id(text: &str) -> String {
    let mut id = hex(&Sha256::digest(text.as_bytes()));
    id.truncate(16);
    id
}
