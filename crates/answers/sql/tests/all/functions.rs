//! Table functions and scalar functions, on tables whose answers were worked out by hand.

use etwhy_sql::Engine;
use etwhy_table::{Database, Memory, Strings, Sym, TableBuilder, Value, define_table};
use etwhy_trace::catalog::image::ImageRow;
use etwhy_trace::catalog::stack::{FrameRow, StackFrameRow, StackRow};

define_table! {
    /// Samples.
    pub table SAMPLE: SampleRow = "sample" {
        sorted_by: "ts_ns", version: 1,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Where.
        cpu: i32 [None, Cpu],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Thread.
        utid: i32 [None, Thread],
        /// Stack.
        stack_id: Option<i32> [None, Stack],
        /// Weight.
        weight_ns: i64 [Ns, Weight],
    }
}

define_table! {
    /// Requests.
    pub table REQUEST: RequestRow = "request" {
        sorted_by: "start_ns", version: 1,
        /// Begin.
        start_ns: i64 [Ns, Time],
        /// Length.
        dur_ns: i64 [Ns, Duration],
        /// Thread.
        utid: i32 [None, Thread],
        /// Calls before.
        n: i64 [Count, Count],
        /// Kind.
        kind: Sym [None, Kind],
    }
}

/// Ten samples of a thread 1 ms apart, then ten of another; two stacks; four requests.
fn database() -> Database {
    let memory = Memory::default();
    let mut strings = Strings::new();
    let mut samples = TableBuilder::<SampleRow>::new(&memory);
    for at in 0..20 {
        let second = at >= 10;
        samples.push(SampleRow {
            ts_ns: at * 1_000_000,
            cpu: (at % 2) as i32,
            upid: Some(i32::from(second)),
            utid: i32::from(second),
            stack_id: Some(i32::from(second)),
            weight_ns: 100 + at,
        });
    }
    let mut requests = TableBuilder::<RequestRow>::new(&memory);
    for (start, dur, utid, n, kind) in
        [(0, 5, 0, 1, "a"), (2, 4, 1, 2, "a"), (12, 3, 1, 3, "b"), (15, 100, 0, 4, "b")]
    {
        let kind = strings.intern(kind);
        requests.push(RequestRow { start_ns: start * 1_000_000, dur_ns: dur * 1_000_000, utid, n, kind });
    }
    // main > work > work (recursion) and main > other.
    let mut frames = TableBuilder::<FrameRow>::new(&memory);
    for (frame_id, name, category) in [(0, "main", None), (1, "work", Some("AV")), (2, "other", None)] {
        let label = strings.intern(&format!("app.exe!{name}"));
        frames.push(FrameRow {
            frame_id,
            address: 0x40_0000 + i64::from(frame_id) * 0x100,
            image_id: Some(0),
            module: strings.intern("app.exe"),
            rva: Some(i64::from(frame_id) * 0x100),
            function: Some(strings.intern(name)),
            file: None,
            line: None,
            kind: strings.intern("user"),
            label,
            symbol_source: strings.intern("pdb"),
            inlined: false,
            guessed: false,
            category: category.map(|c| strings.intern(c)),
            tag: None,
        });
    }
    let mut stacks = TableBuilder::<StackRow>::new(&memory);
    let mut stack_frames = TableBuilder::<StackFrameRow>::new(&memory);
    for (stack_id, list) in [(0, &[1, 1, 0][..]), (1, &[2, 0])] {
        stacks.push(StackRow {
            stack_id,
            upid: None,
            depth: list.len() as i32,
            kernel_depth: 0,
            leaf_only: false,
            leaf_frame_id: list.first().copied(),
            root_frame_id: list.last().copied(),
            leaf: None,
            root: None,
            tag: None,
        });
        for (position, &frame_id) in list.iter().enumerate() {
            stack_frames.push(StackFrameRow { stack_id, position: position as i32, frame_id });
        }
    }
    let mut images = TableBuilder::<ImageRow>::new(&memory);
    images.push(ImageRow {
        image_id: 0,
        upid: Some(0),
        name: strings.intern("app.exe"),
        path: strings.intern("C:\\app.exe"),
        base: 0x40_0000,
        size_bytes: 0x1000,
        load_ns: None,
        unload_ns: None,
        time_date_stamp: 0,
        checksum: 0,
        pdb_name: None,
        pdb_guid: None,
        pdb_age: None,
        il_pdb_name: None,
        il_pdb_guid: None,
        file_version: None,
        product: None,
        company: None,
        description: None,
        vendor: None,
        category: None,
    });
    let texts = strings.freeze().unwrap();
    let mut db = Database::new();
    db.insert(samples.finish(&texts).unwrap());
    db.insert(requests.finish(&texts).unwrap());
    db.insert(frames.finish(&texts).unwrap());
    db.insert(stacks.finish(&texts).unwrap());
    db.insert(stack_frames.finish(&texts).unwrap());
    db.insert(images.finish(&texts).unwrap());
    db
}

