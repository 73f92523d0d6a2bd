//! Calls of Windows that probes measure, or measure with. Other systems have them in `std` and `rustix`.
//!
//! # Contract
//!
//! Each function hands Windows numbers and room of its own, of the size that is told with it, and checks the length that
//! comes back. What changes the machine ([`TimerPeriod`]) is undone by its owner's end, and by Windows with the process.

use std::io;
use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, NtQueryTimerResolution, SystemInterruptInformation,
    SystemProcessorPerformanceInformation,
};
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Media::{timeBeginPeriod, timeEndPeriod};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetPriorityClass, GetProcessTimes, Sleep};

/// `Sleep`: gives the processor away for at least so many milliseconds less one tick; with 0 only to a thread that is ready.
pub fn sleep_ms(ms: u32) {
    // SAFETY: it takes a number.
    unsafe { Sleep(ms) };
}

/// A system call that does next to nothing: `GetPriorityClass` of this process, which asks `NtQueryInformationProcess` for two
/// bytes. True if it succeeded.
pub fn null_call() -> bool {
    // SAFETY: the handle of this process needs no closing and is always valid.
    unsafe { GetPriorityClass(GetCurrentProcess()) != 0 }
}

/// CPU time of this process, user and kernel, nanoseconds. It is counted in ticks of the clock, 15.6 ms as a rule.
///
/// # Errors
/// Windows'.
pub fn process_cpu_ns() -> io::Result<u64> {
    let zero = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut made, mut ended, mut kernel, mut user) = (zero, zero, zero, zero);
    // SAFETY: four structures of the size that the function wants, which it fills.
    let done = unsafe {
        GetProcessTimes(GetCurrentProcess(), &raw mut made, &raw mut ended, &raw mut kernel, &raw mut user)
    };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    let ticks = |t: FILETIME| u64::from(t.dwHighDateTime) << 32 | u64::from(t.dwLowDateTime);
    Ok(ticks(kernel).saturating_add(ticks(user)).saturating_mul(100))
}

/// Distance of the ticks of the clock, in units of 100 ns: the longest and the shortest that the machine can, and the one now.
///
/// # Errors
/// Windows'.
pub fn timer_resolution() -> io::Result<(u32, u32, u32)> {
    let (mut longest, mut shortest, mut now) = (0, 0, 0);
    // SAFETY: three numbers, which it fills.
    let status = unsafe { NtQueryTimerResolution(&raw mut longest, &raw mut shortest, &raw mut now) };
    check(status)?;
    Ok((longest, shortest, now))
}

/// A wish for shorter ticks, until its owner goes: `timeBeginPeriod`.
#[derive(Debug)]
pub struct TimerPeriod(u32);

impl TimerPeriod {
    /// Wishes ticks of `ms` milliseconds.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the machine cannot.
    pub fn begin(ms: u32) -> io::Result<TimerPeriod> {
        // SAFETY: it takes a number. 0 is TIMERR_NOERROR.
        if unsafe { timeBeginPeriod(ms) } == 0 {
            Ok(TimerPeriod(ms))
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }
}

impl Drop for TimerPeriod {
    fn drop(&mut self) {
        // SAFETY: it takes the number of a `timeBeginPeriod` that succeeded.
        unsafe { timeEndPeriod(self.0) };
    }
}

/// What a processor did since the machine started; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTimes {
    /// Nothing.
    pub idle_ns: u64,
    /// In the kernel, idle, DPCs and interrupts among it.
    pub kernel_ns: u64,
    /// In programs.
    pub user_ns: u64,
    /// In DPCs.
    pub dpc_ns: u64,
    /// In interrupt routines.
    pub interrupt_ns: u64,
    /// Interrupts, modulo 2³².
    pub interrupts: u32,
    /// DPCs, modulo 2³².
    pub dpcs: u32,
}

/// `SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION` (winternl.h has times 4 and 5 and the last number as reserved; phnt's ntexapi.h
/// names them).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Performance {
    idle: i64,
    kernel: i64,
    user: i64,
    dpc: i64,
    interrupt: i64,
    interrupts: u32,
    spare: u32,
}

/// `SYSTEM_INTERRUPT_INFORMATION` (phnt's ntexapi.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Interrupts {
    switches: u32,
    dpcs: u32,
    dpc_rate: u32,
    time_increment: u32,
    dpc_bypass: u32,
    apc_bypass: u32,
}

/// Processors of a group of Windows: at most 64; the queries tell those of the caller's group.
const MOST: usize = 64;

/// What each processor of this group did.
///
/// # Errors
/// Windows'.
pub fn processor_times() -> io::Result<Vec<ProcessorTimes>> {
    let mut times = [Performance::default(); MOST];
    let mut counts = [Interrupts::default(); MOST];
    let known = query(SystemProcessorPerformanceInformation, &mut times)?;
    // Counts of DPCs are an extra: without them the times still stand.
    let counted = query(SystemInterruptInformation, &mut counts).unwrap_or(0);
    let ns = |ticks: i64| u64::try_from(ticks).unwrap_or(0).saturating_mul(100);
    let all = times.iter().take(known).enumerate().map(|(n, t)| ProcessorTimes {
        idle_ns: ns(t.idle),
        kernel_ns: ns(t.kernel),
        user_ns: ns(t.user),
        dpc_ns: ns(t.dpc),
        interrupt_ns: ns(t.interrupt),
        interrupts: t.interrupts,
        dpcs: counts.get(n).filter(|_| n < counted).map_or(0, |c| c.dpcs),
    });
    Ok(all.collect())
}

/// Fills rows with what Windows says of a class; how many it filled.
fn query<T: Plain>(class: i32, rows: &mut [T]) -> io::Result<usize> {
    let bytes = u32::try_from(size_of_val(rows)).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut filled = 0;
    // SAFETY: the room is ours, of the size that is told, and its type is numbers only (`Plain`).
    let status = unsafe { NtQuerySystemInformation(class, rows.as_mut_ptr().cast(), bytes, &raw mut filled) };
    check(status)?;
    Ok((filled as usize / size_of::<T>()).min(rows.len()))
}

/// Types of which every bit pattern is a value.
trait Plain: Copy {}
impl Plain for Performance {}
impl Plain for Interrupts {}

fn check(status: i32) -> io::Result<()> {
    if status >= 0 { Ok(()) } else { Err(io::Error::other(format!("NTSTATUS {status:#010x}"))) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_layouts_are_those_of_windows() {
        assert_eq!((size_of::<Performance>(), size_of::<Interrupts>()), (48, 24));
        let times = processor_times().unwrap();
        assert!(!times.is_empty() && times.iter().any(|t| t.user_ns > 0 || t.kernel_ns > 0));
    }

    #[test]
    fn calls_do_what_they_say() {
        assert!(null_call());
        sleep_ms(0);
        assert!(process_cpu_ns().is_ok());
        let (longest, shortest, now) = timer_resolution().unwrap();
        assert!(longest >= now && now >= shortest && shortest > 0, "{longest} {now} {shortest}");
        drop(TimerPeriod::begin(1).unwrap());
    }
}
