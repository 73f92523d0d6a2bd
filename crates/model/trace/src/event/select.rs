//! How handlers say which events they want.

use etwhy_base::Guid;
use etwhy_decode::kernel::KernelEvent;

/// Which events a handler wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A kernel event. Classic events of the group's class GUID are the same events.
    Kernel(KernelEvent),
    /// Classic events of a class GUID and opcode.
    Classic(Guid, u8),
    /// Events of a provider by id.
    Manifest(Guid, u16),
    /// All events of a provider.
    Provider(Guid),
    /// Every event with an `EVENT_HEADER`, that is of manifest and TraceLogging providers.
    AnyUser,
    /// Every event.
    Any,
}

/// A wish: which events, under which number the handler wants to know them, and which fields of fixed place
/// it reads often. A field name may hold alternatives (`ImageBase|BaseAddress`) where versions differ.
#[derive(Clone, Copy, Debug)]
pub struct Select {
    /// Which events.
    pub what: What,
    /// The handler's own number for them.
    pub tag: u8,
    /// Fields for [`Event::u64`](super::Event::u64), by index.
    pub fields: &'static [&'static str],
}

impl Select {
    /// A wish for a kernel event under its type as the tag.
    pub const fn kernel(event: KernelEvent, fields: &'static [&'static str]) -> Select {
        Select::with(What::Kernel(event), event.opcode, fields)
    }

    /// A wish without fast fields.
    pub const fn new(what: What, tag: u8) -> Select {
        Select { what, tag, fields: &[] }
    }

    /// A wish with fast fields.
    pub const fn with(what: What, tag: u8, fields: &'static [&'static str]) -> Select {
        Select { what, tag, fields }
    }
}
