//! Where a folder lies.

use super::{narrow, wide};
use std::io;
use std::path::Path;
use std::ptr::null_mut;
use windows_sys::Win32::Storage::FileSystem::{
    GetDiskFreeSpaceExW, GetDriveTypeW, GetLogicalDrives, GetVolumeInformationW, GetVolumePathNameW,
    QueryDosDeviceW,
};

/// Free bytes for this user (quotas count) in the volume of a folder.
///
/// # Errors
/// The system's.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let folder = wide(folder)?;
    let mut free = 0;
    // SAFETY: the name ends with a zero; the one target lives until after the call, the others may be absent.
    let done = unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &mut free, null_mut(), null_mut()) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(free)
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Where it is mounted: `C:\`.
    pub root: String,
    /// `NTFS`, `ReFS`, `FAT32`.
    pub file_system: String,
    /// `fixed`, `removable`, `remote`, `optical`, `memory` or empty.
    pub kind: &'static str,
}

/// The volume of a file or folder.
///
/// # Errors
/// The system's.
pub fn volume(path: &Path) -> io::Result<Volume> {
    let path = wide(path)?;
    // A mount point is at most as long as its path.
    let mut root = vec![0u16; path.len().saturating_add(8)];
    let size = u32::try_from(root.len()).unwrap_or(u32::MAX);
    // SAFETY: the name ends with a zero; the buffer has `size` units.
    if unsafe { GetVolumePathNameW(path.as_ptr(), root.as_mut_ptr(), size) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let mut name = [0u16; 64];
    // SAFETY: `root` ends with a zero, since the call succeeded; the buffer has 64 units; the others may be absent.
    let done = unsafe {
        let nothing = null_mut();
        GetVolumeInformationW(
            root.as_ptr(),
            nothing,
            0,
            null_mut(),
            null_mut(),
            null_mut(),
            name.as_mut_ptr(),
            64,
        )
    };
    let file_system = if done == 0 { String::new() } else { narrow(&name) };
    let root = narrow(&root);
    let kind = kind(&root);
    Ok(Volume { root, file_system, kind })
}

/// What a root stands for.
fn kind(root: &str) -> &'static str {
    let Ok(root) = wide(root) else { return "" };
    // SAFETY: `root` ends with a zero.
    match unsafe { GetDriveTypeW(root.as_ptr()) } {
        // winbase.h: DRIVE_REMOVABLE, _FIXED, _REMOTE, _CDROM, _RAMDISK.
        2 => "removable",
        3 => "fixed",
        4 => "remote",
        5 => "optical",
        6 => "memory",
        _ => "",
    }
}

/// A letter, and what the kernel calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// `C:\`.
    pub root: String,
    /// `\Device\HarddiskVolume3`.
    pub device: String,
    /// As [`Volume::kind`].
    pub kind: &'static str,
}

/// All letters of this session.
pub fn letters() -> Vec<Letter> {
    // SAFETY: it takes nothing.
    let there = unsafe { GetLogicalDrives() };
    let letters = (b'A'..=b'Z').zip(0..).filter(|(_, bit)| there >> bit & 1 == 1);
    letters.filter_map(|(letter, _)| self::letter(char::from(letter))).collect()
}

/// One of them; none if it has gone.
fn letter(letter: char) -> Option<Letter> {
    let name = wide(format!("{letter}:")).ok()?;
    let mut device = [0_u16; 1024];
    // SAFETY: the name ends with a zero; the buffer has as many units as are told.
    let used = unsafe { QueryDosDeviceW(name.as_ptr(), device.as_mut_ptr(), device.len() as u32) };
    let device = narrow(device.get(..used as usize)?);
    let root = format!("{letter}:\\");
    let kind = kind(&root);
    (!device.is_empty()).then_some(Letter { root, device, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_a_volume_with_room() {
        let folder = std::env::temp_dir();
        let free = free_bytes(&folder).unwrap();
        assert!((1 << 20..1 << 60).contains(&free), "{free}");
        let volume = volume(&folder).unwrap();
        assert!(volume.root.ends_with('\\') && !volume.kind.is_empty(), "{volume:?}");
        assert!(free_bytes(Path::new("Q:\\no\\such")).is_err());
        let letters = letters();
        let own = letters.iter().find(|letter| letter.root.eq_ignore_ascii_case(&volume.root)).unwrap();
        assert!(own.device.starts_with('\\') && own.kind == volume.kind, "{letters:?}");
    }
}
