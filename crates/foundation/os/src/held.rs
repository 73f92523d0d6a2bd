//! What a process holds in memory.

/// Bytes of memory that this process has for itself, resident or in swap, without files that it maps; `None` where the system
/// is not asked (macOS): `RssAnon`, `RssShmem` and `VmSwap` of `/proc/self/status` (proc(5)); on Windows `PrivateUsage` of
/// `PROCESS_MEMORY_COUNTERS_EX`.
pub fn held_by_process() -> Option<u64> {
    system::held_by_process()
}

/// The same from the text of `/proc/PID/status`; 0 if nothing is known.
pub fn held_in_status(status: &str) -> u64 {
    let of = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let kilobytes = ["RssAnon:", "RssShmem:", "VmSwap:"].iter().filter_map(|key| of(key));
    kilobytes.fold(0, u64::saturating_add).saturating_mul(1024)
}

#[cfg(not(windows))]
mod system {
    pub fn held_by_process() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        Some(super::held_in_status(&status)).filter(|&bytes| bytes > 0)
    }
}

#[cfg(windows)]
mod system {
    use windows_sys::Win32::System::ProcessStatus::{
        K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS, PROCESS_MEMORY_COUNTERS_EX,
    };
    use windows_sys::Win32::System::Threading::GetCurrentProcess;

    pub fn held_by_process() -> Option<u64> {
        let size = u32::try_from(size_of::<PROCESS_MEMORY_COUNTERS_EX>()).ok()?;
        let mut counters = PROCESS_MEMORY_COUNTERS_EX { cb: size, ..Default::default() };
        let place = (&raw mut counters).cast::<PROCESS_MEMORY_COUNTERS>();
        // SAFETY: `place` is a structure of `size` bytes that lives until the call ends; the handle is the pseudo handle of this
        // process, which is always valid and never closed.
        let done = unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), place, size) };
        // Both are the commit charge; Windows before 8 knew only the one, and Wine knows only the other.
        (done != 0)
            .then(|| counters.PrivateUsage.max(counters.PagefileUsage) as u64)
            .filter(|&bytes| bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_allocated_is_held() {
        assert_eq!(
            held_in_status("VmHWM: 900 kB\nRssAnon:\t 12 kB\nRssFile: 99 kB\nVmSwap: 4 kB\n"),
            16 * 1024
        );
        assert_eq!(held_in_status("RssAnon: x"), 0);
        let before = held_by_process();
        if cfg!(not(any(target_os = "linux", windows))) {
            assert_eq!(before, None);
            return;
        }
        let before = before.unwrap();
        let more = std::hint::black_box(vec![1u8; 200 << 20]);
        let after = held_by_process().unwrap();
        assert!(after > before + (100 << 20), "{before} {after} {}", more.len());
    }
}
