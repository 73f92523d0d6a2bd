//! Modules of this process, and what stands in its memory.

use super::narrow;
use std::io;
use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::LibraryLoader::GetModuleFileNameW;
use windows_sys::Win32::System::ProcessStatus::{K32EnumProcessModules, K32GetModuleInformation, MODULEINFO};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// A program or library that is loaded into this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The file that it was loaded from.
    pub path: String,
    /// Its addresses.
    pub addresses: std::ops::Range<u64>,
}

/// Modules that are listed at most.
const MOST: usize = 4096;

/// What the loader has loaded into this process; the program comes first.
///
/// # Errors
/// The system's.
pub fn own() -> io::Result<Vec<Module>> {
    let mut handles: Vec<HMODULE> = vec![std::ptr::null_mut(); MOST];
    let room = u32::try_from(size_of_val(handles.as_slice())).unwrap_or(0);
    let mut used = 0;
    // SAFETY: the handle of this process is always valid; the room is ours, of the size that is told with it.
    let done =
        unsafe { K32EnumProcessModules(GetCurrentProcess(), handles.as_mut_ptr(), room, &raw mut used) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    handles.truncate(used as usize / size_of::<HMODULE>());
    // One that went meanwhile has no name or no size any more.
    Ok(handles.into_iter().filter_map(module).collect())
}

fn module(handle: HMODULE) -> Option<Module> {
    let mut facts =
        MODULEINFO { lpBaseOfDll: std::ptr::null_mut(), SizeOfImage: 0, EntryPoint: std::ptr::null_mut() };
    let mut name = vec![0_u16; 32_768];
    // SAFETY: a handle that is not valid any more is an error; both targets are ours, of the sizes that are told.
    let length = unsafe {
        let size = size_of::<MODULEINFO>() as u32;
        if K32GetModuleInformation(GetCurrentProcess(), handle, &raw mut facts, size) == 0 {
            return None;
        }
        GetModuleFileNameW(handle, name.as_mut_ptr(), name.len() as u32)
    };
    let path = narrow(name.get(..length as usize)?);
    let start = facts.lpBaseOfDll.addr() as u64;
    let end = start.checked_add(u64::from(facts.SizeOfImage))?;
    (!path.is_empty()).then_some(Module { path, addresses: start..end })
}

/// Reads memory of this process, whatever is there, into `into`; false if not all of it can be read.
pub fn read(address: u64, into: &mut [u8]) -> bool {
    let Ok(from) = usize::try_from(address) else { return false };
    let mut got = 0;
    // SAFETY: the system copies, and refuses what cannot be read; the target is ours, of the size that is told. Somebody may write
    // there meanwhile: what comes out is bytes, of which any are a value.
    let done = unsafe {
        ReadProcessMemory(
            GetCurrentProcess(),
            std::ptr::without_provenance(from),
            into.as_mut_ptr().cast(),
            into.len(),
            &raw mut got,
        )
    };
    done != 0 && got == into.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_comes_first_and_its_memory_begins_as_files_do() {
        let modules = own().unwrap();
        let program = std::env::current_exe().unwrap();
        assert_eq!(modules[0].path.to_lowercase(), program.to_str().unwrap().to_lowercase());
        assert!(modules.iter().any(|module| module.path.to_lowercase().ends_with("\\ntdll.dll")));
        for module in &modules {
            let mut head = [0; 2];
            assert!(module.addresses.end > module.addresses.start + 0x1000, "{module:?}");
            assert!(read(module.addresses.start, &mut head) && head == *b"MZ", "{module:?}");
        }
    }

    #[test]
    fn addresses_of_nobody_are_refused() {
        let mut one = [0; 16];
        for address in [0, 8, 0xFFFF, u64::MAX, 1 << 63, 0x7FFF_FFFF_FFF8] {
            assert!(!read(address, &mut one), "{address:x}");
        }
    }
}
