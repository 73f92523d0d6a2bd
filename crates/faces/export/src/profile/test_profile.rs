//! A small profile for the tests of all formats: one hostile process, one thread, two stacks, three samples.

use super::{At, Profile, ProfileFormat, Weight, Weights, write_profile};
use etwhy_table::{AdHocBuilder, Database, Memory, Table, TableSpec, Unit, Value};
use std::sync::LazyLock;

/// A table that ships, with these columns; the others are without values.
pub(crate) fn table(name: &'static str, columns: &[&'static str], rows: &[&[Value<'_>]]) -> Table {
    let mut specs = etwhy_trace::catalog::ALL.iter().flat_map(|spec| spec.tables);
    let spec = specs.find(|spec| spec.name == name).expect("a table of a trace");
    let mut all = spec.columns.to_vec();
    all.iter_mut().for_each(|column| column.nullable = true);
    assert!(columns.iter().all(|name| spec.column(name).is_some()), "{name}: {columns:?}");
    let from = all.iter().map(|column| columns.iter().position(|name| *name == column.name));
    let from: Vec<Option<usize>> = from.collect();
    let spec = TableSpec { columns: all.into(), sorted_by: None, ..(*spec).clone() };
    let mut builder = AdHocBuilder::new(spec, &Memory::unlimited());
    for row in rows {
        let cells = from.iter().map(|at| at.and_then(|at| row.get(at)).copied().unwrap_or(Value::Null));
        builder.push(&cells.collect::<Vec<_>>()).unwrap();
    }
    builder.finish().unwrap()
}

fn tables() -> Database {
    use Value::{Bool, I64, Null, Text};
    let mut db = Database::new();
    db.insert(table(
        "trace",
        &["first_ns", "last_ns", "start_unix_ns", "sample_interval_ns", "duration_ns"],
        &[&[I64(0), I64(10_000_000), I64(1_700_000_000_000_000_000), I64(1_000_000), I64(10_000_000)]],
    ));
    db.insert(table(
        "process",
        &["pid", "name", "parent_upid", "command_line", "services", "start_ns", "end_ns"],
        &[
            &[I64(0), Text("Idle"), Null, Text(""), Text(""), Null, Null],
            &[I64(40), Text("evil;name\n 12.exe"), I64(0), Text("a </script> \"b\""), Null, I64(1000), Null],
        ],
    ));
    db.insert(table(
        "thread",
        &["tid", "upid", "name", "service", "start_function", "start_ns", "end_ns"],
        &[
            &[I64(0), I64(0), Text(""), Text(""), Text(""), Null, Null],
            &[I64(44), I64(1), Text("worker"), Null, Text("a.dll!main"), I64(1000), I64(9_000_000)],
        ],
    ));
    db.insert(table("stack", &["depth", "kernel_depth"], &[&[I64(2), I64(0)], &[I64(2), I64(1)]]));
    db.insert(table(
        "stack_frame",
        &["stack_id", "position", "frame_id"],
        &[
            &[I64(0), I64(0), I64(1)],
            &[I64(0), I64(1), I64(0)],
            &[I64(1), I64(0), I64(2)],
            &[I64(1), I64(1), I64(0)],
        ],
    ));
    let kernel = 0xffff_f800_0000_0010u64 as i64;
    db.insert(table(
        "frame",
        &["module", "function", "label", "kind", "file", "line", "image_id", "rva", "address"],
        &[
            &[
                Text("a.dll"),
                Text("main"),
                Text("a.dll!main"),
                Text("user"),
                Text("c:\\a.c"),
                I64(7),
                I64(0),
                I64(0x1000),
                I64(0x7000_1000),
            ],
            &[
                Text("a.dll"),
                Text("work"),
                Text("a.dll!work"),
                Text("user"),
                Null,
                Null,
                I64(0),
                I64(0x2000),
                I64(0x7000_2000),
            ],
            &[
                Text("ntoskrnl.exe"),
                Null,
                Text("ntoskrnl.exe!+0x10"),
                Text("kernel"),
                Null,
                Null,
                I64(1),
                I64(0x10),
                I64(kernel),
            ],
        ],
    ));
    db.insert(table(
        "image",
        &["name", "path", "base", "size_bytes", "pdb_name", "pdb_guid", "pdb_age", "time_date_stamp"],
        &[
            &[
                Text("a.dll"),
                Text("C:\\a.dll"),
                I64(0x7000_0000),
                I64(0x10000),
                Text("a.pdb"),
                Text("00112233-4455-6677-8899-AABBCCDDEEFF"),
                I64(10),
                I64(0x1234),
            ],
            &[
                Text("ntoskrnl.exe"),
                Text("C:\\ntoskrnl.exe"),
                I64(kernel - 0x10),
                I64(0x1000),
                Null,
                Null,
                Null,
                I64(0x5678),
            ],
        ],
    ));
    db.insert(table(
        "sample",
        &["ts_ns", "cpu", "upid", "utid", "stack_id", "weight_ns", "in_dpc", "in_isr"],
        &[
            &[I64(1_000_000), I64(0), I64(1), I64(1), I64(0), I64(1000), Bool(false), Bool(false)],
            &[I64(2_000_000), I64(0), I64(1), I64(1), I64(0), I64(2000), Bool(false), Bool(false)],
            &[I64(3_000_000), I64(0), I64(1), I64(1), I64(1), I64(1500), Bool(false), Bool(false)],
        ],
    ));
    db
}

static TABLES: LazyLock<Database> = LazyLock::new(tables);

/// The profile, with CPU time as its weight.
pub(crate) fn profile() -> Profile<'static> {
    let mut profile = Profile::new(&TABLES);
    let each = |give: &mut dyn FnMut(Weight)| {
        for (ts_ns, utid, stack, weight) in
            [(1_000_000, 1, 0, 1000), (2_000_000, 1, 0, 2000), (3_000_000, 1, 1, 1500), (4_000_000, 0, 0, 9)]
        {
            let (upid, utid) = (Some(utid), Some(utid));
            give(Weight {
                ts_ns: Some(ts_ns),
                upid,
                utid,
                at: At { stack: Some(stack), ..At::default() },
                weight,
                count: 1,
            });
        }
    };
    profile.weights.push(Weights { name: "cpu", unit: Unit::Ns, each: Box::new(each) });
    profile
}

/// What a format writes, uncompressed.
pub(crate) fn written(format: &ProfileFormat, profile: &Profile<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    (format.write)(profile, &mut out).unwrap();
    let mut packed = Vec::new();
    write_profile(format, profile, true, &mut packed).unwrap();
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut unpacked).unwrap();
    assert_eq!(out, unpacked);
    out
}
