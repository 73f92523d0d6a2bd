//! Event logs through the API of Windows Vista (`EvtQuery`, `EvtRender`, `EvtFormatMessage`).
//!
//! The library is loaded when it is asked for, and not at all under Wine, which ends the process at several of its functions.

use super::library::{Library, wine};
use super::wide;
use std::ffi::c_void;
use std::io;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, ERROR_NO_MORE_ITEMS};
use windows_sys::Win32::System::EventLog::{
    EVT_HANDLE, EVT_VARIANT, EvtFormatMessageEvent, EvtQueryChannelPath, EvtQueryForwardDirection,
    EvtQueryReverseDirection, EvtRenderContextSystem, EvtRenderEventValues, EvtRenderEventXml,
};

type Query = unsafe extern "system" fn(EVT_HANDLE, *const u16, *const u16, u32) -> EVT_HANDLE;
type Next = unsafe extern "system" fn(EVT_HANDLE, u32, *mut EVT_HANDLE, u32, u32, *mut u32) -> i32;
type CreateContext = unsafe extern "system" fn(u32, *const *const u16, u32) -> EVT_HANDLE;
type Render =
    unsafe extern "system" fn(EVT_HANDLE, EVT_HANDLE, u32, u32, *mut c_void, *mut u32, *mut u32) -> i32;
type OpenPublisher = unsafe extern "system" fn(EVT_HANDLE, *const u16, *const u16, u32, u32) -> EVT_HANDLE;
type Format = unsafe extern "system" fn(
    EVT_HANDLE,
    EVT_HANDLE,
    u32,
    u32,
    *const EVT_VARIANT,
    u32,
    u32,
    *mut u16,
    *mut u32,
) -> i32;
type Close = unsafe extern "system" fn(EVT_HANDLE) -> i32;

/// Timeout that never ends (`INFINITE`).
const FOREVER: u32 = u32::MAX;
/// `EvtVarTypeString`, `EvtVarTypeUInt16`, `EvtVarTypeUInt64` (winevt.h).
const STRING: u32 = 1;
const UINT16: u32 = 6;
const UINT64: u32 = 10;
/// `EvtSystemEventID`, `EvtSystemEventRecordId`: indexes of the values of `System` (`EVT_SYSTEM_PROPERTY_ID`, winevt.h).
const EVENT_ID: usize = 2;
const RECORD_ID: usize = 9;
/// Most records of a log that are read for one question.
const MOST_NEW: usize = 10_000;

/// The functions of `wevtapi.dll`.
#[derive(Debug)]
pub struct EventLog {
    query: Query,
    next: Next,
    create_context: CreateContext,
    render: Render,
    open_publisher: OpenPublisher,
    format: Format,
    close: Close,
    _library: Library,
}

/// Something open of the event log: a query, an event, a publisher, a context. It is closed with its owner. A function
/// that gets one of another kind than it needs fails with the system's error.
#[derive(Debug)]
pub struct Opened<'a> {
    log: &'a EventLog,
    handle: EVT_HANDLE,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used afterwards; the library is loaded, since `log` lives.
        unsafe { (self.log.close)(self.handle) };
    }
}

impl EventLog {
    /// Loads the library.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] under Wine; otherwise the system's.
    pub fn load() -> io::Result<EventLog> {
        if let Some(version) = wine() {
            let text = format!("this is Wine {version}, whose event log API ends the process");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let library = Library::of_system("wevtapi.dll")?;
        // SAFETY: these are the documented types of the functions (winevt.h); the library is kept beside them.
        unsafe {
            Ok(EventLog {
                query: library.typed("EvtQuery")?,
                next: library.typed("EvtNext")?,
                create_context: library.typed("EvtCreateRenderContext")?,
                render: library.typed("EvtRender")?,
                open_publisher: library.typed("EvtOpenPublisherMetadata")?,
                format: library.typed("EvtFormatMessage")?,
                close: library.typed("EvtClose")?,
                _library: library,
            })
        }
    }

    fn opened(&self, handle: EVT_HANDLE) -> io::Result<Opened<'_>> {
        if handle == 0 { Err(io::Error::last_os_error()) } else { Ok(Opened { log: self, handle }) }
    }

