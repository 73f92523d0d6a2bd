//! What a process uses.

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time.
    pub cpu_ns: u64,
    /// Memory that is its own, without files that it maps.
    pub memory_bytes: u64,
}

/// What another process uses; `None` where the system does not tell (others than Linux) or it is gone.
pub fn of_process(pid: u32) -> Option<Usage> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    Some(Usage { cpu_ns: cpu_ns(&stat, ticks())?, memory_bytes: etwhy_os::held_in_status(&status) })
}

/// Memory of this machine in bytes; `None` where the system does not tell (others than Linux).
pub fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(unix)]
fn ticks() -> u64 {
    rustix::param::clock_ticks_per_second()
}

#[cfg(not(unix))]
fn ticks() -> u64 {
    100
}

/// User and kernel time of `/proc/PID/stat`: fields 14 and 15, counted behind the name, which may hold anything.
fn cpu_ns(stat: &str, ticks: u64) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let time = |n: usize| fields.get(n)?.parse::<u64>().ok();
    let sum = time(11)?.saturating_add(time(12)?);
    Some(sum.saturating_mul(1_000_000_000 / ticks.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_read() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 9 0 0 0 250 50 0 0 20 0 1 0 5 6 7";
        assert_eq!(cpu_ns(stat, 100), Some(3_000_000_000));
        assert_eq!(cpu_ns("7 (a", 100), None);
        if cfg!(target_os = "linux") {
            assert!(of_process(std::process::id()).is_some_and(|usage| usage.memory_bytes > 0));
        }
    }
}
