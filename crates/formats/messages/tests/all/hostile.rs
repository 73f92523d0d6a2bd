//! Small files that name the same bytes over and over, as only hostile ones do. Each of them took all memory or never ended.

use etwhy_messages::build::{BuildOptions, build_file};
use etwhy_messages::pe;
use std::path::PathBuf;

/// Where the resources stand, in the file and in memory.
const RAW: u32 = 0x400;
const RVA: u32 = 0x1000;
/// In directories: what follows is a directory, or a name.
const SUB: u32 = 1 << 31;

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A 64-bit library with these resources (PE format: DOS header, COFF header, optional header, one section).
fn library(resources: &[u8]) -> Vec<u8> {
    let size = u32::try_from(resources.len()).unwrap();
    let mut file = [&b"MZ"[..], &[0; 58], &words(&[0x80]), &[0; 64], b"PE\0\0"].concat();
    file.extend([0x64, 0x86, 1, 0]);
    file.extend(words(&[0, 0, 0, 0x2022_00f0]));
    let mut optional = [&[0x0b, 2, 14, 0][..], &words(&[0, 0, 0, 0, RVA, 0x8000_0000, 1])].concat();
    optional.extend(words(&[0x1000, 0x200, 6, 0, 6, 0, RVA + size.next_multiple_of(0x1000), RAW, 0, 2]));
    optional.resize(108, 0);
    optional.extend(words(&[16, 0, 0, 0, 0, RVA, size]));
    optional.resize(240, 0);
    file.extend(optional);
    file.extend(b".rsrc\0\0\0");
    file.extend(words(&[size, RVA, size, RAW, 0, 0, 0, 0x4000_0040]));
    file.resize(RAW as usize, 0);
    file.extend(resources);
    file
}

/// A directory of resources.
fn directory(named: u16, ids: u16, entries: impl Iterator<Item = [u32; 2]>) -> Vec<u8> {
    let mut out = words(&[0, 0, 0]);
    out.extend(named.to_le_bytes().into_iter().chain(ids.to_le_bytes()));
    out.extend(entries.flat_map(|entry| words(&entry)));
    out
}

/// A resource with this name or number (without a name), in so many languages that are the same bytes.
fn resource(kind: u32, name: &str, languages: u16, data: &[u8]) -> Vec<u8> {
    let at = 48 + 16 + 8 * u32::from(languages);
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let named = u16::from(!name.is_empty());
    let kind = if named == 1 { SUB | (at + 16) } else { kind };
    let mut out = directory(named, 1 - named, [[kind, SUB | 24]].into_iter());
    out.extend(directory(0, 1, [[1, SUB | 48]].into_iter()));
    out.extend(directory(0, languages, (0..u32::from(languages)).map(|language| [1024 + language, at])));
    let begin = (at + 18 + u32::try_from(name.len()).unwrap()).next_multiple_of(16);
    out.extend(words(&[RVA + begin, u32::try_from(data.len()).unwrap(), 0, 0]));
    out.extend(u16::try_from(name.len() / 2).unwrap().to_le_bytes());
    out.extend(name);
    out.resize(begin as usize, 0);
    out.extend(data);
    library(&out)
}

/// A block of empty messages.
fn empty_messages(count: u32) -> Vec<u8> {
    let mut table = words(&[1, 0, count - 1, 16]);
    table.extend((0..count).flat_map(|_| [4, 0, 1, 0]));
    table
}

/// Providers that all have the same elements, all of which are one.
fn providers(count: u32, elements: u32, element: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let wevt = 16 + 20 * count;
    let at = wevt + 20 + 8 * elements;
    let mut out = [&b"CRIM"[..], &words(&[0, 0x0001_0003, count])].concat();
    out.extend((0..count).flat_map(|number| words(&[number, 0, 0, 0, wevt])));
    out.extend(b"WEVT");
    out.extend(words(&[0, u32::MAX, elements, 0]));
    out.extend((0..elements).flat_map(|_| words(&[at, 0])));
    out.extend(element(at));
    out
}

fn maps(count: u32) -> impl Fn(u32) -> Vec<u8> {
    move |at| {
        let mut out = [&b"MAPS"[..], &words(&[0, count])].concat();
        out.extend((0..count).flat_map(|_| words(&[at + 12 + 4 * count])));
        out.extend(b"VMAP");
        out.extend(words(&[0, 0, 0, 0]));
        out
    }
}

fn templates(count: u32) -> impl Fn(u32) -> Vec<u8> {
    move |_| {
        let one = [&b"TEMP"[..], &words(&[40, 0, 0, 0, 0, 0, 0, 0, 0])].concat();
        [&b"TTBL"[..], &words(&[0, count]), &one.repeat(count as usize)].concat()
    }
}

