//! What an event is, for matching it with what trackers and analyses select.

use crate::event::What;
use etwhy_decode::EventKey;
use etwhy_decode::kernel::events::{EventTrace, Image, Process, SystemConfig, Thread};
use etwhy_decode::kernel::{KernelEvent, KernelLayouts};
use etwhy_etl::Record;
use etwhy_etl::abi::guids;

/// Groups of the session, of processes, of threads (their switches have no ids in the header), of the hardware and of images.
const SPEAK_OF_OTHERS: [u8; 5] =
    [EventTrace::GROUP, Process::GROUP, Thread::GROUP, SystemConfig::GROUP, Image::GROUP];

/// What tells of a process, a thread or an image.
const IDENTITIES: [KernelEvent; 13] = [
    Process::Start,
    Process::End,
    Process::DCStart,
    Process::DCEnd,
    Process::Defunct,
    Thread::Start,
    Thread::End,
    Thread::DCStart,
    Thread::DCEnd,
    Image::Load,
    Image::UnLoad,
    Image::DCStart,
    Image::DCEnd,
];

/// What an event is, for matching wishes.
pub(super) struct Identity<'k> {
    /// Group and type.
    kernel: Option<(u8, u8)>,
    key: &'k EventKey,
    user: bool,
}

impl<'k> Identity<'k> {
    pub(super) fn from_record(record: &Record<'_>, key: &'k EventKey) -> Identity<'k> {
        let layouts = KernelLayouts::builtin();
        let kernel = if record.kind.is_system() {
            // The kernel logs image loads under the group of processes; everybody else under that of images.
            Some((layouts.home_group(record.group(), record.opcode()), record.opcode()))
        } else if record.kind.is_classic() {
            let group = record.guid().and_then(|guid| layouts.group_of(&guid));
            group.map(|group| (group, record.opcode()))
        } else {
            None
        };
        Identity { kernel, key, user: record.kind.is_event() }
    }

    /// It tells of a process, a thread or an image.
    pub(super) fn is_identity(&self) -> bool {
        IDENTITIES.iter().any(|event| self.kernel == Some((event.group, event.opcode)))
    }

    /// Header ids of some records are not those of their writer: processes, threads and images are logged with the process
    /// that they are about, also by whoever merges a trace; and what the session says of itself is nobody's.
    pub(super) fn has_own_header(&self) -> bool {
        let group = self.kernel.map(|(group, _)| group);
        let about_others = match (group, self.key) {
            (Some(group), _) => SPEAK_OF_OTHERS.contains(&group),
            (None, EventKey::Classic { guid, .. }) => guids::WRITTEN_BY_MERGE.contains(guid),
            _ => false,
        };
        !about_others
    }

    pub(super) fn matches(&self, what: What) -> bool {
        match what {
            What::Kernel(event) => self.kernel == Some((event.group, event.opcode)),
            What::Classic(guid, opcode) => {
                matches!(self.key, EventKey::Classic { guid: g, opcode: o, .. } if *g == guid && *o == opcode)
            }
            What::Manifest(guid, id) => {
                matches!(self.key, EventKey::Event { provider, id: i, .. } if *provider == guid && *i == id)
            }
            What::Provider(guid) => match self.key {
                EventKey::Event { provider, .. } | EventKey::TraceLogging { provider, .. } => {
                    *provider == guid
                }
                _ => false,
            },
            What::AnyUser => self.user,
            What::Any => true,
        }
    }
}
