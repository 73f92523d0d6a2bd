//! Services and drivers that run.

use std::io;
use std::ptr::null;
use windows_sys::Win32::Foundation::ERROR_MORE_DATA;
use windows_sys::Win32::System::Services::{
    CloseServiceHandle, ENUM_SERVICE_STATUS_PROCESSW, EnumServicesStatusExW, OpenSCManagerW,
    SC_ENUM_PROCESS_INFO, SC_MANAGER_ENUMERATE_SERVICE, SERVICE_ACTIVE, SERVICE_DRIVER, SERVICE_WIN32,
};

/// A service or driver that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Short name: `WinDefend`, `WdFilter`.
    pub name: String,
    /// What people see.
    pub title: String,
    /// Whether it is a driver.
    pub is_driver: bool,
    /// The process that it runs in; absent for drivers.
    pub process: Option<u32>,
}

/// Services that run, and drivers that are loaded as services. Needs no special rights.
///
/// # Errors
/// The system's.
pub fn running() -> io::Result<Vec<Service>> {
    // SAFETY: no names mean this machine and its list; null is checked.
    let manager = unsafe { OpenSCManagerW(null(), null(), SC_MANAGER_ENUMERATE_SERVICE) };
    if manager.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut all = Vec::new();
    let mut result = Ok(());
    for (types, is_driver) in [(SERVICE_WIN32, false), (SERVICE_DRIVER, true)] {
        result = result.and(list(manager, types, is_driver, &mut all));
    }
    // SAFETY: the handle is ours and not used afterwards.
    unsafe { CloseServiceHandle(manager) };
    result.map(|()| all)
}

/// Rounds of one list, each at most 256 KB: far more than machines have.
const MOST_ROUNDS: usize = 64;

fn list(
    manager: *mut std::ffi::c_void,
    types: u32,
    is_driver: bool,
    all: &mut Vec<Service>,
) -> io::Result<()> {
    const ENTRY: usize = size_of::<ENUM_SERVICE_STATUS_PROCESSW>();
    // EnumServicesStatusExW takes at most 256 KB. Elements of 8 bytes, so that entries are aligned.
    let mut buffer = vec![0_u64; (256 << 10) / 8];
    let bytes = buffer.len() * 8;
    let mut resume = 0;
    for _ in 0..MOST_ROUNDS {
        let (mut needed, mut count) = (0, 0);
        // SAFETY: the handle is open; the buffer has `bytes` bytes; the targets live until after the call.
        let done = unsafe {
            EnumServicesStatusExW(
                manager,
                SC_ENUM_PROCESS_INFO,
                types,
                SERVICE_ACTIVE,
                buffer.as_mut_ptr().cast(),
                bytes as u32,
                &mut needed,
                &mut count,
                &mut resume,
                null(),
            )
        };
        let error = if done == 0 { io::Error::last_os_error().raw_os_error().unwrap_or(0) } else { 0 };
        if error != 0 && error != ERROR_MORE_DATA as i32 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let start = buffer.as_ptr() as usize;
        let text = |pointer: *const u16| -> String {
            // A text lies inside of the buffer and is read up to its zero or the buffer's end.
            let at = (pointer as usize).wrapping_sub(start);
            let units = (at < bytes && at.is_multiple_of(2)).then(|| {
                let units = buffer.iter().flat_map(|word| {
                    let b = word.to_le_bytes();
                    [[b[0], b[1]], [b[2], b[3]], [b[4], b[5]], [b[6], b[7]]].map(u16::from_le_bytes)
                });
                units.skip(at / 2).take_while(|&unit| unit != 0).take(1024).collect::<Vec<u16>>()
            });
            String::from_utf16_lossy(&units.unwrap_or_default())
        };
        for n in 0..(count as usize).min(bytes / ENTRY) {
            // SAFETY: entry `n` lies inside of the buffer, which is aligned for it; every pattern of bits is a value of
            // it, and its pointers are only compared with the buffer's bounds.
            let entry = unsafe { buffer.as_ptr().cast::<ENUM_SERVICE_STATUS_PROCESSW>().add(n).read() };
            all.push(Service {
                name: text(entry.lpServiceName),
                title: text(entry.lpDisplayName),
                is_driver,
                process: Some(entry.ServiceStatusProcess.dwProcessId).filter(|&id| id != 0),
            });
        }
        if error == 0 {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_run_in_processes() {
        let services = running().unwrap();
        assert!(services.iter().all(|service| !service.name.is_empty()), "{services:?}");
        let live: Vec<u32> = super::super::processes::all().unwrap().iter().map(|p| p.id).collect();
        for service in services.iter().filter(|service| !service.is_driver) {
            let Some(process) = service.process else { continue };
            assert!(live.contains(&process), "{service:?}");
        }
    }
}
