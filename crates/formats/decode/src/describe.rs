//! How an event type is shown: the row of the table `event_type`.

use crate::Decoder;
use crate::event_key::EventKey;
use crate::event_types::EventTypes;
use crate::kernel::KernelLayouts;
use crate::names::standard_opcode;
use crate::schema::DecodedBy;
use crate::tracelogging;
use etwhy_base::Guid;
use etwhy_etl::abi::guids::{EVENT_METADATA, PERF_TRACK_METADATA};
use std::sync::Arc;

/// Everything that is known of one event type.
#[derive(Clone, Debug)]
pub struct EventTypeInfo {
    /// Provider's name; the GUID as text when nobody knows a name.
    pub provider: Arc<str>,
    /// Provider GUID, class GUID, message GUID.
    pub guid: Option<Guid>,
    /// Event name, e.g. `GC/Start`; numbers when nobody knows a name.
    pub name: Arc<str>,
    /// Task name, may be empty.
    pub task: Arc<str>,
    /// Opcode number; the type of kernel records.
    pub opcode: u8,
    /// Opcode name, may be empty.
    pub opcode_name: Arc<str>,
    /// Event id; message number of WPP messages; hook id of kernel records.
    pub id: u16,
    /// Version of the payload.
    pub version: u16,
    /// Level of the type's first record.
    pub level: u8,
    /// Keywords of the type's first record.
    pub keyword: u64,
    /// Records.
    pub count: u64,
    /// Bytes, headers included.
    pub bytes: u64,
    /// Which source describes it.
    pub decoded_by: DecodedBy,
    /// True when the layout was compared with real traces (or comes from the trace itself).
    pub verified: bool,
}

impl EventTypes {
    /// Describes the type with an index. `None` only for an index that was never given.
    pub fn describe(&self, index: u32, decoder: &Decoder) -> Option<EventTypeInfo> {
        let ty = self.get(index)?;
        let schema = decoder.schema_of(&ty.key);
        let raw = Raw::of(&ty.key, ty.task, decoder);
        let mut info = EventTypeInfo {
            provider: raw.provider,
            guid: raw.guid,
            name: raw.name.into(),
            task: "".into(),
            opcode: raw.opcode,
            opcode_name: standard_opcode_of(&ty.key).into(),
            id: raw.id,
            version: raw.version,
            level: ty.level,
            keyword: ty.keyword,
            count: ty.count,
            bytes: ty.bytes,
            decoded_by: DecodedBy::None,
            verified: false,
        };
        if let Some(schema) = schema {
            if !schema.provider.is_empty() {
                info.provider = Arc::clone(&schema.provider);
            }
            info.name = Arc::clone(&schema.name);
            info.task = Arc::clone(&schema.task);
            if !schema.opcode.is_empty() {
                info.opcode_name = Arc::clone(&schema.opcode);
            }
            info.decoded_by = schema.decoded_by;
            info.verified = schema.verified;
        }
        Some(info)
    }
}

fn standard_opcode_of(key: &EventKey) -> &'static str {
    match key {
        EventKey::Event { opcode, .. } | EventKey::TraceLogging { opcode, .. } => standard_opcode(*opcode),
        _ => "",
    }
}

/// What the key alone says.
struct Raw {
    provider: Arc<str>,
    guid: Option<Guid>,
    name: String,
    opcode: u8,
    id: u16,
    version: u16,
}

impl Raw {
    fn of(key: &EventKey, task: u16, decoder: &Decoder) -> Raw {
        let name_of = |guid: Guid| decoder.provider_name(guid).unwrap_or_else(|| guid.to_string().into());
        let nothing =
            Raw { provider: "".into(), guid: None, name: String::new(), opcode: 0, id: 0, version: 0 };
        match *key {
            EventKey::Kernel { group, ty, version } => {
                let kernel = KernelLayouts::builtin();
                let known = kernel.event_name(group, ty).map(str::to_owned);
                let group_name =
                    kernel.group_name(group).map_or_else(|| format!("Group(0x{group:02x})"), str::to_owned);
                Raw {
                    provider: "Windows Kernel".into(),
                    guid: kernel.group_guid(group),
                    name: known.unwrap_or_else(|| format!("{group_name}/Type({ty})")),
                    opcode: ty,
                    id: u16::from(group) << 8 | u16::from(ty),
                    version: u16::from(version),
                }
            }
            EventKey::Classic { guid, opcode, version } => {
                let name = match (guid, opcode) {
                    (EVENT_METADATA | PERF_TRACK_METADATA, 32) => "EventInfo".to_owned(),
                    (EVENT_METADATA | PERF_TRACK_METADATA, 33) => "EventMapInfo".to_owned(),
                    _ => format!("Opcode({opcode})"),
                };
                Raw { provider: name_of(guid), guid: Some(guid), name, opcode, id: 0, version }
            }
            EventKey::Event { provider, id, version, opcode, .. } => Raw {
                provider: name_of(provider),
                guid: Some(provider),
                name: raw_event_name(id, task, opcode),
                opcode,
                id,
                version: u16::from(version),
            },
            EventKey::TraceLogging { provider, opcode, ref item, ref traits } => {
                let traits = traits.as_deref().and_then(tracelogging::provider_traits);
                Raw {
                    provider: traits.map_or_else(|| name_of(provider), |(name, _)| name.into()),
                    guid: Some(provider),
                    name: tracelogging::event_name(item).unwrap_or_default(),
                    opcode,
                    ..nothing
                }
            }
            EventKey::Wpp { guid, number } => Raw {
                provider: name_of(guid),
                guid: Some(guid),
                name: format!("Message({number})"),
                id: number,
                ..nothing
            },
            EventKey::WppComponent { component, number } => Raw {
                provider: component.map_or_else(|| "WPP".into(), |c| format!("WPP component {c:#x}").into()),
                name: format!("Message({number})"),
                id: number,
                ..nothing
            },
            EventKey::Unknown { header } => {
                Raw { provider: "unknown".into(), name: format!("{} record", header.name()), ..nothing }
            }
            EventKey::Other => Raw { provider: "other".into(), name: "not told apart".to_owned(), ..nothing },
        }
    }
}

/// Names an event by its numbers: the id, or task and opcode for providers that use no ids.
fn raw_event_name(id: u16, task: u16, opcode: u8) -> String {
    if id != 0 || (task == 0 && opcode == 0) {
        return format!("EventID({id})");
    }
    match standard_opcode(opcode) {
        "" => format!("Task({task})/Opcode({opcode})"),
        "Info" => format!("Task({task})"),
        name => format!("Task({task})/{name}"),
    }
}
