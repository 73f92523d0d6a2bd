//! What is known of a recording, in one file.

use super::NT_KERNEL_LOGGER;
use super::system::Live;
use etwhy_base::Guid;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Most remarks that are kept.
const MOST_REMARKS: usize = 1000;
/// GUID of `NT Kernel Logger` (`SystemTraceControlGuid`, evntrace.h).
const SYSTEM_TRACE_CONTROL: Guid = Guid::from_text("9e814aad-3204-11d2-9a82-006008a86939");

/// How far a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The next start of Windows begins its sessions, or has begun them.
    Boot,
    /// Sessions are being started.
    Starting,
    /// It records.
    Running,
    /// Sessions are being stopped.
    Stopping,
    /// No session runs any more; the files are there.
    Stopped,
}

/// Where the events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Into files that grow.
    File,
    /// Into a new file from time to time; the oldest ones are deleted.
    Rotate {
        /// Milliseconds of one file.
        every_ms: u64,
        /// Bytes that all files together may have.
        keep: u64,
    },
    /// Into memory, of which `save` writes a file.
    Ring {
        /// Mebibytes.
        mebibytes: u32,
    },
}

/// What a session records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The kernel's events.
    Kernel,
    /// Those of providers, and marks.
    User,
    /// What the kernel tells of processes, threads, images and files that are there, for a flight recorder: it runs for a moment.
    Names,
}

impl Kind {
    /// Its word in names of sessions and files.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::User => "user",
            Kind::Names => "names",
        }
    }
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is about to be started, or was.
    Intended,
    /// It was started.
    Running,
    /// It was ours, and is not any more.
    Lost,
    /// We have stopped it.
    Stopped,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// GUID.
    pub guid: String,
    /// What it records.
    pub kind: Kind,
    /// Files, the newest last.
    pub files: Vec<PathBuf>,
    /// How far it is.
    pub state: State,
    /// Flag word that it was last seen with.
    pub flags: u32,
    /// Lost events and buffers that were said.
    pub lost: u32,
}

impl Entry {
    /// The GUID.
    pub fn guid(&self) -> Guid {
        self.guid.parse().unwrap_or(Guid::ZERO)
    }

    /// Whether its name is one that other programs use too.
    pub fn has_shared_name(&self) -> bool {
        self.name.eq_ignore_ascii_case(NT_KERNEL_LOGGER)
    }

    /// Whether a session that runs is this one.
    pub fn is(&self, live: &Live) -> bool {
        self.name.eq_ignore_ascii_case(&live.name)
            && if self.has_shared_name() {
                self.files.iter().any(|file| is_same_file(file, &live.file))
            } else {
                self.guid() == live.guid
            }
    }
}

/// A file's name without the prefix of the kernel's names.
pub fn without_prefix(file: &str) -> &str {
    file.strip_prefix("\\??\\").or_else(|| file.strip_prefix("\\\\?\\")).unwrap_or(file)
}

