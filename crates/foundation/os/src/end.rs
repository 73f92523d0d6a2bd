//! What is done before the system ends the process: Ctrl-C, `SIGTERM`, `SIGHUP`; on Windows closed windows and logging off too.
//!
//! # Contract
//!
//! * The handler of signals writes one byte into a pipe and does nothing else. A thread reads it and does the work, so that
//!   the work may lock, allocate and wait.
//! * Afterwards the signal does what it would have done: who waits for the process sees how it ended.
//! * A signal that is ignored (`nohup`, jobs in the background) or has a handler already is left alone.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Somebody else takes Ctrl-C.
static LEAVE_INTERRUPTS: AtomicBool = AtomicBool::new(false);

/// Ctrl-C is left to another handler from now on.
pub fn leave_interrupts() {
    LEAVE_INTERRUPTS.store(true, Ordering::Relaxed);
}

/// Has `work` done before the process is ended from outside. To be called once.
///
/// # Errors
/// The system's: no pipe, no thread.
pub fn at_end(work: fn()) -> io::Result<()> {
    system::at_end(work)
}

#[cfg(unix)]
mod system {
    use super::{LEAVE_INTERRUPTS, Ordering};
    use std::ffi::c_int;
    use std::io;
    use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
    use std::sync::atomic::AtomicI32;

    const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

    /// The end of the pipe that the handler writes to. It is never closed.
    static PIPE: AtomicI32 = AtomicI32::new(-1);

    pub fn at_end(work: fn()) -> io::Result<()> {
        let (read, write) = io::pipe()?;
        let (read, write) = (OwnedFd::from(read), OwnedFd::from(write));
        PIPE.store(write.into_raw_fd(), Ordering::Release);
        std::thread::Builder::new().name("end".to_owned()).spawn(move || wait(&read, work))?;
        for signal in SIGNALS {
            take(signal);
        }
        Ok(())
    }

    /// Puts our handler where the system's default is.
    fn take(signal: c_int) {
        // SAFETY: the structures are ours and live through the calls; all zeros is a value of `sigaction`. The handler
        // keeps the contract of this module.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut before) != 0
                || before.sa_sigaction != libc::SIG_DFL
            {
                return;
            }
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = handler as *const () as libc::sighandler_t;
            ours.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut ours.sa_mask);
            libc::sigaction(signal, &raw const ours, std::ptr::null_mut());
        }
    }

    extern "C" fn handler(signal: c_int) {
        // All numbers of `SIGNALS` are below 16.
        let byte = signal as u8;
        // SAFETY: one byte of ours goes into a pipe that stays open. `write` may be called here; what it leaves in
        // `errno` is put back, because the interrupted code may be about to read it.
        unsafe {
            let errno = errno();
            let before = *errno;
            libc::write(PIPE.load(Ordering::Acquire), (&raw const byte).cast(), 1);
            *errno = before;
        }
    }

    /// Where `errno` of this thread is.
    unsafe fn errno() -> *mut c_int {
        #[cfg(target_os = "linux")]
        // SAFETY: it gives a pointer that is valid as long as the thread lives.
        unsafe {
            libc::__errno_location()
        }
        #[cfg(not(target_os = "linux"))]
        // SAFETY: as above.
        unsafe {
            libc::__error()
        }
    }

    fn wait(read: &OwnedFd, work: fn()) {
        loop {
            let mut byte = 0u8;
            // SAFETY: room for the one byte that is asked for.
            let n = unsafe { libc::read(read.as_raw_fd(), (&raw mut byte).cast(), 1) };
            if n == 0 || (n < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted) {
                return;
            }
            let signal = c_int::from(byte);
            if n < 0 || (signal == libc::SIGINT && LEAVE_INTERRUPTS.load(Ordering::Relaxed)) {
                continue;
            }
            work();
            // SAFETY: numbers only. The default of all of them ends the process.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::kill(libc::getpid(), signal);
            }
        }
    }
}

#[cfg(windows)]
mod system {
    use super::{LEAVE_INTERRUPTS, Ordering};
    use std::io;
    use std::sync::OnceLock;
    use windows_sys::Win32::System::Console::{CTRL_C_EVENT, SetConsoleCtrlHandler};

    static WORK: OnceLock<fn()> = OnceLock::new();

    pub fn at_end(work: fn()) -> io::Result<()> {
        if WORK.set(work).is_err() {
            return Ok(());
        }
        // SAFETY: the function has the type that is asked for and stays.
        match unsafe { SetConsoleCtrlHandler(Some(handler), 1) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Called by Windows on a thread of its own. 0: the next handler, at last Windows' own, which ends the process.
    unsafe extern "system" fn handler(event: u32) -> i32 {
        let left = event == CTRL_C_EVENT && LEAVE_INTERRUPTS.load(Ordering::Relaxed);
        if let (false, Some(work)) = (left, WORK.get()) {
            work();
        }
        0
    }
}
