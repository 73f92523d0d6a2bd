//! `etwhy record merge`: parts and the merged trace say the same, to this program and to a reader of other people; images get their
//! identities back from their files.

use crate::{ETWHY, Str as _};
use etwhy_base::rng::Rng;
use etwhy_etl::Ledger;
use etwhy_etl::abi::guids::IMAGE_ID;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_etl::write::{TraceSetup, TraceWriter};
use etwhy_testkit::text;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which file of several a record goes to; none leaves it out.
type Sort = fn(&etwhy_etl::Record<'_>) -> Option<usize>;

/// The demonstration as files of its own: sessions of one machine.
fn parts(folder: &Path, names: &[&str], sort: Sort) -> Vec<PathBuf> {
    let whole = folder.join("demo.etl");
    let made = ETWHY.output(&["synth", "--demo", "--scale", "0.2", "-q", "-o", whole.str()]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let files = [EtlFile::open(&whole, &whole, &OpenOptions::default()).unwrap()];
    let header = files[0].header();
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(format!("{name}.etl"))).collect();
    let mut writers: Vec<_> = paths
        .iter()
        .map(|path| {
            let setup = TraceSetup {
                processors: header.processors,
                start_time: header.start_time,
                start_ticks: files[0].clock().anchor_ticks,
                boot_time: header.boot_time,
                end_time: header.end_time,
                perf_freq: header.perf_freq,
                cpu_mhz: header.cpu_speed_mhz,
                os_build: header.os_build,
                time_zone_bias: header.time_zone.bias,
                session_name: if path == &paths[0] { "NT Kernel Logger" } else { "etwhy-user" }.to_owned(),
                ..TraceSetup::default()
            };
            TraceWriter::create(path, setup).unwrap()
        })
        .collect();
    let timeline = Timeline::read(&files, &mut Ledger::new());
    Walk::new(&files, &timeline).for_each(&mut Ledger::new(), |record, _| {
        let is_header = record.kind.is_system() && record.hook() == 0;
        if let Some(part) = sort(record).filter(|_| !is_header) {
            writers[part].write_bytes(record.cpu, record.ticks, record.bytes).unwrap();
        }
    });
    for writer in writers {
        writer.finish().unwrap();
    }
    paths
}

fn merge(arguments: &[&str]) -> String {
    let out = ETWHY.output(&[&["record", "merge"], arguments].concat());
    assert!(out.status.success(), "{arguments:?}: {}", text(&out.stderr));
    text(&out.stderr)
}

/// Rows of a table as text, sorted: the order of rows of two processors at one time is nobody's.
fn table(name: &str, traces: &[&Path]) -> String {
    let traces: Vec<&str> = traces.iter().map(|trace| trace.str()).collect();
    let out = ETWHY.output(&[&["dump", name, "-q", "--format", "csv"], traces.as_slice()].concat());
    assert!(out.status.code().is_some_and(|code| code < 2), "{name}: {}", text(&out.stderr));
    let all = text(&out.stdout);
    let mut lines: Vec<&str> = all.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

const TABLES: [&str; 14] = [
    "process",
    "thread",
    "image",
    "module",
    "cswitch",
    "sample",
    "dpc",
    "isr",
    "disk_io",
    "file_io",
    "stack_cost",
    "process_start",
    "interrupt_cost",
    "wait_cost",
];

/// Everything that `why` says, but for the names of the files and their sizes.
fn why(traces: &[&Path]) -> serde_json::Value {
    let traces: Vec<&str> = traces.iter().map(|trace| trace.str()).collect();
    let out = ETWHY.output(&[&["why", "-q", "--json"], traces.as_slice()].concat());
    let mut all: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let keys: Vec<String> = all.as_object().unwrap().keys().cloned().collect();
    for key in keys {
        if !["findings", "bill", "asked", "answers", "drivers", "not_found", "cannot_tell"]
            .contains(&key.as_str())
        {
            all.as_object_mut().unwrap().remove(&key);
        }
    }
    assert!(all.as_object().unwrap().len() > 1, "{all}");
    all
}

/// Records by kind, as dissect.etl counts them.
fn counts(trace: &Path) -> Option<BTreeMap<String, u64>> {
    let out = etwhy_testkit::script("count_records.py")?.arg(trace).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let lines = text(&out.stdout);
    let split = |line: &str| line.rsplit_once(' ').map(|(key, n)| (key.to_owned(), n.parse().unwrap()));
    Some(lines.lines().filter_map(split).collect())
}

#[test]
fn parts_and_the_merged_trace_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let kind: Sort = |record| Some(usize::from(!record.kind.is_system()));
    let parts = parts(folder.path(), &["slow", "slow.user"], kind);
    let merged = folder.path().join("merged.etl");
    let said = merge(&[parts[0].str(), parts[1].str(), "-o", merged.str()]);
    assert!(said.contains("records copied") && !said.contains("added"), "{said}");
    let both = [parts[0].as_path(), parts[1].as_path()];
    for name in TABLES {
        assert_eq!(table(name, &[&merged]), table(name, &both), "{name}");
    }
    assert_eq!(why(&[&merged]), why(&both));
    // Other people's reader finds what stands in the parts, but for one of the two headers.
    let (Some(mut one), Some(two), Some(all)) = (counts(&parts[0]), counts(&parts[1]), counts(&merged))
    else {
        return;
    };
    two.into_iter().for_each(|(kind, n)| *one.entry(kind).or_default() += n);
    *one.get_mut("kernel/0/0").unwrap() -= 1;
    assert_eq!(all, one);
    // Merged once more it is the same file.
    let again = folder.path().join("again.etl");
    let said = merge(&[merged.str(), "-o", again.str()]);
    assert!(said.contains("copied as it is"), "{said}");
    assert_eq!(std::fs::read(&merged).unwrap(), std::fs::read(&again).unwrap());
}

/// An image file with a PDB record and a version resource.
struct Pe(Vec<u8>);

impl Pe {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        if self.0.len() < at + bytes.len() {
            self.0.resize(at + bytes.len(), 0);
        }
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    /// Sections begin at 0x400 of the file and at address 0x1000.
    fn new(stamp: u32, size: u32, pdb: (&str, [u8; 16], u32), texts: &[(&str, &str)]) -> Pe {
        let mut pe = Pe(vec![0; 0x400]);
        pe.put(0, b"MZ");
        pe.u32(0x3C, 0x80);
        pe.put(0x80, b"PE\0\0");
        pe.put(0x84, &[0x64, 0x86, 1, 0]);
        pe.u32(0x88, stamp);
        pe.put(0x94, &[240, 0, 0x22, 0x20]);
        let optional = 0x98;
        pe.put(optional, &[0x0B, 0x02]);
        pe.u32(optional + 56, size);
        pe.u32(optional + 108, 16);
        let section = optional + 240;
        // The debug directory, and the PDB behind it.
        let name = [pdb.0.as_bytes(), b"\0"].concat();
        pe.u32(optional + 112 + 48, 0x1000);
        pe.u32(optional + 112 + 52, 28);
        pe.u32(0x40C, 2);
        pe.u32(0x410, 24 + name.len() as u32);
        pe.u32(0x418, 0x420);
        pe.put(0x420, b"RSDS");
        pe.put(0x424, &pdb.1);
        pe.u32(0x434, pdb.2);
        pe.put(0x438, &name);
        // Type 16, name 1, language 0x409: three directories with one entry each, then where the resource is.
        let version = Pe::version(texts);
        pe.u32(optional + 112 + 16, 0x1400);
        pe.u32(optional + 112 + 20, 0x60 + version.len() as u32);
        let root = 0x800;
        for (level, id, next) in [(0, 16, 0x8000_0018), (0x18, 1, 0x8000_0030), (0x30, 0x409, 0x48)] {
            pe.put(root + level + 14, &[1, 0]);
            pe.u32(root + level + 16, id);
            pe.u32(root + level + 20, next);
        }
        pe.u32(root + 0x48, 0x1460);
        pe.u32(root + 0x4C, version.len() as u32);
        pe.put(root + 0x60, &version);
        let raw = (pe.0.len() - 0x400) as u32;
        pe.u32(section + 8, raw);
        pe.u32(section + 12, 0x1000);
        pe.u32(section + 16, raw);
        pe.u32(section + 20, 0x400);
        pe
    }

    /// `VS_VERSIONINFO` with these texts.
    fn version(texts: &[(&str, &str)]) -> Vec<u8> {
        let utf16 =
            |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(4), 0);
        let mut bytes = vec![0, 0, 52, 0, 0, 0];
        bytes.extend(utf16("VS_VERSION_INFO"));
        pad(&mut bytes);
        bytes.extend(0xFEEF_04BD_u32.to_le_bytes());
        bytes.extend([0; 48]);
        for (key, value) in texts {
            bytes.extend([0; 6]);
            bytes.extend(utf16(key));
            pad(&mut bytes);
            bytes.extend(utf16(value));
            pad(&mut bytes);
        }
        bytes
    }
}

