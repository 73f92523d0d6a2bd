//! Portable PDBs against symbolic-ppdb's reading: one written by hand, and all of a folder (`ETWHY_PORTABLE_PDBS`).

use etwhy_base::Guid;
use etwhy_symbols::{ModuleKey, PortableLines, SymbolError, portable};
use etwhy_testkit::small_pdb::small;
use std::path::Path;
use symbolic_ppdb::{PortablePdb, PortablePdbCache, PortablePdbCacheConverter};

/// Methods have few instructions behind their last point.
const BEHIND: u32 = 5_000;

fn key(guid: [u8; 16]) -> ModuleKey {
    ModuleKey { pdb_name: "a.pdb".into(), guid: Guid(guid), age: 1 }
}

/// Compares every IL offset of every method, and tells how many places there are and how many of them have a line.
fn compare(data: &[u8], name: &str) -> (usize, usize) {
    let lines = portable::read(data.to_vec(), Path::new(name), None).unwrap();
    let aligned: Vec<u8> = data.to_vec();
    let pdb = PortablePdb::parse(&aligned).unwrap();
    let id = pdb.pdb_id().unwrap();
    let fields = id.uuid().to_bytes_le();
    assert_eq!(lines.guid(), Guid(fields), "{name}");
    let mut converter = PortablePdbCacheConverter::new();
    converter.process_portable_pdb(&pdb).unwrap();
    let mut cache = Vec::new();
    converter.serialize(&mut cache).unwrap();
    let cache = PortablePdbCache::parse(&cache).unwrap();
    let (mut places, mut known) = (0, 0);
    for method in 0..=lines.methods() + 1 {
        for il in 0..BEHIND {
            let ours = lines.lookup(0x0600_0000 | method, il);
            let theirs = cache.lookup(method, il).map(|l| (l.file_name.to_owned(), l.line));
            assert_eq!(ours, theirs, "{name}: method {method}, IL {il}");
            places += 1;
            known += usize::from(ours.is_some());
        }
    }
    (places, known)
}

fn at(lines: &PortableLines, token: u32, il: u32) -> Option<(String, u32)> {
    lines.lookup(token, il)
}

#[test]
fn a_small_file_is_read_as_it_was_written() {
    let data = small();
    compare(&data, "small");
    let lines = portable::read(data, Path::new("small"), None).unwrap();
    let (a, b) = (r"C:\src\a.cs".to_owned(), "b.cs".to_owned());
    assert_eq!(at(&lines, 0x0600_0001, 0), Some((a.clone(), 10)));
    assert_eq!(at(&lines, 0x0600_0001, 5), Some((a, 10)), "hidden points have no line of their own");
    assert_eq!(at(&lines, 0x0600_0001, 6), Some((b.clone(), 7)));
    assert_eq!(at(&lines, 0x0600_0002, 0), None);
    assert_eq!([1, 2].map(|il| at(&lines, 0x0600_0003, il)), [None, Some((b, 300))]);
    assert_eq!(at(&lines, 0x0A00_0001, 0), None, "a token of another table");
    assert_eq!(at(&lines, 0x0600_0004, 0), None);
}

#[test]
fn another_build_and_damage_are_told() {
    let data = small();
    let read = |data: &[u8], guid| portable::read(data.to_vec(), Path::new("a.pdb"), Some(&key(guid)));
    let mut guid = [0; 16];
    guid.copy_from_slice(&(1..=16).collect::<Vec<u8>>());
    assert!(read(&data, guid).is_ok());
    guid[0] = 99;
    assert!(matches!(read(&data, guid), Err(SymbolError::Mismatch { .. })));
    assert!(matches!(read(b"Microsoft C/C++ MSF 7.00", guid), Err(SymbolError::Unsupported { .. })));
    // Any byte may be wrong, and any end missing: lookups end without a panic.
    for n in 0..data.len() {
        for value in [0, 1, 0x7F, 0x80, 0xC0, 0xFF] {
            let mut changed = data.clone();
            changed[n] = value;
            let lines = portable::read(changed, Path::new("a.pdb"), None);
            for (method, il) in (0..5).flat_map(|m| [0, 6, u32::MAX].map(|il| (m, il))) {
                let _ = lines.as_ref().ok().and_then(|l| l.lookup(0x0600_0000 | method, il));
            }
        }
        let cut = portable::read(data[..n].to_vec(), Path::new("a.pdb"), None);
        assert!(cut.is_err(), "cut at {n}");
    }
}

#[test]
fn real_files_have_the_lines_that_symbolic_reads() {
    let Some(folder) = std::env::var_os("ETWHY_PORTABLE_PDBS") else {
        etwhy_testkit::skipped("set ETWHY_PORTABLE_PDBS to a folder of portable PDBs");
        return;
    };
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let (places, known) = compare(&std::fs::read(&file).unwrap(), &file.display().to_string());
        println!("{}: {places} places, {known} with a line", file.display());
        assert!(known > 0);
    }
}
