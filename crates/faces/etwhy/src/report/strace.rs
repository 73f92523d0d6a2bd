//! Lines of `etwhy strace`.

use etwhy_analysis::strace::{Argument, Arguments, Call, Sum, Summary};
use etwhy_export::{sanitize, text};
use etwhy_table::Database;
use etwhy_trace::catalog::{thread::ThreadRow, trace::TraceRow};
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;

/// Which time stands before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Seconds since the start of the trace.
    SinceStart,
    /// Local time of the traced machine, whole seconds.
    TimeOfDay,
    /// The same with microseconds.
    TimeOfDayUs,
    /// Seconds since 1970.
    Epoch,
    /// Seconds since the call before.
    Relative,
}

/// How lines look.
#[derive(Clone, Debug)]
pub struct Style {
    /// Time before the call.
    pub clock: Clock,
    /// Time on processors beside the duration.
    pub cpu_time: bool,
    /// Most columns of a line; `None`: as long as it gets.
    pub width: Option<usize>,
}

/// Names that calls refer to by number.
pub struct Who {
    /// Name and id of each process.
    processes: Vec<(String, i64)>,
    /// Thread ids.
    threads: Vec<i64>,
    /// Start of the trace, nanoseconds since 1970 UTC.
    epoch_ns: i64,
    /// Local time minus UTC, nanoseconds.
    zone_ns: i64,
}

impl Who {
    /// Of the tables `process`, `thread` and `trace`.
    pub fn read(db: &Database) -> Who {
        let trace = db.read_or_empty::<TraceRow>();
        let trace = trace.first();
        Who {
            processes: etwhy_analysis::operators::process_names(db),
            threads: db.read_or_empty::<ThreadRow>().iter().map(|row| row.tid()).collect(),
            epoch_ns: trace.map_or(0, |trace| trace.start_unix_ns()),
            zone_ns: trace.map_or(0, |trace| trace.time_zone_bias_min()).saturating_mul(-60_000_000_000),
        }
    }

    /// Names and ids of all processes, by `upid`.
    pub fn processes(&self) -> &[(String, i64)] {
        &self.processes
    }

    fn process(&self, call: &Call<'_>) -> Option<(&str, i64)> {
        let found = self.processes.get(usize::try_from(call.upid?).ok()?)?;
        Some((&found.0, found.1))
    }

    fn tid(&self, call: &Call<'_>) -> Option<i64> {
        self.threads.get(usize::try_from(call.utid?).ok()?).copied()
    }

    /// `[pid/name tid]`.
    fn label(&self, call: &Call<'_>, name_columns: usize) -> String {
        match (self.process(call), self.tid(call)) {
            (Some((name, pid)), tid) => {
                let name = text::truncate_middle(&sanitize(name), name_columns);
                let tid = tid.map_or("?".to_owned(), |t| t.to_string());
                format!("[{pid}/{name} {tid}]")
            }
            (None, Some(tid)) => format!("[?/? {tid}]"),
            (None, None) => "[?/? ?]".to_owned(),
        }
    }
}

/// Writes calls line by line.
pub struct Lines<'a> {
    who: &'a Who,
    style: Style,
    /// `[pid/name tid]` of each process and thread, all of one width.
    labels: HashMap<(Option<i64>, Option<i64>), String>,
    last_ns: Option<i64>,
}

