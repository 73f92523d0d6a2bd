//! Extended items on disk: u16 size (whole item, multiple of 8), u16 type, u16 linkage (bit 0: another
//! item follows), u16 data size, data, padding. This is not the structure that the API shows.

/// GUID of the related activity.
pub const RELATED_ACTIVITYID: u16 = 1;
/// SID of the user.
pub const SID: u16 = 2;
/// u32 terminal session id.
pub const TS_ID: u16 = 3;
/// u32 id, u32 parent id, GUID of the parent.
pub const INSTANCE_INFO: u16 = 4;
/// u64 match id, then u32 frames.
pub const STACK_TRACE32: u16 = 5;
/// u64 match id, then u64 frames.
pub const STACK_TRACE64: u16 = 6;
/// u64.
pub const PEBS_INDEX: u16 = 7;
/// u64 values.
pub const PMC_COUNTERS: u16 = 8;
/// u64.
pub const PSM_KEY: u16 = 9;
/// u64.
pub const EVENT_KEY: u16 = 10;
/// TraceLogging: event name and fields.
pub const EVENT_SCHEMA_TL: u16 = 11;
/// Provider name and traits.
pub const PROV_TRAITS: u16 = 12;
/// u64.
pub const PROCESS_START_KEY: u16 = 13;
/// GUID.
pub const CONTROL_GUID: u16 = 14;
/// i64.
pub const QPC_DELTA: u16 = 15;
/// Container id.
pub const CONTAINER_ID: u16 = 16;
/// u64 match id, u32 key of a cached stack.
pub const STACK_KEY32: u16 = 17;
/// u64 match id, u64 key of a cached stack.
pub const STACK_KEY64: u16 = 18;

/// Field name of an item type, as shown in `dump event`.
pub fn name(kind: u16) -> Option<&'static str> {
    Some(match kind {
        RELATED_ACTIVITYID => "RelatedActivityId",
        SID => "Sid",
        TS_ID => "TsId",
        INSTANCE_INFO => "InstanceInfo",
        STACK_TRACE32 => "StackTrace32",
        STACK_TRACE64 => "StackTrace64",
        PEBS_INDEX => "PebsIndex",
        PMC_COUNTERS => "PmcCounters",
        PSM_KEY => "PsmKey",
        EVENT_KEY => "EventKey",
        EVENT_SCHEMA_TL => "EventSchemaTl",
        PROV_TRAITS => "ProvTraits",
        PROCESS_START_KEY => "ProcessStartKey",
        CONTROL_GUID => "ControlGuid",
        QPC_DELTA => "QpcDelta",
        CONTAINER_ID => "ContainerId",
        STACK_KEY32 => "StackKey32",
        STACK_KEY64 => "StackKey64",
        _ => return None,
    })
}
