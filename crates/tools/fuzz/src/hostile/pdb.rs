//! A small PDB, written by hand: every kind of record that the reader looks at, in pages of 512 bytes.

const PAGE: usize = 512;

/// The file.
pub fn pdb() -> Vec<u8> {
    msf(&[Vec::new(), information(), types(), dbi(), ids(), publics(), module(), sections(), names(), omap()])
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Header, free page map, then directory and streams, each from a new page on.
fn msf(streams: &[Vec<u8>]) -> Vec<u8> {
    let mut next = 4u32;
    let mut pages = Vec::new();
    for stream in streams {
        let count = stream.len().div_ceil(PAGE) as u32;
        pages.push((next..next + count).collect::<Vec<u32>>());
        next += count;
    }
    let mut directory = words(&[streams.len() as u32]);
    directory.extend(words(&streams.iter().map(|s| s.len() as u32).collect::<Vec<_>>()));
    directory.extend(words(&pages.concat()));
    // The reader of the container wants a first page of 4096 bytes, whatever the size of pages is.
    let mut file = vec![0; (next as usize * PAGE).max(4096)];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = file.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, b"Microsoft C/C++ MSF 7.00\r\n\x1a\x44\x53\0\0\0");
    put(32, &words(&[PAGE as u32, 1, next, directory.len() as u32, 0, 2]));
    put(2 * PAGE, &words(&[3]));
    put(3 * PAGE, &directory);
    for (stream, pages) in streams.iter().zip(&pages) {
        put(pages.first().map_or(0, |page| *page as usize * PAGE), stream);
    }
    file
}

/// Version, signature, age, GUID, and `/names` as stream 8.
fn information() -> Vec<u8> {
    let mut bytes = words(&[20_000_404, 1, 3, 0x3322_1100, 0x7766_5544, 0xBBAA_9988, 0xFFEE_DDCC, 7]);
    bytes.extend(b"/names\0");
    bytes.extend(words(&[1, 1, 1, 1, 0, 0, 8]));
    bytes
}

fn type_stream(records: &[u8]) -> Vec<u8> {
    let mut bytes = words(&[20_040_203, 56, 0x1000, 0x1002, records.len() as u32]);
    bytes.resize(56, 0);
    bytes.extend(records);
    bytes
}

/// A record: length, kind, fields, padded to four bytes.
fn record(kind: u16, fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(fields.concat());
    bytes.resize((bytes.len() + 2).next_multiple_of(4) - 2, 0);
    let mut record = (bytes.len() as u16).to_le_bytes().to_vec();
    record.append(&mut bytes);
    record
}

/// `LF_STRUCTURE`
fn types() -> Vec<u8> {
    type_stream(&record(0x1505, &[&[0; 16], &[4, 0], b"ns::Class\0"]))
}

/// `LF_FUNC_ID` in `LF_STRING_ID`, `LF_MFUNC_ID`
fn ids() -> Vec<u8> {
    let scope = record(0x1605, &[&words(&[0]), b"ns\0"]);
    let function = record(0x1601, &[&words(&[0x1000, 0]), b"inlined\0"]);
    let method = record(0x1602, &[&words(&[0x1000, 0]), b"method\0"]);
    type_stream(&[scope, function, method].concat())
}

/// Header, one module, contributions, optional streams.
fn dbi() -> Vec<u8> {
    let mut modules = vec![0; 64];
    let module = module();
    let (symbols, lines) = split(&module);
    for (at, number) in [(36, symbols as u32), (44, lines as u32)] {
        if let Some(place) = modules.get_mut(at..at + 4) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }
    if let Some(stream) = modules.get_mut(34) {
        *stream = 6;
    }
    modules.extend(b"a.obj\0a.obj\0");
    modules.resize(modules.len().next_multiple_of(4), 0);
    let mut contributions = words(&[0xF12E_BA2D]);
    contributions.extend(words(&[1, 0, 0x200, 0x6000_0020, 0, 0, 0]));
    let optional: Vec<u8> =
        [u16::MAX, u16::MAX, u16::MAX, u16::MAX, 9, 7, u16::MAX, u16::MAX, u16::MAX, u16::MAX, 7]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
    let mut bytes = words(&[u32::MAX, 19_990_903, 2, 0xFFFF, 0xFFFF, 5]);
    bytes.extend(words(&[
        modules.len() as u32,
        contributions.len() as u32,
        0,
        0,
        0,
        0,
        optional.len() as u32,
        0,
    ]));
    bytes.extend([0, 0, 0x64, 0x86, 0, 0, 0, 0]);
    [bytes, modules, contributions, optional].concat()
}

