//! Files in which thousands of records name the same bytes, as only hostile ones do: what they cost must not grow faster than they do.

use etwhy_symbols::{NameStyle, SymbolError, exports, pdb};
use std::path::Path;

const PAGE: usize = 4096;

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A container of these streams ("The MSF File Format", LLVM documentation).
fn msf(streams: &[Vec<u8>]) -> Vec<u8> {
    // Header, two maps of free pages, the list of pages of the directory, the directory.
    let mut next = 5;
    let pages: Vec<Vec<u32>> = streams
        .iter()
        .map(|stream| {
            let first = next;
            next += u32::try_from(stream.len().div_ceil(PAGE)).unwrap();
            (first..next).collect()
        })
        .collect();
    let sizes: Vec<u32> = streams.iter().map(|stream| u32::try_from(stream.len()).unwrap()).collect();
    let directory = words(&[&[sizes.len() as u32], sizes.as_slice(), &pages.concat()].concat());
    assert!(directory.len() <= PAGE);
    let mut file =
        [&b"Microsoft C/C++ MSF 7.00\r\n\x1a\x44\x53\0\0\0"[..], &words(&[4096, 1, next])].concat();
    file.extend(words(&[u32::try_from(directory.len()).unwrap(), 0, 3]));
    file.resize(3 * PAGE, 0);
    file.extend(words(&[4]));
    for part in [&directory].into_iter().chain(streams) {
        file.resize(file.len().next_multiple_of(PAGE), 0);
        file.extend(part);
    }
    file.resize(next as usize * PAGE, 0);
    file
}

/// A record: length, kind, fields, padded to four bytes.
fn record(kind: u16, fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [&kind.to_le_bytes()[..], &fields.concat()].concat();
    bytes.resize((bytes.len() + 2).next_multiple_of(4) - 2, 0);
    [&u16::try_from(bytes.len()).unwrap().to_le_bytes()[..], &bytes].concat()
}

/// A procedure of the first section.
fn procedure(offset: u32, size: u32, name: &str) -> Vec<u8> {
    let numbers = words(&[0, 0, 0, size, 0, 0, 0, offset]);
    record(0x1110, &[&numbers, &[1, 0, 0], name.as_bytes(), &[0]])
}

/// A PDB of compilands that all have these symbols, rearranged by a map if there is one.
fn database(modules: u32, symbols: &[u8], map: &[u8]) -> Vec<u8> {
    let stream = [&words(&[4])[..], symbols].concat();
    let mut module = vec![0; 64];
    module[34] = 5;
    module[36..40].copy_from_slice(&words(&[u32::try_from(stream.len()).unwrap()]));
    module.extend(b"a\0a\0");
    let list = module.repeat(modules as usize);
    let map_stream = if map.is_empty() { u16::MAX } else { 7 };
    let streams = [u16::MAX, u16::MAX, u16::MAX, u16::MAX, map_stream, 6];
    let optional: Vec<u8> = streams.iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut dbi =
        words(&[u32::MAX, 19_990_903, 1, 0xffff, 0xffff, 0xffff, u32::try_from(list.len()).unwrap()]);
    dbi.extend(words(&[0, 0, 0, 0, 0, u32::try_from(optional.len()).unwrap(), 0]));
    dbi.extend([0, 0, 0x64, 0x86, 0, 0, 0, 0]);
    let dbi = [dbi, list, optional].concat();
    let information = words(&[20_000_404, 1, 1, 1, 2, 3, 4, 0]);
    let sections = [&b".text\0\0\0"[..], &words(&[1 << 24, 0x1000, 0, 0, 0, 0, 0, 0])].concat();
    msf(&[Vec::new(), information, Vec::new(), dbi, Vec::new(), stream, sections, map.to_vec()])
}

fn read(file: Vec<u8>) -> Result<etwhy_symbols::ModuleSymbols, SymbolError> {
    pdb::read(file, Path::new("x.pdb"), None, "key")
}

#[test]
fn a_sound_file_is_read() {
    let symbols = read(database(1, &procedure(0x10, 8, "f"), &[])).unwrap();
    assert_eq!(symbols.lookup(0x1012).unwrap().function.show(NameStyle::Short), "f");
}

#[test]
fn compilands_that_share_a_stream() {
    let symbols: Vec<u8> = (0..4000).flat_map(|at| procedure(at * 16, 8, "f")).collect();
    let error = read(database(2000, &symbols, &[])).unwrap_err();
    assert!(error.to_string().contains("share"), "{error}");
}

#[test]
fn ranges_over_all_of_a_map() {
    let map: Vec<u8> = (0..20_000).flat_map(|row| words(&[0x1000 + row * 8, 0x1000 + row * 16])).collect();
    let symbols: Vec<u8> = (0..10_000).flat_map(|at| procedure(at, u32::MAX, "f")).collect();
    let file = database(1, &symbols, &map);
    let size = file.len();
    let symbols = read(file).unwrap();
    assert!(symbols.bytes().len() < 64 * size, "{} of {size} bytes", symbols.bytes().len());
}

/// A library whose exports are named after the ends of one long text.
#[test]
fn names_that_overlap() {
    let image = |count: u32, length: usize| {
        // Directory, addresses, pointers to names, ordinals, text.
        let at = |part: u32| 0x1000 + 40 + part * 4 * count;
        let text = at(2) + 2 * count;
        let mut data = words(&[0, 0, 0, text, 1, count, count, at(0), at(1), at(2)]);
        data.extend((0..count).flat_map(|number| words(&[0x10_0000 + number])));
        data.extend((0..count).flat_map(|number| words(&[text + number])));
        data.extend((0..count).flat_map(|number| u16::try_from(number).unwrap().to_le_bytes()));
        data.extend("x".repeat(length).bytes().chain([0]));
        let size = u32::try_from(data.len()).unwrap();
        let mut file = [&b"MZ"[..], &[0; 58], &words(&[0x40]), b"PE\0\0", &[0x64, 0x86, 1, 0]].concat();
        file.extend(words(&[0, 0, 0, 0x2022_00f0]));
        let mut optional = [&[0x0b, 2, 0, 0][..], &words(&[0, 0, 0, 0, 0, 0x8000_0000, 1])].concat();
        optional.extend(words(&[0x1000, 0x200, 6, 0, 6, 0, 0x100_0000, 0x400, 0, 2]));
        optional.resize(108, 0);
        optional.extend(words(&[16, 0x1000, size]));
        optional.resize(240, 0);
        file.extend(optional);
        file.extend(b".rdata\0\0");
        file.extend(words(&[size, 0x1000, size, 0x400, 0, 0, 0, 0x4000_0040]));
        file.resize(0x400, 0);
        [file, data].concat()
    };
    let read = |file: &[u8]| exports::read(file, Path::new("x.dll"), None, "key");
    let symbols = read(&image(3, 10)).unwrap();
    assert_eq!(symbols.lookup(0x10_0001).unwrap().function.show(NameStyle::Short), "x".repeat(9));
    let error = read(&image(60_000, 400_000)).unwrap_err();
    assert!(error.to_string().contains("overlap"), "{error}");
}
