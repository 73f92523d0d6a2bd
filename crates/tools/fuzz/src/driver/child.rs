//! A child: runs mutants one after the other and says so.

use super::Options;
use crate::targets::{Target, by_name};
use crate::watch;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;

/// What was said by the last panic, and where.
static LAST: Mutex<String> = Mutex::new(String::new());

pub fn run(options: &Options) -> ExitCode {
    let Some(target) = options.target.first().and_then(|name| by_name(name)) else {
        return ExitCode::from(2);
    };
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut last) = LAST.lock() {
            *last = info.to_string().replace('\n', " ");
        }
    }));
    let mut out = std::io::stdout();
    if let Some(file) = &options.file {
        let Ok(data) = std::fs::read(file) else { return ExitCode::from(2) };
        let size = options.size.unwrap_or(data.len());
        let _ = writeln!(out, "seeds 1\nrun 0");
        let _ = out.flush();
        let _ = writeln!(out, "{}", outcome(target, &data, size));
        return ExitCode::SUCCESS;
    }
    let seeds = (target.seeds)(&options.corpus(), options.limit);
    let _ = writeln!(out, "seeds {}", seeds.len());
    for index in options.from..options.from.saturating_add(options.count) {
        let data = target.mutant(&seeds, options.seed, index);
        if writeln!(out, "run {index}").and_then(|()| out.flush()).is_err() {
            break;
        }
        let said = outcome(target, &data, data.len());
        let memory = said.starts_with("memory");
        if said != "ok" {
            let _ = writeln!(out, "{said}");
        }
        if memory {
            // The peak of this process says nothing about the next mutant.
            break;
        }
    }
    ExitCode::SUCCESS
}

fn outcome(target: &Target, data: &[u8], size: usize) -> String {
    let limit = watch::memory_limit(size);
    if watch::peak_memory(None).is_some_and(|peak| peak > limit / 2) {
        watch::reset_peak();
    }
    if catch_unwind(AssertUnwindSafe(|| (target.run)(data))).is_err() {
        return format!("panic {}", LAST.lock().map_or_else(|_| String::new(), |l| l.clone()));
    }
    match watch::peak_memory(None) {
        Some(peak) if peak > limit => format!("memory {peak} bytes, {size} bytes of input may take {limit}"),
        _ => "ok".to_owned(),
    }
}
