//! Builds one record: a header, extended items, payload.

use crate::HeaderKind;
use crate::abi::header::*;
use etwhy_base::Guid;
use std::io;

/// What an `EVENT_TRACE_HEADER` says.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassicHead {
    /// Class GUID.
    pub guid: Guid,
    /// Type, also called opcode.
    pub opcode: u8,
    /// Level.
    pub level: u8,
    /// Version of the payload.
    pub version: u16,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
}

/// What an `EVENT_HEADER` says.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventHead {
    /// Provider GUID.
    pub provider: Guid,
    /// `EVENT_DESCRIPTOR.Id`.
    pub id: u16,
    /// `EVENT_DESCRIPTOR.Version`.
    pub version: u8,
    /// `EVENT_DESCRIPTOR.Channel`.
    pub channel: u8,
    /// `EVENT_DESCRIPTOR.Level`.
    pub level: u8,
    /// `EVENT_DESCRIPTOR.Opcode`.
    pub opcode: u8,
    /// `EVENT_DESCRIPTOR.Task`.
    pub task: u16,
    /// `EVENT_DESCRIPTOR.Keyword`.
    pub keyword: u64,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// `ActivityId`.
    pub activity: Guid,
    /// `Flags`; the bit for extended items is added when there are any.
    pub flags: u16,
    /// `EventProperty`.
    pub property: u16,
}

/// What a `MESSAGE_TRACE_HEADER` says. The option flags follow from what is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageHead {
    /// Message number.
    pub number: u16,
    /// Sequence number.
    pub sequence: Option<u32>,
    /// Message GUID.
    pub guid: Option<Guid>,
    /// Component id; in place of the GUID.
    pub component: Option<u32>,
    /// Timestamp.
    pub ticks: Option<i64>,
    /// Thread and process id.
    pub tid_pid: Option<(u32, u32)>,
    /// Pointer size of the arguments: 4, 8, or 0 to say nothing.
    pub pointer: u8,
}

/// A record under construction. Reusable: every header function starts a new record.
#[derive(Clone, Debug)]
pub struct RecordBuf {
    pub(super) bytes: Vec<u8>,
    kind: HeaderKind,
    header: usize,
    pointer: u8,
    ticks: i64,
    /// Offset of the newest extended item, to chain the next one.
    pub(super) last_ext: Option<usize>,
}

impl Default for RecordBuf {
    fn default() -> RecordBuf {
        RecordBuf::new()
    }
}

impl RecordBuf {
    /// An empty record.
    pub fn new() -> RecordBuf {
        let bytes = Vec::with_capacity(512);
        RecordBuf { bytes, kind: HeaderKind::Error, header: 0, pointer: 8, ticks: 0, last_ext: None }
    }

    fn start(&mut self, kind: HeaderKind, ticks: i64) -> &mut RecordBuf {
        self.bytes.clear();
        self.kind = kind;
        self.pointer = kind.pointer_size() as u8;
        self.ticks = ticks;
        self.last_ext = None;
        self
    }

    fn kernel_start(&mut self, kind: HeaderKind, hook: u16, version: u8, ticks: i64) -> &mut RecordBuf {
        self.start(kind, ticks);
        self.u16(u16::from(version)).u8(kind as u8).u8(FLAGS_TRACE_HEADER).u16(0).u16(hook)
    }

    /// `SYSTEM_TRACE_HEADER`. `pointer` is 4 or 8; `times` are kernel and user time in clock ticks.
    #[allow(clippy::too_many_arguments)]
    pub fn system(
        &mut self,
        pointer: u8,
        hook: u16,
        version: u8,
        ticks: i64,
        pid: u32,
        tid: u32,
        times: (u32, u32),
    ) -> &mut RecordBuf {
        let kind = if pointer == 4 { HeaderKind::System32 } else { HeaderKind::System64 };
        self.kernel_start(kind, hook, version, ticks).u32(tid).u32(pid).i64(ticks).u32(times.0).u32(times.1);
        self.payload_starts()
    }

    /// `SYSTEM_TRACE_HEADER` without processor times.
    pub fn compact(
        &mut self,
        pointer: u8,
        hook: u16,
        version: u8,
        ticks: i64,
        pid: u32,
        tid: u32,
    ) -> &mut RecordBuf {
        let kind = if pointer == 4 { HeaderKind::Compact32 } else { HeaderKind::Compact64 };
        self.kernel_start(kind, hook, version, ticks).u32(tid).u32(pid).i64(ticks);
        self.payload_starts()
    }

