//! Extracts from elsewhere: wrong, damaged and hostile folders give an error that names the file, never a panic, and
//! never much memory.

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field};
use etwhy_base::rng::Rng;
use etwhy_export::extract::{ExtractError, Folder, Limits, Manifest, Writer, is_extract};
use etwhy_table::{Memory, Strings, Sym, Table, TableBuilder, TableSpec, define_table};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

define_table! {
    /// Rows with every type of column.
    pub table THING: ThingRow = "thing" {
        sorted_by: "ts_ns", version: 2,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Processor.
        cpu: Option<i32> [None, Cpu],
        /// Share.
        share: Option<f64> [Percent, Other],
        /// In a DPC.
        in_dpc: bool [None, Flag],
        /// Process.
        process: Option<Sym> [None, Name],
        /// Path.
        path: Box<str> [None, Path],
    }
}

const LIMITS: Limits =
    Limits { bytes: 1 << 30, ratio: 1000, free_bytes: 1 << 20, options: ["--all", "--times"] };

fn things(rows: usize) -> Table {
    let mut strings = Strings::new();
    let mut table = TableBuilder::<ThingRow>::new(&Memory::unlimited());
    for i in 0..rows {
        table.push(ThingRow {
            ts_ns: i as i64 * 1001,
            cpu: (i % 3 != 0).then_some(i as i32 % 8),
            share: (i % 2 == 0).then_some(i as f64 / 3.0),
            in_dpc: i % 5 == 0,
            process: (i % 7 != 0).then(|| strings.intern(&format!("process {}", i % 100))),
            path: format!("C:\\folder\\{i}").into(),
        });
    }
    table.finish(&strings.freeze().unwrap()).unwrap()
}

fn write(folder: &Path, table: &Table) -> Manifest {
    let mut writer = Writer::new(folder, vec!["x.etl".to_owned()], false).unwrap();
    writer.table(table).unwrap();
    writer.finish().unwrap()
}

fn load_with(folder: &Path, spec: &TableSpec, limits: Limits) -> Result<Table, ExtractError> {
    let mut strings = Strings::new();
    let loader = Folder::open(folder, limits)?.load(spec, &mut strings, &Memory::unlimited())?;
    let rows = |source| ExtractError::Rows { file: folder.to_path_buf(), source };
    loader.finish(&strings.freeze().unwrap()).map_err(rows)
}

fn load(folder: &Path) -> Result<Table, ExtractError> {
    load_with(folder, &THING, LIMITS)
}

/// An extract whose table is what `columns` make of it.
fn foreign(folder: &Path, columns: Vec<(&str, ArrayRef)>, properties: Option<WriterProperties>) {
    if !folder.exists() {
        write(folder, &things(1));
    }
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(folder.join("thing.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), properties).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    trust(folder);
}

/// Gives the manifest the checksums of a file that was changed on purpose.
fn trust(folder: &Path) {
    let mut manifest = Folder::open(folder, LIMITS).unwrap().manifest().clone();
    manifest.trust(folder, "thing").unwrap();
    std::fs::write(folder.join("manifest.json"), manifest.text().unwrap()).unwrap();
}

fn columns(rows: usize) -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("ts_ns", Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i as i64)))),
        ("cpu", Arc::new(Int32Array::from(vec![1; rows]))),
        ("share", Arc::new(arrow_array::Float64Array::from(vec![0.5; rows]))),
        ("in_dpc", Arc::new(BooleanArray::from(vec![true; rows]))),
        ("process", Arc::new(StringArray::from(vec!["a.exe"; rows]))),
        ("path", Arc::new(StringArray::from(vec!["C:\\x"; rows]))),
    ]
}

/// With one column in place of that of its name.
fn with(name: &'static str, array: ArrayRef) -> Vec<(&'static str, ArrayRef)> {
    let mut all = columns(array.len());
    all.iter_mut().find(|c| c.0 == name).unwrap().1 = array;
    all
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    let table = things(200_000);
    let manifest = write(&place, &table);
    assert_eq!((manifest.tables[0].rows, manifest.tables[0].version), (200_000, 2));
    assert!(is_extract(&place) && !is_extract(folder.path()));
    let again = load(&place).unwrap();
    assert_eq!(again.spec(), table.spec());
    assert_eq!(again.rows(), table.rows());
    for row in 0..table.rows() as u32 {
        for column in 0..THING.columns.len() {
            assert_eq!(again.cell(row, column), table.cell(row, column), "row {row}");
        }
    }
}

#[test]
fn columns_of_others_are_taken_if_they_fit() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    let mut all = columns(10);
    all.reverse();
    all.insert(2, ("more", Arc::new(Int64Array::from(vec![7; 10]))));
    foreign(&place, all, None);
    let table = load(&place).unwrap();
    assert_eq!(table.i64(9, "ts_ns"), Some(9));
    assert_eq!(table.text(3, "process"), Some("a.exe"));
    assert_eq!(table.text(3, "path"), Some("C:\\x"));
}

