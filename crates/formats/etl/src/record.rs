//! One record: a view on its bytes with accessors for what its header says.

use crate::abi::header::{self, *};
use etwhy_base::{Bytes, Guid};

/// The record header kinds that occur on disk, and their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum HeaderKind {
    /// `SYSTEM_TRACE_HEADER`, 32-bit writer.
    System32 = 1,
    /// `SYSTEM_TRACE_HEADER`, 64-bit writer.
    System64 = 2,
    /// `SYSTEM_TRACE_HEADER` without processor times, 32-bit.
    Compact32 = 3,
    /// `SYSTEM_TRACE_HEADER` without processor times, 64-bit.
    Compact64 = 4,
    /// `EVENT_TRACE_HEADER`, 32-bit.
    Full32 = 10,
    /// `EVENT_INSTANCE_GUID_HEADER`, 32-bit.
    Instance32 = 11,
    /// `PERFINFO_TRACE_HEADER`, 32-bit.
    PerfInfo32 = 16,
    /// `PERFINFO_TRACE_HEADER`, 64-bit.
    PerfInfo64 = 17,
    /// `EVENT_HEADER`, 32-bit.
    Event32 = 18,
    /// `EVENT_HEADER`, 64-bit.
    Event64 = 19,
    /// `EVENT_TRACE_HEADER`, 64-bit.
    Full64 = 20,
    /// `EVENT_INSTANCE_GUID_HEADER`, 64-bit.
    Instance64 = 21,
    /// An error record; only its size is known.
    Error = 13,
    /// A WPP message (`MESSAGE_TRACE_HEADER`).
    Message = 64,
}

impl HeaderKind {
    /// The kind of a header type byte under the 0xC0 flag.
    #[inline]
    pub fn from_type(kind: u8) -> Option<HeaderKind> {
        use HeaderKind::*;
        Some(match kind {
            1 => System32,
            2 => System64,
            3 => Compact32,
            4 => Compact64,
            10 => Full32,
            11 => Instance32,
            13 => Error,
            16 => PerfInfo32,
            17 => PerfInfo64,
            18 => Event32,
            19 => Event64,
            20 => Full64,
            21 => Instance64,
            _ => return None,
        })
    }

    /// Name as used in `info` and in tests.
    pub fn name(self) -> &'static str {
        use HeaderKind::*;
        match self {
            System32 => "System32",
            System64 => "System64",
            Compact32 => "Compact32",
            Compact64 => "Compact64",
            Full32 => "Full32",
            Full64 => "Full64",
            Instance32 => "Instance32",
            Instance64 => "Instance64",
            PerfInfo32 => "Perf32",
            PerfInfo64 => "Perf64",
            Event32 => "EvtHdr32",
            Event64 => "EvtHdr64",
            Error => "Error",
            Message => "Message",
        }
    }

    /// True for the three kernel layouts that carry a hook id instead of a GUID.
    #[inline]
    pub fn is_system(self) -> bool {
        matches!(self as u8, 1..=4 | 16 | 17)
    }

    /// True for `PERFINFO_TRACE_HEADER`, which carries neither thread nor process.
    #[inline]
    pub fn is_perfinfo(self) -> bool {
        matches!(self, HeaderKind::PerfInfo32 | HeaderKind::PerfInfo64)
    }

    /// True for `EVENT_TRACE_HEADER` and its instance form: a class GUID, an opcode and a version.
    #[inline]
    pub fn is_classic(self) -> bool {
        matches!(self as u8, 10 | 11 | 20 | 21)
    }

    /// True for `EVENT_HEADER`: provider GUID and `EVENT_DESCRIPTOR`.
    #[inline]
    pub fn is_event(self) -> bool {
        matches!(self, HeaderKind::Event32 | HeaderKind::Event64)
    }

    /// Bytes of the fixed header (for messages the first 8 only; the rest depends on their flags).
    #[inline]
    pub fn header_len(self) -> usize {
        match self as u8 {
            1 | 2 => header::SYSTEM_LEN,
            3 | 4 => header::COMPACT_LEN,
            10 | 20 => header::FULL_LEN,
            11 | 21 => header::INSTANCE_LEN,
            16 | 17 => header::PERFINFO_LEN,
            18 | 19 => header::EVENT_LEN,
            64 => header::MESSAGE_LEN,
            _ => 8,
        }
    }

    /// Pointer size of the payload. A property of the record, not of the file.
    #[inline]
    pub fn pointer_size(self) -> usize {
        match self as u8 {
            1 | 3 | 10 | 11 | 16 | 18 => 4,
            _ => 8,
        }
    }
}

/// One record of a trace. Borrowed: copy what you need out of it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The whole record, header included, without the padding behind it.
    pub bytes: &'a [u8],
    /// What kind of header it starts with.
    pub kind: HeaderKind,
    /// Timestamp in ticks of the session's clock, as recorded. A message without a timestamp gets the
    /// timestamp of the record before it in its buffer.
    pub ticks: i64,
    /// System-wide processor index of the buffer that holds it.
    pub cpu: u16,
    /// Session id of the buffer that holds it (0 in merged files).
    pub logger_id: u16,
    /// Which of the opened files it comes from (index into the files of the walk).
    pub file: u16,
}

