//! Traces that are sound in every byte and ask for far more than they are worth.

use super::Bomb;
use crate::mutate::put;
use etwhy_base::Guid;
use etwhy_etl::abi::buffer;
use etwhy_etl::abi::guids::EVENT_METADATA;
use etwhy_etl::abi::header::CHANNEL_TRACELOGGING;
use etwhy_etl::write::{ClassicHead, EventHead, RecordBuf, TraceSetup, TraceWriter, compress_xpress};
use std::io::{Cursor, Result};

/// All of them.
pub static TRACES: &[Bomb] = &[
    Bomb::new(
        "struct-in-struct",
        "a TRACE_EVENT_INFO whose structs hold all that follow, so that fields multiply at each level",
        struct_in_struct,
    ),
    Bomb::new(
        "unpack-all-at-once",
        "small compressed buffers of 16 MiB each, all of which last for the whole trace",
        unpack_all_at_once,
    ),
    Bomb::new(
        "headers-everywhere",
        "a compressed file of bad buffer headers, behind each of which the next sound one is looked for",
        headers_everywhere,
    ),
    Bomb::new(
        "long-names",
        "an array of structs with a long member name: the name is repeated for each byte of payload",
        long_names,
    ),
    Bomb::new("many-fields", "an event with tens of thousands of fields", many_fields),
    Bomb::new("bit-names", "an array of bytes, each of which is a set of 8 bits with long names", bit_names),
    Bomb::new("images", "a hundred thousand images, one over the other, in one process", images),
    Bomb::new(
        "nested-images",
        "images inside of images, and stacks whose addresses lie in all of them",
        nested_images,
    ),
    Bomb::new(
        "one-stack-many-processes",
        "two long stacks, referred to by key from a hundred thousand processes",
        one_stack_many_processes,
    ),
    Bomb::new("identities", "every record of another process and thread", identities),
    Bomb::new(
        "reused-images",
        "one place at which images are loaded and unloaded over and over, each with a sample",
        reused_images,
    ),
    Bomb::new("sessions", "a file of tens of thousands of appended sessions", sessions),
    Bomb::new("names", "volumes and files whose paths are all different and all alike", names),
    Bomb::new("types", "every record of another event type", types),
    Bomb::new("clock", "times from the first to the last that a clock can show", clock),
];

pub(super) type Writer = TraceWriter<Cursor<Vec<u8>>>;

pub(super) const START: i64 = 1_000_000;
pub(super) const PROVIDER: Guid = Guid::from_text("0c0ffee0-1111-2222-3333-444444444444");

pub(super) fn writer(buffer_size: u32) -> Result<Writer> {
    TraceWriter::new(Cursor::new(Vec::new()), TraceSetup { buffer_size, ..TraceSetup::default() })
}

pub(super) fn finish(writer: Writer) -> Result<Vec<u8>> {
    Ok(writer.finish_into()?.1.into_inner())
}

pub(super) fn user_event(id: u16, channel: u8) -> EventHead {
    EventHead {
        provider: PROVIDER,
        id,
        version: 0,
        channel,
        level: 4,
        opcode: 0,
        task: 0,
        keyword: 0,
        tid: 8,
        pid: 4,
        activity: Guid::ZERO,
        flags: 0,
        property: 0,
    }
}

const METADATA: ClassicHead =
    ClassicHead { guid: EVENT_METADATA, opcode: 32, level: 0, version: 0, tid: 8, pid: 4 };

/// A `TRACE_EVENT_INFO` with these properties: flags, in-type (or first member), out-type (or number of
/// members), count, and the offset of the map's name.
pub(super) fn event_info(id: u16, properties: &[(u32, u16, u16, u16, u32)], texts: &[u8]) -> Vec<u8> {
    let mut data = vec![0u8; 112];
    data.splice(0..16, PROVIDER.0);
    put(&mut data, 32, 2, id.into());
    put(&mut data, 100, 4, properties.len() as u64);
    put(&mut data, 104, 4, properties.len() as u64);
    for (flags, first, second, count, map) in properties {
        let at = data.len();
        data.resize(at + 24, 0);
        put(&mut data, at, 4, (*flags).into());
        put(&mut data, at + 8, 2, (*first).into());
        put(&mut data, at + 10, 2, (*second).into());
        put(&mut data, at + 12, 4, (*map).into());
        put(&mut data, at + 16, 2, (*count).into());
    }
    data.extend(texts);
    data
}