impl<'a> Lines<'a> {
    /// For these calls: their labels decide about the columns.
    pub fn new(who: &'a Who, style: Style, calls: impl Iterator<Item = Call<'a>>) -> Lines<'a> {
        let name_columns = style.width.map_or(64, |width| (width / 6).clamp(8, 32));
        let mut labels: HashMap<_, String> = HashMap::new();
        for call in calls {
            labels.entry((call.upid, call.utid)).or_insert_with(|| who.label(&call, name_columns));
        }
        let columns = labels.values().map(|label| text::width(label)).max().unwrap_or(0);
        for label in labels.values_mut() {
            *label = text::pad_end(label, columns);
        }
        Lines { who, style, labels, last_ns: None }
    }

    /// Writes one call.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        &mut self,
        out: &mut impl Write,
        call: &Call<'_>,
        found: (Vec<Argument>, usize),
    ) -> std::io::Result<()> {
        let mut head = self.labels.get(&(call.upid, call.utid)).cloned().unwrap_or_default();
        head.push(' ');
        head.push_str(&self.time(call.moment_ns()));
        head.push(' ');
        // Calls that the kernel makes inside a call stand further right.
        head.push_str("  ".repeat(call.depth.unwrap_or(0).clamp(0, 8) as usize).as_str());
        let (tail, arguments) = (ending(call, &self.style), Parts::new(found));
        let name = shown_name(call);
        let rest = text::width(&head) + text::width(&name) + text::width(&tail) + 2;
        let arguments = arguments.fit(self.style.width.map(|width| width.saturating_sub(rest)));
        let body = if call.start_ns.is_none() {
            "<... resumed>".to_owned()
        } else if call.outcome == "unfinished" {
            let comma = if arguments.is_empty() { "" } else { ", " };
            format!("{name}({arguments}{comma}<unfinished ...>")
        } else {
            format!("{name}({arguments})")
        };
        // Results stand below each other where calls are short and lines may be long.
        let column =
            if tail.is_empty() { 0 } else { self.style.width.map_or(36, |width| (width / 4).min(36)) };
        let line = format!("{head}{}{tail}", text::pad_end(&body, column));
        writeln!(out, "{}", sanitize(&line))
    }

    fn time(&mut self, ns: i64) -> String {
        let before = self.last_ns.replace(ns);
        let seconds = |ns: i64| {
            let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
            format!("{sign}{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
        };
        match self.style.clock {
            Clock::SinceStart => format!("{:>11}", seconds(ns)),
            Clock::Relative => format!("{:>11}", seconds(before.map_or(0, |b| ns.saturating_sub(b)))),
            Clock::Epoch => seconds(self.who.epoch_ns.saturating_add(ns)),
            Clock::TimeOfDay | Clock::TimeOfDayUs => {
                let local = self.who.epoch_ns.saturating_add(self.who.zone_ns).saturating_add(ns);
                let us = local.div_euclid(1000).rem_euclid(86_400_000_000);
                let s = us / 1_000_000;
                let mut text = format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
                if self.style.clock == Clock::TimeOfDayUs {
                    text.push_str(&format!(".{:06}", us % 1_000_000));
                }
                text
            }
        }
    }
}

/// The function; module and offset where it has no name.
fn shown_name(call: &Call<'_>) -> String {
    match (call.name(), call.function, call.address) {
        (Some(name), ..) => name.to_owned(),
        // `module!+0x12` and `[unknown]!0x12`.
        (None, Some(function), _) => function.replacen("!+", "+", 1).replacen("[unknown]!", "", 1),
        (None, None, Some(address)) => format!("{:#x}", address as u64),
        (None, None, None) => "?".to_owned(),
    }
}

/// ` = 0 STATUS_SUCCESS <0.000120>`.
fn ending(call: &Call<'_>, style: &Style) -> String {
    let seconds = |ns: i64| format!("{:.6}", ns as f64 / 1e9);
    let mut tail = match (call.status, call.outcome) {
        (Some(0), _) => " = 0".to_owned(),
        (Some(status), _) => format!(" = {status:#x}"),
        (None, "unfinished") => return String::new(),
        (None, "thread_ended") => return " = ? /* the thread ended */".to_owned(),
        (None, "no_return") => return " = ?".to_owned(),
        (None, _) => return " = ? /* end not known */".to_owned(),
    };
    if let Some(name) = call.status_name {
        tail.push(' ');
        tail.push_str(name);
    }
    let dur = call.dur_ns.map_or("?".to_owned(), seconds);
    match (style.cpu_time, call.on_cpu_ns) {
        (true, Some(on)) => tail.push_str(&format!(" <{dur} cpu {}>", seconds(on))),
        (true, None) => tail.push_str(&format!(" <{dur} cpu ?>")),
        (false, _) => tail.push_str(&format!(" <{dur}>")),
    }
    tail
}

/// Arguments on their way into a line.
struct Parts {
    list: Vec<Argument>,
    more: usize,
}

