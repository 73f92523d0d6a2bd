//! Building, spilling and rewriting tables.

use crate::test_table::{EXAMPLE, ExampleRow, example, example_with};
use crate::*;

#[test]
fn the_declaration_follows_the_source() {
    assert_eq!(EXAMPLE.title, "Rows to test with");
    assert_eq!(EXAMPLE.manual(), "Rows to test with.\n\nNothing else.");
    assert_eq!(EXAMPLE.sorted_by.as_deref(), Some("ts_ns"));
    assert_eq!((EXAMPLE.version, EXAMPLE.evidence), (3, Evidence::Verified("nothing")));
    let ts = EXAMPLE.column("ts_ns").unwrap();
    assert_eq!((ts.doc.as_ref(), ts.ty, ts.nullable), ("When it was.", ColumnType::I64, false));
    let process = EXAMPLE.column("process").unwrap();
    assert_eq!((process.ty, process.nullable, process.role), (ColumnType::Text, true, Role::Name));
    let field = arrow_field(process);
    assert_eq!(field.metadata()["etwhy.doc"], "Process.");
}

#[test]
fn cells_come_back() {
    let table = example();
    assert_eq!(table.rows(), 4);
    assert_eq!(table.i64(1, "ts_ns"), Some(10));
    assert_eq!(table.i64(3, "wait_ns"), None);
    assert_eq!(table.text(2, "process"), Some("System"));
    assert_eq!(table.value(3, "process"), Value::Null);
    assert_eq!(table.f64(1, "share"), Some(50.0));
    assert_eq!(table.value(0, "in_dpc"), Value::Bool(true));
    assert_eq!(table.value(0, "nope"), Value::Null);
    assert_eq!(table.value(9, "ts_ns"), Value::Null);
    let view = &table.column("process").unwrap()[0];
    assert_eq!(view.key(0), table.texts().find("cmd.exe"));
    assert!(view.is_null(3) && view.is_null(4));
    assert!(table.column("nope").is_none());
    assert!(table.view(7, 0).is_empty());
}

#[test]
fn chunks_are_full_but_the_last() {
    let table = example_with(&Memory::unlimited(), 2 * CHUNK_ROWS + 5);
    let sizes: Vec<usize> = table.batches().iter().map(|b| b.num_rows()).collect();
    assert_eq!(sizes, [CHUNK_ROWS, CHUNK_ROWS, 5]);
    for row in [0, CHUNK_ROWS - 1, CHUNK_ROWS, 2 * CHUNK_ROWS, 2 * CHUNK_ROWS + 4] {
        assert_eq!(table.i64(row as u32, "ts_ns"), Some(row as i64 * 10));
    }
    assert_eq!(table.locate(2 * CHUNK_ROWS as u32 + 5), None);
}

#[test]
fn an_empty_table_is_a_table() {
    let table = example_with(&Memory::unlimited(), 0);
    assert_eq!((table.rows(), table.batches().len()), (0, 0));
    assert_eq!(Selection::all(&table).sort(&[], None).len(), 0);
}

#[test]
fn spilled_tables_give_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    let rows = 3 * CHUNK_ROWS + 100;
    let memory = Memory::with_budget(1 << 20, Some(folder.path().to_path_buf()));
    let spilled = example_with(&memory, rows);
    let kept = example_with(&Memory::unlimited(), rows);
    assert_eq!(spilled.batches(), kept.batches());
    assert!(memory.spilled() > 10 << 20, "{memory:?}");
    assert_eq!(memory.failure(), None);
    assert!(memory.held() < 1 << 20);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files are unlinked");
}

/// What others hold counts: a table that would fit alone goes to a file.
#[test]
fn a_limit_of_the_process_is_of_all_that_it_holds() {
    let Some(before) = etwhy_os::held_by_process() else { return };
    let ballast = std::hint::black_box(vec![1u8; 256 << 20]);
    let rows = 2 * CHUNK_ROWS;
    let tight = Memory::of_process(128 << 20, None);
    assert_eq!(example_with(&tight, rows).batches(), example_with(&Memory::unlimited(), rows).batches());
    assert!(tight.spilled() > 5 << 20, "{tight:?}");
    let wide = Memory::of_process(before + (8 << 30), None);
    example_with(&wide, rows);
    assert_eq!(wide.spilled(), 0, "{wide:?} {}", ballast.len());
}

#[test]
fn without_a_disk_everything_stays_in_memory() {
    let memory = Memory::with_budget(0, Some("/nonexistent/folder".into()));
    let table = example_with(&memory, CHUNK_ROWS + 1);
    assert_eq!(table.batches(), example_with(&Memory::unlimited(), CHUNK_ROWS + 1).batches());
    assert_eq!(memory.spilled(), 0);
    assert!(memory.failure().unwrap().contains("nonexistent"));
}

