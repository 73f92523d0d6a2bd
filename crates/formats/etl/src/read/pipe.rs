//! Hands records from the thread that merges to the one that works on them.
//!
//! The bytes are copied into batches that go back when they are read: a copy costs a few percent of what the merge does, and
//! the records arrive in the cache of the thread that reads them, one behind the other.

use crate::Record;
use crate::record::HeaderKind;
use etwhy_base::Bytes;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Bytes of a batch: a part of a core's own cache.
const BATCH_BYTES: usize = 128 << 10;
/// Batches that are under way at most.
const DEPTH: usize = 8;

/// Where a record of a batch is, and what is known of it beside its bytes.
struct Entry {
    end: u32,
    kind: HeaderKind,
    cpu: u16,
    logger_id: u16,
    file: u16,
    ticks: i64,
    key: i64,
}

#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// The merging end.
struct Writer {
    batch: Batch,
    full: SyncSender<Batch>,
    empty: Receiver<Batch>,
    /// The reader is gone: nothing needs to be handed over any more.
    gone: bool,
}

impl Writer {
    #[inline]
    fn push(&mut self, record: &Record<'_>, key: i64) {
        self.batch.bytes.extend_from_slice(record.bytes);
        self.batch.entries.push(Entry {
            // A batch is sent before it grows past what fits: one record has less than 64 KiB.
            end: self.batch.bytes.len() as u32,
            kind: record.kind,
            cpu: record.cpu,
            logger_id: record.logger_id,
            file: record.file,
            ticks: record.ticks,
            key,
        });
        if self.batch.bytes.len() >= BATCH_BYTES {
            self.send();
        }
    }

    #[cold]
    fn send(&mut self) {
        let next = self.empty.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.batch, next);
        if self.gone || self.full.send(full).is_err() {
            self.gone = true;
        }
    }
}

/// Runs `merge` on a thread of its own; what it pushes is given to `each` on this one, in order. Gives what `merge` returns;
/// `None` if it panicked.
pub(super) fn run<T: Send>(
    mut each: impl FnMut(&Record<'_>, i64),
    merge: impl FnOnce(&mut dyn FnMut(&Record<'_>, i64)) -> T + Send,
) -> Option<T> {
    let (full, batches) = sync_channel::<Batch>(DEPTH);
    let (give_back, empty): (Sender<Batch>, Receiver<Batch>) = channel();
    std::thread::scope(|scope| {
        let merging = scope.spawn(move || {
            let mut writer = Writer { batch: Batch::default(), full, empty, gone: false };
            let result = merge(&mut |record, key| writer.push(record, key));
            writer.send();
            result
        });
        for mut batch in batches {
            let mut start = 0;
            for entry in &batch.entries {
                let end = entry.end as usize;
                let Some(bytes) = batch.bytes.sub(start, end.saturating_sub(start)) else { continue };
                start = end;
                let record = Record {
                    bytes,
                    kind: entry.kind,
                    ticks: entry.ticks,
                    cpu: entry.cpu,
                    logger_id: entry.logger_id,
                    file: entry.file,
                };
                each(&record, entry.key);
            }
            batch.bytes.clear();
            batch.entries.clear();
            // The merge may have ended already.
            let _ = give_back.send(batch);
        }
        match merging.join() {
            Ok(result) => Some(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_arrive_in_order_and_whole() {
        let sizes = |n: usize| n * 37 % 60_000;
        let mut seen = 0usize;
        let result = run(
            |record, key| {
                assert_eq!(key, seen as i64);
                assert_eq!(record.ticks, 2 * key);
                assert_eq!(record.cpu, (seen % 7) as u16);
                assert_eq!(record.bytes.len(), sizes(seen));
                assert!(record.bytes.iter().all(|&b| b == seen as u8));
                seen += 1;
            },
            |push| {
                for n in 0..5000 {
                    let bytes = vec![n as u8; sizes(n)];
                    let record = Record {
                        bytes: &bytes,
                        kind: HeaderKind::Event64,
                        ticks: 2 * n as i64,
                        cpu: (n % 7) as u16,
                        logger_id: 1,
                        file: 0,
                    };
                    push(&record, n as i64);
                }
                "end"
            },
        );
        assert_eq!((result, seen), (Some("end"), 5000));
    }
}
