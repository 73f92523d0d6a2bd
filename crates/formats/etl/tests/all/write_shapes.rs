//! The shapes of real files that the writer can make, checked on the bytes of the buffer headers.

use etwhy_base::Bytes;
use etwhy_etl::Result;
use etwhy_etl::abi::{buffer, logfile};
use etwhy_etl::write::*;
use std::io::Cursor;

struct Head {
    at: usize,
    size: usize,
    saved: u32,
    offset: usize,
    sequence: i64,
    processor: u16,
    logger: u16,
    flags: u16,
    kind: u16,
}

fn heads(bytes: &[u8]) -> Vec<Head> {
    let mut list = Vec::new();
    let mut at = 0;
    while let Some(b) = bytes.get(at..).filter(|b| b.len() >= buffer::LEN) {
        let size = b.u32_at(buffer::BUFFER_SIZE).unwrap() as usize;
        list.push(Head {
            at,
            size,
            saved: b.u32_at(buffer::SAVED_OFFSET).unwrap(),
            offset: b.u32_at(buffer::OFFSET).unwrap() as usize,
            sequence: b.i64_at(buffer::SEQUENCE_NUMBER).unwrap(),
            processor: b.u16_at(buffer::PROCESSOR_INDEX).unwrap(),
            logger: b.u16_at(buffer::LOGGER_ID).unwrap(),
            flags: b.u16_at(buffer::BUFFER_FLAG).unwrap(),
            kind: b.u16_at(buffer::BUFFER_TYPE).unwrap(),
        });
        at += size;
    }
    assert_eq!(at, bytes.len());
    list
}

fn fill<W: std::io::Write + std::io::Seek>(writer: &mut TraceWriter<W>, n: u64, cpus: u64) {
    let mut r = RecordBuf::new();
    let first = writer.setup().first_ticks();
    for i in 0..n {
        r.perfinfo(8, 0x0F2E, 2, first + i as i64).u64(i).u64(0);
        writer.write((i % cpus) as u16, &mut r).unwrap();
    }
}

fn written(setup: TraceSetup, n: u64, cpus: u64) -> Vec<u8> {
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), setup).unwrap();
    fill(&mut writer, n, cpus);
    writer.finish_into().unwrap().1.into_inner()
}

fn small() -> TraceSetup {
    TraceSetup { buffer_size: 1024, ..TraceSetup::default() }
}

/// Offset of the logfile header in buffer 0.
const PAYLOAD: usize = buffer::LEN + 32;

#[test]
fn an_ordinary_file_has_global_sequence_numbers_and_flush_markers_at_its_ends() -> Result<()> {
    let bytes = written(small(), 1000, 3);
    let heads = heads(&bytes);
    assert!(heads.iter().all(|h| h.size == 1024 && h.offset <= 1024 && h.offset >= buffer::LEN));
    let mut numbers: Vec<i64> = heads.iter().map(|h| h.sequence).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().enumerate().all(|(i, n)| i as i64 == *n));
    assert_eq!(heads[0].kind, buffer::TYPE_HEADER);
    let marked: Vec<usize> = heads
        .iter()
        .enumerate()
        .filter(|(_, h)| h.flags & buffer::FLAG_FLUSH_MARKER != 0)
        .map(|h| h.0)
        .collect();
    assert_eq!(marked, [0, heads.len() - 1]);
    assert_eq!(bytes.u32_at(PAYLOAD + logfile::BUFFERS_WRITTEN).unwrap() as usize, heads.len());
    assert!(bytes.i64_at(PAYLOAD + logfile::END_TIME).unwrap() > 0);
    // Behind the data of a buffer that is not full stand ones, then nothing that looks like a record.
    let last = heads.last().unwrap();
    assert!(bytes[last.at + last.offset..].iter().all(|b| *b == 0xFF));
    Ok(())
}

