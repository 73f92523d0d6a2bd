//! What mutants are made from: traces that the writer makes, and the corpus of real ones if it is there.

use crate::etl_mutate::buffers;
use etwhy_base::Guid;
use etwhy_decode::kernel::KernelLayouts;
use etwhy_etl::abi::guids::EVENT_METADATA;
use etwhy_etl::abi::header::CHANNEL_TRACELOGGING;
use etwhy_etl::write::{
    ClassicHead, EventHead, MessageHead, RecordBuf, TlField, TraceSetup, TraceWriter, tracelogging_schema,
    tracelogging_traits,
};
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// A named piece of input.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Where it comes from.
    pub name: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Where the corpus is: `ETWHY_CORPUS`, or beside the repository.
pub fn corpus_folder() -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/corpus");
    std::env::var_os("ETWHY_CORPUS").map_or_else(|| PathBuf::from(default), PathBuf::from)
}

/// Files under `folder` whose names end in one of `endings`, in the order of their paths.
pub fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().to_lowercase();
            if path.is_dir() {
                open.push(path);
            } else if endings.iter().any(|e| name.ends_with(e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Traces: those of the corpus, cut to about `limit` bytes, and written ones.
pub fn traces(corpus: &Path, limit: usize) -> Vec<Seed> {
    let mut seeds = written();
    for path in files(corpus, &[".etl"]) {
        if let Ok(data) = std::fs::read(&path) {
            let name = path.strip_prefix(corpus).unwrap_or(&path).display().to_string();
            seeds.push(Seed { name, data: cut(data, limit) });
        }
    }
    seeds
}

/// The first buffers of a trace and its last ones, about `limit` bytes together: rundowns and descriptions
/// of events stand at the end.
pub fn cut(data: Vec<u8>, limit: usize) -> Vec<u8> {
    if data.len() <= limit {
        return data;
    }
    let all = buffers(&data);
    let mut head = Vec::new();
    let mut tail = Vec::new();
    let mut size = 0;
    let (mut from, mut to) = (0, all.len());
    while from < to && size < limit {
        let forward = from <= all.len() - to;
        let number = if forward { from } else { to - 1 };
        let Some(&(at, len)) = all.get(number) else { break };
        size += len;
        if forward {
            from += 1;
            head.push((at, len));
        } else {
            to -= 1;
            tail.push((at, len));
        }
    }
    head.extend(tail.into_iter().rev());
    let mut out = Vec::with_capacity(size);
    for (at, len) in head {
        out.extend_from_slice(data.get(at..at + len).unwrap_or(&[]));
    }
    out
}

/// Traces made on the spot: every kernel layout with both pointer sizes, every kind of record, compressed
/// and not, and a scenario with processes, images and stacks that fit together.
pub fn written() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (name, pointer, compressed) in [("zoo64", 8, false), ("zoo32", 4, false), ("zoo64-packed", 8, true)] {
        if let Some(data) = zoo(pointer, compressed) {
            seeds.push(Seed { name: name.into(), data });
        }
    }
    if let Some(data) = synth(SCENARIO, "scenario.toml", 1.0) {
        seeds.push(Seed { name: "scenario".into(), data });
    }
    for (name, text) in TABLES {
        // Small buffers: a mutant should hit records, not the room behind them.
        let text = text.replacen("[machine]", "[machine]\nbuffer_size = \"4KB\"", 1);
        // Small traces: many mutants. What happens a few times only may vanish when it is scaled down.
        let data = [0.03, 0.2, 1.0].iter().find_map(|&scale| synth(&text, name, scale));
        seeds.extend(data.map(|data| Seed { name: (*name).into(), data }));
    }
    seeds
}

macro_rules! tables {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../../scenarios/tables/", $name, ".toml")))),*]
    };
}

/// Scenarios with the events of each table.
pub const TABLES: &[(&str, &str)] = tables!(
    "alpc" "cpu" "cswitch" "disk_io" "dpc_isr" "file_io" "handle" "loggers" "minifilter" "network" "page_fault"
    "pool" "power" "process" "registry" "syscall" "ui_delay" "virtual_alloc"
);

/// A small scenario that uses everything that the writer of scenarios can do.
pub const SCENARIO: &str = include_str!("scenario.toml");

