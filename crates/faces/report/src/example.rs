//! A report that has everything, with names that try to be more than names: what faces are tested with.
//!
//! Its figures are invented.

use crate::charts::{Bin, DurationHistogram, GrowthCurve, GrowthPoint};
use crate::{BillRow, Charts, LedgerLine, Missing, Quality, Report, SCHEMA};
use etwhy_analysis::activity::{Activity, LongInterval, Operation, Problems, Rate, Undecoded};
use etwhy_analysis::clr::ClrProcess;
use etwhy_analysis::cpu::{Cost, Cpu, ProcessCost, StackCost};
use etwhy_analysis::disk::{Disk, DiskCost};
use etwhy_analysis::flame::{Flame, FlameName};
use etwhy_analysis::timeline::{Series, Timeline};
use etwhy_rules::rule::{Source, Threshold};
use etwhy_rules::{Answer, Hit, Outcome, Reason, Severity};
use etwhy_sql::Cell;
use std::collections::BTreeMap;

/// Names that markup, terminals, spreadsheets or readers could take for more.
pub fn hostile_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "<script>alert(1)</script>.exe",
        "</script><script>alert(2)</script>",
        "\"><img src=x onerror=alert(3)>",
        "<!--<script>",
        "=cmd|' /C calc'!A0",
        "exe.\u{202e}fdp.sys",
        "\u{1b}[31mred\u{1b}[0m\u{7}\r\n| new | row |",
        "a|b`c`*d*_e_[f](javascript:alert(4))",
        "{{7*7}} ${7*7} @everyone #1 https://example.org/x",
    ]
    .map(str::to_owned)
    .into();
    names.push("A".repeat(30_000));
    names
}

const S: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
const US: i64 = 1_000;

/// The report.
pub fn report() -> Report {
    let names = hostile_names();
    Report {
        schema: SCHEMA,
        sentence: "Example Defender (exflt.sys) cost this machine 34 % of its CPU, 0.006 of 0.018 core-hours, about 0.09 \
                   Wh (0.04–0.16), and made Sleep(0) 33 times slower."
            .to_owned(),
        quality: quality(),
        findings: findings(&names),
        cpu: cpu(&names),
        clr: vec![ClrProcess {
            name: "OrderService.exe".into(),
            pid: 1016,
            gc_by_generation: [33, 14, 9],
            gc_pause_ns: 1620 * MS,
            gc_longest_pause_ns: 44 * MS,
            gc_peak_heap_bytes: 2_684_354_560,
            exceptions: 25,
            exception_types: vec![("System.TimeoutException".into(), 25)],
            jit_methods: 412,
            jit_ns: 380 * MS,
            ..ClrProcess::default()
        }],
        disk: disk(&names),
        activity: Some(activity(&names)),
        cannot_tell: vec![Missing {
            question: "which system calls were made and how long they took".into(),
            because: "no SysClEnter events were recorded".into(),
            record: "etwhy record --print syscall".into(),
        }],
        bill: bill(&names),
        charts: Some(Charts {
            timeline: Some(timeline(&names)),
            flame: Some(flame(&names)),
            histograms: vec![
                histogram(None, 1),
                histogram(Some("NDIS.SYS"), 2),
                histogram(names.get(2).map(String::as_str), 9),
            ],
            growth: vec![growth()],
        }),
    }
}

