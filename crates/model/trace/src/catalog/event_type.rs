//! Event types: what the trace holds, how much of it, and who can read it.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Kinds of events with their counts.
    pub table EVENT_TYPE: EventTypeRow = "event_type" {
        version: 1, evidence: Verified("an independent reader's counts for every trace of the corpus"),
        /// Number of the kind.
        event_type_id: i32 [None, Id],
        /// Provider, `Windows Kernel` for kernel events.
        provider: Sym [None, Name],
        /// Provider GUID; class GUID of kernel and classic events; message GUID of WPP messages.
        guid: Option<Sym> [None, Guid],
        /// Name of the event.
        name: Sym [None, Name],
        /// Task (kernel events: group).
        task: Option<Sym> [None, Name],
        /// Opcode (kernel events: type).
        opcode: i32 [None, Other],
        /// Name of the opcode.
        opcode_name: Option<Sym> [None, Name],
        /// Event id; message number of WPP messages.
        id: i32 [None, Other],
        /// Version of the payload.
        version: i32 [None, Other],
        /// Level.
        level: i32 [None, Other],
        /// Keywords.
        keyword: i64 [Hex64, Flag],
        /// Number of events.
        count: i64 [Count, Count],
        /// Bytes of their records, headers included.
        bytes: i64 [Bytes, Bytes],
        /// What describes its payload: kernel, metadata, tracelogging, manifest, mof, wpp, none.
        decoded_by: Sym [None, Kind],
        /// The layout was compared with real traces; false: it rests on documentation, or payloads of this trace do not fit it.
        verified: bool [None, Flag],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&EVENT_TYPE],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(EventTypes { rows: TableBuilder::new(memory) }),
};

struct EventTypes {
    rows: TableBuilder<EventTypeRow>,
}

impl Analysis for EventTypes {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        for index in 0..end.types.len() as u32 {
            let Some(info) = end.types.describe(index, end.decoder) else { continue };
            let text =
                |strings: &mut etwhy_table::Strings, t: &str| (!t.is_empty()).then(|| strings.intern(t));
            self.rows.push(EventTypeRow {
                event_type_id: index as i32,
                provider: end.strings.intern(&info.provider),
                guid: info.guid.map(|g| end.strings.intern(&g.to_string())),
                name: end.strings.intern(&info.name),
                task: text(end.strings, &info.task),
                opcode: i32::from(info.opcode),
                opcode_name: text(end.strings, &info.opcode_name),
                id: i32::from(info.id),
                version: i32::from(info.version),
                level: i32::from(info.level),
                keyword: info.keyword as i64,
                count: i64::try_from(info.count).unwrap_or(i64::MAX),
                bytes: i64::try_from(info.bytes).unwrap_or(i64::MAX),
                decoded_by: end.strings.intern(info.decoded_by.name()),
                verified: info.verified && !end.unfit.get(index as usize).copied().unwrap_or(false),
            });
        }
        Ok(vec![self.rows.into()])
    }
}
