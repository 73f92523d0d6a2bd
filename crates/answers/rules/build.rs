//! Lists the files of `findings/` for the program. Their tests, two thirds of the text, are packed and apart, so that a start does not
//! read what only `etwhy rules test` asks for.
#![forbid(unsafe_code)]

use flate2::{Compression, write::DeflateEncoder};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=findings");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut files = Path::new("findings")
        .read_dir()?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.file_stem().and_then(|name| name.to_str()).ok_or("a name of a file is no text")?;
        let text = std::fs::read_to_string(&file)?;
        // Tests are the end of a file: `xtask` and the test of this crate see to that.
        let (head, tests) = text.split_at(text.find("\n[[test]]").map_or(text.len(), |at| at + 1));
        std::fs::write(out.join(format!("{name}.toml")), head)?;
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(tests.as_bytes())?;
        std::fs::write(out.join(format!("{name}.tests")), packed.finish()?)?;
        writeln!(
            list,
            "    File {{ name: {name:?}, head: include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}.toml\")), \
             tests: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.tests\")) }},"
        )?;
    }
    list.push(']');
    std::fs::write(out.join("findings.rs"), list)?;
    Ok(())
}
