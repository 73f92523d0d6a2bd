//! What the machine is.

use std::io;
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Foundation::CloseHandle;
use windows_sys::Win32::Security::{GetTokenInformation, TOKEN_ELEVATION, TOKEN_QUERY, TokenElevation};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess, OpenProcessToken,
};

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

/// Logical processors of all groups.
pub fn processors() -> u32 {
    // SAFETY: it takes a number.
    unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }.max(1)
}

/// Whether this process has the rights of an administrator.
///
/// # Errors
/// The system's.
pub fn is_elevated() -> io::Result<bool> {
    let mut token = std::ptr::null_mut();
    // SAFETY: the handle of this process needs no closing; the target lives until after the call.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut elevation, mut used) = (TOKEN_ELEVATION::default(), 0);
    // SAFETY: the token is open and closed once; the structure has the size that is told.
    let done = unsafe {
        let size = size_of::<TOKEN_ELEVATION>() as u32;
        let target = (&raw mut elevation).cast();
        let done = GetTokenInformation(token, TokenElevation, target, size, &mut used);
        CloseHandle(token);
        done
    };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(elevation.TokenIsElevated != 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_processors_and_rights_are_known() {
        assert!((1..=4096).contains(&processors()));
        assert!(is_elevated().is_ok());
    }

    #[test]
    fn it_has_a_version_and_memory() {
        let (major, _, build) = version().unwrap();
        assert!(major >= 6 && build >= 7600, "{major} {build}");
        assert!((64 << 20..1 << 50).contains(&memory_bytes().unwrap()));
    }
}
