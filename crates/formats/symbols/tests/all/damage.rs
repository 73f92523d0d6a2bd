//! Damaged PDBs, images and cache files give errors or less symbols, never a panic. `crates/tools/fuzz` does more of it.

#[path = "../../../../tools/fuzz/src/hostile/pdb.rs"]
mod seeds;

use etwhy_base::rng::Rng;
use etwhy_symbols::{ModuleSymbols, NameStyle, exports, pdb};
use std::path::Path;

fn look(module: &ModuleSymbols) {
    for rva in (0x1000..0x1210).step_by(7).chain([0, u32::MAX]) {
        for place in module.lookup(rva).into_iter().flat_map(|s| s.places) {
            let _ = (place.name.show(NameStyle::Short), place.name.show(NameStyle::Full));
        }
    }
}

/// Runs `each` on copies of `seed` with a few bytes changed, the same in every run.
fn damaged(seed: &[u8], count: u32, mut each: impl FnMut(Vec<u8>)) {
    let mut rng = Rng::new(1);
    for number in 0..count {
        let mut bytes = seed.to_vec();
        for _ in 0..=number % 6 {
            let at = rng.index(bytes.len());
            bytes[at] = match rng.below(16) {
                0..=3 => 0xFF,
                4..=6 => 0,
                7 => bytes[at] ^ 0x80,
                _ => rng.bits() as u8,
            };
        }
        if number % 16 == 0 {
            bytes.truncate(rng.index(seed.len()));
        }
        each(bytes);
    }
}

#[test]
fn damaged_pdbs() {
    let mut read = 0;
    damaged(&seeds::pdb(), 100_000, |bytes| {
        if let Ok(module) = pdb::read(bytes, Path::new("mutant.pdb"), None, "") {
            look(&module);
            read += 1;
        }
    });
    assert!(read > 10_000, "most damage leaves something to read: {read}");
}

#[test]
fn damaged_images() {
    damaged(&seeds::image(), 100_000, |bytes| {
        if let Ok(module) = exports::read(&bytes, Path::new("mutant.dll"), None, "") {
            look(&module);
        }
    });
}

#[test]
fn damaged_cache_files() {
    let module = pdb::read(seeds::pdb(), Path::new("seed.pdb"), None, "key").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cache");
    let mut opened = 0;
    damaged(module.bytes(), 10_000, |bytes| {
        std::fs::write(&file, bytes).unwrap();
        if let Ok(module) = ModuleSymbols::open(&file, "key") {
            look(&module);
            opened += 1;
        }
    });
    assert!(opened > 1000, "{opened}");
}
