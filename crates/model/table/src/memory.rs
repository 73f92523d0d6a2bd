//! The memory budget that the tables of one analysis share, and the files that take what exceeds it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow_buffer::Buffer;
use etwhy_os::Mapped;

use crate::column::{CHUNK_TEXT_BYTES, ColumnChunk};

/// Arrow recommends 64-byte alignment (its "Columnar Format", "Buffer Alignment and Padding"); maps
/// begin at a page, so an aligned offset in the file is an aligned address.
const ALIGNMENT: usize = 64;

/// How many bytes of new chunks pass between two looks at what the whole process holds: a look costs some 20 µs.
const LOOK_BYTES: u64 = 8 << 20;

/// A budget for all that an analysis holds: finished chunks of tables, and whatever else the process has in memory of its own
/// (trackers, texts, stacks, chunks that grow), which is measured, not counted. Cloning shares it.
///
/// When a builder closes a chunk and the sum is above the budget, that builder moves its chunks into an
/// unlinked temporary file and reads them through a map from then on. The operating system may drop
/// mapped pages at any time, so they are not counted.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    budget: Arc<Inner>,
    /// The tables that are read afterwards; all if nobody says.
    wanted: Option<Arc<BTreeSet<String>>>,
    /// Builders may have threads.
    threaded: bool,
}

#[derive(Debug)]
struct Inner {
    budget: u64,
    folder: PathBuf,
    /// What the process holds ([`etwhy_os::held_by_process`]), asked for by those who have a limit for all of it.
    of_process: Option<fn() -> Option<u64>>,
    /// What of that was no finished chunk at the last look.
    others: AtomicU64,
    /// Bytes of chunks since that look.
    unseen: AtomicU64,
    held: AtomicU64,
    peak: AtomicU64,
    spilled: AtomicU64,
    broken: AtomicBool,
    failure: Mutex<Option<io::Error>>,
}

impl Default for Inner {
    fn default() -> Self {
        Inner {
            budget: u64::MAX,
            folder: std::env::temp_dir(),
            of_process: None,
            others: AtomicU64::new(0),
            unseen: AtomicU64::new(LOOK_BYTES),
            held: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            spilled: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }
}

impl Memory {
    /// No budget: everything stays in memory.
    pub fn unlimited() -> Memory {
        Memory::default()
    }

    fn of(inner: Inner) -> Memory {
        Memory { budget: Arc::new(inner), ..Memory::default() }
    }

    /// The same budget for builders that may each have a thread, if there are `threads` for more than one. What they make does not depend on
    /// it.
    pub fn with_threads(&self, threads: usize) -> Memory {
        Memory { threaded: threads > 1, ..self.clone() }
    }

    /// Builders may have threads of their own.
    pub fn is_threaded(&self) -> bool {
        self.threaded
    }

    /// A budget in bytes; what exceeds it goes into files in `folder`, or in the system's folder for
    /// temporary files.
    pub fn with_budget(bytes: u64, folder: Option<PathBuf>) -> Memory {
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        Memory::of(Inner { budget: bytes, folder, ..Inner::default() })
    }

    /// A budget in bytes for the whole process. Where the system does not tell what a process holds, tables have half of it:
    /// trackers, texts and stacks need about as much as the tables of a trace that does not fit.
    pub fn of_process(bytes: u64, folder: Option<PathBuf>) -> Memory {
        let of_process = etwhy_os::held_by_process as fn() -> Option<u64>;
        let told = of_process().is_some();
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        // An eighth is for what grows between two looks.
        let budget = if told { bytes - bytes / 8 } else { bytes / 2 };
        let of_process = told.then_some(of_process);
        Memory::of(Inner { budget, folder, of_process, ..Inner::default() })
    }

    /// The same budget for builders of which only those of `tables` are read afterwards: others may leave out their
    /// rows ([`TableBuilder::if_wanted`](crate::TableBuilder::if_wanted)).
    pub fn wanting(&self, tables: BTreeSet<String>) -> Memory {
        Memory { wanted: Some(Arc::new(tables)), ..self.clone() }
    }

    /// The rows of `table` are read afterwards.
    pub(crate) fn wants(&self, table: &str) -> bool {
        self.wanted.as_ref().is_none_or(|tables| tables.contains(table))
    }

    /// The most bytes that finished chunks held at one time.
    pub fn peak(&self) -> u64 {
        self.budget.peak.load(Ordering::Relaxed)
    }

