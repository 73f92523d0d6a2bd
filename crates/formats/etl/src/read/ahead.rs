//! Loads buffers on other threads before the merge gets to them.
//!
//! Buffers join a merge in an order that is known beforehand, so a helper can read and unpack the next ones
//! while the merge pushes records. For a mapped file it touches the pages, which takes the page faults and
//! the cache misses off the thread that does the work.

use super::file::EtlFile;
use super::index::BufferEntry;
use crate::Ledger;
use etwhy_base::Bytes;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Scope;

/// Bytes that may be loaded ahead by all helpers together.
const AHEAD_BYTES: usize = 16 << 20;
const LINE: usize = 64;

/// A buffer that a helper has loaded.
struct Loaded {
    /// Its bytes; empty if they are in the map.
    owned: Vec<u8>,
    ledger: Ledger,
}

/// Buffers loaded ahead, in the order of the merge. Helper `n` of `k` loads every k-th buffer.
pub(crate) struct Ahead {
    helpers: Vec<(Receiver<Loaded>, Sender<Vec<u8>>)>,
    next: usize,
}

impl Ahead {
    /// Starts `helpers` threads that load `buffers` (file number and entry) in their order.
    pub(crate) fn start<'scope, 'env: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        files: &'env [EtlFile],
        buffers: &[(u16, &'env BufferEntry)],
        helpers: usize,
    ) -> Ahead {
        let largest = buffers.iter().map(|(_, b)| b.end as usize).max().unwrap_or(1).max(1);
        let depth = (AHEAD_BYTES / largest / helpers.max(1)).clamp(2, 64);
        let helpers = (0..helpers)
            .map(|number| {
                let (loaded, receiver) = sync_channel(depth);
                let (give_back, spare) = channel();
                let own: Vec<(u16, &'env BufferEntry)> =
                    buffers.iter().copied().skip(number).step_by(helpers).collect();
                scope.spawn(move || load_all(files, &own, &loaded, &spare));
                (receiver, give_back)
            })
            .collect();
        Ahead { helpers, next: 0 }
    }

    /// The next buffer's bytes (empty if they are in the map); `spare` is used again for a later one.
    /// `None` if the helper is gone.
    pub(crate) fn take(&mut self, spare: Vec<u8>, ledger: &mut Ledger) -> Option<Vec<u8>> {
        let number = self.next % self.helpers.len().max(1);
        self.next += 1;
        let (receiver, give_back) = self.helpers.get(number)?;
        let loaded = receiver.recv().ok()?;
        if spare.capacity() > 0 {
            // The helper may have finished already.
            let _ = give_back.send(spare);
        }
        ledger.merge(&loaded.ledger);
        Some(loaded.owned)
    }
}

fn load_all(
    files: &[EtlFile],
    buffers: &[(u16, &BufferEntry)],
    loaded: &SyncSender<Loaded>,
    spare: &Receiver<Vec<u8>>,
) {
    let mut packed = Vec::new();
    for (file, entry) in buffers {
        let mut ledger = Ledger::new();
        let mut owned = spare.try_recv().unwrap_or_default();
        if let Some(file) = files.get(usize::from(*file)) {
            match file.mapped_buffer(entry) {
                Some(bytes) => {
                    touch(bytes);
                    owned.clear();
                }
                None => file.load_buffer(entry, &mut owned, &mut packed, &mut ledger),
            }
        }
        if loaded.send(Loaded { owned, ledger }).is_err() {
            return;
        }
    }
}

/// Reads a byte of each cache line.
fn touch(bytes: &[u8]) {
    let mut sum = 0u8;
    let mut at = 0;
    while let Some(byte) = bytes.u8_at(at) {
        sum ^= byte;
        at += LINE;
    }
    std::hint::black_box(sum);
}
