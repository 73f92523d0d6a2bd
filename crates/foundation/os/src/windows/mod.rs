//! What only Windows has: one file for each thing.
//!
//! # Contract
//!
//! Every function here is safe to call with anything. Handles are closed by the owner that a function gives back
//! ([`registry::Key`], [`event_log::Log`], [`window::Window`]) or before it returns. Buffers are ours and their length goes along. What Windows
//! hands over as pointers into such a buffer is copied out, after it was checked to lie inside. Libraries that are not
//! on every Windows, and functions that Wine ends a process for, are loaded when they are asked for ([`library`]).

pub mod changes;
pub mod counter;
pub mod disk;
pub mod etw;
pub mod event_log;
pub mod event_records;
pub mod file_version;
pub mod filters;
pub mod hot_key;
pub mod library;
pub mod machine;
pub mod modules;
pub mod processes;
pub mod registry;
pub mod services;
pub mod thread;
pub mod window;

use std::io;

/// Text as Windows wants it: UTF-16 with a final zero.
///
/// # Errors
/// If there is a zero in it, which would cut it short.
pub(crate) fn wide(text: impl AsRef<std::ffi::OsStr>) -> io::Result<Vec<u16>> {
    use std::os::windows::ffi::OsStrExt as _;
    let mut units: Vec<u16> = text.as_ref().encode_wide().collect();
    if units.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "text with a zero in it"));
    }
    units.push(0);
    Ok(units)
}

/// Text that Windows has put into a buffer, up to the first zero.
pub(crate) fn narrow(units: &[u16]) -> String {
    let end = units.iter().position(|&unit| unit == 0).unwrap_or(units.len());
    String::from_utf16_lossy(units.get(..end).unwrap_or(units))
}

/// Ticks of 100 ns (`FILETIME`) as nanoseconds.
pub(crate) fn filetime_ns(time: windows_sys::Win32::Foundation::FILETIME) -> u64 {
    ((u64::from(time.dwHighDateTime) << 32) | u64::from(time.dwLowDateTime)).saturating_mul(100)
}

/// The result of functions that give an error number themselves.
pub(crate) fn check(error: u32) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error as i32)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_both_ways() {
        let units = wide("Prüfung 🦀").unwrap();
        assert_eq!(units.last(), Some(&0));
        assert_eq!(narrow(&units), "Prüfung 🦀");
        assert!(wide("a\0b").is_err());
        assert_eq!(narrow(&[]), "");
    }
}
