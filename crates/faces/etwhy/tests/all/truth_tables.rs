//! Every scenario that ships, written as a trace: what our tables sum up to must be what the truth file states.
//!
//! `SOURCES` says which table of ours holds a figure; some are held by two, by single rows and by a summary, and both must be
//! right. Figures that nobody holds are listed in `NOT_COMPARED`, with the reason.

mod sources;

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use sources::{SOURCES, Source, ms, number, process, text};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

type Row = serde_json::Map<String, Value>;
/// By name and figure.
type Sums = BTreeMap<String, BTreeMap<&'static str, f64>>;

/// Stories are written small: rates, shares and averages are those of the whole.
const SCALES: [(&str, &str); 6] = [
    ("antivirus_opens", "0.01"),
    ("clean_busy_machine", "0.1"),
    ("directory_watcher", "0.004"),
    ("syscall_hook", "0.004"),
    ("syscall_hook_enter", "0.01"),
    ("virtual_alloc_top_down", "0.02"),
];

/// Truth tables that `event_type` and `sample` hold, see `of_events` and `of_samples`.
const OTHERS: [&str; 8] = [
    "event",
    "kernel_event",
    "cpu",
    "cpu_processor",
    "cpu_process",
    "cpu_thread",
    "cpu_module",
    "cpu_function",
];

/// (scenario, truth table, why).
const NOT_COMPARED: [(&str, &str, &str); 4] = [
    ("clean_web_server", "cpu_module", "compiled methods belong to no module: the writer calls theirs jit"),
    ("clean_web_server", "cpu_function", "as its modules"),
    (
        "cswitch",
        "alpc",
        "messages = false: no ALPC event is written, only the waits (see the critical path's tests)",
    ),
    (
        "*",
        "law",
        "the author's words about the story; `laws_of_growth` compares the two that are no quotients",
    ),
];

/// The trace of a scenario with its tables, each read by one thread and by four.
struct Traced {
    name: String,
    trace: PathBuf,
    truth: Value,
    tables: HashMap<&'static str, Vec<Row>>,
    folder: tempfile::TempDir,
}

impl Traced {
    fn new(scenario: &Path) -> Traced {
        let folder = tempfile::tempdir().unwrap();
        let name = scenario.file_stem().unwrap().str().to_owned();
        let small = SCALES.iter().find(|(n, _)| *n == name).map_or("0.02", |(_, s)| s);
        let scale = if scenario.parent().unwrap().ends_with("tables") { "1" } else { small };
        let trace = folder.path().join(format!("{name}.etl"));
        ETWHY.synth(scenario, &trace, &["--scale", scale]);
        let truth = std::fs::read(folder.path().join(format!("{name}.truth.json"))).unwrap();
        let truth = serde_json::from_slice(&truth).unwrap();
        Traced { name, trace, truth, tables: HashMap::new(), folder }
    }

    fn rows(&mut self, table: &'static str) -> &[Row] {
        let trace = self.trace.str();
        self.tables.entry(table).or_insert_with(|| {
            let dump = |n| ETWHY.run(&["dump", table, trace, "--format", "jsonl", "--quiet", "--threads", n]);
            let text = dump("1");
            assert!(text == dump("4"), "{}: {table} depends on the number of threads", self.name);
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        })
    }

    /// True when the writer left a symbol file for the module, or the runtime names its methods.
    fn has_symbols(&self, module: &str) -> bool {
        let stem = match module.rsplit_once('.').map_or(module, |(stem, _)| stem) {
            "ntoskrnl" => "ntkrnlmp".to_owned(),
            stem => stem.to_lowercase(),
        };
        module == "[.NET]" || self.folder.path().join("symbols").join(format!("{stem}.pdb")).is_dir()
    }
}

fn add(sums: &mut Sums, name: &str, figure: &'static str, value: f64) {
    *sums.entry(name.to_owned()).or_default().entry(figure).or_default() += value;
}

fn of_rows(source: &Source, rows: &[Row]) -> Sums {
    let mut sums = Sums::new();
    for row in rows {
        for name in (source.names)(row) {
            for (figure, value) in (source.figures)(row) {
                add(&mut sums, &name, figure, value);
            }
        }
    }
    sums
}

