//! What handlers see of an event.

use etwhy_base::{Guid, utf16};
use etwhy_decode::Value;
use etwhy_decode::kernel::Slot;
use etwhy_decode::read::{Decoded, read};
use etwhy_decode::schema::EventSchema;
use etwhy_etl::Record;
use std::borrow::Cow;

/// An event on its way through the handlers.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// The record.
    pub record: &'a Record<'a>,
    /// Its own data, behind header and extended items.
    pub payload: &'a [u8],
    /// Nanoseconds since the start of the trace.
    pub ns: i64,
    /// The handler's number for this kind of event.
    pub tag: u8,
    /// Dense number of the event type.
    pub type_index: u32,
    /// The event's schema, if anybody described it.
    pub schema: Option<&'a EventSchema>,
    /// Provider and name, as in the table `event_type`.
    pub names: (&'a str, &'a str),
    pub(crate) slots: &'a [Option<Slot>],
    /// The thread that the header names has written the record itself, in the process that it names.
    pub(crate) own_header: bool,
    /// Bytes of a pointer in its payload.
    pub(crate) pointer_size: usize,
}

impl<'a> Event<'a> {
    /// The fast field of that index, zero-extended; `None` if the payload is too short.
    #[inline]
    pub fn u64(&self, field: usize) -> Option<u64> {
        self.slots.get(field)?.as_ref()?.u64(self.payload)
    }

    /// The fast field of that index, sign-extended.
    #[inline]
    pub fn i64(&self, field: usize) -> Option<i64> {
        self.slots.get(field)?.as_ref()?.i64(self.payload)
    }

    /// The UTF-16 text that stands right behind the fast field of that index, up to its nul; empty without it.
    /// Quicker than [`Event::fields`] for the one text of a kernel event.
    pub fn text_after(&self, field: usize) -> String {
        let slot = self.slots.get(field).and_then(Option::as_ref);
        let start = slot.map_or(usize::MAX, |slot| slot.offset().saturating_add(slot.width()));
        utf16::text(utf16::until_nul(self.payload.get(start..).unwrap_or(&[])))
    }

    /// All fields by name.
    pub fn fields(&self) -> Fields<'a> {
        let decoded = self.schema.map(|s| read(s, self.payload, self.pointer_size));
        Fields { schema: self.schema, decoded }
    }

    /// Thread and process that the header names; `None` if it names none (or nobody).
    #[inline]
    pub fn tid_pid(&self) -> Option<(u32, u32)> {
        self.record.tid_pid().filter(|(tid, pid)| *tid != u32::MAX && *pid != u32::MAX)
    }

    /// Process that the header names; a header may name a process and no thread.
    #[inline]
    pub fn pid(&self) -> Option<u32> {
        self.record.tid_pid().map(|(_, pid)| pid).filter(|pid| *pid != u32::MAX)
    }
}

/// Decoded fields of one event.
pub struct Fields<'a> {
    schema: Option<&'a EventSchema>,
    decoded: Option<Decoded<'a>>,
}

impl<'a> Fields<'a> {
    /// The fields of a record with that schema.
    pub(crate) fn new(schema: &'a EventSchema, record: &Record<'a>) -> Fields<'a> {
        Fields { schema: Some(schema), decoded: Some(read(schema, record.payload(), record.pointer_size())) }
    }

    /// The value of a field; the first of several `|`-separated names that exists.
    pub fn get(&self, names: &str) -> Option<&Value<'a>> {
        let (schema, decoded) = (self.schema?, self.decoded.as_ref()?);
        names.split('|').find_map(|name| decoded.get(schema, name))
    }

    /// An unsigned number, 0 if it is missing.
    pub fn u64(&self, names: &str) -> u64 {
        self.get(names).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A 32-bit number, `None` if it is missing.
    pub fn u32(&self, names: &str) -> Option<u32> {
        self.get(names).and_then(Value::as_u64).map(|v| v as u32)
    }

    /// A signed number, `None` if it is missing.
    pub fn i64(&self, names: &str) -> Option<i64> {
        self.get(names).and_then(Value::as_i64)
    }

    /// A text, empty if it is missing.
    pub fn text(&self, names: &str) -> Cow<'a, str> {
        self.get(names).and_then(Value::as_text).map_or(Cow::Borrowed(""), |text| text.to_str())
    }

    /// A text that is not empty.
    pub fn non_empty(&self, names: &str) -> Option<Cow<'a, str>> {
        Some(self.text(names)).filter(|t| !t.is_empty())
    }

    /// A GUID.
    pub fn guid(&self, name: &str) -> Option<Guid> {
        self.get(name).and_then(Value::as_guid)
    }
}