    /// `PERFINFO_TRACE_HEADER`: a hook id and a time, neither thread nor process.
    pub fn perfinfo(&mut self, pointer: u8, hook: u16, version: u8, ticks: i64) -> &mut RecordBuf {
        let kind = if pointer == 4 { HeaderKind::PerfInfo32 } else { HeaderKind::PerfInfo64 };
        self.kernel_start(kind, hook, version, ticks).i64(ticks);
        self.payload_starts()
    }

    /// Adds a PEBS index and up to 7 PMC counters to a kernel header; call it before any payload.
    pub fn counters(&mut self, pebs: Option<u64>, counters: &[u64]) -> &mut RecordBuf {
        let n = counters.len().min(7);
        let mut version = self.bytes.first().copied().map_or(0, u16::from);
        version |= (n as u16) << SYSTEM_VERSION_PMC_SHIFT;
        if let Some(pebs) = pebs {
            version |= SYSTEM_VERSION_PEBS;
            self.u64(pebs);
        }
        for &value in counters.iter().take(n) {
            self.u64(value);
        }
        self.patch_u16(SYSTEM_VERSION, version);
        self.payload_starts()
    }

    /// `EVENT_TRACE_HEADER`.
    pub fn full(&mut self, pointer: u8, ticks: i64, head: &ClassicHead) -> &mut RecordBuf {
        let kind = if pointer == 4 { HeaderKind::Full32 } else { HeaderKind::Full64 };
        self.classic_start(kind, ticks, head);
        self.payload_starts()
    }

    fn classic_start(&mut self, kind: HeaderKind, ticks: i64, head: &ClassicHead) {
        self.start(kind, ticks).u16(0).u8(kind as u8).u8(FLAGS_TRACE_HEADER);
        self.u8(head.opcode).u8(head.level).u16(head.version).u32(head.tid).u32(head.pid).i64(ticks);
        self.guid(head.guid).u64(0);
    }

    /// `EVENT_INSTANCE_GUID_HEADER`.
    pub fn instance(
        &mut self,
        pointer: u8,
        ticks: i64,
        head: &ClassicHead,
        (id, parent, parent_guid): (u32, u32, Guid),
    ) -> &mut RecordBuf {
        let kind = if pointer == 4 { HeaderKind::Instance32 } else { HeaderKind::Instance64 };
        self.classic_start(kind, ticks, head);
        self.u32(id).u32(parent).guid(parent_guid);
        self.payload_starts()
    }

    /// `EVENT_HEADER`. Extended items come next (`ext`, `stack`, ...), then the payload.
    pub fn event(&mut self, pointer: u8, ticks: i64, head: &EventHead) -> &mut RecordBuf {
        let kind = if pointer == 4 { HeaderKind::Event32 } else { HeaderKind::Event64 };
        self.start(kind, ticks).u16(0).u8(kind as u8).u8(FLAGS_TRACE_HEADER);
        self.u16(head.flags).u16(head.property).u32(head.tid).u32(head.pid).i64(ticks).guid(head.provider);
        self.u16(head.id).u8(head.version).u8(head.channel).u8(head.level).u8(head.opcode);
        self.u16(head.task).u64(head.keyword).u64(0).guid(head.activity);
        self.payload_starts()
    }

    /// `MESSAGE_TRACE_HEADER` (WPP). Without a timestamp, `order_ticks` only orders it.
    pub fn message(&mut self, order_ticks: i64, head: &MessageHead) -> &mut RecordBuf {
        let mut flags = 0;
        for (present, flag) in [
            (head.sequence.is_some(), MESSAGE_FLAG_SEQUENCE),
            (head.guid.is_some(), MESSAGE_FLAG_GUID),
            (head.component.is_some() && head.guid.is_none(), MESSAGE_FLAG_COMPONENTID),
            (head.ticks.is_some(), MESSAGE_FLAG_TIMESTAMP),
            (head.tid_pid.is_some(), MESSAGE_FLAG_SYSTEMINFO),
            (head.pointer == 4, MESSAGE_FLAG_32BIT_POINTER),
            (head.pointer == 8, MESSAGE_FLAG_64BIT_POINTER),
        ] {
            if present {
                flags |= flag;
            }
        }
        self.start(HeaderKind::Message, head.ticks.unwrap_or(order_ticks));
        if head.pointer == 4 {
            self.pointer = 4;
        }
        self.u16(0).u8(0).u8(FLAGS_MESSAGE).u16(head.number).u16(flags);
        if let Some(sequence) = head.sequence {
            self.u32(sequence);
        }
        match (head.guid, head.component) {
            (Some(guid), _) => drop(self.guid(guid)),
            (None, Some(component)) => drop(self.u32(component)),
            _ => (),
        }
        if let Some(ticks) = head.ticks {
            self.i64(ticks);
        }
        if let Some((tid, pid)) = head.tid_pid {
            self.u32(tid).u32(pid);
        }
        self.payload_starts()
    }