/// Counts of events of providers, of the kernel's by group and type, and under the names of the truth file's `events`.
fn of_events(rows: &[Row]) -> [Sums; 3] {
    let [mut users, mut kernel, mut all] = [const { Sums::new() }; 3];
    for row in rows {
        let (id, guid, count) = (row["id"].int(), text(row, "guid"), number(row, "count"));
        let hook = format!("{}/{}", id >> 8, id & 0xFF);
        match text(row, "decoded_by") {
            "kernel" if id > 0 || text(row, "name") == "EventTrace/Header" => {
                add(&mut kernel, &hook, "count", count);
                add(&mut all, &format!("kernel/{hook}"), "count", count);
            }
            _ => {
                let opcode = &row["opcode"];
                add(&mut users, &format!("{guid}/{id}"), "count", count);
                add(&mut all, &format!("event/{guid}/{id}/{opcode}"), "count", count);
            }
        }
    }
    [users, kernel, all]
}

/// What the samples say, by truth table.
fn of_samples(t: &mut Traced) -> HashMap<&'static str, Sums> {
    let mut out: HashMap<&'static str, Sums> = OTHERS.iter().map(|o| (*o, Sums::new())).collect();
    let threads: HashMap<i64, String> = t
        .rows("thread")
        .iter()
        .map(|r| (r["utid"].int(), r["name"].as_str().unwrap_or("?").to_owned()))
        .collect();
    let frames: HashMap<i64, [Option<String>; 2]> = t
        .rows("frame")
        .iter()
        .map(|r| {
            let module = r["module"].as_str().map(str::to_owned);
            let named = module.as_ref().zip(r["function"].as_str()).map(|(m, f)| format!("{m}!{f}"));
            (r["frame_id"].int(), [module, named])
        })
        .collect();
    let mut stacks = HashMap::<i64, BTreeMap<i64, i64>>::new();
    for row in t.rows("stack_frame") {
        let at = |column: &str| row[column].int();
        stacks.entry(at("stack_id")).or_default().insert(at("position"), at("frame_id"));
    }
    for row in t.rows("sample") {
        let (weight, interrupted) = (ms(row, "weight_ns"), [&row["in_dpc"], &row["in_isr"]]);
        let [dpc, isr] = interrupted.map(|v| v.as_bool().unwrap());
        let mut put = |table, name: &str, figure| {
            add(out.get_mut(table).unwrap(), name, figure, weight);
        };
        if row["tid"].as_i64() == Some(0) && !dpc && !isr {
            put("cpu", "machine", "idle_ms");
            continue;
        }
        put("cpu", "machine", "busy_ms");
        put("cpu_processor", &row["cpu"].to_string(), "busy_ms");
        if dpc && !isr {
            put("cpu", "machine", "dpc_ms");
        }
        if !dpc && !isr {
            let process = process(row);
            let thread = &threads[&row["utid"].int()];
            put("cpu_process", &process, "cpu_ms");
            put("cpu_thread", &format!("{process}/{thread}"), "cpu_ms");
        }
        let Some(stack) = row["stack_id"].as_i64() else { continue };
        let mut seen = BTreeSet::new();
        for (position, frame) in &stacks[&stack] {
            for (table, name) in ["cpu_module", "cpu_function"].into_iter().zip(&frames[frame]) {
                let Some(name) = name else { continue };
                if *position == 0 {
                    put(table, name, "exclusive_ms");
                }
                if seen.insert(name) {
                    put(table, name, "inclusive_ms");
                }
            }
        }
    }
    out
}

/// What was compared, and the largest deviation of a time as a share.
#[derive(Default)]
struct Seen {
    compared: BTreeMap<String, usize>,
    deviation: f64,
    wrong: Vec<String>,
}

impl Seen {
    /// Names and figures of both sides; what a side does not name is nothing.
    fn compare(&mut self, title: &str, ours: &Sums, truth: &Value, sampled_ms: f64, figures: &[&str]) {
        let truth = truth.fields();
        let names: BTreeSet<&String> = ours.keys().chain(truth.keys()).collect();
        for name in names {
            for figure in figures {
                let found = ours.get(name).and_then(|f| f.get(figure)).copied().unwrap_or(0.0);
                let wanted = truth.get(name).and_then(|f| f[*figure].as_f64()).unwrap_or(0.0);
                let off = (found - wanted).abs();
                let time = figure.ends_with("_ms");
                *self
                    .compared
                    .entry(format!("{}.{figure}", title.rsplit(": ").next().unwrap()))
                    .or_default() += 1;
                if time && sampled_ms == 0.0 && wanted > 0.0 {
                    self.deviation = self.deviation.max(off / wanted);
                }
                let allowed = match time {
                    false => 0.0,
                    true if sampled_ms > 0.0 => sampled_ms,
                    true => 0.01 * wanted,
                };
                // Times are recorded in ticks of 100 ns.
                if off > allowed + if time { 1e-4 } else { 1e-6 } {
                    self.wrong.push(format!("{title}: {name}.{figure}: {found}, the truth is {wanted}"));
                }
            }
        }
    }

