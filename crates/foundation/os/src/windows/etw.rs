//! Sessions of Event Tracing for Windows: start, ask, change, stop; and texts written into them.
//!
//! # Contract
//!
//! As that of [`super`]. Each call gets a block of memory of ours: the structure, then room for both names, which the offsets in the
//! structure point to as `EVENT_TRACE_PROPERTIES` documents it. What comes back in the block is copied out of that room.
//!
//! Functions are looked up in `advapi32.dll`. Builds with debug assertions take the library that the variable
//! `ETWHY_ETW_DLL` names, if it is set: a double for tests. Other builds must not, since recording runs as administrator.

use super::library::Library;
use super::{check, narrow, wide};
use std::ffi::c_void;
use std::io;
use std::path::Path;
use windows_sys::Win32::System::Diagnostics::Etw::{
    CLASSIC_EVENT_ID, CONTROLTRACE_HANDLE, ENABLE_TRACE_PARAMETERS, EVENT_FILTER_DESCRIPTOR,
    EVENT_TRACE_PROPERTIES, EVENT_TRACE_PROPERTIES_0, WNODE_HEADER,
};
use windows_sys::core::GUID;

/// Most characters of a session's name and of a file's, the final zero included (StartTrace: 1,024).
const TEXT: usize = 1024;
/// Sessions of one machine: 64 unless the registry allows more, at most 256.
const MOST_SESSIONS: usize = 256;
/// `WNODE_FLAG_TRACED_GUID` (wmistr.h).
const TRACED_GUID: u32 = 0x0002_0000;
/// `ENABLE_TRACE_PARAMETERS_VERSION_2` (evntrace.h).
const PARAMETERS_VERSION: u32 = 2;
/// `EVENT_ENABLE_PROPERTY_STACK_TRACE` (evntcons.h).
const PROPERTY_STACK: u32 = 4;
/// `EVENT_FILTER_TYPE_EXECUTABLE_NAME` (evntprov.h): names of files of programs, separated by semicolons, with a final zero.
const FILTER_PROGRAMS: u32 = 0x8000_0008;
/// `EVENT_FILTER_TYPE_EVENT_ID` (evntprov.h).
const FILTER_EVENT_ID: u32 = 0x8000_0200;
/// `EVENT_FILTER_TYPE_STACKWALK` (evntprov.h).
const FILTER_STACK_ID: u32 = 0x8000_1000;
/// Most ids of one filter (`MAX_EVENT_FILTER_EVENT_ID_COUNT`, evntprov.h).
const MOST_IDS: usize = 64;
/// `TraceStackTracingInfo` of `TRACE_QUERY_INFO_CLASS` (evntrace.h).
const STACK_TRACING: i32 = 3;
/// `TraceSystemTraceEnableFlagsInfo` of the same.
const ENABLE_FLAGS: i32 = 4;

type StartTrace =
    unsafe extern "system" fn(*mut CONTROLTRACE_HANDLE, *const u16, *mut EVENT_TRACE_PROPERTIES) -> u32;
type ControlTrace =
    unsafe extern "system" fn(CONTROLTRACE_HANDLE, *const u16, *mut EVENT_TRACE_PROPERTIES, u32) -> u32;
type EnableTrace = unsafe extern "system" fn(
    CONTROLTRACE_HANDLE,
    *const GUID,
    u32,
    u8,
    u64,
    u64,
    u32,
    *const ENABLE_TRACE_PARAMETERS,
) -> u32;
type SetInformation = unsafe extern "system" fn(CONTROLTRACE_HANDLE, i32, *const c_void, u32) -> u32;
type QueryAll = unsafe extern "system" fn(*mut *mut EVENT_TRACE_PROPERTIES, u32, *mut u32) -> u32;
type Register = unsafe extern "system" fn(*const GUID, *const c_void, *const c_void, *mut u64) -> u32;
type WriteString = unsafe extern "system" fn(u64, u8, u64, *const u16) -> u32;
type Unregister = unsafe extern "system" fn(u64) -> u32;
type SetMark = unsafe extern "system" fn(*mut c_void, *const c_void, u32) -> u32;

/// What is done with a session that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `EVENT_TRACE_CONTROL_QUERY`.
    Query,
    /// `EVENT_TRACE_CONTROL_STOP`.
    Stop,
    /// `EVENT_TRACE_CONTROL_UPDATE`.
    Update,
    /// `EVENT_TRACE_CONTROL_FLUSH`.
    Flush,
}