#[test]
fn columns_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    let group = StructArray::from(vec![(
        Arc::new(Field::new("x", DataType::Int64, false)),
        Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef,
    )]);
    let stamp = arrow_array::TimestampNanosecondArray::from(vec![1, 2]);
    let missing: Vec<_> = columns(2).into_iter().filter(|c| c.0 != "share").collect();
    let list = arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>(vec![
        Some(vec![Some(1), Some(2)]),
        None,
    ]);
    let cases: Vec<(Vec<(&str, ArrayRef)>, &str)> = vec![
        (with("ts_ns", Arc::new(Int32Array::from(vec![1, 2]))), "`ts_ns` is INT32, not i64"),
        (with("ts_ns", Arc::new(stamp)), "`ts_ns` is INT64 (Timestamp"),
        (with("cpu", Arc::new(Int64Array::from(vec![1, 2]))), "`cpu` is INT64, not i32"),
        (with("path", Arc::new(Int64Array::from(vec![1, 2]))), "`path` is INT64, not long text"),
        (with("process", Arc::new(BooleanArray::from(vec![true, false]))), "`process` is BOOLEAN, not text"),
        (
            with("path", Arc::new(arrow_array::BinaryArray::from_vec(vec![b"\xff", b"\xfe"]))),
            "`path` is BYTE_ARRAY, not long text",
        ),
        (with("share", Arc::new(group)), "`share` is nested"),
        (with("ts_ns", Arc::new(list)), "`ts_ns` is nested"),
        (missing, "`share` is missing"),
    ];
    for (columns, expected) in cases {
        foreign(&place, columns, None);
        let error = load(&place).unwrap_err();
        assert!(matches!(error, ExtractError::Columns { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error} / {expected}");
    }
    foreign(&place, with("ts_ns", Arc::new(Int64Array::from(vec![Some(1), None]))), None);
    let error = load(&place).unwrap_err();
    assert!(matches!(error, ExtractError::Rows { .. }), "{error}");
}

#[test]
fn versions_decide() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    write(&place, &things(5));
    let file = place.join("manifest.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let change = |from: &str, to: &str| {
        assert!(text.contains(from));
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        load(&place).unwrap_err()
    };
    let error = change("\"version\": 2", "\"version\": 4000000000000");
    assert!(matches!(error, ExtractError::TooNew { version: u32::MAX, .. }), "{error}");
    let error = change("\"version\": 2", "\"version\": 1");
    assert!(matches!(error, ExtractError::TooOld { version: 1, known: 2, .. }), "{error}");
    std::fs::write(&file, &text).unwrap();
    let table = |version| {
        let mut manifest = Folder::open(&place, LIMITS).unwrap().manifest().clone();
        manifest.tables[0].version = version;
        std::fs::write(&file, manifest.text().unwrap()).unwrap();
        load(&place).unwrap_err()
    };
    assert!(matches!(table(3), ExtractError::TooNew { version: 3, known: 2, .. }));
    assert!(matches!(table(1), ExtractError::TooOld { version: 1, known: 2, .. }));
    for (from, to) in [("etwhy extract", "zzz"), ("{", "["), ("\"tables\": [", "\"tables\": 7, \"x\": [")] {
        let error = change(from, to);
        assert!(matches!(error, ExtractError::Manifest { .. }), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(load(&place), Err(ExtractError::Io { .. })));
}

/// All cells, or that the extract is refused.
fn cells(folder: &Path) -> Option<Vec<String>> {
    let table = load(folder).ok()?;
    let columns = 0..THING.columns.len();
    let row =
        |row| columns.clone().map(|c| format!("{:?}", table.cell(row, c))).collect::<Vec<_>>().join("|");
    Some((0..table.rows() as u32).map(row).collect())
}

#[test]
fn what_changed_is_refused_or_answers_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    write(&place, &things(1000));
    let expected = cells(&place).unwrap();
    let (mut refused, mut rng) = (0, Rng::new(1));
    for name in ["thing.parquet", "manifest.json"] {
        let file = place.join(name);
        let whole = std::fs::read(&file).unwrap();
        for _ in 0..600 {
            let mut bytes = whole.clone();
            let at = rng.index(whole.len());
            bytes[at] ^= match rng.below(2) {
                0 => 1 << rng.below(8),
                _ => (rng.below(255) + 1) as u8,
            };
            std::fs::write(&file, &bytes).unwrap();
            match cells(&place) {
                None => refused += 1,
                Some(cells) => assert!(cells == expected, "{name}: another answer after a change at {at:#x}"),
            }
        }
        std::fs::write(&file, &whole).unwrap();
    }
    // What is not read may change: the first bytes of the file, pages of indexes.
    assert!(refused > 1100, "{refused}");
    let file = place.join("thing.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    // The first column's pages begin behind the four bytes of the file's mark.
    bytes[24] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let error = load(&place).unwrap_err().to_string();
    assert!(error.contains("thing.parquet") && error.contains("column `ts_ns`, row group 0"), "{error}");
}

#[test]
fn damage_with_right_checksums_is_an_error_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    write(&place, &things(1000));
    let file = place.join("thing.parquet");
    let whole = std::fs::read(&file).unwrap();
    let footer = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().unwrap()) as usize;
    let pages = whole.len() - 8 - footer;
    let (mut errors, mut rng) = (0, Rng::new(1));
    for at in (0..pages).step_by(pages / 1000 + 1) {
        let mut bytes = whole.clone();
        bytes[at] ^= (rng.below(255) + 1) as u8;
        std::fs::write(&file, &bytes).unwrap();
        trust(&place);
        errors += usize::from(load(&place).is_err());
    }
    assert!(errors > 100, "{errors}");
    // Somebody else's metadata: checksums are right, places and numbers are not.
    std::fs::write(&file, &whole).unwrap();
    trust(&place);
    let sealed = std::fs::read(place.join("manifest.json")).unwrap();
    for at in (pages..whole.len()).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << rng.below(8);
        std::fs::write(&file, &bytes).unwrap();
        std::fs::write(place.join("manifest.json"), &sealed).unwrap();
        let mut manifest = Folder::open(&place, LIMITS).unwrap().manifest().clone();
        manifest.tables[0].footer_crc32 = format!("{:08x}", crc32fast::hash(&bytes[pages..]));
        std::fs::write(place.join("manifest.json"), manifest.text().unwrap()).unwrap();
        let _ = load(&place);
    }
    for len in [0, 3, 8, 12, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..len]).unwrap();
        assert!(matches!(load(&place), Err(ExtractError::Damaged { .. })), "{len}");
    }
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(load(&place), Err(ExtractError::Io { .. })));
    std::fs::create_dir(&file).unwrap();
    assert!(load(&place).is_err());
}