/// Whether Windows names that file, letter case aside. A session that begins with Windows, and whose file is there already, writes one with a
/// number behind the name (`FileCounter` of the Global Logger).
fn is_same_file(ours: &Path, theirs: &str) -> bool {
    let (ours, theirs) = (ours.to_string_lossy().to_lowercase(), without_prefix(theirs).to_lowercase());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    !ours.is_empty()
        && theirs
            .strip_prefix(ours.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.').is_some_and(is_number))
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// When, milliseconds since 1970.
    pub ms: u64,
    /// What, as a sentence.
    pub text: String,
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// Version of this format.
    pub version: u32,
    /// Number of the recording, which its sessions and files carry.
    pub id: u32,
    /// Profiles.
    pub profiles: Vec<String>,
    /// Programs whose events providers record; all if there are none.
    #[serde(default)]
    pub programs: Vec<String>,
    /// When it began, milliseconds since 1970.
    pub began_ms: u64,
    /// When it ends by itself.
    pub until_ms: Option<u64>,
    /// Triggers that end it, as they were typed.
    pub stop_when: Vec<String>,
    /// How far it is.
    pub phase: Phase,
    /// Where the events go.
    pub mode: Mode,
    /// Logical processors and memory in MiB that buffers were counted for.
    pub size: (u32, u32),
    /// Folder of the files while it runs.
    pub folder: PathBuf,
    /// Where the result goes, if that was said.
    pub output: Option<PathBuf>,
    /// What is there already is replaced.
    #[serde(default)]
    pub replace: bool,
    /// The files are left as they are, not merged.
    #[serde(default)]
    pub parts: bool,
    /// Sessions, in the order in which they were started.
    pub sessions: Vec<Entry>,
    /// When the newest files began.
    pub segment_ms: u64,
    /// Files that are never deleted to make room.
    pub kept: Vec<PathBuf>,
    /// What happened.
    pub remarks: Vec<Remark>,
}

impl Journal {
    /// The version of this format.
    pub const VERSION: u32 = 1;

    /// Adds what happened.
    pub fn remark(&mut self, ms: u64, text: &str) {
        if self.remarks.len() < MOST_REMARKS {
            self.remarks.push(Remark { ms, text: text.to_owned() });
        }
    }

    /// The number as it stands in names.
    pub fn number(&self) -> String {
        format!("{:08x}", self.id)
    }

    /// A session that is to be started: of a name of its own, or `NT Kernel Logger`.
    pub fn next_entry(&self, kind: Kind, private: bool) -> Entry {
        let ordinal = self.sessions.iter().filter(|e| e.kind == kind).count() + 1;
        let (name, guid) = match (kind, private) {
            (Kind::Kernel, false) => (NT_KERNEL_LOGGER.to_owned(), SYSTEM_TRACE_CONTROL),
            _ => (
                format!("etwhy-{}-{}-{ordinal}", self.number(), kind.word()),
                session_guid(self.id, kind, ordinal),
            ),
        };
        let guid = String::from_utf8_lossy(&guid.text()).into_owned();
        let file = self.folder.join(format!("{}-{}-{ordinal}-001.etl", self.number(), kind.word()));
        let in_memory = matches!(self.mode, Mode::Ring { .. }) && kind != Kind::Names;
        let files = if in_memory { Vec::new() } else { vec![file] };
        Entry { name, guid, kind, files, state: State::Intended, flags: 0, lost: 0 }
    }
}

/// GUID of a session of ours: `etwhy`, the kind, the ordinal, the number of the recording.
pub fn session_guid(id: u32, kind: Kind, ordinal: usize) -> Guid {
    let [a, b, c, d] = id.to_be_bytes();
    let kind = match kind {
        Kind::Kernel => 1,
        Kind::User => 2,
        Kind::Names => 3,
    };
    Guid::new(OURS, 0x7900, kind, [0x80, ordinal.min(255) as u8, 0, 0, a, b, c, d])
}

/// First group of the GUIDs of our sessions: `etwh`.
const OURS: u32 = 0x6574_7768;

/// Whether a session was started by etwhy, of this recording or a forgotten one: by name and GUID.
pub fn is_of_etwhy(live: &Live) -> bool {
    let [a, b, c, d, e, f, ..] = live.guid.0;
    live.name.starts_with("etwhy-")
        && u32::from_le_bytes([a, b, c, d]) == OURS
        && u16::from_le_bytes([e, f]) == 0x7900
}

/// Where the nth file of a kind goes.
pub(super) fn target(kind: Kind, ordinal: usize, output: &Path) -> PathBuf {
    match (kind, ordinal) {
        (Kind::Kernel, 1) => output.to_path_buf(),
        (kind, 1) => output.with_extension(format!("{}.etl", kind.word())),
        (kind, n) => output.with_extension(format!("{}-{n}.etl", kind.word())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_ours_by_its_name_and_with_a_number_of_windows() {
        let ours = Path::new("C:\\Windows\\x-kernel-1-001.etl");
        for theirs in [
            "c:\\windows\\X-kernel-1-001.etl",
            "\\??\\C:\\Windows\\x-kernel-1-001.etl",
            "C:\\Windows\\x-kernel-1-001.etl.0002",
        ] {
            assert!(is_same_file(ours, theirs), "{theirs}");
        }
        for theirs in
            ["", "C:\\Windows\\x-kernel-1-001.etl.", "C:\\Windows\\x-kernel-1-001.etl.bak", "C:\\PaloNull"]
        {
            assert!(!is_same_file(ours, theirs), "{theirs}");
        }
        assert!(!is_same_file(Path::new(""), "") && !is_same_file(Path::new(""), ".1"));
    }
}
