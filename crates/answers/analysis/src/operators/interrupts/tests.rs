//! DPCs by hand.

use super::*;
use crate::fold::tests::table;
use etwhy_sql::Engine;
use etwhy_table::ColumnType::{I32, I64, Text};
use etwhy_table::Value;
use serde_json::json;

const COLUMNS: [(&str, etwhy_table::ColumnType); 8] = [
    ("ts_ns", I64),
    ("dur_ns", I64),
    ("exclusive_ns", I64),
    ("cpu", I32),
    ("module", Text),
    ("routine", Text),
    ("upid", I32),
    ("utid", I32),
];

/// End and duration in µs, processor, routine, process.
fn rows(list: &[(i64, i64, i64, &'static str, i64)]) -> Vec<Vec<Value<'static>>> {
    let row = |&(ts, dur, cpu, routine, upid): &(i64, i64, i64, &'static str, i64)| {
        let module = routine.split('!').next().unwrap();
        let us = |n: i64| Value::I64(n * 1000);
        vec![
            us(ts),
            us(dur),
            us(dur),
            Value::I64(cpu),
            Value::Text(module),
            Value::Text(routine),
            Value::I64(upid),
            Value::I64(upid),
        ]
    };
    list.iter().map(row).collect()
}

fn db() -> Database {
    let mut db = Database::new();
    let dpcs = [
        (100, 50, 0, "ndis.sys!a", 1),
        (300, 150, 0, "ndis.sys!a", 1),
        (500, 100, 2, "ndis.sys!b", 2),
        (900, 20, 3, "ndis.sys!b", 2),
        (950, 10, 1, "storport.sys!c", 2),
        (2_000, 500, 1, "storport.sys!c", 2),
    ];
    db.insert(table("dpc", &COLUMNS, &rows(&dpcs)));
    db.insert(table(
        "isr",
        &COLUMNS,
        &rows(&[(40, 26, 0, "storport.sys!isr", 1), (80, 25, 0, "storport.sys!isr", 1)]),
    ));
    db
}

/// The interrupted DPC is long by its begin and end only; answer and query agree.
#[test]
fn limits_are_about_what_a_dpc_took_itself() {
    let mut db = Database::new();
    let mut long = rows(&[(300, 150, 0, "short.sys!a", 1), (900, 180, 0, "long.sys!b", 1)]);
    long[0][2] = Value::I64(20_000);
    db.insert(table("dpc", &COLUMNS, &long));
    let found = interrupts(&db, &|_| Vec::new(), || true).unwrap();
    let over: Vec<_> = found
        .drivers
        .iter()
        .map(|d| (d.module.as_deref().unwrap(), d.sums.over_limit, d.sums.max_ns))
        .collect();
    assert_eq!(over, [("long.sys", 1, 180_000), ("short.sys", 0, 150_000)]);
    let asked = Engine::new(&db).unwrap().query("q", &found.sql[0]).unwrap();
    let over =
        |row| (asked.text(row, "module"), asked.i64(row, "over_limit"), asked.i64(row, "over_limit_ns"));
    assert_eq!(over(0), (Some("long.sys"), Some(1), Some(180_000)));
    assert_eq!(over(1), (Some("short.sys"), Some(0), Some(0)));
    // So do the classes: what is over the limit lies above the line.
    for driver in &found.drivers {
        let above = driver.bins.iter().filter(|bin| bin.over_limit);
        let sums = above.fold((0, 0), |sum, bin| (sum.0 + bin.count, sum.1 + bin.total_ns));
        assert_eq!(sums, (driver.sums.over_limit, driver.sums.over_limit_ns));
    }
}

#[test]
fn classes_are_equally_wide_and_end_at_the_limits() {
    for pair in BORDERS_NS.windows(2) {
        let step = pair[1] as f64 / pair[0] as f64;
        assert!((1.24..1.285).contains(&step), "{pair:?}");
    }
    assert!(Class::ALL.iter().all(|class| BORDERS_NS.contains(&class.limit_ns())));
}

#[test]
fn sums_percentiles_and_limits() {
    let found = interrupts(&db(), &|_| Vec::new(), || true).unwrap();
    let names: Vec<_> = found.drivers.iter().map(|d| (d.class, d.module.as_deref().unwrap())).collect();
    assert_eq!(names, [(Class::Dpc, "storport.sys"), (Class::Dpc, "ndis.sys"), (Class::Isr, "storport.sys")]);
    let ndis = &found.drivers[1];
    assert_eq!(
        ndis.sums,
        Sums {
            count: 4,
            total_ns: 320_000,
            exclusive_ns: 320_000,
            mean_ns: 80_000,
            p50_ns: 50_000,
            p95_ns: 150_000,
            p99_ns: 150_000,
            max_ns: 150_000,
            over_limit: 1,
            over_limit_ns: 150_000,
        }
    );
    assert_eq!((&ndis.hot[..], ndis.hot_ns, ndis.cpus.len()), (&[0, 2][..], 300_000, 3));
    let bins: Vec<_> = ndis.bins.iter().map(|b| (b.above_ns, b.up_to_ns, b.count, b.over_limit)).collect();
    assert_eq!(
        bins,
        [
            (16_000, Some(20_000), 1, false),
            (40_000, Some(50_000), 1, false),
            (80_000, Some(100_000), 1, false),
            (125_000, Some(160_000), 1, true)
        ]
    );
    let routines: Vec<_> = ndis.routines.iter().map(|r| (r.routine.as_str(), r.sums.count, r.cpus)).collect();
    assert_eq!(routines, [("ndis.sys!a", 2, 1), ("ndis.sys!b", 2, 2)]);
    assert_eq!(found.drivers[2].sums.over_limit, 1);
    let zero = &found.cpus[0];
    assert_eq!((zero.cpu, zero.dpc_ns, zero.isr_ns, zero.count), (0, 200_000, 51_000, 4));
    assert_eq!(zero.top, Some(("ndis.sys".to_owned(), 200_000)));
    assert_eq!(found.all.iter().map(|all| all.sums.count).collect::<Vec<_>>(), [6, 2]);
}

#[test]
fn parts_are_those_of_sql() {
    let db = db();
    let parts = [
        (json!([]), ""),
        (
            json!([{ "column": "ts_ns", "op": "ge", "value": 100_000 }, { "column": "ts_ns", "op": "lt", "value": 900_000 }]),
            "\nWHERE t.\"ts_ns\" >= 100000\n  AND t.\"ts_ns\" < 900000",
        ),
        (
            json!([{ "column": "cpu", "op": "eq", "value": 0, "not": true }]),
            "\nWHERE NOT coalesce(t.\"cpu\" = 0, 0)",
        ),
        (json!([{ "column": "upid", "op": "eq", "value": 2 }]), "\nWHERE t.\"upid\" = 2"),
        (
            json!([{ "column": "module", "op": "eq", "value": "ndis.sys" }]),
            "\nWHERE t.\"module\" = 'ndis.sys'",
        ),
    ];
    for (conditions, clause) in parts {
        let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap();
        let found = interrupts(&db, &|_| conditions.clone(), || true).unwrap();
        assert!(found.sql.iter().all(|sql| sql.contains(clause)), "{:?}", found.sql);
        let mut seen = 0;
        for (class, sql) in Class::ALL.into_iter().zip(found.sql.chunks(2)) {
            let answer = Engine::new(&db).unwrap().query("t", &sql[0]).unwrap();
            for row in 0..answer.rows() as u32 {
                let module = answer.text(row, "module").map(str::to_owned);
                let ours = found.drivers.iter().find(|d| d.class == class && d.module == module).unwrap();
                let cell = |name: &str| answer.i64(row, name).unwrap();
                let theirs = Sums {
                    count: cell("count"),
                    total_ns: cell("total_ns"),
                    exclusive_ns: cell("exclusive_ns"),
                    mean_ns: cell("mean_ns"),
                    p50_ns: cell("p50_ns"),
                    p95_ns: cell("p95_ns"),
                    p99_ns: cell("p99_ns"),
                    max_ns: cell("max_ns"),
                    over_limit: cell("over_limit"),
                    over_limit_ns: cell("over_limit_ns"),
                };
                assert_eq!(ours.sums, theirs, "{clause}");
                assert_eq!(ours.cpus.len() as i64, cell("cpus"));
                seen += 1;
            }
            let bins = Engine::new(&db).unwrap().query("t", &sql[1]).unwrap();
            let ours = found.drivers.iter().filter(|d| d.class == class);
            let mut ours: Vec<(Option<String>, i64, i64)> =
                ours.flat_map(|d| d.bins.iter().map(|b| (d.module.clone(), b.above_ns, b.count))).collect();
            ours.sort();
            let line = |row: u32| {
                let module = bins.text(row, "module").map(str::to_owned);
                (module, bins.i64(row, "above_ns").unwrap(), bins.i64(row, "count").unwrap())
            };
            assert_eq!(ours, (0..bins.rows() as u32).map(line).collect::<Vec<_>>(), "{clause}");
        }
        assert_eq!(seen, found.drivers.len(), "{clause}");
    }
}

#[test]
fn guests_on_stacks() {
    let mut db = Database::new();
    let line = |host: Option<&'static str>, driver: Option<&'static str>, category, ns| {
        let text = |t: Option<&'static str>| t.map_or(Value::Null, Value::Text);
        let (ns, samples) = (Value::I64(ns), Value::I64(1));
        vec![
            Value::Text("dpc"),
            text(host),
            text(driver),
            Value::Null,
            Value::Null,
            Value::Text(category),
            ns,
            samples,
        ]
    };
    let rows = [
        line(Some("ndis.sys"), Some("ids.sys"), "antivirus", 60),
        line(Some("ndis.sys"), None, "", 40),
        line(None, Some("x.sys"), "", 7),
    ];
    let columns = [
        ("class", Text),
        ("host", Text),
        ("driver", Text),
        ("vendor", Text),
        ("product", Text),
        ("category", Text),
        ("cost_ns", I64),
        ("samples", I64),
    ];
    db.insert(table("interrupt_path", &columns, &rows));
    let found = on_stacks(&db);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].driver.as_str(), found[0].cost_ns, found[0].percent, found[0].security),
        ("ids.sys", 60, 60.0, true)
    );
}
