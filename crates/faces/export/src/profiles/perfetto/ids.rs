//! Ids that no two processes or threads share.

use crate::profile::People;
use foldhash::HashSet;

/// Where numbers of later instances begin. Windows gives out far smaller ids.
const LATER: u32 = 0x4000_0000;

/// Ids by row.
pub(super) struct Ids {
    pids: Vec<u32>,
    tids: Vec<u32>,
    next: u32,
}

impl Ids {
    /// The first instance keeps its id. Processes and threads share one space of ids, in Windows as in ftrace.
    pub fn new(people: &People) -> Ids {
        let mut used: HashSet<u32> = HashSet::default();
        let mut next = LATER;
        let mut unique = |id: i64| match u32::try_from(id) {
            Ok(id) if id < LATER && used.insert(id) => id,
            _ => {
                next = next.saturating_add(1);
                next
            }
        };
        let pids = people.processes.iter().map(|process| unique(process.pid)).collect();
        // The idle thread has the id of its process: 0.
        let tids = people.threads.iter().map(|t| if t.tid == 0 { 0 } else { unique(t.tid) }).collect();
        Ids { pids, tids, next }
    }

    /// Of a process.
    pub fn pid(&self, upid: u32) -> u64 {
        self.pids.get(upid as usize).map_or(0, |pid| u64::from(*pid))
    }

    /// Of a thread.
    pub fn tid(&self, utid: u32) -> u64 {
        self.tids.get(utid as usize).map_or(0, |tid| u64::from(*tid))
    }

    /// The process that stands for interrupts.
    pub fn interrupts(&self) -> u64 {
        u64::from(self.next) + 1
    }

    /// The threads that stand for DPCs and ISRs.
    pub fn interrupt_threads(&self) -> [(u64, &'static str); 2] {
        [(self.interrupts() + 1, "DPC"), (self.interrupts() + 2, "ISR")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Process, Thread};

    #[test]
    fn a_reused_id_gets_a_number_of_its_own() {
        let process = |pid| Process { pid, ..Process::default() };
        let thread = |tid, upid| Thread { tid, upid: Some(upid), ..Thread::default() };
        let people = People {
            processes: vec![process(0), process(40), process(40), process(-1)],
            // Thread 40 lived when no process 40 did.
            threads: vec![thread(0, 0), thread(44, 1), thread(44, 2), thread(40, 3)],
        };
        let ids = Ids::new(&people);
        let pids: Vec<u64> = (0..4).map(|upid| ids.pid(upid)).collect();
        let tids: Vec<u64> = (0..4).map(|utid| ids.tid(utid)).collect();
        assert_eq!(pids, [0, 40, 0x4000_0001, 0x4000_0002]);
        assert_eq!(tids, [0, 44, 0x4000_0003, 0x4000_0004]);
        assert_eq!((ids.interrupts(), ids.interrupt_threads()[1].0), (0x4000_0005, 0x4000_0007));
    }
}
