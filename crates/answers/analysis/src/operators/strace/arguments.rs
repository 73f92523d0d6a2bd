//! Arguments of system calls: what other tables say that the same thread did meanwhile.
//!
//! Windows does not record the arguments of system calls. But file, registry, memory, handle and disk events of a thread
//! that lie inside one of its calls tell what the call was about. Each event belongs to the innermost call that
//! holds its begin. Starts of processes and network events name a process only: they are taken if exactly one call
//! of that process can have made them.
//!
//! A table that is absent gives no arguments.

use super::classes::{CLASSES, classes_of};
use super::{Calls, Choice, bare_name};
use etwhy_table::{Database, RowOf, Rows};
use etwhy_trace::catalog::{
    alpc::AlpcRow, disk_io::DiskIoRow, file::FileRow, file_io::FileIoRow, handle::HandleRow,
    hard_fault::HardFaultRow, minifilter::MinifilterRow, network::NetworkRow, process::ProcessRow,
    registry::RegistryRow, virtual_alloc::VirtualAllocRow,
};
use foldhash::{HashMap, HashSet};
use std::fmt::Write;

/// What is known of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Table that it comes from.
    pub table: &'static str,
    /// In words, texts quoted and escaped as strace does.
    pub text: String,
    /// Not an argument but something that happened meanwhile.
    pub aside: bool,
}

/// Takes two columns of a row.
type Each<'f> = dyn FnMut(Option<i64>, Option<i64>) + 'f;

/// Who did it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Thread,
    Process,
}

struct Source {
    table: &'static str,
    owner: Owner,
    /// For events that name a process only: class of the calls that can have made them.
    class: &'static str,
    aside: bool,
    /// Hands over the thread or process of each event, and when it began.
    each: fn(&Tables<'_>, &mut Each<'_>),
    /// An event in words.
    text: fn(&Tables<'_>, u32) -> Option<String>,
}

impl Source {
    const fn class(self, class: &'static str) -> Source {
        Source { class, ..self }
    }

    const fn aside(self) -> Source {
        Source { aside: true, ..self }
    }
}

/// Rows of a table by the columns that say who did it and when, and the function that puts one into words.
macro_rules! source {
    ($table:ident, $owner:ident($who:ident), $time:ident, $text:ident) => {
        Source {
            table: stringify!($table),
            owner: Owner::$owner,
            class: "",
            aside: false,
            each: |tables, give| {
                tables.$table.iter().for_each(|row| give(row.$who().into(), row.$time().into()));
            },
            text: |tables, row| $text(tables, tables.$table.get(row)?),
        }
    };
}

/// Events that become arguments, those that say most first.
const SOURCES: &[Source] = &[
    source!(file_io, Thread(utid), start_ns, file_io),
    source!(registry, Thread(utid), start_ns, registry),
    source!(virtual_alloc, Thread(utid), ts_ns, virtual_alloc),
    source!(process, Process(parent_upid), start_ns, process).class("process"),
    source!(network, Process(upid), ts_ns, network).class("network"),
    source!(alpc, Thread(client_utid), send_ns, alpc),
    source!(alpc, Thread(server_utid), receive_ns, alpc),
    source!(handle, Thread(utid), ts_ns, handle_opened),
    source!(handle, Thread(closed_by_utid), close_ns, handle_closed),
    source!(disk_io, Thread(utid), start_ns, disk_io).aside(),
    source!(hard_fault, Thread(utid), start_ns, hard_fault).aside(),
    source!(minifilter, Thread(utid), start_ns, minifilter).aside(),
];

/// Threads of a process that are looked at for an event that names only the process; with more than that the one
/// that did it is rarely the only one that can have.
const MOST_THREADS: usize = 256;

/// A call's stretch of time.
#[derive(Clone, Copy)]
struct Span {
    utid: u32,
    row: u32,
    start: i64,
    end: i64,
    /// Index of the call around it, `u32::MAX` without one.
    parent: u32,
}

/// All calls of the threads that have events.
struct Spans(Vec<Span>);

impl Spans {
    fn new(calls: &Calls<'_>, wanted: impl Fn(u32, Option<i64>) -> bool) -> Spans {
        let mut list = Vec::new();
        for row in 0..calls.len() {
            let call = calls.get(row);
            let (Some(start), Some(utid)) = (call.start_ns, call.utid.and_then(|u| u32::try_from(u).ok()))
            else {
                continue;
            };
            if !wanted(utid, call.upid) {
                continue;
            }
            let end = match (call.end_ns, call.outcome) {
                (Some(end), _) => end,
                (None, "unfinished" | "thread_ended") => i64::MAX,
                // Nobody knows when it ended: what comes next may be another call's.
                _ => continue,
            };
            list.push(Span { utid, row, start, end, parent: u32::MAX });
        }
        list.sort_unstable_by_key(|s| (s.utid, s.start, std::cmp::Reverse(s.end), s.row));
        let mut around: Vec<(u32, Span)> = Vec::new();
        for (number, span) in list.iter_mut().enumerate() {
            while around.pop_if(|(_, outer)| outer.utid != span.utid || outer.end < span.end).is_some() {}
            span.parent = around.last().map_or(u32::MAX, |(number, _)| *number);
            around.push((number as u32, *span));
        }
        Spans(list)
    }

