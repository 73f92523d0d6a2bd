//! A log from end to end: chunks in parallel, results in order.

use crate::binxml::{Decoder, Event, Fault};
use crate::error::EvtxError;
use crate::read::{Chunk, ChunkPlace, Damage, LogFile, RecordRef, anomalies, ordered};

const CHUNK: usize = crate::abi::chunk::SIZE;

/// What reads the records of a log, one for each thread.
pub trait Reader {
    /// What a batch of chunks gives.
    type Output: Send;

    /// Chunks of a batch: 4 MiB, of which so much is mapped for each thread at a time.
    const CHUNKS: usize = 64;

    /// A record. `event` is why it cannot be read, if it cannot.
    ///
    /// # Errors
    /// What was found to be wrong with it on the way; it is counted.
    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault>;

    /// A chunk ends.
    #[inline]
    fn chunk_ends(&mut self) {}

    /// The batch ends.
    fn finish(&mut self) -> Self::Output;

    /// False if the reader has seen enough.
    fn goes_on(&self) -> bool {
        true
    }
}

/// How a log is read.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions {
    /// Threads.
    pub threads: usize,
    /// Oldest chunks first; else in order of the file.
    pub in_order: bool,
}

/// Chunks of a log that are read together.
#[derive(Clone, Debug)]
pub struct Batch<'l> {
    /// The log.
    pub log: &'l LogFile,
    /// Its number among those that are read together.
    pub number: u32,
    /// The chunks.
    pub places: Vec<ChunkPlace>,
}

/// Reads all records of a log. `take` gets what each batch gave, in order, until it returns false.
///
/// # Errors
/// The first error of the system; what was read before has been taken.
pub fn scan<R: Reader>(
    log: &LogFile,
    options: &ScanOptions,
    make: impl Fn() -> R + Sync,
    mut take: impl FnMut(R::Output) -> bool,
) -> Result<Damage, EvtxError> {
    let places: Vec<ChunkPlace> = if options.in_order { log.in_order() } else { log.chunks.clone() };
    let batches: Vec<Batch<'_>> = places
        .chunks(R::CHUNKS.max(1))
        .map(|places| Batch { log, number: 0, places: places.to_vec() })
        .collect();
    let mut damage = log.damage.clone();
    scan_batches(&batches, options.threads, make, |_, output, found| {
        damage.merge(&found);
        take(output)
    })?;
    Ok(damage)
}

/// Reads batches, which may be of several logs. `take` gets the number of each, what it gave, and what was wrong with it, in order,
/// until it returns false.
///
/// # Errors
/// The first error of the system; what was read before has been taken.
pub fn scan_batches<R: Reader>(
    batches: &[Batch<'_>],
    threads: usize,
    make: impl Fn() -> R + Sync,
    mut take: impl FnMut(usize, R::Output, Damage) -> bool,
) -> Result<(), EvtxError> {
    let mut failure = None;
    ordered(
        batches.len(),
        threads,
        || (make(), Vec::new(), Decoder::default()),
        |(reader, buffer, decoder), n| {
            let mut damage = Damage::default();
            let failed = batches.get(n).and_then(|batch| read(batch, decoder, reader, buffer, &mut damage));
            (n, reader.finish(), damage, failed)
        },
        |(n, output, found, failed)| {
            let more = take(n, output, found);
            if failed.is_some() {
                failure = failed;
                return false;
            }
            more
        },
    );
    failure.map_or(Ok(()), Err)
}

/// Reads a batch; gives the error of the system at which it ended, if one did.
fn read<R: Reader>(
    batch: &Batch<'_>,
    decoder: &mut Decoder,
    reader: &mut R,
    buffer: &mut Vec<u8>,
    damage: &mut Damage,
) -> Option<EvtxError> {
    decoder.next_log(batch.number);
    if let Some((offset, window)) = batch.log.window(&batch.places) {
        for place in &batch.places {
            let at = (place.offset - offset) as usize;
            let data = window.get(at..at + CHUNK).unwrap_or(&[]);
            let chunk = Chunk::parse(data, data.len(), place.offset, damage);
            records(&chunk, decoder, reader, damage);
        }
        batch.log.judge_end(window.is_whole(), damage);
        return None;
    }
    batch.log.judge_end(true, damage);
    batch.places.iter().find_map(|place| read_chunk(batch.log, place, buffer, decoder, reader, damage).err())
}

/// Reads the records of one chunk.
///
/// # Errors
/// The system's.
pub fn read_chunk<R: Reader>(
    log: &LogFile,
    place: &ChunkPlace,
    buffer: &mut Vec<u8>,
    decoder: &mut Decoder,
    reader: &mut R,
    damage: &mut Damage,
) -> Result<(), EvtxError> {
    let chunk = Chunk::read(log, place, buffer, damage)?;
    records(&chunk, decoder, reader, damage);
    Ok(())
}

fn records<R: Reader>(chunk: &Chunk<'_>, decoder: &mut Decoder, reader: &mut R, damage: &mut Damage) {
    let mut walked = Damage::default();
    decoder.next_chunk();
    for record in chunk.records(&mut walked) {
        let (from, to) = record.xml();
        let event = decoder.event(chunk.data(), from, to);
        match &event {
            Ok(event) if !event.borrowed => {}
            other => note(other.as_ref().map(|_| ()), chunk.offset, &record, damage),
        }
        if let Err(fault) = reader.record(decoder, &record, event) {
            note(Err(&fault), chunk.offset, &record, damage);
        }
        if !reader.goes_on() {
            break;
        }
    }
    reader.chunk_ends();
    damage.merge(&walked);
}

#[cold]
fn note(event: Result<(), &Fault>, chunk: u64, record: &RecordRef, damage: &mut Damage) {
    let kind = match event {
        Ok(()) => &anomalies::BORROWED,
        Err(Fault::Broken(_)) => &anomalies::RECORD_BROKEN,
        Err(Fault::NoTemplate) => &anomalies::NO_TEMPLATE,
        Err(Fault::Empty) => &anomalies::RECORD_EMPTY,
        Err(Fault::OddNames) => &anomalies::ODD_NAMES,
    };
    let id = record.id;
    damage.note(kind, 1, || format!("record {id} at offset {}", chunk.saturating_add(record.at as u64)));
}
