//! `WEVT_TEMPLATE` resources: what the manifest of an event provider says, in binary.
//!
//! Layout: libfwevt's *Windows Event manifest binary format*, which leaves maps open; those (entries behind 20 bytes,
//! their number at 16; the offset of a field's map at 8 of its descriptor; names behind `PRVA`) were read off
//! `wevtsvc.dll` and `adtschema.dll` of build 26100 and agree with `WevtTemplateReader` of Microsoft's EventLogExpert.

mod read;
mod types;

use etwhy_base::Guid;
pub use types::{InType, OutType};

pub(crate) use read::read;

/// The providers of a file.
#[derive(Debug, Default)]
pub struct Manifest {
    /// In the order of the file.
    pub providers: Vec<Provider>,
    /// What is damaged; the rest is there.
    pub damage: Vec<String>,
}

/// A provider.
#[derive(Debug, Default)]
pub struct Provider {
    /// What it is known by.
    pub guid: Option<Guid>,
    /// Its name, which files since Windows 8 hold.
    pub name: Option<String>,
    /// Message with its name in the language of the user.
    pub message: Option<u32>,
    /// Channels that it writes to.
    pub channels: Vec<Named>,
    /// Levels of its own, and the standard ones that it uses.
    pub levels: Vec<Named>,
    /// Tasks.
    pub tasks: Vec<Named>,
    /// Opcodes; `value` holds the opcode in its upper and the task that it belongs to (or 0) in its lower 16 bits.
    pub opcodes: Vec<Named>,
    /// Keywords, one bit each.
    pub keywords: Vec<Named>,
    /// Maps from numbers to texts.
    pub maps: Vec<Map>,
    /// Templates of events.
    pub templates: Vec<Template>,
    /// Types of events.
    pub events: Vec<Event>,
}

/// A value with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Number or bit.
    pub value: u64,
    /// Name in the manifest, such as `win:Informational`.
    pub name: Option<String>,
    /// Message with the name that users see.
    pub message: Option<u32>,
}

/// A map from numbers, or bits, to messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Where it stands in the resource: what fields refer to.
    pub offset: u32,
    /// Its name.
    pub name: Option<String>,
    /// Whether values are bits that may be set together.
    pub bits: bool,
    /// Value and message.
    pub values: Vec<(u32, Option<u32>)>,
}

/// What an event of a type carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Where it stands in the resource: what events refer to.
    pub offset: u32,
    /// Its GUID, which records in logs name too.
    pub guid: Guid,
    /// Fields in the order of `%1`, `%2`.
    pub fields: Vec<Field>,
}

/// A field of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// How it is stored.
    pub in_type: InType,
    /// How it is shown.
    pub out_type: OutType,
    /// Offset of its map, or 0.
    pub map: u32,
}

/// A type of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Id.
    pub id: u16,
    /// Version.
    pub version: u8,
    /// Channel.
    pub channel: u8,
    /// Level; of an event that replaces a classic one, the lower half of the qualifiers.
    pub level: u8,
    /// Opcode; of an event that replaces a classic one, the upper half of the qualifiers.
    pub opcode: u8,
    /// Task.
    pub task: u16,
    /// Keywords.
    pub keywords: u64,
    /// Its message.
    pub message: Option<u32>,
    /// Offset of its template, or 0.
    pub template: u32,
}