/// The rows of a query as text, cells separated by `|`.
fn ask(sql: &str) -> Vec<String> {
    let db = database();
    let table = Engine::new(&db).unwrap().query("result", sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let cell = |row, column| match table.cell(row, column) {
        Value::Null => String::new(),
        Value::I64(n) => n.to_string(),
        Value::F64(n) => n.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Text(text) => text.to_owned(),
    };
    let columns = table.spec().columns.len();
    (0..table.rows() as u32)
        .map(|row| (0..columns).map(|column| cell(row, column)).collect::<Vec<_>>().join("|"))
        .collect()
}

fn error(sql: &str) -> String {
    Engine::new(&database()).unwrap().query("result", sql).unwrap_err().to_string()
}

#[test]
fn a_column_that_is_missing_is_told_with_those_that_there_are() {
    let text = error("SELECT s.stck_id FROM sample s, sample b");
    assert!(text.starts_with("no such column: s.stck_id"), "{text}");
    assert!(text.contains("did you mean `stack_id`?"), "{text}");
    let lists: Vec<&str> = text.split("; ").filter(|part| part.contains(" has ")).collect();
    assert_eq!(lists, ["`sample` has ts_ns, cpu, upid, utid, stack_id, weight_ns"]);
    // In double quotes it is no text: a condition on it would be false for every row, without a word.
    let text = error("SELECT count(*) FROM sample WHERE \"stck_id\" = 1");
    assert!(text.contains("no such column") && text.contains("did you mean `stack_id`?"), "{text}");
    // Nothing is like it, and a table that is missing has no columns.
    assert!(!error("SELECT colour FROM sample").contains("did you mean"));
    assert!(!error("SELECT colour FROM nothing").contains(" has "));
}

#[test]
fn aggregate_adds_up_by_keys_over_a_range_of_time() {
    // Processor 0 has the even weights 100, 102, … 118, processor 1 the odd ones.
    assert_eq!(
        ask(
            "SELECT key1, count, sum, mean, min, max FROM aggregate('sample', 'cpu', 'weight_ns') ORDER BY key1"
        ),
        ["0|10|1090|109|100|118", "1|10|1100|110|101|119"]
    );
    assert_eq!(
        ask(
            "SELECT key1, key2, count FROM aggregate('sample', 'upid,cpu', NULL, 8000000, 12000000) ORDER BY 1, 2"
        ),
        ["0|0|1", "0|1|1", "1|0|1", "1|1|1"]
    );
    assert!(error("SELECT * FROM aggregate('nothing', 'cpu')").contains("nothing"));
    assert!(error("SELECT * FROM aggregate('sample', 'colour')").contains("colour"));
    assert!(!error("SELECT * FROM aggregate('sample')").is_empty());
}

#[test]
fn by_function_counts_recursion_once() {
    // Stack 0: 100..109 = 1045; stack 1: 110..119 = 1145.
    assert_eq!(
        ask(
            "SELECT function, inclusive, exclusive, count FROM by_function('sample', 'weight_ns') ORDER BY inclusive DESC, 1"
        ),
        ["app.exe!main|2190|0|20", "app.exe!other|1145|1145|10", "app.exe!work|1045|1045|10"]
    );
    assert_eq!(
        ask("SELECT function, inclusive FROM by_function('sample', 'weight_ns', NULL, NULL, 1) ORDER BY 1"),
        ["app.exe!main|1145", "app.exe!other|1145"]
    );
}

#[test]
fn within_gives_events_to_the_intervals_of_their_thread() {
    // Thread 0 sampled at 0..9 ms, thread 1 at 10..19 ms; an interval takes its start and not its end.
    assert_eq!(
        ask("SELECT interval_row, count, sum FROM within('request', 'sample', 'weight_ns') ORDER BY 1"),
        ["0|5|510", "1|0|0", "2|3|339", "3|0|0"]
    );
    assert_eq!(
        ask("SELECT interval_row, count FROM within('request', 'sample', 'weight_ns', 0) ORDER BY 1"),
        ["0|5", "1|4", "2|3", "3|5"]
    );
}

#[test]
fn time_buckets_and_histogram_count_everything_once() {
    assert_eq!(
        ask(
            "SELECT start_ns, key, count FROM time_buckets('sample', 'weight_ns', 10000000, 'cpu') ORDER BY 1, 2"
        ),
        ["0|0|5", "0|1|5", "10000000|0|5", "10000000|1|5"]
    );
    let rows = ask("SELECT count, sum FROM histogram('sample', 'weight_ns', 'linear', 4)");
    let counts: Vec<i64> = rows.iter().map(|r| r.split('|').next().unwrap().parse().unwrap()).collect();
    assert_eq!((counts.len(), counts.iter().sum::<i64>()), (4, 20), "{rows:?}");
    // Ten buckets per factor of ten: 10^6.6 = 3.98e6 and 10^6.7 = 5.01e6 hold two of the four.
    let log = ask(
        "SELECT low, high, count, sum FROM histogram('request', 'dur_ns', 'log') WHERE count > 0 ORDER BY low",
    );
    for (row, (count, sum)) in log.iter().zip([(1.0, 3e6), (2.0, 9e6), (1.0, 1e8)]) {
        let cells: Vec<f64> = row.split('|').map(|c| c.parse().unwrap()).collect();
        assert_eq!((cells[2], cells[3]), (count, sum), "{row}");
        assert!(cells[0] <= sum / count && sum / count < cells[1], "{row}");
    }
    assert_eq!(log.len(), 3);
}

#[test]
fn percentiles_are_by_nearest_rank() {
    // Of 100, 101, … 119 half are no more than 109, 90 % no more than 117, 99 % no more than 119.
    assert_eq!(
        ask("SELECT count, mean, min, p50, p90, p95, p99, max FROM percentiles('sample', 'weight_ns')"),
        ["20|109.5|100|109|117|118|119|119"]
    );
    assert_eq!(
        ask("SELECT key, p50 FROM percentiles('sample', 'weight_ns', 'upid') ORDER BY key"),
        ["0|104", "1|114"]
    );
    assert_eq!(ask("SELECT percentile(weight_ns, 95) FROM sample"), ["118"]);
    assert_eq!(ask("SELECT percentile(weight_ns, 50) FROM sample WHERE cpu = 9"), [""]);
}

#[test]
fn values_get_their_names() {
    assert_eq!(ask("SELECT ntstatus(-1073741772)"), ["STATUS_OBJECT_NAME_NOT_FOUND"]);
    assert_eq!(
        ask("SELECT symbol(0, 4194560), symbol(0, 4195000), symbol(0, 1)"),
        ["app.exe!work|app.exe+0x2b8|"]
    );
    let has =
        |pattern: &str| ask(&format!("SELECT count(*) FROM sample WHERE stack_has(stack_id, '{pattern}')"));
    assert_eq!(has("app.exe!work"), ["10"]);
    assert_eq!(has("app.exe!*"), ["20"]);
    assert_eq!(has("nobody!*"), ["0"]);
    let law = "SELECT points, verdict FROM growth_fit('request', 'n', 'dur_ns')";
    assert!(ask(law)[0].starts_with("4|"), "{:?}", ask(law));
}
