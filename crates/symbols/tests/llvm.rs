//! PE/PDB pairs, built here with clang and lld, resolve to what LLVM's own reader finds: for every public and for 12,000
//! random addresses of the code, name, file, line and inlined calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "llvm/dump.rs"]
mod dump;
#[path = "llvm/sources.rs"]
mod sources;
#[path = "llvm/tools.rs"]
mod tools;

use etwhy_symbols::{ModuleSymbols, NameStyle, Origin, pdb};
use std::collections::BTreeMap;
use tools::{Frame, Pair};

const X64: &str = "x86_64-pc-windows-msvc";
const X86: &str = "i686-pc-windows-msvc";
const ALL: &[&str] = &["one.cpp", "two.cpp", "three.c"];
const FUNCTIONS: u32 = 400;
const RANDOM: usize = 12_000;

/// The same numbers in every run.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 % limit
    }
}

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
    let mut random = Xorshift(0x9E37_79B9_7F4A_7C15);
    all.extend((0..RANDOM).map(|_| start + random.below(*size)));
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
                let (right, site) = sites.filter_map(|s| Some((s.line_at(offset)?, s))).last()?;
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