    pub(super) fn payload_starts(&mut self) -> &mut RecordBuf {
        self.header = self.bytes.len();
        self
    }

    pub(super) fn patch_u16(&mut self, at: usize, value: u16) {
        if let Some(place) = self.bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Sets the record's size and gives its bytes.
    ///
    /// # Errors
    /// `InvalidInput` when it is larger than 65535 bytes or no header was begun.
    pub fn finish(&mut self) -> io::Result<&[u8]> {
        let too_large = |_| {
            let text =
                format!("a record of {} bytes does not fit; the limit is {MAX_RECORD}", self.bytes.len());
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let size = u16::try_from(self.bytes.len()).map_err(too_large)?;
        if self.bytes.len() < 8 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record without a header"));
        }
        let at = if self.kind.is_system() { SYSTEM_SIZE } else { GUID_SIZE };
        self.patch_u16(at, size);
        Ok(&self.bytes)
    }

    /// Kind of the record under construction.
    pub fn kind(&self) -> HeaderKind {
        self.kind
    }

    /// Its timestamp.
    pub fn ticks(&self) -> i64 {
        self.ticks
    }

    /// Pointer size of its payload: 4 or 8.
    pub fn pointer_size(&self) -> u8 {
        self.pointer
    }

    /// Appends zeros until the payload is `len` bytes long.
    pub fn pad_payload(&mut self, len: usize) -> &mut RecordBuf {
        let end = self.header + len;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self
    }

    /// Appends a u8.
    pub fn u8(&mut self, value: u8) -> &mut RecordBuf {
        self.bytes.push(value);
        self
    }

    /// Appends a u16.
    pub fn u16(&mut self, value: u16) -> &mut RecordBuf {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a u32.
    pub fn u32(&mut self, value: u32) -> &mut RecordBuf {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a u64.
    pub fn u64(&mut self, value: u64) -> &mut RecordBuf {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends an i64.
    pub fn i64(&mut self, value: i64) -> &mut RecordBuf {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends an f64.
    pub fn f64(&mut self, value: f64) -> &mut RecordBuf {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a pointer (or size_t) of the record's size; the high half is cut off in 32-bit records.
    pub fn ptr(&mut self, value: u64) -> &mut RecordBuf {
        if self.pointer == 4 { self.u32(value as u32) } else { self.u64(value) }
    }

    /// Appends a GUID.
    pub fn guid(&mut self, guid: Guid) -> &mut RecordBuf {
        self.bytes(&guid.0)
    }

    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut RecordBuf {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends `n` zeros.
    pub fn zeros(&mut self, n: usize) -> &mut RecordBuf {
        self.bytes.resize(self.bytes.len() + n, 0);
        self
    }

    /// Appends UTF-16 without an end mark.
    pub fn utf16(&mut self, text: &str) -> &mut RecordBuf {
        for unit in text.encode_utf16() {
            self.u16(unit);
        }
        self
    }

    /// Appends UTF-16, nul-ended.
    pub fn utf16z(&mut self, text: &str) -> &mut RecordBuf {
        self.utf16(text).u16(0)
    }

    /// Appends UTF-16 in exactly `units` units, cut or filled with zeros, the last always zero.
    pub fn utf16_fixed(&mut self, text: &str, units: usize) -> &mut RecordBuf {
        let end = self.bytes.len() + 2 * units;
        for unit in text.encode_utf16().take(units.saturating_sub(1)) {
            self.u16(unit);
        }
        self.bytes.resize(end, 0);
        self
    }

    /// Appends 8-bit text (UTF-8), nul-ended.
    pub fn text_z(&mut self, text: &str) -> &mut RecordBuf {
        self.bytes(text.as_bytes()).u8(0)
    }
}