    /// The innermost call of a thread at a moment.
    fn at(&self, utid: u32, ns: i64) -> Option<&Span> {
        let behind = self.0.partition_point(|s| (s.utid, s.start) <= (utid, ns));
        let mut span = self.0.get(behind.checked_sub(1)?).filter(|s| s.utid == utid)?;
        while span.end < ns {
            span = self.0.get(span.parent as usize)?;
        }
        Some(span)
    }
}

/// Arguments of all calls of the chosen processes.
#[derive(Default)]
pub struct Arguments<'a> {
    tables: Tables<'a>,
    /// (call, source, event), sorted.
    of: Vec<(u32, u8, u32)>,
}

impl<'a> Arguments<'a> {
    /// Joins the calls with what the database has.
    pub fn read(db: &'a Database, calls: &Calls<'_>, choice: &Choice) -> Arguments<'a> {
        let tables = Tables::read(db);
        let mut threads: HashSet<u32> = HashSet::default();
        let mut processes: HashSet<i64> = HashSet::default();
        each_event(&tables, |source, who, _, _| match source.owner {
            Owner::Thread => threads.extend(u32::try_from(who).ok()),
            Owner::Process => _ = processes.insert(who),
        });
        let spans = Spans::new(calls, |utid, upid| {
            choice.wants_process(upid)
                && (threads.contains(&utid) || upid.is_some_and(|upid| processes.contains(&upid)))
        });
        let threads_of = threads_of(&spans, calls);
        let mut of = Vec::new();
        each_event(&tables, |source, who, ns, (number, event)| {
            let call = match source.owner {
                Owner::Thread => u32::try_from(who).ok().and_then(|utid| spans.at(utid, ns)).map(|s| s.row),
                Owner::Process => {
                    threads_of.get(&who).and_then(|list| only_one(&spans, calls, list, ns, source.class))
                }
            };
            if let Some(call) = call {
                of.push((call, number, event));
            }
        });
        of.sort_unstable();
        Arguments { tables, of }
    }

    fn events(&self, row: u32) -> &[(u32, u8, u32)] {
        let from = self.of.partition_point(|e| e.0 < row);
        let rest = self.of.get(from..).unwrap_or(&[]);
        let len = rest.partition_point(|e| e.0 == row);
        rest.get(..len).unwrap_or(&[])
    }

    /// Classes that a call is of by what happened inside, whatever its name.
    pub fn classes(&self, row: u32) -> impl Iterator<Item = usize> + '_ {
        self.events(row).iter().filter_map(|&(_, source, _)| {
            let table = SOURCES.get(usize::from(source))?.table;
            CLASSES.iter().position(|class| class.tables.contains(&table))
        })
    }

    /// What is known of a call: at most `most` of each kind, repetitions once; and how much more there is.
    pub fn of_call(&self, row: u32, most: usize) -> (Vec<Argument>, usize) {
        let (mut list, mut more) = (Vec::<Argument>::new(), 0);
        let mut known: HashSet<(&str, String)> = HashSet::default();
        // Of arguments, and of what happened meanwhile.
        let mut counts = [0usize; 2];
        for &(_, number, event) in self.events(row) {
            let Some(source) = SOURCES.get(usize::from(number)) else { continue };
            let Some(count) = counts.get_mut(usize::from(source.aside)) else { continue };
            if *count >= most {
                more += 1;
                continue;
            }
            let Some(text) = (source.text)(&self.tables, event) else { continue };
            if known.insert((source.table, text.clone())) {
                *count += 1;
                list.push(Argument { table: source.table, text, aside: source.aside });
            }
        }
        (list, more)
    }
}

/// Calls back with every event of every source: source, thread or process, time, (number of the source, row).
fn each_event(tables: &Tables<'_>, mut each: impl FnMut(&Source, i64, i64, (u8, u32))) {
    for (number, source) in (0u8..).zip(SOURCES) {
        let mut rows = 0u32..;
        (source.each)(tables, &mut |who, ns| {
            let row = rows.next();
            if let (Some(who), Some(ns), Some(row)) = (who, ns, row) {
                each(source, who, ns, (number, row));
            }
        });
    }
}

