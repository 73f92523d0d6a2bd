//! What the pass sees of stacks, on its way to who finds them.

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A row asks for the stack of an event. `value`: its instruction pointer, 0 if there is none.
    Ticket { user_mode: bool },
    /// The event of the ticket that comes next holds frames itself. `value`: match id of the half that comes later.
    OwnFrames { width: u8 },
    /// As before, by a key (`value`), behind the match id in the bytes.
    OwnKey { native: bool },
    /// Frames of both halves.
    Frames { width: u8 },
    /// Key of a kernel half: `value`.
    KernelKey,
    /// Key of a user half: `value`.
    UserKey,
    /// Frames of a key: `value`.
    Define { width: u8 },
    /// The user half of an event that held its kernel half itself. `value`: match id.
    UserHalf { width: u8 },
}

/// One thing that the pass saw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub what: What,
    /// Thread, see `thread_key`.
    pub tid: u32,
    /// Process, as [`super::open::Open::who`] says it.
    pub who: u32,
    /// Epoch of its address space.
    pub epoch: u32,
    /// Time of the event that has the stack: ticks, and ns.
    pub ticks: i64,
    pub ns: i64,
    /// Time of the record at hand, ns.
    pub now: i64,
    pub value: u64,
    /// Where its bytes end in the batch.
    pub end: u32,
}

/// Steps with their bytes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub steps: Vec<Step>,
    pub bytes: Vec<u8>,
}
