//! Arguments of system calls: what other tables say that the same thread did meanwhile.
//!
//! Windows does not record the arguments of system calls. But file, registry, memory, handle and disk events of a thread
//! that lie inside one of its calls tell what the call was about. Each event belongs to the innermost call that
//! holds its begin. Starts of processes and network events name a process only: they are taken if exactly one call
//! of that process can have made them.
//!
//! Tables are read by the names of their columns. One that is missing or lacks a column gives no arguments.

use super::classes::{CLASSES, classes_of};
use super::{Calls, Choice, bare_name};
use etwhy_table::{ColumnView, Database, Table};
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

/// Who did it, by the column that says so.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Thread(&'static str),
    Process(&'static str),
}

struct Source {
    table: &'static str,
    /// Columns that may hold when it began, the best first.
    times: &'static [&'static str],
    owner: Owner,
    /// For events that name a process only: class of the calls that can have made them.
    class: &'static str,
    aside: bool,
    text: fn(&Names<'_>, &Table, u32) -> Option<String>,
}

impl Source {
    const fn thread(table: &'static str, times: &'static [&'static str], text: Text) -> Source {
        Source { table, times, owner: Owner::Thread("utid"), class: "", aside: false, text }
    }

    const fn by(self, owner: Owner, class: &'static str) -> Source {
        Source { owner, class, ..self }
    }

    const fn aside(self) -> Source {
        Source { aside: true, ..self }
    }
}

/// An event in words.
type Text = fn(&Names<'_>, &Table, u32) -> Option<String>;

/// Events that become arguments, those that say most first.
const SOURCES: &[Source] = &[
    Source::thread("file_io", &["start_ns", "ts_ns"], file_io),
    Source::thread("registry", &["start_ns", "ts_ns"], registry),
    Source::thread("virtual_alloc", &["ts_ns"], virtual_alloc),
    Source::thread("process", &["start_ns"], process).by(Owner::Process("parent_upid"), "process"),
    Source::thread("network", &["ts_ns"], network).by(Owner::Process("upid"), "network"),
    Source::thread("alpc", &["send_ns"], alpc).by(Owner::Thread("client_utid"), ""),
    Source::thread("alpc", &["receive_ns"], alpc).by(Owner::Thread("server_utid"), ""),
    Source::thread("handle", &["ts_ns"], handle_opened),
    Source::thread("handle", &["close_ns"], handle_closed).by(Owner::Thread("closed_by_utid"), ""),
    Source::thread("disk_io", &["start_ns"], disk_io).aside(),
    Source::thread("hard_fault", &["start_ns"], hard_fault).aside(),
    Source::thread("minifilter", &["start_ns"], minifilter).aside(),
];

/// Tables to ask for, where the catalogue has them.
pub const TABLES: &[&str] = &[
    "file_io",
    "registry",
    "virtual_alloc",
    "process",
    "network",
    "alpc",
    "handle",
    "disk_io",
    "hard_fault",
    "minifilter",
    "file",
    "thread",
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
    names: Names<'a>,
    /// Table and columns of each source.
    tables: Vec<Option<&'a Table>>,
    /// (call, source, event), sorted.
    of: Vec<(u32, u8, u32)>,
}

impl<'a> Arguments<'a> {
    /// Joins the calls with what the database has.
    pub fn of(db: &'a Database, calls: &Calls<'_>, choice: &Choice) -> Arguments<'a> {
        let names = Names { files: db.get("file") };
        let tables: Vec<Option<&Table>> = SOURCES.iter().map(|s| db.get(s.table)).collect();
        let mut threads: HashSet<u32> = HashSet::default();
        let mut processes: HashSet<i64> = HashSet::default();
        each_event(&tables, |source, who, _, _| match source.owner {
            Owner::Thread(_) => threads.extend(u32::try_from(who).ok()),
            Owner::Process(_) => _ = processes.insert(who),
        });
        let spans = Spans::new(calls, |utid, upid| {
            choice.wants_process(upid)
                && (threads.contains(&utid) || upid.is_some_and(|upid| processes.contains(&upid)))
        });
        let threads_of = threads_of(&spans, calls);
        let mut of = Vec::new();
        each_event(&tables, |source, who, ns, (number, event)| {
            let call = match source.owner {
                Owner::Thread(_) => {
                    u32::try_from(who).ok().and_then(|utid| spans.at(utid, ns)).map(|s| s.row)
                }
                Owner::Process(_) => {
                    threads_of.get(&who).and_then(|list| only_one(&spans, calls, list, ns, source.class))
                }
            };
            if let Some(call) = call {
                of.push((call, number, event));
            }
        });
        of.sort_unstable();
        Arguments { names, tables, of }
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
            let Some(table) = self.tables.get(usize::from(number)).copied().flatten() else { continue };
            let Some(count) = counts.get_mut(usize::from(source.aside)) else { continue };
            if *count >= most {
                more += 1;
                continue;
            }
            let Some(text) = (source.text)(&self.names, table, event) else { continue };
            if known.insert((source.table, text.clone())) {
                *count += 1;
                list.push(Argument { table: source.table, text, aside: source.aside });
            }
        }
        (list, more)
    }
}