fn remapped(memory: &Memory) -> Table {
    define_table! {
        /// Stacks.
        pub table IDS: IdRow = "ids" {
            title: "Stack ids",
            version: 1, evidence: Documented,
            /// Id.
            id: Option<i32> [None, Stack],
            /// Number.
            n: i64 [None, Other],
        }
    }
    assert_eq!((IDS.title.as_ref(), IDS.sorted_by.as_ref()), ("Stack ids", None));
    let mut builder = TableBuilder::<IdRow>::new(memory);
    for n in 0..(2 * CHUNK_ROWS as i64 + 3) {
        builder.push(IdRow { id: (n % 3 != 0).then_some(n as i32), n });
    }
    let seven = |id: Option<i32>| match id {
        None => Some(7),
        Some(n) if n % 2 == 0 => None,
        Some(n) => Some(-n),
    };
    builder.remap_i32("id", seven).unwrap();
    assert!(matches!(builder.remap_i32("n", |id| id), Err(TableError::WrongType { .. })));
    assert!(matches!(builder.remap_i32("x", |id| id), Err(TableError::NoColumn { .. })));
    builder.push(IdRow { id: Some(1), n: 0 });
    builder.finish(&Strings::new().freeze().unwrap()).unwrap()
}

#[test]
fn ids_can_change_after_the_pass() {
    let table = remapped(&Memory::unlimited());
    let ids: Vec<Option<i64>> = (0..6).map(|row| table.i64(row, "id")).collect();
    assert_eq!(ids, [Some(7), Some(-1), None, Some(7), None, Some(-5)]);
    let last = table.rows() as u32 - 1;
    assert_eq!(table.i64(last, "id"), Some(1));
    let folder = tempfile::tempdir().unwrap();
    let spilled = remapped(&Memory::with_budget(0, Some(folder.path().into())));
    assert_eq!(spilled.batches(), table.batches());
}

#[test]
fn a_null_where_none_may_be_is_an_error() {
    let mut builder = TableBuilder::<ExampleRow>::new(&Memory::unlimited());
    builder.push(ExampleRow {
        ts_ns: 0,
        cpu: 0,
        wait_ns: None,
        size: 0,
        process: None,
        address: 0,
        status: 0,
        share: None,
        in_dpc: None,
        fields: "".into(),
    });
    builder.remap_i32("cpu", |_| None).unwrap();
    assert!(matches!(builder.finish(&Strings::new().freeze().unwrap()), Err(TableError::Arrow { .. })));
}

#[test]
fn tables_can_be_made_of_values() {
    let mut spec = EXAMPLE.clone();
    spec.name = "query".into();
    spec.columns.to_mut().truncate(5);
    let mut builder = AdHocBuilder::new(spec, &Memory::unlimited());
    let row = [Value::I64(1), Value::I64(1 << 40), Value::Null, Value::F64(1.0), Value::Text("x")];
    builder.push(&row).unwrap();
    assert!(matches!(builder.push(&row[..2]), Err(TableError::WrongWidth { .. })));
    let table = builder.finish().unwrap();
    let cells: Vec<Value<'_>> = (0..5).map(|column| table.cell(0, column)).collect();
    assert_eq!(cells, [Value::I64(1), Value::Null, Value::Null, Value::Null, Value::Text("x")]);
}

#[test]
fn a_database_is_in_order_of_name() {
    let mut database = Database::new();
    assert!(database.insert(remapped(&Memory::unlimited())).is_none());
    assert!(database.insert(example()).is_none());
    assert!(database.insert(example()).is_some());
    assert_eq!(database.tables().map(Table::name).collect::<Vec<_>>(), ["example", "ids"]);
    assert_eq!(database.get("ids").map(Table::rows), Some(2 * CHUNK_ROWS + 4));
    assert_eq!(database.similar("exmaple"), Some("example"));
    database.set_metadata("b", "2");
    database.set_metadata("a", "1");
    assert_eq!(database.metadata().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
}

#[test]
fn rows_that_nobody_reads_are_left_out() {
    let row = || ExampleRow {
        ts_ns: 1,
        cpu: 0,
        wait_ns: None,
        size: 0,
        process: None,
        address: 0,
        status: 0,
        share: None,
        in_dpc: None,
        fields: "".into(),
    };
    let memory = Memory::default().wanting(std::collections::BTreeSet::from(["other".to_owned()]));
    let mut left_out = TableBuilder::<ExampleRow>::if_wanted(&memory);
    left_out.push(row());
    assert!(!left_out.is_kept());
    assert_eq!(left_out.rows(), 0);
    // Only builders that ask look at it.
    let mut kept = TableBuilder::<ExampleRow>::new(&memory);
    kept.push(row());
    assert_eq!(kept.rows(), 1);
    let memory = Memory::default().wanting(std::collections::BTreeSet::from([EXAMPLE.name.to_string()]));
    assert!(TableBuilder::<ExampleRow>::if_wanted(&memory).is_kept());
    assert!(TableBuilder::<ExampleRow>::if_wanted(&Memory::default()).is_kept());
}
