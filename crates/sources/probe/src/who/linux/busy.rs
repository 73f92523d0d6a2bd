//! Processes that were busy meanwhile: known security products, and those that had what the probe waited for.
//!
//! That somebody works is no evidence: on a machine that builds, compilers would be accused of everything. So a process of which
//! nothing else is known is named only if the probe was short of what that process used: the probe stood ready without a processor
//! for a good part of the time, and longer than it waited for anything else, or it waited for a disk while that process read or wrote much.

use super::waits::{FEW_LOOKS, For};
use super::watched::Watched;
use crate::who::suspect::{LIKELY, POSSIBLE, PROVEN, Suspect};
use crate::who::timeline::Seen;
use crate::words::time;
use etwhy_knowledge::linux_process;
use std::collections::HashMap;

/// Part of the watched time below which a process was not busy.
const BUSY: f64 = 0.05;

/// The same of a known security product that is no listener.
const BUSY_PRODUCT: f64 = 0.01;

/// Busy processes of which nothing else is known: so many are told.
const MOST_BUSY: usize = 3;

/// Part of the watched time for which the probe must have waited for a disk, before others who had it are named: below it they cannot have
/// cost more than that.
const SHORT: f64 = 0.05;

/// The same of standing ready without a processor. On a busy machine everybody does, and nobody in particular is the reason.
const SHORT_OF_PROCESSOR: f64 = 0.25;

/// Bytes per second that keep a disk busy enough for others to notice: some hundred small accesses of a disk that turns.
const MUCH_DISK: f64 = 1e6;

/// Processors that others must have had, before it is noted that they were busy.
const WORTH_A_NOTE: f64 = 0.5;

/// Processes of one name: a build has dozens of compilers.
struct Group {
    name: String,
    cpu_ns: u64,
    disk_bytes: u64,
    /// Of each its CPU time.
    processes: Vec<(u32, u64)>,
}

/// What the probe was short of.
struct Short {
    /// For how long it was ready without a processor, if that was long and what it waited for most.
    processor_ns: Option<f64>,
    /// For how long it was seen waiting for a disk, if that was long.
    disk_ns: Option<f64>,
    all_ns: f64,
}

impl Short {
    fn of(watched: &Watched) -> Short {
        let all_ns = (watched.took.as_nanos() as f64).max(1.0);
        let disk =
            watched.waits.of_probe.iter().filter(|(function, _)| For::from_function(function) == For::Disk);
        let disk_ns = disk.map(|(_, wait)| wait.ns).fold(0, u64::saturating_add) as f64;
        let waited = watched.waits.of_probe.values().map(|wait| wait.ns).fold(0, u64::saturating_add) as f64;
        let main = |ns: &f64| *ns >= SHORT_OF_PROCESSOR * all_ns && *ns >= waited;
        Short {
            processor_ns: watched.queue_ns.map(|ns| ns as f64).filter(main),
            disk_ns: Some(disk_ns).filter(|ns| *ns >= SHORT * all_ns),
            all_ns,
        }
    }

    /// Why a group could matter that had this part of a processor; nothing if it could not.
    fn reasons(&self, group: &Group, was_busy: bool) -> Vec<String> {
        let percent = |ns: f64| ns / self.all_ns * 100.0;
        let mut all = Vec::new();
        if let Some(ns) = self.processor_ns.filter(|_| was_busy) {
            all.push(format!(
                "the probe was ready and had no processor for {}, {:.0} % of the time (/proc/self/task/*/schedstat)",
                time(ns),
                percent(ns)
            ));
        }
        if let Some(ns) = self.disk_ns.filter(|_| group.disk_bytes as f64 >= MUCH_DISK * self.all_ns / 1e9) {
            all.push(format!(
                "it read and wrote {} of disks (/proc/*/io) while the probe waited for a disk for {}, {:.0} % of the time",
                etwhy_base::units::bytes(i64::try_from(group.disk_bytes).unwrap_or(i64::MAX)),
                time(ns),
                percent(ns)
            ));
        }
        all
    }
}

