//! Processes: whether one lives, and what all of them have used.

use super::narrow;
use std::io;
use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemProcessInformation};
use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_INVALID_PARAMETER, STATUS_INFO_LENGTH_MISMATCH, STILL_ACTIVE,
};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION,
};

/// Whether there is a process of that number. One that may not be asked is taken for alive.
pub fn is_alive(process: u32) -> bool {
    // SAFETY: takes numbers only; null is checked below.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, process) };
    if handle.is_null() {
        // There is no such process; everything else means that there is one and that we may not look.
        return io::Error::last_os_error().raw_os_error() != Some(ERROR_INVALID_PARAMETER as i32);
    }
    let mut code = 0;
    // SAFETY: the handle is open, the target lives until after the call; the handle is closed once.
    let known = unsafe {
        let known = GetExitCodeProcess(handle, &mut code);
        CloseHandle(handle);
        known
    };
    known == 0 || code == STILL_ACTIVE as u32
}

/// A process, as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number; 0 is what stands for idle processors.
    pub id: u32,
    /// Number of the process that started it.
    pub parent: u32,
    /// File name: `MsMpEng.exe`; empty for the idle one.
    pub name: String,
    /// When it began, ticks of 100 ns since 1601: together with the number it names a process once and for all.
    pub created: u64,
    /// CPU time, user and kernel, nanoseconds.
    pub cpu_ns: u64,
}

/// The largest list that is taken: a thousand processes with ten thousand threads make one megabyte.
const MOST_BYTES: usize = 64 << 20;

/// All processes. Needs no rights: the kernel tells the times of protected processes too, which `OpenProcess` refuses.
///
/// # Errors
/// The system's, as the number of an NTSTATUS.
pub fn all() -> io::Result<Vec<Process>> {
    let mut room = 512 << 10;
    loop {
        // Elements of 8 bytes, so that the list is aligned.
        let mut buffer = vec![0_u64; room / 8];
        let size = u32::try_from(room).unwrap_or(u32::MAX);
        let mut used = 0;
        // SAFETY: the buffer has `size` bytes and lives until after the call.
        let status = unsafe {
            NtQuerySystemInformation(SystemProcessInformation, buffer.as_mut_ptr().cast(), size, &mut used)
        };
        if status == STATUS_INFO_LENGTH_MISMATCH && room < MOST_BYTES {
            room = room.saturating_mul(2).max(used as usize).next_multiple_of(8);
            continue;
        }
        if status < 0 {
            return Err(io::Error::other(format!("NtQuerySystemInformation: status {status:#010x}")));
        }
        let base = buffer.as_ptr() as u64;
        let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_le_bytes()).collect();
        let whole = bytes.get(..(used as usize).min(bytes.len())).unwrap_or(&bytes);
        // Wine 8 gives no length for some classes.
        return Ok(list(if used == 0 { &bytes } else { whole }, base));
    }
}

/// Entries of a list that stood at the address `base`. Offsets are those of `SYSTEM_PROCESS_INFORMATION` (winternl.h, whose
/// reserved fields hold the times: `CycleTime`, `CreateTime`, `UserTime`, `KernelTime`, as in ntexapi.h of the NT headers of
/// System Informer) for 64-bit programs.
fn list(bytes: &[u8], base: u64) -> Vec<Process> {
    let number = |at: usize, len: usize| -> u64 {
        let end = at.saturating_add(len);
        bytes.get(at..end).map_or(0, |b| b.iter().rev().fold(0, |sum, &byte| (sum << 8) | u64::from(byte)))
    };
    let mut processes = Vec::new();
    let mut at = 0_usize;
    // The smallest entry has 0x100 bytes; a list that goes round in circles ends at this many.
    for _ in 0..bytes.len() / 0x40 {
        if bytes.len().saturating_sub(at) < 0x60 {
            break;
        }
        let name_len = number(at + 0x38, 2) as usize;
        let name_at = usize::try_from(number(at + 0x40, 8).wrapping_sub(base)).unwrap_or(usize::MAX);
        let name = bytes.get(name_at..name_at.saturating_add(name_len)).unwrap_or(&[]);
        let units: Vec<u16> = name.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        processes.push(Process {
            id: number(at + 0x50, 4) as u32,
            parent: number(at + 0x58, 4) as u32,
            name: narrow(&units),
            created: number(at + 0x20, 8),
            cpu_ns: number(at + 0x28, 8).saturating_add(number(at + 0x30, 8)).saturating_mul(100),
        });
        let next = number(at, 4) as usize;
        if next == 0 {
            break;
        }
        at = at.saturating_add(next);
    }
    processes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn this_process_is_listed_with_its_time() {
        let us = std::process::id();
        let start = Instant::now();
        let find = || all().unwrap().into_iter().find(|process| process.id == us).unwrap();
        let before = find();
        while start.elapsed() < Duration::from_millis(300) {
            std::hint::spin_loop();
        }
        let after = find();
        let file = std::env::current_exe().unwrap();
        assert_eq!(after.name.to_lowercase(), file.file_name().unwrap().to_str().unwrap().to_lowercase());
        assert_eq!((before.created, before.parent), (after.created, after.parent));
        assert!(after.cpu_ns >= before.cpu_ns, "{before:?} {after:?}");
        assert!(after.created > 130_000_000_000_000_000, "{after:?}: before 2012");
    }

    #[test]
    fn the_living_are_told_from_the_dead() {
        assert!(is_alive(std::process::id()));
        let mut child = std::process::Command::new("cmd").args(["/c", "exit"]).spawn().unwrap();
        let id = child.id();
        child.wait().unwrap();
        drop(child);
        assert!(!is_alive(id));
        // Numbers are multiples of four.
        assert!(!is_alive(0xFFFF_FFF0));
    }

    #[test]
    fn damaged_lists_end() {
        assert!(list(&[], 0).is_empty());
        let mut circle = vec![0; 0x400];
        circle[0] = 0x10;
        assert!(list(&circle, 0).len() <= 0x40);
        circle[..4].fill(0xFF);
        assert_eq!(list(&circle, 0).len(), 1);
    }
}
