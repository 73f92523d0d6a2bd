//! Symbols: a PDB converted from nothing, its cache file opened, lookups, and `llvm-symbolizer` on the same addresses.

#[allow(dead_code, clippy::unwrap_used)]
#[path = "../../../formats/symbols/tests/all/llvm/sources.rs"]
mod sources;

use anyhow::{Context as _, bail};
use etwhy_base::rng::Rng;
use etwhy_symbols::{ModuleSymbols, NameStyle, pdb};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Addresses looked up here.
const LOOKUPS: usize = 4_000_000;
/// Addresses given to `llvm-symbolizer`.
const FOR_LLVM: usize = 100_000;
/// Sources of the PDB that is made if none is given, and functions of each.
const SOURCES: usize = 40;
const FUNCTIONS: u32 = 2000;

/// Measures the PDBs, or one that clang and lld make.
pub fn run(files: &[PathBuf]) -> anyhow::Result<()> {
    println!("\nSymbols (targets: 100 MB of PDB in 3 s, 1 M lookups/s from the compact cache)");
    if files.is_empty() {
        let folder = tempfile::tempdir()?;
        return one(&build(folder.path())?, folder.path());
    }
    let folder = tempfile::tempdir()?;
    files.iter().try_for_each(|file| one(file, folder.path()))
}

fn one(file: &Path, folder: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::metadata(file)?.len() as f64;
    let start = Instant::now();
    let module = pdb::open(file, None, "bench")?;
    let cold = start.elapsed().as_secs_f64();
    println!(
        "{}\n  cold        {cold:8.3} s  {:.1} MB, {:.1} MB/s; {} functions, {} publics, {} lines, {} inlined ranges",
        file.display(),
        bytes / 1e6,
        bytes / 1e6 / cold,
        module.functions(),
        module.publics(),
        module.lines(),
        module.inlined_ranges(),
    );
    let cache = folder.join("cache");
    let start = Instant::now();
    std::fs::write(&cache, module.bytes())?;
    let written = start.elapsed().as_secs_f64();
    let addresses = addresses(&module, LOOKUPS);
    drop(module);
    let start = Instant::now();
    let module = ModuleSymbols::open(&cache, "bench")?;
    println!(
        "  cache       {written:8.3} s to write {:.1} MB, {:.6} s to open",
        module.bytes().len() as f64 / 1e6,
        start.elapsed().as_secs_f64()
    );
    let mut ours = 0.0;
    for (what, style) in [("short", NameStyle::Short), ("full", NameStyle::Full)] {
        let start = Instant::now();
        let mut length = 0;
        for &rva in &addresses {
            for place in module.lookup(rva).into_iter().flat_map(|s| s.places) {
                length += place.name.show(style).len() + place.file.map_or(0, str::len);
            }
        }
        let took = start.elapsed().as_secs_f64();
        let rate = addresses.len() as f64 / took;
        println!(
            "  {what:5} names {took:8.3} s  {:.2} M addresses/s with all inlined calls ({length} bytes)",
            rate / 1e6
        );
        ours = rate;
    }
    let image =
        ["exe", "dll", "sys"].map(|e| file.with_extension(e)).into_iter().find(|image| image.is_file());
    let few = addresses.get(..FOR_LLVM.min(addresses.len())).unwrap_or(&[]);
    match image.map(|image| llvm(&image, few)).transpose()? {
        Some(took) => {
            let rate = few.len() as f64 / took;
            println!(
                "  llvm-symbolizer {took:8.3} s  {:.4} M addresses/s: ours with full names is {:.0} x as fast",
                rate / 1e6,
                ours / rate
            );
        }
        None => println!("  llvm-symbolizer: no image beside the PDB"),
    }
    Ok(())
}

/// Addresses in functions (or behind publics), the same in every run.
fn addresses(module: &ModuleSymbols, count: usize) -> Vec<u32> {
    let mut rng = Rng::new(1);
    let functions: Vec<(u32, u32)> = module.all_functions().map(|f| (f.0, f.1)).collect();
    let mut one = || {
        let (start, size) = rng.pick(&functions).copied().unwrap_or((0, 64 << 20));
        start + rng.below(size.max(1).into()) as u32
    };
    (0..count).map(|_| one()).collect()
}

/// Seconds that `llvm-symbolizer` takes, reading the PDB included, as ours is with the cache opened.
fn llvm(image: &Path, addresses: &[u32]) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut child = Command::new("llvm-symbolizer")
        .arg(format!("--obj={}", image.display()))
        .arg("--relative-address")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("llvm-symbolizer (Debian package llvm)")?;
    let text: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
    child.stdin.take().context("stdin")?.write_all(text.as_bytes())?;
    if !child.wait()?.success() {
        bail!("llvm-symbolizer failed");
    }
    Ok(start.elapsed().as_secs_f64())
}

/// A large image and its PDB.
fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    std::fs::write(folder.join("lib.h"), sources::HEADER)?;
    let mut names = vec!["three.c".to_owned()];
    std::fs::write(folder.join("three.c"), sources::c(100))?;
    for number in 0..SOURCES {
        let space = match number {
            0 => "one".to_owned(),
            1 => "two".to_owned(),
            n => format!("s{n}"),
        };
        let name = format!("{space}.cpp");
        std::fs::write(folder.join(&name), sources::cpp(&space, FUNCTIONS))?;
        names.push(name);
    }
    for pair in names.chunks(2) {
        let compilers: Vec<_> = pair.iter().map(|name| clang(folder, name).spawn()).collect();
        for compiler in compilers {
            if !compiler.context("clang (Debian package clang)")?.wait()?.success() {
                bail!("clang failed");
            }
        }
    }
    let mut linker = Command::new("lld-link");
    linker.current_dir(folder).args(["/debug", "/nodefaultlib", "/entry:start", "/subsystem:console"]);
    linker.args(["/out:large.exe", "/pdb:large.pdb"]).args(names.iter().map(|name| format!("{name}.obj")));
    if !linker.status().context("lld-link (Debian package lld)")?.success() {
        bail!("lld-link failed");
    }
    Ok(folder.join("large.pdb"))
}

fn clang(folder: &Path, name: &str) -> Command {
    let mut command = Command::new("clang");
    command.current_dir(folder).args(["--target=x86_64-pc-windows-msvc", "-c", name, "-o"]);
    command.arg(format!("{name}.obj")).args(["-g", "-gcodeview", "-O2", "-ffreestanding", "-fno-exceptions"]);
    command.args(["-fno-rtti", "-fno-threadsafe-statics", "-mno-sse"]);
    command
}