fn synth(text: &str, name: &str, scale: f64) -> Option<Vec<u8>> {
    let mut scenario = etwhy_synth::Scenario::parse(text, name).ok()?;
    scenario.scale(scale).ok()?;
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("scenario.etl");
    etwhy_synth::write(&scenario, &path, &mut |_| {}).ok()?;
    std::fs::read(path).ok()
}

/// One of every event of the kernel layouts, and one of every other kind of record.
fn zoo(pointer: u8, compressed: bool) -> Option<Vec<u8>> {
    let setup = TraceSetup {
        pointer_size: pointer,
        processors: 2,
        buffer_size: 16 * 1024,
        compressed,
        ..TraceSetup::default()
    };
    let mut ticks = setup.first_ticks();
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), setup).ok()?;
    let mut record = RecordBuf::new();
    let layouts = KernelLayouts::builtin();
    for hook in 0..0x2000u16 {
        let (group, ty) = ((hook >> 8) as u8, hook as u8);
        for version in (0..8u16).filter(|&v| layouts.schema(group, ty, v).is_some()) {
            ticks += 100;
            record.system(pointer, hook, version as u8, ticks, 4 + u32::from(version), 8, (0, 0));
            for i in 0..24u16 {
                record.u32(u32::from(hook ^ i) << (i % 16));
            }
            writer.write(u16::from(ty & 1), &mut record).ok()?;
        }
    }
    user_records(pointer, ticks, &mut record, &mut writer)?;
    Some(writer.finish_into().ok()?.1.into_inner())
}

const PROVIDER: Guid = Guid::from_text("0c0ffee0-1111-2222-3333-444444444444");

fn user_records(
    pointer: u8,
    mut ticks: i64,
    record: &mut RecordBuf,
    writer: &mut TraceWriter<Cursor<Vec<u8>>>,
) -> Option<()> {
    let head = EventHead {
        provider: PROVIDER,
        id: 7,
        version: 1,
        channel: 0,
        level: 4,
        opcode: 1,
        task: 2,
        keyword: 3,
        tid: 8,
        pid: 4,
        activity: PROVIDER,
        flags: 0,
        property: 0,
    };
    let mut step = || {
        ticks += 100;
        ticks
    };
    let classic = ClassicHead { guid: EVENT_METADATA, opcode: 32, level: 0, version: 0, tid: 8, pid: 4 };
    record.full(pointer, step(), &classic).bytes(&event_info());
    writer.write(0, record).ok()?;
    record.full(pointer, step(), &ClassicHead { opcode: 33, ..classic }).bytes(&map_info());
    writer.write(0, record).ok()?;
    for i in 0..4u32 {
        record.event(pointer, step(), &head).stack(0, &[0xFFFF_F800_0000_1000, 0x7FF6_0000_1000]);
        record.u32(i).u32(2).utf16z("name").u64(9);
        writer.write(1, record).ok()?;
    }
    let manifest = EventHead { id: 0xFFFE, opcode: 0xFE, ..head };
    record.event(pointer, step(), &manifest).bytes(&[1, 1, 0, 0x5B, 1, 0, 0, 0]).bytes(MANIFEST.as_bytes());
    writer.write(0, record).ok()?;
    record.event(pointer, step(), &EventHead { id: 9, ..head }).u32(5).utf16z("x");
    writer.write(0, record).ok()?;
    let (item, traits) = tracelogging();
    record.event(pointer, step(), &EventHead { channel: CHANNEL_TRACELOGGING, ..head });
    record.ext(11, &item).ext(12, &traits).u32(1).utf16z("text").u16(2).u8(3).u8(4);
    writer.write(0, record).ok()?;
    let message = MessageHead {
        number: 10,
        sequence: Some(1),
        guid: Some(PROVIDER),
        component: None,
        ticks: Some(step()),
        tid_pid: Some((8, 4)),
        pointer,
    };
    record.message(0, &message).u32(1).text_z("wpp");
    writer.write(0, record).ok()?;
    record.instance(pointer, step(), &classic, (1, 2, PROVIDER)).zeros(32);
    writer.write(0, record).ok()
}

