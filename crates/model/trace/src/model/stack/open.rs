//! A stack whose halves are still to come.

use super::step::Step;
use crate::model::halves::NO_PART;

/// A stack that waits for its halves, and the tickets that wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// Time of the event, ns.
    pub ns: i64,
    /// Process instance, or a thread instance with `KEYED` whose process may be named later.
    pub who: u32,
    /// Epoch of its address space.
    pub epoch: u32,
    pub kernel: u32,
    pub user: u32,
    /// Instruction pointer of a sample, for a stack of one frame if no half comes; 0 if there is none.
    pub ip: u64,
    /// First of the tickets that take a stack of one frame too.
    pub samples: u32,
    /// First of the other tickets.
    pub tickets: u32,
    /// Its instruction pointer is one of user mode: it has no kernel half.
    pub user_mode: bool,
    /// A record held it as a whole.
    pub whole: bool,
}

impl Open {
    pub fn new(step: &Step) -> Open {
        Open {
            ns: step.ns,
            who: step.who,
            epoch: step.epoch,
            kernel: NO_PART,
            user: NO_PART,
            ip: 0,
            samples: NO_PART,
            tickets: NO_PART,
            user_mode: false,
            whole: false,
        }
    }

    pub fn has_half(&self) -> bool {
        self.kernel != NO_PART || self.user != NO_PART
    }

    /// The next kernel half of its time and thread is its own.
    pub fn awaits_kernel(&self) -> bool {
        !self.has_half() && !self.user_mode
    }

    /// It lacks the user half of its time and thread.
    pub fn awaits_user(&self) -> bool {
        self.user == NO_PART && !self.whole && !self.awaits_kernel()
    }

    /// Nothing more can come. The kernel's half comes first.
    pub fn is_complete(&self) -> bool {
        self.user != NO_PART || self.whole
    }
}
