//! Processes with limits: one for each trace, so that what is wrong with a trace costs that trace alone.
//!
//! [`supervise`] runs one until it ends. Whoever talks to one that lives long starts it himself, [`Watched`] ends it beyond its limits or
//! when nobody wants it any more, and [`Lines`] reads what it says, of which a process gone wrong may say any amount.
#![forbid(unsafe_code)]

mod lines;
mod usage;

pub use lines::{Lines, end_with_standard_input};
pub use usage::{Usage, machine_memory};

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes that are kept of what a process says on standard error: the last ones.
const MOST_SAID: usize = 8 << 10;
/// Bytes that are kept of standard output.
const MOST_PRINTED: usize = 64 << 20;
/// Time between two looks at a process, at first and at most.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(25)];

/// What an unwanted process has to end by itself, because its standard input did.
const GRACE: Duration = Duration::from_millis(500);

/// What a process may use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Time.
    pub time: Option<Duration>,
    /// Memory of its own, in bytes. Where the system does not tell what a process has (others than Linux) nothing is limited.
    pub memory: Option<u64>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal or an exception.
    Crashed,
    /// It took too long.
    TooLong,
    /// It took too much memory.
    TooLarge,
}

/// A process that ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub how: How,
    /// The last that it said on standard error.
    pub said: String,
    /// What it printed, if that was wanted.
    pub printed: Vec<u8>,
    /// What it was seen to use; CPU time only where it ended otherwise than by itself.
    pub usage: Usage,
    /// How long it took.
    pub took: Duration,
}

/// What this process has used.
pub fn own_usage() -> Option<Usage> {
    let seen = usage::of_process(std::process::id());
    let cpu_ns = own_cpu_ns().or(seen.map(|usage| usage.cpu_ns))?;
    Some(Usage { cpu_ns, memory_bytes: seen.map_or(0, |usage| usage.memory_bytes) })
}

#[cfg(unix)]
fn own_cpu_ns() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let (seconds, ns) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}

#[cfg(windows)]
fn own_cpu_ns() -> Option<u64> {
    etwhy_os::calls::process_cpu_ns().ok()
}

/// Runs a process until it ends or exceeds a limit. Its standard input stays open as long as this process lives: who reads it knows when
/// nobody waits any more.
///
/// # Errors
/// If it cannot be started.
pub fn supervise(command: &mut Command, limits: &Limits, prints: bool) -> io::Result<Ended> {
    let out = if prints { Stdio::piped() } else { Stdio::null() };
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(out).stderr(Stdio::piped()).spawn()?;
    let said = child.stderr.take().map(|pipe| keep(pipe, MOST_SAID, true));
    let printed = child.stdout.take().map(|pipe| keep(pipe, MOST_PRINTED, false));
    let mut usage = Usage::default();
    let result = wait(&mut child, limits, begin, &mut usage, &|| false);
    if result.is_err() {
        // It must not stay behind.
        let _ = child.kill();
        let _ = child.wait();
    }
    let text = |pipe: Option<JoinHandle<Vec<u8>>>| pipe.and_then(|pipe| pipe.join().ok()).unwrap_or_default();
    let said = String::from_utf8_lossy(&text(said)).into_owned();
    Ok(Ended { how: result?, said, printed: text(printed), usage, took: begin.elapsed() })
}

/// A process that lives until it is no longer wanted.
#[derive(Debug)]
pub struct Watched {
    child: Child,
    unwanted: Arc<AtomicBool>,
}

