//! The registry: read, and written below keys that the caller makes.

use super::{check, narrow, wide};
use std::ffi::c_void;
use std::io;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{ERROR_MORE_DATA, ERROR_NO_MORE_ITEMS};
use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_CURRENT_USER, HKEY_LOCAL_MACHINE, HKEY_PERFORMANCE_DATA, KEY_READ, KEY_WRITE, REG_BINARY,
    REG_DWORD, REG_EXPAND_SZ, REG_OPTION_NON_VOLATILE, REG_QWORD, REG_SZ, RegCloseKey, RegCreateKeyExW,
    RegDeleteTreeW, RegEnumKeyExW, RegLoadMUIStringW, RegOpenKeyExW, RegQueryValueExW, RegSetValueExW,
};

/// A value to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `REG_DWORD`.
    Number(u32),
    /// `REG_QWORD`.
    Long(u64),
    /// `REG_SZ`.
    Text(&'a str),
    /// `REG_BINARY`.
    Bytes(&'a [u8]),
}

/// A key that is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// `HKEY_LOCAL_MACHINE`.
    Machine,
    /// `HKEY_CURRENT_USER`.
    User,
    /// `HKEY_PERFORMANCE_DATA`: no key of the registry, but a question to the counters' libraries.
    Performance,
}

impl Root {
    fn handle(self) -> HKEY {
        match self {
            Root::Machine => HKEY_LOCAL_MACHINE,
            Root::User => HKEY_CURRENT_USER,
            Root::Performance => HKEY_PERFORMANCE_DATA,
        }
    }
}

/// An open key; it is closed with its owner.
#[derive(Debug)]
pub struct Key(HKEY);

/// A name made ready for calls, so that those who measure do not measure how it is made.
#[derive(Clone, Debug)]
pub struct Name(Vec<u16>);

impl Name {
    /// Makes one.
    ///
    /// # Errors
    /// If there is a zero in it.
    pub fn new(name: &str) -> io::Result<Name> {
        Ok(Name(wide(name)?))
    }
}

impl Key {
    /// Opens a key for reading.
    ///
    /// # Errors
    /// The system's.
    pub fn open(root: Root, path: &Name) -> io::Result<Key> {
        Key::open_under(root.handle(), path)
    }

    /// Opens a key below this one.
    ///
    /// # Errors
    /// The system's.
    pub fn below(&self, path: &Name) -> io::Result<Key> {
        Key::open_under(self.0, path)
    }

    /// Opens a key for reading and writing, and makes it and those above it if they are not there.
    ///
    /// # Errors
    /// The system's.
    pub fn make(root: Root, path: &Name) -> io::Result<Key> {
        let mut key = null_mut();
        // SAFETY: the root is predefined; the name ends with a zero; no class and no security are named; the first target lives until
        // after the call, the second may be absent.
        check(unsafe {
            RegCreateKeyExW(
                root.handle(),
                path.0.as_ptr(),
                0,
                null(),
                REG_OPTION_NON_VOLATILE,
                KEY_READ | KEY_WRITE,
                null(),
                &mut key,
                null_mut(),
            )
        })?;
        Ok(Key(key))
    }

    /// Writes a value.
    ///
    /// # Errors
    /// The system's, e.g. if the key was opened for reading; a text with a zero in it.
    pub fn set(&self, name: &str, value: Value<'_>) -> io::Result<()> {
        let name = wide(name)?;
        let (kind, bytes) = match value {
            Value::Number(number) => (REG_DWORD, number.to_le_bytes().to_vec()),
            Value::Long(number) => (REG_QWORD, number.to_le_bytes().to_vec()),
            Value::Text(text) => (REG_SZ, wide(text)?.into_iter().flat_map(u16::to_le_bytes).collect()),
            Value::Bytes(bytes) => (REG_BINARY, bytes.to_vec()),
        };
        let len = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: the key is open; the name ends with a zero; the buffer has `len` bytes.
        check(unsafe { RegSetValueExW(self.0, name.as_ptr(), 0, kind, bytes.as_ptr(), len) })
    }

    fn open_under(parent: HKEY, path: &Name) -> io::Result<Key> {
        let mut key = null_mut();
        // SAFETY: the parent is open or predefined; the name ends with a zero; the target lives until after the call.
        check(unsafe { RegOpenKeyExW(parent, path.0.as_ptr(), 0, KEY_READ, &mut key) })?;
        Ok(Key(key))
    }

    /// Reads a value into `buffer` and gives its type and length. An empty name is the key's own value.
    ///
    /// # Errors
    /// The system's; `ERROR_MORE_DATA` (234) if the buffer is too small.
    pub fn read(&self, name: &Name, buffer: &mut [u8]) -> io::Result<(u32, usize)> {
        read(self.0, name, buffer)
    }

    /// A text value.
    ///
    /// # Errors
    /// The system's, or if it is none.
    pub fn text(&self, name: &str) -> io::Result<String> {
        let mut buffer = vec![0; 4096];
        let (kind, len) = self.read(&Name::new(name)?, &mut buffer)?;
        if kind != REG_SZ && kind != REG_EXPAND_SZ {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{name} is no text")));
        }
        let bytes = buffer.get(..len).unwrap_or(&buffer);
        let units: Vec<u16> = bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        Ok(narrow(&units))
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// The system's, or if it is none.
    pub fn number(&self, name: &str) -> io::Result<u32> {
        let mut buffer = [0; 4];
        let (kind, len) = self.read(&Name::new(name)?, &mut buffer)?;
        if kind != REG_DWORD || len != 4 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{name} is not a 32-bit number")));
        }
        Ok(u32::from_le_bytes(buffer))
    }

