//! What handlers see of an event, and how they say which events they want.

use crate::inputs::Inputs;
use crate::model::Model;
use crate::model::place::PlaceId;
use crate::model::stack::NO_STACK;
use crate::symbols::Symbols;
use etwhy_base::{Guid, utf16};
use etwhy_decode::Value;
use etwhy_decode::kernel::{KernelEvent, Slot};
use etwhy_decode::read::{Decoded, read};
use etwhy_decode::schema::EventSchema;
use etwhy_etl::read::Timeline;
use etwhy_etl::{Ledger, Record};
use etwhy_table::{Strings, Sym};
use std::borrow::Cow;

/// Which events a handler wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A kernel event. Classic events of the group's class GUID are the same events.
    Kernel(KernelEvent),
    /// Classic events of a class GUID and opcode.
    Classic(Guid, u8),
    /// Events of a provider by id.
    Manifest(Guid, u16),
    /// All events of a provider.
    Provider(Guid),
    /// Every event with an `EVENT_HEADER`, that is of manifest and TraceLogging providers.
    AnyUser,
    /// Every event.
    Any,
}

/// A wish: which events, under which number the handler wants to know them, and which fields of fixed place
/// it reads often. A field name may hold alternatives (`ImageBase|BaseAddress`) where versions differ.
#[derive(Clone, Copy, Debug)]
pub struct Select {
    /// Which events.
    pub what: What,
    /// The handler's own number for them.
    pub tag: u8,
    /// Fields for [`Event::u64`], by index.
    pub fields: &'static [&'static str],
}

impl Select {
    /// A wish for a kernel event under its type as the tag.
    pub const fn kernel(event: KernelEvent, fields: &'static [&'static str]) -> Select {
        Select::with(What::Kernel(event), event.opcode, fields)
    }

    /// A wish without fast fields.
    pub const fn new(what: What, tag: u8) -> Select {
        Select { what, tag, fields: &[] }
    }

    /// A wish with fast fields.
    pub const fn with(what: What, tag: u8, fields: &'static [&'static str]) -> Select {
        Select { what, tag, fields }
    }
}

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

/// What handlers work with besides the event.
pub struct Context<'c> {
    /// Who is who right now.
    pub model: &'c mut Model,
    /// The text pool of all tables.
    pub strings: &'c mut Strings,
    /// Times.
    pub timeline: &'c Timeline,
    /// Where anomalies are counted.
    pub ledger: &'c mut Ledger,
    /// What the user gave for the analyses.
    pub inputs: &'c Inputs,
    pub(crate) symbols: &'c mut Symbols,
}

impl Context<'_> {
    /// Interns a text.
    pub fn sym(&mut self, text: impl AsRef<str>) -> Sym {
        self.strings.intern(text.as_ref())
    }

    /// Interns a text unless it is empty.
    pub fn sym_or_none(&mut self, text: impl AsRef<str>) -> Option<Sym> {
        let text = text.as_ref();
        if text.is_empty() { None } else { Some(self.strings.intern(text)) }
    }

    /// The thread instance that the event's header names.
    pub fn utid(&mut self, event: &Event<'_>) -> Option<u32> {
        let (tid, pid) = event.tid_pid()?;
        if !event.own_header {
            // The process may be that of which the event speaks, and the thread the one which wrote it.
            let of_process = |&utid: &u32| {
                let upid = self.model.upid_of(utid);
                upid.is_some() && upid == self.model.processes.current(pid)
            };
            return self.model.threads.current(tid).filter(of_process);
        }
        Some(self.model.thread(tid, Some(pid), event.ns))
    }

    /// The process instance that the event's header names.
    pub fn upid(&mut self, event: &Event<'_>) -> Option<u32> {
        let pid = event.pid()?;
        if !event.own_header {
            return self.model.processes.current(pid);
        }
        Some(self.model.processes.at(pid, event.ns))
    }

    /// The number of a routine's address. `upid` matters for addresses of user mode only.
    #[inline]
    pub fn place(&mut self, upid: Option<u32>, address: u64) -> PlaceId {
        let upid = upid.filter(|_| !crate::model::image::is_kernel(address, 8));
        let epoch = upid.map_or(0, |u| self.model.images.epoch(Some(u)));
        self.model.places.number(crate::model::place::CodeAddress { upid, epoch, address })
    }

    /// Module and function at an address of the kernel, as far as images and symbols are known at this moment
    /// of the pass. Names in rows are resolved at its end ([`Context::place`]); this is for analyses that must
    /// know now what is called.
    pub fn kernel_routine(&mut self, address: u64) -> Option<(&str, Option<String>)> {
        self.symbols.kernel_routine(address, self.model, self.strings, self.ledger)
    }

    /// Asks for the stack of the event: the ticket goes into a stack column and is exchanged for the
    /// stack's number at the end of the pass. `tid` is the thread that the stack record will name, `utid`
    /// its instance.
    #[inline]
    pub fn stack_ticket(&mut self, event: &Event<'_>, tid: Option<u32>, utid: Option<u32>) -> i32 {
        self.stack_ticket_at(event, tid, utid, 0)
    }

    /// As [`Context::stack_ticket`], but [`NO_STACK`] for most events of a kind that has had no stack so far. For sums
    /// that gain little by a stack: where none are recorded, each ticket would wait for its stack in vain for seconds.
    #[inline]
    pub fn stack_ticket_if_recorded(
        &mut self,
        event: &Event<'_>,
        tid: Option<u32>,
        utid: Option<u32>,
    ) -> i32 {
        match self.model.stacks.expects(event) {
            true => self.stack_ticket(event, tid, utid),
            false => NO_STACK,
        }
    }

    /// As [`Context::stack_ticket`], for an event whose instruction pointer is known: it makes a stack of
    /// one frame where no stack was recorded.
    #[inline]
    pub fn stack_ticket_at(
        &mut self,
        event: &Event<'_>,
        tid: Option<u32>,
        utid: Option<u32>,
        ip: u64,
    ) -> i32 {
        let model = &mut *self.model;
        let known = (&model.threads, &model.images);
        model.stacks.ticket(event, tid, utid, ip, known)
    }
}