fn activity(names: &[String]) -> Activity {
    let name = |at: usize| names.get(at).cloned().unwrap_or_default();
    let operation = Operation {
        provider: name(0),
        name: name(1),
        process: Some(name(2)),
        count: 1_250,
        complete: 1_240,
        unfinished: 8,
        doubtful: 2,
        per_second: Some(156.25),
        total_ns: 4 * S,
        median_ns: Some(2 * MS),
        p95_ns: Some(9 * MS),
        longest_ns: Some(310 * MS),
    };
    let long = LongInterval {
        provider: name(0),
        name: name(1),
        process: Some(name(2)),
        tid: Some(4711),
        start_ns: 3 * S,
        dur_ns: 310 * MS,
        activity: Some(name(3)),
    };
    let undecoded = |kind: &str, option: Option<&str>| Undecoded {
        provider: name(4),
        guid: Some("2818ef08-6a54-396f-2244-5a6ea4a98cf0".into()),
        kind: kind.into(),
        count: 340,
        share_percent: Some(12.5),
        reason: "nothing describes them".into(),
        needs: option.map(|_| name(5)),
        option: option.map(str::to_owned),
        command: option.map(|_| name(6)),
    };
    Activity {
        cannot: "This trace cannot tell who used processors.".into(),
        duration_ns: 8 * S,
        events: 2_720,
        rundown: 20,
        providers: 3,
        intervals: 1_250,
        complete: 1_240,
        unfinished: 8,
        no_start: 0,
        doubtful: 2,
        longest: names.iter().map(|name| LongInterval { name: name.clone(), ..long.clone() }).collect(),
        by_total: vec![operation.clone()],
        by_count: names.iter().map(|name| Operation { name: name.clone(), ..operation.clone() }).collect(),
        rates: vec![Rate {
            provider: name(7),
            name: name(8),
            count: 2_500,
            share_percent: Some(91.9),
            per_second: Some(312.5),
            peak: 900,
            peak_ns: 5 * S,
        }],
        problems: vec![Problems { provider: name(0), errors: 3, warnings: 1, most: name(1) }],
        undecoded_events: 1_020,
        undecoded: vec![
            undecoded("manifest", Some("--manifests")),
            undecoded("wpp", Some("--tmf")),
            undecoded("kernel", None),
        ],
    }
}

fn quality() -> Quality {
    let line = |severity: &str, count, name: &str, meaning: &str| LedgerLine {
        severity: severity.into(),
        count,
        name: name.into(),
        meaning: meaning.into(),
    };
    Quality {
        files: vec!["C:\\traces\\example.etl".into()],
        os: "10.0.22631 (Windows 11 Pro)".into(),
        cpus: 8,
        memory_bytes: Some(17_179_869_184),
        start_utc: "2025-06-02 09:15:00.0000000".into(),
        duration_ns: 8 * S,
        events: 191_789,
        events_lost: 12,
        event_types: 63,
        undecoded_types: 1,
        stacks_percent: Some(98.0),
        named_percent: Some(91.0),
        sample_interval_ns: Some(MS),
        samples_recorded: true,
        ledger: vec![
            line(
                "data_loss",
                12,
                "events-lost",
                "The session lost events: counts and sums are lower bounds.",
            ),
            line("info", 3, "relogged", "The file was written by another program from the original."),
        ],
        ..Quality::default()
    }
}

fn hit(culprit: &str, kind: &str, headline: &str, severity: Severity, cost_ns: i64, share: f64) -> Hit {
    let values = [
        ("driver", Cell::Text(culprit.to_owned())),
        ("tracing_ns", Cell::I64(2_448_614_000_000)),
        ("other_ns", Cell::I64(73_927_000_000)),
        ("times_slower", Cell::F64(33.1)),
        ("first_seen_ns", Cell::Null),
    ];
    Hit {
        culprit: culprit.into(),
        culprit_kind: kind.into(),
        instance: None,
        headline: headline.into(),
        effect: None,
        explanation: "Each call of the system passes through the logger of this driver, which takes a rundown lock that all \
                      processors share."
            .into(),
        fix: "Remove the product, or its tracing of system calls; excluding paths does not help.".into(),
        severity,
        cost_ns: Some(cost_ns),
        share: Some(share),
        confidence: Some("high".into()),
        values: values.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect(),
    }
}

fn outcome(id: &str, title: &str, severity: Severity, answer: Answer, hits: Vec<Hit>) -> Outcome {
    let limit = Threshold {
        value: 5.0,
        unit: "percent of busy CPU".into(),
        source: Source::Heuristic,
        reference: "below that other causes weigh more".into(),
    };
    Outcome {
        id: id.into(),
        title: title.into(),
        topic: "trace".into(),
        over: etwhy_rules::Subject::Trace,
        severity: (answer == Answer::Found).then_some(severity),
        answer,
        reasons: Vec::new(),
        caveats: Vec::new(),
        hits,
        disproof: "The cost stays when the session is stopped.".into(),
        sql: "SELECT module AS culprit,\n       sum(weight_ns) AS cost_ns\nFROM stack_cost_by_module\nWHERE function LIKE \
              'PerfInfoLogSysCall%'\nGROUP BY module\nORDER BY cost_ns DESC;"
            .into(),
        thresholds: BTreeMap::from([("least_percent".to_owned(), limit)]),
    }
}

