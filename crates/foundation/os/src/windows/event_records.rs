//! Event logs through the API of Windows NT (`ReadEventLog`).

use super::wide;
use std::io;
use std::ptr::null;
use windows_sys::Win32::Foundation::{ERROR_HANDLE_EOF, HANDLE};
use windows_sys::Win32::System::EventLog::{
    CloseEventLog, GetNumberOfEventLogRecords, OpenEventLogW, ReadEventLogW,
};

/// `EVENTLOG_SEQUENTIAL_READ | EVENTLOG_FORWARDS_READ` (winnt.h).
const FORWARDS: u32 = 1 | 4;

/// Size of the buffer that records are read into: the largest record (documentation of `ReadEventLog`).
pub const BUFFER: usize = 0x7FFFF;

/// An open log; it is closed with its owner.
#[derive(Debug)]
pub struct OldLog(HANDLE);

impl OldLog {
    /// Opens a log of this machine: `System`. Windows opens `Application` if there is none of that name.
    ///
    /// # Errors
    /// The system's.
    pub fn open(name: &str) -> io::Result<OldLog> {
        let name = wide(name)?;
        // SAFETY: the name ends with a zero; no machine means this one; null is checked.
        let handle = unsafe { OpenEventLogW(null(), name.as_ptr()) };
        if handle.is_null() { Err(io::Error::last_os_error()) } else { Ok(OldLog(handle)) }
    }

    /// How many records it has.
    ///
    /// # Errors
    /// The system's.
    pub fn records(&self) -> io::Result<u32> {
        let mut number = 0;
        // SAFETY: the handle is open; the target lives until after the call.
        let done = unsafe { GetNumberOfEventLogRecords(self.0, &mut number) };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
    }

    /// Reads the next records into `buffer`, and gives how many there are; 0 at the end.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<u64> {
        let size = u32::try_from(buffer.len().min(BUFFER)).unwrap_or(0);
        let (mut used, mut needed) = (0, 0);
        // SAFETY: the handle is open; the buffer has `size` bytes; the targets live until after the call.
        let done = unsafe {
            ReadEventLogW(self.0, FORWARDS, 0, buffer.as_mut_ptr().cast(), size, &mut used, &mut needed)
        };
        if done == 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(ERROR_HANDLE_EOF as i32) { Ok(0) } else { Err(error) };
        }
        Ok(count(buffer.get(..used as usize).unwrap_or(&[])))
    }
}

impl Drop for OldLog {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used afterwards.
        unsafe { CloseEventLog(self.0) };
    }
}

/// Records of a buffer: `EVENTLOGRECORD` begins with its length.
fn count(mut bytes: &[u8]) -> u64 {
    let mut records = 0;
    while let Some(&[a, b, c, d]) = bytes.first_chunk::<4>() {
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        // The fixed part has 56 bytes.
        let Some(rest) = bytes.get(len..).filter(|_| len >= 56) else { break };
        records += 1;
        bytes = rest;
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_by_their_lengths() {
        let record = |len: u32| {
            let mut bytes = len.to_le_bytes().to_vec();
            bytes.resize(len as usize, 0);
            bytes
        };
        let bytes = [record(56), record(120)].concat();
        assert_eq!(count(&bytes), 2);
        assert_eq!(count(&bytes[..100]), 1);
        assert_eq!((count(&[]), count(&[0; 100]), count(&[0xFF; 100])), (0, 0, 0));
    }
}
