//! Loggers: the sessions that recorded, and what the trace tells of other sessions on the machine.

use crate::engine::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_etl::abi::guids::KERNEL_EVENT_TRACING;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Sessions: those of the files, and those that Microsoft-Windows-Kernel-EventTracing names.
    pub table LOGGER: LoggerRow = "logger" {
        version: 1, evidence: Verified("session headers of all corpus traces; session events of net.4.5.2.x64"),
        /// Session name.
        name: Sym [None, Name],
        /// Its file, as recorded.
        log_file: Option<Sym> [None, Path],
        /// Log file mode, by name of its bits; as a number for other sessions.
        mode: Option<Sym> [None, Flag],
        /// This file's own session.
        own: bool [None, Flag],
        /// First seen.
        first_ns: i64 [Ns, Time],
        /// Last seen.
        last_ns: i64 [Ns, Time],
        /// Events of that session or about it.
        events: i64 [Count, Count],
        /// Start, stop and configuration seen, in order.
        actions: Option<Sym> [None, Message],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&LOGGER],
    selects: &[Select::new(What::Provider(KERNEL_EVENT_TRACING), 0)],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Loggers { rows: TableBuilder::new(memory), seen: HashMap::default() }),
};

#[derive(Default)]
struct Seen {
    log_file: Option<Sym>,
    mode: Option<u32>,
    first_ns: i64,
    last_ns: i64,
    events: i64,
    actions: Vec<&'static str>,
}

struct Loggers {
    rows: TableBuilder<LoggerRow>,
    seen: HashMap<Sym, Seen>,
}

/// Ids of Microsoft-Windows-Kernel-EventTracing that speak of a session (manifest of Windows 11).
fn action(id: u16) -> Option<&'static str> {
    Some(match id {
        2 => "start refused",
        3 => "start failed",
        4 => "stopped after an error",
        8 => "write error",
        9 => "file full",
        10 => "start",
        11 => "stop",
        12 => "configure",
        13 => "flush",
        14 => "provider enabled",
        15 => "provider disabled",
        _ => return None,
    })
}

impl Analysis for Loggers {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let Some(name) = fields.non_empty("SessionName|LoggerName") else { return };
        let name = cx.sym(name);
        let log_file = cx.sym_or_none(fields.text("FileName|LogFileName"));
        let seen = self.seen.entry(name).or_insert_with(|| Seen { first_ns: event.ns, ..Seen::default() });
        seen.last_ns = event.ns;
        seen.events += 1;
        seen.log_file = log_file.or(seen.log_file);
        seen.mode = fields.u32("LoggingMode|LogFileMode").or(seen.mode);
        if let Some(action) = action(event.record.id())
            && seen.actions.last() != Some(&action)
            && seen.actions.len() < 64
        {
            seen.actions.push(action);
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        for file in end.files {
            for segment in file.segments() {
                let header = &segment.header;
                self.rows.push(LoggerRow {
                    name: end.strings.intern(&header.session_name),
                    log_file: Some(end.strings.intern(&header.log_file_name)),
                    mode: Some(end.strings.intern(&header.mode_names().join(" "))),
                    own: true,
                    first_ns: end.span_ns.0,
                    last_ns: end.span_ns.1,
                    events: end.stats.records as i64,
                    actions: None,
                });
            }
        }
        let mut others: Vec<(Sym, Seen)> = self.seen.drain().collect();
        others.sort_by_key(|(name, seen)| (seen.first_ns, end.strings.get(*name).to_owned()));
        for (name, seen) in others {
            self.rows.push(LoggerRow {
                name,
                log_file: seen.log_file,
                mode: seen.mode.map(|m| end.strings.intern(&format!("{m:#x}"))),
                own: false,
                first_ns: seen.first_ns,
                last_ns: seen.last_ns,
                events: seen.events,
                actions: (!seen.actions.is_empty()).then(|| end.strings.intern(&seen.actions.join(", "))),
            });
        }
        Ok(vec![self.rows.into()])
    }
}