    fn judge(&mut self, t: &mut Traced) {
        let (name, truth) = (t.name.clone(), t.truth.clone());
        let interval = truth["sampling_interval_ms"].float();
        let tables = truth["tables"].fields();
        // The stated figures are some of the counted ones, as they are in this trace.
        for (table, names) in truth["stated"].fields() {
            for (what, figures) in names.fields().iter().filter(|_| table != "law") {
                for (figure, value) in figures.fields() {
                    let counted = tables[table].fields();
                    let counted = counted.iter().find(|(n, _)| n.eq_ignore_ascii_case(what)).unwrap().1;
                    assert_eq!(&counted[figure], value, "{name}: stated {table}.{what}.{figure}");
                }
            }
        }
        let [users, kernel, all] = of_events(t.rows("event_type"));
        let samples = of_samples(t);
        for (table, wanted) in tables {
            if NOT_COMPARED.iter().any(|(s, what, _)| *s == name && what == table) {
                continue;
            }
            let mut held = BTreeSet::<&str>::new();
            for source in SOURCES.iter().filter(|s| s.truth == table) {
                let ours = of_rows(source, t.rows(source.table));
                let figures: BTreeSet<&str> = ours.values().flat_map(|f| f.keys().copied()).collect();
                let figures: Vec<&str> = figures.into_iter().collect();
                held.extend(&figures);
                let title = format!("{name}: {table} by {}", source.table);
                self.compare(&title, &ours, wanted, 0.0, &figures);
            }
            let title = format!("{name}: {table}");
            match table.as_str() {
                "event" | "kernel_event" => {
                    // The truth has only what the scenario asks for.
                    let mut ours = if table == "event" { users.clone() } else { kernel.clone() };
                    ours.retain(|n, _| wanted.get(n).is_some());
                    held.insert("count");
                    self.compare(&title, &ours, wanted, 0.0, &["count"]);
                }
                "cpu_function" => {
                    // Some modules have no symbols on purpose: nobody can name their functions.
                    let mut wanted = wanted.clone();
                    let named = |n: &String| t.has_symbols(n.split('!').next().unwrap());
                    wanted.as_object_mut().unwrap().retain(|n, _| named(n));
                    held.extend(["exclusive_ms", "inclusive_ms"]);
                    let figures = ["exclusive_ms", "inclusive_ms"];
                    self.compare(&title, &samples["cpu_function"], &wanted, interval, &figures);
                }
                cpu if cpu.starts_with("cpu") => {
                    let figures: BTreeSet<&str> = wanted
                        .fields()
                        .values()
                        .flat_map(|f| f.fields().keys())
                        .map(String::as_str)
                        .collect();
                    let figures: Vec<&str> = figures.into_iter().collect();
                    held.extend(&figures);
                    self.compare(&title, &samples[cpu], wanted, interval, &figures);
                }
                _ => {}
            }
            for (what, figures) in wanted.fields() {
                for figure in figures.fields().keys() {
                    let found = held.contains(figure.as_str());
                    assert!(found, "{name}: nobody compares {table}.{what}.{figure}");
                }
            }
        }
        self.whole(t, &all);
    }

