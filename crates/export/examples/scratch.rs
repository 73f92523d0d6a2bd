//! scratch
use etwhy_export::*;
use etwhy_table::*;
define_table! {
    /// Rows to test with.
    pub table SAMPLE: SampleRow = "sample" {
        sorted_by: "ts_ns", version: 2,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Processor.
        cpu: i32 [None, Cpu],
        /// Thread.
        utid: Option<i32> [None, Thread],
        /// Wait.
        wait_ns: Option<i64> [Ns, Duration],
        /// Size.
        size: i64 [Bytes, Bytes],
        /// Process.
        process: Option<Sym> [None, Name],
        /// Address.
        address: i64 [Address, Address],
        /// In a DPC.
        in_dpc: bool [None, Flag],
    }
}
define_table! {
    /// With text.
    pub table FILES: FileRow = "file_io" {
        sorted_by: "ts_ns", version: 1,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Process.
        process: Sym [None, Name],
        /// Pid.
        pid: i32 [None, Pid],
        /// Size.
        size: i64 [Bytes, Bytes],
        /// Wait.
        wait_ns: Option<i64> [Ns, Duration],
        /// Count
        count: i64 [Count, Count],
        /// Started.
        start_utc: i64 [Utc100ns, Time],
        /// Status.
        status: i32 [Hex32, Status],
        /// Path.
        path: String [None, Path],
        /// Message.
        command_line: Box<str> [None, Message],
    }
}
fn time<T>(what: &str, n: usize, f: impl FnOnce() -> T) -> T {
    let t = std::time::Instant::now();
    let r = f();
    let e = t.elapsed();
    println!("{what}: {:.3} s, {:.1} ns/row", e.as_secs_f64(), e.as_nanos() as f64 / n as f64);
    r
}
fn rss() -> String {
    let s = std::fs::read_to_string("/proc/self/status").unwrap();
    s.lines()
        .filter(|l| l.starts_with("RssAnon") || l.starts_with("VmHWM") || l.starts_with("RssFile"))
        .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join(" ")
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).map(String::as_str) == Some("show") {
        let mut st = Strings::new();
        let mut b = TableBuilder::<FileRow>::new(&Memory::unlimited());
        for i in 0..12i64 {
            let name = ["SearchIndexer.exe", "cmd.exe", "日本語.exe", "evil\u{1b}[31m.exe"][i as usize % 4];
            b.push(FileRow { ts_ns: i * 1_234_567_891, process: st.intern(name), pid: 4 + 12345 * i as i32, size: i * 1_234_567, wait_ns: (i % 3 != 1).then_some(i * i * 123_456),
                count: i * 1000, start_utc: 133_000_000_000_000_000 + i * 10_000_000_000, status: if i % 5 == 0 { 0xc000_0022u32 as i32 } else { 0 },
                path: format!("C:\\Windows\\System32\\DriverStore\\FileRepository\\prnms003.inf_amd64_{i}\\Amd64\\PrintConfig.dll"),
                command_line: format!("\"C:\\Program Files\\Thing\\{name}\" /run:{i} --with=\"many arguments\" and more").into() });
        }
        let t = b.finish(&st.freeze().unwrap()).unwrap();
        let f = Format::by_name("table").unwrap();
        for w in [Some(80), Some(120), Some(200), None] {
            println!("== {w:?}");
            let o = Options { width: w, total_rows: Some(123456), ..Default::default() };
            (f.write)(&Selection::all(&t), &o, &mut std::io::stdout()).unwrap();
        }
        let s = Selection::all(&t).columns("ts_s,process,path,wait_us").unwrap();
        (f.write)(&s, &Options { width: Some(80), ..Default::default() }, &mut std::io::stdout()).unwrap();
        for l in text::boxed(
            "Verdict",
            &text::wrap(
                "The disk was busy for most of the time, and the antivirus filter waited for it on every single open of a file.",
                50,
            ),
            60,
        ) {
            println!("{l}");
        }
        for x in [0.01, 0.33, 0.5, 0.999] {
            println!("[{}]", text::bar(x, 20));
        }
        return;
    }
    const N: usize = 10_000_000;
    let budget: u64 = args.get(2).map_or(u64::MAX, |s| s.parse().unwrap());
    let memory = if budget == u64::MAX {
        Memory::unlimited()
    } else {
        Memory::with_budget(budget, Some("/work/targets".into()))
    };
    let mut st = Strings::new();
    let names: Vec<Sym> = (0..500).map(|i| st.intern(&format!("process{i}.exe"))).collect();
    let mut x = 88172645463325252u64;
    let mut b = TableBuilder::<SampleRow>::new(&memory);
    time("push 10M x 8", N, || {
        for i in 0..N {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            b.push(SampleRow {
                ts_ns: i as i64 * 137 + (x & 63) as i64,
                cpu: (x & 15) as i32,
                utid: (x & 7 != 0).then_some((x >> 8) as i32 & 0xfff),
                wait_ns: (x & 1 != 0).then_some((x >> 20) as i64 & 0xfff_ffff),
                size: (x >> 40) as i64,
                process: (x & 31 != 0).then_some(names[(x >> 32) as usize % 500]),
                address: x as i64,
                in_dpc: x & 64 != 0,
            });
        }
    });
    println!("{}", rss());
    let texts = st.freeze().unwrap();
    let t = time("finish", N, || b.finish(&texts).unwrap());
    println!("peak {} spilled {} {:?} {}", memory.peak(), memory.spilled(), memory.failure(), rss());
    let p = |c: &str| vec![Predicate::parse(c, &SAMPLE).unwrap()];
    for c in [
        "ts_s>=1",
        "process=process1*",
        "process=!*9.exe",
        "wait_ms>=200",
        "cpu=0;3..5",
        "address=0xff*",
        "in_dpc=true",
    ] {
        let n = time(&format!("filter {c}"), N, || Selection::all(&t).filter(&p(c)).len());
        println!("   -> {n}");
    }
    let k = |c: &str| SortKey::parse(c, &SAMPLE).unwrap();
    time("sort -wait_ns all", N, || Selection::all(&t).sort(&[k("-wait_ns")], None).len());
    time("sort -wait_ns top 20", N, || Selection::all(&t).sort(&[k("-wait_ns")], Some(20)).len());
    time("sort process,-wait top 20", N, || {
        Selection::all(&t).sort(&[k("process"), k("-wait_ns")], Some(20)).len()
    });
    time("sort process,-wait all", N, || Selection::all(&t).sort(&[k("process"), k("-wait_ns")], None).len());
    time("filter+sort", N, || {
        Selection::all(&t).filter(&p("process=process1*")).sort(&[k("-wait_ns")], None).len()
    });
    let c = ColumnRef::find("process", &SAMPLE).unwrap();
    time("top 3 per process", N, || Selection::all(&t).top_per(&c, 3).len());
    if let Some(dir) = args.get(1) {
        let dir = std::path::Path::new(dir);
        for f in ["parquet", "csv", "jsonl"] {
            let path = dir.join(format!("sample.{f}"));
            time(f, N, || {
                write_file(Format::by_name(f).unwrap(), &Selection::all(&t), &Options::default(), &path)
                    .unwrap()
            });
            println!("   {} bytes {}", std::fs::metadata(&path).unwrap().len(), rss());
        }
        let s =
            Selection::all(&t).filter(&p("process=process1*")).columns("ts_s,process,wait_ms,cpu").unwrap();
        time("parquet of a selection", s.len(), || {
            write_file(
                Format::by_name("parquet").unwrap(),
                &s,
                &Options::default(),
                &dir.join("part.parquet"),
            )
            .unwrap()
        });
    }
}
