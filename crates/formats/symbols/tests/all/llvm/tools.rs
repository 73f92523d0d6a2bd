//! Clang, lld and llvm-symbolizer.

use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether all tools are there; says so if not. Where CI sets `ETWHY_CORPUS_REQUIRED`, they must be.
pub fn present() -> bool {
    let missing: Vec<&str> = ["clang", "lld-link", "llvm-symbolizer", "llvm-pdbutil"]
        .into_iter()
        .filter(|tool| {
            let mut command = Command::new(tool);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_err()
        })
        .collect();
    if missing.is_empty() {
        return true;
    }
    etwhy_testkit::missing(&format!("no {} (scripts/test installs clang, lld and llvm)", missing.join(", ")));
    false
}

/// Runs a tool and gives what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An image and its PDB.
pub struct Pair {
    pub image: PathBuf,
    pub pdb: PathBuf,
}

/// Compiles `sources` in `folder` and links them.
pub fn build(
    folder: &Path,
    name: &str,
    sources: &[&str],
    target: &str,
    flags: &[&str],
    link: &[&str],
) -> Pair {
    let mut objects = Vec::new();
    for source in sources {
        let object = format!("{name}-{source}.obj");
        let mut clang = Command::new("clang");
        clang.current_dir(folder).args([&format!("--target={target}"), "-c", source, "-o", &object]);
        run(clang
            .args(["-ffreestanding", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-mno-sse"])
            .args(flags));
        objects.push(object);
    }
    let (image, pdb) = (format!("{name}.exe"), format!("{name}.pdb"));
    let mut linker = Command::new("lld-link");
    linker.current_dir(folder).args(["/debug", "/nodefaultlib", "/entry:start", "/subsystem:console"]);
    linker.args([&format!("/out:{image}"), &format!("/pdb:{pdb}")]).args(&objects).args(link);
    run(&mut linker);
    Pair { image: folder.join(image), pdb: folder.join(pdb) }
}

/// A function at an address, as another resolver sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub function: String,
    pub file: String,
    pub line: u32,
}

/// What `llvm-symbolizer` says about addresses, innermost first.
pub fn symbolize(image: &Path, addresses: &[u32], options: &[&str]) -> Vec<Vec<Frame>> {
    let mut child = Command::new("llvm-symbolizer")
        .arg(format!("--obj={}", image.display()))
        .args(["--relative-address", "--output-style=JSON"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers: Vec<Vec<Frame>> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
            let symbols = answer["Symbol"].as_array().unwrap_or_else(|| panic!("{line}"));
            symbols
                .iter()
                .map(|s| Frame {
                    function: s["FunctionName"].as_str().unwrap_or("").to_owned(),
                    file: s["FileName"].as_str().unwrap_or("").to_owned(),
                    line: s["Line"].as_u64().unwrap_or(0) as u32,
                })
                .collect()
        })
        .collect();
    assert_eq!(answers.len(), addresses.len(), "one answer for each address");
    answers
}

/// Name, section and offset of every public, by `llvm-pdbutil`.
pub fn publics(pdb: &Path) -> Vec<(String, u16, u32)> {
    let text = run(Command::new("llvm-pdbutil").args(["dump", "--publics"]).arg(pdb));
    let mut found = Vec::new();
    let mut name = None;
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("S_PUB32 [size = ") {
            name = rest.split_once("] `").and_then(|(_, name)| name.strip_suffix('`')).map(str::to_owned);
        } else if let Some((_, place)) = line.split_once("addr = ")
            && let Some(name) = name.take()
        {
            let (section, offset) = place.trim().split_once(':').unwrap();
            found.push((name, section.parse().unwrap(), offset.parse().unwrap()));
        }
    }
    found
}

/// Address and size of each section of an image.
pub fn sections(image: &Path) -> Vec<(String, u32, u32)> {
    use object::read::pe::{ImageNtHeaders, PeFile, PeFile32, PeFile64};
    fn of<'a, Pe: ImageNtHeaders>(file: &PeFile<'a, Pe, &'a [u8]>) -> Vec<(String, u32, u32)> {
        let le = object::LittleEndian;
        let name = |raw: &[u8]| String::from_utf8_lossy(raw).trim_end_matches('\0').to_owned();
        let table = file.section_table();
        table.iter().map(|s| (name(&s.name), s.virtual_address.get(le), s.virtual_size.get(le))).collect()
    }
    let data = std::fs::read(image).unwrap();
    match object::read::pe::optional_header_magic(data.as_slice()).unwrap() {
        object::pe::IMAGE_NT_OPTIONAL_HDR32_MAGIC => of(&PeFile32::parse(data.as_slice()).unwrap()),
        _ => of(&PeFile64::parse(data.as_slice()).unwrap()),
    }
}
