//! PE/PDB pairs, built here with clang and lld, resolve to what LLVM's own reader finds: for every public and for 12,000
//! random addresses of the code, name, file, line and inlined calls.

mod dump;
mod sources;
mod tools;

use etwhy_base::Guid;
use etwhy_base::rng::Rng;
use etwhy_symbols::{
    ImageKey, ModuleKey, ModuleSymbols, NameStyle, Origin, Resolver, SymbolError, SymbolStore, WantedModule,
    exports, pdb,
};
use std::collections::BTreeMap;
use std::path::Path;
use tools::{Frame, Pair};

const X64: &str = "x86_64-pc-windows-msvc";
const X86: &str = "i686-pc-windows-msvc";
const ALL: &[&str] = &["one.cpp", "two.cpp", "three.c"];
const FUNCTIONS: u32 = 400;
const RANDOM: usize = 12_000;

fn ours(module: &ModuleSymbols, rva: u32, style: NameStyle) -> Vec<Frame> {
    let Some(symbol) = module.lookup(rva) else { return Vec::new() };
    symbol
        .places
        .map(|p| Frame {
            function: p.name.show(style).into_owned(),
            file: p.file.unwrap_or("").to_owned(),
            line: p.line.unwrap_or(0),
        })
        .collect()
}

/// Addresses of all publics in code, then random ones in `.text`.
fn addresses(pair: &Pair) -> (Vec<u32>, usize) {
    let sections = tools::sections(&pair.image);
    let text = sections.iter().position(|s| s.0 == ".text").unwrap();
    let (_, start, size) = &sections[text];
    let mut all: Vec<u32> = tools::publics(&pair.pdb)
        .into_iter()
        .filter(|(_, section, _)| usize::from(*section) == text + 1)
        .map(|(_, _, offset)| start + offset)
        .collect();
    let publics = all.len();
    let mut random = Rng::new(1);
    all.extend((0..RANDOM).map(|_| start + random.below((*size).into()) as u32));
    (all, publics)
}

/// Procedures by address.
struct Procedures(BTreeMap<u32, dump::Procedure>);

impl Procedures {
    fn of(pair: &Pair) -> Procedures {
        let sections = tools::sections(&pair.image);
        let all = dump::procedures(&pair.pdb).into_iter();
        Procedures(all.map(|p| (sections[usize::from(p.section) - 1].1 + p.offset, p)).collect())
    }

    /// The procedure at an address, and the offset in it.
    fn at(&self, rva: u32) -> Option<(&dump::Procedure, u32)> {
        let (start, procedure) = self.0.range(..=rva).next_back()?;
        (rva - start < procedure.size).then_some((procedure, rva - start))
    }

    /// Why the two differ at an address, if there is a reason that holds.
    fn explain(&self, rva: u32, ours: &[Frame], theirs: &[Frame], behind: &[Frame]) -> Option<String> {
        let Some((procedure, offset)) = self.at(rva) else {
            // LLVM names the public before the padding, which has no size; here a function ends where it ends.
            let named = matches!(theirs, [only] if only.file.is_empty() && only.line == 0);
            return (ours.is_empty() && named).then(|| "padding behind a procedure".to_owned());
        };
        if ours.len() != theirs.len() {
            return None;
        }
        let mut reasons = Vec::new();
        for (depth, (mine, llvm)) in ours.iter().rev().zip(theirs.iter().rev()).enumerate() {
            if mine == llvm {
                continue;
            }
            if (&mine.function, &mine.file) != (&llvm.function, &llvm.file) {
                return None;
            }
            if depth == 0 {
                // LLVM takes the first of several lines that begin at one address, and the last one for all other
                // bytes of the same instruction. Here the last one counts for all of them.
                if behind.last() != Some(mine) {
                    return None;
                }
                reasons.push("two lines begin there");
            } else {
                let sites = procedure.sites.iter().filter(|s| s.depth == depth - 1);
                let (right, site) = sites.filter_map(|s| Some((s.line_at(offset)?, s))).next_back()?;
                if right != mine.line || site.line_of_llvm_14(offset) != llvm.line {
                    return None;
                }
                reasons.push("LLVM 14 gives the line of the next range of an inlined call");
            }
        }
        reasons.dedup();
        Some(reasons.join(" and "))
    }
}

