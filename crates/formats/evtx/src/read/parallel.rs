//! Work in parallel whose results come in order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};

/// Runs `work` for `0..count` on so many threads and hands results over in order. At most four results for each thread wait at a
/// time. `make` gives each thread a state of its own. Ends early when `take` returns false.
pub fn ordered<S, T: Send>(
    count: usize,
    threads: usize,
    make: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
    mut take: impl FnMut(T) -> bool,
) {
    let threads = threads.clamp(1, count.max(1));
    if threads == 1 {
        let mut state = make();
        for n in 0..count {
            if !take(work(&mut state, n)) {
                return;
            }
        }
        return;
    }
    struct Shared<T> {
        next: usize,
        taken: usize,
        done: BTreeMap<usize, T>,
        stop: bool,
    }
    let shared = Mutex::new(Shared { next: 0, taken: 0, done: BTreeMap::new(), stop: false });
    let changed = Condvar::new();
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let window = threads * 4;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // If work panics, nobody waits for its result.
                let _guard = Guard(|| {
                    lock().stop = true;
                    changed.notify_all();
                });
                let mut state = make();
                loop {
                    let n = {
                        let mut shared = lock();
                        while !shared.stop && shared.next < count && shared.next >= shared.taken + window {
                            shared = changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
                        }
                        if shared.stop || shared.next >= count {
                            return;
                        }
                        shared.next += 1;
                        shared.next - 1
                    };
                    let result = work(&mut state, n);
                    lock().done.insert(n, result);
                    changed.notify_all();
                }
            });
        }
        for n in 0..count {
            let mut waiting = lock();
            let result = loop {
                match waiting.done.remove(&n) {
                    Some(result) => break result,
                    None if waiting.stop => return,
                    None => waiting = changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                }
            };
            waiting.taken = n + 1;
            drop(waiting);
            changed.notify_all();
            if !take(result) {
                lock().stop = true;
                changed.notify_all();
                return;
            }
        }
    });
}

/// Runs something if its thread panics.
struct Guard<F: FnMut()>(F);

impl<F: FnMut()> Drop for Guard<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_work_ends_early() {
        for threads in [1, 2, 5] {
            let mut seen = Vec::new();
            ordered(
                100,
                threads,
                || 0usize,
                |state, n| {
                    *state += 1;
                    n * 2
                },
                |n| {
                    seen.push(n);
                    seen.len() < 60
                },
            );
            assert_eq!(seen, (0..60).map(|n| n * 2).collect::<Vec<_>>());
        }
        ordered(0, 4, || (), |(), n| n, |_| panic!("nothing to take"));
    }
}