    /// All events of a log of this machine, the oldest first.
    ///
    /// # Errors
    /// The system's.
    pub fn query(&self, channel: &str) -> io::Result<Opened<'_>> {
        self.query_from(channel, EvtQueryForwardDirection)
    }

    fn query_from(&self, channel: &str, direction: u32) -> io::Result<Opened<'_>> {
        let channel = wide(channel)?;
        // SAFETY: no session means this machine; the name ends with a zero; no query means everything.
        self.opened(unsafe { (self.query)(0, channel.as_ptr(), null(), EvtQueryChannelPath | direction) })
    }

    /// Number of the newest record of a log, and the event ids of those behind record `after`, the newest first; without
    /// `after` none. A log that was cleared begins with smaller numbers: all of its records are new.
    ///
    /// # Errors
    /// The system's.
    pub fn newer(&self, channel: &str, after: Option<u64>) -> io::Result<(u64, Vec<u32>)> {
        let query = self.query_from(channel, EvtQueryReverseDirection)?;
        let context = self.context()?;
        let (mut newest, mut ids, mut buffer) = (None, Vec::new(), Vec::new());
        while ids.len() < MOST_NEW {
            let events = self.next(&query, 64)?;
            if events.is_empty() {
                break;
            }
            for event in events {
                self.values(&context, &event, &mut buffer)?;
                let Some(record) = number(&buffer, RECORD_ID, UINT64) else { continue };
                let newest = *newest.get_or_insert(record);
                match after {
                    Some(after) if record > after || newest < after => {
                        ids.extend(number(&buffer, EVENT_ID, UINT16).map(|id| (id & 0xFFFF) as u32));
                    }
                    _ => return Ok((newest, ids)),
                }
            }
        }
        Ok((newest.unwrap_or(0), ids))
    }

    /// The next events of a query, at most `most`; none at the end.
    ///
    /// # Errors
    /// The system's.
    pub fn next<'a>(&'a self, query: &Opened<'a>, most: usize) -> io::Result<Vec<Opened<'a>>> {
        let mut handles = vec![0; most.clamp(1, 1024)];
        let mut count = 0;
        // SAFETY: the query is open; the list has room for as many handles as are asked for.
        let done = unsafe {
            (self.next)(query.handle, handles.len() as u32, handles.as_mut_ptr(), FOREVER, 0, &mut count)
        };
        if done == 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(ERROR_NO_MORE_ITEMS as i32) {
                Ok(Vec::new())
            } else {
                Err(error)
            };
        }
        handles.truncate(count as usize);
        Ok(handles.into_iter().map(|handle| Opened { log: self, handle }).collect())
    }

    /// What [`EventLog::values`] needs: the values of `System`.
    ///
    /// # Errors
    /// The system's.
    pub fn context(&self) -> io::Result<Opened<'_>> {
        // SAFETY: no paths are given.
        self.opened(unsafe { (self.create_context)(0, null(), EvtRenderContextSystem) })
    }

    /// An event as XML, into `buffer`, which grows; gives the length in bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn xml(&self, event: &Opened<'_>, buffer: &mut Vec<u64>) -> io::Result<usize> {
        self.render(0, event, EvtRenderEventXml, buffer)
    }

    /// The values of an event's `System`, into `buffer`, which grows; gives the length in bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn values(
        &self,
        context: &Opened<'_>,
        event: &Opened<'_>,
        buffer: &mut Vec<u64>,
    ) -> io::Result<usize> {
        self.render(context.handle, event, EvtRenderEventValues, buffer)
    }

    /// The publisher, which [`EventLog::values`] has put into `buffer`.
    pub fn publisher_name(buffer: &[u64], used: usize) -> Option<String> {
        let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_le_bytes()).take(used).collect();
        let word = |at: usize| buffer.get(at).copied();
        // EvtSystemProviderName is the first value: EVT_VARIANT has the value in 8 bytes, then Count and Type.
        let (pointer, kind) = (word(0)?, (word(1)? >> 32) as u32);
        if kind != STRING {
            return None;
        }
        let at = usize::try_from(pointer.wrapping_sub(buffer.as_ptr() as u64)).ok()?;
        let units: Vec<u16> =
            bytes.get(at..)?.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        Some(super::narrow(&units))
    }

    fn render(
        &self,
        context: EVT_HANDLE,
        event: &Opened<'_>,
        what: u32,
        buffer: &mut Vec<u64>,
    ) -> io::Result<usize> {
        for _ in 0..2 {
            let size = u32::try_from(buffer.len().saturating_mul(8)).unwrap_or(u32::MAX);
            let (mut used, mut count) = (0, 0);
            // SAFETY: both handles are open (or 0, which is none); the buffer has `size` bytes and is aligned for values.
            let done = unsafe {
                let target = buffer.as_mut_ptr().cast();
                (self.render)(context, event.handle, what, size, target, &mut used, &mut count)
            };
            if done != 0 {
                return Ok(used as usize);
            }
            let error = io::Error::last_os_error();
            // Records have at most 64 KB, their XML some times more.
            let fits = (used as usize) < 16 << 20 && used > size;
            if error.raw_os_error() != Some(ERROR_INSUFFICIENT_BUFFER as i32) || !fits {
                return Err(error);
            }
            buffer.resize((used as usize).div_ceil(8), 0);
        }
        Err(io::Error::other("an event that grows while it is read"))
    }

    /// A publisher's texts.
    ///
    /// # Errors
    /// The system's.
    pub fn publisher(&self, name: &str) -> io::Result<Opened<'_>> {
        let name = wide(name)?;
        // SAFETY: no session means this machine; the name ends with a zero; no file means the registered one.
        self.opened(unsafe { (self.open_publisher)(0, name.as_ptr(), null(), 0, 0) })
    }

    /// The text of an event, into `buffer`; gives its units. A text that is longer than the buffer counts with its length.
    ///
    /// # Errors
    /// The system's: many events have no text.
    pub fn message(
        &self,
        publisher: &Opened<'_>,
        event: &Opened<'_>,
        buffer: &mut [u16],
    ) -> io::Result<usize> {
        let size = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let mut used = 0;
        // SAFETY: both handles are open; the buffer has `size` units; no values are given.
        let done = unsafe {
            let target = if size == 0 { null_mut() } else { buffer.as_mut_ptr() };
            (self.format)(
                publisher.handle,
                event.handle,
                0,
                0,
                null(),
                EvtFormatMessageEvent,
                size,
                target,
                &mut used,
            )
        };
        if done != 0 {
            return Ok(used as usize);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(ERROR_INSUFFICIENT_BUFFER as i32) {
            Ok(used as usize)
        } else {
            Err(error)
        }
    }
}

