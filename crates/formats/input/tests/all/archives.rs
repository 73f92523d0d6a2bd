//! Archives made here around small traces (and a real one, if the corpus is there).
// Helpers of an integration test are outside `#[test]`, where the lint does not know them as tests.

use etwhy_base::rng::Rng;
use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use etwhy_etl::Ledger;
use etwhy_input::{
    Foreign, InputError, InputFile, InputOptions, Kind, anomaly, open, open_with_stdin, sniff,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// What looks like the first buffer of a trace, then `len` bytes that do not pack well.
fn trace(len: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; 0x400];
    bytes[..4].copy_from_slice(&0x400u32.to_le_bytes());
    bytes[4..8].copy_from_slice(&0x200u32.to_le_bytes());
    bytes[0x30..0x34].copy_from_slice(&0x200u32.to_le_bytes());
    bytes[0x36] = 4;
    bytes[0x48..0x50].copy_from_slice(&[2, 0, 2, 0xC0, 0x38, 1, 0, 0]);
    let mut state = 0x1234_5678_9ABC_DEF1u64;
    bytes.extend((0..len).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    }));
    bytes
}

/// Named members and their content.
type Members<'a> = [(&'a str, &'a [u8])];

fn zip_of(members: &Members<'_>) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn seven_zip_of(members: &Members<'_>, solid: bool) -> Vec<u8> {
    use sevenz_rust2::{ArchiveEntry, ArchiveWriter, SourceReader};
    let mut writer = ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    if solid {
        let entries = members.iter().map(|(name, _)| ArchiveEntry::new_file(name)).collect();
        let readers = members.iter().map(|(_, content)| SourceReader::new(*content)).collect();
        writer.push_archive_entries(entries, readers).unwrap();
    } else {
        for (name, content) in members {
            writer.push_archive_entry(ArchiveEntry::new_file(name), Some(*content)).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

fn gzip_of(content: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn zstd_of(content: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(content, 3).unwrap()
}

fn lz4_of(content: &[u8]) -> Vec<u8> {
    // Blocks are unpacked as a whole: of one that is cut off nothing is left.
    let info = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut writer = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn xz_of(content: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn bzip2_of(content: &[u8]) -> Vec<u8> {
    let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

struct Case {
    dir: tempfile::TempDir,
    ledger: Ledger,
    options: InputOptions,
}

impl Case {
    fn new() -> Case {
        let dir = tempfile::tempdir().unwrap();
        let temp = dir.path().join("temp");
        fs::create_dir(&temp).unwrap();
        let options = InputOptions { temp_dir: Some(temp), ..InputOptions::default() };
        Case { dir, ledger: Ledger::new(), options }
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn open(&mut self, path: PathBuf) -> Result<Vec<InputFile>, InputError> {
        open(&[path], &self.options, &mut |_| {}, &mut self.ledger)
    }

    fn open_content(&mut self, name: &str, content: &[u8]) -> Result<Vec<InputFile>, InputError> {
        let path = self.write(name, content);
        self.open(path)
    }

    fn stdin(&mut self, mut content: &[u8]) -> Result<Vec<InputFile>, InputError> {
        open_with_stdin(&["-".into()], &mut content, &self.options, &mut |_| {}, &mut self.ledger)
    }

    /// Nothing is left behind and nothing was written elsewhere.
    fn temp_is_empty(&self) -> bool {
        fs::read_dir(self.options.temp_dir.as_ref().unwrap()).unwrap().next().is_none()
    }
}

fn content(file: &InputFile) -> Vec<u8> {
    fs::read(&file.path).unwrap()
}

fn shown_end(file: &InputFile) -> String {
    file.shown.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn every_archive_gives_the_same_bytes() {
    let trace = trace(300_000);
    let members: &Members<'_> = &[("readme.txt", b"hello"), ("sub/t.etl", &trace), ("z.bin", &[0; 5000])];
    let packed = [
        ("t.zip", zip_of(members), "t.etl"),
        ("t.etl.zip", zip_of(members), "t.etl"),
        ("wrong-extension.etl", zip_of(members), "t.etl"),
        ("t.7z", seven_zip_of(members, false), "t.etl"),
        ("solid.7z", seven_zip_of(members, true), "t.etl"),
        ("t.etl.gz", gzip_of(&trace), "t.etl.gz"),
        ("two-members.gz", [gzip_of(&trace[..1000]), gzip_of(&trace[1000..])].concat(), "two-members.gz"),
        ("t.etl.zst", zstd_of(&trace), "t.etl.zst"),
        ("t.etl.lz4", lz4_of(&trace), "t.etl.lz4"),
        (
            "two-frames.lz4",
            [lz4_of(&trace[..1000]), lz4_of(&[]), lz4_of(&trace[1000..])].concat(),
            "two-frames.lz4",
        ),
        ("t.etl.xz", xz_of(&trace), "t.etl.xz"),
        ("two-streams.xz", [xz_of(&trace[..1000]), xz_of(&trace[1000..])].concat(), "two-streams.xz"),
        ("t.etl.bz2", bzip2_of(&trace), "t.etl.bz2"),
        ("two-streams.bz2", [bzip2_of(&trace[..1000]), bzip2_of(&trace[1000..])].concat(), "two-streams.bz2"),
        ("nested.zip", zip_of(&[("inner.etl.gz", &gzip_of(&trace))]), "nested.zip!inner.etl.gz"),
        ("nested.7z", seven_zip_of(&[("inner.zip", &zip_of(members))], false), "t.etl"),
        ("nested.zip.gz", gzip_of(&zip_of(members)), "t.etl"),
        ("plain.etl", trace.clone(), "plain.etl"),
    ];
    for (name, bytes, shown) in packed {
        let mut case = Case::new();
        let files = case.open_content(name, &bytes).unwrap();
        assert_eq!(files.len(), 1, "{name}");
        assert!(content(&files[0]) == trace && files[0].complete, "{name}");
        assert_eq!(shown_end(&files[0]), shown, "{name}");
        assert_eq!(files[0].temp.is_some(), name != "plain.etl");
        assert!(case.ledger.is_empty(), "{name}");
        drop(files);
        assert!(case.temp_is_empty(), "{name}");
        let from_stdin = case.stdin(&bytes).unwrap();
        assert!(content(&from_stdin[0]) == trace, "{name}");
        assert!(
            from_stdin[0].shown.starts_with("stdin")
                || from_stdin[0].shown.to_string_lossy().starts_with("stdin!")
        );
    }
}

#[test]
fn a_diagsession_is_judged_by_content() {
    let one = trace(2000);
    let two = trace(3000);
    let package = zip_of(&[
        ("[Content_Types].xml", b"<?xml version=\"1.0\"?><Types/>"),
        ("metadata.xml", b"<Package/>"),
        ("4b0e9a3b-2d7e-4d1c-9d4d-7d0f6d8f0a11/resource", &one),
        ("E6CA5AE9-BC8C-4BAB-AC57-5C6B2E2A8C3D.etl", &two),
    ]);
    let files = Case::new().open_content("s.diagsession", &package).unwrap();
    assert_eq!(files.len(), 2);
    let mut case = Case::new();
    let files = case.open_content("s.diagsession", &package).unwrap();
    assert!(content(&files[0]) == one && content(&files[1]) == two);
}

#[test]
fn hostile_member_names_stay_inside() {
    let trace = trace(100);
    let names = [
        "../../evil.etl",
        "/etc/evil.etl",
        r"C:\evil.etl",
        r"..\..\evil.etl",
        "CON.etl",
        "a\u{1B}[2Jb.etl",
        "symbols/../../evil.pdb/00112233445566778899AABBCCDDEEFF1/evil.sym",
    ];
    let members: Vec<(&str, &[u8])> = names
        .iter()
        .map(|n| (*n, if n.ends_with(".sym") { &b"MODULE windows x86_64 1 evil"[..] } else { &trace[..] }))
        .collect();
    for bytes in [zip_of(&members), seven_zip_of(&members, true)] {
        let mut case = Case::new();
        let files = case.open_content("h.zip", &bytes).unwrap();
        assert_eq!(files.len(), 6);
        let temp = case.options.temp_dir.clone().unwrap();
        for file in &files {
            assert!(file.path.starts_with(&temp) && content(file) == trace);
            let name = file.path.file_name().unwrap().to_str().unwrap();
            assert!(name.len() == 9 && name.ends_with(".etl"), "{name}");
            assert!(!file.shown.to_string_lossy().contains('\u{1B}'));
            assert_eq!(file.symbols_dir, None);
        }
        assert_eq!(case.ledger.get(&anomaly::PACKED_SYMBOL_SKIPPED), 1);
        let outside: Vec<_> =
            fs::read_dir(case.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(outside.len(), 2, "{outside:?}");
    }
}

#[test]
fn symbols_in_the_package_and_beside_the_trace() {
    let id = "00112233445566778899AABBCCDDEEFF1";
    let text = format!("MODULE windows x86_64 {id} a.pdb\nFUNC 1000 10 0 main\n");
    let member = format!("symbols/a.pdb/{id}/a.sym");
    let trace = trace(100);
    let mut case = Case::new();
    let package = zip_of(&[(&member, text.as_bytes()), ("t.etl", &trace)]);
    let files = case.open_content("p.etl.zip", &package).unwrap();
    let dir = files[0].symbols_dir.clone().unwrap();
    assert!(dir.starts_with(case.options.temp_dir.as_ref().unwrap()));
    assert_eq!(fs::read_to_string(dir.join("a.pdb").join(id).join("a.sym")).unwrap(), text);

    let beside = case.write("folder/symbols/x", b"").parent().unwrap().to_path_buf();
    let path = case.write("folder/t.etl", &trace);
    assert_eq!(case.open(path).unwrap()[0].symbols_dir, Some(beside));
}

#[test]
fn truncated_archives_keep_what_was_in_front() {
    let trace = trace(400_000);
    let cut = |bytes: &[u8]| bytes[..bytes.len() * 3 / 4].to_vec();
    for (name, bytes) in [
        ("t.gz", cut(&gzip_of(&trace))),
        ("t.zst", cut(&zstd_of(&trace))),
        ("t.lz4", cut(&lz4_of(&trace))),
        ("t.xz", cut(&xz_of(&trace))),
        ("t.bz2", cut(&bzip2_of(&trace))),
        ("t.zip", cut(&zip_of(&[("t.etl", &trace)]))),
    ] {
        let mut case = Case::new();
        let files = case.open_content(name, &bytes).unwrap();
        let part = content(&files[0]);
        assert!(part.len() > 100_000 && part.len() < trace.len(), "{name}: {}", part.len());
        assert!(trace.starts_with(&part), "{name}");
        assert!(!files[0].complete);
        assert_eq!(case.ledger.get(&anomaly::ARCHIVE_DAMAGED), 1, "{name}");
    }
}

#[test]
fn a_zip_without_its_directory_gives_all_whole_members() {
    let traces = [trace(50_000), trace(60_000), trace(70_000)];
    let whole =
        zip_of(&[("a.etl", &traces[0]), ("x.txt", b"hi"), ("b.etl", &traces[1]), ("c.etl", &traces[2])]);
    let mut case = Case::new();
    let files = case.open_content("t.zip", &whole[..whole.len() - 30_000]).unwrap();
    assert_eq!(files.len(), 3);
    assert!(content(&files[0]) == traces[0] && content(&files[1]) == traces[1]);
    assert!(traces[2].starts_with(&content(&files[2])));
    assert_eq!([files[0].complete, files[1].complete, files[2].complete], [true, true, false]);
    assert_eq!(case.ledger.get(&anomaly::ARCHIVE_WITHOUT_DIRECTORY), 1);
}

#[test]
fn damage_in_the_middle_of_a_7z() {
    let traces = [trace(200_000), trace(200_000)];
    let mut bytes = seven_zip_of(&[("a.etl", &traces[0]), ("b.etl", &traces[1])], false);
    bytes[150_000] ^= 0xFF;
    let mut case = Case::new();
    let files = case.open_content("t.7z", &bytes).unwrap();
    assert!(files.iter().any(|f| content(f) == traces[1]));
    assert!(case.ledger.get(&anomaly::ARCHIVE_DAMAGED) >= 1);
    let error = case.open_content("cut.7z", &bytes[..bytes.len() - 10]).unwrap_err();
    assert!(matches!(error, InputError::Damaged { kind: Kind::SevenZip, .. }), "{error}");
}

/// After this error the LZMA2 decoder would spin for ever if it were read from again.
#[test]
fn a_broken_solid_7z_is_not_read_on() {
    let traces = [trace(3000), trace(1500)];
    let mut bytes = seven_zip_of(&[("a.etl", &traces[0]), ("b.txt", b"text"), ("c.etl", &traces[1])], true);
    // Behind the 32 bytes of the signature header: control byte, two sizes, LZMA properties.
    assert_eq!(bytes[32] & 0xE0, 0xE0);
    bytes[37] = 0xBB;
    let mut case = Case::new();
    let error = case.open_content("t.7z", &bytes).unwrap_err();
    assert!(matches!(error, InputError::Damaged { .. }), "{error}");
    assert_eq!(case.ledger.get(&anomaly::ARCHIVE_DAMAGED), 2, "a.etl and, behind it, c.etl");
}

#[test]
fn bombs_are_refused_by_size_and_by_ratio() {
    let mut big = trace(0);
    big.resize(3 << 20, 0);
    for (name, bytes) in [
        ("b.zip", zip_of(&[("t.etl", &big)])),
        ("b.7z", seven_zip_of(&[("t.etl", &big)], false)),
        ("b.gz", gzip_of(&big)),
        ("b.zst", zstd_of(&big)),
        ("b.lz4", lz4_of(&big)),
        ("b.xz", xz_of(&big)),
        ("b.bz2", bzip2_of(&big)),
        ("n.zip", zip_of(&[("n.gz", &gzip_of(&big))])),
    ] {
        let mut case = Case::new();
        case.options.max_unpacked_bytes = 2 << 20;
        let error = case.open_content(name, &bytes).unwrap_err();
        assert!(matches!(error, InputError::TooLarge { limit, .. } if limit == 2 << 20), "{name}: {error}");
        assert!(error.to_string().contains("--max-unpacked"), "{error}");
        assert!(case.temp_is_empty(), "{name}");
    }
}

#[test]
fn nesting_ends_after_one_level() {
    let trace = trace(100);
    let inner = zip_of(&[("t.etl", &trace)]);
    let deep = zip_of(&[("m.zip", &zip_of(&[("i.zip", &inner)])), ("top.etl", &trace)]);
    let mut case = Case::new();
    let files = case.open_content("d.zip", &deep).unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!(case.ledger.get(&anomaly::ARCHIVE_NESTED_TOO_DEEP), 1);
}

#[test]
fn encrypted_members_are_named() {
    let mut bytes = zip_of(&[("secret.etl", &trace(5000))]);
    // The encryption bit of the general-purpose flags: local header at 6, central directory at +8.
    bytes[6] |= 1;
    let central = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    bytes[central + 8] |= 1;
    for bytes in [&bytes[..], &bytes[..central]] {
        let error = Case::new().open_content("e.zip", bytes).unwrap_err();
        assert!(matches!(&error, InputError::Encrypted { member, .. } if member == "secret.etl"), "{error}");
        assert!(error.to_string().contains("password"));
    }
}

#[test]
fn deflate64_as_windows_explorer_writes_it() {
    // Without long matches a Deflate stream is a Deflate64 stream too, so only the method is exchanged.
    let mut trace = trace(40_000);
    for at in 0x50..0x400 {
        // Other noise than what follows, or the copy would be one long match.
        trace[at] = trace[at + 0x400] ^ at as u8;
    }
    let mut bytes = zip_of(&[("t.etl", &trace)]);
    let central = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    bytes[8] = 9;
    bytes[central + 10] = 9;
    for bytes in [&bytes[..], &bytes[..central]] {
        let mut case = Case::new();
        let files = case.open_content("t.zip", bytes).unwrap();
        assert!(content(&files[0]) == trace && files[0].complete);
    }
}

#[test]
fn things_that_are_no_traces_say_what_they_are() {
    let cases: &[(&str, &[u8], &str)] = &[
        ("System.evtx", b"ElfFile\0\0\0\0\0\0\0\0\0", "etwhy evtx"),
        ("empty.etl", b"", "empty file"),
        ("x.blg", &[0xFF; 200], "relog"),
        ("x.json", b"{\"a\":1}", "JSON"),
        ("x.dmp", b"PAGEDU64________", "crash dump"),
        ("x.txt.gz", &gzip_of(b"hello\n"), "text"),
        ("empty.gz", &gzip_of(b""), "empty file"),
        (
            "none.zip",
            &zip_of(&[("a.txt", b"x"), ("b.txt", b"y")]),
            "no trace in this archive (2 members: a.txt",
        ),
        ("bad.zip", b"PK\x03\x04rubbish", "damaged zip archive"),
    ];
    for (name, bytes, says) in cases {
        let mut case = Case::new();
        let error = case.open_content(name, bytes).unwrap_err();
        assert!(error.to_string().contains(says), "{name}: {error}");
        assert!(case.temp_is_empty());
    }
    let unknown = Case::new().open_content("x.bin", &[0xEE; 100]).unwrap();
    assert_eq!(unknown.len(), 1, "the reader has the last word on unknown bytes");
    let missing = Case::new().open("/no/such/file.etl".into()).unwrap_err();
    assert!(matches!(missing, InputError::Io { what: "open", .. }));
    let nothing = open(&[], &InputOptions::default(), &mut |_| {}, &mut Ledger::new());
    assert!(matches!(nothing, Err(InputError::NothingNamed)));
}

#[test]
fn a_folder_is_its_segments_in_order() {
    let mut case = Case::new();
    for name in ["f/t_10.etl", "f/t_2.etl", "f/t_1.ETL", "f/notes.txt", "f/deeper/x.etl"] {
        case.write(name, &trace(10));
    }
    case.write("f/t_3.etl", b"");
    let folder = case.dir.path().join("f");
    let files = case.open(folder).unwrap();
    let names: Vec<_> = files.iter().map(shown_end).collect();
    assert_eq!(names, ["t_1.ETL", "t_2.etl", "t_10.etl"]);
    assert_eq!(case.ledger.get(&anomaly::SEGMENT_SKIPPED), 1);
    let upper = case.write("g/h/x.etl", &trace(10)).parent().unwrap().parent().unwrap().to_path_buf();
    let error = case.open(upper.clone()).unwrap_err();
    assert!(error.to_string().contains("--recursive"), "{error}");
    case.options.recursive = true;
    assert_eq!(case.open(upper).unwrap().len(), 1);
}

#[test]
fn several_inputs_keep_their_order_and_progress_is_told() {
    let case = Case::new();
    let zip = case.write("b.zip", &zip_of(&[("x.etl", &trace(10)), ("y.etl", &trace(20))]));
    let plain = case.write("a.etl", &trace(30));
    let mut told = 0;
    let mut ledger = Ledger::new();
    let mut stdin: &[u8] = &trace(40);
    let args = [zip, "-".into(), plain];
    let files =
        open_with_stdin(&args, &mut stdin, &case.options, &mut |p| told += p.unpacked, &mut ledger).unwrap();
    let sizes: Vec<usize> = files.iter().map(|f| content(f).len() - 0x400).collect();
    assert_eq!(sizes, [10, 20, 40, 30]);
    assert_eq!(told, 3 * 0x400 + 70);
}

#[test]
fn damaged_archives_never_panic() {
    let trace = trace(3000);
    let members: &Members<'_> = &[("a.etl", &trace), ("b/c.txt", b"text"), ("d.etl", &trace[..1500])];
    let originals = [
        zip_of(members),
        seven_zip_of(members, true),
        seven_zip_of(members, false),
        gzip_of(&trace),
        zstd_of(&trace),
    ];
    let mut rng = Rng::new(1);
    let mut case = Case::new();
    case.options.max_unpacked_bytes = 1 << 22;
    for original in &originals {
        for round in 0..400 {
            let mut bytes = original.clone();
            let len = bytes.len() as u64;
            // Headers of zip and 7z stand at the end, so half of the damage goes there.
            for _ in 0..1 + round % 4 {
                let back = if round % 2 == 0 { len } else { len.min(300) };
                let at = (len - 1 - rng.below(back)) as usize;
                bytes[at] = rng.bits() as u8;
            }
            if round % 10 == 0 {
                bytes.truncate(rng.below(len) as usize);
            }
            let _ = case.open_content("x", &bytes);
        }
    }
    assert!(case.temp_is_empty());
}

#[test]
fn real_traces_are_recognised_and_survive_packing() {
    let Some(corpus) = etwhy_testkit::corpus() else { return };
    let mut folders = vec![corpus];
    let (mut traces, mut others) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let is_trace = path.extension().is_some_and(|e| e == "etl");
            let kind = sniff(&bytes[..bytes.len().min(etwhy_input::SNIFF_LEN)]);
            assert_eq!(kind == Kind::Etl, is_trace, "{}: {kind:?}", path.display());
            if path.extension().is_some_and(|e| e == "evtx") {
                assert_eq!(kind, Kind::Foreign(Foreign::Evtx), "{}", path.display());
            }
            if is_trace {
                traces += 1
            } else {
                others += 1
            }
            if is_trace && bytes.len() < 4 << 20 {
                let mut case = Case::new();
                let files = case.open_content("x.zip", &zip_of(&[("noname", &bytes)])).unwrap();
                assert!(content(&files[0]) == bytes, "{}", path.display());
                let files = case.open_content("x.zst", &zstd_of(&bytes)).unwrap();
                assert!(content(&files[0]) == bytes, "{}", path.display());
            }
        }
    }
    println!("{traces} traces and {others} other files");
    assert!(traces > 30);
}
