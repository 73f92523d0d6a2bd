//! Breakpad `.sym` files: text, one record per line.
//!
//! Layout: `docs/symbol_files.md` of the Breakpad project.

mod lines;
mod records;

use std::io::Read;
use std::path::Path;

use crate::builder::ModuleBuilder;
use crate::key::{parse_store_id, store_id};
use crate::{ModuleKey, ModuleSymbols, Origin, SymbolError};

use lines::{LineReader, Next};

/// Reads a symbol file from `source`; `file` is its name for messages. With `wanted`, GUID and age of the
/// `MODULE` record must be those. `key` goes into the compact cache.
///
/// Lines that cannot be understood are counted, see [`ModuleSymbols::malformed`].
///
/// # Errors
/// The source cannot be read, does not start with `MODULE`, or belongs to another build.
pub fn read(
    source: impl Read,
    file: &Path,
    wanted: Option<&ModuleKey>,
    key: &str,
) -> Result<ModuleSymbols, SymbolError> {
    let io = |source| SymbolError::Io { file: file.to_path_buf(), source };
    let mut lines = LineReader::new(source);
    let first = match lines.next().map_err(io)? {
        Next::Line(line) => records::module_id(line),
        _ => None,
    };
    let Some(id) = first else {
        return Err(SymbolError::NotASymbolFile { file: file.to_path_buf() });
    };
    if let Some(wanted) = wanted
        && parse_store_id(&id) != Some((wanted.guid, wanted.age))
    {
        return Err(SymbolError::Mismatch {
            file: file.to_path_buf(),
            wanted: store_id(wanted.guid, wanted.age),
            found: id,
        });
    }
    let mut builder = ModuleBuilder::new();
    loop {
        match lines.next().map_err(io)? {
            Next::Line(line) => {
                if records::record(line, &mut builder).is_none() {
                    builder.malformed();
                }
            }
            Next::TooLong => builder.malformed(),
            Next::End => return Ok(builder.finish(Origin::Breakpad, key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    const HEAD: &str = "MODULE windows x86_64 00112233445566778899AABBCCDDEEFF1 a.pdb\n";

    fn parse(text: &str) -> ModuleSymbols {
        read(text.as_bytes(), Path::new("a.sym"), None, "").unwrap()
    }

    #[test]
    fn all_records_of_the_format() {
        let module = parse(&format!(
            "{HEAD}INFO CODE_ID 5A5D9C7E1000 a.exe\r\nINFO GENERATOR x\nFILE 1 c:\\src\\a file.cc\nFILE 2 b.h\n\
             INLINE_ORIGIN 5 std::max<int>(int, int)\nFUNC m 1000 20 0 ns::f(int, char const *)\n\
             INLINE 0 11 1 5 1008 8 1018 4\n1000 8 10 1\n1008 8 3 2\n1010 10 12 1\n\
             FUNC 2000 4 8 g\n2000 4 7 2\nPUBLIC m 3000 0 h\nPUBLIC 3010 0 i j\n\
             STACK WIN 4 2170 14 1 0 0 0 0 0 1 $T0 .raSearch =\nSTACK CFI INIT 1000 20 .cfa: $rsp 8 +\n\n"
        ));
        assert_eq!(module.malformed(), 0);
        assert_eq!((module.functions(), module.publics()), (2, 2));
        let f = module.lookup(0x1009).unwrap();
        assert_eq!((f.function.plain, f.offset), ("ns::f(int, char const *)", 9));
        assert_eq!((f.file, f.line), (Some("b.h"), Some(3)));
        let places: Vec<_> = f.places.collect();
        assert_eq!(places[0].name.plain, "std::max<int>(int, int)");
        assert_eq!((places[1].file, places[1].line), (Some("c:\\src\\a file.cc"), Some(11)));
        assert_eq!(module.lookup(0x1019).unwrap().places.count(), 2);
        assert_eq!(module.lookup(0x1010).unwrap().places.count(), 1);
        assert_eq!(module.lookup(0x3015).unwrap().function.plain, "i j");
        assert_eq!(module.lookup(0x3000).unwrap().function.plain, "h");
    }

    #[test]
    fn malformed_lines_are_counted_and_the_rest_is_used() {
        let module = parse(&format!(
            "{HEAD}1000 10 1 1\nFUNC\nFUNC zz 10 0 f\nFUNC 1000 10 0 f\nFUNC 100000000 10 0 too far\n1000 x 1 1\n\
             FILE x y\nINLINE 0 1 1 1\nINLINE 0 1 1 1 10\nPUBLIC\nINLINE_ORIGIN\nNONSENSE 1\n\u{1F600}\nFUNC 2000 10 0 g\n"
        ));
        assert_eq!(module.malformed(), 12);
        assert_eq!(module.lookup(0x1000).unwrap().function.plain, "f");
        assert_eq!(module.lookup(0x2000).unwrap().function.plain, "g");
    }

    #[test]
    fn a_file_without_module_is_refused() {
        for text in ["", "\n", "FUNC 1000 10 0 f\n", "MODULE\n", "MODULE windows x86_64\n", "MZ\0\0"] {
            let error = read(text.as_bytes(), Path::new("a.sym"), None, "").unwrap_err();
            assert!(matches!(error, SymbolError::NotASymbolFile { .. }), "{text:?}");
        }
    }

    #[test]
    fn damage_never_panics() {
        let good = format!(
            "{HEAD}FILE 1 a\nINLINE_ORIGIN 1 o\nFUNC m 1000 20 0 f\nINLINE 0 1 1 1 1000 8\n1000 20 1 1\nPUBLIC 3000 0 p\n"
        );
        let mut rng = Rng::new(1);
        for _ in 0..3000 {
            let mut bytes = good.clone().into_bytes();
            for _ in 0..4 {
                let at = rng.index(bytes.len() - HEAD.len()) + HEAD.len();
                bytes[at] = rng.bits() as u8;
            }
            let module = read(bytes.as_slice(), Path::new("a.sym"), None, "").unwrap();
            for rva in [0, 0xFFF, 0x1000, 0x1010, 0x3000, u32::MAX] {
                if let Some(symbol) = module.lookup(rva) {
                    let _ = symbol.places.count();
                }
            }
        }
    }
}
