//! Targets that read symbols: PDBs, export tables, files of the compact cache.

use super::target::accepted;
use crate::hostile;
use crate::scratch;
use crate::seeds::Seed;
use etwhy_symbols::{ModuleSymbols, NameStyle, exports, pdb};
use std::path::Path;

/// A program database.
pub fn program_database(data: &[u8]) {
    if let Ok(module) = pdb::read(data.to_vec(), Path::new("mutant.pdb"), None, "") {
        look(&module);
    }
}

/// A file of the compact cache.
pub fn symbol_cache(data: &[u8]) {
    let Some(path) = scratch::file("cache.v1", data) else { return };
    if let Ok(module) = ModuleSymbols::open(&path, "key") {
        look(&module);
    }
}

/// An image with exports.
pub fn image(data: &[u8]) {
    if let Ok(module) = exports::read(data, Path::new("mutant.dll"), None, "") {
        look(&module);
    }
}

/// Looks addresses up and shows all names there in every form.
fn look(module: &ModuleSymbols) {
    accepted();
    for rva in (0x1000..0x1210).step_by(3).chain([0, 1, 0x7FFF_FFFF, u32::MAX]) {
        let Some(symbol) = module.lookup(rva) else { continue };
        let mut places = 0;
        for place in symbol.places {
            for style in [NameStyle::Short, NameStyle::Full, NameStyle::Raw] {
                let _ = place.name.show(style).len();
            }
            places += 1;
        }
        assert!(places > 0 && places <= module.bytes().len());
    }
    assert!(module.publics() + module.functions() <= module.bytes().len());
}

/// One with every kind of record.
pub fn program_database_seeds(_: &Path, _: usize) -> Vec<Seed> {
    vec![Seed { name: "all records".into(), data: hostile::pdb() }]
}

/// What the reader makes of that.
pub fn symbol_cache_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let module = pdb::read(hostile::pdb(), Path::new("seed.pdb"), None, "key");
    module.into_iter().map(|m| Seed { name: "all sections".into(), data: m.bytes().to_vec() }).collect()
}

/// A library with two exports, one of them forwarded.
pub fn image_seeds(_: &Path, _: usize) -> Vec<Seed> {
    vec![Seed { name: "exports".into(), data: hostile::image() }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_symbols::Origin;

    #[test]
    fn the_seeds_are_sound() {
        let module = pdb::read(hostile::pdb(), Path::new("seed.pdb"), None, "key").unwrap();
        assert_eq!((module.origin(), module.malformed()), (Origin::Pdb, 0));
        let at = |rva: u32| -> Vec<(String, Option<&str>, Option<u32>)> {
            let places = module.lookup(rva).into_iter().flat_map(|s| s.places);
            places.map(|p| (p.name.show(NameStyle::Full).into_owned(), p.file, p.line)).collect()
        };
        let f = ("ns::f(int)".to_owned(), Some(r"c:\a.c"), Some(10));
        assert_eq!(at(0x1010), std::slice::from_ref(&f));
        // Offset 4: line 30 + 1; the inner one covers 2 and 3 bytes.
        let inlined = |line| ("ns::inlined".to_owned(), Some(r"c:\a.c"), Some(line));
        assert_eq!(
            at(0x1014),
            [("ns::Class::method".to_owned(), Some(r"c:\b.h"), Some(40)), inlined(31), f.clone()]
        );
        assert_eq!(at(0x1019)[0], inlined(32));
        assert_eq!(
            at(0x1031),
            [("ns::f(int)".to_owned(), None, None)],
            "code that debuggers do not step into"
        );
        // Moved by the map, cut out by it, and jumps of the linker.
        assert_eq!(at(0x1105)[0].0, "g");
        assert_eq!(at(0x1079)[0].0, "@ILT+0(ns::f)");
        assert_eq!(at(0x1081)[0].0, "asm");
        assert_eq!(at(0x1091)[0].0, "crate::main");
        assert_eq!(at(0x10A1)[0].0, "ns::f");
        let exported = exports::read(&hostile::image(), Path::new("seed.dll"), None, "").unwrap();
        assert_eq!((exported.origin(), exported.publics()), (Origin::Export, 1));
        assert_eq!(exported.lookup(0x1010).unwrap().function.plain, "Go");
    }
}
