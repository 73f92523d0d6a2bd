//! The thread that finds stacks: what the pass sees of stacks goes to it in batches, in order.
//!
//! Nothing in the pass waits for a stack, so this work, about a quarter of it, is done beside it. Where an analysis wants
//! to know the numbers found so far ([`Worker::here`]), the thread ends and gives the matcher back.

use super::matcher::Matcher;
use super::step::{Batch, Step};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Steps and bytes of a batch: a part of a core's own cache.
const BATCH_STEPS: usize = 2048;
const BATCH_BYTES: usize = 128 << 10;
/// Batches that are under way at most.
const DEPTH: usize = 16;

/// A thread with the matcher.
#[derive(Debug)]
struct There {
    full: SyncSender<Batch>,
    empty: Receiver<Batch>,
    thread: JoinHandle<Box<Matcher>>,
}

/// Gives steps to the matcher, which is here or on a thread of its own.
#[derive(Debug, Default)]
pub(super) struct Worker {
    batch: Batch,
    here: Option<Box<Matcher>>,
    there: Option<There>,
    /// It may have a thread.
    pub threaded: bool,
}

impl Worker {
    #[inline]
    pub fn push(&mut self, mut step: Step, bytes: &[u8]) {
        self.batch.bytes.extend_from_slice(bytes);
        // A batch is sent before it grows past what fits: one record has less than 64 KiB.
        step.end = self.batch.bytes.len() as u32;
        self.batch.steps.push(step);
        if self.batch.steps.len() >= BATCH_STEPS || self.batch.bytes.len() >= BATCH_BYTES {
            self.send();
        }
    }

    #[cold]
    fn send(&mut self) {
        if !self.threaded {
            return self.here.get_or_insert_default().work(&mut self.batch);
        }
        let here = &mut self.here;
        let there = self.there.get_or_insert_with(|| There::start(here.take().unwrap_or_default()));
        let next = there.empty.try_recv().unwrap_or_default();
        // A thread that is gone has panicked, which shows when it is joined.
        let _ = there.full.send(std::mem::replace(&mut self.batch, next));
    }

    /// The matcher, after all that was pushed.
    pub fn here(&mut self) -> &mut Matcher {
        if let Some(There { full, thread, .. }) = self.there.take() {
            drop(full);
            self.here = Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        let matcher = self.here.get_or_insert_default();
        matcher.work(&mut self.batch);
        matcher
    }

    /// The matcher, if it is here.
    pub fn if_here(&self) -> Option<&Matcher> {
        self.here.as_deref()
    }
}

impl There {
    fn start(mut matcher: Box<Matcher>) -> There {
        let (full, batches) = sync_channel::<Batch>(DEPTH);
        let (give_back, empty): (Sender<Batch>, Receiver<Batch>) = channel();
        let thread = std::thread::spawn(move || {
            for mut batch in batches {
                matcher.work(&mut batch);
                // Nobody may want it any more.
                let _ = give_back.send(batch);
            }
            matcher
        });
        There { full, empty, thread }
    }
}