/// Calls back with every event of every source: source, thread or process, time, (number of the source, row).
fn each_event(tables: &[Option<&Table>], mut each: impl FnMut(&Source, i64, i64, (u8, u32))) {
    for (number, (source, table)) in SOURCES.iter().zip(tables).enumerate() {
        let Some(table) = table else { continue };
        let (Owner::Thread(owner) | Owner::Process(owner)) = source.owner;
        let Some(time) = source.times.iter().find_map(|name| table.spec().column_index(name)) else {
            continue;
        };
        let Some(owner) = table.spec().column_index(owner) else { continue };
        for (batch, &first) in table.starts().iter().enumerate() {
            let (time, owner): (ColumnView<'_>, ColumnView<'_>) =
                (table.view(batch, time), table.view(batch, owner));
            for row in 0..time.len() {
                if let (Some(ns), Some(who)) = (time.i64(row), owner.i64(row)) {
                    each(source, who, ns, (number as u8, first.saturating_add(row as u32)));
                }
            }
        }
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

/// Names that rows refer to by number.
#[derive(Clone, Copy, Default)]
struct Names<'a> {
    files: Option<&'a Table>,
}

impl Names<'_> {
    /// The path of a row's file.
    fn path(&self, table: &Table, row: u32) -> Option<String> {
        let by_id = || {
            let id = table.i64(row, "file_id").and_then(|id| u32::try_from(id).ok())?;
            self.files?.text(id, "path")
        };
        table.text(row, "path").or_else(by_id).filter(|p| !p.is_empty()).map(quoted)
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

fn number(table: &Table, row: u32, column: &str) -> Option<i64> {
    table.i64(row, column)
}

fn file_io(names: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let path = names.path(table, row);
    let op = table.text(row, "op").unwrap_or("");
    let mut text = path.unwrap_or_default();
    if matches!(op, "read" | "write")
        && let Some(size) = number(table, row, "size_bytes")
    {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{size} bytes");
        if let Some(offset) = number(table, row, "offset_bytes") {
            let _ = write!(text, " @ {offset}");
        }
    }
    // New name of a rename, pattern of a search; what is asked for or how it is opened.
    let quoted_too = ["target", "pattern"].map(|c| table.text(row, c).filter(|t| !t.is_empty()).map(quoted));
    let plain = ["disposition", "info_class"].map(|c| table.text(row, c).map(str::to_owned));
    for more in quoted_too.into_iter().chain(plain).flatten() {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{more}");
    }
    Some(text).filter(|t| !t.is_empty())
}

fn registry(_: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let key = ["key", "path", "key_path"].iter().find_map(|c| table.text(row, c)).filter(|t| !t.is_empty());
    let value = ["value", "value_name"].iter().find_map(|c| table.text(row, c)).filter(|t| !t.is_empty());
    let parts: Vec<String> = [key, value].into_iter().flatten().map(quoted).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn virtual_alloc(_: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let address = ["address", "base_address", "base"].iter().find_map(|c| number(table, row, c))?;
    let mut text = format!("{:#x}", address as u64);
    if let Some(size) = number(table, row, "size_bytes") {
        let _ = write!(text, ", {size} bytes");
    }
    if let Some(op) = table.text(row, "op").filter(|op| !op.is_empty()) {
        let _ = write!(text, ", {op}");
    }
    Some(text)
}

fn process(_: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let name = table.text(row, "path").or_else(|| table.text(row, "name"));
    let pid = number(table, row, "pid")?;
    Some(match name.filter(|n| !n.is_empty()) {
        Some(name) => format!("{}, pid {pid}", quoted(name)),
        None => format!("pid {pid}"),
    })
}

fn network(_: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let (protocol, op) = (table.text(row, "protocol")?, table.text(row, "op")?);
    let mut text = format!("{protocol} {op}");
    if let Some(size) = number(table, row, "size_bytes").filter(|n| *n > 0) {
        let _ = write!(text, ", {size} bytes");
    }
    if let Some(local) = table.text(row, "local") {
        let _ = write!(text, ", {local}");
    }
    if let Some(remote) = table.text(row, "remote") {
        let _ = write!(text, " > {remote}");
    }
    Some(text)
}

fn alpc(_: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let mut text = format!("message {:#x}", number(table, row, "message_id")? as u32);
    if let Some(port) = table.text(row, "port").filter(|p| !p.is_empty()) {
        let _ = write!(text, ", {}", quoted(port));
    }
    Some(text)
}

fn handle_opened(names: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    // A rundown opens nothing.
    (table.text(row, "opened_by")? != "rundown").then(|| handle(names, table, row)).flatten()
}

fn handle_closed(names: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    (table.text(row, "closed_by")? == "close").then(|| handle(names, table, row)).flatten()
}

fn handle(_: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let mut text = format!("handle {:#x}", number(table, row, "handle")? as u32);
    if let Some(kind) = table.text(row, "object_type") {
        let _ = write!(text, " {kind}");
    }
    if let Some(name) = table.text(row, "name").filter(|n| !n.is_empty()) {
        let _ = write!(text, " {}", quoted(name));
    }
    Some(text)
}

fn minifilter(_: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let mut text = format!("filter {}", table.text(row, "routine").or_else(|| table.text(row, "module"))?);
    if let Some(dur) = number(table, row, "dur_ns") {
        let _ = write!(text, " <{:.6}>", dur as f64 / 1e9);
    }
    Some(text)
}

fn disk_io(names: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let mut text = format!("disk {}", table.text(row, "op")?);
    aside(names, table, row, &mut text);
    Some(text)
}

fn hard_fault(names: &Names<'_>, table: &Table, row: u32) -> Option<String> {
    let mut text = "hard fault".to_owned();
    aside(names, table, row, &mut text);
    Some(text)
}

/// Bytes, path and duration of a transfer.
fn aside(names: &Names<'_>, table: &Table, row: u32, text: &mut String) {
    if let Some(size) = number(table, row, "size_bytes").filter(|n| *n > 0) {
        let _ = write!(text, " {size} bytes");
    }
    if let Some(path) = names.path(table, row) {
        let _ = write!(text, " {path}");
    }
    if let Some(dur) = number(table, row, "dur_ns") {
        let _ = write!(text, " <{:.6}>", dur as f64 / 1e9);
    }
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
