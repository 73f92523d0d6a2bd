//! `--follow`: a log that grows.

use super::shape::Writer;
use etwhy_evtx::binxml::Decoder;
use etwhy_evtx::read::{Damage, LogFile, RecordRef};
use etwhy_evtx::scan::{Reader, read_chunk};
use etwhy_evtx::{binxml, read};
use std::io::Write;
use std::time::Duration;

/// How often logs are looked at.
const EVERY: Duration = Duration::from_millis(500);

/// Only records behind those that were seen.
struct Newer<'n, 'w> {
    inner: &'n mut Writer<'w>,
    seen: u64,
}

impl Reader for Newer<'_, '_> {
    type Output = ();

    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<binxml::Event<'_>, binxml::Fault>,
    ) -> Result<(), binxml::Fault> {
        if record.id <= self.seen {
            return Ok(());
        }
        self.inner.record(decoder, record, event)
    }

    fn finish(&mut self) {}
}

/// Shows new records until somebody ends it. A log that was cleared is followed from its beginning.
///
/// # Errors
/// If the output cannot be written. A log that cannot be read for a moment is read again later.
pub fn follow(logs: Vec<(LogFile, u64)>, mut writer: Writer<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut logs: Vec<_> = logs.into_iter().map(|(log, seen)| (log, seen, 0u64)).collect();
    let (mut buffer, mut decoder) = (Vec::new(), Decoder::default());
    loop {
        for (log, seen, size) in &mut logs {
            // The service writes in place, so size and time of a file say nothing.
            let Ok(now) = LogFile::open(&log.path, &log.path) else { continue };
            let newest = newest(&now, &mut buffer);
            if newest < *seen {
                say!("etwhy: {} was cleared", log.path.display());
                *seen = 0;
            }
            *size = now.size;
            if newest == *seen {
                continue;
            }
            for place in now.in_order() {
                let mut reader = Newer { inner: &mut writer, seen: *seen };
                let mut damage = Damage::default();
                // What is damaged now may be half written; it comes again.
                let _ = read_chunk(&now, &place, &mut buffer, &mut decoder, &mut reader, &mut damage);
            }
            let part = writer.finish();
            *seen = (*seen).max(part.last);
            out.write_all(&part.text)?;
        }
        out.flush()?;
        std::thread::sleep(EVERY);
    }
}

/// Largest number of a record in the log.
fn newest(log: &LogFile, buffer: &mut Vec<u8>) -> u64 {
    let mut newest = 0;
    for place in &log.chunks {
        if place.has_records() && place.last_record != u64::MAX {
            newest = newest.max(place.last_record);
        }
    }
    // The header of the chunk that is written may be behind its records.
    if let Some(place) = log.chunks.iter().rev().find(|place| place.has_records()) {
        let mut damage = Damage::default();
        if let Ok(chunk) = read::Chunk::read(log, place, buffer, &mut damage) {
            newest = chunk.records(&mut Damage::default()).map(|record| record.id).fold(newest, u64::max);
        }
    }
    newest
}
