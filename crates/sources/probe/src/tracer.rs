//! Tracers and filters of system calls that are put on for a measurement: strace, seccomp, tracefs.

use crate::call_cost::{Call, Cost, Load, measure};
use crate::child::{Silent, ask, tell};
use crate::error::ProbeError;
use crate::run::Run;
use crate::sample::Sample;
use crate::summary::{Figures, Series};
use crate::words::time;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Who looks at system calls while they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// Nobody that the probe has put there.
    None,
    /// strace of every call.
    Strace,
    /// strace of one other call, with `--seccomp-bpf`: the kernel stops the program for that one only.
    StraceOther,
    /// So many seccomp filters of [`FILTER_LENGTH`] instructions, which allow everything.
    Seccomp(u64),
    /// The kernel's own tracer: events `raw_syscalls` of tracefs, for all programs.
    Tracefs,
}

/// The words for them: values of a parameter.
pub const TRACERS: &[&str] =
    &["none", "strace", "strace-other", "seccomp-1", "seccomp-4", "seccomp-16", "tracefs"];

/// Those that change nothing but a child of the probe.
pub const USUAL: &str = if cfg!(target_os = "linux") {
    "none,strace,strace-other,seccomp-1,seccomp-4,seccomp-16"
} else {
    "none"
};

/// Instructions of each filter; those of containers have some hundred.
pub const FILTER_LENGTH: usize = 200;

/// How [`Tracer`]s look in results.
pub const UNTRACED: &str = "untraced";

impl Tracer {
    /// By its word.
    pub fn named(word: &str) -> Option<Tracer> {
        Some(match word {
            "none" => Tracer::None,
            "strace" => Tracer::Strace,
            "strace-other" => Tracer::StraceOther,
            "tracefs" => Tracer::Tracefs,
            _ => Tracer::Seccomp(word.strip_prefix("seccomp-")?.parse().ok()?),
        })
    }

    /// The condition, as results name it.
    pub fn variant(self) -> String {
        match self {
            Tracer::None => UNTRACED.to_owned(),
            Tracer::Strace => "strace".to_owned(),
            Tracer::StraceOther => "strace of another call".to_owned(),
            Tracer::Seccomp(1) => "1 seccomp filter".to_owned(),
            Tracer::Seccomp(n) => format!("{n} seccomp filters"),
            Tracer::Tracefs => "tracefs raw_syscalls".to_owned(),
        }
    }
}

/// Measures calls while a tracer is on. Absent if it cannot be put on; a note says why.
///
/// # Errors
/// [`ProbeError::Interrupted`].
pub fn cost(run: &mut Run<'_>, load: Load, tracer: Tracer) -> Result<Option<Cost>, ProbeError> {
    if tracer != Tracer::None && cfg!(not(target_os = "linux")) {
        run.note(format!("{}: the probe has this on Linux only", tracer.variant()));
        return Ok(None);
    }
    match tracer {
        Tracer::None => {
            let stop = run.interrupt().clone();
            let cost = measure(load, || stop.is_set());
            run.goes_on()?;
            Ok(Some(cost))
        }
        Tracer::Tracefs => match Events::on() {
            Ok(events) => {
                let stop = run.interrupt().clone();
                let cost = measure(load, || stop.is_set());
                drop(events);
                run.goes_on()?;
                Ok(Some(cost))
            }
            Err(why) => {
                run.note(format!("{}: left out: {why}", tracer.variant()));
                Ok(None)
            }
        },
        _ => by_child(run, load, tracer),
    }
}

fn by_child(run: &mut Run<'_>, load: Load, tracer: Tracer) -> Result<Option<Cost>, ProbeError> {
    let filters = if let Tracer::Seccomp(n) = tracer { n } else { 0 };
    let words = [load.threads.to_string(), load.ms.to_string(), filters.to_string()];
    let inner = run.child(&[load.call.name(), &words[0], &words[1], &words[2]]);
    let mut command = match tracer {
        Tracer::Strace => under_strace(&[], &inner),
        Tracer::StraceOther => under_strace(&["--seccomp-bpf", "-e", "trace=openat"], &inner),
        _ => inner,
    };
    // A traced program takes longer to start and to end; seconds are plenty.
    let limit = Duration::from_millis(load.ms.saturating_mul(10)).saturating_add(Duration::from_secs(30));
    match ask(run, &mut command, limit)? {
        Ok(cost) => Ok(Some(cost)),
        Err(Silent::NoStart(error)) if error.kind() == io::ErrorKind::NotFound && filters == 0 => {
            run.note(format!("{}: left out: strace is not installed (package strace)", tracer.variant()));
            Ok(None)
        }
        Err(silent) => {
            run.note(format!("{}: left out: {silent}", tracer.variant()));
            Ok(None)
        }
    }
}

fn under_strace(options: &[&str], inner: &Command) -> Command {
    let mut command = Command::new("strace");
    command
        .args(["-f", "-q", "-o", "/dev/null"])
        .args(options)
        .arg(inner.get_program())
        .args(inner.get_args());
    command
}

/// What children of the probes do: call, threads, milliseconds, seccomp filters.
pub fn child(arguments: &[String]) -> u8 {
    let [call, threads, ms, filters] = arguments else {
        return tell::<Cost>(&Err("call, threads, ms, filters are needed".to_owned()));
    };
    let number = |text: &String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let result = (|| {
        let call = Call::named(call).ok_or_else(|| format!("no call {call}"))?;
        let load = Load { call, threads: number(threads)?, ms: number(ms)?.min(60_000) };
        for _ in 0..number(filters)?.min(64) {
            filter()?;
        }
        Ok(measure(load, || false))
    })();
    tell(&result)
}

