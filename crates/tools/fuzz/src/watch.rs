//! What a process uses, from `/proc` (other systems have no answer).

/// Peak resident memory of a process in bytes.
pub fn peak_memory(pid: Option<u32>) -> Option<u64> {
    status(pid, "VmHWM:")
}

/// Resident memory of a process in bytes.
pub fn memory(pid: Option<u32>) -> Option<u64> {
    status(pid, "VmRSS:")
}

fn status(pid: Option<u32>, key: &str) -> Option<u64> {
    let path = pid.map_or_else(|| "/proc/self/status".to_owned(), |pid| format!("/proc/{pid}/status"));
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(key))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Forgets the peak so far, so that it is measured anew.
pub fn reset_peak() {
    // 5: reset the peak resident set size (proc(5)).
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Processor time of a process so far, in hundredths of a second.
pub fn cpu_time(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in brackets and may hold anything; fields 14 and 15 are user and system.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// The most that a run over `bytes` of input may take: what the program needs for itself, and a factor.
/// Columns, stacks and texts of dense traces take a multiple of their bytes on disk, and costs are summed by process
/// and function.
pub fn memory_limit(bytes: usize) -> u64 {
    (160 << 20) + 24 * bytes as u64
}