fn struct_in_struct() -> Result<Vec<u8>> {
    let mut writer = writer(128 * 1024)?;
    let mut record = RecordBuf::new();
    const N: u16 = 2000;
    let mut properties: Vec<(u32, u16, u16, u16, u32)> =
        (0..N - 1).map(|i| (1u32, i + 1, N - i - 1, 1, 0)).collect();
    properties.push((0, 3, 0, 1, 0));
    record.full(8, START, &METADATA).bytes(&event_info(7, &properties, &[]));
    writer.write(0, &mut record)?;
    record.event(8, START + 1, &user_event(7, 0)).zeros(4000);
    writer.write(0, &mut record)?;
    finish(writer)
}

fn unpack_all_at_once() -> Result<Vec<u8>> {
    let setup = TraceSetup { compressed: true, buffer_size: 1 << 24, ..TraceSetup::default() };
    let mut file = finish(TraceWriter::new(Cursor::new(Vec::new()), setup)?)?;
    let mut record = RecordBuf::new();
    for i in 0..400i64 {
        let mut plain = Vec::new();
        for ticks in [START + i, START + 1_000_000 + i] {
            plain.extend_from_slice(record.perfinfo(8, 0x0F2E, 2, ticks).u64(1).u64(1).finish()?);
        }
        // Padding behind the records, to the largest size of a buffer.
        plain.resize((1 << 24) - buffer::LEN, 0);
        let packed = compress_xpress(&plain);
        let mut head = vec![0u8; buffer::LEN];
        put(&mut head, buffer::BUFFER_SIZE, 4, (buffer::LEN + packed.len()) as u64);
        put(&mut head, buffer::SAVED_OFFSET, 4, 1 << 24);
        put(&mut head, buffer::OFFSET, 4, 1 << 24);
        put(&mut head, buffer::SEQUENCE_NUMBER, 8, i as u64 + 1);
        put(&mut head, buffer::BUFFER_FLAG, 2, buffer::FLAG_COMPRESSED.into());
        file.extend(head);
        // What follows the records is one long run of zeros: a few bytes.
        file.extend(packed);
    }
    Ok(file)
}

fn headers_everywhere() -> Result<Vec<u8>> {
    let setup = TraceSetup { compressed: true, buffer_size: 1 << 24, ..TraceSetup::default() };
    let mut file = finish(TraceWriter::new(Cursor::new(Vec::new()), setup)?)?;
    // A small nominal size makes every look ahead a long one.
    put(&mut file, buffer::LEN + 32, 4, 72);
    for i in 0..40_000u64 {
        let mut head = vec![0u8; buffer::LEN];
        put(&mut head, buffer::BUFFER_SIZE, 4, buffer::LEN as u64);
        put(&mut head, buffer::SAVED_OFFSET, 4, buffer::LEN as u64);
        put(&mut head, buffer::OFFSET, 4, buffer::LEN as u64);
        put(&mut head, buffer::SEQUENCE_NUMBER, 8, i);
        put(&mut head, buffer::BUFFER_FLAG, 2, buffer::FLAG_COMPRESSED.into());
        file.extend(&head);
        file.extend(&head);
        // Something odd in between.
        file.extend([0xA5; 61]);
    }
    Ok(file)
}

/// A TraceLogging item: size, no tags, the event's name, fields.
fn item(fields: &[u8]) -> Vec<u8> {
    let mut item = vec![0, 0, 0];
    item.extend(b"Event\0");
    item.extend(fields);
    let size = item.len() as u64;
    put(&mut item, 0, 2, size);
    item
}

const TYPE_UINT8: u8 = 4;
const TYPE_STRUCT: u8 = 24;

