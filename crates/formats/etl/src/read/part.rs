//! A stretch of a trace as a trace of its own: buffers are copied whole, so that nothing in it was made by this program.

use super::file::EtlFile;
use super::index::BufferEntry;
use super::sample::record;
use super::tokens::Tokenizer;
use crate::abi::buffer::{LEN, TYPE_HEADER};
use crate::abi::header::SYSTEM_LEN;
use crate::abi::logfile::BUFFERS_WRITTEN;
use crate::{Ledger, Record};
use etwhy_base::Guid;
use std::io::{self, Write};

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartWritten {
    /// Buffers that hold records of the stretch.
    pub inside: u64,
    /// Buffers outside of it that say who is who: headers, processes, threads, images, names.
    pub state: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl EtlFile {
    /// Writes the buffers with records from `from_ticks` to `to_ticks` (both included), and those elsewhere without which these would have no
    /// names, as they stand on disk. The trace therefore begins up to one buffer earlier and ends up to one later, and holds other
    /// records of the buffers that say who is who; numbers of buffers that are left out are missing in it.
    ///
    /// # Errors
    /// If the file cannot be read any more, and those of `out`.
    pub fn write_part(&self, from_ticks: i64, to_ticks: i64, out: &mut dyn Write) -> io::Result<PartWritten> {
        let mut scratch = Scratch::default();
        let mut done = PartWritten::default();
        let mut kept: Vec<&BufferEntry> = Vec::new();
        for (number, entry) in self.buffers().iter().enumerate() {
            let starts = entry.first_ticks.is_some_and(|first| first <= to_ticks);
            if starts && self.last_of(entry) >= from_ticks {
                done.inside += 1;
            } else if number == 0 || entry.kind == TYPE_HEADER || self.holds_state(entry, &mut scratch) {
                done.state += 1;
            } else {
                continue;
            }
            kept.push(entry);
        }
        let count = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        for (number, entry) in kept.into_iter().enumerate() {
            let bytes = self.raw_bytes(entry.offset, entry.size as usize, &mut scratch.packed);
            let bytes = bytes.ok_or_else(|| io::Error::other("a buffer cannot be read any more"))?;
            if number == 0 {
                // A session that still runs has not counted its buffers yet; this file has so many.
                const COUNT: usize = LEN + SYSTEM_LEN + BUFFERS_WRITTEN;
                let mut first = bytes.to_vec();
                if let Some(field) = first.get_mut(COUNT..COUNT + 4) {
                    field.copy_from_slice(&count.to_le_bytes());
                }
                out.write_all(&first)?;
            } else {
                out.write_all(bytes)?;
            }
            done.bytes += bytes.len() as u64;
        }
        Ok(done)
    }

    /// Writes the file as it stands; gives its bytes.
    ///
    /// # Errors
    /// If it cannot be read any more, and those of `out`.
    pub fn copy_to(&self, out: &mut dyn Write) -> io::Result<u64> {
        const PIECE: u64 = 1 << 20;
        let mut scratch = Vec::new();
        let mut at = 0;
        while at < self.len() {
            let piece = usize::try_from((self.len() - at).min(PIECE)).unwrap_or(0);
            let bytes = self.raw_bytes(at, piece, &mut scratch);
            let bytes = bytes.filter(|bytes| bytes.len() == piece);
            out.write_all(bytes.ok_or_else(|| io::Error::other("the trace cannot be read any more"))?)?;
            at += piece as u64;
        }
        Ok(at)
    }

    /// Whether a buffer holds records that say who is who.
    fn holds_state(&self, entry: &BufferEntry, scratch: &mut Scratch) -> bool {
        scratch.tokens.clear();
        let bytes = match self.mapped_buffer(entry) {
            Some(bytes) => bytes,
            None => {
                self.load_buffer(entry, &mut scratch.owned, &mut scratch.packed, &mut Ledger::new());
                scratch.owned.as_slice()
            }
        };
        Tokenizer::new(LEN).block(bytes, usize::MAX, &mut scratch.tokens);
        scratch.tokens.iter().any(|token| {
            let (at, len) = (token.at as usize, usize::from(token.len));
            let bytes = bytes.get(at..at.saturating_add(len));
            bytes.is_some_and(|bytes| is_state(&record(entry, bytes, token.kind, token.key)))
        })
    }
}

#[derive(Default)]
struct Scratch {
    owned: Vec<u8>,
    packed: Vec<u8>,
    tokens: Vec<super::tokens::Token>,
}

/// Groups and types of the kernel's records that name things, as in `ntwmi.h`: the header's group, processes, threads (not their switches),
/// images, configuration, rundowns of files, of registry keys and of stacks.
const KERNEL: [(u8, &[u8]); 8] = [
    (0x00, &[0, 5, 8, 32, 64, 66, 67, 80, 82]),
    (0x03, &[1, 2, 3, 4, 10, 39]),
    (0x04, &[0, 36]),
    (0x05, &[1, 2, 3, 4, 72]),
    (0x09, &[24, 25, 26]),
    (0x0B, &[]),
    (0x14, &[2, 3, 4, 10, 33, 34]),
    (0x18, &[34, 35, 36]),
];

/// Providers whose records name things: KernelTraceControl's image ids, schemas that merging adds, rundowns of .NET, and the kernel's
/// own names for classic records.
const PROVIDERS: [Guid; 4] = [
    Guid::from_text("b3e675d7-2554-4f18-830b-2762732560de"),
    Guid::from_text("bbccf6c1-6cd1-48c4-80ff-839482e37671"),
    Guid::from_text("a669021c-c450-4609-a035-5af59af4df18"),
    Guid::from_text("68fdd900-4a3e-11d1-84f4-0000f80464e3"),
];
/// Id of the record in which a provider ships its manifest, and its opcode.
const MANIFEST: u16 = 0xFFFE;

fn is_state(record: &Record<'_>) -> bool {
    if record.kind.is_system() {
        let types = KERNEL.iter().find(|(group, _)| *group == record.group()).map(|(_, types)| *types);
        return types.is_some_and(|types| types.is_empty() || types.contains(&record.opcode()));
    }
    let manifest = record.kind.is_event() && record.id() == MANIFEST;
    manifest || record.guid().is_some_and(|guid| PROVIDERS.contains(&guid))
}
