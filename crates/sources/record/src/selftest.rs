//! What `etwhy record selftest` does to be recorded, and what a trace of it must show.
//!
//! Every figure is one that the program itself knows: how often it did what, and what Windows charged it with. Nothing is left
//! behind.

use etwhy_os::memory::{Access, Placement, Region};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Beginning of the names of the files that are opened.
const FILE: &str = "etwhy-selftest-";
/// Beginning of the marks before and after the work.
pub const MARK: &str = "etwhy selftest";
/// An unusual size, so that nobody else's allocations count.
const ALLOCATION: usize = 0x5D_0000;
/// A name that is asked for. Windows answers it itself, so that nothing leaves the machine.
const NAME: &str = "localhost";

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Milliseconds that one thread computes.
    pub spin_ms: u64,
    /// Times that one thread waits for another.
    pub waits: u32,
    /// Opens of files.
    pub opens: u32,
    /// Reads of a value of the registry; Windows only.
    pub registry_reads: u32,
    /// Allocations of address space.
    pub allocations: u32,
    /// Questions for a name of this machine.
    pub lookups: u32,
    /// Handles that are open at once; Windows only.
    pub handles: u32,
    /// Milliseconds for which a window does not answer; Windows only.
    pub hang_ms: u64,
}

impl Amount {
    /// About five seconds. Few lookups: each may be a wait of its own, which `waits` must not drown in.
    pub const USUAL: Amount = Amount {
        spin_ms: 1000,
        waits: 100,
        opens: 500,
        registry_reads: 1000,
        allocations: 200,
        lookups: 20,
        handles: 500,
        hang_ms: 1500,
    };
}

/// What was done. A part that this system cannot do has a zero, and a sentence in `not_done`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// This process.
    pub pid: u32,
    /// CPU time that it used, as the system counts it; else the time that the computing thread ran.
    pub cpu_ns: u64,
    /// Times that a thread waited for another.
    pub waits: u32,
    /// How long these waits took together.
    pub waited_ns: u64,
    /// Opens of files whose names begin with `etwhy-selftest-`.
    pub opens: u32,
    /// Reads of a value of the registry.
    pub registry_reads: u32,
    /// Allocations of address space.
    pub allocations: u32,
    /// Bytes of each.
    pub allocation_bytes: u64,
    /// Questions for a name of this machine.
    pub lookups: u32,
    /// Handles of registry keys, opened and closed.
    pub handles: u32,
    /// How long a window did not answer.
    pub hung_ns: u64,
    /// What was not done, and why.
    pub not_done: Vec<String>,
}

/// Does the work; files lie in a folder, and are gone afterwards.
///
/// # Errors
/// The system's.
pub fn perform(folder: &Path, amount: Amount) -> io::Result<Truth> {
    let before = cpu_ns();
    let spun = spin(Duration::from_millis(amount.spin_ms));
    let waited = wait(amount.waits);
    open(folder, amount.opens)?;
    let registry_reads = registry(amount.registry_reads)?;
    for _ in 0..amount.allocations {
        drop(Region::new(ALLOCATION, Access::ReadWrite, Placement::Anywhere)?);
    }
    let handles = handles(amount.handles)?;
    // These need more than a kernel: a resolver, a desktop.
    let mut not_done = Vec::new();
    let lookups = or_not_done("DNS on this machine", look_up(amount.lookups), &mut not_done);
    let hung = or_not_done("a window that does not answer", hang(amount.hang_ms), &mut not_done);
    let cpu_ns = match (before, cpu_ns()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => nanoseconds(spun),
    };
    Ok(Truth {
        pid: std::process::id(),
        cpu_ns,
        waits: amount.waits,
        waited_ns: nanoseconds(waited),
        opens: amount.opens,
        registry_reads,
        allocations: amount.allocations,
        allocation_bytes: ALLOCATION as u64,
        lookups,
        handles,
        hung_ns: nanoseconds(hung),
        not_done,
    })
}

