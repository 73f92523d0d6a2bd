//! What can go wrong while tables are built.

use etwhy_etl::Severity::{DataLoss, Error, Info, Warning};
use etwhy_etl::{Anomaly, Severity, Stage};

const fn analysis(name: &'static str, severity: Severity, meaning: &'static str) -> Anomaly {
    Anomaly { name, severity, stage: Stage::Analysis, meaning }
}

/// Payloads shorter than their layout.
pub static PAYLOAD_TOO_SHORT: Anomaly = Anomaly {
    name: "payload_too_short",
    severity: Error,
    stage: Stage::Decode,
    meaning: "Events whose payload ends before the fields that are needed: they are counted, but missing in their table.",
};
/// Event types without a schema.
pub static EVENT_TYPES_UNDECODED: Anomaly = Anomaly {
    name: "event_types_undecoded",
    severity: Info,
    stage: Stage::Decode,
    meaning: "Kinds of events that nothing describes: counted and dumped raw. A folder of manifests (--manifests) or .tmf files (--tmf) may help.",
};
/// Stack keys nobody defined.
pub static STACK_KEYS_UNDEFINED: Anomaly = analysis(
    "stack_keys_undefined",
    DataLoss,
    "Stack references whose stack was never written (the trace ended before its rundown): these stacks are unknown.",
);
/// Stacks of events outside the window.
pub static STACKS_LATE: Anomaly = analysis(
    "stacks_too_late",
    DataLoss,
    "User halves of stacks that came more than ten seconds after their event: these stacks lack their user half.",
);
/// Samples without a stack.
pub static SAMPLES_WITHOUT_STACK: Anomaly = analysis(
    "samples_without_stack",
    Info,
    "CPU samples (idle ones not counted) without a stack: they count for processes and modules, not in stacks.",
);
/// Default sampling interval used.
pub static SAMPLE_INTERVAL_ASSUMED: Anomaly = analysis(
    "sample_interval_assumed",
    Warning,
    "The trace does not say how often it sampled; 1 ms was assumed, which scales all CPU times.",
);
/// Threads without process.
pub static THREADS_WITHOUT_PROCESS: Anomaly = analysis(
    "threads_without_process",
    Warning,
    "Threads whose process nobody named (no start, no rundown): shown under the process [unknown].",
);
/// Processes without name.
pub static PROCESSES_WITHOUT_NAME: Anomaly = analysis(
    "processes_without_name",
    Info,
    "Processes known by their id only: neither start nor rundown of them was recorded.",
);
/// Frames outside images.
pub static FRAMES_WITHOUT_IMAGE: Anomaly = analysis(
    "frames_without_image",
    Info,
    "Distinct stack addresses that lie in no known image and no known .NET method (generated code, or rundown missing).",
);
/// Symbol files that do not fit.
pub static SYMBOLS_MISMATCHED: Anomaly = Anomaly {
    name: "symbols_mismatched",
    severity: Warning,
    stage: Stage::Symbols,
    meaning: "Symbol files found under an image's name but of another build: not used.",
};
/// Symbol files that cannot be read.
pub static SYMBOLS_UNREADABLE: Anomaly = Anomaly {
    name: "symbols_unreadable",
    severity: Warning,
    stage: Stage::Symbols,
    meaning: "Symbol files that could not be read.",
};
/// Compact context switches.
pub static ROWS_DROPPED: Anomaly =
    analysis("rows_dropped", DataLoss, "Rows beyond what a table can number (2^31): not kept.");