impl<'a> Record<'a> {
    /// Pointer size of this record's payload: 4 or 8.
    #[inline]
    pub fn pointer_size(&self) -> usize {
        if self.kind == HeaderKind::Message && self.message_flags() & MESSAGE_FLAG_32BIT_POINTER != 0 {
            return 4;
        }
        self.kind.pointer_size()
    }

    /// Kernel records: group in the high byte, type in the low byte. 0 for others.
    #[inline]
    pub fn hook(&self) -> u16 {
        if self.kind.is_system() { self.bytes.u16_at(SYSTEM_HOOK).unwrap_or(0) } else { 0 }
    }

    /// Kernel event group (the high byte of the hook id).
    #[inline]
    pub fn group(&self) -> u8 {
        (self.hook() >> 8) as u8
    }

    /// Opcode: the type of a kernel record, the type of a classic one, the descriptor's opcode.
    #[inline]
    pub fn opcode(&self) -> u8 {
        let at = match self.kind {
            k if k.is_system() => SYSTEM_HOOK,
            k if k.is_classic() => FULL_TYPE,
            k if k.is_event() => EVENT_OPCODE,
            _ => return 0,
        };
        self.bytes.u8_at(at).unwrap_or(0)
    }

    /// Payload version, with the flag bits of kernel headers masked out.
    #[inline]
    pub fn version(&self) -> u16 {
        if self.kind.is_system() {
            self.bytes.u16_at(SYSTEM_VERSION).unwrap_or(0) & SYSTEM_VERSION_MASK
        } else if self.kind.is_event() {
            self.bytes.u8_at(EVENT_VERSION).unwrap_or(0).into()
        } else if self.kind.is_classic() {
            self.bytes.u16_at(FULL_VERSION).unwrap_or(0)
        } else {
            0
        }
    }

    /// `EVENT_DESCRIPTOR.Id`; the message number of WPP messages; 0 for others.
    #[inline]
    pub fn id(&self) -> u16 {
        let at = match self.kind {
            k if k.is_event() => EVENT_ID,
            HeaderKind::Message => MESSAGE_NUMBER,
            _ => return 0,
        };
        self.bytes.u16_at(at).unwrap_or(0)
    }

    /// `EVENT_DESCRIPTOR.Task`.
    #[inline]
    pub fn task(&self) -> u16 {
        if self.kind.is_event() { self.bytes.u16_at(EVENT_TASK).unwrap_or(0) } else { 0 }
    }

    /// `EVENT_DESCRIPTOR.Channel` (11 marks TraceLogging).
    #[inline]
    pub fn channel(&self) -> u8 {
        if self.kind.is_event() { self.bytes.u8_at(EVENT_CHANNEL).unwrap_or(0) } else { 0 }
    }

    /// Level of manifest and classic events.
    #[inline]
    pub fn level(&self) -> u8 {
        let at = match self.kind {
            k if k.is_event() => EVENT_LEVEL,
            k if k.is_classic() => FULL_LEVEL,
            _ => return 0,
        };
        self.bytes.u8_at(at).unwrap_or(0)
    }

    /// `EVENT_DESCRIPTOR.Keyword`.
    #[inline]
    pub fn keyword(&self) -> u64 {
        if self.kind.is_event() { self.bytes.u64_at(EVENT_KEYWORD).unwrap_or(0) } else { 0 }
    }

    /// `EVENT_HEADER.Flags`.
    #[inline]
    pub fn event_flags(&self) -> u16 {
        if self.kind.is_event() { self.bytes.u16_at(EVENT_FLAGS).unwrap_or(0) } else { 0 }
    }

    /// Provider GUID (events), class GUID (classic), message GUID (WPP that carries one).
    #[inline]
    pub fn guid(&self) -> Option<Guid> {
        match self.kind {
            k if k.is_event() || k.is_classic() => self.bytes.guid_at(FULL_GUID),
            HeaderKind::Message => {
                let flags = self.message_flags();
                let at = MESSAGE_LEN + if flags & MESSAGE_FLAG_SEQUENCE != 0 { 4 } else { 0 };
                if flags & MESSAGE_FLAG_GUID != 0 { self.bytes.guid_at(at) } else { None }
            }
            _ => None,
        }
    }

    /// `EVENT_HEADER.ActivityId`, if it is not zero.
    pub fn activity_id(&self) -> Option<Guid> {
        if !self.kind.is_event() {
            return None;
        }
        self.bytes.guid_at(EVENT_ACTIVITY).filter(|g| !g.is_zero())
    }

    /// Thread and process id that the header carries; `None` when the kind has none.
    ///
    /// The value 0xFFFFFFFF ("nobody") is given as recorded.
    #[inline]
    pub fn tid_pid(&self) -> Option<(u32, u32)> {
        match self.kind {
            HeaderKind::Error => None,
            k if k.is_perfinfo() => None,
            HeaderKind::Message => {
                let flags = self.message_flags();
                if flags & MESSAGE_FLAG_SYSTEMINFO == 0 {
                    return None;
                }
                let at = self.message_offset(MESSAGE_FLAG_SYSTEMINFO);
                Some((self.bytes.u32_at(at)?, self.bytes.u32_at(at + 4)?))
            }
            _ => Some((self.bytes.u32_at(COMMON_TID)?, self.bytes.u32_at(COMMON_PID)?)),
        }
    }