fn publics() -> Vec<u8> {
    let public = |offset: u32, name: &[u8]| record(0x110E, &[&words(&[2, offset]), &[1, 0], name]);
    [public(0x10, b"?f@ns@@YAHH@Z\0"), public(0x80, b"asm\0"), public(0x90, b"_RNvC5crate4main\0")].concat()
}

/// Where the symbols of the module end, and how many bytes of lines follow.
fn split(module: &[u8]) -> (usize, usize) {
    let lines = module.windows(4).position(|w| w == 0xF4u32.to_le_bytes()).unwrap_or(module.len());
    (lines, module.len() - lines)
}

fn module() -> Vec<u8> {
    let procedure = |offset: u32, size: u32, name: &[u8]| {
        let numbers = words(&[0, 0, 0, size, 0, 0, 0x1000, offset]);
        record(0x1110, &[&numbers, &[1, 0, 0], name])
    };
    // ChangeLineOffset 1, ChangeCodeOffset 4, ChangeCodeOffsetAndLineOffset, ChangeFile, ChangeCodeLength 8
    let annotations = [6, 2, 3, 4, 11, 0x24, 5, 0, 4, 8, 0, 0];
    let inner = [12, 3, 2, 0];
    let mut bytes = [
        words(&[4]),
        procedure(0x10, 0x40, b"ns::f\0"),
        record(0x114D, &[&words(&[0, 0, 0x1001]), &annotations]),
        record(0x115D, &[&words(&[0, 0, 0x1002, 1]), &inner]),
        record(0x114E, &[]),
        record(0x114E, &[]),
        record(0x0006, &[]),
        procedure(0x60, 0x10, b"g\0"),
        record(0x0006, &[]),
        record(0x1102, &[&words(&[0, 0, 0, 0x70]), &[1, 0, 6, 0, 0], b"thunk\0"]),
        record(0x112C, &[&[0, 0, 5, 0], &words(&[0x78, 0x10]), &[1, 0, 1, 0]]),
        record(0x1132, &[&words(&[0, 0, 8, 0, 0xA0, 0x10]), &[1, 0, 1, 0]]),
    ]
    .concat();
    // File checksums, inlinee lines, lines.
    bytes.extend(words(&[0xF4, 16, 1, 0, 8, 0]));
    bytes.extend(words(&[0xF6, 28, 0, 0x1001, 0, 30, 0x1002, 8, 40]));
    let lines = [0x10, 1, 0x40, 0, 3, 36, 0, 0x8000_000A, 8, 0x8000_000B, 0x20, 0x80F0_0F00];
    bytes.extend(words(&[0xF2, lines.len() as u32 * 4]));
    bytes.extend(words(&lines));
    bytes
}

fn sections() -> Vec<u8> {
    let mut header = b".text\0\0\0".to_vec();
    header.extend(words(&[0x200, 0x1000, 0x200, 0x400, 0, 0, 0, 0x6000_0020]));
    header
}

fn names() -> Vec<u8> {
    let mut bytes = words(&[0xEFFE_EFFE, 1, 16]);
    bytes.extend(b"\0c:\\a.c\0c:\\b.h\0\0");
    bytes
}

fn omap() -> Vec<u8> {
    words(&[0x1000, 0x1000, 0x1060, 0x1100, 0x1070, 0, 0x1078, 0x1078])
}

/// An image of one section with two exports: `Go`, and `To`, which is forwarded.
pub fn image() -> Vec<u8> {
    let mut file = vec![0u8; 0x400];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = file.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, b"MZ");
    put(0x3C, &words(&[0x40]));
    // Machine, one section, time stamp, sizes of the optional header.
    put(0x40, b"PE\0\0\x64\x86\x01\0\x78\x56\x34\x12\0\0\0\0\0\0\0\0\xF0\0\x22\x20");
    put(0x58, &[0x0B, 0x02]);
    put(0x58 + 32, &words(&[0x1000, 0x200]));
    put(0x58 + 56, &words(&[0x2000, 0x200]));
    put(0x58 + 108, &words(&[16, 0x1100, 0x80]));
    put(0x148, b".text\0\0\0");
    put(0x150, &words(&[0x200, 0x1000, 0x200, 0x200]));
    // Export directory, addresses, names, ordinals.
    put(0x300 + 12, &words(&[0x1160, 1, 2, 2, 0x1128, 0x1130, 0x1138]));
    put(0x328, &words(&[0x1008, 0x1150, 0x1140, 0x1148, 0x0001_0000]));
    put(0x340, b"Go\0");
    put(0x348, b"To\0");
    put(0x350, b"other.To\0");
    put(0x360, b"seed.dll\0");
    file
}