/// Reads a pair, asks both resolvers, and gives the module, the number of publics, and that of differences that nothing
/// explains.
fn compare(pair: &Pair) -> (ModuleSymbols, usize, usize) {
    let module = pdb::open(&pair.pdb, None, "test").unwrap();
    assert_eq!(module.malformed(), 0);
    let procedures = Procedures::of(pair);
    let (all, publics) = addresses(pair);
    let theirs = tools::symbolize(&pair.image, &all, &["--no-demangle"]);
    let behind: Vec<u32> = all.iter().map(|rva| rva + 1).collect();
    let behind = tools::symbolize(&pair.image, &behind, &["--no-demangle"]);
    let mut differences: BTreeMap<String, usize> = BTreeMap::new();
    let mut unexplained = 0;
    for ((&rva, theirs), behind) in all.iter().zip(&theirs).zip(&behind) {
        let ours = ours(&module, rva, NameStyle::Raw);
        if ours == *theirs {
            continue;
        }
        match procedures.explain(rva, &ours, theirs, behind) {
            Some(reason) => *differences.entry(reason).or_default() += 1,
            None => {
                unexplained += 1;
                if unexplained <= 5 {
                    println!("{rva:#x}\n  ours   {ours:?}\n  theirs {theirs:?}\n  behind {behind:?}");
                }
            }
        }
    }
    println!(
        "{}: {} addresses, {publics} publics, explained: {differences:?}",
        pair.image.display(),
        all.len()
    );
    (module, publics, unexplained)
}

#[test]
fn x64_with_everything() {
    if !tools::present() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    sources::write(folder.path(), FUNCTIONS);
    let pair = tools::build(folder.path(), "x64", ALL, X64, &["-g", "-gcodeview", "-O2"], &[]);
    let (module, publics, unexplained) = compare(&pair);
    assert_eq!(module.origin(), Origin::Pdb);
    assert!(publics > 1000 && module.functions() > 1000 && module.inlined_ranges() > 5000);
    assert_eq!(unexplained, 0);
}

#[test]
fn x86_with_everything() {
    if !tools::present() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    sources::write(folder.path(), FUNCTIONS);
    let pair = tools::build(folder.path(), "x86", ALL, X86, &["-g", "-gcodeview", "-O2"], &["/safeseh:no"]);
    let (module, publics, unexplained) = compare(&pair);
    assert!(publics > 1000 && module.functions() > 1000 && module.inlined_ranges() > 5000);
    assert_eq!(unexplained, 0);
}

#[test]
fn only_publics() {
    if !tools::present() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    sources::write(folder.path(), FUNCTIONS);
    // lld has no /pdbstripped yet; without debug information in the objects the PDB has the same: publics and sections.
    let pair = tools::build(folder.path(), "stripped", ALL, X64, &["-O2"], &[]);
    let (all, publics) = addresses(&pair);
    assert!(publics > 1000);
    let module = pdb::open(&pair.pdb, None, "test").unwrap();
    assert_eq!((module.origin(), module.functions()), (Origin::PdbPublics, 0));
    let theirs = tools::symbolize(&pair.image, &all, &["--no-demangle"]);
    for (&rva, theirs) in all.iter().zip(&theirs) {
        // Before the first public LLVM gives an empty name.
        let theirs: Vec<Frame> =
            theirs.iter().filter(|f| !f.function.is_empty() && f.function != "??").cloned().collect();
        assert_eq!(ours(&module, rva, NameStyle::Raw), theirs, "{rva:#x}");
    }
    // Demangled by two demanglers: LLVM's own, without the return type that `llvm-symbolizer` drops too.
    let theirs = tools::symbolize(&pair.image, &all, &[]);
    let mut different = Vec::new();
    for (&rva, theirs) in all.iter().zip(&theirs).take(publics) {
        let full = ours(&module, rva, NameStyle::Full).remove(0).function;
        let short = ours(&module, rva, NameStyle::Short).remove(0).function;
        let plain = theirs[0].function.replace("class ", "").replace("struct ", "");
        if full.replace(' ', "") != plain.replace(' ', "") {
            different.push((full.clone(), plain.clone()));
        }
        assert!(full.starts_with(&short), "{full} {short}");
        assert!(!short.contains(['?', '(']) || short.ends_with("operator()"), "{short}");
    }
    assert_eq!(different, []);
}

#[test]
fn folded_code_keeps_a_name_that_is_its_own() {
    if !tools::present() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "extern \"C\" volatile int sink;\nvolatile int sink;\nnamespace a { __attribute__((noinline)) int f(int x) { sink = x; return x * 3; } }\n\
                  namespace b { __attribute__((noinline)) int g(int x) { sink = x; return x * 3; } }\n\
                  extern \"C\" int start() { return a::f(1) + b::g(2); }\n";
    std::fs::write(folder.path().join("fold.cpp"), source).unwrap();
    let flags = ["-g", "-gcodeview", "-O2", "-ffunction-sections"];
    let pair = tools::build(folder.path(), "fold", &["fold.cpp"], X64, &flags, &["/opt:icf"]);
    let module = pdb::open(&pair.pdb, None, "test").unwrap();
    let publics = tools::publics(&pair.pdb);
    let place = |name: &str| publics.iter().find(|p| p.0 == name).map(|p| (p.1, p.2)).unwrap();
    assert_eq!(place("?f@a@@YAHH@Z"), place("?g@b@@YAHH@Z"), "the linker folds them");
    let rva = tools::sections(&pair.image)[0].1 + place("?f@a@@YAHH@Z").1;
    let symbol = module.lookup(rva).unwrap();
    let (plain, linkage) = (symbol.function.plain, symbol.function.linkage.unwrap());
    assert!(
        [("a::f", "?f@a@@YAHH@Z"), ("b::g", "?g@b@@YAHH@Z")].contains(&(plain, linkage)),
        "{plain} {linkage}"
    );
}