/// A number among the values of `System`: `EVT_VARIANT` has the value in 8 bytes, then Count and Type.
fn number(buffer: &[u64], index: usize, kind: u32) -> Option<u64> {
    let (value, described) = (buffer.get(2 * index)?, buffer.get(2 * index + 1)?);
    ((described >> 32) as u32 == kind).then_some(*value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn numbers_of_system_have_their_type() {
        assert_eq!((offset_of!(EVT_VARIANT, Count), offset_of!(EVT_VARIANT, Type)), (8, 12));
        let mut values = [0; 20];
        values[2 * EVENT_ID] = 0xABCD_0000_0000_0029;
        values[2 * EVENT_ID + 1] = u64::from(UINT16) << 32;
        assert_eq!(number(&values, EVENT_ID, UINT16).map(|id| id & 0xFFFF), Some(41));
        assert_eq!(number(&values, RECORD_ID, UINT64), None);
        assert_eq!(number(&values, 10, UINT64), None);
    }

    #[test]
    fn events_are_read_where_there_are_any() {
        let log = match EventLog::load() {
            Ok(log) => log,
            Err(error) => {
                assert!(wine().is_some() && error.to_string().contains("Wine"), "{error}");
                println!("skipped: {error}");
                return;
            }
        };
        let query = log.query("System").unwrap();
        let context = log.context().unwrap();
        let mut buffer = Vec::new();
        for event in log.next(&query, 10).unwrap() {
            let used = log.values(&context, &event, &mut buffer).unwrap();
            assert!(!EventLog::publisher_name(&buffer, used).unwrap().is_empty());
            assert!(log.xml(&event, &mut buffer).unwrap() > 100);
        }
        assert!(log.query("no such log").is_err());
        let (newest, none) = log.newer("System", None).unwrap();
        assert!(newest > 0 && none.is_empty());
        let (same, new) = log.newer("System", Some(newest - 1)).unwrap();
        assert!(same >= newest && new.len() as u64 > same - newest);
    }
}
