//! Metrics, with tables whose sums are easy to see.

use super::*;
use crate::fold::tests::table;
use etwhy_table::Value;

fn all(metric: &Metric, db: &Database, part: &TracePart) -> Vec<WeightedStack> {
    let mut out = Vec::new();
    metric.each_of(db, part, &mut |weight| out.push(weight));
    out
}

fn metric(name: &str) -> &'static Metric {
    Metric::by_name(name).unwrap()
}

/// Process 0 is Idle, 1 is a.exe. Of the samples of 1 ms, one hits a DPC, one an ISR in a DPC, one idles.
fn samples() -> Database {
    let mut db = Database::new();
    let process = [vec![Value::Text("Idle"), Value::I64(0)], vec![Value::Text("a.exe"), Value::I64(77)]];
    db.insert(table("process", "name pid", &process));
    let row = |ts: i64, upid: i64, stack: Value<'static>, dpc: bool, isr: bool| {
        vec![
            Value::I64(ts),
            Value::I64(upid),
            Value::I64(upid + 10),
            stack,
            Value::I64(1000),
            Value::Bool(dpc),
            Value::Bool(isr),
            Value::I64(ts % 2),
        ]
    };
    let rows = [
        row(1, 1, Value::I64(0), false, false),
        row(2, 0, Value::Null, false, false),
        row(3, 0, Value::I64(1), true, false),
        row(4, 1, Value::I64(2), true, true),
        row(5, 1, Value::Null, false, false),
    ];
    let columns = "ts_ns upid utid stack_id weight_ns in_dpc in_isr cpu";
    db.insert(table("sample", columns, &rows));
    db
}

#[test]
fn samples_are_of_one_class_and_idle_ones_of_none() {
    let db = samples();
    let times = |name: &str| -> Vec<i64> {
        all(metric(name), &db, &TracePart::default()).iter().map(|w| w.ts_ns.unwrap()).collect()
    };
    assert_eq!(times("cpu"), [1, 5]);
    assert_eq!(times("dpc"), [3]);
    assert_eq!(times("isr"), [4]);
    assert_eq!(times("busy"), [1, 3, 4, 5]);
}

#[test]
fn a_part_has_neither_the_rest_nor_interrupts() {
    let db = samples();
    let part = TracePart { processes: Some(vec![false, true]), ..TracePart::default() };
    assert_eq!(all(metric("busy"), &db, &part).len(), 2);
    let part = TracePart { from_ns: Some(3), to_ns: Some(5), ..TracePart::default() };
    assert_eq!(all(metric("busy"), &db, &part).len(), 2);
    let part = TracePart { threads: Some(vec![true; 11]), ..TracePart::default() };
    assert_eq!(all(metric("cpu"), &db, &part).len(), 0, "thread 11 is not in the list");
    let part = TracePart { cpus: Some(vec![true]), ..TracePart::default() };
    assert_eq!(all(metric("busy"), &db, &part).len(), 1, "the DPC on processor 0 at 4; at 2 it idles");
}

#[test]
fn conditions_of_metrics_fit_their_tables() {
    let specs = || etwhy_trace::catalog::ALL.iter().flat_map(|analysis| analysis.tables.iter().copied());
    for metric in METRICS {
        let spec = specs().find(|spec| spec.name == metric.table());
        if let (Source::Rows(rows), Some(spec)) = (&metric.source, spec) {
            assert!(rows.sql(spec).is_some(), "{}", metric.name);
        }
    }
    let of = |name: &str, table: &str| {
        let spec = specs().find(|spec| spec.name == table).unwrap();
        metric(name).rows().sql(spec).unwrap()
    };
    let (sum, conditions) = of("busy", "sample");
    assert_eq!(sum, "sum(\"weight_ns\")");
    let not_idle = "coalesce(\"upid\", -1) NOT IN (SELECT upid FROM process WHERE pid = 0)";
    let either = format!("(\"in_dpc\" = 1 OR \"in_isr\" = 1 OR {not_idle})");
    assert_eq!(conditions, [either.as_str(), "\"weight_ns\" >= 0"]);
    let (sum, conditions) = of("syscall-time", "syscall");
    assert_eq!(sum, "sum(\"dur_ns\")");
    assert_eq!(conditions, ["NOT coalesce(\"depth\" >= 1, 0)", "\"dur_ns\" >= 0"]);
    let (_, conditions) = of("heap-outstanding", "heap");
    assert_eq!(conditions[0], "coalesce(\"freed_by\", '') = ''");
}

