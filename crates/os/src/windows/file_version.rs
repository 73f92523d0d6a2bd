//! Version resources of files.

use super::wide;
use std::io;
use std::path::Path;
use windows_sys::Win32::Storage::FileSystem::{GetFileVersionInfoSizeW, GetFileVersionInfoW};

/// Resources of programs have some KB.
const MOST_BYTES: u32 = 1 << 20;

/// `VS_FIXEDFILEINFO.dwSignature` (verrsrc.h).
const SIGNATURE: [u8; 4] = 0xFEEF_04BD_u32.to_le_bytes();

/// The version of a program, library or driver: `4.18.24090.11`. `None` if it says none.
///
/// # Errors
/// The system's.
pub fn of(file: &Path) -> io::Result<Option<String>> {
    let file = wide(file)?;
    // SAFETY: the name ends with a zero; the second target may be absent.
    let size = unsafe { GetFileVersionInfoSizeW(file.as_ptr(), std::ptr::null_mut()) };
    if size == 0 {
        return Err(io::Error::last_os_error());
    }
    let mut bytes = vec![0_u8; size.min(MOST_BYTES) as usize];
    // SAFETY: the name ends with a zero; the buffer has as many bytes as are said.
    let done =
        unsafe { GetFileVersionInfoW(file.as_ptr(), 0, bytes.len() as u32, bytes.as_mut_ptr().cast()) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fixed(&bytes))
}

/// The file's version in a block: `VS_FIXEDFILEINFO` follows the key `VS_VERSION_INFO`, so it is near the start.
fn fixed(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..bytes.len().min(256))?;
    let at = head.windows(4).position(|four| four == SIGNATURE)?;
    let word = |n: usize| bytes.get(at + n..at + n + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    // dwSignature, dwStrucVersion, dwFileVersionMS, dwFileVersionLS.
    Some(format!("{}.{}.{}.{}", word(10)?, word(8)?, word(14)?, word(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_part_is_found() {
        let mut block = vec![0x5C, 0, 0x34, 0, 0, 0];
        block.extend("VS_VERSION_INFO\0".encode_utf16().flat_map(u16::to_le_bytes));
        block.extend([0, 0]);
        block.extend(SIGNATURE);
        block.extend(0x1_0000_u32.to_le_bytes());
        block.extend(0x0004_0012_u32.to_le_bytes());
        block.extend(0x5E1A_000B_u32.to_le_bytes());
        assert_eq!(fixed(&block).unwrap(), "4.18.24090.11");
        for cut in 0..block.len() {
            assert_eq!(fixed(&block[..cut]), None);
        }
        assert!(of(Path::new("C:\\no such file")).is_err());
    }
}
