//! Waits for changes in a folder (`ReadDirectoryChangesW`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_LIST_DIRECTORY, FILE_NOTIFY_CHANGE_FILE_NAME,
    FILE_NOTIFY_CHANGE_LAST_WRITE, ReadDirectoryChangesW,
};

/// A folder whose changes are waited for.
#[derive(Debug)]
pub struct Folder(File);

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path) -> io::Result<Folder> {
        OpenOptions::new()
            .access_mode(FILE_LIST_DIRECTORY)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
            .open(path)
            .map(Folder)
    }

    /// Waits until a name or a file in the folder changes, and fills the buffer with what the system tells. Gives the bytes; 0 if
    /// more has changed than the buffer holds. The system keeps a buffer of that size from the first call on.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&self, buffer: &mut [u32]) -> io::Result<u32> {
        let bytes = u32::try_from(std::mem::size_of_val(buffer)).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut filled = 0_u32;
        // SAFETY: the buffer is aligned to four bytes as the function wants and has the length that is told; the handle was not
        // opened for overlapped use, so the call has ended with all of its writing when it returns.
        let done = unsafe {
            ReadDirectoryChangesW(
                self.0.as_raw_handle().cast(),
                buffer.as_mut_ptr().cast(),
                bytes,
                0,
                FILE_NOTIFY_CHANGE_FILE_NAME | FILE_NOTIFY_CHANGE_LAST_WRITE,
                &raw mut filled,
                std::ptr::null_mut(),
                None,
            )
        };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(filled) }
    }
}
