//! Damage that checksums do not tell, because the chunk has none or was written with it, is counted whichever way a record is read.

use crate::common;
use etwhy_evtx::binxml::{Decoder, Event, Fault};
use etwhy_evtx::filter::Filter;
use etwhy_evtx::read::{Damage, LogFile, RecordRef, anomalies};
use etwhy_evtx::scan::{Reader, ScanOptions, scan};
use etwhy_evtx::tables::{Options, make};
use std::path::{Path, PathBuf};

const CHUNK: usize = 65_536;

/// Reads all fields and counts records.
struct Fields;

impl Reader for Fields {
    type Output = ();

    fn record(
        &mut self,
        decoder: &mut Decoder,
        _: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        decoder.fields(&event?, &mut |_, _| {})
    }

    fn finish(&mut self) {}
}

/// Stretches of binary XML in a chunk, with the event ids of their records.
type Records = Vec<(usize, usize, u16)>;

/// The records of a chunk without a template.
fn without_template(log: &LogFile, chunk: usize) -> Records {
    let place = &log.chunks[chunk];
    let mut data = Vec::new();
    let mut damage = Damage::default();
    let chunk = etwhy_evtx::read::Chunk::read(log, place, &mut data, &mut damage).unwrap();
    let mut decoder = Decoder::default();
    decoder.next_chunk();
    let mut found = Vec::new();
    for record in chunk.records(&mut Damage::default()) {
        let (from, to) = record.xml();
        // Fragment header, then an element: an instance of a template has 0x0C there.
        if matches!(chunk.data()[from + 4] & !0x40, 0x01)
            && let Ok(event) = decoder.event(chunk.data(), from, to)
        {
            found.push((from, to, decoder.system(&event).event_id));
        }
    }
    found
}

/// A log of the corpus with many records without a template in its first chunk.
fn log() -> Option<(PathBuf, Records)> {
    let logs = common::logs();
    let found = logs.iter().find_map(|path| {
        let log = LogFile::open(path, path).ok()?;
        let records = if log.chunks.is_empty() { Vec::new() } else { without_template(&log, 0) };
        (records.len() > 3 && log.chunks[0].offset == 4096).then(|| (path.clone(), records))
    });
    assert!(logs.is_empty() || found.is_some(), "no log of the corpus has records without a template");
    found
}

/// A log of the first chunk of another, twice, without checksums and with some bytes changed.
fn changed(from: &Path, name: &str, change: impl Fn(&mut [u8])) -> (PathBuf, LogFile) {
    let data = std::fs::read(from).unwrap();
    let mut out = data[..4096].to_vec();
    let mut chunk = data[4096..4096 + CHUNK].to_vec();
    // The flag "no checksums" of the chunk.
    chunk[120] |= 4;
    out.extend_from_slice(&chunk);
    change(&mut chunk);
    out.extend_from_slice(&chunk);
    let path = std::env::temp_dir().join(format!("etwhy-damage-{}-{name}.evtx", std::process::id()));
    std::fs::write(&path, out).unwrap();
    let log = LogFile::open(&path, &path).unwrap();
    assert_eq!(log.chunks.len(), 2);
    (path, log)
}

fn broken(log: &LogFile) -> u64 {
    let options = ScanOptions { threads: 1, in_order: false };
    scan(log, &options, || Fields, |()| true).unwrap().get(&anomalies::RECORD_BROKEN)
}

