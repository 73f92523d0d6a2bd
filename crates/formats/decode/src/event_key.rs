//! What makes two records events of the same type.

use etwhy_base::{Bytes, Guid};
use etwhy_etl::abi::ext::{EVENT_SCHEMA_TL, PROV_TRAITS};
use etwhy_etl::abi::header::{
    EVENT_FLAG_EXTENDED_INFO, EVENT_FLAG_STRING_ONLY, EVENT_FLAGS, EVENT_ID, EVENT_LEN, EVENT_OPCODE,
    FULL_GUID, MESSAGE_FLAG_GUID,
};
use etwhy_etl::{HeaderKind, Record};
use std::sync::Arc;

/// Identity of an event type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EventKey {
    /// A kernel record: hook id and version.
    Kernel {
        /// High byte of the hook id.
        group: u8,
        /// Low byte of the hook id.
        ty: u8,
        /// Payload version.
        version: u8,
    },
    /// A classic record.
    Classic {
        /// Class GUID.
        guid: Guid,
        /// Opcode.
        opcode: u8,
        /// Version.
        version: u16,
    },
    /// A manifest-based record.
    Event {
        /// Provider GUID.
        provider: Guid,
        /// `EVENT_DESCRIPTOR.Id`.
        id: u16,
        /// `EVENT_DESCRIPTOR.Version`.
        version: u8,
        /// `EVENT_DESCRIPTOR.Opcode`: EventSource-like providers use one id with several opcodes.
        opcode: u8,
        /// True when the payload is one string (`EventWriteString`).
        string_only: bool,
    },
    /// A self-describing record.
    TraceLogging {
        /// Provider GUID.
        provider: Guid,
        /// `EVENT_DESCRIPTOR.Opcode`.
        opcode: u8,
        /// The schema item as recorded.
        item: Arc<[u8]>,
        /// The provider traits item, if there was one.
        traits: Option<Arc<[u8]>>,
    },
    /// A WPP message with a GUID.
    Wpp {
        /// Message GUID.
        guid: Guid,
        /// Message number.
        number: u16,
    },
    /// A WPP message with a component id, or with neither.
    WppComponent {
        /// Component id.
        component: Option<u32>,
        /// Message number.
        number: u16,
    },
    /// A record of which only the header type is known.
    Unknown {
        /// Which header it has.
        header: HeaderKind,
    },
    /// What came after the limits on the number of event types were reached.
    Other,
}

/// A key of fixed size, for hashing: GUID (or component) and the rest with a mark of the kind.
pub(crate) type Packed = ([u8; 16], u64);

const MARK_EVENT: u64 = 1 << 56;
const MARK_CLASSIC: u64 = 2 << 56;
const MARK_WPP: u64 = 3 << 56;
const MARK_COMPONENT: u64 = 4 << 56;
const MARK_NO_COMPONENT: u64 = 5 << 56;
const MARK_UNKNOWN: u64 = 6 << 56;
const STRING_ONLY: u64 = 1 << 32;

/// The items that make a record self-describing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceLoggingItems<'a> {
    pub provider: Guid,
    pub opcode: u8,
    pub item: &'a [u8],
    pub traits: Option<&'a [u8]>,
}

/// Finds the schema item of a TraceLogging record.
///
/// The channel marks such records; the item is looked for under any channel, because the writer may
/// choose one.
#[inline]
pub(crate) fn trace_logging<'a>(record: &Record<'a>) -> Option<TraceLoggingItems<'a>> {
    if !record.kind.is_event() || record.event_flags() & EVENT_FLAG_EXTENDED_INFO == 0 {
        return None;
    }
    let (mut item, mut traits) = (None, None);
    for ext in record.ext_items() {
        match ext.kind {
            EVENT_SCHEMA_TL => item = Some(ext.data),
            PROV_TRAITS => traits = Some(ext.data),
            _ => {}
        }
    }
    Some(TraceLoggingItems { provider: record.guid()?, opcode: record.opcode(), item: item?, traits })
}

/// The key of a whole `EVENT_HEADER`: the usual case, read in three pieces.
#[inline]
fn packed_event(head: &[u8; EVENT_LEN]) -> Packed {
    let descriptor = head.u64_at(EVENT_ID).unwrap_or(0);
    let opcode = descriptor >> (8 * (EVENT_OPCODE - EVENT_ID)) & 0xFF;
    let flags = head.u16_at(EVENT_FLAGS).unwrap_or(0);
    let string = if flags & EVENT_FLAG_STRING_ONLY != 0 { STRING_ONLY } else { 0 };
    (
        head.guid_at(FULL_GUID).unwrap_or_default().0,
        MARK_EVENT | descriptor & 0xFF_FFFF | opcode << 24 | string,
    )
}

/// The fixed-size key of a record that is neither a kernel record nor self-describing.
#[inline]
pub(crate) fn packed(record: &Record<'_>) -> Packed {
    if record.kind.is_event() {
        if let Some(head) = record.bytes.first_chunk::<EVENT_LEN>() {
            return packed_event(head);
        }
        let string = if record.event_flags() & EVENT_FLAG_STRING_ONLY != 0 { STRING_ONLY } else { 0 };
        let rest =
            u64::from(record.id()) | u64::from(record.version()) << 16 | u64::from(record.opcode()) << 24;
        (record.guid().unwrap_or_default().0, MARK_EVENT | rest | string)
    } else if record.kind.is_classic() {
        let rest = u64::from(record.version()) | u64::from(record.opcode()) << 16;
        (record.guid().unwrap_or_default().0, MARK_CLASSIC | rest)
    } else if record.kind == HeaderKind::Message {
        let number = u64::from(record.id());
        if record.message_flags() & MESSAGE_FLAG_GUID != 0 {
            return (record.guid().unwrap_or_default().0, MARK_WPP | number);
        }
        match record.message_component() {
            Some(component) => ([0; 16], MARK_COMPONENT | number | u64::from(component) << 16),
            None => ([0; 16], MARK_NO_COMPONENT | number),
        }
    } else {
        ([0; 16], MARK_UNKNOWN | record.kind as u64)
    }
}

/// The readable form of a fixed-size key.
pub(crate) fn unpacked((guid, rest): Packed, record: &Record<'_>) -> EventKey {
    let guid = Guid(guid);
    match rest & 0xFF << 56 {
        MARK_EVENT => EventKey::Event {
            provider: guid,
            id: rest as u16,
            version: (rest >> 16) as u8,
            opcode: (rest >> 24) as u8,
            string_only: rest & STRING_ONLY != 0,
        },
        MARK_CLASSIC => EventKey::Classic { guid, version: rest as u16, opcode: (rest >> 16) as u8 },
        MARK_WPP => EventKey::Wpp { guid, number: rest as u16 },
        MARK_COMPONENT => {
            EventKey::WppComponent { component: Some((rest >> 16) as u32), number: rest as u16 }
        }
        MARK_NO_COMPONENT => EventKey::WppComponent { component: None, number: rest as u16 },
        _ => EventKey::Unknown { header: record.kind },
    }
}
