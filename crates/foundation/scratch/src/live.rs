//! The folders of this process that live, and what happens to them when it is told to end.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Folders by number. While somebody holds it, none comes or goes, and the process does not end by a signal.
static LIVE: Mutex<Live> = Mutex::new(Live { folders: BTreeMap::new(), next: 0 });

struct Live {
    folders: BTreeMap<u64, PathBuf>,
    next: u64,
}

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all folders when the process is told to end. It ends as it would have.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // Without it folders stay until the next run.
        let _ = etwhy_os::end::at_end(|| {
            let live = live();
            for folder in live.folders.values() {
                // Whoever is in the way cannot be determined any more; the next run tries again.
                let _ = crate::mark::remove(folder);
            }
            // Nobody makes another one.
            std::mem::forget(live);
        });
    });
}

/// Ends the process with an exit code, and its folders with it.
pub fn exit(code: i32) -> ! {
    let live = live();
    for folder in live.folders.values() {
        let _ = crate::mark::remove(folder);
    }
    std::process::exit(code)
}

/// Ctrl-C is not the end for the rest of this run: somebody else takes it and ends in order.
pub fn leave_interrupts() {
    etwhy_os::end::leave_interrupts();
}

/// Makes a folder and takes note of it: no signal comes between.
pub(crate) fn register(make: impl FnOnce() -> io::Result<PathBuf>) -> io::Result<(PathBuf, u64)> {
    let mut live = live();
    let path = make()?;
    live.next += 1;
    let number = live.next;
    live.folders.insert(number, path.clone());
    Ok((path, number))
}

pub(crate) fn forget(number: u64) {
    live().folders.remove(&number);
}

/// Does something short during which no signal removes folders, such as two renames that belong together. It must not make
/// or drop a [`Scratch`](crate::Scratch).
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _live = live();
    work()
}