#[test]
fn a_record_that_ends_within_its_elements_is_counted() {
    let Some((path, records)) = log() else { return };
    let (from, to, id) = records[1];
    let (file, log) = changed(&path, "open", |chunk| {
        // Its last `EndElement` becomes the end of the document.
        let end = (from..to).rev().find(|at| chunk[*at] == 0x04).unwrap();
        chunk[end] = 0;
    });
    assert_eq!(broken(&log), 1);
    let options = |ids: Vec<u16>| Options {
        threads: 1,
        zero_utc_ns: None,
        records: false,
        fields: etwhy_evtx::tables::Fields::None,
        ids,
        filter: Filter::default(),
        memory: etwhy_table::Memory::with_budget(1 << 28, None),
    };
    // Counting reads no fields; a table of fields does, and says what it found.
    let counted = |ids: Vec<u16>| {
        make(std::slice::from_ref(&log), &options(ids)).unwrap().damage[0].1.get(&anomalies::RECORD_BROKEN)
    };
    assert_eq!((counted(Vec::new()), counted(vec![id])), (0, 1));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_text_that_reaches_behind_its_record_is_counted() {
    let Some((path, records)) = log() else { return };
    let (from, to, _) = records[1];
    let (file, log) = changed(&path, "long", |chunk| {
        // The last value that is a string, 0x05 0x01 and its length: one that reaches the record behind.
        let at = (from..to - 4).rev().find(|at| chunk[*at] == 0x05 && chunk[*at + 1] == 0x01).unwrap();
        let units = u16::try_from((to + 8 - at) / 2).unwrap();
        chunk[at + 2..at + 4].copy_from_slice(&units.to_le_bytes());
    });
    assert_eq!(broken(&log), 1);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_name_that_cannot_be_is_not_taken_for_the_one_that_is_expected() {
    let Some((path, records)) = log() else { return };
    let from = records[0].0;
    let (file, log) = changed(&path, "name", |chunk| {
        // Fragment header (4 bytes), token, size of the element (4 bytes), offset of its name.
        chunk[from + 9..from + 13].fill(0xFF);
    });
    assert!(broken(&log) >= 1, "a broken name was not noticed");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_damaged_template_is_not_taken_from_another_log() {
    let Some(path) = common::logs().into_iter().find(|path| path.ends_with("Security_1_record.evtx")) else {
        return;
    };
    let data = std::fs::read(&path).unwrap();
    // Behind the header of the first record: fragment header, token, version, the first bytes of the template's GUID and where its
    // definition is: here. It begins with the offset of the next, then the GUID follows.
    let instance = 4096 + 512 + 24 + 5;
    let id = data[instance + 1..instance + 5].to_vec();
    assert_eq!(data[instance + 13..instance + 17], id);
    let write = |name: &str, change: bool| {
        let mut data = data.clone();
        data[4096 + 120] |= 4;
        data[instance + 13] ^= u8::from(change);
        let path = std::env::temp_dir().join(format!("etwhy-damage-{}-{name}.evtx", std::process::id()));
        std::fs::write(&path, data).unwrap();
        let log = LogFile::open(&path, &path).unwrap();
        (path, log)
    };
    let ((good_path, good), (bad_path, bad)) = (write("good", false), write("bad", true));
    // Event ids by log, and anomalies of templates.
    let read = |logs: &[&LogFile]| {
        let paths: Vec<&PathBuf> = logs.iter().map(|log| &log.path).collect();
        let logs: Vec<LogFile> = paths.iter().map(|path| LogFile::open(path, path).unwrap()).collect();
        let options = Options {
            threads: 1,
            zero_utc_ns: None,
            records: true,
            fields: etwhy_evtx::tables::Fields::All,
            ids: vec![1102],
            filter: Filter::default(),
            memory: etwhy_table::Memory::with_budget(1 << 28, None),
        };
        let made = make(&logs, &options).unwrap();
        let rows = |name: &str| made.tables.iter().find(|t| t.name() == name).unwrap().rows();
        let damage = |kind| made.damage.iter().map(|(_, damage)| damage.get(kind)).collect::<Vec<u64>>();
        (rows("event_1102"), damage(&anomalies::NO_TEMPLATE), damage(&anomalies::BORROWED))
    };
    let alone = read(&[&good]);
    assert_eq!(alone, (1, vec![0], vec![0]));
    assert_eq!(read(&[&bad]), (0, vec![1], vec![0]));
    assert_eq!(read(&[&good, &bad]), (1, vec![0, 1], vec![0, 0]));
    assert_eq!(read(&[&bad, &good]), (1, vec![1, 0], vec![0, 0]));
    std::fs::remove_file(good_path).unwrap();
    std::fs::remove_file(bad_path).unwrap();
}

/// Whether all fields of an event can be read a few times, how many there are, and the bytes of its XML. Its template names its only value twice; that value is an instance
/// of the same template, and so on, `levels` times.
fn doubled(levels: usize) -> (bool, u64, usize) {
    const AT: usize = 512;
    const HEADER: [u8; 4] = [0x0F, 1, 1, 0];
    let definition = AT + HEADER.len() + 10;
    let name_at = definition + 24 + HEADER.len() + 11;
    let mut body = HEADER.to_vec();
    body.extend([0x01, 0xFF, 0xFF]);
    body.extend(400u32.to_le_bytes());
    body.extend((name_at as u32).to_le_bytes());
    body.extend([0, 0, 0, 0, 0, 0, 9, 0]);
    body.extend("EventData\0".encode_utf16().flat_map(u16::to_le_bytes));
    body.extend([0x02, 0x0D, 0, 0, 0x21, 0x0D, 0, 0, 0x21, 0x04, 0]);
    let instance = |inline: &[u8], value: &[u8], kind: u8| {
        let mut out = HEADER.to_vec();
        out.extend([0x0C, 1]);
        out.extend(b"GGGG");
        out.extend((definition as u32).to_le_bytes());
        out.extend(inline);
        out.extend(1u32.to_le_bytes());
        out.extend((value.len() as u16).to_le_bytes());
        out.extend([kind, 0]);
        out.extend(value);
        out.push(0);
        out
    };
    let inner = (0..levels).fold(instance(&[], b"x\0", 1), |value, _| instance(&[], &value, 0x21));
    let mut inline = vec![0; 4];
    inline.extend(b"GGGGGGGGGGGGGGGG");
    inline.extend((body.len() as u32).to_le_bytes());
    inline.extend(body);
    let whole = instance(&inline, &inner, 0x21);
    let mut chunk = vec![0; CHUNK];
    chunk[AT..AT + whole.len()].copy_from_slice(&whole);
    let mut decoder = Decoder::default();
    decoder.next_chunk();
    let event = decoder.event(&chunk, AT, AT + whole.len()).unwrap();
    let (mut good, mut fields, mut xml) = (true, 0, Vec::new());
    for _ in 0..20 {
        good &= decoder.fields(&event, &mut |_, _| fields += 1).is_ok();
        good &= decoder.push_xml::<false>(&event, &mut xml).is_ok();
    }
    (good, fields, xml.len())
}

#[test]
fn values_inside_of_values_do_not_double_without_end() {
    let (whole, fields, xml) = doubled(3);
    assert!(whole && fields >= 20 * 8 && xml > 20 * 8, "{fields} {xml}");
    let (whole, fields, xml) = doubled(100);
    assert!(!whole && fields < 1_000_000 && xml < 40_000_000, "{fields} {xml}");
}