#[test]
fn an_unfinalised_file_does_not_say_how_long_it_is() {
    let bytes = written(TraceSetup { unfinalised: true, ..small() }, 500, 2);
    assert_eq!(bytes.u32_at(PAYLOAD + logfile::BUFFERS_WRITTEN), Some(0));
    assert_eq!(bytes.i64_at(PAYLOAD + logfile::END_TIME), Some(0));
    assert!(heads(&bytes).len() > 10);
}

#[test]
fn a_circular_file_wraps_behind_buffer_0() {
    let bytes = written(TraceSetup { circular_buffers: Some(8), ..small() }, 2000, 1);
    let heads = heads(&bytes);
    assert_eq!(heads.len(), 9);
    assert_eq!(heads[0].sequence, 0);
    let data: Vec<i64> = heads[1..].iter().map(|h| h.sequence).collect();
    assert!(!data.is_sorted() && data.iter().max().unwrap() - data.iter().min().unwrap() == 7);
    assert_eq!(bytes.u32_at(PAYLOAD + logfile::LOG_FILE_MODE).unwrap() & logfile::MODE_CIRCULAR, 2);
}

#[test]
fn a_windows_7_file_has_byte_sized_processors() {
    let bytes = written(TraceSetup { windows7: true, ..small() }, 500, 4);
    let heads = heads(&bytes);
    assert_eq!((heads[0].saved, heads[0].offset > 0), (0, true));
    assert!(heads.iter().all(|h| h.processor >> 8 == 8 && h.processor & 0xFF < 4));
    assert!(heads.iter().all(|h| h.flags & buffer::FLAG_PROCESSOR_INDEX == 0));
}

#[test]
fn an_appended_session_counts_from_0_again() {
    let first = written(small(), 500, 2);
    for append_header in [true, false] {
        let setup = TraceSetup { logger_id: 9, append_header, ..small() };
        let mut writer = TraceWriter::append(Cursor::new(first.clone()), setup).unwrap();
        fill(&mut writer, 500, 2);
        let (_, out) = writer.finish_into().unwrap();
        let bytes = out.into_inner();
        assert_eq!(bytes[..first.len()], first);
        let heads = heads(&bytes);
        let second: Vec<&Head> = heads.iter().filter(|h| h.at >= first.len()).collect();
        assert!(second.iter().all(|h| h.logger == 9));
        assert_eq!(second.iter().map(|h| h.sequence).min(), Some(0));
        assert_eq!(second[0].kind == buffer::TYPE_HEADER, append_header);
    }
}

#[test]
fn a_compressed_file_unpacks_to_the_same_buffers() {
    let plain = written(small(), 2000, 2);
    let packed = written(TraceSetup { compressed: true, ..small() }, 2000, 2);
    assert!(packed.len() < plain.len() * 2 / 3);
    let heads = heads(&packed);
    assert!(
        heads[1..].iter().all(|h| h.flags & buffer::FLAG_COMPRESSED != 0 && h.saved as usize == h.offset)
    );
    assert_eq!(packed.u32_at(buffer::STATE), Some(u32::from(buffer::COMPRESSION_XPRESS)));
}

#[test]
fn lost_events_are_marked_and_counted() {
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), small()).unwrap();
    fill(&mut writer, 100, 2);
    writer.mark_lost(1, true, true);
    writer.set_lost(12, 3);
    let bytes = writer.finish_into().unwrap().1.into_inner();
    assert_eq!(bytes.u32_at(PAYLOAD + logfile::EVENTS_LOST), Some(12));
    assert_eq!(bytes.u32_at(PAYLOAD + logfile::LAYOUT64.buffers_lost), Some(3));
    let flags = buffer::FLAG_EVENTS_LOST | buffer::FLAG_BUFFER_LOST;
    assert_eq!(heads(&bytes).iter().filter(|h| h.flags & flags == flags).count(), 1);
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), small()).unwrap();
    let mut r = RecordBuf::new();
    r.perfinfo(8, 0x0F2E, 2, 0).zeros(2000);
    assert!(writer.write(0, &mut r).is_err());
    r.perfinfo(8, 0x0F2E, 2, 0).zeros(70_000);
    assert!(r.finish().is_err());
    assert!(RecordBuf::new().finish().is_err());
}
