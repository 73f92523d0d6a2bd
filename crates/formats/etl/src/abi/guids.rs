//! Class and provider GUIDs that the format itself gives a meaning.

use etwhy_base::Guid;

/// Image identity records added by merging (`KernelTraceControl` ImageID).
pub const IMAGE_ID: Guid = Guid::from_text("b3e675d7-2554-4f18-830b-2762732560de");
/// System paths, volumes and build added by merging (`SystemConfigEx`).
pub const SYSTEM_CONFIG_EX: Guid = Guid::from_text("9b79ee91-b5fd-41c0-a243-4248e266e9d0");
/// Event metadata added by merging: TRACE_EVENT_INFO and maps.
pub const EVENT_METADATA: Guid = Guid::from_text("bbccf6c1-6cd1-48c4-80ff-839482e37671");
/// PerfTrack's twin of [`EVENT_METADATA`].
pub const PERF_TRACK_METADATA: Guid = Guid::from_text("bf6ef1cb-89b5-0490-80ac-b180cfbcff0f");
/// WinSAT results as compressed XML.
pub const WIN_SAT: Guid = Guid::from_text("ed54dff8-c409-4cf6-bf83-05e1e61a09c4");
/// Microsoft-Windows-Kernel-EventTracing: its event 18 brings the user half of split stacks.
pub const KERNEL_EVENT_TRACING: Guid = Guid::from_text("b675ec37-bdb6-4648-bc92-f3fdc74d3ca2");
/// Lost events of real-time sessions.
pub const RT_LOST_EVENT: Guid = Guid::from_text("6a399ae0-4bc6-4de9-870b-3657f8947e7e");
/// `EventTraceGuid`: group 0.
pub const EVENT_TRACE: Guid = Guid::from_text("68fdd900-4a3e-11d1-84f4-0000f80464e3");
/// Classes whose records merging adds, or the session writes of itself: ids in their headers are not those of a thread at work.
pub const WRITTEN_BY_MERGE: [Guid; 7] =
    [IMAGE_ID, SYSTEM_CONFIG_EX, EVENT_METADATA, PERF_TRACK_METADATA, WIN_SAT, RT_LOST_EVENT, EVENT_TRACE];