/// Threads with calls, by process.
fn threads_of(spans: &Spans, calls: &Calls<'_>) -> HashMap<i64, Vec<u32>> {
    let mut list: HashMap<i64, Vec<u32>> = HashMap::default();
    let mut last = None;
    for span in &spans.0 {
        if last.replace(span.utid) != Some(span.utid)
            && let Some(upid) = calls.get(span.row).upid
        {
            list.entry(upid).or_default().push(span.utid);
        }
    }
    list
}

/// The call of one of the threads that can have made an event of a class, if there is exactly one: one that is of
/// that class or whose name is not known.
fn only_one(spans: &Spans, calls: &Calls<'_>, threads: &[u32], ns: i64, class: &str) -> Option<u32> {
    if threads.len() > MOST_THREADS {
        return None;
    }
    let class = CLASSES.iter().position(|c| c.name == class)?;
    let can = |row: &u32| {
        let name = calls.get(*row).function.and_then(bare_name);
        name.is_none_or(|name| classes_of(name).any(|c| c == class))
    };
    let mut rows = threads.iter().filter_map(|&utid| spans.at(utid, ns)).map(|s| s.row).filter(can);
    let first = rows.next()?;
    rows.next().is_none().then_some(first)
}

/// What [`Arguments`] are read from.
pub type ArgumentRows = (
    (FileRow, FileIoRow, RegistryRow, VirtualAllocRow, ProcessRow, NetworkRow, AlpcRow, HandleRow),
    (DiskIoRow, HardFaultRow, MinifilterRow),
);

/// The tables that arguments come from; one that is absent gives none.
#[derive(Default)]
struct Tables<'a> {
    file: Rows<'a, FileRow>,
    file_io: Rows<'a, FileIoRow>,
    registry: Rows<'a, RegistryRow>,
    virtual_alloc: Rows<'a, VirtualAllocRow>,
    process: Rows<'a, ProcessRow>,
    network: Rows<'a, NetworkRow>,
    alpc: Rows<'a, AlpcRow>,
    handle: Rows<'a, HandleRow>,
    disk_io: Rows<'a, DiskIoRow>,
    hard_fault: Rows<'a, HardFaultRow>,
    minifilter: Rows<'a, MinifilterRow>,
}