impl Control {
    /// Its number (evntrace.h).
    fn code(self) -> u32 {
        match self {
            Control::Query => 0,
            Control::Stop => 1,
            Control::Update => 2,
            Control::Flush => 3,
        }
    }
}

/// A session to start, under the names of `EVENT_TRACE_PROPERTIES`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// Name of the session.
    pub name: &'a str,
    /// GUID of the session, in the byte order of memory.
    pub guid: [u8; 16],
    /// `LogFileName`; none for a session in memory.
    pub file: Option<&'a Path>,
    /// `BufferSize` in KiB.
    pub buffer_kib: u32,
    /// `MinimumBuffers`.
    pub min_buffers: u32,
    /// `MaximumBuffers`.
    pub max_buffers: u32,
    /// `LogFileMode`, `EVENT_TRACE_*_MODE`.
    pub mode: u32,
    /// `FlushTimer`, seconds; 0 for none.
    pub flush_s: u32,
    /// `EnableFlags`, `EVENT_TRACE_FLAG_*`.
    pub flags: u32,
}

/// What Windows says of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Handle (`Wnode.HistoricalContext`).
    pub handle: u64,
    /// Name.
    pub name: String,
    /// Log file; empty for a session in memory.
    pub file: String,
    /// GUID, in the byte order of memory.
    pub guid: [u8; 16],
    /// `LogFileMode`.
    pub mode: u32,
    /// `EnableFlags`.
    pub flags: u32,
    /// `EventsLost`.
    pub events_lost: u32,
    /// `LogBuffersLost`.
    pub buffers_lost: u32,
    /// `BuffersWritten`.
    pub buffers_written: u32,
}

/// How a provider is switched on, off, or asked for its state.
#[derive(Clone, Copy, Debug)]
pub struct Enable<'a> {
    /// Its GUID, in the byte order of memory.
    pub guid: [u8; 16],
    /// `EVENT_CONTROL_CODE_*`: 0 off, 1 on, 2 state.
    pub code: u32,
    /// Highest level.
    pub level: u8,
    /// `MatchAnyKeyword`.
    pub keywords: u64,
    /// Record stacks.
    pub stack: bool,
    /// Stacks of these events only; all if it is empty.
    pub stack_of: &'a [u16],
    /// Events that are left out.
    pub without: &'a [u16],
    /// Names of files of the programs whose events are wanted, separated by semicolons; all if it is empty.
    pub programs: &'a str,
}

/// The structure, and the room that its offsets point to.
#[repr(C)]
struct Block {
    properties: EVENT_TRACE_PROPERTIES,
    name: [u16; TEXT],
    file: [u16; TEXT],
}

impl Block {
    fn new() -> Box<Block> {
        let properties = EVENT_TRACE_PROPERTIES {
            Wnode: WNODE_HEADER {
                BufferSize: size_of::<Block>() as u32,
                Flags: TRACED_GUID,
                ..Default::default()
            },
            LoggerNameOffset: std::mem::offset_of!(Block, name) as u32,
            LogFileNameOffset: std::mem::offset_of!(Block, file) as u32,
            Anonymous: EVENT_TRACE_PROPERTIES_0 { AgeLimit: 0 },
            ..Default::default()
        };
        Box::new(Block { properties, name: [0; TEXT], file: [0; TEXT] })
    }

    /// Puts a file's name where the offset points.
    fn set_file(&mut self, file: &Path) -> io::Result<()> {
        let text = wide(file)?;
        let room = self.file.get_mut(..text.len()).ok_or(io::ErrorKind::InvalidFilename)?;
        room.copy_from_slice(&text);
        Ok(())
    }

    fn running(&self) -> Running {
        let p = &self.properties;
        // SAFETY: both members of the union are numbers; every pattern is a value.
        let handle = unsafe { p.Wnode.Anonymous1.HistoricalContext };
        Running {
            handle,
            name: narrow(&self.name),
            file: if p.LogFileNameOffset == 0 { String::new() } else { narrow(&self.file) },
            guid: bytes_of(&p.Wnode.Guid),
            mode: p.LogFileMode,
            flags: p.EnableFlags,
            events_lost: p.EventsLost,
            buffers_lost: p.LogBuffersLost,
            buffers_written: p.BuffersWritten,
        }
    }
}