fn or_not_done<T: Default>(what: &str, done: io::Result<T>, not_done: &mut Vec<String>) -> T {
    done.unwrap_or_else(|error| {
        not_done.push(format!("not done, and so not compared: {what}: {error}"));
        T::default()
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(windows)]
fn cpu_ns() -> Option<u64> {
    etwhy_os::calls::process_cpu_ns().ok()
}

#[cfg(not(windows))]
fn cpu_ns() -> Option<u64> {
    None
}

/// One thread computes.
fn spin(time: Duration) -> Duration {
    let begun = Instant::now();
    let mut number = 1_u64;
    while begun.elapsed() < time {
        for _ in 0..1000 {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
    begun.elapsed()
}

/// One thread waits for another, which sleeps before it answers: each wait is a real one.
fn wait(times: u32) -> Duration {
    let (sender, receiver) = mpsc::channel();
    let other = thread::spawn(move || {
        for _ in 0..times {
            thread::sleep(Duration::from_millis(5));
            if sender.send(()).is_err() {
                return;
            }
        }
    });
    let begun = Instant::now();
    while receiver.recv().is_ok() {}
    let waited = begun.elapsed();
    // It has ended: that is why nothing more was received.
    let _ = other.join();
    waited
}

fn open(folder: &Path, times: u32) -> io::Result<()> {
    let path = folder.join(format!("{FILE}{}.tmp", std::process::id()));
    let done = File::create(&path).and_then(|mut file| file.write_all(b"etwhy")).and_then(|()| {
        let mut byte = [0];
        // The first open made it.
        (1..times).try_for_each(|_| File::open(&path)?.read_exact(&mut byte))
    });
    fs::remove_file(&path)?;
    done
}

#[cfg(windows)]
fn registry(times: u32) -> io::Result<u32> {
    use etwhy_os::windows::registry::{Key, Name, Root};
    let path = Name::new("SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion")?;
    let value = Name::new("CurrentBuild")?;
    let key = Key::open(Root::Machine, &path)?;
    let mut room = [0; 256];
    for _ in 0..times {
        key.read(&value, &mut room)?;
    }
    Ok(times)
}

#[cfg(not(windows))]
fn registry(_: u32) -> io::Result<u32> {
    Ok(0)
}

fn look_up(times: u32) -> io::Result<u32> {
    for _ in 0..times {
        drop((NAME, 0_u16).to_socket_addrs()?);
    }
    Ok(times)
}

/// All of them are open at once before they are closed.
#[cfg(windows)]
fn handles(count: u32) -> io::Result<u32> {
    use etwhy_os::windows::registry::{Key, Name, Root};
    let path = Name::new("SOFTWARE\\Microsoft")?;
    let keys = (0..count).map(|_| Key::open(Root::Machine, &path)).collect::<io::Result<Vec<Key>>>()?;
    drop(keys);
    Ok(count)
}

#[cfg(not(windows))]
fn handles(_: u32) -> io::Result<u32> {
    Ok(0)
}

/// A window lets a message wait. Windows belong to the thread that made them: it is one that ends with its window.
#[cfg(windows)]
fn hang(ms: u64) -> io::Result<Duration> {
    let hung = thread::spawn(move || -> io::Result<Duration> {
        let window = etwhy_os::windows::window::Window::open("etwhy selftest")?;
        window.answer();
        let begun = Instant::now();
        window.ask()?;
        thread::sleep(Duration::from_millis(ms));
        window.answer();
        Ok(begun.elapsed())
    });
    hung.join().unwrap_or_else(|_| Err(io::Error::other("its thread has failed")))
}

#[cfg(not(windows))]
fn hang(_: u64) -> io::Result<Duration> {
    Ok(Duration::ZERO)
}

/// A figure of the trace, and between which numbers it must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What it is.
    pub what: &'static str,
    /// The question to the tables, of one number.
    pub sql: String,
    /// What was done.
    pub truth: f64,
    /// Least that the trace must show.
    pub least: f64,
    /// Most that it must show.
    pub most: f64,
}

impl Check {
    /// Whether a figure agrees; none was told is no agreement.
    pub fn agrees(&self, seen: Option<f64>) -> bool {
        seen.is_some_and(|seen| (self.least..=self.most).contains(&seen))
    }
}

/// What a trace of the work must show; nothing of what was not done.
pub fn checks(truth: &Truth) -> Vec<Check> {
    let ours = |column: &str| format!("{column} IN (SELECT upid FROM process WHERE pid = {})", truth.pid);
    let check = |what, sql: String, truth: f64, less: f64, more: f64| Check {
        what,
        sql,
        truth,
        least: truth * less,
        most: truth * more,
    };
    let cpu = truth.cpu_ns as f64;
    let mut all = vec![
        check("marks", format!("SELECT count(*) FROM mark WHERE text LIKE '{MARK}%'"), 2.0, 1.0, 1.0),
        // Sampled each millisecond; Windows' own account counts in ticks of 15.6 ms.
        check(
            "CPU time, sampled (ns)",
            format!("SELECT coalesce(sum(weight_ns), 0) FROM sample WHERE {}", ours("upid")),
            cpu,
            0.8,
            1.25,
        ),
        check(
            "CPU time, by context switches (ns)",
            format!("SELECT coalesce(sum(cpu_ns), 0) FROM thread_time WHERE {}", ours("upid")),
            cpu,
            0.85,
            1.3,
        ),
        check(
            "waits ended by a thread of the same process",
            format!(
                "SELECT count(*) FROM cswitch WHERE {} AND {} AND wait_ns >= 1000000",
                ours("new_upid"),
                ours("readying_upid")
            ),
            f64::from(truth.waits),
            0.9,
            1.5,
        ),
        // Scanners open the file too.
        check(
            "opens of the file",
            format!("SELECT coalesce(sum(opens), 0) FROM file_open WHERE path LIKE '%{FILE}%'"),
            f64::from(truth.opens),
            1.0,
            4.0,
        ),
        check(
            "reads of registry values",
            format!("SELECT count(*) FROM registry WHERE op = 'QueryValue' AND {}", ours("upid")),
            f64::from(truth.registry_reads),
            1.0,
            1.5,
        ),
        check(
            "allocations of address space",
            format!(
                "SELECT count(*) FROM virtual_alloc WHERE size_bytes = {} AND committed_bytes > 0 AND {}",
                truth.allocation_bytes,
                ours("upid")
            ),
            f64::from(truth.allocations),
            1.0,
            1.0,
        ),
        // Libraries open keys too.
        check(
            "handles of registry keys, opened and closed",
            format!(
                "SELECT count(*) FROM handle WHERE object_type = 'Key' AND opened_by = 'create' AND close_ns IS NOT NULL AND {}",
                ours("upid")
            ),
            f64::from(truth.handles),
            1.0,
            1.5,
        ),
        // One question of a program may be one for each family of addresses.
        check(
            "DNS queries for the name of this machine",
            format!("SELECT count(*) FROM dns_query WHERE name = '{NAME}' AND {}", ours("upid")),
            f64::from(truth.lookups),
            1.0,
            4.0,
        ),
        check(
            "longest delay of the window that does not answer (ns)",
            format!("SELECT coalesce(max(dur_ns), 0) FROM ui_delay WHERE {}", ours("upid")),
            truth.hung_ns as f64,
            0.8,
            1.3,
        ),
    ];
    all.retain(|check| check.truth > 0.0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_done_and_nothing_is_left() {
        let folder = std::env::temp_dir().join(format!("etwhy-record-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let amount = Amount {
            spin_ms: 20,
            waits: 3,
            opens: 5,
            registry_reads: 7,
            allocations: 2,
            lookups: 2,
            handles: 4,
            hang_ms: 30,
        };
        let truth = perform(&folder, amount).unwrap();
        assert!(truth.waited_ns >= 12_000_000 && truth.opens == 5, "{truth:?}");
        assert!(cfg!(windows) || truth.cpu_ns >= 20_000_000, "{truth:?}");
        assert_eq!(truth.handles, if cfg!(windows) { 4 } else { 0 });
        // Each of the two parts that not every machine can do is done, or said.
        let missing =
            usize::from(truth.lookups != 2) + usize::from(cfg!(windows) && truth.hung_ns < 30_000_000);
        assert_eq!(truth.not_done.len(), missing, "{truth:?}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
        assert!(perform(Path::new("/no/such/folder"), amount).is_err());
    }

    #[test]
    fn figures_agree_within_their_bounds_only() {
        let truth = Truth {
            pid: 7,
            cpu_ns: 1_000_000_000,
            waits: 100,
            waited_ns: 1,
            opens: 500,
            registry_reads: 1000,
            allocations: 200,
            allocation_bytes: 4096,
            lookups: 20,
            handles: 500,
            hung_ns: 1_500_000_000,
            not_done: Vec::new(),
        };
        assert_eq!(checks(&truth).len(), 10);
        let without = Truth { lookups: 0, hung_ns: 0, ..truth.clone() };
        assert_eq!(checks(&without).len(), 8, "what was not done is not compared");
        for check in checks(&truth) {
            assert!(check.agrees(Some(check.truth)), "{check:?}");
            for wrong in [None, Some(0.0), Some(check.truth * 10.0), Some(f64::NAN)] {
                assert!(!check.agrees(wrong), "{check:?}: {wrong:?}");
            }
        }
    }
}