    /// The text that a value like `@shell32.dll,-21769` stands for in the user's language, into `buffer`; gives its units.
    ///
    /// # Errors
    /// The system's.
    pub fn in_language(&self, name: &Name, buffer: &mut [u16]) -> io::Result<usize> {
        let size = u32::try_from(buffer.len().saturating_mul(2)).unwrap_or(u32::MAX);
        let mut used = 0;
        // SAFETY: the key is open; the name ends with a zero; the buffer has `size` bytes; no folder is named.
        check(unsafe {
            RegLoadMUIStringW(self.0, name.0.as_ptr(), buffer.as_mut_ptr(), size, &mut used, 0, null())
        })?;
        Ok(used as usize / 2)
    }

    /// Names of the keys below, at most `most`.
    ///
    /// # Errors
    /// The system's.
    pub fn below_names(&self, most: u32) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for n in 0..most {
            // Names of keys have at most 255 characters.
            let mut buffer = [0_u16; 256];
            let mut len = 256;
            // SAFETY: the key is open; the buffer has `len` units; the others may be absent.
            let error = unsafe {
                let buffer = buffer.as_mut_ptr();
                RegEnumKeyExW(self.0, n, buffer, &mut len, null(), null_mut(), null_mut(), null_mut())
            };
            match error {
                0 => names.push(narrow(buffer.get(..len as usize).unwrap_or(&buffer))),
                ERROR_NO_MORE_ITEMS => break,
                error => check(error)?,
            }
        }
        Ok(names)
    }
}

/// Deletes a key with all that is below it.
///
/// # Errors
/// The system's; if it is not there, one of the kind `NotFound`.
pub fn remove(root: Root, path: &Name) -> io::Result<()> {
    // An empty name would be the root itself: all below it.
    if path.0.first().is_none_or(|unit| *unit == 0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the root is predefined; the name ends with a zero.
    check(unsafe { RegDeleteTreeW(root.handle(), path.0.as_ptr()) })
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used afterwards.
        unsafe { RegCloseKey(self.0) };
    }
}

/// Reads a value of a key that is always there.
///
/// # Errors
/// As [`Key::read`].
pub fn read_of(root: Root, name: &Name, buffer: &mut [u8]) -> io::Result<(u32, usize)> {
    let result = read(root.handle(), name, buffer);
    if root == Root::Performance {
        // The counters' libraries stay loaded until this is closed (documentation of HKEY_PERFORMANCE_DATA).
        // SAFETY: a predefined key may be closed; it opens itself anew.
        unsafe { RegCloseKey(HKEY_PERFORMANCE_DATA) };
    }
    result
}

fn read(key: HKEY, name: &Name, buffer: &mut [u8]) -> io::Result<(u32, usize)> {
    let mut len = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
    let mut kind = 0;
    // SAFETY: the key is open or predefined; the name ends with a zero; the buffer has `len` bytes.
    let error = unsafe {
        RegQueryValueExW(
            key,
            name.0.as_ptr(),
            null(),
            &mut kind,
            buffer.as_mut_ptr().cast::<c_void>().cast(),
            &mut len,
        )
    };
    check(error)?;
    Ok((kind, len as usize))
}

/// Whether an error says that the buffer was too small.
pub fn is_too_small(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_MORE_DATA as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_read() {
        let path = Name::new("SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion").unwrap();
        let key = Key::open(Root::Machine, &path).unwrap();
        let build: u32 = key.text("CurrentBuild").unwrap().parse().unwrap();
        assert!(build >= 7600, "{build}");
        assert!(key.number("CurrentBuild").is_err());
        let error = key.read(&Name::new("CurrentBuild").unwrap(), &mut [0; 2]).unwrap_err();
        assert!(is_too_small(&error), "{error}");
        assert_eq!(key.text("no such value").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(key.below(&Name::new("no such key").unwrap()).is_err());

        let key =
            Key::open(Root::Machine, &Name::new("SYSTEM\\CurrentControlSet\\Services").unwrap()).unwrap();
        let names = key.below_names(10_000).unwrap();
        assert!(names.iter().any(|name| name.eq_ignore_ascii_case("Eventlog")), "{names:?}");
        assert_eq!(key.below_names(1).unwrap().len(), 1);
    }

    #[test]
    fn keys_are_made_written_and_removed() {
        let name = |text: &str| Name::new(text).unwrap();
        let path = format!("Software\\etwhy-test-{}", std::process::id());
        let key = Key::make(Root::User, &name(&format!("{path}\\below"))).unwrap();
        for (value, is) in [
            ("number", Value::Number(7)),
            ("long", Value::Long(1 << 40)),
            ("text", Value::Text("Prüfung")),
            ("bytes", Value::Bytes(&[1, 2, 3])),
        ] {
            key.set(value, is).unwrap();
        }
        assert_eq!((key.number("number").unwrap(), &*key.text("text").unwrap()), (7, "Prüfung"));
        let mut room = [0; 16];
        assert_eq!(key.read(&name("bytes"), &mut room).unwrap(), (REG_BINARY, 3));
        assert_eq!(key.read(&name("long"), &mut room).unwrap(), (REG_QWORD, 8));
        assert_eq!(u64::from_le_bytes(room[..8].try_into().unwrap()), 1 << 40);
        // One that is there stays as it is.
        assert_eq!(
            Key::make(Root::User, &name(&format!("{path}\\below"))).unwrap().number("number").unwrap(),
            7
        );
        drop(key);
        remove(Root::User, &name(&path)).unwrap();
        assert_eq!(Key::open(Root::User, &name(&path)).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(remove(Root::User, &name(&path)).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(remove(Root::User, &name("")).is_err());
        let read_only = Key::open(Root::Machine, &name("SOFTWARE")).unwrap();
        assert!(read_only.set("etwhy", Value::Text("a\0b")).is_err());
    }
}
