//! What can go wrong while files are opened without stopping the work.

use etwhy_etl::{Anomaly, Severity, Stage};

/// A packed trace ended in damage; the part in front of it is used.
pub static ARCHIVE_DAMAGED: Anomaly = Anomaly {
    name: "archive_damaged",
    severity: Severity::DataLoss,
    stage: Stage::Input,
    meaning: "a packed trace could be unpacked only in part: what stood behind the damage is missing",
};

/// The list of contents of a zip archive was missing or wrong, so its members were searched for.
pub static ARCHIVE_WITHOUT_DIRECTORY: Anomaly = Anomaly {
    name: "archive_without_directory",
    severity: Severity::DataLoss,
    stage: Stage::Input,
    meaning: "the archive's list of contents is missing (truncated copy?): traces were searched for, some may be missing",
};

/// An archive inside an archive inside an archive was left alone.
pub static ARCHIVE_NESTED_TOO_DEEP: Anomaly = Anomaly {
    name: "archive_nested_too_deep",
    severity: Severity::Warning,
    stage: Stage::Input,
    meaning: "an archive nested more than one level deep was not opened: unpack it by hand if it holds a trace",
};

/// A member that looks like a trace could not be read because it is encrypted.
pub static ARCHIVE_MEMBER_ENCRYPTED: Anomaly = Anomaly {
    name: "archive_member_encrypted",
    severity: Severity::DataLoss,
    stage: Stage::Input,
    meaning: "a member of an archive is encrypted and was left out",
};

/// A member uses a compression method that this program does not have.
pub static ARCHIVE_MEMBER_UNSUPPORTED: Anomaly = Anomaly {
    name: "archive_member_unsupported",
    severity: Severity::DataLoss,
    stage: Stage::Input,
    meaning: "a member of an archive is packed with a method that is not supported and was left out",
};

/// A member named `.etl` does not start like a trace; the reader decides.
pub static MEMBER_UNLIKE_A_TRACE: Anomaly = Anomaly {
    name: "member_unlike_a_trace",
    severity: Severity::Warning,
    stage: Stage::Input,
    meaning: "a member named .etl is empty or does not start like a trace and was left out",
};

/// A file under a `symbols/` folder of a package did not fit the layout of a symbol store.
pub static PACKED_SYMBOL_SKIPPED: Anomaly = Anomaly {
    name: "packed_symbol_skipped",
    severity: Severity::Info,
    stage: Stage::Input,
    meaning: "a symbol file in an archive is not laid out as name.pdb/GUIDAGE/name.sym and was not unpacked",
};

/// An empty or foreign file named `.etl` stood in a folder.
pub static SEGMENT_SKIPPED: Anomaly = Anomaly {
    name: "segment_skipped",
    severity: Severity::Warning,
    stage: Stage::Input,
    meaning: "a file named .etl in the folder is empty or something else and was left out",
};
