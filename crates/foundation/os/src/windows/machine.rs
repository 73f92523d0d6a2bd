//! What the machine is.

use std::io;
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW};

/// Version of Windows as the kernel has it: major, minor, build. Unlike `GetVersionEx` it does not depend on a manifest.
pub fn version() -> Option<(u32, u32, u32)> {
    let mut info =
        OSVERSIONINFOW { dwOSVersionInfoSize: size_of::<OSVERSIONINFOW>() as u32, ..Default::default() };
    // SAFETY: the structure says its own size.
    let status = unsafe { RtlGetVersion(&mut info) };
    (status >= 0).then_some((info.dwMajorVersion, info.dwMinorVersion, info.dwBuildNumber))
}

/// Physical memory, bytes.
///
/// # Errors
/// The system's.
pub fn memory_bytes() -> io::Result<u64> {
    let mut status = MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: the structure says its own size.
    if unsafe { GlobalMemoryStatusEx(&mut status) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(status.ullTotalPhys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_a_version_and_memory() {
        let (major, _, build) = version().unwrap();
        assert!(major >= 6 && build >= 7600, "{major} {build}");
        assert!((64 << 20..1 << 50).contains(&memory_bytes().unwrap()));
    }
}