/// The functions.
pub struct Etw {
    _libraries: [Library; 2],
    start: StartTrace,
    control: ControlTrace,
    enable: EnableTrace,
    set: SetInformation,
    all: QueryAll,
    register: Register,
    write: WriteString,
    unregister: Unregister,
    /// Not documented, and so allowed to be missing.
    mark: Option<SetMark>,
}

impl Etw {
    /// Looks the functions up.
    ///
    /// # Errors
    /// The system's, if a library or a function is missing.
    pub fn load() -> io::Result<Etw> {
        let double = if cfg!(debug_assertions) { std::env::var_os("ETWHY_ETW_DLL") } else { None };
        let open = |name: &str| match &double {
            Some(path) => Library::of_path(Path::new(path)),
            None => Library::of_system(name),
        };
        let (api, native) = (open("advapi32.dll")?, open("ntdll.dll")?);
        // SAFETY: these are the documented types of the functions (evntrace.h, evntprov.h; EtwSetMark: phnt's ntetw.h); both
        // libraries live as long as the table.
        unsafe {
            Ok(Etw {
                start: api.typed("StartTraceW")?,
                control: api.typed("ControlTraceW")?,
                enable: api.typed("EnableTraceEx2")?,
                set: api.typed("TraceSetInformation")?,
                all: api.typed("QueryAllTracesW")?,
                register: api.typed("EventRegister")?,
                write: api.typed("EventWriteString")?,
                unregister: api.typed("EventUnregister")?,
                mark: native.typed("EtwSetMark").ok(),
                _libraries: [api, native],
            })
        }
    }

    /// Starts a session. Gives its handle.
    ///
    /// # Errors
    /// Windows', e.g. 183 if there is a session of that name.
    pub fn start(&self, start: &Start<'_>) -> io::Result<u64> {
        let mut block = Block::new();
        let p = &mut block.properties;
        p.Wnode.Guid = guid(start.guid);
        // QueryPerformanceCounter.
        p.Wnode.ClientContext = 1;
        p.BufferSize = start.buffer_kib;
        p.MinimumBuffers = start.min_buffers;
        p.MaximumBuffers = start.max_buffers;
        p.LogFileMode = start.mode;
        p.FlushTimer = start.flush_s;
        p.EnableFlags = start.flags;
        match start.file {
            Some(file) => block.set_file(file)?,
            None => block.properties.LogFileNameOffset = 0,
        }
        let name = session_name(start.name)?;
        let mut handle = CONTROLTRACE_HANDLE::default();
        // SAFETY: the name ends with a zero; the block has the size and the room that it states.
        check(unsafe { (self.start)(&raw mut handle, name.as_ptr(), (&raw mut *block).cast()) })?;
        Ok(handle.Value)
    }

    /// Asks, changes, flushes or stops a session, named by its handle. `file`: the file that it goes on in, or that a session in
    /// memory is written to. `flags`: what a kernel session goes on with, for [`Control::Update`].
    ///
    /// # Errors
    /// Windows', e.g. 4201 if there is no such session.
    pub fn control(
        &self,
        handle: u64,
        what: Control,
        file: Option<&Path>,
        flags: u32,
    ) -> io::Result<Running> {
        self.controlled(handle, std::ptr::null(), what, file, flags)
    }

    /// Asks for the session of a name.
    ///
    /// # Errors
    /// As [`Etw::control`].
    pub fn query(&self, name: &str) -> io::Result<Running> {
        let name = session_name(name)?;
        self.controlled(0, name.as_ptr(), Control::Query, None, 0)
    }

    fn controlled(
        &self,
        handle: u64,
        name: *const u16,
        what: Control,
        file: Option<&Path>,
        flags: u32,
    ) -> io::Result<Running> {
        let mut block = Block::new();
        match (what, file) {
            (_, Some(file)) => block.set_file(file)?,
            // An empty name would be taken for one.
            (Control::Update | Control::Flush, None) => block.properties.LogFileNameOffset = 0,
            _ => {}
        }
        block.properties.EnableFlags = flags;
        let handle = CONTROLTRACE_HANDLE { Value: handle };
        // SAFETY: the name is null or ends with a zero (both callers); the block has the size and the room that it states.
        check(unsafe { (self.control)(handle, name, (&raw mut *block).cast(), what.code()) })?;
        Ok(block.running())
    }

