//! Targets that read text, and archives.

use super::target::accepted;
use crate::scratch;
use crate::seeds::{self, SCENARIO, Seed};
use etwhy_etl::Ledger;
use etwhy_input::InputOptions;
use etwhy_table::{Predicate, Selection, SortKey, Table};
use std::path::Path;
use std::sync::LazyLock;

/// A Breakpad symbol file.
pub fn breakpad(data: &[u8]) {
    let Ok(module) = etwhy_symbols::breakpad::read(data, Path::new("mutant.sym"), None, "") else { return };
    for rva in [0, 1, 0xFFF, 0x1000, 0x1009, 0x2000, 0x3010, 0x7FFF_FFFF, u32::MAX] {
        if let Some(symbol) = module.lookup(rva) {
            accepted();
            assert!(symbol.places.count() <= data.len() + 1);
        }
    }
}

/// All records of the format.
pub fn breakpad_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let text = "MODULE windows x86_64 5A9832E5287241C1838ED98914E9B7FF1 a.pdb\nINFO CODE_ID 5A5D9C7E1000 a.exe\n\
        FILE 1 c:\\src\\a file.cc\nFILE 2 b.h\nINLINE_ORIGIN 5 std::max<int>(int, int)\n\
        FUNC m 1000 20 0 ns::f(int, char const *)\nINLINE 0 11 1 5 1008 8 1018 4\nINLINE 1 12 2 5 1009 2\n\
        1000 8 10 1\n1008 8 3 2\n1010 10 12 1\nFUNC 2000 4 8 g\n2000 4 7 2\nPUBLIC m 3000 0 h\n\
        PUBLIC 3010 0 i j\nSTACK CFI INIT 1000 20 .cfa: $rsp 8 +\n";
    vec![Seed { name: "all records".into(), data: text.into() }]
}

/// A list of sessions.
pub fn loggers(data: &[u8]) {
    let found = etwhy_trace::logger_text::parse(data, "mutant.txt");
    let listed: usize = found.iter().map(|l| 1 + l.providers.len() + l.kernel_flags.len()).sum();
    assert!(listed <= data.len());
    if listed > 0 {
        accepted();
    }
}

/// One of each tool.
pub fn loggers_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let text = "Logger Name           : NT Kernel Logger\nLogger Id             : ffff\nBuffer Size           : 64\n\
        Log Filename          : k.etl\nTrace Flags           : PROC_THREAD+\"A-B\":0x1:0x5+\n\n\
        Data Collector Set                      Type                          Status\n\
        ---------------------------------------\nEventLog-System                         Trace                         Running\n\n\
        Name:                 EventLog-System\\EventLog-System\nBuffers Lost:         1\n\nProvider:\n\
        Name:                 A-B\nProvider Guid:        {A68CA8B7-004F-D7B6-A698-07E2DE0F1F5D}\nLevel:                4 (x)\n\
        KeywordsAny:          0x237f (process,thread)\n\nCollector Name          : WPR\nSystem Keywords\n\tCSwitch\n\
        Providers\n\tA-B: 0x1: 0x04 : Stack\n";
    vec![Seed { name: "all tools".into(), data: text.into() }]
}

/// A scenario; small ones that are sound are written too.
pub fn scenario(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    // The error names its place, so it is made up too.
    if etwhy_synth::Scenario::parse(&text, "mutant.toml").map_err(|e| e.to_string()).is_ok() {
        accepted();
    }
}

/// The small scenario, the demonstration and pieces of both.
pub fn scenario_seeds(_: &Path, _: usize) -> Vec<Seed> {
    [("small", SCENARIO), ("demo", etwhy_synth::DEMO)]
        .map(|(name, text)| Seed { name: name.into(), data: text.as_bytes().to_vec() })
        .into()
}

/// Conditions, one a line; lines that start with `sort ` or `columns ` are that.
pub fn filter(data: &[u8]) {
    let table = table();
    let text = String::from_utf8_lossy(data);
    for line in text.lines().take(50) {
        if let Some(keys) = line.strip_prefix("sort ") {
            if let Ok(key) = SortKey::parse(keys, table.spec()) {
                accepted();
                assert_eq!(Selection::all(&table).sort(&[key], None).len(), table.rows());
            }
        } else if let Some(list) = line.strip_prefix("columns ") {
            if Selection::all(&table).columns(list).is_ok() {
                accepted();
            }
        } else if let Ok(condition) = Predicate::parse(line, table.spec()) {
            accepted();
            assert!(Selection::all(&table).filter(&[condition]).len() <= table.rows());
        }
    }
}

