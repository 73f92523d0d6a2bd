//! What the pass sees of stacks goes to who finds them in batches, in order, on a thread of its own.
//!
//! Nothing in the pass waits for a stack, so this work, about a quarter of it, is done beside it. Where an analysis wants
//! to know the numbers found so far ([`Worker::here`]), the thread ends and gives the matcher back.

use super::matcher::Matcher;
use super::step::{Batch, Step};
use etwhy_base::aside::{Aside, Work};

/// Steps and bytes of a batch: a part of a core's own cache.
const BATCH_STEPS: usize = 2048;
const BATCH_BYTES: usize = 128 << 10;

impl Work for Matcher {
    type Batch = Batch;

    fn work(&mut self, batch: &mut Batch) {
        self.steps(batch);
    }
}

/// Gives steps to the matcher.
#[derive(Debug, Default)]
pub(super) struct Worker(Aside<Matcher>);

impl Worker {
    /// It may (not) have a thread.
    pub fn set_threaded(&mut self, threaded: bool) {
        self.0.set_threaded(threaded);
    }

    #[inline]
    pub fn push(&mut self, mut step: Step, bytes: &[u8]) {
        let batch = &mut self.0.batch;
        batch.bytes.extend_from_slice(bytes);
        // A batch is sent before it grows past what fits: one record has less than 64 KiB.
        step.end = batch.bytes.len() as u32;
        batch.steps.push(step);
        if batch.steps.len() >= BATCH_STEPS || batch.bytes.len() >= BATCH_BYTES {
            self.0.send();
        }
    }

    /// The matcher, after all that was pushed.
    pub fn here(&mut self) -> &mut Matcher {
        self.0.done()
    }

    /// The matcher, if it is here.
    pub fn if_here(&self) -> Option<&Matcher> {
        self.0.if_here()
    }
}
