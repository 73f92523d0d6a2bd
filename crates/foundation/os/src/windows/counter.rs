//! Performance counters, by their English paths.

use super::library::Library;
use super::wide;
use std::ffi::c_void;
use std::io;

type OpenQuery = unsafe extern "system" fn(*const u16, usize, *mut *mut c_void) -> u32;
type AddCounter = unsafe extern "system" fn(*mut c_void, *const u16, usize, *mut *mut c_void) -> u32;
type Collect = unsafe extern "system" fn(*mut c_void) -> u32;
type Format = unsafe extern "system" fn(*mut c_void, u32, *mut u32, *mut Value) -> u32;
type CloseQuery = unsafe extern "system" fn(*mut c_void) -> u32;

/// `PDH_FMT_DOUBLE` (pdh.h).
const AS_DOUBLE: u32 = 0x200;

/// `PDH_FMT_COUNTERVALUE` with its double.
#[repr(C)]
#[derive(Default)]
struct Value {
    status: u32,
    number: f64,
}

/// A counter that is asked again and again.
pub struct Counter {
    _library: Library,
    query: *mut c_void,
    counter: *mut c_void,
    collect: Collect,
    format: Format,
    close: CloseQuery,
}

impl Counter {
    /// Opens the counter of an English path: `\Processor(_Total)\% DPC Time`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none of that path; the system's.
    pub fn open(path: &str) -> io::Result<Counter> {
        let path = wide(path)?;
        let library = Library::of_system("pdh.dll")?;
        // SAFETY: these are the documented types of the functions (pdh.h); the library is kept with them.
        let (open, add, collect, format, close): (OpenQuery, AddCounter, Collect, Format, CloseQuery) = unsafe {
            (
                library.typed("PdhOpenQueryW")?,
                library.typed("PdhAddEnglishCounterW")?,
                library.typed("PdhCollectQueryData")?,
                library.typed("PdhGetFormattedCounterValue")?,
                library.typed("PdhCloseQuery")?,
            )
        };
        let mut query = std::ptr::null_mut();
        // SAFETY: no source means the machine itself; the target lives until after the call.
        done(unsafe { open(std::ptr::null(), 0, &raw mut query) })?;
        let mut counter =
            Counter { _library: library, query, counter: std::ptr::null_mut(), collect, format, close };
        // SAFETY: the query is open; the path ends with a zero; the target lives until after the call.
        done(unsafe { add(query, path.as_ptr(), 0, &raw mut counter.counter) })?;
        // Rates need two values: this is the first. A failure shows with the next one.
        // SAFETY: the query is open.
        unsafe { collect(query) };
        Ok(counter)
    }

    /// Its value now; of a rate since the last call.
    ///
    /// # Errors
    /// The system's, e.g. for a rate that was asked for too early.
    pub fn value(&mut self) -> io::Result<f64> {
        let mut value = Value::default();
        // SAFETY: query and counter are open as long as `self` lives; the structure is that of the format.
        done(unsafe { (self.collect)(self.query) })?;
        // SAFETY: as above; the kind of the counter may be absent.
        done(unsafe { (self.format)(self.counter, AS_DOUBLE, std::ptr::null_mut(), &raw mut value) })?;
        Ok(value.number)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // SAFETY: the query is open, and not used afterwards; it closes its counters.
        unsafe { (self.close)(self.query) };
    }
}

/// `PDH_STATUS`: 0 is success, errors have the upper bits set.
fn done(status: u32) -> io::Result<()> {
    if status < 0x8000_0000 {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("PDH error {status:#010x}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_a_value_and_nonsense_has_none() {
        assert_eq!((size_of::<Value>(), std::mem::offset_of!(Value, number)), (16, 8));
        let mut uptime = Counter::open("\\System\\System Up Time").unwrap();
        assert!(uptime.value().unwrap() > 0.0);
        assert!(Counter::open("\\No Such Object\\Nothing").is_err());
    }
}
