//! What can go wrong with the sources of meaning.

use etwhy_etl::{Anomaly, Severity, Stage};

/// An embedded or user-given manifest that is no readable XML.
pub static MANIFEST_BROKEN: Anomaly = Anomaly {
    name: "manifest_broken",
    severity: Severity::Warning,
    stage: Stage::Decode,
    meaning: "A manifest could not be read; events that only it describes are shown raw.",
};
/// A manifest above the limits of size or node count.
pub static MANIFEST_TOO_LARGE: Anomaly = Anomaly {
    name: "manifest_too_large",
    severity: Severity::Warning,
    stage: Stage::Decode,
    meaning: "A manifest is larger than this program reads; events that only it describes are shown raw.",
};
/// Pieces of an embedded manifest that never became a whole.
pub static MANIFEST_CHUNK_LOST: Anomaly = Anomaly {
    name: "manifest_chunk_lost",
    severity: Severity::Info,
    stage: Stage::Decode,
    meaning: "An EventSource manifest in the trace misses pieces; another copy of it may be whole.",
};
/// An embedded `TRACE_EVENT_INFO` or map that makes no sense.
pub static METADATA_BROKEN: Anomaly = Anomaly {
    name: "metadata_broken",
    severity: Severity::Warning,
    stage: Stage::Decode,
    meaning: "An embedded event description is damaged; the events that it describes may be shown raw.",
};
/// A TMF file that could not be read in full.
pub static TMF_BROKEN: Anomaly = Anomaly {
    name: "tmf_broken",
    severity: Severity::Warning,
    stage: Stage::Decode,
    meaning: "A TMF file, or a message in it, could not be read; its messages are shown raw.",
};
/// A folder or file given by the user that could not be opened.
pub static SOURCE_UNREADABLE: Anomaly = Anomaly {
    name: "decode_source_unreadable",
    severity: Severity::Warning,
    stage: Stage::Decode,
    meaning: "A file with event descriptions could not be opened; events that it describes are shown raw.",
};
/// More different event types than are kept apart.
pub static EVENT_TYPES_FULL: Anomaly = Anomaly {
    name: "event_types_full",
    severity: Severity::Warning,
    stage: Stage::Decode,
    meaning: "The trace has more event types than are kept apart; the others are counted as one.",
};