/// Files of all images that a trace identifies, in one folder.
fn image_files(trace: &Path, folder: &Path) -> usize {
    let sql = "SELECT DISTINCT name, time_date_stamp, size_bytes, pdb_name, pdb_guid, pdb_age, file_version, product, company, \
               description FROM image WHERE pdb_name IS NOT NULL";
    let out = ETWHY.output(&["sql", trace.str(), "-q", "--format", "json", "-c", sql]);
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    for row in &rows {
        let word = |name: &str| row[name].as_str().unwrap_or_default();
        let number = |name: &str| row[name].as_i64().unwrap() as u32;
        let guid: etwhy_base::Guid = word("pdb_guid").parse().unwrap();
        let texts = [
            ("CompanyName", word("company")),
            ("FileDescription", word("description")),
            ("FileVersion", word("file_version")),
            ("OriginalFilename", word("name")),
            ("ProductName", word("product")),
        ];
        let pdb = (word("pdb_name"), guid.0, number("pdb_age"));
        let pe = Pe::new(number("time_date_stamp"), number("size_bytes"), pdb, &texts);
        std::fs::write(folder.join(word("name")), pe.0).unwrap();
    }
    rows.len()
}

#[test]
fn images_get_their_identities_from_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let without: Sort = |record| (record.guid() != Some(IMAGE_ID)).then_some(0);
    let part = &parts(folder.path(), &["part"], without)[0];
    let with: Sort = |_| Some(0);
    let truth = &parts(folder.path(), &["truth"], with)[0];
    let images = folder.path().join("images");
    let count = image_files(truth, &images);
    assert!(count > 10, "{count}");
    let merged = folder.path().join("merged.etl");
    let said = merge(&[part.str(), "--images", images.str(), "-o", merged.str()]);
    assert!(said.contains("added"), "{said}");
    assert_ne!(table("image", &[part]), table("image", &[truth]));
    for name in TABLES {
        assert_eq!(table(name, &[&merged]), table(name, &[truth]), "{name}");
    }
    assert_eq!(why(&[&merged]), why(&[truth]));
    // Nothing can be added to it.
    let again = folder.path().join("again.etl");
    let said = merge(&[merged.str(), "--images", images.str(), "-o", again.str()]);
    assert!(said.contains("copied as it is"), "{said}");

    // Files of another build, damaged files and what is no image identify nothing they are not.
    let mut rng = Rng::new(5);
    for round in 0..20 {
        for file in std::fs::read_dir(&images).unwrap() {
            let file = file.unwrap().path();
            let mut bytes = std::fs::read(&file).unwrap();
            for _ in 0..1 + rng.index(30) {
                let at = rng.index(bytes.len());
                bytes[at] = rng.bits() as u8;
            }
            bytes.truncate(bytes.len() - rng.index(bytes.len() / 8 + 1));
            std::fs::write(&file, bytes).unwrap();
        }
        let said = merge(&[part.str(), "--images", images.str(), "-o", merged.str(), "--force"]);
        assert!(said.contains("records copied"), "{round}: {said}");
        assert_eq!(table("process", &[&merged]), table("process", &[truth]), "{round}");
    }
}

