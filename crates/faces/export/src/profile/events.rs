//! What happened besides samples: one declaration for each kind of event, read from its table.

use super::Profile;
use super::column::{Column, row};
use crate::sanitize;
use etwhy_table::{Rows, Unit, Value};
use etwhy_trace::catalog::file::FileRow;
use std::borrow::Cow;

/// A kind of event.
pub(crate) struct EventKind {
    /// Part that it belongs to, by which it is left out.
    pub part: &'static str,
    /// Table.
    pub table: &'static str,
    /// Track on which it is shown; kinds of one track may be inside of each other.
    pub track: &'static str,
    /// Column of the start.
    pub start: &'static str,
    /// Column of the end, or of the duration; none for moments.
    pub end: End,
    /// First word of its name.
    pub title: &'static str,
    /// Column with the rest of its name.
    pub name: Option<&'static str>,
    /// Columns that are shown with it.
    pub fields: &'static [&'static str],
    /// Whether it belongs to a processor rather than to a thread.
    pub by_cpu: bool,
    /// Whether events of one thread or processor lie inside of each other.
    pub nested: bool,
}

/// Where an event's end stands.
pub(crate) enum End {
    /// It is a moment.
    Moment,
    /// Column of its end.
    At(&'static str),
    /// Column of its duration.
    After(&'static str),
}

/// Interrupts of both kinds, which interrupt each other.
const INTERRUPTS: &str = "DPC and ISR";

const BASE: EventKind = EventKind {
    part: "",
    table: "",
    track: "",
    start: "start_ns",
    end: End::At("ts_ns"),
    title: "",
    name: None,
    fields: &[],
    by_cpu: false,
    nested: false,
};

/// All kinds.
pub(crate) static EVENTS: &[EventKind] = &[
    EventKind {
        part: "interrupt",
        table: "dpc",
        track: INTERRUPTS,
        title: "DPC",
        name: Some("routine"),
        fields: &["kind", "module", "exclusive_ns"],
        by_cpu: true,
        nested: true,
        ..BASE
    },
    EventKind {
        part: "interrupt",
        table: "isr",
        track: INTERRUPTS,
        title: "ISR",
        name: Some("routine"),
        fields: &["kind", "module", "exclusive_ns", "vector"],
        by_cpu: true,
        nested: true,
        ..BASE
    },
    EventKind {
        part: "gc",
        table: "clr_gc",
        track: "GC",
        start: "ts_ns",
        end: End::After("dur_ns"),
        title: "GC",
        name: Some("kind"),
        fields: &["number", "generation", "reason", "pause_ns", "heap_bytes"],
        ..BASE
    },
    EventKind {
        part: "exception",
        table: "clr_exception",
        track: "Exceptions",
        start: "ts_ns",
        end: End::Moment,
        name: Some("exception_type"),
        fields: &["message", "hresult"],
        ..BASE
    },
    EventKind {
        part: "contention",
        table: "clr_contention",
        track: "Lock contention",
        start: "ts_ns",
        end: End::After("dur_ns"),
        title: "Lock contention",
        ..BASE
    },
    EventKind {
        part: "disk_io",
        table: "disk_io",
        track: "Disk I/O",
        title: "Disk",
        name: Some("op"),
        fields: &["file_id", "size_bytes", "disk", "service_ns", "queue_ns", "priority"],
        ..BASE
    },
    EventKind {
        part: "file_io",
        table: "file_io",
        track: "File I/O",
        title: "File",
        name: Some("op"),
        fields: &["path", "size_bytes", "done_bytes", "status_name"],
        nested: true,
        ..BASE
    },
    EventKind {
        part: "hard_fault",
        table: "hard_fault",
        track: "Hard faults",
        title: "Hard fault",
        fields: &["file_id", "size_bytes", "address"],
        ..BASE
    },
    EventKind {
        part: "hang",
        table: "ui_delay",
        track: "UI delays",
        name: Some("kind"),
        fields: &["window_class", "message", "unresponsive", "pending"],
        ..BASE
    },
    EventKind {
        part: "mark",
        table: "mark",
        track: "Marks",
        start: "ts_ns",
        end: End::Moment,
        name: Some("text"),
        ..BASE
    },
    EventKind {
        part: "syscall",
        table: "syscall",
        track: "System calls",
        name: Some("function"),
        fields: &["status_name", "outcome"],
        nested: true,
        ..BASE
    },
];

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Row of its table.
    pub row: u32,
    /// Start.
    pub start_ns: i64,
    /// End, not before the start; `None` for moments, and where the end is not known.
    pub end_ns: Option<i64>,
    /// Process.
    pub upid: Option<u32>,
    /// Thread.
    pub utid: Option<u32>,
    /// Processor, for kinds that belong to one.
    pub cpu: Option<u32>,
    /// Stack.
    pub stack: Option<u32>,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown<'a> {
    /// Text, sanitised.
    Text(Cow<'a, str>),
    /// A number with its unit.
    Number(i64, Unit),
}

/// The events of a kind.
pub(crate) struct Events<'a> {
    /// The kind.
    pub kind: &'static EventKind,
    name: Option<Column<'a>>,
    fields: Vec<(&'static str, Unit, Column<'a>)>,
    files: Rows<'a, FileRow>,
    start: Column<'a>,
    end: Option<Column<'a>>,
    upid: Column<'a>,
    utid: Column<'a>,
    cpu: Column<'a>,
    stack: Column<'a>,
}

impl<'a> Events<'a> {
    /// Those of a kind; `None` if it was left out or there are none.
    pub fn read(profile: &Profile<'a>, kind: &'static EventKind) -> Option<Events<'a>> {
        let table = profile.db.get(kind.table).filter(|_| profile.has(kind.part))?;
        let column = |name: &str| Column::find(table, name);
        let unit = |name: &str| table.spec().column(name).map_or(Unit::None, |column| column.unit);
        Some(Events {
            kind,
            name: kind.name.map(column),
            fields: kind.fields.iter().map(|name| (*name, unit(name), column(name))).collect(),
            files: profile.db.read_or_empty(),
            start: column(kind.start),
            end: match kind.end {
                End::Moment => None,
                End::At(name) | End::After(name) => Some(column(name)),
            },
            upid: column("upid"),
            utid: column("utid"),
            cpu: if kind.by_cpu { column("cpu") } else { Column::default() },
            stack: column("stack_id"),
        })
    }

