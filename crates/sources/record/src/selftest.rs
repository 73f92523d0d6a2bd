//! What `etwhy record selftest` does to be recorded, and what a trace of it must show.
//!
//! Every figure is one that the program itself knows: how often it did what, and what Windows charged it with. Nothing is left
//! behind.

use etwhy_os::memory::{Access, Placement, Region};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
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
}

impl Amount {
    /// About three seconds.
    pub const USUAL: Amount =
        Amount { spin_ms: 1000, waits: 100, opens: 500, registry_reads: 1000, allocations: 200 };
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What a trace of the work must show.
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
    vec![
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
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_done_and_nothing_is_left() {
        let folder = std::env::temp_dir().join(format!("etwhy-record-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let amount = Amount { spin_ms: 20, waits: 3, opens: 5, registry_reads: 7, allocations: 2 };
        let truth = perform(&folder, amount).unwrap();
        assert!(truth.waited_ns >= 15_000_000 && truth.opens == 5, "{truth:?}");
        assert!(cfg!(windows) || truth.cpu_ns >= 20_000_000, "{truth:?}");
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
        };
        for check in checks(&truth) {
            assert!(check.agrees(Some(check.truth)), "{check:?}");
            for wrong in [None, Some(0.0), Some(check.truth * 10.0), Some(f64::NAN)] {
                assert!(!check.agrees(wrong), "{check:?}: {wrong:?}");
            }
        }
    }
}