/// Adds to those who were seen.
pub fn judge(watched: &Watched, cpu: &HashMap<u32, u64>, seen: &mut Seen) {
    let short = Short::of(watched);
    let wait = watched.waits.for_(For::Listener);
    let blocked = if wait.looks >= FEW_LOOKS { wait.ns as f64 } else { 0.0 };
    let (mut unknown, mut left_out_ns) = (0, 0_u64);
    for group in groups(watched, cpu, seen) {
        let fact = linux_process(&group.name);
        let share = group.cpu_ns as f64 / short.all_ns;
        // Beside somebody who is proven, what merely ran counts only if it did a good part of the work.
        let limit = if fact.is_some() { BUSY_PRODUCT } else { BUSY.max(blocked / short.all_ns / 4.0) };
        let reasons = short.reasons(&group, share >= limit);
        let is_named = match fact {
            Some(_) => share >= limit,
            None => !reasons.is_empty() && unknown < MOST_BUSY,
        };
        if !is_named {
            left_out_ns = left_out_ns.saturating_add(group.cpu_ns);
            continue;
        }
        let count = group.processes.len();
        let processes = if count > 1 { format!(" in {count} processes") } else { String::new() };
        let mut evidence = Vec::new();
        if group.cpu_ns > 0 {
            evidence.push(format!(
                "it had {} of CPU time meanwhile{processes}, {:.0} % of one processor",
                time(group.cpu_ns as f64),
                share * 100.0
            ));
        }
        evidence.extend(reasons);
        // A scanner that works while its listener makes us wait: of the same vendor, or for a good part of the wait. On a busy
        // machine most of the wait is the scanner's own wait for a processor.
        let of_vendor = |vendor: &str| {
            let proven = seen.suspects.iter().filter(|suspect| suspect.confidence == PROVEN);
            proven.filter_map(|suspect| linux_process(&suspect.name)).any(|fact| fact.vendor == vendor)
        };
        let works_for = blocked > 0.0
            && fact.is_some_and(|fact| group.cpu_ns as f64 >= blocked / 10.0 || of_vendor(fact.vendor));
        if let Some(fact) = fact {
            evidence
                .push(format!("its name is that of a security product: {} {}", fact.vendor, fact.product));
        }
        unknown += usize::from(fact.is_none());
        seen.suspects.push(Suspect {
            name: group.name,
            process: group.processes.iter().max_by_key(|(_, ns)| *ns).map(|(pid, _)| *pid),
            kind: "process".to_owned(),
            evidence,
            cpu_ns: Some(group.cpu_ns).filter(|ns| *ns > 0),
            blocked_ns: None,
            confidence: if works_for { LIKELY } else { POSSIBLE }.to_owned(),
        });
    }
    let processors = left_out_ns as f64 / short.all_ns;
    if processors >= WORTH_A_NOTE {
        let queue = watched.queue_ns.map_or(0.0, |ns| ns as f64);
        seen.notes.push(if queue >= SHORT * short.all_ns {
            format!(
                "other programs used {processors:.1} processors meanwhile, and the probe was ready without one for {}, {:.0} % of the time: the \
                 machine was busy, which is held against nobody",
                time(queue),
                queue / short.all_ns * 100.0
            )
        } else {
            format!(
                "other programs used {processors:.1} processors meanwhile; nothing says that the probe waited for them, yet caches, memory \
                 and clock rate are shared"
            )
        });
    }
}

/// Processes that did something and are not suspects yet, by name, the busiest first. What the probe starts is its own work,
/// unless it is a known product.
fn groups(watched: &Watched, cpu: &HashMap<u32, u64>, seen: &Seen) -> Vec<Group> {
    let own = std::process::id();
    let disk = watched.after.disk_since(&watched.before);
    let known: Vec<u32> = seen.suspects.iter().filter_map(|suspect| suspect.process).collect();
    let mut by_name: HashMap<String, Group> = HashMap::new();
    for (pid, process) in
        watched.after.0.iter().filter(|(pid, process)| !known.contains(pid) && !process.kernel)
    {
        let of = |all: &HashMap<u32, u64>| all.get(pid).copied().unwrap_or(0);
        let (cpu_ns, disk_bytes) = (of(cpu), of(&disk));
        if cpu_ns == 0 && disk_bytes == 0 {
            continue;
        }
        let name = super::processes::name(*pid, &process.name);
        if linux_process(&name).is_none() && watched.after.descends(*pid, own) {
            continue;
        }
        let group = by_name.entry(name.clone()).or_insert(Group {
            name,
            cpu_ns: 0,
            disk_bytes: 0,
            processes: Vec::new(),
        });
        group.cpu_ns = group.cpu_ns.saturating_add(cpu_ns);
        group.disk_bytes = group.disk_bytes.saturating_add(disk_bytes);
        group.processes.push((*pid, cpu_ns));
    }
    let mut all: Vec<Group> = by_name.into_values().collect();
    all.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then_with(|| a.name.cmp(&b.name)));
    all
}

