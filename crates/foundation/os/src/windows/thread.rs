//! What the calling thread has used.

use super::filetime_ns;
use std::io;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{GetCurrentThread, GetThreadTimes};
use windows_sys::Win32::System::WindowsProgramming::QueryThreadCycleTime;

/// CPU time of the calling thread: user and kernel, nanoseconds. Windows counts it in ticks of its clock (15.6 ms as a
/// rule), so a short piece of work has none.
///
/// # Errors
/// The system's.
pub fn cpu_ns() -> io::Result<(u64, u64)> {
    let zero = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut created, mut exited, mut kernel, mut user) = (zero, zero, zero, zero);
    // SAFETY: the pseudo handle of the calling thread is always valid; the four targets live until after the call.
    let done =
        unsafe { GetThreadTimes(GetCurrentThread(), &mut created, &mut exited, &mut kernel, &mut user) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((filetime_ns(user), filetime_ns(kernel)))
}

/// Processor cycles of the calling thread. They have no fixed length, but are counted at every switch.
///
/// # Errors
/// The system's.
pub fn cycles() -> io::Result<u64> {
    let mut cycles = 0;
    // SAFETY: as above, with one target.
    let done = unsafe { QueryThreadCycleTime(GetCurrentThread(), &mut cycles) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(cycles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn work_shows() {
        let (user, kernel) = cpu_ns().unwrap();
        let start = Instant::now();
        let mut n = 0_u64;
        while start.elapsed() < Duration::from_millis(300) {
            n = std::hint::black_box(n + 1);
        }
        let (user_after, kernel_after) = cpu_ns().unwrap();
        let spent = user_after + kernel_after - user - kernel;
        // At least a tick, at most what passed and a tick.
        assert!((15_000_000..=400_000_000).contains(&spent), "{spent} ns after {n} steps");
    }
}