impl Parts {
    fn new((list, more): (Vec<Argument>, usize)) -> Parts {
        Parts { list, more }
    }

    fn whole(&self, longest: usize) -> String {
        let cut = |a: &Argument| shortened(&a.text, longest);
        let mut text = self.list.iter().filter(|a| !a.aside).map(cut).collect::<Vec<_>>().join(", ");
        if self.more > 0 {
            text.push_str(&format!("{}... {} more", if text.is_empty() { "" } else { ", " }, self.more));
        }
        for aside in self.list.iter().filter(|a| a.aside) {
            let blank = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{blank}/* {} */", cut(aside)));
        }
        text
    }

    /// In `columns`, if the texts in quotes can be made short enough and still tell something.
    fn fit(&self, columns: Option<usize>) -> String {
        let whole = self.whole(usize::MAX);
        let Some(columns) = columns.filter(|columns| text::width(&whole) > *columns) else { return whole };
        // What is not in quotes stays; the rest is shared.
        let none = text::width(&self.whole(0));
        let texts = whole.matches('"').count().div_ceil(2).max(1);
        self.whole((columns.saturating_sub(none) / texts).max(SHORTEST))
    }
}

/// Columns that a text in quotes keeps at least.
const SHORTEST: usize = 12;

/// The words with each text in quotes cut in its middle to `longest` columns. Escapes stay whole.
fn shortened(words: &str, longest: usize) -> String {
    let mut out = String::with_capacity(words.len());
    let mut rest = words;
    while let Some((before, behind)) = rest.split_once('"') {
        out.push_str(before);
        let units = units(behind);
        let len = units.iter().map(|u| u.len()).sum();
        out.push('"');
        out.push_str(&middle_cut(&units, longest));
        rest = behind.get(len..).unwrap_or("");
        if let Some(behind) = rest.strip_prefix('"') {
            out.push('"');
            rest = behind;
        }
    }
    out.push_str(rest);
    out
}

/// Characters and escapes up to the closing quote.
fn units(text: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next().filter(|c| *c != '"') {
        let len = match first {
            '\\' if rest.starts_with("\\u{") => rest.find('}').map_or(rest.len(), |end| end + 1),
            '\\' => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            c => c.len_utf8(),
        };
        let (unit, behind) = rest.split_at_checked(len).unwrap_or((rest, ""));
        units.push(unit);
        rest = behind;
    }
    units
}

/// The units with `…` in place of those in the middle; the end, which has a file's name, gets more.
fn middle_cut(units: &[&str], columns: usize) -> String {
    let width = |units: &[&str]| units.iter().map(|u| text::width(u)).sum::<usize>();
    if width(units) <= columns {
        return units.concat();
    }
    let room = columns.saturating_sub(1);
    let fits = |from: &mut dyn Iterator<Item = &&str>, room: usize| {
        let mut used = 0;
        from.take_while(|unit| {
            used += text::width(unit);
            used <= room
        })
        .count()
    };
    let tail = fits(&mut units.iter().rev(), room.div_ceil(2));
    let head = fits(&mut units.iter(), room / 2);
    let (head, tail) = (units.get(..head).unwrap_or(&[]), units.get(units.len() - tail..).unwrap_or(&[]));
    format!("{}…{}", head.concat(), tail.concat())
}

/// A call for programs.
#[derive(Serialize)]
struct Json<'a> {
    start_ns: Option<i64>,
    ts_ns: Option<i64>,
    dur_ns: Option<i64>,
    on_cpu_ns: Option<i64>,
    off_cpu_ns: Option<i64>,
    process: Option<&'a str>,
    pid: Option<i64>,
    tid: Option<i64>,
    cpu: Option<i64>,
    function: Option<&'a str>,
    address: Option<String>,
    arguments: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    asides: Vec<String>,
    status: Option<String>,
    status_name: Option<&'a str>,
    failed: Option<bool>,
    depth: Option<i64>,
    outcome: &'a str,
}