#[test]
fn files_are_not_replaced_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let all: Sort = |_| Some(0);
    let part = &parts(folder.path(), &["part"], all)[0];
    let before = std::fs::read(part).unwrap();
    let other = folder.path().join("other.etl");
    std::fs::write(&other, "mine").unwrap();
    let entries = || std::fs::read_dir(folder.path()).unwrap().count();
    let before_merging = entries();
    let hidden = folder.path().join("..").join(folder.path().file_name().unwrap()).join("part.etl");
    for (output, hint) in [
        (part, "is one of the traces"),
        (&hidden, "is one of the traces"),
        (&other, "is there already: name another file, or --force"),
        (&PathBuf::from("-"), "--output <FILE>"),
        (&PathBuf::from("/no/such/folder/x.etl"), "/no/such/folder/x.etl"),
    ] {
        for force in [&[][..], &["--force"]] {
            if hint.contains("--force") && !force.is_empty() {
                continue;
            }
            let line = [&["record", "merge", part.str(), "-o", output.str()], force].concat();
            let out = ETWHY.output(&line);
            assert_eq!(out.status.code(), Some(2), "{line:?}: {}", text(&out.stderr));
            assert!(
                text(&out.stderr).contains(hint) && out.stdout.is_empty(),
                "{line:?}: {}",
                text(&out.stderr)
            );
        }
    }
    assert_eq!(std::fs::read(part).unwrap(), before);
    assert_eq!(std::fs::read(&other).unwrap(), b"mine");
    merge(&[part.str(), "-o", other.str(), "--force"]);
    assert!(std::fs::read(&other).unwrap().len() > 1000);
    // Nothing is left of what was not finished.
    assert_eq!(entries(), before_merging);
}