    /// Bytes that finished chunks hold in memory now.
    pub fn held(&self) -> u64 {
        self.budget.held.load(Ordering::Relaxed)
    }

    /// Bytes written to files.
    pub fn spilled(&self) -> u64 {
        self.budget.spilled.load(Ordering::Relaxed)
    }

    /// Why a file could not be written, if that happened. After that everything stays in memory.
    pub fn failure(&self) -> Option<String> {
        self.budget.failure.lock().ok()?.as_ref().map(|e| format!("{}: {e}", self.budget.folder.display()))
    }

    /// Bytes of long text at which a chunk ends: the chunk that grows is not counted, and while it grows it may be held twice.
    pub(crate) fn text_limit(&self) -> usize {
        usize::try_from(self.budget.budget / 16).unwrap_or(usize::MAX).clamp(1 << 20, CHUNK_TEXT_BYTES)
    }

    /// Counts `bytes` more; true if the caller should spill.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let held = self.budget.held.fetch_add(bytes as u64, Ordering::Relaxed).saturating_add(bytes as u64);
        self.budget.peak.fetch_max(held, Ordering::Relaxed);
        held.saturating_add(self.others(bytes as u64, held)) > self.budget.budget
            && !self.budget.broken.load(Ordering::Relaxed)
    }

    /// What the process holds beside finished chunks, which are now `held` and have grown by `bytes`.
    fn others(&self, bytes: u64, held: u64) -> u64 {
        let Some(of_process) = self.budget.of_process else { return 0 };
        if self.budget.unseen.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) >= LOOK_BYTES {
            self.budget.unseen.store(0, Ordering::Relaxed);
            self.budget.others.store(of_process().unwrap_or(0).saturating_sub(held), Ordering::Relaxed);
        }
        self.budget.others.load(Ordering::Relaxed)
    }

    /// Moves columns, which are counted as held, into one file. False if that failed.
    pub(crate) fn spill(&self, columns: &mut [&mut ColumnChunk]) -> bool {
        match self.write_and_map(columns) {
            Ok(bytes) => {
                self.budget.held.fetch_sub(bytes, Ordering::Relaxed);
                self.budget.spilled.fetch_add(bytes, Ordering::Relaxed);
                true
            }
            Err(error) => {
                self.budget.broken.store(true, Ordering::Relaxed);
                if let Ok(mut failure) = self.budget.failure.lock() {
                    failure.get_or_insert(error);
                }
                false
            }
        }
    }

    fn write_and_map(&self, columns: &mut [&mut ColumnChunk]) -> io::Result<u64> {
        let file = tempfile::tempfile_in(&self.budget.folder)?;
        let mut places = Vec::new();
        let mut out = BufWriter::with_capacity(1 << 20, &file);
        let mut at = 0usize;
        for buffer in columns.iter().flat_map(|c| c.buffers()) {
            let padding = at.next_multiple_of(ALIGNMENT) - at;
            out.write_all(&[0; ALIGNMENT][..padding])?;
            at += padding;
            out.write_all(buffer.as_slice())?;
            places.push(at..at + buffer.len());
            at += buffer.len();
        }
        out.flush()?;
        drop(out);
        let map = SpillFile::map(file)?;
        if map.map.len() != at {
            return Err(io::Error::other("a temporary file changed its size"));
        }
        let map = bytes::Bytes::from_owner(map);
        let mut places = places.into_iter();
        let mut bytes = 0;
        for column in columns {
            let mut next = || {
                // An empty slice of `Bytes` has no aligned address; an empty `Buffer` has.
                let place = places.next()?;
                Some(if place.is_empty() { Buffer::default() } else { Buffer::from(map.slice(place)) })
            };
            if let Some(mapped) = column.with_buffers(&mut next) {
                bytes += column.bytes() as u64;
                **column = mapped;
            }
        }
        Ok(bytes)
    }
}

/// A map of an unlinked file.
struct SpillFile {
    map: Mapped,
    /// Windows deletes such a file with its last handle. Elsewhere a map needs no handle, and a large
    /// analysis must not run out of them.
    #[cfg(windows)]
    _file: File,
}

impl SpillFile {
    #[cfg(windows)]
    fn map(file: File) -> io::Result<SpillFile> {
        Ok(SpillFile { map: Mapped::new(&file)?, _file: file })
    }

    #[cfg(not(windows))]
    fn map(file: File) -> io::Result<SpillFile> {
        Ok(SpillFile { map: Mapped::new(&file)? })
    }
}

impl AsRef<[u8]> for SpillFile {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}