#[test]
fn another_build_is_refused_and_the_right_one_taken() {
    if !tools::present() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("t.c"),
        "__declspec(dllexport) int twice(int x) { return x * 2; }\nint start(void) { return twice(1); }\n",
    )
    .unwrap();
    let pair = tools::build(folder.path(), "t", &["t.c"], X64, &["-g", "-gcodeview"], &[]);
    let image = std::fs::read(&pair.image).unwrap();
    // The RSDS record of the image: GUID, age, name.
    let at = image.windows(4).position(|w| w == b"RSDS").unwrap();
    let guid = Guid(image[at + 4..at + 20].try_into().unwrap());
    let age = u32::from_le_bytes(image[at + 20..at + 24].try_into().unwrap());
    let key = ModuleKey { pdb_name: "t.pdb".into(), guid, age };
    assert!(pdb::open(&pair.pdb, Some(&key), "").is_ok());
    let older = ModuleKey { age: age + 1, ..key.clone() };
    let error = pdb::open(&pair.pdb, Some(&older), "").unwrap_err();
    assert!(matches!(&error, SymbolError::Mismatch { found, .. } if *found == key.store_id()), "{error}");

    // The export table is the last resort, and only of the very same image.
    let pe = u32::from_le_bytes(image[0x3C..0x40].try_into().unwrap()) as usize;
    let number = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    let wanted = ImageKey {
        name: r"c:\app\t.exe".into(),
        time_date_stamp: number(pe + 8),
        size_of_image: number(pe + 24 + 56),
    };
    let exported = exports::open(&pair.image, Some(&wanted), "").unwrap();
    assert_eq!((exported.origin(), exported.publics()), (Origin::Export, 1));
    let text = tools::sections(&pair.image)[0].1;
    let names: Vec<&str> =
        (text..text + 64).filter_map(|rva| Some(exported.lookup(rva)?.function.plain)).collect();
    assert!(names.iter().all(|n| *n == "twice") && names.len() > 20, "{names:?}");
    let other = ImageKey { size_of_image: wanted.size_of_image + 0x1000, ..wanted.clone() };
    assert!(matches!(exports::open(&pair.image, Some(&other), ""), Err(SymbolError::Mismatch { .. })));

    // A resolver takes the PDB before the image, tells of the wrong PDB, and keeps what it read.
    let cache = tempfile::tempdir().unwrap();
    let resolver = |folder: &Path| {
        let store = SymbolStore::new(vec![folder.to_path_buf()]);
        Resolver::new(vec![Box::new(store)], Some(cache.path().to_path_buf())).caching_all()
    };
    let both = |key: &ModuleKey| WantedModule { pdb: Some(key.clone()), image: Some(wanted.clone()) };
    let first = resolver(folder.path());
    assert_eq!(first.load(&both(&older)).unwrap().origin(), Origin::Export);
    let problems = first.problems();
    assert!(problems.len() == 1 && problems[0].mismatch && problems[0].file.as_deref() == Some(&pair.pdb));
    let module = first.load(&both(&key)).unwrap();
    assert_eq!(module.origin(), Origin::Pdb);
    assert_eq!(first.problems(), []);

    // The next time the cache has it; damaged, it says so and is written again.
    let again = resolver(folder.path()).load(&both(&key)).unwrap();
    assert_eq!(again.bytes(), module.bytes());
    assert!(again.memory() < module.memory());
    let kept = std::fs::read_dir(cache.path().join("t.pdb")).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = kept.filter(|path| path.is_file()).collect();
    let [file] = kept.as_slice() else { panic!("{kept:?}") };
    let good = std::fs::read(file).unwrap();
    for damage in [&good[..good.len() - 1], &good[..40], b"", b"ETWHYSYM"] {
        std::fs::write(file, damage).unwrap();
        let third = resolver(folder.path());
        assert_eq!(third.load(&both(&key)).unwrap().origin(), Origin::Pdb);
        assert!(third.problems()[0].text.contains("damaged"), "{:?}", third.problems());
        assert_eq!(std::fs::read(file).unwrap(), good, "it was written again");
    }
    // It is of that file, and no answer without it.
    let empty = tempfile::tempdir().unwrap();
    assert!(resolver(empty.path()).load(&both(&key)).is_none());

    // A cache that cannot be written is no cache, and nothing worse.
    let blocked = folder.path().join("t.c");
    let store = SymbolStore::new(vec![folder.path().to_path_buf()]);
    let without = Resolver::new(vec![Box::new(store)], Some(blocked)).caching_all();
    assert!(without.load(&both(&key)).is_some());
}