#[cfg(test)]
mod tests {
    use super::super::processes::{Process, Snapshot, disk};
    use super::super::waits::Wait;
    use super::*;
    use std::time::Duration;

    /// Ten seconds in which `rustc`, in two processes, used 1.6 processors, `backup` moved 500 MB, and a product worked a little.
    fn watched(queue_ms: u64, disk_ms: u64) -> Watched {
        let process = |name: &str, cpu_ms: u64, disk_bytes: u64| Process {
            name: name.into(),
            cpu_ns: cpu_ms * 1_000_000,
            disk_bytes,
            ..Process::default()
        };
        // Numbers that no process can have (`kernel.pid_max` is at most 2 to the 22nd).
        let after = [
            (5_000_001, process("rustc", 9_000, 10)),
            (5_000_002, process("rustc", 7_000, 10)),
            (5_000_003, process("backup", 100, 500_000_000)),
            (5_000_004, process("clamd", 200, 0)),
            (5_000_005, process("idle", 0, 0)),
        ];
        let mut watched = Watched {
            took: Duration::from_secs(10),
            after: Snapshot(after.into()),
            queue_ns: Some(queue_ms * 1_000_000),
            ..Watched::default()
        };
        let wait = Wait { looks: 10, ns: disk_ms * 1_000_000, stack: Vec::new() };
        watched.waits.of_probe.insert("folio_wait_bit_common".into(), wait);
        watched
    }

    fn judged(watched: &Watched) -> (Vec<(String, String)>, Seen) {
        let mut seen = Seen::default();
        judge(watched, &watched.after.since(&watched.before), &mut seen);
        (seen.suspects.iter().map(|one| (one.name.clone(), one.evidence.join("; "))).collect(), seen)
    }

    #[test]
    fn who_merely_worked_is_not_named_and_products_are() {
        // 4 % without a processor and 4 % of waiting for a disk.
        let (named, seen) = judged(&watched(400, 400));
        let [(name, evidence)] = named.as_slice() else { panic!("{named:?}") };
        assert!(name == "clamd" && evidence.contains("its name is that of a security product"), "{named:?}");
        assert_eq!(seen.suspects[0].confidence, POSSIBLE);
        assert!(
            seen.notes[0].starts_with("other programs used 1.6 processors meanwhile"),
            "{:?}",
            seen.notes
        );
    }

    #[test]
    fn a_single_look_accuses_no_product() {
        for (looks, confidence) in [(1, POSSIBLE), (FEW_LOOKS, LIKELY)] {
            let mut watched = watched(0, 0);
            let wait = Wait { looks, ns: 10_000_000 * looks, stack: Vec::new() };
            watched.waits.by_function.insert("fanotify_handle_event".into(), wait);
            let (_, seen) = judged(&watched);
            let clamd = seen.suspects.iter().find(|one| one.name == "clamd").unwrap();
            assert_eq!(clamd.confidence, confidence, "{looks} looks: {clamd:?}");
        }
    }

    #[test]
    fn who_had_what_the_probe_waited_for_is_named() {
        // 20 % without a processor, and 30 % of which more was spent on a disk's answer: that is why, not the compilers.
        for (queue, disk) in [(2_000, 0), (3_000, 4_000)] {
            let (named, seen) = judged(&watched(queue, disk));
            assert!(named.iter().all(|(name, _)| name != "rustc"), "{named:?}");
            assert!(seen.notes.iter().any(|note| note.contains("held against nobody")), "{:?}", seen.notes);
        }
        let (named, seen) = judged(&watched(3_000, 0));
        assert_eq!(named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["rustc", "clamd"]);
        assert!(named[0].1.contains("16 s of CPU time meanwhile in 2 processes, 160 %"), "{named:?}");
        assert!(named[0].1.contains("had no processor for 3 s, 30 % of the time"), "{named:?}");
        assert!(seen.notes.is_empty(), "{:?}", seen.notes);
        let (named, _) = judged(&watched(0, 2_000));
        assert_eq!(named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["clamd", "backup"]);
        assert!(named[1].1.contains("waited for a disk for 2 s, 20 % of the time"), "{named:?}");
        assert!(named[1].1.contains("read and wrote 477 MiB"), "{named:?}");
    }

    #[test]
    fn bytes_of_disks_are_not_those_of_caches() {
        let text = "rchar: 4292\nwchar: 7\nsyscr: 13\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 99\n";
        assert_eq!(disk(text), 4608);
        assert_eq!(disk("read_bytes: x\n"), 0);
    }
}
