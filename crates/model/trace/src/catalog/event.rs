//! Events: every event of the trace with its decoded fields.
//!
//! Large: made only when it is asked for. Kernel events that have a table of their own are here too, so that
//! every record of a trace can be looked at.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::extended;
use crate::fields_text::FieldsText;
use etwhy_base::Guid;
use etwhy_decode::message::render_message;
use etwhy_table::{Row, Sym, TableBuilder, define_table};

define_table! {
    /// All events with their fields as JSON.
    ///
    /// An event that nothing describes has its payload as `{"raw": "hex"}`. Bytes behind the last known field
    /// are shown as `"_rest"`; `"_truncated"` says that the payload ended early.
    pub table EVENT: EventRow = "event" {
        sorted_by: "ts_ns", version: 1, evidence: Verified("PerfView baselines, field by field"),
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Processor.
        cpu: i32 [None, Cpu],
        /// Process: as the header says, else of the thread.
        upid: Option<i32> [None, Process],
        /// Thread: as the header says, else as the payload names it, else the one that ran on the processor. None for DPCs and ISRs,
        /// which interrupt whoever runs.
        utid: Option<i32> [None, Thread],
        /// Provider.
        provider: Sym [None, Name],
        /// Event.
        name: Sym [None, Name],
        /// Kind of event (table `event_type`).
        event_type_id: i32 [None, Id],
        /// Level.
        level: i32 [None, Other],
        /// Activity, if the event has one.
        activity: Option<Sym> [None, Guid],
        /// Activity that it comes from, if the event says.
        related_activity: Option<Sym> [None, Guid],
        /// Fields as a JSON object.
        fields: Box<str> [None, Message],
        /// Other extended items (SID, session, process start key, counters, container, ...) as a JSON object.
        extended: Option<Box<str>> [None, Message],
        /// The event's message with its fields filled in, if its source has one.
        message: Option<Box<str>> [None, Message],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
    }
}

define_table! {
    /// Whose the events are, row by row as in table `event`: what a row has that does not stand in its record.
    pub table OWNER: OwnerRow = "event_owner" {
        version: 1,
        /// Process.
        upid: Option<i32> [None, Process],
        /// Thread.
        utid: Option<i32> [None, Thread],
        /// Stack.
        stack_id: Option<i32> [None, Stack],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&EVENT],
    selects: &[Select::new(What::Any, 0)],
    stacks: true,
    on_demand: true,
    new: |memory| Box::new(Events { rows: TableBuilder::new(memory), maker: RowMaker::default() }),
};

/// Given to a pass ([`Inputs`](crate::Inputs)): rows of table `event` are not kept but can be made when they are wanted, by
/// [`Output::events`](crate::Output::events).
#[derive(Clone, Copy, Debug)]
pub struct RowsLater;

/// In place of [`SPEC`] where the rows are made later, see [`LateEvents`](crate::LateEvents).
pub(crate) static LATER: AnalysisSpec = AnalysisSpec {
    tables: &[&OWNER],
    selects: SPEC.selects,
    stacks: true,
    on_demand: true,
    new: |memory| Box::new(Owners { rows: TableBuilder::new(memory), names: Names::default() }),
};

struct Events {
    rows: TableBuilder<EventRow>,
    maker: RowMaker,
}

impl Analysis for Events {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let owner = owner(event, cx);
        self.rows.push(self.maker.row(event, owner, &mut |text| cx.strings.intern(text)));
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        finish(&mut self.rows, end)?;
        Ok(vec![self.rows.into()])
    }
}

struct Owners {
    rows: TableBuilder<OwnerRow>,
    names: Names,
}

impl Analysis for Owners {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        // The texts of the rows are those of all tables.
        self.names.of(event, &mut |text| cx.strings.intern(text));
        self.rows.push(owner(event, cx));
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        finish(&mut self.rows, end)?;
        Ok(vec![self.rows.into()])
    }
}

/// Whose an event is, as far as it is known at its time.
fn owner(event: &Event<'_>, cx: &mut Context<'_>) -> OwnerRow {
    let (tid, utid, upid) = cx.whose(event);
    OwnerRow {
        // The process of a thread may be told later.
        upid: upid.map(|u| u as i32).or(utid.map(|utid| !(utid as i32))),
        utid: utid.map(|u| u as i32),
        stack_id: Some(cx.stack_ticket(event, tid, utid)),
    }
}

/// Puts in what is known at the end.
fn finish<R: Row>(rows: &mut TableBuilder<R>, end: &Finish<'_>) -> etwhy_table::Result<()> {
    let threads = &end.model.threads;
    rows.remap_i32("upid", |who| {
        let who = who?;
        if who >= 0 { Some(who) } else { threads.get(!who as u32)?.upid.map(|u| u as i32) }
    })?;
    end.stacks_of(rows, "stack_id")
}

/// Makes rows of their records and what is known of their owners.
#[derive(Default)]
pub(crate) struct RowMaker {
    names: Names,
    texts: FieldsText,
}

impl RowMaker {
    /// The row of an event; `sym` gives texts their numbers.
    pub(crate) fn row(
        &mut self,
        event: &Event<'_>,
        owner: OwnerRow,
        sym: &mut dyn FnMut(&str) -> Sym,
    ) -> EventRow {
        let record = event.record;
        let NamesOf { provider, name, activity, related_activity } = self.names.of(event, sym);
        let (fields, message) = self.texts.json(event, |schema, decoded, limit| {
            if schema.message.is_empty() {
                return None;
            }
            let mut text = String::new();
            render_message(&mut text, schema, &decoded.values);
            if text.len() > limit {
                text.truncate(text.floor_char_boundary(limit));
                text.push('…');
            }
            let bytes = text.len();
            Some((text.into_boxed_str(), bytes))
        });
        EventRow {
            ts_ns: event.ns,
            cpu: i32::from(record.cpu),
            upid: owner.upid,
            utid: owner.utid,
            provider,
            name,
            event_type_id: event.type_index as i32,
            level: i32::from(record.level()),
            activity,
            related_activity,
            fields,
            extended: extended::items(record).map(String::into_boxed_str),
            message,
            stack_id: owner.stack_id,
        }
    }
}

/// Texts of a row that others share.
struct NamesOf {
    provider: Sym,
    name: Sym,
    activity: Option<Sym>,
    related_activity: Option<Sym>,
}

/// Finds them.
#[derive(Default)]
struct Names {
    /// Provider and name of each event type. They do not change: schemas are known before the first event, as all events are
    /// wanted.
    types: Vec<Option<(Sym, Sym)>>,
    /// Events of an activity come one after the other.
    activities: [Option<(Guid, Sym)>; 2],
}

impl Names {
    fn of(&mut self, event: &Event<'_>, sym: &mut dyn FnMut(&str) -> Sym) -> NamesOf {
        let index = event.type_index as usize;
        if self.types.len() <= index {
            self.types.resize(index + 1, None);
        }
        let known = self.types.get(index).copied().flatten();
        let (provider, name) = known.unwrap_or_else(|| (sym(event.names.0), sym(event.names.1)));
        if let Some(slot) = self.types.get_mut(index) {
            *slot = Some((provider, name));
        }
        let [activity, related] = &mut self.activities;
        let mut text = |last: &mut Option<(Guid, Sym)>, guid: Guid| match *last {
            Some((known, sym)) if known == guid => sym,
            _ => last.insert((guid, sym(&guid.to_string()))).1,
        };
        NamesOf {
            provider,
            name,
            activity: event.record.activity_id().map(|guid| text(activity, guid)),
            related_activity: extended::related_activity(event.record).map(|guid| text(related, guid)),
        }
    }
}
