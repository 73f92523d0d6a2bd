//! Recording: a state machine over the sessions of a machine, whose only memory is the journal.
//!
//! Every step reads the journal, acts, and writes what it is about to do before it does it. So each command (`status`, `mark`,
//! `save`, `stop`, `cancel`) works from another process, and after a crash at any point: whatever was started is written down.
//!
//! What is ours is known by more than a name. Sessions of our own names carry a GUID with the number of the recording;
//! `NT Kernel Logger` is ours only as long as it writes the file that we gave it. Everything else is somebody else's, and is
//! never stopped. The same holds for keys of the registry that have the next start of Windows recorded (`boot.rs`). Between asking and stopping lie microseconds in which another program can take `NT Kernel Logger` over;
//! Windows offers no call that does both.

#[cfg(windows)]
mod autologger;
mod boot;
mod end;
mod evidence;
mod explain;
mod guard;
mod here;
mod journal;
mod keys;
mod loggers;
mod start;
mod system;
mod trigger;
mod watch;
#[cfg(windows)]
mod windows;

pub use end::Status;
pub use evidence::{Evidence, NO_WINDOWS, evidence};
pub use explain::explain;
pub use guard::Tick;
pub use here::Here;
pub use journal::{Entry, Journal, Kind, Mode, Phase, Remark, State};
pub use keys::Keys;
pub use loggers::loggers;
pub use start::{Choice, Options};
pub use system::{Armed, Begin, Boot, Code, Live, Machine, Provided, Refused, Sessions};
pub use trigger::{Seen, Trigger, is_named};
pub use watch::{Finder, Watch};
#[cfg(windows)]
pub use windows::{ThisMachine, Windows};

/// The state machine, for one step.
pub struct Recorder<'a> {
    /// Sessions of the machine.
    pub sessions: &'a mut dyn Sessions,
    /// The rest of the machine.
    pub machine: &'a mut dyn Machine,
}

/// Free bytes below which nothing is recorded any more.
pub const RESERVE: u64 = 1 << 30;
/// Name of the kernel session that every administrator's tool shares.
pub const NT_KERNEL_LOGGER: &str = "NT Kernel Logger";