/// Ends a process when it is dropped.
#[derive(Debug)]
pub struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Watched {
    /// A process that was started; it is ended soon after the second is dropped.
    pub fn new(child: Child) -> (Watched, Wanted) {
        let unwanted = Arc::new(AtomicBool::new(false));
        (Watched { child, unwanted: Arc::clone(&unwanted) }, Wanted(unwanted))
    }

    /// Waits until it ends, exceeds a limit or is unwanted; none if it was unwanted.
    ///
    /// # Errors
    /// If the system does not tell of it; it is ended then.
    pub fn wait(mut self, limits: &Limits) -> io::Result<Option<How>> {
        let mut usage = Usage::default();
        let unwanted = self.unwanted;
        let given_up = || unwanted.load(Ordering::Relaxed);
        let how = wait(&mut self.child, limits, Instant::now(), &mut usage, &given_up);
        if how.is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        how.map(|how| (!given_up()).then_some(how))
    }
}

fn wait(
    child: &mut Child,
    limits: &Limits,
    begin: Instant,
    usage: &mut Usage,
    given_up: &dyn Fn() -> bool,
) -> io::Result<How> {
    let [mut pause, longest] = LOOKS;
    let mut over = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(how(status));
        }
        if given_up() && *over.get_or_insert_with(Instant::now) + GRACE <= Instant::now() {
            return end(child, How::Crashed);
        }
        if let Some(now) = usage::of_process(child.id()) {
            usage.cpu_ns = now.cpu_ns;
            usage.memory_bytes = usage.memory_bytes.max(now.memory_bytes);
            if limits.memory.is_some_and(|most| now.memory_bytes > most) {
                return end(child, How::TooLarge);
            }
        }
        if limits.time.is_some_and(|most| begin.elapsed() > most) {
            return end(child, How::TooLong);
        }
        thread::sleep(pause);
        pause = pause.saturating_mul(2).min(longest);
    }
}

fn end(child: &mut Child, how: How) -> io::Result<How> {
    child.kill()?;
    child.wait()?;
    Ok(how)
}

fn how(status: ExitStatus) -> How {
    // 101 is a panic of Rust; Windows has exceptions as numbers beyond those of programs.
    match status.code() {
        Some(code @ 0..=100) => How::Exited(code),
        _ => How::Crashed,
    }
}

/// Reads a pipe to its end and keeps the first or last bytes.
fn keep(mut pipe: impl Read + Send + 'static, most: usize, last: bool) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count) = pipe.read(&mut piece) {
            let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            if last || kept.len() < most {
                kept.extend_from_slice(bytes);
            }
            if last && kept.len() > most.saturating_mul(2) {
                kept.drain(..kept.len().saturating_sub(most));
            }
        }
        let more = kept.len().saturating_sub(most);
        match last {
            true => drop(kept.drain(..more)),
            false => kept.truncate(most),
        }
        kept
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limits: &Limits) -> Ended {
        supervise(Command::new("sh").args(["-c", script]), limits, true).unwrap()
    }

    #[test]
    fn processes_end_in_every_way() {
        let all = Limits { time: Some(Duration::from_millis(200)), memory: None };
        let ended = shell("echo out; echo why >&2; exit 3", &Limits::default());
        assert_eq!(
            (ended.how, ended.said.as_str(), ended.printed.as_slice()),
            (How::Exited(3), "why\n", &b"out\n"[..])
        );
        assert_eq!(shell("exec sleep 60", &all).how, How::TooLong);
        assert_eq!(shell("kill -9 $$", &all).how, How::Crashed);
        assert_eq!(shell("exit 101", &all).how, How::Crashed);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_limited() {
        let limits = Limits { time: Some(Duration::from_secs(60)), memory: Some(50_000_000) };
        // `tail` keeps a line without end.
        let ended = shell("exec tail /dev/zero", &limits);
        assert_eq!(ended.how, How::TooLarge);
        assert!(ended.usage.memory_bytes > 50_000_000);
    }

    #[test]
    fn of_much_that_is_said_the_end_is_kept() {
        let ended =
            shell("i=0; while [ $i -lt 4000 ]; do echo line$i >&2; i=$((i+1)); done", &Limits::default());
        assert!(ended.said.ends_with("line3999\n") && ended.said.len() <= MOST_SAID);
    }
}