#[test]
fn sound_resources_are_read() {
    let image = pe::read(resource(11, "", 3, &empty_messages(1)).as_slice()).unwrap();
    assert_eq!((image.messages.len(), image.damage.as_slice()), (3, [].as_slice()));
    // Each kind of element once.
    let one = providers(1, 1, maps(2));
    let image = pe::read(resource(0, "WEVT_TEMPLATE", 1, &one).as_slice()).unwrap();
    assert!(!image.manifest.providers[0].maps.is_empty());
    assert_eq!(image.damage, Vec::<String>::new());
}

#[test]
fn what_stands_once_is_not_read_a_million_times() {
    // Three levels of one directory that leads to itself.
    let endless = directory(0, 60_000, (0..60_000).map(|_| [11, SUB]));
    assert!(pe::read(library(&endless).as_slice()).unwrap().is_empty());
    let files = [
        resource(11, "", 4000, &empty_messages(16_000)),
        resource(0, "WEVT_TEMPLATE", 1, &providers(2000, 64, maps(20_000))),
        resource(0, "WEVT_TEMPLATE", 1, &providers(2000, 64, templates(20_000))),
    ];
    for file in files {
        let image = pe::read(file.as_slice()).unwrap();
        let of = |provider: &etwhy_messages::wevt::Provider| provider.maps.len() + provider.templates.len();
        let read = image.messages.len() + image.manifest.providers.iter().map(of).sum::<usize>();
        assert!(read > 0 && read <= file.len(), "{read} of {} bytes", file.len());
        assert!(!image.damage.is_empty(), "what was left out must be named");
    }
}

/// A hive whose one key has the same long value a hundred thousand times.
fn hive() -> Vec<u8> {
    const BINS: usize = 4096;
    let mut out = vec![0; BINS];
    out[..4].copy_from_slice(b"regf");
    out[36..40].copy_from_slice(&words(&[0]));
    let mut put = |data: Vec<u8>| {
        let size = (data.len() + 4).next_multiple_of(8);
        let at = u32::try_from(out.len() - BINS).unwrap();
        out.extend((-i32::try_from(size).unwrap()).to_le_bytes());
        out.extend(&data);
        out.resize(BINS + at as usize + size, 0);
        at
    };
    // The root takes 96 bytes, and all cells stand in this order.
    let names = ["Microsoft", "Windows", "CurrentVersion", "WINEVT", "Publishers", "{0}"];
    let key = |name: &str, subkeys: u32, values: [u32; 2]| {
        let mut cell = [&b"nk\x20\0"[..], &[0; 68], &[u8::try_from(name.len()).unwrap(), 0, 0, 0]].concat();
        cell[20..24].copy_from_slice(&words(&[u32::from(subkeys > 0)]));
        cell[28..32].copy_from_slice(&words(&[subkeys]));
        cell[36..44].copy_from_slice(&words(&values));
        cell.extend(name.as_bytes());
        cell.resize(92, 0);
        cell
    };
    let count = 100_000;
    for (number, name) in ["root"].iter().chain(&names).enumerate() {
        // A key and its list of one subkey take 96 and 16 bytes.
        let at = u32::try_from(number).unwrap() * 112;
        let last = number == names.len();
        let values = if last { [count, at + 112] } else { [0, 0] };
        assert_eq!(put(key(name, if last { 0 } else { at + 96 }, values)), at);
        put([&b"li\x01\0"[..], &words(&[at + 112])].concat());
    }
    let list = u32::try_from(names.len() + 1).unwrap() * 112;
    let value = list + (4 * count + 4).next_multiple_of(8);
    assert_eq!(put(words(&[value]).repeat(count as usize)), list);
    let mut one = [&b"vk"[..], &[0; 18]].concat();
    one[4..16].copy_from_slice(&words(&[1 << 20, value + 24, 1]));
    assert_eq!(put(one), value);
    put(vec![b'x'; 1 << 20]);
    out
}

#[test]
fn registries_and_folders_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("files")).unwrap();
    std::fs::write(at("files/SOFTWARE"), hive()).unwrap();
    // A line that goes on half a million times.
    let endless = format!("[x]\r\n{}hex\\\r\n{}", "a".repeat(1 << 20), "\\\r\n".repeat(1 << 19));
    std::fs::write(at("files/x.reg"), endless).unwrap();
    let (sources, db) = ([at("files")], at("m.db"));
    // Names that others use for what is not whole.
    let theirs: [PathBuf; 2] = [at("m.db.part"), at("m.db.new")];
    for file in &theirs {
        std::fs::write(file, "theirs").unwrap();
    }
    let build = |force| build_file(&sources, &db, &BuildOptions::default(), force, &mut |_| {});
    let report = build(false).unwrap();
    assert!(report.failed.iter().any(|line| line.contains("over and over")), "{:?}", report.failed);
    assert!(build(false).is_err() && build(true).is_ok());
    assert!(theirs.iter().all(|file| std::fs::read(file).unwrap() == b"theirs"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
}
