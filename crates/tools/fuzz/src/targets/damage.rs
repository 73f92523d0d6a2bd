//! What must survive: a trace cut short keeps the records of its whole buffers, a trace damaged in one buffer
//! those of all others, and the ledger says that something is missing.
//!
//! What each buffer holds is not asked of the reader's own bookkeeping: a buffer is read in a file of its own,
//! together with buffer 0, which says how the file is packed.

use super::target::accepted;
use super::trace::open;
use crate::etl_mutate::buffers;
use crate::mutate::{EXTREMES, put};
use crate::scratch;
use crate::seeds::{Seed, traces};
use etwhy_base::Bytes;
use etwhy_base::rng::Rng;
use etwhy_etl::abi::{buffer, header, logfile};
use etwhy_etl::read::{EtlFile, Timeline, Walk};
use etwhy_etl::{Anomaly, Ledger, Severity, Stage};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::rc::Rc;

/// Records by a number that stands for their bytes, and how often they occur.
type Records = HashMap<u64, i64>;

/// What a walk gave.
struct Walked {
    records: Records,
    count: u64,
    bytes: u64,
    /// Anomalies that say that something in the input could not be used, and so decide the exit code.
    missing: u64,
    ledger: Vec<(&'static str, u64)>,
}

/// What an undamaged trace holds.
struct Expected {
    /// Offset, size and records of each buffer.
    buffers: Vec<(usize, usize, Records)>,
    whole: Walked,
}

fn walk(data: &[u8]) -> Option<Walked> {
    let path = scratch::file("damage.etl", data)?;
    let files = [open(&path, data.len().is_multiple_of(2).then_some(500))?];
    let mut ledger = Ledger::new();
    let timeline = Timeline::read(&files, &mut ledger);
    let mut records = Records::new();
    let stats = Walk::new(&files, &timeline).for_each(&mut ledger, |record, _| {
        let mut hasher = DefaultHasher::new();
        record.bytes.hash(&mut hasher);
        *records.entry(hasher.finish()).or_default() += 1;
    });
    files.iter().for_each(|f| ledger.merge(EtlFile::ledger(f)));
    let missing =
        ledger.entries().filter(|e| is_missing(e.anomaly)).map(|e| e.count).fold(0, u64::saturating_add);
    let ledger = ledger.entries().map(|e| (e.anomaly.name, e.count)).collect();
    Some(Walked { records, count: stats.records, bytes: stats.bytes, missing, ledger })
}

/// As the program sees it (`crates/faces/etwhy/src/exit.rs`).
fn is_missing(anomaly: &Anomaly) -> bool {
    match anomaly.severity {
        Severity::Error => true,
        Severity::DataLoss => matches!(anomaly.stage, Stage::Input | Stage::Read),
        _ => false,
    }
}

fn without(mut records: Records, less: &Records) -> Records {
    for (record, n) in less {
        *records.entry(*record).or_default() -= n;
    }
    records.retain(|_, n| *n > 0);
    records
}

/// The records of every buffer; `None` if the parts do not add up to the whole (the trace is damaged already).
fn expected(data: &[u8]) -> Option<Expected> {
    let places = buffers(data);
    let whole = walk(data)?;
    let (_, header_size) = *places.first()?;
    let header = data.get(..header_size)?;
    let header_records = walk(header)?.records;
    let mut list = Vec::new();
    let mut sum = 0;
    for (number, &(at, size)) in places.iter().enumerate() {
        let records = if number == 0 {
            header_records.clone()
        } else {
            let two = [header, data.get(at..at + size)?].concat();
            without(walk(&two)?.records, &header_records)
        };
        sum += records.values().sum::<i64>();
        list.push((at, size, records));
    }
    let end = places.last().map_or(0, |(at, size)| at + size);
    (sum == whole.count as i64 && end == data.len()).then_some(Expected { buffers: list, whole })
}

thread_local! {
    /// Of the trace that was looked at last: campaigns damage the same ones over and over.
    static KNOWN: RefCell<HashMap<u64, Option<Rc<Expected>>>> = RefCell::new(HashMap::new());
}

fn known(data: &[u8]) -> Option<Rc<Expected>> {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    KNOWN.with(|known| {
        known.borrow_mut().entry(hasher.finish()).or_insert_with(|| expected(data).map(Rc::new)).clone()
    })
}

/// Traces that can be judged: sound ones of several buffers. They are kept small: every buffer is read apart.
pub fn seeds(corpus: &Path, limit: usize) -> Vec<Seed> {
    let judged = |seed: &Seed| known(&seed.data).is_some_and(|expected| expected.buffers.len() > 1);
    traces(corpus, limit.min(256 * 1024)).into_iter().filter(judged).collect()
}

/// Chooses the damage: eight bytes in front of the trace.
pub fn choose(rng: &mut Rng, data: &mut Vec<u8>, _: &[u8]) {
    let number = rng.bits().to_le_bytes();
    data.splice(0..0, number);
}

/// Whether the ledger must say that records are missing.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    /// It must.
    Yes,
    /// Unless a damaged size makes one record swallow others, which looks like a larger record.
    IfShrunk,
    /// Nobody can know: the bytes are sound, they only say less than they did.
    No,
}

