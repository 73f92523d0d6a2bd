//! Loggers: the sessions that recorded, and what the trace and a saved list tell of other sessions on the machine.
//!
//! # How it is computed
//! Three sources, one row for each source of each session (`source`):
//!
//! * `header`: the sessions that wrote the files, one for each appended segment. Their kernel flags are those of the
//!   `EventTrace/Extension` records.
//! * `event`: sessions that Microsoft-Windows-Kernel-EventTracing names (start, stop, change, providers). PerfView
//!   enables that provider, `wpr` does not.
//! * `text`: what `xperf -loggers`, `tracelog`, `logman` or `wpr` printed while the trace was made, given with
//!   `--loggers` or lying beside the trace.
//!
//! `conflict` compares the kernel flags of a listed kernel session with what this trace says it recorded. Windows
//! has one *NT Kernel Logger*; a program that starts it anew takes it from whoever had it, who from then on gets
//! nothing, and no error either.
//!
//! # What fools it
//! A list is as old as the moment at which it was made. Merged files have lost the names of their sessions: their
//! header says `Relogger` or the like.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Fields, Select, What};
use crate::logger_text::ListedLogger;
use etwhy_decode::kernel::events::EventTrace;
use etwhy_decode::kernel::keyword_names;
use etwhy_decode::kernel::keywords::keyword;
use etwhy_etl::abi::guids::KERNEL_EVENT_TRACING;
use etwhy_table::{Strings, Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Sessions: those of the files, those that Microsoft-Windows-Kernel-EventTracing names, those of a saved list.
    pub table LOGGER: LoggerRow = "logger" {
        version: 2, evidence: Verified("session headers of all corpus traces; session events of net.4.5.2.x64 and net.4.5.x86"),
        /// Session name.
        name: Sym [None, Name],
        /// Who says so: header, event or text.
        source: Sym [None, Kind],
        /// Number of the session.
        logger_id: Option<i32> [None, Other],
        /// Its file, as recorded.
        log_file: Option<Sym> [None, Path],
        /// Log file mode, by name of its bits; as a number in events; in the tool's words in lists.
        mode: Option<Sym> [None, Flag],
        /// This file's own session.
        own: bool [None, Flag],
        /// Kernel events that it records, as xperf names them.
        kernel_flags: Option<Sym> [None, Message],
        /// What contradicts this trace: another session has the kernel's events.
        conflict: Option<Sym> [None, Message],
        /// Size of a buffer.
        buffer_bytes: Option<i64> [Bytes, Bytes],
        /// Fewest buffers.
        minimum_buffers: Option<i64> [Count, Other],
        /// Most buffers.
        maximum_buffers: Option<i64> [Count, Other],
        /// Buffers written.
        buffers_written: Option<i64> [Count, Count],
        /// Events lost.
        events_lost: Option<i64> [Count, Count],
        /// Buffers lost.
        buffers_lost: Option<i64> [Count, Count],
        /// Providers enabled to it, as far as the source says (table `logger_provider`).
        providers: i32 [Count, Count],
        /// Start, as the header or an event says.
        start_ns: Option<i64> [Ns, Time],
        /// Stop, as the header or an event says.
        stop_ns: Option<i64> [Ns, Time],
        /// First seen.
        first_ns: Option<i64> [Ns, Time],
        /// Last seen.
        last_ns: Option<i64> [Ns, Time],
        /// Events of that session or about it.
        events: i64 [Count, Count],
        /// Start, stop and configuration seen, in order; the state in lists.
        actions: Option<Sym> [None, Message],
        /// Tool and file of a list.
        listed_by: Option<Sym> [None, Other],
    }
}

const EXTENSION: u8 = 1;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&LOGGER],
    selects: &[
        Select::new(What::Provider(KERNEL_EVENT_TRACING), 0),
        Select::new(What::Kernel(EventTrace::Extension), EXTENSION),
        Select::new(What::Kernel(EventTrace::EndExtension), EXTENSION),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Loggers {
            rows: TableBuilder::new(memory),
            seen: HashMap::default(),
            masks: HashMap::default(),
        })
    },
};

#[derive(Default)]
struct Seen {
    id: Option<u32>,
    log_file: Option<Sym>,
    mode: Option<u32>,
    numbers: [Option<i64>; 5],
    start_ns: Option<i64>,
    stop_ns: Option<i64>,
    first_ns: i64,
    last_ns: i64,
    events: i64,
    providers: i32,
    actions: Vec<&'static str>,
}

struct Loggers {
    rows: TableBuilder<LoggerRow>,
    seen: HashMap<Sym, Seen>,
    /// Kernel flags by file.
    masks: HashMap<u16, [u32; 8]>,
}

/// Sessions beyond this are damage or malice: Windows runs at most 64 at a time.
const MAX_SESSIONS: usize = 65_536;

const START: u16 = 10;
const STOP: u16 = 11;
const ENABLE: u16 = 14;

