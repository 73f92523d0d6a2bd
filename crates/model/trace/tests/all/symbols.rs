//! PDBs of NGEN images on the stacks of a real trace, against `llvm-pdbutil`'s reading of the same files.

use crate::support::*;
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::Ledger;
use etwhy_table::Memory;
use etwhy_trace::{Options, Output, Symbols, analyse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// File, GUID and age, named frames of all stacks, those that no sample awaits among them.
const MODULES: [(&str, &str, usize); 3] = [
    ("System.Xml.ni", "9ba07396ae369d010c5c3927a82ef4261", 8),
    ("System.ni", "e40da7a49f8c3f0108e7c835b342f3821", 3),
    ("mscorlib.ni", "51e2934144ba15628ba5a31be2dae7dc1", 145),
];

fn with_symbols(trace: &Path, symbols: Symbols, tables: &str) -> Output {
    let mut ledger = Ledger::new();
    let options = Options {
        tables: Some(tables.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>()),
        memory: Memory::unlimited(),
        symbols,
        threads: 2,
        decoder: Decoder::new(&DecoderOptions::default(), &mut ledger),
        inputs: etwhy_trace::Inputs::default(),
    };
    analyse(&[open(trace)], options, &mut (), ledger).unwrap()
}

#[test]
fn ngen_images_are_named_by_their_pdbs() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("microsoft+perfview");
    let symbols = folder.join("symbols");
    let trace = folder.join("net.4.5.x86_PerfViewData.etl");
    let output = with_symbols(
        &trace,
        Symbols::new(std::slice::from_ref(&symbols)),
        "stack frame stack_frame sample image",
    );
    assert_eq!(ledger_count(&output, "symbols_mismatched") + ledger_count(&output, "symbols_unreadable"), 0);
    let frames = table(&output, "frame");
    let mut named: BTreeMap<&str, Vec<(u32, &str)>> = BTreeMap::new();
    for row in rows(frames).filter(|row| text(frames, *row, "symbol_source") == "pdb") {
        let rva = number(frames, row, "rva").unwrap() as u32;
        named.entry(text(frames, row, "module")).or_default().push((rva, text(frames, row, "function")));
    }
    let counts: Vec<(&str, usize)> = named.iter().map(|(module, frames)| (*module, frames.len())).collect();
    assert_eq!(
        counts,
        MODULES
            .map(|(file, _, count)| (format!("{file}.dll"), count))
            .each_ref()
            .map(|(f, c)| (f.as_str(), *c))
    );
    // Wrong addresses would give names that never call each other.
    let places = table(&output, "stack_frame");
    let functions: Vec<&str> = rows(places)
        .map(|row| text(frames, number(places, row, "frame_id").unwrap() as u32, "function"))
        .collect();
    assert!(functions.windows(CHAIN.len()).any(|w| w == CHAIN));

    if Command::new("llvm-pdbutil").arg("--version").output().is_err() {
        etwhy_testkit::skipped("comparison with llvm-pdbutil, which is not there (scripts/test installs it)");
        return;
    }
    let images = table(&output, "image");
    for (file, id, _) in MODULES {
        let pdb: PathBuf = [
            symbols.as_path(),
            Path::new(&format!("{file}.pdb")),
            Path::new(id),
            Path::new(&format!("{file}.pdb")),
        ]
        .iter()
        .collect();
        // Sections stand one after the other, at pages of 4 KiB; together they are the image that the trace has.
        let mut next = 0x1000u32;
        let starts: Vec<u32> = sizes(&pdb)
            .into_iter()
            .map(|size| {
                let start = next;
                next = (next + size).next_multiple_of(0x1000);
                start
            })
            .collect();
        let image =
            rows(images).find(|row| text(images, *row, "path").ends_with(&format!("{file}.dll"))).unwrap();
        assert_eq!(number(images, image, "size_bytes"), Some(i64::from(next)), "{file}");
        let mut publics: Vec<(u32, String)> = publics(&pdb)
            .into_iter()
            .map(|(name, section, offset)| (starts[usize::from(section) - 1] + offset, name))
            .collect();
        publics.sort();
        for (rva, function) in &named[format!("{file}.dll").as_str()] {
            // Whether the frame is the innermost one or a return address makes a difference of one byte.
            let at = |rva: u32| &publics[publics.partition_point(|p| p.0 <= rva) - 1].1;
            let bare = |name: &str| name.trim_start_matches("[COLD] ").split('(').next().unwrap().to_owned();
            assert!(
                bare(at(*rva)) == *function || bare(at(rva - 1)) == *function,
                "{rva:#x} {function} {}",
                at(*rva)
            );
        }
    }
}

/// Sizes of the sections of a PDB.
fn sizes(pdb: &Path) -> Vec<u32> {
    let text = pdbutil(pdb, "--section-map");
    let sizes = text.lines().filter_map(|l| l.split_once("offset = 0, size = ")?.1.parse::<u32>().ok());
    sizes.filter(|size| *size != u32::MAX).collect()
}

/// Name, section and offset of every public of a PDB.
fn publics(pdb: &Path) -> Vec<(String, u16, u32)> {
    let text = pdbutil(pdb, "--publics");
    let mut found = Vec::new();
    let mut name = None;
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("S_PUB32 [size = ") {
            name = rest.split_once("] `").and_then(|(_, name)| name.strip_suffix('`')).map(str::to_owned);
        } else if let Some((_, place)) = line.split_once("addr = ") {
            let (section, offset) = place.trim().split_once(':').unwrap();
            found.push((name.take().unwrap(), section.parse().unwrap(), offset.parse().unwrap()));
        }
    }
    found
}

fn pdbutil(pdb: &Path, what: &str) -> String {
    let output = Command::new("llvm-pdbutil").args(["dump", what]).arg(pdb).output().unwrap();
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A call as it stands on a stack of the trace, innermost first: a hash that is made by name.
const CHAIN: &[&str] = &[
    "System.Security.Cryptography.CryptoConfig.OpenCryptoConfig",
    "System.Security.Cryptography.CryptoConfig.InitializeConfigInfo",
    "System.Security.Cryptography.CryptoConfig.CreateFromName",
    "System.Security.Cryptography.SHA1.Create",
];
