//! Files of a session that was told to go on in another one.

use super::anomalies::SEGMENT_OF_SERIES;
use super::file::EtlFile;
use std::collections::BTreeMap;

/// Sessions of which the first file is not among these: it says who was there when the session began.
pub fn without_first_file(files: &[EtlFile]) -> u64 {
    let mut sessions: BTreeMap<_, bool> = BTreeMap::new();
    for file in files {
        let is_later = file.ledger().get(&SEGMENT_OF_SERIES) > 0;
        let header = file.header();
        *sessions.entry((header.start_time, header.session_name.as_str())).or_insert(true) &= is_later;
    }
    sessions.into_values().filter(|lacks| *lacks).count() as u64
}

/// Whether a file is a later one of such a session, by the name that its header states. `ControlTrace` changes the file and leaves the mode as it was, so
/// that nothing else tells it from a first one whose beginning is missing. The name is that of a rotating recording of etwhy:
/// `0000002a-kernel-1-002.etl`.
pub(super) fn goes_on(log_file: &str) -> bool {
    let name = log_file.rsplit(['\\', '/']).next().unwrap_or_default().to_ascii_lowercase();
    let mut parts = name.strip_suffix(".etl").unwrap_or_default().split('-');
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let recording =
        parts.next().is_some_and(|id| id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let kind = parts.next().is_some_and(|kind| matches!(kind, "kernel" | "user"));
    let session = parts.next().is_some_and(is_number);
    let number = parts.next().filter(|number| number.len() >= 3 && is_number(number));
    let later = number.and_then(|number| number.parse::<u64>().ok()).is_some_and(|number| number > 1);
    recording && kind && session && later && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_files_of_a_rotating_recording() {
        for name in ["D:\\traces\\0000002a-kernel-1-002.etl", "\\??\\C:\\x\\DEADBEEF-USER-3-1000.ETL"] {
            assert!(goes_on(name), "{name}");
        }
        for name in [
            "",
            "D:\\traces\\0000002a-kernel-1-001.etl",
            "D:\\traces\\0000002a-kernel-save-002.etl",
            "D:\\traces\\0000002a-names-1-002.etl",
            "D:\\traces\\trace_000002.etl",
            "D:\\traces\\0000002a-kernel-1-2.etl",
            "D:\\traces\\0000002a-kernel-1-002-x.etl",
            "0000002a-kernel-1-002",
        ] {
            assert!(!goes_on(name), "{name}");
        }
    }
}
