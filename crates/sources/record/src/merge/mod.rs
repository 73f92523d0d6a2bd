//! Files of one recording as one trace: all records in the order of their times, and the identities of images.
//!
//! The result has the form that `xperf -merge` and `wpr -merge` write: a header that says `[multiple files]`, one chain of packed
//! buffers for each processor, the records of the files as they are, and before each event of an image what tells which build it is
//! (`Identities`). The headers of the files themselves go; what they count is summed up.
//!
//! Lost events and buffers are known by flags and numbers of buffers, which are new in the result. So records stand in a buffer of
//! their own from where records of a file may be missing to where they are whole again, and that buffer is marked
//! (`losses`): whoever reads the result sees the same gaps.

mod identities;
mod losses;
mod setup;
mod this_machine;

pub use identities::Volume;
pub use this_machine::MachineFacts;

use etwhy_etl::read::{EtlFile, Timeline, Walk};
use etwhy_etl::write::{RecordBuf, TraceWriter};
use etwhy_etl::{Ledger, Record};
use etwhy_symbols::Locate;
use identities::Identities;
use losses::Losses;
use setup::setup;
use std::io::{self, Seek, Write};

/// What is merged, and with what.
#[derive(Clone, Copy, Default)]
pub struct MergeOptions<'a> {
    /// Where images are, to take their identities from.
    pub images: Option<&'a dyn Locate>,
    /// Volumes of the machine that was recorded; empty if they are not known. Traces that have volumes keep theirs.
    pub volumes: &'a [Volume],
    /// Threads to use, at least 1.
    pub threads: usize,
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// Records that were copied.
    pub copied: u64,
    /// Records that were added.
    pub added: u64,
    /// Builds of images that events name.
    pub images: usize,
    /// Those of them that the files or images identify.
    pub identified: usize,
    /// Bytes of the result.
    pub bytes: u64,
    /// The only file was merged already, and nothing is new: it was copied as it stands.
    pub unchanged: bool,
    /// What was wrong with the files.
    pub ledger: Ledger,
}

/// Why files cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There is none.
    #[error("no file is given")]
    Nothing,
    /// Their timestamps cannot be compared.
    #[error(
        "the sessions of these files have different clocks, so that their times cannot be written into one file: \
         `etwhy why` reads them together all the same"
    )]
    Clocks,
    /// The result cannot be written.
    #[error("the merged trace cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Merges files of one recording.
///
/// # Errors
/// If they have no common clock, or `out` cannot be written.
pub fn merge<W: Write + Seek>(
    files: &[EtlFile],
    options: &MergeOptions<'_>,
    mut out: W,
) -> Result<Merged, MergeError> {
    let mut merged = Merged::default();
    let timeline = Timeline::read(files, &mut merged.ledger);
    if files.is_empty() {
        return Err(MergeError::Nothing);
    }
    if !timeline.is_shared() {
        return Err(MergeError::Clocks);
    }
    for file in files {
        merged.ledger.merge(file.ledger());
    }
    let mut identities = Identities::default();
    let mut zone = None;
    let walk = || Walk::new(files, &timeline);
    walk().for_each_threaded(options.threads, &mut Ledger::new(), |record, _| {
        if is_header(record) {
            zone = zone.take().or_else(|| setup::time_zone(record));
        } else {
            identities.note(record);
        }
    });
    identities.look_up(options.images);
    (merged.images, merged.identified) = identities.counts();
    if let [file] = files
        && file.header().is_merged()
        && !identities.has_news(options.volumes)
    {
        merged.unchanged = true;
        merged.bytes = file.copy_to(&mut out)?;
        return Ok(merged);
    }
    let setup = setup(files, &timeline, zone);
    let start = setup.first_ticks();
    let pointer = setup.pointer_size;
    let mut copy = Copying {
        writer: TraceWriter::new(out, setup)?,
        losses: Losses::of(files),
        identities,
        buf: RecordBuf::new(),
        copied: 0,
        added: 0,
        failed: None,
    };
    copy.volumes(options.volumes, pointer, start);
    walk().for_each_threaded(options.threads, &mut merged.ledger, |record, _| copy.record(record));
    if let Some(error) = copy.failed {
        return Err(error.into());
    }
    (merged.copied, merged.added) = (copy.copied, copy.added);
    merged.bytes = copy.writer.finish()?.bytes;
    Ok(merged)
}

/// The header of a session, of which the result has one of its own.
fn is_header(record: &Record<'_>) -> bool {
    record.kind.is_system() && record.hook() == 0
}

/// The copy while it is made.
struct Copying<W: Write + Seek> {
    writer: TraceWriter<W>,
    losses: Losses,
    identities: Identities,
    buf: RecordBuf,
    copied: u64,
    added: u64,
    /// The walk cannot be ended from inside: what comes after an error is passed over.
    failed: Option<io::Error>,
}

impl<W: Write + Seek> Copying<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.failed.is_some() || is_header(record) {
            return;
        }
        if let Err(error) = self.write(record) {
            self.failed = Some(error);
        }
    }

    fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let loss = self.losses.at(record.cpu, record.ticks);
        if loss.begins_buffer {
            self.writer.flush_cpu(record.cpu)?;
        }
        let (writer, buf) = (&mut self.writer, &mut self.buf);
        self.identities.before(record, buf, &mut |buf| {
            self.added += 1;
            writer.write(record.cpu, buf)
        })?;
        self.writer.write_bytes(record.cpu, record.ticks, record.bytes)?;
        if loss.events || loss.buffer {
            self.writer.mark_lost(record.cpu, loss.events, loss.buffer);
        }
        self.copied += 1;
        Ok(())
    }

    fn volumes(&mut self, volumes: &[Volume], pointer: u8, ticks: i64) {
        let (writer, buf) = (&mut self.writer, &mut self.buf);
        let done = self.identities.volumes(volumes, pointer, ticks, buf, &mut |buf| {
            self.added += 1;
            writer.write(0, buf)
        });
        self.failed = done.err();
    }
}