/// Ids of Microsoft-Windows-Kernel-EventTracing that speak of a session (manifests of Windows 7 to 11).
fn action(id: u16) -> Option<&'static str> {
    Some(match id {
        0 => "write error",
        1 => "real-time file full",
        2 => "start failed",
        3 => "stopped by an error",
        4 => "file full",
        5 => "file switch failed",
        START => "start",
        STOP => "stop",
        12 => "configure",
        13 => "flush",
        ENABLE => "provider enabled",
        15 => "provider disabled",
        17 => "security changed",
        19 => "event lost",
        20 => "running",
        _ => return None,
    })
}

impl Loggers {
    fn extension(&mut self, file: u16, fields: &Fields<'_>) {
        let masks = self.masks.entry(file).or_default();
        for (number, mask) in masks.iter_mut().enumerate() {
            *mask |= fields.u32(&format!("GroupMask{}", number + 1)).unwrap_or(0);
        }
    }
}

impl Analysis for Loggers {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        if event.tag == EXTENSION {
            self.extension(event.record.file, &fields);
            return;
        }
        let Some(name) = fields.non_empty("SessionName|LoggerName") else { return };
        let name = cx.sym(name);
        let log_file = cx.sym_or_none(fields.text("FileName|LogFileName"));
        if self.seen.len() >= MAX_SESSIONS && !self.seen.contains_key(&name) {
            return;
        }
        let seen = self.seen.entry(name).or_insert_with(|| Seen { first_ns: event.ns, ..Seen::default() });
        seen.last_ns = event.ns;
        seen.events += 1;
        seen.log_file = log_file.or(seen.log_file);
        seen.id = fields.u32("LoggerId").or(seen.id);
        seen.mode = fields.u32("LoggingMode|LoggerMode|LogFileMode").or(seen.mode);
        const NUMBERS: [&str; 5] =
            ["BufferSize", "MinimumBuffers", "MaximumBuffers", "EventsLost", "BuffersLost"];
        for (slot, name) in seen.numbers.iter_mut().zip(NUMBERS) {
            *slot = fields.u32(name).map(i64::from).or(*slot);
        }
        let id = event.record.id();
        match id {
            START => seen.start_ns = seen.start_ns.or(Some(event.ns)),
            STOP => seen.stop_ns = Some(event.ns),
            ENABLE => seen.providers = seen.providers.saturating_add(1),
            _ => {}
        }
        if let Some(action) = action(id)
            && seen.actions.last() != Some(&action)
            && seen.actions.len() < 64
        {
            seen.actions.push(action);
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let headers = || end.files.iter().flat_map(|f| f.segments()).map(|s| &s.header);
        let origin = headers().map(|h| h.start_time).filter(|&t| t > 0).min().unwrap_or(0);
        let recorded: Vec<&'static str> = keyword_names(&end.model.system.group_masks);
        let own: Vec<String> = headers().map(|h| h.session_name.clone()).collect();
        for (number, file) in end.files.iter().enumerate() {
            for segment in file.segments() {
                let header = &segment.header;
                // FILETIME counts units of 100 ns.
                let ns =
                    |time: i64| Some((time.saturating_sub(origin)).saturating_mul(100)).filter(|_| time > 0);
                let masks = u16::try_from(number).ok().and_then(|n| self.masks.get(&n));
                let flags = masks.map(|m| keyword_names(m).join("+")).filter(|f| !f.is_empty());
                let mut row = empty(end.strings, &header.session_name, "header");
                row.log_file = Some(end.strings.intern(&header.log_file_name));
                row.mode = Some(end.strings.intern(&header.mode_names().join(" ")));
                row.own = true;
                row.kernel_flags = flags.map(|f| end.strings.intern(&f));
                row.buffer_bytes = Some(i64::from(header.buffer_size));
                row.buffers_written = Some(i64::from(header.buffers_written));
                row.events_lost = Some(i64::from(header.events_lost));
                row.buffers_lost = Some(i64::from(header.buffers_lost));
                row.start_ns = ns(header.start_time);
                row.stop_ns = ns(header.end_time).filter(|_| header.end_time >= header.start_time);
                row.first_ns = Some(end.span_ns.0);
                row.last_ns = Some(end.span_ns.1);
                row.events = i64::try_from(end.types.records()).unwrap_or(i64::MAX);
                self.rows.push(row);
            }
        }
        let mut others: Vec<(Sym, Seen)> = self.seen.drain().collect();
        others.sort_by_key(|(name, seen)| (seen.first_ns, end.strings.get(*name).to_owned()));
        for (name, seen) in others {
            let [size, least, most, events, buffers] = seen.numbers;
            let mut row = empty(end.strings, "", "event");
            row.name = name;
            row.logger_id = seen.id.map(|id| id as i32);
            row.log_file = seen.log_file;
            row.mode = seen.mode.map(|m| end.strings.intern(&format!("{m:#x}")));
            // The events count it in KB, as EVENT_TRACE_PROPERTIES does.
            row.buffer_bytes = size.map(|kb| kb.saturating_mul(1024));
            (row.minimum_buffers, row.maximum_buffers) = (least, most);
            (row.events_lost, row.buffers_lost) = (events, buffers);
            row.providers = seen.providers;
            (row.start_ns, row.stop_ns) = (seen.start_ns, seen.stop_ns);
            (row.first_ns, row.last_ns) = (Some(seen.first_ns), Some(seen.last_ns));
            row.events = seen.events;
            row.actions = (!seen.actions.is_empty()).then(|| end.strings.intern(&seen.actions.join(", ")));
            self.rows.push(row);
        }
        for listed in end.inputs.all::<ListedLogger>() {
            self.rows.push(listed_row(listed, &recorded, &own, end.strings));
        }
        Ok(vec![self.rows.into()])
    }
}