    /// What the truth file says beside its tables.
    fn whole(&mut self, t: &mut Traced, events: &Sums) {
        let (name, truth) = (t.name.clone(), t.truth.clone());
        let cpus = t.rows("cpu").len() as u64;
        assert_eq!(Some(cpus), truth["cpus"].as_u64(), "{name}: processors");
        for (class, table) in [("dpc", "dpc"), ("isr", "isr")] {
            let rows = t.rows(table);
            let total: f64 = rows.iter().map(|r| ms(r, "dur_ns")).sum();
            let wanted = |figure: &str| truth["interrupts"][format!("{class}_{figure}")].float();
            assert_eq!(rows.len() as f64, wanted("count"), "{name}: {class}");
            let off = (total - wanted("ms")).abs();
            assert!(off <= 0.01 * wanted("ms"), "{name}: {class}: {total} ms");
        }
        let counts: Vec<(String, Value)> = truth["events"]
            .fields()
            .iter()
            .map(|(n, c)| (n.clone(), serde_json::json!({ "count": c })))
            .filter(|(n, _)| !n.starts_with("classic/"))
            .collect();
        let mut ours = events.clone();
        ours.retain(|n, _| truth["events"].get(n).is_some());
        self.compare(&format!("{name}: events"), &ours, &counts.into_iter().collect(), 0.0, &["count"]);
        // Threads that run and wait by themselves; what else they did for others' events is not in the truth.
        let mut ran = Sums::new();
        if truth["activity"].as_object().is_some_and(|a| !a.is_empty()) {
            for row in t.rows("thread_time") {
                let process = text(row, "process");
                let pid = process.rsplit_once('(').unwrap().1.trim_end_matches(')');
                let key = format!("{pid}/{}", row["tid"]);
                if truth["activity"].get(&key).is_some() {
                    // The last one is cut off by the end of the trace. Moments for other tables' events come unreadied.
                    let open = f64::from(u8::from(number(row, "open_run_ns") > 0.0));
                    add(&mut ran, &key, "runs", number(row, "readies") - open);
                    add(&mut ran, &key, "run_ms", ms(row, "run_ns"));
                }
            }
        }
        self.compare(&format!("{name}: activity"), &ran, &truth["activity"], 0.0, &["runs", "run_ms"]);
    }
}

fn scenarios() -> Vec<PathBuf> {
    let files = etwhy_testkit::scenarios(&["scenarios", "scenarios/tables"]);
    assert!(files.len() >= 30);
    files
}

#[test]
fn tables_sum_up_to_the_truth() {
    let (todo, seen) = (Mutex::new(scenarios()), Mutex::new(Seen::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = todo.lock().unwrap().pop() else { return };
                    let (mut t, mut own) = (Traced::new(&scenario), Seen::default());
                    own.judge(&mut t);
                    let mut seen = seen.lock().unwrap();
                    seen.wrong.extend(own.wrong);
                    seen.deviation = seen.deviation.max(own.deviation);
                    for (what, n) in own.compared {
                        *seen.compared.entry(what).or_default() += n;
                    }
                }
            });
        }
    });
    let seen = seen.into_inner().unwrap();
    println!("figures compared: {:#?}", seen.compared);
    println!("largest deviation of a time that is not sampled: {:.3} %", seen.deviation * 100.0);
    assert!(seen.wrong.is_empty(), "{} are wrong:\n{}", seen.wrong.len(), seen.wrong.join("\n"));
    assert!(seen.compared.values().sum::<usize>() > 2000);
}

#[test]
fn laws_of_growth() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let column = |rows: &[Row], column: &str| -> Vec<i64> { rows.iter().map(|r| r[column].int()).collect() };
    // The n-th call comes 48 ns · n after the one before it; ticks are 100 ns.
    let mut t = Traced::new(&folder.join("virtual_alloc_top_down.toml"));
    let starts = column(t.rows("virtual_alloc"), "ts_ns");
    let gaps: Vec<i64> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    let (from, to) = (gaps[100], gaps[gaps.len() - 100]);
    let step = (to - from) as f64 / (gaps.len() - 200) as f64;
    let law = &t.truth["stated"]["law"]["time of the n-th call"];
    let stated = law["nanoseconds_per_earlier_call"].float();
    assert!((step - stated).abs() < 0.01 * stated, "{step} ns, stated {stated}");
    // The n-th process lives 25 ms + 80 us · n.
    let mut t = Traced::new(&folder.join("process_start_growth.toml"));
    let lives = column(t.rows("process_start"), "dur_ns");
    let law = &t.truth["stated"]["law"]["duration of the n-th process"];
    let stated = |figure: &str| law[figure].float();
    for (n, life) in lives.iter().enumerate() {
        let wanted =
            stated("milliseconds_first") * 1e6 + stated("microseconds_per_earlier_process") * 1e3 * n as f64;
        assert!((*life as f64 - wanted).abs() <= 200.0, "process {n}: {life} ns, stated {wanted}");
    }
    assert!(lives.len() >= 20);
}
