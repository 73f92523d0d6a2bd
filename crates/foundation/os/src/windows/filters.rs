//! Drivers that see every file: minifilters and legacy filters, with their altitudes.

use super::library::Library;
use std::ffi::c_void;
use std::io;
use windows_sys::Win32::Foundation::HANDLE;

/// A filter driver that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Its name: `WdFilter`.
    pub name: String,
    /// Its place between the file system and programs: `328010`; empty for legacy filters of old systems.
    pub altitude: String,
    /// Volumes that it is attached to; absent for legacy filters.
    pub instances: Option<u32>,
}

/// `FilterAggregateStandardInformation` of fltuserstructures.h.
const AGGREGATE_STANDARD: i32 = 2;
/// `HRESULT_FROM_WIN32(ERROR_NO_MORE_ITEMS)`.
const NO_MORE: i32 = 0x8007_0103_u32 as i32;
/// Filters of one machine: some dozens.
const MOST: usize = 4096;

type First = unsafe extern "system" fn(i32, *mut c_void, u32, *mut u32, *mut HANDLE) -> i32;
type Next = unsafe extern "system" fn(HANDLE, i32, *mut c_void, u32, *mut u32) -> i32;
type Close = unsafe extern "system" fn(HANDLE) -> i32;

/// Filters that are loaded. Only administrators may ask.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] for everybody else, [`io::ErrorKind::Unsupported`] where there is no filter manager.
pub fn loaded() -> io::Result<Vec<Filter>> {
    let library = Library::of_system("fltlib.dll")?;
    // SAFETY: these are the documented types of the three functions (fltuser.h); `library` outlives their calls.
    let (first, next, close): (First, Next, Close) = unsafe {
        (
            library.typed("FilterFindFirst")?,
            library.typed("FilterFindNext")?,
            library.typed("FilterFindClose")?,
        )
    };
    // Names and altitudes have at most 255 characters each.
    let mut buffer = vec![0_u64; 512];
    let size = (buffer.len() * 8) as u32;
    let (mut used, mut search) = (0, std::ptr::null_mut());
    let mut filters = Vec::new();
    // SAFETY: the buffer has `size` bytes; the targets live until after the call.
    let mut status =
        unsafe { first(AGGREGATE_STANDARD, buffer.as_mut_ptr().cast(), size, &mut used, &mut search) };
    let opened = status >= 0;
    while status >= 0 && filters.len() < MOST {
        let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_le_bytes()).collect();
        filters.extend(entries(bytes.get(..used as usize).unwrap_or(&bytes)));
        // SAFETY: as above; the search is open.
        status = unsafe { next(search, AGGREGATE_STANDARD, buffer.as_mut_ptr().cast(), size, &mut used) };
    }
    if opened {
        // SAFETY: the search is open and not used afterwards.
        unsafe { close(search) };
    }
    if status < 0 && status != NO_MORE {
        // An HRESULT of a Win32 error has its number in the lower half.
        let error = if status as u32 >> 16 == 0x8007 { status & 0xFFFF } else { status };
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(filters)
}

/// Entries of a buffer: `FILTER_AGGREGATE_STANDARD_INFORMATION`, chained by offsets.
fn entries(bytes: &[u8]) -> Vec<Filter> {
    let number = |at: usize, len: usize| -> usize {
        let part = bytes.get(at..at.saturating_add(len)).unwrap_or(&[]);
        part.iter().rev().fold(0, |sum, &byte| (sum << 8) | usize::from(byte))
    };
    let mut filters = Vec::new();
    let mut at = 0_usize;
    while filters.len() < MOST && bytes.len().saturating_sub(at) >= 20 {
        let text = |len_at: usize| {
            let start = at.saturating_add(number(len_at + 2, 2));
            let part = bytes.get(start..start.saturating_add(number(len_at, 2))).unwrap_or(&[]);
            let units: Vec<u16> = part.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
            super::narrow(&units)
        };
        // NextEntryOffset, Flags; then of minifilters Flags, FrameID, NumberOfInstances, of legacy filters Flags; then
        // length and offset of the name and of the altitude. 1 is FLTFL_ASI_IS_MINIFILTER.
        let is_mini = number(at + 4, 4) & 1 != 0;
        let name_at = if is_mini { at + 20 } else { at + 12 };
        let filter = Filter {
            name: text(name_at),
            altitude: text(name_at + 4),
            instances: is_mini.then(|| number(at + 16, 4) as u32),
        };
        if !filter.name.is_empty() {
            filters.push(filter);
        }
        match number(at, 4) {
            0 => break,
            next => at = at.saturating_add(next),
        }
    }
    filters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry as the documentation of the structure lays it out.
    fn entry(next: u32, mini: bool, name: &str, altitude: &str) -> Vec<u8> {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let (name, altitude) = (wide(name), wide(altitude));
        let mut bytes = Vec::new();
        bytes.extend(next.to_le_bytes());
        bytes.extend(if mini { 1_u32 } else { 2 }.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        if mini {
            bytes.extend(0_u32.to_le_bytes());
            bytes.extend(3_u32.to_le_bytes());
        }
        let texts = bytes.len() + 8;
        for (text, at) in [(&name, texts), (&altitude, texts + name.len())] {
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend((at as u16).to_le_bytes());
        }
        bytes.extend(name);
        bytes.extend(altitude);
        bytes
    }

    #[test]
    fn both_kinds_are_read() {
        let last = entry(0, false, "oldfilter", "260000");
        let len = entry(0, true, "WdFilter", "328010").len() as u32;
        let bytes = [entry(len, true, "WdFilter", "328010"), last].concat();
        let filter = |name: &str, altitude: &str, instances| Filter {
            name: name.to_owned(),
            altitude: altitude.to_owned(),
            instances,
        };
        let expected = [filter("WdFilter", "328010", Some(3)), filter("oldfilter", "260000", None)];
        assert_eq!(entries(&bytes), expected);
        for cut in 0..bytes.len() {
            assert!(entries(&bytes[..cut]).len() <= 2);
        }
        assert!(entries(&[0xFF; 64]).is_empty());
    }

    #[test]
    fn the_system_answers_or_refuses() {
        match loaded() {
            Ok(filters) => assert!(filters.iter().all(|filter| !filter.name.is_empty())),
            Err(error) => println!("no list: {error}"),
        }
    }
}
