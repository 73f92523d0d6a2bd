//! What handlers work with besides the event.

use super::fields::Event;
use super::span;
use crate::inputs::Inputs;
use crate::model::Model;
use crate::model::place::PlaceId;
use crate::model::stack::NO_STACK;
use crate::symbols::Symbols;
use etwhy_etl::Ledger;
use etwhy_etl::read::Timeline;
use etwhy_table::{Strings, Sym};

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
    /// Time from `initial`, the ticks at which the payload says that it began, to the event. `None`, and counted, if that is after the
    /// event, or longer before the trace than `before_ns`.
    #[inline]
    pub fn span_since(&mut self, event: &Event<'_>, initial: i64, before_ns: i64) -> Option<i64> {
        span::since(event, initial, before_ns, self.timeline, self.ledger)
    }

    /// The same of events that another table counts.
    #[inline]
    pub fn span_since_uncounted(&self, event: &Event<'_>, initial: i64, before_ns: i64) -> Option<i64> {
        span::uncounted(event, initial, before_ns, self.timeline)
    }

    /// Interns a text.
    pub fn sym(&mut self, text: impl AsRef<str>) -> Sym {
        self.strings.intern(text.as_ref())
    }

    /// Interns a text unless it is empty.
    pub fn sym_or_none(&mut self, text: impl AsRef<str>) -> Option<Sym> {
        self.strings.intern_non_empty(text.as_ref())
    }

    /// The thread instance that the event's header names.
    pub fn utid(&mut self, event: &Event<'_>) -> Option<u32> {
        self.model.threads.of_header(event, &mut self.model.processes)
    }

    /// The process instance that the event's header names.
    pub fn upid(&mut self, event: &Event<'_>) -> Option<u32> {
        self.model.processes.of_header(event)
    }

    /// The number of a routine's address. `upid` matters for addresses of user mode only.
    #[inline]
    pub fn place(&mut self, upid: Option<u32>, address: u64) -> PlaceId {
        self.model.places.at(upid, address, &self.model.images)
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