/// A table of all types of columns.
fn table() -> Table {
    use etwhy_table::{AdHocBuilder, ColumnSpec, ColumnType, Memory, Role, TableSpec, Unit, Value};
    let column = |name: &'static str, ty, unit| ColumnSpec {
        name: name.into(),
        ty,
        unit,
        role: Role::Other,
        doc: "".into(),
        nullable: true,
    };
    let columns = vec![
        column("name", ColumnType::Text, Unit::None),
        column("dur_ns", ColumnType::I64, Unit::Ns),
        column("size_bytes", ColumnType::I64, Unit::Bytes),
        column("share", ColumnType::F64, Unit::None),
        column("in_dpc", ColumnType::Bool, Unit::None),
        column("address", ColumnType::I64, Unit::Address),
        column("pid", ColumnType::I32, Unit::None),
    ];
    let spec = TableSpec {
        name: "mutant".into(),
        columns: columns.into(),
        ..etwhy_trace::catalog::mark::MARK.clone()
    };
    let mut builder = AdHocBuilder::new(spec, &Memory::unlimited());
    for i in 0..40i64 {
        let row = [
            Value::Text(["cmd.exe", "a*b", "ÄÖÜ", ""].get(i as usize % 4).copied().unwrap_or("")),
            Value::I64(i * 1_000_001),
            if i % 7 == 0 { Value::Null } else { Value::I64(i64::MAX - i) },
            Value::F64([0.5, f64::NAN, f64::INFINITY, -1e300].get(i as usize % 4).copied().unwrap_or(0.0)),
            Value::Bool(i % 2 == 0),
            Value::I64(i64::MIN + i),
            Value::I64(i),
        ];
        if builder.push(&row).is_err() {
            break;
        }
    }
    match builder.finish() {
        Ok(table) => table,
        Err(error) => {
            assert_eq!(error.to_string(), "");
            std::process::abort()
        }
    }
}

/// Lines of every kind.
pub fn filter_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let text = "name=cmd*;!a\\*b\nname!=*x?y*\ndur_ms>=5\ndur_ns<5us\ndur_us=1..2;!1.5\nsize_mb>=0.5GiB\n\
                size_bytes>64KiB\nshare<=1e-3\nshare=NaN\nin_dpc=true\naddress=0xfffff80000000000..\n\
                pid=4;100..200;!150\npid=\nname!=\nsort -dur_ms\nsort name,-pid\ncolumns name,*,!pid\ncolumns dur_s\n";
    let mut seeds = vec![Seed { name: "all".into(), data: text.into() }];
    seeds.extend(text.lines().map(|l| Seed { name: l.into(), data: l.into() }));
    seeds
}

/// Whatever a user may name: archives of all kinds, and files that are something else.
pub fn archive(data: &[u8]) {
    let Some(path) = scratch::file("input.bin", data) else { return };
    let options = InputOptions {
        temp_dir: Some(scratch::folder()),
        max_unpacked_bytes: 64 << 20,
        max_ratio: 1000,
        ..InputOptions::default()
    };
    let mut ledger = Ledger::new();
    if let Ok(files) = etwhy_input::open(&[path], &options, &mut |_| {}, &mut ledger) {
        for file in files {
            accepted();
            assert!(file.path.starts_with(scratch::folder()), "unpacked to a place that nobody chose");
        }
    }
}

/// A list of contents of a 7z archive: the checksums in front of it are made right.
pub fn seven_zip(data: &[u8]) {
    // Nothing is unpacked that does not begin like a trace.
    static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let trace = seeds::written().into_iter().next();
        trace.and_then(|seed| seed.data.get(..100).map(<[u8]>::to_vec)).unwrap_or_default()
    });
    archive(&crate::hostile::seven_zip(&HEAD, data));
}

/// One stored member, and the coders and properties that real archives have.
pub fn seven_zip_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let stored = crate::hostile::seven_zip_contents(100);
    // LZMA (03 01 01 with 5 bytes of properties) in place of "copy" (00).
    let mut lzma = stored.clone();
    lzma.splice(13..15, [0x23, 3, 1, 1, 5, 0x5D, 0, 0, 1, 0]);
    // LZMA2 with a dictionary of any size.
    let mut lzma2 = stored.clone();
    lzma2.splice(13..15, [0x21, 0x21, 1, 24]);
    // A packed list of contents.
    let mut packed = stored.get(1..21).unwrap_or(&[]).to_vec();
    packed.splice(0..1, [23]);
    [("stored", stored), ("lzma", lzma), ("lzma2", lzma2), ("packed contents", packed)]
        .map(|(name, data)| Seed { name: name.into(), data })
        .into()
}

/// Archives are made by hand: stored members need no compressor.
pub fn archive_seeds(corpus: &Path, limit: usize) -> Vec<Seed> {
    let trace =
        seeds::written().into_iter().next().map(|s| seeds::cut(s.data, 32 * 1024)).unwrap_or_default();
    let mut seeds = vec![
        Seed {
            name: "zip".into(),
            data: crate::hostile::stored_zip(&[("a.etl", &trace), ("b/c.txt", b"x")]),
        },
        Seed { name: "gzip".into(), data: crate::hostile::stored_gzip(&trace) },
        Seed { name: "zstd".into(), data: crate::hostile::stored_zstd(&trace) },
        Seed { name: "etl".into(), data: trace },
        Seed {
            name: "7z".into(),
            data: b"7z\xBC\xAF\x27\x1C\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        },
        Seed { name: "png".into(), data: b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR".to_vec() },
    ];
    for path in seeds::files(corpus, &[".evtx"]).into_iter().take(1) {
        if let Ok(mut data) = std::fs::read(path) {
            data.truncate(limit.min(8192));
            seeds.push(Seed { name: "evtx".into(), data });
        }
    }
    seeds
}