/// Fields of a buffer header that reading looks at, with their widths.
const FIELDS: [(usize, usize); 9] = [
    (buffer::BUFFER_SIZE, 4),
    (buffer::SAVED_OFFSET, 4),
    (buffer::OFFSET, 4),
    (buffer::BUFFER_FLAG, 2),
    (buffer::BUFFER_TYPE, 2),
    (buffer::SEQUENCE_NUMBER, 8),
    (buffer::PROCESSOR_INDEX, 2),
    (buffer::LOGGER_ID, 2),
    (buffer::STATE, 4),
];

/// Bits that are flipped at once.
const MOST_FLIPS: usize = 16;

/// The damage that a number stands for: the buffer that is hit (`None`: cut at the end of the bytes), whether it can be
/// noticed, and how many records it can make that look like others.
fn damage(number: u64, data: &mut Vec<u8>, expected: &Expected) -> (Option<usize>, Told, i64) {
    let mut rng = Rng::new(number);
    let hit = 1 + rng.index(expected.buffers.len().saturating_sub(1));
    let (at, size) = expected.buffers.get(hit).map_or((0, 0), |b| (b.0, b.1));
    // Damaged bytes of a packed buffer are references to other records, and nothing tells them from those that were meant.
    let repeated = if is_packed(data) { i64::MAX } else { 0 };
    // A circular file that is not full holds any number of buffers: nobody can tell that one more was there.
    let counted = if log_file_mode(data) & logfile::MODE_CIRCULAR == 0 { Told::Yes } else { Told::No };
    match rng.index(8) {
        0 => {
            let end = rng.index(data.len());
            data.truncate(end);
            return (None, Told::Yes, 0);
        }
        1 => {
            data.truncate(at);
            return (None, counted, 0);
        }
        2 => {
            let flips = 1 + rng.index(MOST_FLIPS);
            for _ in 0..flips {
                if let Some(byte) = data.get_mut(at + rng.index(size)) {
                    *byte ^= 1 << rng.index(8);
                }
            }
            // A flipped bit can make a record equal to its neighbour.
            return (Some(hit), Told::IfShrunk, repeated.max(flips as i64));
        }
        3 | 4 => {
            for _ in 0..=rng.index(3) {
                let (field, width) = rng.pick(&FIELDS).copied().unwrap_or((0, 4));
                let value = if rng.index(2) == 0 {
                    rng.pick(&EXTREMES).copied().unwrap_or(0)
                } else {
                    rng.index(2 * size + 2) as u64
                };
                put(data, at + field, width, value);
            }
        }
        5 => {
            // Both ends of data agree, and are not where the data end.
            let end = buffer::LEN + (rng.index(size.saturating_sub(buffer::LEN)) & !7);
            put(data, at + buffer::SAVED_OFFSET, 4, end as u64);
            put(data, at + buffer::OFFSET, 4, end as u64);
        }
        6 => {
            // Another buffer in its place, or beside it, or nothing.
            let other = rng.index(expected.buffers.len());
            let (from, len) = expected.buffers.get(other).map_or((0, 0), |b| (b.0, b.1));
            let copy = data.get(from..from + len).unwrap_or(&[]).to_vec();
            match rng.index(3) {
                0 => drop(data.splice(at..at + size, copy)),
                1 => drop(data.splice(at..at, copy)),
                _ => drop(data.drain(at..at + size)),
            }
            return (Some(hit), counted, 0);
        }
        _ => {
            let fill = [0u8, 0xFF, 0x5A].get(rng.index(3)).copied().unwrap_or(0);
            let from = if rng.index(2) == 0 { 0 } else { rng.index(size) & !511 };
            if let Some(range) = data.get_mut(at + from..at + size) {
                range.fill(fill);
            }
            // Preallocated room looks like this.
            if (fill, from) == (0, 0) {
                return (Some(hit), counted, 0);
            }
        }
    }
    (Some(hit), Told::Yes, repeated)
}