    /// OptionFlags of a WPP message.
    #[inline]
    pub fn message_flags(&self) -> u16 {
        if self.kind == HeaderKind::Message { self.bytes.u16_at(MESSAGE_OPTIONS).unwrap_or(0) } else { 0 }
    }

    /// Component id of a WPP message that carries one instead of a GUID.
    pub fn message_component(&self) -> Option<u32> {
        if self.message_flags() & MESSAGE_FLAG_COMPONENTID == 0 {
            return None;
        }
        self.bytes.u32_at(self.message_offset(MESSAGE_FLAG_COMPONENTID))
    }

    /// Offset of an optional part of a WPP message header, or of its arguments for flag 0.
    pub(crate) fn message_offset(&self, part: u16) -> usize {
        let flags = self.message_flags();
        let mut at = MESSAGE_LEN;
        for (flag, len) in MESSAGE_PARTS {
            if part == flag {
                return at;
            }
            // A message carries a GUID or a component id, never both.
            let shadowed = flag == MESSAGE_FLAG_COMPONENTID && flags & MESSAGE_FLAG_GUID != 0;
            if flags & flag != 0 && !shadowed {
                at += len;
            }
        }
        at
    }

    /// The event's own data, behind header, PMC counters and extended items.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let at = match self.kind {
            k if k.is_system() => {
                let version = self.bytes.u16_at(SYSTEM_VERSION).unwrap_or(0);
                k.header_len() + 8 * extra_words(version)
            }
            k if k.is_event() => {
                if self.event_flags() & EVENT_FLAG_EXTENDED_INFO != 0 {
                    self.ext_items().end()
                } else {
                    EVENT_LEN
                }
            }
            HeaderKind::Message => self.message_offset(0),
            k => k.header_len(),
        };
        self.bytes.get(at..).unwrap_or(&[])
    }

    /// Values of the performance counters that stand between a kernel header and its payload.
    pub fn pmc_counters(&self) -> impl Iterator<Item = u64> + 'a {
        let (start, n) = if self.kind.is_system() {
            let version = self.bytes.u16_at(SYSTEM_VERSION).unwrap_or(0);
            let pebs = usize::from(version & SYSTEM_VERSION_PEBS != 0);
            (self.kind.header_len() + 8 * pebs, extra_words(version) - pebs)
        } else {
            (0, 0)
        };
        let bytes = self.bytes;
        (0..n).filter_map(move |i| bytes.u64_at(start + 8 * i))
    }

    /// The extended items of an `EVENT_HEADER` record; empty for others.
    #[inline]
    pub fn ext_items(&self) -> ExtItems<'a> {
        let has = self.event_flags() & EVENT_FLAG_EXTENDED_INFO != 0;
        ExtItems { bytes: self.bytes, at: EVENT_LEN, more: has }
    }
}

/// Number of u64 (PEBS index and counters) that follow a kernel header.
#[inline]
fn extra_words(version: u16) -> usize {
    let pebs = usize::from(version & SYSTEM_VERSION_PEBS != 0);
    pebs + usize::from((version & SYSTEM_VERSION_PMC_COUNT) >> SYSTEM_VERSION_PMC_SHIFT)
}

/// One extended data item of an `EVENT_HEADER` record.
#[derive(Clone, Copy, Debug)]
pub struct ExtItem<'a> {
    /// `EVENT_HEADER_EXT_TYPE_*`, see [`crate::abi::ext`].
    pub kind: u16,
    /// The item's data.
    pub data: &'a [u8],
}

/// Iterator over extended items. Ends at the first item that does not fit.
#[derive(Clone, Copy, Debug)]
pub struct ExtItems<'a> {
    bytes: &'a [u8],
    at: usize,
    more: bool,
}

impl ExtItems<'_> {
    /// Offset behind the last item: where the user data starts.
    pub fn end(mut self) -> usize {
        while self.next().is_some() {}
        self.at
    }
}

impl<'a> Iterator for ExtItems<'a> {
    type Item = ExtItem<'a>;

    #[inline]
    fn next(&mut self) -> Option<ExtItem<'a>> {
        if !self.more {
            return None;
        }
        self.more = false;
        let size = usize::from(self.bytes.u16_at(self.at)?);
        let kind = self.bytes.u16_at(self.at + 2)?;
        let linkage = self.bytes.u16_at(self.at + 4)?;
        let len = usize::from(self.bytes.u16_at(self.at + 6)?);
        if size < 8 || len > size - 8 {
            return None;
        }
        let data = self.bytes.sub(self.at + 8, len)?;
        self.bytes.sub(self.at, size)?;
        self.at += size;
        self.more = linkage & 1 != 0;
        Some(ExtItem { kind, data })
    }
}
