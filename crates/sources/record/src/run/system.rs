//! What the state machine needs of Windows.

use super::{Journal, Keys};
use crate::vocabulary::{EventClass, MASKS};
use crate::{Buffers, Enabled};
use etwhy_base::Guid;
use std::path::{Path, PathBuf};

/// An error number of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// `ERROR_WMI_INSTANCE_NOT_FOUND`: there is no such session.
    pub const NO_SUCH_SESSION: Code = Code(4201);
    /// `ERROR_ALREADY_EXISTS`: there is a session of that name or GUID.
    pub const ALREADY_EXISTS: Code = Code(183);
    /// `ERROR_INVALID_PARAMETER`.
    pub const INVALID_PARAMETER: Code = Code(87);
}

/// What cannot be done, as a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// A session to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Name.
    pub name: String,
    /// GUID.
    pub guid: Guid,
    /// File; none for one in memory.
    pub file: Option<PathBuf>,
    /// Buffers.
    pub buffers: Buffers,
    /// `LogFileMode`.
    pub mode: u32,
    /// Flag word of the kernel; 0 for a session of providers.
    pub flags: u32,
}

/// A session that Windows begins when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Its key, below `HKLM\SYSTEM\CurrentControlSet\Control\WMI`.
    pub key: String,
    /// GUID.
    pub guid: Guid,
    /// File.
    pub file: PathBuf,
    /// Most mebibytes of it: then the session ends.
    pub most_mib: u32,
    /// Buffers.
    pub buffers: Buffers,
    /// `LogFileMode`.
    pub mode: u32,
    /// Group masks of the kernel session.
    pub masks: Option<[u32; MASKS]>,
    /// Providers, of the other one.
    pub providers: Vec<Enabled>,
}

/// A key of etwhy that has a start of Windows recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Armed {
    /// The key, as in [`Boot`].
    pub key: String,
    /// What came of the last start of Windows: an error number, 0 for none; none before there was one.
    pub status: Option<u32>,
}

/// A session that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Handle.
    pub handle: u64,
    /// Name.
    pub name: String,
    /// File; empty for one in memory.
    pub file: String,
    /// GUID.
    pub guid: Guid,
    /// `LogFileMode`.
    pub mode: u32,
    /// Flag word.
    pub flags: u32,
    /// Events lost since it began.
    pub events_lost: u32,
    /// Buffers lost since it began.
    pub buffers_lost: u32,
    /// Buffers written since it began.
    pub buffers_written: u32,
}

/// What a provider is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provided {
    /// Events.
    Events,
    /// Its state, of these keywords.
    State(u64),
}

/// Trace sessions.
pub trait Sessions {
    /// Starts one; gives its handle.
    ///
    /// # Errors
    /// Windows'.
    fn start(&mut self, begin: &Begin) -> Result<u64, Code>;
    /// The session of a name.
    ///
    /// # Errors
    /// [`Code::NO_SUCH_SESSION`], or another of Windows.
    fn query(&mut self, name: &str) -> Result<Live, Code>;
    /// All sessions.
    ///
    /// # Errors
    /// Windows'.
    fn list(&mut self) -> Result<Vec<Live>, Code>;
    /// Ends one.
    ///
    /// # Errors
    /// Windows'.
    fn stop(&mut self, handle: u64) -> Result<(), Code>;
    /// Writes what is in memory out, into a file if the session has none.
    ///
    /// # Errors
    /// Windows'.
    fn flush(&mut self, handle: u64, file: Option<&Path>) -> Result<(), Code>;
    /// Goes on in another file. `flags`: the flag word that it goes on with.
    ///
    /// # Errors
    /// Windows'.
    fn change_file(&mut self, handle: u64, file: &Path, flags: u32) -> Result<(), Code>;
    /// Sets all group masks of a kernel session.
    ///
    /// # Errors
    /// Windows'.
    fn set_masks(&mut self, handle: u64, masks: [u32; MASKS]) -> Result<(), Code>;
    /// Has stacks of these kernel events recorded.
    ///
    /// # Errors
    /// Windows'.
    fn set_stacks(&mut self, handle: u64, stacks: &[EventClass]) -> Result<(), Code>;
    /// Switches a provider on, or asks for its state.
    ///
    /// # Errors
    /// Windows'.
    fn enable(&mut self, handle: u64, provider: &Enabled, what: Provided) -> Result<(), Code>;
    /// Writes a text into all sessions of ours.
    ///
    /// # Errors
    /// Windows'.
    fn mark(&mut self, text: &str) -> Result<(), Code>;
}

