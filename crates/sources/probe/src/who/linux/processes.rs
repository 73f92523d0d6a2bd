//! All processes, and the CPU time that they had.

use etwhy_knowledge::linux_process;
use std::collections::HashMap;

/// Kernel threads have this bit of `flags` (include/linux/sched.h, `PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Name of its program, at most 15 characters (`comm`).
    pub name: String,
    /// Who started it.
    pub parent: u32,
    /// CPU time, user and kernel, nanoseconds.
    pub cpu_ns: u64,
    /// Bytes that it had read from disks and written to them; 0 where this user may not know (`/proc/*/io`).
    pub disk_bytes: u64,
    /// When it began, ticks since the machine's start: tells a reused number.
    pub start: u64,
    /// Whether it is part of the kernel.
    pub kernel: bool,
}

/// All processes at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot(pub HashMap<u32, Process>);

impl Snapshot {
    /// Now.
    pub fn take() -> Snapshot {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let mut all = HashMap::new();
        for pid in numbers() {
            let stat = super::files::small(format!("/proc/{pid}/stat"));
            if let Some(mut process) = stat.and_then(|text| parse(&text, tick_ns)) {
                if !process.kernel {
                    process.disk_bytes =
                        super::files::small(format!("/proc/{pid}/io")).map_or(0, |text| disk(&text));
                }
                all.insert(pid, process);
            }
        }
        Snapshot(all)
    }

    /// Processes whose name is that of a security product.
    pub fn products(&self) -> impl Iterator<Item = (u32, String)> {
        let named =
            self.0.iter().filter(|(_, one)| !one.kernel).map(|(pid, one)| (*pid, name(*pid, &one.name)));
        named.filter(|(_, name)| linux_process(name).is_some())
    }

    /// CPU time of each process since `before`.
    pub fn since(&self, before: &Snapshot) -> HashMap<u32, u64> {
        self.more(before, |process| process.cpu_ns)
    }

    /// What each process has read from disks and written to them since `before`.
    pub fn disk_since(&self, before: &Snapshot) -> HashMap<u32, u64> {
        self.more(before, |process| process.disk_bytes)
    }

    fn more(&self, before: &Snapshot, of: fn(&Process) -> u64) -> HashMap<u32, u64> {
        let then = |pid: &u32, process: &Process| {
            before.0.get(pid).filter(|then| then.start == process.start).map_or(0, of)
        };
        self.0.iter().map(|(pid, process)| (*pid, of(process).saturating_sub(then(pid, process)))).collect()
    }

    /// Whether `pid` is `ancestor` or was started by it, however indirectly.
    pub fn descends(&self, pid: u32, ancestor: u32) -> bool {
        let mut at = pid;
        for _ in 0..64 {
            if at == ancestor {
                return true;
            }
            match self.0.get(&at) {
                Some(process) if process.parent != 0 => at = process.parent,
                _ => return false,
            }
        }
        false
    }
}

/// CPU time of a process.
pub fn cpu_ns(pid: u32) -> Option<u64> {
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Some(parse(&super::files::small(format!("/proc/{pid}/stat"))?, tick_ns)?.cpu_ns)
}

/// Numbers of all processes that this user may see.
pub fn numbers() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A line of `/proc/*/stat` (proc_pid_stat(5)); the name stands in parentheses and may hold any character.
pub fn parse(text: &str, tick_ns: u64) -> Option<Process> {
    let open = text.find('(')?;
    let close = text.rfind(')')?;
    let name = text.get(open + 1..close)?;
    let rest: Vec<&str> = text.get(close + 1..)?.split_whitespace().collect();
    // `rest` begins with field 3.
    let field = |number: usize| rest.get(number - 3)?.parse::<u64>().ok();
    let ticks = field(14)?.saturating_add(field(15)?);
    Some(Process {
        name: name.to_owned(),
        parent: u32::try_from(field(4)?).unwrap_or(0),
        cpu_ns: ticks.saturating_mul(tick_ns),
        disk_bytes: 0,
        start: field(22)?,
        kernel: field(9)? & KERNEL_THREAD != 0,
    })
}

/// Bytes of `/proc/*/io` (proc_pid_io(5)) that went from and to disks.
pub fn disk(text: &str) -> u64 {
    let number =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    number("read_bytes:").unwrap_or(0).saturating_add(number("write_bytes:").unwrap_or(0))
}

/// Time that a thread of this program has stood in the run queue (Documentation/scheduler/sched-stats.rst).
pub fn queue_ns(thread: i32) -> Option<u64> {
    super::files::small(format!("/proc/self/task/{thread}/schedstat"))?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Name of the program of a process: that of its first argument if it agrees with `comm`, which is cut at 15 characters.
pub fn name(pid: u32, comm: &str) -> String {
    let words = super::files::small(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = words.split('\0').next().unwrap_or_default();
    let base = first.rsplit('/').next().unwrap_or_default();
    if comm.len() == 15 && base.starts_with(comm) && base.len() <= 64 {
        base.to_owned()
    } else {
        comm.to_owned()
    }
}