#[test]
fn names_are_distinct_and_can_be_typed() {
    for (at, metric) in METRICS.iter().enumerate() {
        assert!(metric.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", metric.name);
        assert!(METRICS[..at].iter().all(|m| m.name != metric.name), "{}", metric.name);
        if let Source::Rows(rows) = &metric.source {
            assert!(rows.weight.is_none_or(|name| rows.table.column(name).is_some()), "{}", metric.name);
        }
        assert!(metric.manual.ends_with('.') && !metric.about.ends_with('.'), "{}", metric.name);
    }
}

#[test]
fn rows_without_a_number_are_left_out() {
    let rows = [
        vec![Value::I64(1), Value::I64(3), Value::I64(0), Value::I64(4096)],
        vec![Value::I64(2), Value::I64(3), Value::I64(0), Value::Null],
        vec![Value::I64(3), Value::I64(3), Value::Null, Value::I64(10)],
        vec![Value::I64(4), Value::I64(3), Value::Null, Value::I64(-1)],
    ];
    let columns = "ts_ns upid stack_id committed_bytes";
    let mut db = Database::new();
    db.insert(table("virtual_alloc", columns, &rows));
    let found = all(metric("virtual-alloc"), &db, &TracePart::default());
    assert_eq!(found.iter().map(|w| w.weight).collect::<Vec<_>>(), [4096, 10]);
    assert_eq!((found[0].stack, found[1].stack, found[0].utid), (Some(0), None, None));
}

#[test]
fn any_table_with_stacks_is_a_metric() {
    use etwhy_table::{TableBuilder, define_table};
    define_table! {
        /// Things.
        pub table THING: ThingRow = "thing" {
            version: 1,
            /// When.
            ts_ns: i64 [Ns, Time],
            /// Who.
            client_upid: i32 [None, Process],
            /// Bytes.
            size_bytes: i64 [Bytes, Bytes],
            /// Stack.
            stack_id: Option<i32> [None, Stack],
            /// Flags.
            flags: i32 [Hex32, Flag],
        }
    }
    let mut builder: TableBuilder<ThingRow> = TableBuilder::new(&etwhy_table::Memory::unlimited());
    builder.push(ThingRow { ts_ns: 5, client_upid: 2, size_bytes: 100, stack_id: Some(7), flags: 1 });
    let mut db = Database::new();
    db.insert(builder.finish(&etwhy_table::Strings::new().freeze().unwrap()).unwrap());
    let metric = Metric::of_column(&THING, "size_bytes").unwrap();
    assert_eq!(
        (metric.label().as_str(), metric.unit, metric.table()),
        ("thing.size_bytes", Unit::Bytes, "thing")
    );
    let found = all(&metric, &db, &TracePart::default());
    let expected = WeightedStack {
        ts_ns: Some(5),
        upid: Some(2),
        stack: Some(7),
        weight: 100,
        count: 1,
        ..WeightedStack::default()
    };
    assert_eq!(found, [expected]);
    let counted = Metric::of_column(&THING, "count").unwrap();
    assert_eq!(all(&counted, &db, &TracePart::default())[0].weight, 1);
    let error = Metric::of_column(&THING, "flags").err().unwrap();
    assert!(error.ends_with("it has size_bytes, count"), "{error}");
}