impl<'a> Tables<'a> {
    fn read(db: &'a Database) -> Tables<'a> {
        Tables {
            file: db.read_or_empty(),
            file_io: db.read_or_empty(),
            registry: db.read_or_empty(),
            virtual_alloc: db.read_or_empty(),
            process: db.read_or_empty(),
            network: db.read_or_empty(),
            alpc: db.read_or_empty(),
            handle: db.read_or_empty(),
            disk_io: db.read_or_empty(),
            hard_fault: db.read_or_empty(),
            minifilter: db.read_or_empty(),
        }
    }

    /// The path of a file: as the event says it, or by its number.
    fn path(&self, path: Option<&str>, id: Option<i64>) -> Option<String> {
        let by_id = || self.file.get(id?)?.path();
        path.or_else(by_id).filter(|p| !p.is_empty()).map(quoted)
    }
}

/// A text in quotes, escaped as strace does; characters that would change the terminal stand as `\u{...}`.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}') =>
            {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn file_io(tables: &Tables<'_>, row: RowOf<'_, '_, FileIoRow>) -> Option<String> {
    let mut text = tables.path(row.path(), row.file_id()).unwrap_or_default();
    if matches!(row.op(), "read" | "write")
        && let Some(size) = row.size_bytes()
    {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{size} bytes");
        if let Some(offset) = row.offset_bytes() {
            let _ = write!(text, " @ {offset}");
        }
    }
    // New name of a rename, pattern of a search; what is asked for or how it is opened.
    let quoted_too = [row.target(), row.pattern()].map(|name| name.filter(|t| !t.is_empty()).map(quoted));
    let plain = [row.disposition(), row.info_class()].map(|word| word.map(str::to_owned));
    for more in quoted_too.into_iter().chain(plain).flatten() {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{more}");
    }
    Some(text).filter(|t| !t.is_empty())
}

fn registry(_: &Tables<'_>, row: RowOf<'_, '_, RegistryRow>) -> Option<String> {
    let parts = [row.key(), row.value()].into_iter().flatten().filter(|text| !text.is_empty());
    let parts: Vec<String> = parts.map(quoted).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn virtual_alloc(_: &Tables<'_>, row: RowOf<'_, '_, VirtualAllocRow>) -> Option<String> {
    Some(format!("{:#x}, {} bytes, {}", row.address() as u64, row.size_bytes(), row.op()))
}

fn process(_: &Tables<'_>, row: RowOf<'_, '_, ProcessRow>) -> Option<String> {
    let name = row.path().unwrap_or(row.name());
    Some(if name.is_empty() {
        format!("pid {}", row.pid())
    } else {
        format!("{}, pid {}", quoted(name), row.pid())
    })
}

fn network(_: &Tables<'_>, row: RowOf<'_, '_, NetworkRow>) -> Option<String> {
    let mut text = format!("{} {}", row.protocol(), row.op());
    if row.size_bytes() > 0 {
        let _ = write!(text, ", {} bytes", row.size_bytes());
    }
    if let Some(local) = row.local() {
        let _ = write!(text, ", {local}");
    }
    if let Some(remote) = row.remote() {
        let _ = write!(text, " > {remote}");
    }
    Some(text)
}

fn alpc(_: &Tables<'_>, row: RowOf<'_, '_, AlpcRow>) -> Option<String> {
    let mut text = format!("message {:#x}", row.message_id() as u32);
    if let Some(port) = row.port().filter(|p| !p.is_empty()) {
        let _ = write!(text, ", {}", quoted(port));
    }
    Some(text)
}

fn handle_opened(_: &Tables<'_>, row: RowOf<'_, '_, HandleRow>) -> Option<String> {
    // A rundown opens nothing.
    (row.opened_by() != "rundown").then(|| handle(row))
}

fn handle_closed(_: &Tables<'_>, row: RowOf<'_, '_, HandleRow>) -> Option<String> {
    (row.closed_by() == Some("close")).then(|| handle(row))
}

fn handle(row: RowOf<'_, '_, HandleRow>) -> String {
    let mut text = format!("handle {:#x}", row.handle() as u32);
    if let Some(kind) = row.object_type() {
        let _ = write!(text, " {kind}");
    }
    if let Some(name) = row.name().filter(|n| !n.is_empty()) {
        let _ = write!(text, " {}", quoted(name));
    }
    text
}

fn minifilter(_: &Tables<'_>, row: RowOf<'_, '_, MinifilterRow>) -> Option<String> {
    let mut text = format!("filter {}", row.routine().or(row.module())?);
    if let Some(dur) = row.dur_ns() {
        let _ = write!(text, " <{:.6}>", dur as f64 / 1e9);
    }
    Some(text)
}

fn disk_io(tables: &Tables<'_>, row: RowOf<'_, '_, DiskIoRow>) -> Option<String> {
    let path = tables.path(None, row.file_id());
    Some(transfer(format!("disk {}", row.op()), row.size_bytes(), path, row.dur_ns()))
}

fn hard_fault(tables: &Tables<'_>, row: RowOf<'_, '_, HardFaultRow>) -> Option<String> {
    let path = tables.path(None, row.file_id());
    Some(transfer("hard fault".to_owned(), row.size_bytes(), path, row.dur_ns()))
}

/// Adds bytes, path and duration of a transfer.
fn transfer(mut text: String, size: i64, path: Option<String>, dur_ns: i64) -> String {
    if size > 0 {
        let _ = write!(text, " {size} bytes");
    }
    if let Some(path) = path {
        let _ = write!(text, " {path}");
    }
    let _ = write!(text, " <{:.6}>", dur_ns as f64 / 1e9);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(row: u32, start: i64, end: i64, parent: u32) -> Span {
        Span { utid: 7, row, start, end, parent }
    }

    #[test]
    fn events_belong_to_the_innermost_call() {
        let spans = Spans(vec![
            span(0, 10, 100, u32::MAX),
            span(1, 20, 30, 0),
            span(2, 40, 80, 0),
            span(3, 50, 60, 2),
            span(4, 200, 210, u32::MAX),
        ]);
        let at = |ns| spans.at(7, ns).map(|s| s.row);
        assert_eq!(at(9), None);
        assert_eq!((at(10), at(20), at(25), at(30), at(31)), (Some(0), Some(1), Some(1), Some(1), Some(0)));
        assert_eq!((at(55), at(70), at(90), at(101), at(205)), (Some(3), Some(2), Some(0), None, Some(4)));
        assert!(spans.at(6, 25).is_none() && spans.at(8, 25).is_none());
    }

    #[test]
    fn texts_are_escaped_as_strace_does() {
        assert_eq!(quoted("C:\\x\\y.txt"), r#""C:\\x\\y.txt""#);
        assert_eq!(quoted("a\"b\n\u{1b}[31m\u{202e}"), r#""a\"b\n\u{1b}[31m\u{202e}""#);
        assert_eq!(quoted("Größe 日本"), "\"Größe 日本\"");
    }
}