fn empty(strings: &mut Strings, name: &str, source: &str) -> LoggerRow {
    LoggerRow {
        name: strings.intern(name),
        source: strings.intern(source),
        logger_id: None,
        log_file: None,
        mode: None,
        own: false,
        kernel_flags: None,
        conflict: None,
        buffer_bytes: None,
        minimum_buffers: None,
        maximum_buffers: None,
        buffers_written: None,
        events_lost: None,
        buffers_lost: None,
        providers: 0,
        start_ns: None,
        stop_ns: None,
        first_ns: None,
        last_ns: None,
        events: 0,
        actions: None,
        listed_by: None,
    }
}

fn listed_row(listed: &ListedLogger, recorded: &[&str], own: &[String], strings: &mut Strings) -> LoggerRow {
    let mut row = empty(strings, &listed.name, "text");
    let conflict = conflict(listed, recorded, own);
    let mut text = |text: &str| Some(strings.intern(text)).filter(|_| !text.is_empty());
    row.logger_id = listed.id.map(|id| id as i32);
    row.log_file = text(listed.log_file.as_deref().unwrap_or(""));
    row.mode = text(listed.mode.as_deref().unwrap_or(""));
    row.kernel_flags = text(&listed.kernel_flags.join("+"));
    row.conflict = text(&conflict.unwrap_or_default());
    row.actions = text(listed.status.as_deref().unwrap_or(""));
    row.listed_by = text(&format!("{} in {}", listed.tool, listed.listed_in));
    row.buffer_bytes = listed.buffer_bytes;
    row.minimum_buffers = listed.minimum_buffers;
    row.maximum_buffers = listed.maximum_buffers;
    row.buffers_written = listed.buffers_written;
    row.events_lost = listed.events_lost;
    row.buffers_lost = listed.buffers_lost;
    row.providers = i32::try_from(listed.providers.len()).unwrap_or(i32::MAX);
    row
}

/// Single flags of a name: `PROC_THREAD` stands for two.
fn single<'a>(name: &'a str, out: &mut Vec<&'a str>) {
    match name {
        "PROC_THREAD" => out.extend(["PROCESS", "THREAD"]),
        _ => out.push(name),
    }
}

/// What the listed session does not record although this trace holds it, or the other way round. Only xperf prints
/// the flags under names that can be compared.
fn conflict(listed: &ListedLogger, recorded: &[&str], own: &[String]) -> Option<String> {
    let kernel = listed.name.eq_ignore_ascii_case("NT Kernel Logger")
        || own.iter().any(|name| name.eq_ignore_ascii_case(&listed.name));
    if !kernel || listed.tool != "xperf" || listed.kernel_flags.is_empty() || recorded.is_empty() {
        return None;
    }
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    listed.kernel_flags.iter().for_each(|name| single(name, &mut theirs));
    recorded.iter().for_each(|name| single(name, &mut ours));
    // Flags that the tool does not show, or that we name otherwise, say nothing.
    let missing: Vec<&str> = ours
        .iter()
        .copied()
        .filter(|name| keyword(name).is_some_and(|k| k.mask == 0) && !theirs.contains(name))
        .collect();
    let foreign: Vec<&str> =
        theirs.into_iter().filter(|n| keyword(n).is_some() && !ours.contains(n)).collect();
    match (missing.is_empty(), foreign.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("this trace holds {}, that session does not", missing.join("+"))),
        (true, false) => Some(format!("that session holds {}, this trace does not", foreign.join("+"))),
        (false, false) => Some(format!(
            "this trace holds {}, that session does not but holds {}",
            missing.join("+"),
            foreign.join("+")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_session_contradicts_the_trace() {
        let listed = ListedLogger {
            name: "NT Kernel Logger".into(),
            kernel_flags: vec!["SYSCALL".into()],
            tool: "xperf",
            ..ListedLogger::default()
        };
        let text = conflict(&listed, &["PROC_THREAD", "PROFILE"], &[]).unwrap();
        assert_eq!(text, "this trace holds PROCESS+THREAD+PROFILE, that session does not but holds SYSCALL");
        assert_eq!(conflict(&listed, &["SYSCALL"], &[]), None);
        assert_eq!(conflict(&listed, &[], &[]), None);
        let other = ListedLogger { name: "x".into(), ..listed };
        assert_eq!(conflict(&other, &["PROFILE"], &[]), None);
        assert!(conflict(&other, &["PROFILE"], &["X".to_owned()]).is_some());
    }
}