fn findings(names: &[String]) -> Vec<Outcome> {
    use Answer::{CannotTell, Found, NotFound};
    use Severity::{Critical, Notice, Warning};
    let slower = "Tracing of system calls by exflt.sys makes Sleep(0) 33 times slower";
    let over = "NDIS.SYS: 1,204 of 69,407 DPCs took longer than 100 µs (1.90 s in all, longest 4.10 ms)";
    let hostile = names.iter().map(|name| {
        hit(name, "process", &format!("{name} starts {name} again and again"), Notice, MS, 0.001)
    });
    let mut syscalls = outcome(
        "trace.syscall-tracing-cost",
        "Tracing of system calls is expensive",
        Critical,
        Found,
        vec![hit("exflt.sys", "driver", slower, Critical, 2_448 * S, 0.34)],
    );
    syscalls.caveats.push("12 events were lost: the figures are lower bounds.".into());
    let mut dpc = outcome(
        "dpc.over-limit",
        "DPCs run longer than 100 µs",
        Warning,
        Found,
        vec![hit("NDIS.SYS", "driver", over, Warning, 1_900 * MS, 0.03)],
    );
    let limit = Threshold {
        value: 100.0,
        unit: "us".into(),
        source: Source::Doc,
        reference:
            "https://learn.microsoft.com/windows-hardware/drivers/kernel/guidelines-for-writing-dpc-routines"
                .into(),
    };
    dpc.thresholds.insert("limit_us".into(), limit);
    let mut locks = outcome("lock.contention", "Threads wait for one lock", Warning, CannotTell, Vec::new());
    locks.reasons.push(Reason {
        text: "no CSwitch events were recorded".into(),
        record: Some("etwhy record --print cpu".into()),
    });
    vec![
        syscalls,
        dpc,
        outcome("process.churn", "Processes start all the time", Notice, Found, hostile.collect()),
        locks,
        outcome("disk.saturated", "A disk is saturated", Warning, NotFound, Vec::new()),
        outcome("memory.low", "Memory is low", Warning, NotFound, Vec::new()),
    ]
}

fn bill(names: &[String]) -> Vec<BillRow> {
    let row =
        |kind: &str, part: &str, culprit: &str, own: i64, frames: i64, dpc: i64, joules: Option<f64>| {
            BillRow {
                kind: kind.into(),
                part: part.into(),
                culprit: culprit.into(),
                own_cpu_ns: own * MS,
                frames_cpu_ns: frames * MS,
                dpc_ns: dpc * MS,
                isr_ns: dpc * MS / 20,
                total_cpu_ns: (own + frames + dpc) * MS + dpc * MS / 20,
                share_percent: Some((own + frames + dpc) as f64 / 640.0),
                core_hours: Some((own + frames + dpc) as f64 / 3_600_000.0),
                imposed_wait_ns: (frames > 0).then_some(frames * MS / 2),
                file_ns: (frames > 0).then_some(frames * MS / 3),
                energy_j: joules,
                energy_low_j: joules.map(|j| j * 0.4),
                energy_high_j: joules.map(|j| j * 1.7),
                confidence: "medium".into(),
                why: Some("few samples".into()),
                ..BillRow::default()
            }
        };
    let mut rows = vec![
        row("driver", "culprit", "exflt.sys", 0, 20_400, 60, Some(306.0)),
        row("driver", "culprit", "NDIS.SYS", 0, 310, 1_900, Some(33.0)),
        row("driver", "idle", "[idle]", 0, 0, 0, None),
        row("process", "culprit", "solver.exe (1012)", 11_300, 0, 0, Some(170.0)),
        row("process", "culprit", "build.exe (1008)", 1_860, 0, 0, Some(28.0)),
    ];
    rows.extend(names.iter().take(4).map(|name| row("process", "culprit", name, 200, 20, 1, Some(3.3))));
    rows.push(row("product", "culprit", "Example Defender", 1200, 20_400, 60, Some(325.0)));
    rows.push(row("product", "culprit", "Windows", 5_100, 2_100, 900, Some(121.0)));
    rows
}

fn cost(name: &str, category: Option<&str>, exclusive: i64, inclusive: i64) -> Cost {
    Cost {
        name: name.into(),
        inclusive_ns: inclusive * MS,
        exclusive_ns: exclusive * MS,
        category: category.map(str::to_owned),
    }
}

