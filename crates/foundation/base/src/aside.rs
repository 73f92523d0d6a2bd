//! Work that is done in order, here or on a thread of its own.
//!
//! Who gives it does not wait for a result until all is given: rows that become columns, sums, stacks that are brought together. What comes of it
//! does not depend on the thread, because the batches arrive in the order in which they were sent.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Batches that are under way at most.
const DEPTH: usize = 16;
/// Bytes of items that go to another thread together: a part of a core's own cache.
const BATCH_BYTES: usize = 64 << 10;

/// What does the work, a batch at a time.
pub trait Work: Default + Send + 'static {
    /// What it is given.
    type Batch: Default + Send + 'static;

    /// Does a batch, and leaves it empty.
    fn work(&mut self, batch: &mut Self::Batch);
}

/// A thread with the worker.
#[derive(Debug)]
struct There<W: Work> {
    full: SyncSender<W::Batch>,
    empty: Receiver<W::Batch>,
    thread: JoinHandle<W>,
}

/// Gives batches to a worker, which is here or on a thread of its own.
#[derive(Debug)]
pub struct Aside<W: Work> {
    /// The batch that grows. Whoever fills it says when it is large enough ([`Aside::send`]).
    pub batch: W::Batch,
    here: Option<W>,
    there: Option<There<W>>,
    /// It may have a thread.
    threaded: bool,
}

impl<W: Work> Default for Aside<W> {
    fn default() -> Aside<W> {
        Aside::new(W::default(), false)
    }
}

impl<W: Work> Aside<W> {
    /// A worker that gets a thread with its first batch, if `threaded`.
    pub fn new(worker: W, threaded: bool) -> Aside<W> {
        Aside { batch: W::Batch::default(), here: Some(worker), there: None, threaded }
    }

    /// From the next batch on it may (not) have a thread.
    pub fn set_threaded(&mut self, threaded: bool) {
        self.threaded = threaded;
    }

    /// Sends the batch on its way.
    #[cold]
    pub fn send(&mut self) {
        if self.threaded
            && let Some(worker) = self.here.take()
        {
            self.there = Some(There::start(worker));
        }
        if let Some(worker) = &mut self.here {
            worker.work(&mut self.batch);
        } else if let Some(there) = &mut self.there {
            let next = there.empty.try_recv().unwrap_or_default();
            // A thread that is gone has panicked, which shows when it is joined.
            let _ = there.full.send(std::mem::replace(&mut self.batch, next));
        }
    }

    /// Brings the worker back, after all that was sent. It gets a new thread with the next batch.
    fn bring_back(&mut self) {
        if let Some(There { full, thread, .. }) = self.there.take() {
            drop(full);
            self.here = Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        if let Some(worker) = &mut self.here {
            worker.work(&mut self.batch);
        }
    }

    /// The worker, after all that was given, the open batch included.
    pub fn done(&mut self) -> &mut W {
        self.bring_back();
        self.here.get_or_insert_default()
    }

    /// As [`Aside::done`], for the last time.
    pub fn into_done(mut self) -> W {
        self.bring_back();
        self.here.unwrap_or_default()
    }

    /// The worker, if it is here.
    pub fn if_here(&self) -> Option<&W> {
        self.here.as_ref()
    }
}

impl<T: Send + 'static, W: Work<Batch = Vec<T>>> Aside<W> {
    /// Gives one item: at once, with `one`, where the worker has no thread.
    #[inline]
    pub fn give(&mut self, item: T, one: impl FnOnce(&mut W, T)) {
        if !self.threaded
            && let Some(worker) = &mut self.here
        {
            return one(worker, item);
        }
        self.batch.push(item);
        if self.batch.len() >= BATCH_BYTES / size_of::<T>().max(1) {
            self.send();
        }
    }
}

impl<W: Work> There<W> {
    fn start(mut worker: W) -> There<W> {
        let (full, batches) = sync_channel::<W::Batch>(DEPTH);
        let (give_back, empty): (Sender<W::Batch>, Receiver<W::Batch>) = channel();
        let thread = std::thread::spawn(move || {
            for mut batch in batches {
                worker.work(&mut batch);
                // Nobody may want it any more.
                let _ = give_back.send(batch);
            }
            worker
        });
        There { full, empty, thread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Digits(u64, Vec<u64>);

    impl Work for Digits {
        type Batch = Vec<u64>;

        fn work(&mut self, batch: &mut Vec<u64>) {
            for digit in batch.drain(..) {
                assert_ne!(digit, 77, "seven");
                self.0 = self.0.wrapping_mul(31).wrapping_add(digit);
                self.1.push(digit);
            }
        }
    }

    fn sum(threaded: bool, looks: &[u64]) -> (u64, Vec<u64>) {
        let mut digits = Aside::new(Digits::default(), threaded);
        for n in 0..30_000 {
            digits.give(n % 7, |digits, n| digits.work(&mut vec![n]));
            if looks.contains(&n) {
                assert_eq!(digits.done().1.len() as u64, n + 1);
            }
        }
        let Digits(sum, all) = digits.into_done();
        (sum, all)
    }

    #[test]
    fn the_result_is_that_of_one_thread() {
        let alone = sum(false, &[]);
        assert_eq!(alone.1.len(), 30_000);
        assert_eq!(sum(true, &[]), alone);
        assert_eq!(sum(true, &[0, 99, 8_191, 8_192, 15_150, 29_999]), alone);
        assert_eq!(sum(false, &[0, 99, 8_191, 8_192, 15_150, 29_999]), alone);
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn a_panic_of_the_thread_is_the_callers() {
        let mut digits = Aside::new(Digits::default(), true);
        digits.batch.push(77);
        digits.send();
        digits.done();
    }
}