    /// Those that are wanted, in the order of the table. Interrupts belong to no process, so a choice of processes
    /// does not concern them.
    pub fn each(&self, profile: &Profile<'_>, mut give: impl FnMut(Event)) {
        let (from, to) = profile.range();
        for at in 0..self.start.rows() {
            let end = self.end.as_ref().and_then(|end| end.i64(at));
            // What began before the trace is shown from where it begins.
            let Some(start) = self.start.i64(at).or_else(|| end.map(|_| from)) else { continue };
            let end = match self.kind.end {
                End::After(_) => end.map(|dur| start.saturating_add(dur)),
                _ => end,
            };
            let last = end.unwrap_or(start);
            let restricted = profile.scope.from_ns.is_some() || profile.scope.to_ns.is_some();
            if restricted && (last < from || start >= to) {
                continue;
            }
            let event = Event {
                row: at,
                start_ns: start.max(from),
                end_ns: end.map(|end| end.max(start).max(from)),
                upid: row(self.upid.i64(at)),
                utid: row(self.utid.i64(at)),
                cpu: row(self.cpu.i64(at)),
                stack: row(self.stack.i64(at)),
            };
            if self.kind.by_cpu || profile.is_asked(event.upid, event.utid) {
                give(event);
            }
        }
    }

    /// What to call an event.
    pub fn name(&self, event: &Event) -> Cow<'a, str> {
        let rest = self.name.as_ref().and_then(|name| name.text(event.row)).filter(|name| !name.is_empty());
        match (self.kind.title, rest) {
            ("", Some(rest)) => sanitize(rest),
            ("", None) => Cow::Borrowed(self.kind.track),
            (title, Some(rest)) => Cow::Owned(format!("{title} {}", sanitize(rest))),
            (title, None) => Cow::Borrowed(title),
        }
    }

    /// Fields of an event that are not empty.
    pub fn fields(&self, event: &Event) -> impl Iterator<Item = (&'static str, Shown<'a>)> {
        self.fields.iter().filter_map(move |(name, unit, column)| {
            if *name == "file_id" {
                let file = self.files.get(column.i64(event.row)?)?;
                return Some(("path", Shown::Text(sanitize(file.path()?))));
            }
            let shown = match column.value(event.row) {
                Value::Null => return None,
                Value::Text(text) => Shown::Text(sanitize(text)),
                Value::Bool(truth) => Shown::Text(Cow::Borrowed(if truth { "yes" } else { "no" })),
                value => Shown::Number(value.as_i64()?, *unit),
            };
            Some((*name, shown))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_columns() {
        for kind in EVENTS {
            let mut specs = etwhy_trace::catalog::ALL.iter().flat_map(|spec| spec.tables);
            let spec = specs.find(|spec| spec.name == kind.table).expect(kind.table);
            let end = match kind.end {
                End::Moment => None,
                End::At(name) | End::After(name) => Some(name),
            };
            for name in kind.fields.iter().copied().chain([kind.start]).chain(kind.name).chain(end) {
                assert!(spec.column(name).is_some(), "{}.{name}", kind.table);
            }
        }
    }
}
