//! Reads of mapped files that the system cannot serve: zeros, and a note, instead of the end of the process.
//!
//! # Contract
//!
//! * Every map has a [`MapRange`] in a list that only grows. A place is free, or holds the addresses of one live map.
//! * The handler of `SIGBUS` does what may be done in a signal handler and nothing else: it reads atomics, asks the system
//!   for anonymous pages, which is one system call on memory of ours, and sets an atomic. It takes no lock and allocates
//!   nothing.
//! * It replaces pages of live maps only: who causes the signal holds a reference to the map, so that this cannot go
//!   before the handler returns. All other addresses are left to the handler that was there before (Rust's own, which
//!   knows overflows of stacks and ends the process).
//! * What it puts there reads as zeros; before, the bytes were what the file says. Both are `u8`.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

/// Bytes that are replaced at once: a file that lost gigabytes costs thousands of signals, not millions.
const PIECE: usize = 1 << 20;

/// Places are made this many at a time.
const BLOCK: usize = 128;

/// The addresses of a map.
struct MapRange {
    taken: AtomicBool,
    /// 0 while there is no map.
    start: AtomicUsize,
    end: AtomicUsize,
    /// Pages were replaced.
    hit: AtomicBool,
}

impl MapRange {
    const fn new() -> MapRange {
        MapRange {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            hit: AtomicBool::new(false),
        }
    }
}

struct Block {
    places: [MapRange; BLOCK],
    next: OnceLock<Box<Block>>,
}

impl Block {
    const fn new() -> Block {
        Block { places: [const { MapRange::new() }; BLOCK], next: OnceLock::new() }
    }
}

static FIRST: Block = Block::new();

/// A map's place in the list, for as long as the map lives.
#[derive(Debug)]
pub(super) struct Guard(&'static MapRange);

impl std::fmt::Debug for MapRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapRange").field("hit", &self.hit).finish_non_exhaustive()
    }
}

impl Guard {
    /// Watches over a map. The owner must drop the guard before the map.
    pub(super) fn over(map: &[u8]) -> Guard {
        static INSTALL: Once = Once::new();
        INSTALL.call_once(install);
        let mut block = &FIRST;
        loop {
            for place in &block.places {
                if place.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    let start = map.as_ptr().addr();
                    place.hit.store(false, Ordering::Relaxed);
                    place.end.store(start.saturating_add(map.len()), Ordering::Release);
                    place.start.store(start, Ordering::Release);
                    return Guard(place);
                }
            }
            block = block.next.get_or_init(|| Box::new(Block::new()));
        }
    }

    /// True if the system could not give a part of the file.
    pub(super) fn is_hit(&self) -> bool {
        self.0.hit.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
        self.0.end.store(0, Ordering::Release);
        self.0.taken.store(false, Ordering::Release);
    }
}

/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);

fn install() {
    PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
    // SAFETY: both structures are ours and live through the calls; all zeros is a value of `sigaction`. The handler has
    // the type that `SA_SIGINFO` asks for and keeps the contract of this module.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) != 0
            || BEFORE.set(before).is_err()
        {
            return;
        }
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = handler as *const () as libc::sighandler_t;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&raw mut ours.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const ours, std::ptr::null_mut());
    }
}

extern "C" fn handler(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with `SA_SIGINFO` the system hands over a structure that lives until the handler returns.
    let address = unsafe { (*info).si_addr() }.addr();
    if replace(address) {
        return;
    }
    // SAFETY: `BEFORE` holds what the system said. A function there has the type that its flags say; to return without
    // a handler would repeat the access for ever, so the default takes over, and ends the process at the next try.
    unsafe {
        match BEFORE.get() {
            Some(before)
                if before.sa_sigaction != libc::SIG_DFL
                    && before.sa_sigaction != libc::SIG_IGN
                    && before.sa_flags & libc::SA_SIGINFO != 0 =>
            {
                type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
                let call: Handler = std::mem::transmute::<libc::sighandler_t, Handler>(before.sa_sigaction);
                call(signal, info, context);
            }
            _ => {
                libc::signal(libc::SIGBUS, libc::SIG_DFL);
            }
        }
    }
}

/// Puts zeros where the file has nothing. False if the address is in no map of ours, or the system refuses.
fn replace(address: usize) -> bool {
    let mut block = Some(&FIRST);
    while let Some(here) = block {
        for place in &here.places {
            let start = place.start.load(Ordering::Acquire);
            let end = place.end.load(Ordering::Acquire);
            let inside = start != 0 && start <= address && address < end;
            if !inside || place.start.load(Ordering::Acquire) != start {
                continue;
            }
            let from = address & !(PAGE.load(Ordering::Relaxed).wrapping_sub(1));
            // Maps of files end with whole pages.
            let len = PIECE.min(end.saturating_sub(from));
            let pages = std::ptr::without_provenance_mut(from);
            // SAFETY: these are pages of a live map, see the contract of this module; they stay readable.
            let done = unsafe {
                rustix::mm::mmap_anonymous(
                    pages,
                    len,
                    rustix::mm::ProtFlags::READ,
                    rustix::mm::MapFlags::PRIVATE | rustix::mm::MapFlags::FIXED,
                )
            };
            if done.is_ok() {
                place.hit.store(true, Ordering::Relaxed);
            }
            return done.is_ok();
        }
        block = here.next.get().map(|next| &**next);
    }
    false
}
