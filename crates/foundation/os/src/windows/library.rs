//! Functions of system libraries that are looked up when they are needed.

use super::wide;
use std::io;
use windows_sys::Win32::Foundation::{FreeLibrary, HMODULE};
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};

/// A function of which nothing but the address is known.
type Function = unsafe extern "system" fn() -> isize;

/// A library of the system's folder; it is let go with its owner.
#[derive(Debug)]
pub struct Library(HMODULE);

// SAFETY: a module's handle is its address; Windows lets every thread use and release it.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a library by its file name. Only the system's folder is searched, so that nobody can slip in another.
    ///
    /// # Errors
    /// The system's.
    pub fn of_system(name: &str) -> io::Result<Library> {
        let name = wide(name)?;
        // SAFETY: the name ends with a zero; the second argument is reserved and must be null.
        let module =
            unsafe { LoadLibraryExW(name.as_ptr(), std::ptr::null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32) };
        if module.is_null() { Err(io::Error::last_os_error()) } else { Ok(Library(module)) }
    }

    /// Loads a library by its full path.
    ///
    /// # Errors
    /// The system's.
    pub fn of_path(path: &std::path::Path) -> io::Result<Library> {
        let path = wide(path)?;
        // SAFETY: as above. Without flags the path is taken as it is.
        let module = unsafe { LoadLibraryExW(path.as_ptr(), std::ptr::null_mut(), 0) };
        if module.is_null() { Err(io::Error::last_os_error()) } else { Ok(Library(module)) }
    }

    /// The address of a function.
    fn function(&self, name: &str) -> io::Result<Function> {
        let mut bytes = name.as_bytes().to_vec();
        bytes.push(0);
        // SAFETY: the module is loaded as long as `self` lives; the name ends with a zero.
        let found = unsafe { GetProcAddress(self.0, bytes.as_ptr()) };
        found.ok_or_else(|| {
            io::Error::new(io::ErrorKind::Unsupported, format!("no function {name} on this Windows"))
        })
    }

    /// A function with its type.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to that function, and the library must be kept until its last call is done.
    ///
    /// # Errors
    /// If the library has none of that name.
    pub(crate) unsafe fn typed<F: Copy>(&self, name: &str) -> io::Result<F> {
        const { assert!(size_of::<F>() == size_of::<Function>()) };
        let found = self.function(name)?;
        // SAFETY: pointers to functions have the same form; that the type is right is the caller's word.
        Ok(unsafe { std::mem::transmute_copy::<Function, F>(&found) })
    }

    /// Whether it has a function of that name.
    pub fn has(&self, name: &str) -> bool {
        self.function(name).is_ok()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used afterwards.
        unsafe { FreeLibrary(self.0) };
    }
}

/// The version of Wine, if this is no Windows.
pub fn wine() -> Option<String> {
    let ntdll = Library::of_system("ntdll.dll").ok()?;
    // SAFETY: Wine documents it as `const char *CDECL wine_get_version(void)`; on x86-64 and ARM64 there is one
    // convention, and functions without arguments are called alike in all. The text is constant.
    let text = unsafe {
        let version: unsafe extern "C" fn() -> *const std::ffi::c_char =
            ntdll.typed("wine_get_version").ok()?;
        let text = version();
        if text.is_null() {
            return Some(String::new());
        }
        std::ffi::CStr::from_ptr(text)
    };
    Some(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name() {
        let library = Library::of_system("kernel32.dll").unwrap();
        assert!(library.has("GetTickCount") && !library.has("NoSuchFunction"));
        assert!(Library::of_system("no-such-library.dll").is_err());
        if let Some(version) = wine() {
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
        }
    }
}
