//! Independent pieces of work on several threads.

use std::sync::{Mutex, PoisonError};

/// What `work` makes of each item, in the order of the items. Up to `threads` threads take one item after the other, the caller's among them; each
/// has a state of its own, which `begin` makes when the thread gets its first item. A panic of any of them is one of the caller.
pub fn map<S, T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        let (mut state, mut done) = (None, Vec::new());
        while let Some((at, item)) = next() {
            done.push((at, work(state.get_or_insert_with(&begin), item)));
        }
        done
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let own = run();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p))
        };
        others.into_iter().map(join).fold(own, |mut all, more| {
            all.extend(more);
            all
        })
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whoever_made_them() {
        for threads in [0, 1, 2, 7, 200] {
            let squares = map(
                threads,
                (0..100_u64).collect(),
                || 0_u64,
                |count, n| {
                    *count += 1;
                    (n * n, *count)
                },
            );
            assert!(squares.iter().enumerate().all(|(n, (square, _))| *square == (n * n) as u64));
            // Each thread counts what it has done itself.
            let firsts = squares.iter().filter(|(_, count)| *count == 1).count();
            assert!((1..=threads.clamp(1, 100)).contains(&firsts), "{firsts} of {threads}");
        }
        assert!(map(3, Vec::<u8>::new(), || (), |(), n| n).is_empty());
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn a_panic_is_the_callers() {
        map(2, (0..10).collect(), || (), |(), n: i32| assert_ne!(n, 7, "seven"));
    }
}