/// Writes one call as a line of JSON.
///
/// # Errors
/// Those of `out`.
pub fn json_line(
    out: &mut impl Write,
    who: &Who,
    call: &Call<'_>,
    arguments: &Arguments<'_>,
) -> std::io::Result<()> {
    let (list, _) = arguments.of_call(call.row, usize::MAX);
    let texts = |aside| list.iter().filter(|a| a.aside == aside).map(|a| a.text.clone()).collect();
    let (process, pid) = who.process(call).unzip();
    let line = Json {
        start_ns: call.start_ns,
        ts_ns: call.end_ns,
        dur_ns: call.dur_ns,
        on_cpu_ns: call.on_cpu_ns,
        off_cpu_ns: call.off_cpu_ns,
        process,
        pid,
        tid: who.tid(call),
        cpu: call.cpu,
        function: call.function,
        address: call.address.map(|a| format!("{:#x}", a as u64)),
        arguments: texts(false),
        asides: texts(true),
        status: call.status.map(|s| format!("{s:#x}")),
        status_name: call.status_name,
        failed: call.failed,
        depth: call.depth,
        outcome: call.outcome,
    };
    etwhy_report::json::to_writer(&mut *out, &line)?;
    writeln!(out)
}

/// Writes the table of `strace -c`.
///
/// # Errors
/// Those of `out`.
pub fn table(out: &mut impl Write, summary: &Summary, top: usize) -> std::io::Result<()> {
    let rule = "------ ----------- ----------- --------- --------- ----------------";
    writeln!(out, "% time     seconds  usecs/call     calls    errors syscall\n{rule}")?;
    let all = summary.total.time_ns;
    let mut row = |sum: &Sum, name: &str| {
        let share = if all > 0 { sum.time_ns as f64 / all as f64 * 100.0 } else { 0.0 };
        let errors = if sum.errors > 0 { sum.errors.to_string() } else { String::new() };
        writeln!(
            out,
            "{share:6.2} {:11.6} {:11} {:9} {errors:>9} {}",
            sum.time_ns as f64 / 1e9,
            sum.mean_ns() / 1000,
            sum.calls,
            sanitize(name)
        )
    };
    for sum in summary.functions.iter().take(top) {
        row(sum, function_of(sum))?;
    }
    let left = summary.functions.len().saturating_sub(top);
    if left > 0 {
        row(&rest(summary, top), &format!("... {left} more"))?;
    }
    let total = Sum { time_ns: all, ..summary.total.clone() };
    let mean = if all > 0 { 100.0 } else { 0.0 };
    let errors = if total.errors > 0 { total.errors.to_string() } else { String::new() };
    writeln!(out, "{rule}")?;
    writeln!(
        out,
        "{mean:6.2} {:11.6} {:11} {:9} {errors:>9} total",
        all as f64 / 1e9,
        total.mean_ns() / 1000,
        total.calls
    )
}

/// The functions that are left out, together.
fn rest(summary: &Summary, top: usize) -> Sum {
    summary.functions.iter().skip(top).fold(Sum::default(), |mut sum, other| {
        sum.calls = sum.calls.saturating_add(other.calls);
        sum.errors = sum.errors.saturating_add(other.errors);
        sum.untimed = sum.untimed.saturating_add(other.untimed);
        sum.time_ns = sum.time_ns.saturating_add(other.time_ns);
        sum
    })
}

fn function_of(sum: &Sum) -> &str {
    match etwhy_analysis::strace::bare_name(&sum.function) {
        Some(name) => name,
        None if sum.function.is_empty() => "[begun before the trace]",
        None => &sum.function,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_quotes_are_cut_and_nothing_else() {
        let words = r#""C:\\data\\folder\\file.txt", 4096 bytes @ 0"#;
        assert_eq!(shortened(words, 100), words);
        assert_eq!(shortened(words, 13), r#""C:\\da…le.txt", 4096 bytes @ 0"#);
        // An escape is never cut in two.
        assert_eq!(shortened(r#""ab\\cd\\ef""#, 8), r#""ab…\\ef""#);
        assert_eq!(shortened(r#"x "a\"b" y "\u{1b}[31m\u{202e}z""#, 4), r#"x "a\"b" y "…z""#);
        assert_eq!(shortened(r#"no end "abcdef"#, 3), r#"no end "a…f"#);
    }
}