/// Puts a seccomp filter on this process for good. It allows everything, and looks at an argument of each call on the way:
/// filters that look at the number only are answered from a table by newer kernels (5.11 and later).
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
fn filter() -> Result<(), String> {
    use seccompiler::sock_filter;
    // linux/bpf_common.h, linux/seccomp.h: load a word of `struct seccomp_data`, compare it, return.
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    /// `args[0]`: behind the number, the architecture and the instruction pointer.
    const FIRST_ARGUMENT: u32 = 16;
    let plain = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    let mut program = Vec::with_capacity(FILTER_LENGTH);
    while program.len() + 2 < FILTER_LENGTH {
        program.push(plain(LOAD_WORD, FIRST_ARGUMENT));
        // Both ways lead to the next instruction.
        program.push(plain(JUMP_IF_EQUAL, 0xdead_beef));
    }
    program.push(plain(RETURN, ALLOW));
    seccompiler::apply_filter(&program).map_err(|error| format!("seccomp: {error}"))
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
fn filter() -> Result<(), String> {
    Err("seccomp: not for this system".to_owned())
}

/// Names of our instances begin so; the number of the process follows.
const INSTANCE: &str = "etwhy-probe-";

/// The events `raw_syscalls`, on in a trace buffer of our own until the owner goes. All programs pay meanwhile.
struct Events {
    folder: PathBuf,
}

impl Events {
    fn on() -> Result<Events, String> {
        let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        let Some(root) =
            roots.iter().map(|root| Path::new(root).join("instances")).find(|path| path.is_dir())
        else {
            return Err(
                "no tracefs to be seen: it needs root, and `mount -t tracefs tracefs /sys/kernel/tracing`"
                    .to_owned(),
            );
        };
        remove_dead(&root);
        let events = Events { folder: root.join(format!("{INSTANCE}{}", std::process::id())) };
        let named = |error: io::Error| format!("{}: {error}", events.folder.display());
        std::fs::create_dir(&events.folder).map_err(named)?;
        std::fs::write(events.folder.join("events/raw_syscalls/enable"), "1").map_err(named)?;
        Ok(events)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = std::fs::write(self.folder.join("events/raw_syscalls/enable"), "0");
        if let Err(error) = std::fs::remove_dir(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            eprintln!("etwhy: {}: could not be removed: {error}", self.folder.display());
        }
    }
}

/// Removes instances of runs that were killed.
fn remove_dead(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(INSTANCE)?.parse::<u32>().ok());
        if let Some(process) = number
            && !Path::new("/proc").join(process.to_string()).exists()
        {
            drop(Events { folder: entry.path() });
        }
    }
}

/// Says who looks at this process's calls already: then nothing here is untraced.
pub fn note_lookers(run: &mut Run<'_>) {
    if cfg!(not(target_os = "linux")) {
        return;
    }
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    let field = |name: &str| -> u64 {
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    let tracer = field("TracerPid:");
    if tracer != 0 {
        run.note(format!("process {tracer} traces this program, so `{UNTRACED}` is not"));
    }
    // Filters: since Linux 5.9; before, the mode alone is known.
    let filters = field("Seccomp_filters:");
    if field("Seccomp:") == 2 {
        run.note(format!(
            "{filters} seccomp filters are on this program already (a container has some): `{UNTRACED}` includes their cost"
        ));
    }
}

/// One sentence for each tracer: what it makes of the untraced cost of a call of one thread. The ratio is that of the contrasts.
pub fn costs(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let one_thread = |measure: &str, variant: &str| {
        let one = figures.one(measure, variant, Some(1.0)).or_else(|| figures.one(measure, variant, None));
        one.map(|one| one.median)
    };
    let sentence = |one: &Series| {
        let (measure, variant) = (one.key.measure.as_str(), one.key.variant.as_str());
        if variant == UNTRACED || one.key.n.unwrap_or(1.0) > 1.0 {
            return None;
        }
        let (plain, traced) = (one_thread(measure, UNTRACED)?, one_thread(measure, variant)?);
        Some(format!(
            "{variant}: {measure} took {} with one thread instead of {}.",
            time(traced),
            time(plain)
        ))
    };
    figures.all().iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_medians_with_one_thread() {
        let sample = |variant: &str, threads: f64, value: f64| Sample {
            case: crate::Case::new("getppid").when(variant).at(threads),
            value,
            ..Sample::default()
        };
        let samples = [
            sample(UNTRACED, 1.0, 100.0),
            sample(UNTRACED, 1.0, 120.0),
            sample(UNTRACED, 1.0, 9000.0),
            sample("strace", 4.0, 7.0),
            sample("strace", 1.0, 24_000.0),
        ];
        assert_eq!(costs(&samples), ["strace: getppid took 24 µs with one thread instead of 120 ns."]);
    }

    #[test]
    fn every_word_names_a_tracer_of_its_own() {
        let mut variants: Vec<String> =
            TRACERS.iter().map(|word| Tracer::named(word).unwrap().variant()).collect();
        variants.sort_unstable();
        variants.dedup();
        assert_eq!(variants.len(), TRACERS.len());
        assert!(USUAL.split(',').all(|word| TRACERS.contains(&word)));
        assert_eq!(Tracer::named("seccomp-x"), None);
    }

    #[test]
    fn a_child_that_is_told_nonsense_fails() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(child(&words("nonsense 1 1 0")), 1);
        assert_eq!(child(&words("getppid one 1 0")), 1);
        assert_eq!(child(&[]), 1);
    }
}