fn tracelogging(items: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Result<Vec<u8>> {
    let mut writer = writer(128 * 1024)?;
    let mut record = RecordBuf::new();
    for (i, (item, payload)) in items.enumerate() {
        record
            .event(8, START + i as i64, &user_event(1, CHANNEL_TRACELOGGING))
            .ext(11, &item)
            .bytes(&payload);
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

fn long_names() -> Result<Vec<u8>> {
    // A variable array of structs with one byte each, whose name has 4,000 characters.
    let mut fields = b"S\0".to_vec();
    fields.extend([TYPE_STRUCT | 0x80 | 0x40, 1]);
    fields.extend([b'n'; 4000]);
    fields.extend([0, TYPE_UINT8]);
    let mut payload = 60_000u16.to_le_bytes().to_vec();
    payload.extend([7; 60_000]);
    let item = item(&fields);
    tracelogging((0..20).map(|_| (item.clone(), payload.clone())))
}

fn many_fields() -> Result<Vec<u8>> {
    tracelogging((0..20u8).map(|n| {
        let fields: Vec<u8> = (0..20_000).flat_map(|_| [b'a' + n, 0, TYPE_UINT8]).collect();
        (item(&fields), vec![1; 2000])
    }))
}

fn bit_names() -> Result<Vec<u8>> {
    let mut writer = writer(128 * 1024)?;
    let mut record = RecordBuf::new();
    let name: Vec<u8> = "Map\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    // An array of 60,000 bytes with that map.
    let info = event_info(7, &[(0x20, 4, 0, 60_000, 112 + 24)], &name);
    record.full(8, START, &METADATA).bytes(&info);
    writer.write(0, &mut record)?;
    let mut map = vec![0u8; 16 + 8 * 8];
    put(&mut map, 4, 4, 2);
    put(&mut map, 8, 4, 8);
    let at = map.len() as u64;
    put(&mut map, 0, 4, at);
    map.extend(&name);
    let at = map.len() as u64;
    map.extend([b'b', 0].repeat(511));
    map.extend([0, 0]);
    for bit in 0..8usize {
        put(&mut map, 16 + 8 * bit, 4, at);
        put(&mut map, 16 + 8 * bit + 4, 4, 1 << bit);
    }
    let mut data = PROVIDER.0.to_vec();
    data.extend(map);
    record.full(8, START + 1, &ClassicHead { opcode: 33, ..METADATA }).bytes(&data);
    writer.write(0, &mut record)?;
    for i in 0..20 {
        record.event(8, START + 2 + i, &user_event(7, 0)).bytes(&vec![0xFF; 60_000]);
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

/// `Image/Load` version 2 with 8-byte pointers.
fn image(record: &mut RecordBuf, ticks: i64, pid: u32, base: u64, size: u64) {
    record.system(8, 0x0A14_u16.rotate_left(8), 2, ticks, pid, 8, (0, 0));
    record.u64(base).u64(size).u32(pid).u32(0).u32(1).u32(0).u64(base).zeros(16).utf16z("\\x.dll");
}

fn images() -> Result<Vec<u8>> {
    let mut writer = writer(64 * 1024)?;
    let mut record = RecordBuf::new();
    for i in 0..100_000u64 {
        image(&mut record, START + i as i64, 100, 0x1_0000_0000 + i * 0x1000, 0x1000);
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

fn nested_images() -> Result<Vec<u8>> {
    const N: u64 = 20_000;
    let mut writer = writer(64 * 1024)?;
    let mut record = RecordBuf::new();
    for i in 0..N {
        image(&mut record, START + i as i64, 100, 0x1_0000_0000 + i * 0x1000, (2 * N - i) * 0x1000);
        writer.write(0, &mut record)?;
    }
    let last = START + N as i64;
    for i in 0..400u64 {
        let ticks = last + i as i64;
        // A sample and its stack of 190 addresses behind all bases.
        record.perfinfo(8, 0x0F2E, 2, ticks).u64(0x1_0000_0000).u32(8).u16(1).u16(0);
        writer.write(0, &mut record)?;
        record.perfinfo(8, 0x1820, 2, ticks).i64(ticks).u32(100).u32(8);
        for frame in 0..190u64 {
            record.u64(0x1_0000_0000 + (N + frame) * 0x1000 + i * 8);
        }
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

fn one_stack_many_processes() -> Result<Vec<u8>> {
    let mut writer = writer(64 * 1024)?;
    let mut record = RecordBuf::new();
    const N: u32 = 20_000;
    for i in 0..N {
        let ticks = START + i64::from(i);
        let (pid, tid) = (1000 + 4 * i, 1_000_000 + 4 * i);
        record.perfinfo(8, 0x0F2E, 2, ticks).u64(0x1_0000_0000).u32(tid).u16(1).u16(0);
        writer.write(0, &mut record)?;
        for (hook, key) in [(0x1825u16, 0xFFFF_8000_0000_0001u64), (0x1826, 0xFFFF_8000_0000_0002)] {
            record.perfinfo(8, hook, 2, ticks).i64(ticks).u32(pid).u32(tid).u64(key);
            writer.write(0, &mut record)?;
        }
    }
    for (key, base) in [(0xFFFF_8000_0000_0001u64, 0xFFFF_F800_0000_0000u64), (0xFFFF_8000_0000_0002, 0x1000)]
    {
        record.perfinfo(8, 0x1824, 2, START + i64::from(N)).u64(key);
        for frame in 0..1000u64 {
            record.u64(base + frame * 16);
        }
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

fn identities() -> Result<Vec<u8>> {
    let mut writer = writer(64 * 1024)?;
    let mut record = RecordBuf::new();
    for i in 0..100_000u32 {
        let ticks = START + i64::from(i);
        // A sample of another thread, at another place, and an end of another process.
        record.perfinfo(8, 0x0F2E, 2, ticks).u64(u64::from(i) * 16).u32(4 * i + 1).u16(1).u16(0);
        writer.write(0, &mut record)?;
        record.compact(8, 0x0302, 2, ticks, 4 * i, 4 * i + 1).u64(i.into()).u32(4 * i).u32(8 * i);
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

fn types() -> Result<Vec<u8>> {
    let mut writer = writer(64 * 1024)?;
    let mut record = RecordBuf::new();
    for i in 0..60_000u32 {
        let mut head = user_event(i as u16, 0);
        head.version = (i >> 16) as u8;
        record.event(8, START + i64::from(i), &head).u32(i);
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

fn reused_images() -> Result<Vec<u8>> {
    let mut writer = writer(64 * 1024)?;
    let mut record = RecordBuf::new();
    for i in 0..40_000i64 {
        image(&mut record, START + 2 * i, 100, 0x1_0000_0000, 0x1000 + (i as u64 % 3) * 0x1000);
        writer.write(0, &mut record)?;
        let ticks = START + 2 * i + 1;
        record.perfinfo(8, 0x0F2E, 2, ticks).u64(0x1_0000_0010).u32(8).u16(1).u16(0);
        writer.write(0, &mut record)?;
        record.perfinfo(8, 0x1820, 2, ticks).i64(ticks).u32(100).u32(8).u64(0x1_0000_0010).u64(0x1_0000_0020);
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

fn sessions() -> Result<Vec<u8>> {
    let setup = TraceSetup { buffer_size: 1024, session_name: "n".repeat(150), ..TraceSetup::default() };
    let one = finish(TraceWriter::new(Cursor::new(Vec::new()), setup)?)?;
    let header = one.get(..1024).unwrap_or(&one);
    Ok(header.repeat(20_000))
}

fn names() -> Result<Vec<u8>> {
    let mut writer = writer(64 * 1024)?;
    let mut record = RecordBuf::new();
    let guid = etwhy_etl::abi::guids::SYSTEM_CONFIG_EX;
    let volume = ClassicHead { guid, opcode: 35, level: 0, version: 0, tid: 8, pid: 4 };
    let path = "\\Device\\HarddiskVolume".to_owned() + &"a".repeat(60);
    for i in 0..5000i64 {
        record.full(8, START + i, &volume).utf16z(&format!("{path}{i}\\")).utf16z("C:\\");
        writer.write(0, &mut record)?;
    }
    for i in 0..20_000u64 {
        record.system(8, 0x0424, 2, START + 5000 + i as i64, 4, 8, (0, 0));
        record.u64(0x1000 + i).utf16z(&format!("{path}x{i}"));
        writer.write(0, &mut record)?;
    }
    finish(writer)
}

fn clock() -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let clocks = [etwhy_etl::write::Clock::Qpc, etwhy_etl::write::Clock::SystemTime];
    for clock in clocks {
        for frequency in [1, 3, 10_000_000, i64::MAX] {
            let setup =
                TraceSetup { clock, perf_freq: frequency, buffer_size: 4096, ..TraceSetup::default() };
            let mut writer = TraceWriter::new(Cursor::new(Vec::new()), setup)?;
            let mut record = RecordBuf::new();
            for ticks in [i64::MIN, -1, 0, 1, START, i64::MAX - 1, i64::MAX] {
                record.perfinfo(8, 0x0F2E, 2, ticks).u64(1).u32(8).u16(u16::MAX).u16(u16::MAX);
                writer.write(0, &mut record)?;
                record.system(8, 0x0301, 4, ticks, 4, 8, (u32::MAX, u32::MAX));
                for _ in 0..20 {
                    record.i64(i64::MIN);
                }
                writer.write(0, &mut record)?;
                record.perfinfo(8, 0x1820, 2, ticks).i64(ticks).u32(4).u32(8).u64(1);
                writer.write(0, &mut record)?;
            }
            if all.is_empty() {
                all = finish(writer)?;
            } else {
                // The sessions stand in one file, as appended ones do.
                all.extend(finish(writer)?);
            }
        }
    }
    Ok(all)
}