    /// Switches a provider on or off, or asks it for its state.
    ///
    /// # Errors
    /// Windows'; 87 if this version knows no filters.
    pub fn enable(&self, handle: u64, enable: &Enable<'_>) -> io::Result<()> {
        let filters = [(FILTER_EVENT_ID, false, enable.without), (FILTER_STACK_ID, true, enable.stack_of)];
        let mut texts: Vec<(u32, Vec<u16>)> = filters
            .iter()
            .filter(|(_, _, ids)| !ids.is_empty())
            .map(|(kind, keep, ids)| (*kind, filter(*keep, ids)))
            .collect();
        if !enable.programs.is_empty() {
            texts.push((FILTER_PROGRAMS, wide(enable.programs)?));
        }
        let mut descriptors: Vec<EVENT_FILTER_DESCRIPTOR> = texts
            .iter_mut()
            .map(|(kind, units)| EVENT_FILTER_DESCRIPTOR {
                Ptr: units.as_mut_ptr() as u64,
                Size: size_of_val(units.as_slice()) as u32,
                Type: *kind,
            })
            .collect();
        let parameters = ENABLE_TRACE_PARAMETERS {
            Version: PARAMETERS_VERSION,
            EnableProperty: if enable.stack { PROPERTY_STACK } else { 0 },
            EnableFilterDesc: if descriptors.is_empty() {
                std::ptr::null_mut()
            } else {
                descriptors.as_mut_ptr()
            },
            FilterDescCount: descriptors.len() as u32,
            ..Default::default()
        };
        let provider = guid(enable.guid);
        // SAFETY: the GUID, the parameters, the descriptors and what they point to live until after the call.
        check(unsafe {
            (self.enable)(
                CONTROLTRACE_HANDLE { Value: handle },
                &raw const provider,
                enable.code,
                enable.level,
                enable.keywords,
                0,
                0,
                &raw const parameters,
            )
        })
    }

    /// Has stacks of these kernel events recorded: class and type of each.
    ///
    /// # Errors
    /// Windows'.
    pub fn set_stacks(&self, handle: u64, events: &[([u8; 16], u8)]) -> io::Result<()> {
        let ids: Vec<CLASSIC_EVENT_ID> = events
            .iter()
            .map(|(class, kind)| CLASSIC_EVENT_ID { EventGuid: guid(*class), Type: *kind, Reserved: [0; 7] })
            .collect();
        // SAFETY: CLASSIC_EVENT_ID is numbers only, and the function reads as many bytes as it is told.
        self.set(handle, STACK_TRACING, ids.as_ptr().cast(), size_of_val(ids.as_slice()))
    }

    /// Sets the group masks of a kernel session (`PERFINFO_GROUPMASK`).
    ///
    /// # Errors
    /// Windows'.
    pub fn set_masks(&self, handle: u64, masks: [u32; 8]) -> io::Result<()> {
        self.set(handle, ENABLE_FLAGS, masks.as_ptr().cast(), size_of_val(&masks))
    }

    fn set(&self, handle: u64, class: i32, data: *const c_void, bytes: usize) -> io::Result<()> {
        let bytes = u32::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: both callers point to `bytes` bytes that live until after the call; it only reads them.
        check(unsafe { (self.set)(CONTROLTRACE_HANDLE { Value: handle }, class, data, bytes) })
    }

    /// All sessions of the machine that this user may see.
    ///
    /// # Errors
    /// Windows'.
    pub fn all(&self) -> io::Result<Vec<Running>> {
        let mut blocks: Vec<Box<Block>> = (0..MOST_SESSIONS).map(|_| Block::new()).collect();
        let mut pointers: Vec<*mut EVENT_TRACE_PROPERTIES> =
            blocks.iter_mut().map(|block| (&raw mut **block).cast()).collect();
        let mut count = 0;
        // SAFETY: as many blocks as are told, each with the size and the room that it states; all live until after the call.
        check(unsafe { (self.all)(pointers.as_mut_ptr(), MOST_SESSIONS as u32, &raw mut count) })?;
        Ok(blocks.iter().take(count as usize).map(|block| block.running()).collect())
    }

    /// Writes a text as an event of a provider, into all sessions that have switched it on.
    ///
    /// # Errors
    /// Windows'.
    pub fn write_text(&self, provider: [u8; 16], text: &str) -> io::Result<()> {
        let (provider, text) = (guid(provider), wide(text)?);
        let mut handle = 0;
        // SAFETY: the GUID and the handle live until after the call; a null callback and context are allowed.
        check(unsafe {
            (self.register)(&raw const provider, std::ptr::null(), std::ptr::null(), &raw mut handle)
        })?;
        // SAFETY: the handle is registered; the text ends with a zero. Level 4 is information, keyword 0 goes to everybody.
        let written = unsafe { (self.write)(handle, 4, 0, text.as_ptr()) };
        // SAFETY: the handle is registered and not used afterwards.
        unsafe { (self.unregister)(handle) };
        check(written)
    }