fn cpu(names: &[String]) -> Cpu {
    let process = |name: &str, pid, cpu: i64, kernel: i64| ProcessCost {
        upid: pid,
        pid,
        name: name.into(),
        cpu_ns: cpu * MS,
        samples: cpu,
        kernel_ns: kernel * MS,
        modules: vec![cost("libiomp5md.dll", None, cpu / 2, cpu / 2)],
        functions: vec![cost("libiomp5md.dll!__kmp_wait", None, cpu / 2, cpu / 2)],
    };
    let mut processes =
        vec![process("solver.exe", 1012, 30_454, 1500), process("build.exe", 1008, 6_848, 5_600)];
    processes.extend(names.iter().zip(2000..).map(|(name, pid)| process(name, pid, 20, 2)));
    let mut functions = vec![
        cost("libiomp5md.dll!__kmp_wait", None, 20_300, 20_300),
        cost("exflt.sys!MatchSignatures", Some("security"), 3_584, 4_983),
    ];
    functions.extend(names.iter().map(|name| cost(name, Some("security"), 3, 5)));
    Cpu {
        samples: 64_000,
        busy_ns: 43_022 * MS,
        idle_ns: 20_970 * MS,
        cpus: 8,
        with_stack_ns: 42_000 * MS,
        named_ns: 39_000 * MS,
        dpc_ns: 90 * MS,
        isr_ns: 9 * MS,
        processes,
        modules: vec![
            cost("libiomp5md.dll", None, 20_300, 20_300),
            cost("exflt.sys", Some("security"), 4_983, 4_983),
        ],
        inclusive: functions.clone(),
        functions,
        stacks: vec![StackCost {
            stack_id: 7,
            process: "solver.exe".into(),
            pid: 1012,
            cpu_ns: 20_300 * MS,
            frames: names.to_vec(),
        }],
    }
}

fn disk(names: &[String]) -> Disk {
    let one = |name: &str, n: i64| DiskCost {
        name: name.into(),
        reads: n,
        writes: n / 4,
        read_bytes: n * 65_536,
        write_bytes: n * 4096,
        service_ns: n * 1270 * US,
        longest_ns: 11_600 * US,
    };
    let mut files = vec![one("C:\\src\\main.cpp", 40)];
    files.extend(names.iter().map(|name| one(name, 2)));
    Disk { total: one("all", 400), processes: vec![one("build.exe (1008)", 400)], files }
}

fn timeline(names: &[String]) -> Timeline {
    let wave = |scale: f64, from: i64, to: i64| -> Vec<i64> {
        let one = |n: i64| if (from..to).contains(&n) { scale * (1.2 + (n as f64 / 9.0).sin()) } else { 0.0 };
        (0..160).map(|n| (one(n) * MS as f64) as i64).collect()
    };
    let series = |name: &str, kind, values_ns: Vec<i64>| Series {
        name: name.into(),
        kind,
        total_ns: values_ns.iter().sum(),
        values_ns,
    };
    let mut all = vec![
        series("solver.exe (1012)", "process", wave(90.0, 10, 150)),
        series("build.exe (1008)", "process", wave(40.0, 60, 140)),
        series("OrderService.exe (1016)", "process", wave(22.0, 0, 160)),
        series(names.first().map_or("", String::as_str), "process", wave(9.0, 40, 90)),
        series("other processes", "other", wave(4.0, 0, 160)),
        series("[DPC and ISR]", "interrupt", wave(2.0, 0, 160)),
    ];
    let capacity = 8 * 50 * MS;
    let idle = (0..160)
        .map(|n| capacity - all.iter().filter_map(|s| s.values_ns.get(n)).sum::<i64>())
        .map(|ns| ns.max(0))
        .collect();
    all.push(series("idle", "idle", idle));
    Timeline { start_ns: 0, slice_ns: 50 * MS, end_ns: 8 * S, cpus: 8, source: "sample", series: all }
}