fn log_file_mode(data: &[u8]) -> u32 {
    data.u32_at(buffer::LEN + header::SYSTEM_LEN + logfile::LOG_FILE_MODE).unwrap_or(0)
}

fn is_packed(data: &[u8]) -> bool {
    log_file_mode(data) & logfile::MODE_COMPRESSED != 0
}

/// Damages the trace behind the first eight bytes as they say, and checks what is left of it.
pub fn check(data: &[u8]) {
    let Some((number, original)) = data.split_first_chunk::<8>() else { return };
    let Some(expected) = known(original) else { return };
    if expected.buffers.len() < 2 {
        return;
    }
    accepted();
    let mut damaged = original.to_vec();
    let (hit, told, alike) = damage(u64::from_le_bytes(*number), &mut damaged, &expected);
    let Some(walked) = walk(&damaged) else {
        let first = expected.buffers.first().map_or(0, |b| b.1);
        assert!(damaged.len() < first, "a trace whose first buffer is whole is refused");
        return;
    };
    for (number, (at, size, records)) in expected.buffers.iter().enumerate() {
        if hit == Some(number) || at + size > damaged.len() {
            continue;
        }
        let lost = records.iter().filter(|(record, _)| !walked.records.contains_key(record)).count();
        assert!(
            lost == 0,
            "{lost} of {} records of buffer {number} at {at:#x} are lost; hit: buffer {hit:?} of {}, {:#x} bytes left; ledger {:?}",
            records.len(),
            expected.buffers.len(),
            damaged.len(),
            walked.ledger
        );
    }
    let mut more = 0;
    for (record, times) in &walked.records {
        let before = expected.whole.records.get(record).copied();
        more += before.map_or(0, |before| (*times - before).max(0));
        assert!(
            more <= alike,
            "a record is read {times} times and stood there {before:?} times; hit: buffer {hit:?}; ledger {:?}",
            walked.ledger
        );
    }
    let fewer = walked.count < expected.whole.count;
    let shrunk = walked.bytes + 128 < expected.whole.bytes;
    if fewer && (told == Told::Yes || (told == Told::IfShrunk && shrunk)) {
        // Of a part of a trace one buffer more may be missing between the same numbers: it is a part all the same.
        assert!(
            walked.missing > 0,
            "{} of {} records are missing and the run would end as complete; hit: buffer {hit:?} of {}, {:#x} bytes left; ledger {:?}",
            expected.whole.count - walked.count,
            expected.whole.count,
            expected.buffers.len(),
            damaged.len(),
            walked.ledger
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_traces_can_be_judged() {
        for seed in crate::seeds::written() {
            let expected = expected(&seed.data).expect(&seed.name);
            assert!(expected.buffers.len() > 2, "{}", seed.name);
        }
    }
}