#[test]
fn what_unpacks_to_too_much_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x");
    // Many rows in few bytes.
    let mut all = columns(200_000);
    all[0].1 = Arc::new(Int64Array::from(vec![5; 200_000]));
    foreign(&place, all, None);
    let tight = Limits { free_bytes: 1000, ratio: 10, ..LIMITS };
    let error = load_with(&place, &THING, tight).unwrap_err();
    assert!(error.to_string().contains("--times"), "{error}");
    let error = load_with(&place, &THING, Limits { bytes: 1_000_000, free_bytes: 1 << 40, ..LIMITS });
    assert!(error.unwrap_err().to_string().contains("--all"));
    assert_eq!(load_with(&place, &THING, Limits { free_bytes: 1 << 40, ..LIMITS }).unwrap().rows(), 200_000);
    // A long text that stands in the file once, as an entry of a dictionary, and in all rows: 3 GB.
    let text = "x".repeat(1 << 20);
    let long = StringArray::from_iter_values((0..16).map(|_| text.as_str()));
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(1 << 30).build();
    let batch = RecordBatch::try_from_iter(with("path", Arc::new(long))).unwrap();
    let file = File::create(place.join("thing.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    for _ in 0..200 {
        writer.write(&batch).unwrap();
    }
    writer.close().unwrap();
    trust(&place);
    let error = load(&place).unwrap_err();
    assert!(matches!(error, ExtractError::TooLarge { .. }), "{error}");
}

#[test]
fn folders_of_others_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("mine");
    std::fs::create_dir(&place).unwrap();
    // An empty folder is nobody's.
    write(&place, &things(1));
    // One that was extracted is replaced, but not with what others put there: under any name, and of any kind.
    write(&place, &things(2));
    let begun = Writer::new(&place, Vec::new(), false).unwrap();
    for name in ["other.parquet", "notes.txt", "folder"] {
        let theirs = place.join(name);
        match name {
            "folder" => std::fs::create_dir(&theirs).unwrap(),
            _ => std::fs::write(&theirs, "theirs").unwrap(),
        }
        let refused = Writer::new(&place, Vec::new(), false).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("--force"), "{refused}");
        if name == "folder" {
            // It came while the trace was read.
            assert!(begun.finish().is_err() && theirs.is_dir());
            std::fs::remove_dir(theirs).unwrap();
            break;
        }
        std::fs::remove_file(theirs).unwrap();
    }
    assert_eq!(load(&place).unwrap().rows(), 2);
    #[cfg(unix)]
    {
        // A link means the folder that it names, and stays.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&place, &link).unwrap();
        write(&link, &things(4));
        assert!(link.is_symlink() && load(&place).unwrap().rows() == 4);
        std::fs::remove_file(link).unwrap();
    }
    std::fs::remove_file(place.join("manifest.json")).unwrap();
    let refused = Writer::new(&place, Vec::new(), false).unwrap_err();
    assert!(refused.to_string().contains("--force"), "{refused}");
    // What was begun and not finished leaves nothing.
    let mut writer = Writer::new(&place, Vec::new(), true).unwrap();
    writer.table(&things(3)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 1);
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(Writer::new(&file, Vec::new(), true).is_err());
}
