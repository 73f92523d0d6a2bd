//! Version resources of files.

use super::{narrow, wide};
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
pub fn read(file: &Path) -> io::Result<Option<String>> {
    block(file).map(|bytes| fixed(&bytes))
}

/// Who made it, as its maker says (`CompanyName`). `None` if it says nothing.
///
/// # Errors
/// The system's; a file without a version resource is one.
pub fn company(file: &Path) -> io::Result<Option<String>> {
    block(file).map(|bytes| text(&bytes, "CompanyName"))
}

fn block(file: &Path) -> io::Result<Vec<u8>> {
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
    Ok(bytes)
}

/// The file's version in a block: `VS_FIXEDFILEINFO` follows the key `VS_VERSION_INFO`, so it is near the start.
fn fixed(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..bytes.len().min(256))?;
    let at = head.windows(4).position(|four| four == SIGNATURE)?;
    let word = |n: usize| bytes.get(at + n..at + n + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    // dwSignature, dwStrucVersion, dwFileVersionMS, dwFileVersionLS.
    Some(format!("{}.{}.{}.{}", word(10)?, word(8)?, word(14)?, word(12)?))
}

/// A text of a block, by its key: it follows the key and its zero, at an offset of four bytes (`String`, verrsrc.h).
fn text(bytes: &[u8], key: &str) -> Option<String> {
    let key: Vec<u8> = key.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    let at = bytes.windows(key.len()).step_by(2).position(|window| window == key.as_slice())?;
    let start = at.saturating_mul(2).saturating_add(key.len()).next_multiple_of(4);
    let units = bytes.get(start..)?.as_chunks().0.iter().take(256).map(|two| u16::from_le_bytes(*two));
    let text = narrow(&units.collect::<Vec<u16>>());
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_their_key() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        // The key stands at an offset that is odd in units of four bytes, as `wLength, wValueLength, wType` leave it.
        for (pad, zeros) in [(6, 2), (8, 0)] {
            let mut block = vec![0; pad];
            block.extend(utf16("CompanyName\0"));
            block.extend(vec![0; zeros]);
            block.extend(utf16("Fabrikam Inc.\0\0"));
            assert_eq!(text(&block, "CompanyName").as_deref(), Some("Fabrikam Inc."), "{pad}");
            assert_eq!(text(&block, "FileDescription"), None);
            for cut in 0..block.len() {
                let _ = text(&block[..cut], "CompanyName");
            }
        }
    }

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
        assert!(read(Path::new("C:\\no such file")).is_err());
    }
}
