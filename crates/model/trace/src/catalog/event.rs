//! Events: every event of the trace with its decoded fields.
//!
//! Large: made only when it is asked for. Kernel events that have a table of their own are here too, so that
//! every record of a trace can be looked at.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::extended;
use crate::fields_text::FieldsText;
use etwhy_decode::message::render_message;
use etwhy_table::{Sym, TableBuilder, define_table};

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

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&EVENT],
    selects: &[Select::new(What::Any, 0)],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(Events { rows: TableBuilder::new(memory), names: Vec::new(), texts: FieldsText::default() })
    },
};

struct Events {
    rows: TableBuilder<EventRow>,
    /// Provider and name of each event type.
    names: Vec<Option<(Sym, Sym)>>,
    texts: FieldsText,
}

impl Analysis for Events {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let record = event.record;
        let index = event.type_index as usize;
        if self.names.len() <= index {
            self.names.resize(index + 1, None);
        }
        // A schema that comes late can rename an event type, so the names are kept with their texts.
        let known = self.names.get(index).copied().flatten();
        let current = known.filter(|&(p, n)| (cx.strings.get(p), cx.strings.get(n)) == event.names);
        let (provider, name) = current.unwrap_or_else(|| (cx.sym(event.names.0), cx.sym(event.names.1)));
        if let Some(slot) = self.names.get_mut(index) {
            *slot = Some((provider, name));
        }
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
        let (tid, utid, upid) = cx.whose(event);
        let stack = cx.stack_ticket(event, tid, utid);
        let activity = record.activity_id().map(|a| cx.sym(a.to_string()));
        let related_activity = extended::related_activity(record).map(|a| cx.sym(a.to_string()));
        self.rows.push(EventRow {
            ts_ns: event.ns,
            cpu: i32::from(record.cpu),
            // The process of a thread may be told later.
            upid: upid.map(|u| u as i32).or(utid.map(|utid| !(utid as i32))),
            utid: utid.map(|u| u as i32),
            provider,
            name,
            event_type_id: event.type_index as i32,
            level: i32::from(record.level()),
            activity,
            related_activity,
            fields,
            extended: extended::items(record).map(String::into_boxed_str),
            message,
            stack_id: Some(stack),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let threads = &end.model.threads;
        self.rows.remap_i32("upid", |who| {
            let who = who?;
            if who >= 0 { Some(who) } else { threads.get(!who as u32)?.upid.map(|u| u as i32) }
        })?;
        end.stacks_of(&mut self.rows, "stack_id")?;
        Ok(vec![self.rows.into()])
    }
}
