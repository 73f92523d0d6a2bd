//! Messages per second of processor time, of one thread: audits such as 4624, each with its own values.
//!
//! `cargo run --release -p etwhy-messages --example render -- DLL|DB…`; without arguments the samples of the package
//! `evtx` are taken from the package cache.

use etwhy_messages::{EventKey, Inserts, Messages, Options};
use std::path::PathBuf;
use std::time::Instant;

/// Values of a record, some of which change.
struct Record {
    values: Vec<String>,
    n: u64,
}

impl Inserts for Record {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn write(&self, n: usize, out: &mut String) -> bool {
        use std::fmt::Write as _;
        match n {
            7 => write!(out, "{:#x}", self.n).is_ok(),
            _ => self.values.get(n).map(|text| out.push_str(text)).is_some(),
        }
    }

    fn number(&self, n: usize) -> Option<u64> {
        (n == 7).then_some(self.n)
    }
}

/// Nanoseconds that this thread had a processor, where the system tells; others use this machine too.
fn cpu_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        let home = std::env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
        let cache = home.ok_or("no CARGO_HOME")?.join("registry/src");
        paths.extend(
            std::fs::read_dir(cache)?
                .flatten()
                .map(|r| r.path().join("evtx-0.15.1/samples/dlls/adtschema.dll"))
                .filter(|p| p.is_file()),
        );
    }
    let start = Instant::now();
    let messages = Messages::open(&paths, &Options { name_sids: true, ..Options::default() })?;
    println!("opened in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let kinds = [(4624u16, 2u8, 27usize), (4634, 0, 5), (4688, 2, 16), (4672, 0, 5)];
    let mut all = Vec::new();
    for (id, version, fields) in kinds {
        let key = EventKey {
            provider: "Microsoft-Windows-Security-Auditing",
            event_id: id,
            version,
            ..EventKey::default()
        };
        let start = Instant::now();
        let Some(text) = messages.event(&key) else {
            println!("{id}: no text; wanted: {:?}", messages.wanted());
            continue;
        };
        let looked_up = start.elapsed();
        let values = (0..fields)
            .map(|n| match n {
                0 | 4 => "S-1-5-18".to_owned(),
                // Parameters: %%1833 is Yes in msobjs.dll, and stays as it is where that file is missing.
                20..=26 => "%%1833".to_owned(),
                _ => format!("value{n}"),
            })
            .collect();
        all.push((id, text, Record { values, n: 0 }, looked_up));
    }
    let mut out = String::new();
    for (id, text, record, looked_up) in &mut all {
        let rounds = 2_000_000u64;
        let mut bytes = 0usize;
        let (start, cpu) = (Instant::now(), cpu_ns());
        for n in 0..rounds {
            record.n = n;
            out.clear();
            text.render(record, &mut out);
            bytes += out.len();
        }
        let wall = start.elapsed().as_secs_f64();
        let seconds = match (cpu, cpu_ns()) {
            (Some(from), Some(to)) => to.saturating_sub(from) as f64 / 1e9,
            _ => wall,
        };
        println!(
            "{id}: {:.2} M messages/s, {:.0} MB/s of text, {} bytes each, looked up in {:.2} ms; by the clock {:.2} M messages/s",
            rounds as f64 / seconds / 1e6,
            bytes as f64 / seconds / 1e6,
            bytes as u64 / rounds,
            looked_up.as_secs_f64() * 1e3,
            rounds as f64 / wall / 1e6,
        );
    }
    Ok(())
}