fn flame(names: &[String]) -> Flame {
    let mut flame = Flame { omitted: 12, ..Flame::default() };
    let mut add = |name: &str, kind: &str, category: Option<&str>, parent: u32, total: i64, own: i64| {
        let number = flame.names.len() as u32;
        let security = category == Some("security");
        let category = category.map(str::to_owned);
        flame.names.push(FlameName { name: name.into(), kind: kind.into(), category, security });
        flame.name.push(number);
        flame.parent.push(parent);
        flame.total_ns.push(total * MS);
        flame.self_ns.push(own * MS);
        number
    };
    let root = add("all processes", "root", None, 0, 43_022, 0);
    let solver = add("solver.exe (1012)", "process", None, root, 30_454, 0);
    let thread = add("ntdll.dll!RtlUserThreadStart", "user", None, solver, 30_454, 100);
    let main = add("solver.exe!main", "user", None, thread, 30_354, 2_054);
    let wait = add("libiomp5md.dll!__kmp_wait", "user", None, main, 20_300, 18_000);
    add("ntoskrnl.exe!NtYieldExecution", "kernel", Some("os"), wait, 2_300, 2_300);
    add("solver.exe!integrate", "user", None, main, 8_000, 8_000);
    let build = add("build.exe (1008)", "process", None, root, 6_848, 0);
    let parse = add("build.exe!ParseUnit", "user", None, build, 6_848, 1_218);
    let filter = add("exflt.sys!MatchSignatures", "kernel", Some("security"), parse, 4_983, 3_584);
    add("exflt.sys!HashContent", "kernel", Some("security"), filter, 1_399, 1_399);
    let orders = add("OrderService.exe (1016)", "process", None, root, 4_914, 0);
    add("OrderService.dll!Orders.Ship", "managed", None, orders, 4_914, 4_914);
    let mut parent = add("[DPC and ISR]", "interrupt", None, root, 500, 0);
    for name in names {
        parent = add(name, "kernel", None, parent, 400, 0);
    }
    flame
}

fn histogram(module: Option<&str>, divide: i64) -> DurationHistogram {
    let borders = [0, 1, 2, 4, 8, 16, 25, 32, 64, 100, 128, 256, 512, 1024, 2048, 4096];
    let counts =
        [310, 2_900, 11_000, 24_000, 18_100, 7_000, 2_100, 1_900, 900, 300, 420, 260, 130, 60, 24, 3];
    let bins: Vec<Bin> = borders
        .iter()
        .zip(counts)
        .enumerate()
        .map(|(at, (&above, count))| Bin {
            above_ns: above * US,
            up_to_ns: borders.get(at + 1).map(|up| up * US),
            count: count / divide,
            total_ns: count / divide * above * US * 3 / 2,
            over_limit: above >= 100,
        })
        .collect();
    let over = || bins.iter().filter(|bin| bin.over_limit);
    DurationHistogram {
        class: "dpc".into(),
        module: module.map(str::to_owned),
        limit_ns: 100 * US,
        limit_source: "Microsoft, Windows Driver Kit, “Example 15: Measuring DPC/ISR Time”",
        count: bins.iter().map(|bin| bin.count).sum(),
        total_ns: bins.iter().map(|bin| bin.total_ns).sum(),
        over_limit: over().map(|bin| bin.count).sum(),
        over_limit_ns: over().map(|bin| bin.total_ns).sum(),
        bins,
    }
}

fn growth() -> GrowthCurve {
    let cost = |n: f64| 4_000.0 + 0.8 * n;
    let points = (0..24).map(|at| {
        let n_mid = f64::from(at) * 1_000.0 + 500.0;
        let noise = 1.0 + 0.08 * f64::from(at * 37 % 11 - 5) / 5.0;
        GrowthPoint { n_mid, cost_ns: cost(n_mid) * noise, fit_ns: Some(cost(n_mid)), calls: 1_000 }
    });
    GrowthCurve {
        operation: "VirtualAlloc MEM_TOP_DOWN".into(),
        name: "render.exe".into(),
        predictor: "calls".into(),
        verdict: "super_linear".into(),
        why: "each call costs more than the one before: all together grow with n^2".into(),
        model: "n".into(),
        total_model: "n^2".into(),
        weight: Some(0.97),
        a: Some(4_000.0),
        b: Some(0.8),
        exponent: Some(0.98),
        exponent_low: Some(0.93),
        exponent_high: Some(1.04),
        total_ns: 326 * MS,
        excess_ns: Some(230 * MS),
        cost_10x_ns: Some(cost(240_000.0)),
        function: Some("ntoskrnl.exe!MiFindEmptyAddressRangeDownTree".into()),
        caller: Some("render.exe!Arena::grow".into()),
        points: points.collect(),
    }
}