/// The clock, files, rights and processes of the machine.
pub trait Machine {
    /// Milliseconds since 1970.
    fn now_ms(&mut self) -> u64;
    /// Waits.
    fn pause(&mut self, ms: u64);
    /// A number that no other recording has.
    fn token(&mut self) -> u32;
    /// Whether sessions may be started.
    fn is_administrator(&mut self) -> bool;
    /// Whether kernel sessions of own names are possible (Windows 8 and later).
    fn has_private_kernel_sessions(&mut self) -> bool;
    /// Logical processors, and memory in MiB.
    fn size(&mut self) -> (u32, u32);
    /// Free bytes where a folder is, if that can be told.
    fn free_bytes(&mut self, folder: &Path) -> Option<u64>;
    /// Makes a folder.
    ///
    /// # Errors
    /// The system's, as text.
    fn make_folder(&mut self, folder: &Path) -> Result<(), String>;
    /// Size of a file; none if there is none.
    fn file_bytes(&mut self, file: &Path) -> Option<u64>;
    /// Deletes a file.
    ///
    /// # Errors
    /// The system's, as text.
    fn remove(&mut self, file: &Path) -> Result<(), String>;
    /// Moves a file, to another volume too. An existing one is replaced.
    ///
    /// # Errors
    /// The system's, as text.
    fn move_file(&mut self, from: &Path, to: &Path) -> Result<(), String>;
    /// The journal, if there is a recording.
    ///
    /// # Errors
    /// If there is one that cannot be read.
    fn load(&mut self) -> Result<Option<Journal>, String>;
    /// Writes the journal: afterwards it is all there, also if the machine stops now.
    ///
    /// # Errors
    /// The system's, as text.
    fn save(&mut self, journal: &Journal) -> Result<(), String>;
    /// Deletes the journal.
    ///
    /// # Errors
    /// The system's, as text.
    fn clear(&mut self) -> Result<(), String>;
    /// Has the next start of Windows begin a session.
    ///
    /// # Errors
    /// If there is such a key already, which is left alone; the system's, as text.
    fn set_boot(&mut self, boot: &Boot) -> Result<(), String>;
    /// Takes that back, if the key is there and still ours.
    ///
    /// # Errors
    /// The system's, as text.
    fn clear_boot(&mut self, key: &str) -> Result<(), String>;
    /// All such keys of etwhy, of this recording or a forgotten one.
    ///
    /// # Errors
    /// The system's, as text.
    fn boots(&mut self) -> Result<Vec<Armed>, String>;
    /// Names of the processes that run, each with what tells it from others of the name.
    fn processes(&mut self) -> Vec<(String, u64)>;
    /// Whether there is such a performance counter.
    ///
    /// # Errors
    /// Why there is none.
    fn has_counter(&mut self, path: &str) -> Result<(), String>;
    /// Ids of the records that were written to an event log since this was asked last; none for the first time.
    ///
    /// # Errors
    /// Why that cannot be told.
    fn logged(&mut self, channel: &str) -> Result<Vec<u32>, String>;
    /// Whether these keys were pressed since this was asked last; from the first time on they are ours.
    ///
    /// # Errors
    /// Why they cannot be had.
    fn pressed(&mut self, keys: &Keys) -> Result<bool, String>;
    /// Value of a performance counter, e.g. `\Processor(_Total)\% DPC Time`.
    ///
    /// # Errors
    /// Why there is none.
    fn counter(&mut self, path: &str) -> Result<f64, String>;
}