/// A TraceLogging description and the traits of its provider.
pub fn tracelogging() -> (Vec<u8>, Vec<u8>) {
    let field = |name: &str, in_type, count| TlField { name: name.into(), in_type, out_type: 0, count };
    let fields = [field("A", 8, 0), field("B", 1, 0), field("C", 4, 2)];
    (tracelogging_schema("Event", &fields), tracelogging_traits("Provider"))
}

/// A manifest with every part that manifests have.
pub const MANIFEST: &str = include_str!("manifest.xml");

fn put(data: &mut [u8], at: usize, bytes: &[u8]) {
    crate::mutate::put(data, at, 0, 0);
    for (i, byte) in bytes.iter().enumerate() {
        crate::mutate::put(data, at + i, 1, (*byte).into());
    }
}

fn add_text(data: &mut Vec<u8>, at: usize, text: &str) {
    let offset = data.len() as u32;
    put(data, at, &offset.to_le_bytes());
    data.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
}

/// A `TRACE_EVENT_INFO` with numbers, a counted array of structs, a string and a map.
pub fn event_info() -> Vec<u8> {
    const FIRST: usize = 112;
    const PROPERTY: usize = 24;
    // Name, flags, in-type (or first member), out-type (or members), count.
    const PROPERTIES: [(&str, u32, u16, u16, u16); 6] = [
        ("Id", 0, 8, 0, 1),
        ("Count", 0, 8, 0, 1),
        ("Text", 0, 1, 0, 1),
        ("Items", 1 | 4, 4, 2, 1),
        ("Key", 0, 6, 0, 1),
        ("Value", 0, 4, 0, 1),
    ];
    let mut data = vec![0u8; FIRST + PROPERTIES.len() * PROPERTY];
    put(&mut data, 0, &PROVIDER.0);
    put(&mut data, 32, &[7, 0, 1, 0, 4, 1, 2, 0]);
    put(&mut data, 100, &[PROPERTIES.len() as u8, 0, 0, 0, 4]);
    add_text(&mut data, 52, "Provider");
    add_text(&mut data, 68, "Task");
    add_text(&mut data, 72, "Start");
    add_text(&mut data, 76, "%1 of %2: %3");
    for (i, (name, flags, first, second, count)) in PROPERTIES.into_iter().enumerate() {
        let at = FIRST + i * PROPERTY;
        add_text(&mut data, at + 4, name);
        put(&mut data, at, &flags.to_le_bytes());
        put(&mut data, at + 8, &first.to_le_bytes());
        put(&mut data, at + 10, &second.to_le_bytes());
        put(&mut data, at + 16, &count.to_le_bytes());
        if name == "Key" {
            add_text(&mut data, at + 12, "Map");
        }
    }
    data
}

/// An `EVENT_MAP_INFO` with its provider in front.
pub fn map_info() -> Vec<u8> {
    let mut data = vec![0u8; 16 + 16 + 3 * 8];
    put(&mut data, 0, &PROVIDER.0);
    put(&mut data, 16 + 8, &[3]);
    let mut map = data.split_off(16);
    add_text(&mut map, 0, "Map");
    for (i, name) in ["zero", "one", "two"].into_iter().enumerate() {
        put(&mut map, 16 + 8 * i + 4, &[i as u8]);
        add_text(&mut map, 16 + 8 * i, name);
    }
    data.extend(map);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_traces_hold_what_they_should() {
        let seeds = written();
        assert_eq!(seeds.len(), 4 + TABLES.len(), "{:?}", seeds.iter().map(|s| &s.name).collect::<Vec<_>>());
        assert!(seeds.iter().all(|s| s.data.len() > 20_000));
        let info = etwhy_decode::metadata::event_info(&event_info()).unwrap();
        assert_eq!((info.schema.fields.len(), info.maps.len()), (4, 1));
        assert_eq!(etwhy_decode::metadata::map_info(&map_info()).unwrap().1.entries.len(), 3);
        assert_eq!(etwhy_decode::manifest::parse(MANIFEST).unwrap()[0].events.len(), 2);
    }

    #[test]
    fn cuts_keep_both_ends() {
        let whole = &written()[0].data;
        let short = cut(whole.clone(), 40_000);
        assert!(short.len() < 60_000 && short.len() < whole.len());
        assert!(whole.starts_with(&short[..16384]));
        assert!(whole.ends_with(&short[short.len() - 16384..]));
    }
}
