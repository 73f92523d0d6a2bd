//! Names of `NTSTATUS` values and Win32 error codes.

use std::sync::LazyLock;

use crate::table::rows;

type Codes = Vec<(u32, &'static str)>;

static NTSTATUS: LazyLock<Codes> = LazyLock::new(|| codes(include_str!("../data/ntstatus.tsv")));
static WIN32: LazyLock<Codes> = LazyLock::new(|| codes(include_str!("../data/win32_errors.tsv")));

/// Rows of hexadecimal code and name, sorted by code.
fn codes(text: &'static str) -> Codes {
    rows(text).filter_map(|[code, name]| Some((u32::from_str_radix(code, 16).ok()?, name))).collect()
}

fn find(codes: &Codes, code: u32) -> Option<&'static str> {
    let at = codes.binary_search_by_key(&code, |(c, _)| *c).ok()?;
    codes.get(at).map(|(_, name)| *name)
}

/// All `NTSTATUS` codes with their names, sorted by code.
pub fn ntstatus_codes() -> &'static [(u32, &'static str)] {
    &NTSTATUS
}

/// All Win32 error codes with their names, sorted by code.
pub fn win32_error_codes() -> &'static [(u32, &'static str)] {
    &WIN32
}

/// The symbolic name of an `NTSTATUS`, e.g. `STATUS_ACCESS_DENIED` for 0xC0000022.
pub fn ntstatus_name(status: u32) -> Option<&'static str> {
    find(&NTSTATUS, status)
}

/// The symbolic name of a Win32 error code, e.g. `ERROR_ACCESS_DENIED` for 5.
pub fn win32_error_name(code: u32) -> Option<&'static str> {
    find(&WIN32, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_file_and_registry_events_carry() {
        let known = [
            (0, "STATUS_SUCCESS"),
            (0x103, "STATUS_PENDING"),
            (0x80, "STATUS_ABANDONED"),
            (0x8000_0005, "STATUS_BUFFER_OVERFLOW"),
            (0x8000_0006, "STATUS_NO_MORE_FILES"),
            (0x8000_001A, "STATUS_NO_MORE_ENTRIES"),
            (0xC000_0005, "STATUS_ACCESS_VIOLATION"),
            (0xC000_0011, "STATUS_END_OF_FILE"),
            (0xC000_0022, "STATUS_ACCESS_DENIED"),
            (0xC000_0034, "STATUS_OBJECT_NAME_NOT_FOUND"),
            (0xC000_003A, "STATUS_OBJECT_PATH_NOT_FOUND"),
            (0xC000_0043, "STATUS_SHARING_VIOLATION"),
            (0xC000_0055, "STATUS_LOCK_NOT_GRANTED"),
            (0xC000_009A, "STATUS_INSUFFICIENT_RESOURCES"),
            (0xC000_0120, "STATUS_CANCELLED"),
            (0xC01C_0004, "STATUS_FLT_DISALLOW_FAST_IO"),
            (0x4001_0006, "DBG_PRINTEXCEPTION_C"),
        ];
        for (code, name) in known {
            assert_eq!(ntstatus_name(code), Some(name), "{code:#x}");
        }
        assert_eq!(ntstatus_name(0xFFFF_FFFF), None);
        assert_eq!(win32_error_name(5), Some("ERROR_ACCESS_DENIED"));
        assert_eq!(win32_error_name(32), Some("ERROR_SHARING_VIOLATION"));
        assert_eq!(win32_error_name(u32::MAX), None);
    }

    #[test]
    fn the_tables_are_whole_and_sorted() {
        for (codes, text) in [
            (&*NTSTATUS, include_str!("../data/ntstatus.tsv")),
            (&*WIN32, include_str!("../data/win32_errors.tsv")),
        ] {
            assert_eq!(codes.len() + 1, text.lines().count());
            assert!(codes.is_sorted_by(|a, b| a.0 < b.0));
        }
    }
}
