//! Which machine and which recording a file is of: the one place that decides what may be read together.
//!
//! A trace file says it in its session header (boot time, build, processors, clock) and, if the kernel wrote it, in `SystemConfig`
//! records (computer name, memory). Facts that a file does not tell contradict nothing. [`machine`] compares machines,
//! [`recording`] says whether two files of one machine are parts of one recording, [`group()`] sorts files into recordings.

mod group;
pub mod machine;
pub mod recording;

pub use group::{Apart, Grouping, group};
pub use machine::{Difference, Machine};

use crate::model::system::{self, SystemFacts};
use etwhy_base::time::unix_ns;
use etwhy_decode::kernel::KernelLayouts;
use etwhy_decode::kernel::events::{EventTrace, SystemConfig};
use etwhy_etl::Record;
use etwhy_etl::abi::buffer::TYPE_HEADER;
use etwhy_etl::abi::logfile::{MODE_CIRCULAR, MODE_NEW_FILE};
use etwhy_etl::read::EtlFile;
use std::path::PathBuf;

/// What a file says of itself, as far as it decides what the file may be read with.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The file's name for people.
    pub shown: PathBuf,
    /// See [`EtlFile::trace_id`].
    pub trace_id: String,
    /// The machine.
    pub machine: Machine,
    /// Session name as recorded.
    pub session: String,
    /// Log file name as recorded.
    pub log_file: String,
    /// Output of a merge, which has no names of its own.
    pub merged: bool,
    /// The session goes on in other files when one is full.
    pub new_file: bool,
    /// FILETIME of the session's start.
    pub started: i64,
    /// First and last moment, nanoseconds since 1970 UTC.
    pub span_ns: (i64, i64),
    /// Smallest and largest sequence number of its buffers, if it has any.
    pub sequence: Option<(i64, i64)>,
    /// It holds events of the kernel (others than facts of the machine).
    pub kernel: bool,
}

/// Buffers that are looked at between the first and the last ones.
const BETWEEN: usize = 64;
/// Buffers at each end, where sessions describe the machine; as many again for each two processors, which flush theirs at the end.
const ENDS: usize = 32;

impl Identity {
    /// Looks at the header and at some of the buffers, not at all of them.
    pub fn from_file(file: &EtlFile) -> Identity {
        let mut facts = SystemFacts::default();
        let mut kernel = false;
        let processors = usize::try_from(file.header().processors).unwrap_or(0).min(4096);
        file.sample(ENDS.saturating_add(processors / 2), BETWEEN, |record| {
            if !record.kind.is_system() || record.group() == EventTrace::GROUP {
                return;
            }
            match record.group() {
                SystemConfig::GROUP => configuration(record, &mut facts),
                _ => kernel = true,
            }
        });
        let header = file.header();
        let (machine, trace_id) = (Machine::from_header(header, &facts), file.trace_id());
        let data = || file.buffers().iter().filter(|buffer| buffer.kind != TYPE_HEADER);
        Identity {
            shown: file.shown().to_owned(),
            trace_id,
            machine,
            session: header.session_name.clone(),
            log_file: header.log_file_name.clone(),
            merged: header.is_merged(),
            new_file: header.log_file_mode & MODE_NEW_FILE != 0,
            started: header.start_time,
            span_ns: span(file),
            sequence: data().map(|b| b.sequence).min().zip(data().map(|b| b.sequence).max()),
            kernel,
        }
    }
}

fn configuration(record: &Record<'_>, facts: &mut SystemFacts) {
    if record.opcode() == system::CPU
        && let Some(schema) =
            KernelLayouts::builtin().schema(record.group(), record.opcode(), record.version())
    {
        facts.machine(&crate::event::Fields::new(schema, record));
    }
}

/// First and last moment that a file covers. What was overwritten, or stands in other files of a series, is not covered.
fn span(file: &EtlFile) -> (i64, i64) {
    let header = file.header();
    let wall = |n: &&etwhy_etl::read::BufferEntry| {
        let clock = file.segments().get(usize::from(n.segment)).map_or(file.clock(), |s| &s.clock);
        n.first_ticks.map(|ticks| clock.unix_ns(ticks))
    };
    let from_second = usize::from(file.buffers().len() > 1);
    let moments = || file.buffers().iter().skip(from_second).filter_map(|b| wall(&b));
    let started = unix_ns(header.start_time);
    let part = header.log_file_mode & (MODE_CIRCULAR | MODE_NEW_FILE) != 0;
    let first = moments().min().filter(|_| part).unwrap_or(started);
    let last = moments().max().unwrap_or(first);
    let ended = if header.end_time > 0 { unix_ns(header.end_time) } else { last };
    (first, last.max(ended).max(first))
}