    /// Writes a text as a mark of the kernel, as `xperf -m` does, into kernel sessions.
    ///
    /// # Errors
    /// Windows'; [`io::ErrorKind::Unsupported`] where there is no `EtwSetMark`.
    pub fn kernel_mark(&self, text: &str) -> io::Result<()> {
        let mark = self.mark.ok_or(io::ErrorKind::Unsupported)?;
        // ETW_SET_MARK_INFORMATION: a ULONG of flags, then the text.
        let mut units = vec![0_u16; 2];
        units.extend(wide(text)?);
        let bytes = u32::try_from(size_of_val(units.as_slice())).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: no handle means all kernel sessions; it reads as many bytes as it is told.
        check(unsafe { mark(std::ptr::null_mut(), units.as_ptr().cast(), bytes) })
    }
}

/// A session's name, with its final zero.
fn session_name(name: &str) -> io::Result<Vec<u16>> {
    let name = wide(name)?;
    if name.len() > TEXT { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(name) }
}

/// `EVENT_FILTER_EVENT_ID` in units of two bytes: FilterIn and Reserved, Count, Events.
fn filter(keep: bool, ids: &[u16]) -> Vec<u16> {
    let ids = ids.get(..MOST_IDS).unwrap_or(ids);
    [u16::from(keep), ids.len() as u16].into_iter().chain(ids.iter().copied()).collect()
}

fn guid(bytes: [u8; 16]) -> GUID {
    let [a, b, c, d, e, f, g, h, data4 @ ..] = bytes;
    GUID {
        data1: u32::from_le_bytes([a, b, c, d]),
        data2: u16::from_le_bytes([e, f]),
        data3: u16::from_le_bytes([g, h]),
        data4,
    }
}

fn bytes_of(guid: &GUID) -> [u8; 16] {
    let mut bytes = [0; 16];
    let parts = guid.data1.to_le_bytes().into_iter().chain(guid.data2.to_le_bytes());
    let parts = parts.chain(guid.data3.to_le_bytes()).chain(guid.data4);
    bytes.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes and offsets that `tests/etw-double/layout.c` asserts of Microsoft's headers.
    #[test]
    fn layouts_are_those_of_evntrace_h() {
        use std::mem::offset_of;
        assert_eq!(size_of::<WNODE_HEADER>(), 48);
        assert_eq!(size_of::<EVENT_TRACE_PROPERTIES>(), 120);
        assert_eq!(offset_of!(EVENT_TRACE_PROPERTIES, LogFileNameOffset), 112);
        assert_eq!(offset_of!(EVENT_TRACE_PROPERTIES, LoggerNameOffset), 116);
        assert_eq!(offset_of!(EVENT_TRACE_PROPERTIES, EventsLost), 88);
        assert_eq!(size_of::<CLASSIC_EVENT_ID>(), 24);
        assert_eq!(size_of::<ENABLE_TRACE_PARAMETERS>(), 48);
        assert_eq!(offset_of!(ENABLE_TRACE_PARAMETERS, EnableFilterDesc), 32);
        assert_eq!(offset_of!(ENABLE_TRACE_PARAMETERS, FilterDescCount), 40);
        assert_eq!(size_of::<EVENT_FILTER_DESCRIPTOR>(), 16);
        assert_eq!(std::mem::offset_of!(Block, name), 120);
    }

    #[test]
    fn guids_and_filters_have_their_bytes() {
        let bytes = std::array::from_fn(|n| n as u8);
        assert_eq!(guid(bytes).data1, 0x0302_0100);
        assert_eq!(bytes_of(&guid(bytes)), bytes);
        assert_eq!(filter(true, &[80]), [1, 1, 80]);
        assert_eq!(filter(false, &[7; 99]).len(), 2 + MOST_IDS);
    }

    #[test]
    fn names_that_do_not_fit_are_errors() {
        assert!(session_name(&"x".repeat(TEXT)).is_err());
        assert!(Block::new().set_file(Path::new(&"x".repeat(TEXT))).is_err());
        assert!(Block::new().set_file(Path::new("C:\\x.etl")).is_ok());
    }
}
