//! Reads counter logs into tables.

use crate::clock::{Clock, Step};
use crate::collect::Collected;
use crate::error::CountersError;
use crate::notes::{self, Notes};
use crate::number::{Field, field};
use crate::open::{Log, is_header, open};
use crate::path::CounterPath;
use crate::row::{Fields, is_cut, separator};
use crate::stamp;
use crate::tables::CounterSampleRow;
use crate::text::{Line, Names, line};
use etwhy_table::{Memory, Table, TableBuilder};
use std::collections::HashMap;
use std::path::PathBuf;

/// Which counters and samples are wanted.
#[derive(Default)]
pub struct Options<'a> {
    /// Samples before this time are left out.
    pub from: Option<Bound>,
    /// Samples from this time on are left out.
    pub to: Option<Bound>,
    /// Counters that are kept, by their path; all of them if there is none.
    pub keep: Option<&'a dyn Fn(&str) -> bool>,
    /// Minutes from UTC to local time, for logs that do not name their zone.
    pub utc_offset_min: Option<i32>,
}

/// A time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// In the local time of the log, as if it were UTC.
    Local(i64),
    /// In UTC.
    Utc(i64),
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Options({:?} to {:?}, offset {:?})", self.from, self.to, self.utc_offset_min)
    }
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRead {
    /// The file.
    pub path: PathBuf,
    /// Lines with samples, of the time that is wanted.
    pub rows: u64,
    /// Values of counters that are wanted, missing ones included.
    pub values: u64,
}

/// Logs that were read.
#[derive(Debug)]
pub struct CounterLogs {
    /// The tables: all of [`crate::tables::ALL`], `counter_sample` without rows unless it was wanted.
    pub tables: Vec<Table>,
    /// Files, in the order in which they were read.
    pub files: Vec<FileRead>,
    /// Files of folders that were skipped, with the reason.
    pub skipped: Vec<(PathBuf, String)>,
}

/// No counter stands in this column, or it is not wanted.
const NONE: u32 = u32::MAX;

/// What is being read.
struct State<'a> {
    all: Collected,
    notes: Notes,
    samples: TableBuilder<CounterSampleRow>,
    zero: Option<i64>,
    options: &'a Options<'a>,
}

/// A header's columns, and what its time means.
struct Columns {
    counters: Vec<u32>,
    /// Values that a whole line has.
    whole: usize,
    clock: Clock,
    separator: u8,
}

/// Reads files and folders. `memory` bounds `counter_sample`, which is filled only if it is wanted ([`Memory::wanting`]).
///
/// # Errors
/// The first file that was named and is no counter log; a folder without one; nothing left to tell.
pub fn read(paths: &[PathBuf], options: &Options<'_>, memory: &Memory) -> Result<CounterLogs, CountersError> {
    let (logs, skipped) = crate::open::all(paths)?;
    let mut state = State {
        all: Collected::default(),
        notes: Notes::default(),
        samples: TableBuilder::if_wanted(memory),
        zero: None,
        options,
    };
    let mut files = Vec::new();
    for (number, log) in logs.iter().enumerate() {
        files.push(state.file(log, number)?);
    }
    if options.keep.is_some() && state.all.counters.is_empty() {
        return Err(CountersError::NoCounter { kinds: state.all.kinds_left_out() });
    }
    let Some(zero) = state.zero else {
        let files = match files.as_slice() {
            [only] => only.path.display().to_string(),
            several => format!("these {} files", several.len()),
        };
        let is_cut = options.from.is_some() || options.to.is_some();
        return Err(if is_cut { CountersError::NoSample { files } } else { CountersError::NoTime { files } });
    };
    let tables = crate::build::tables(state.all, state.notes, state.samples, zero, memory)?;
    Ok(CounterLogs { tables, files, skipped })
}

impl State<'_> {
    fn file(&mut self, log: &Log, number: usize) -> Result<FileRead, CountersError> {
        let mut reader = open(&log.path, log.form)?;
        let mut read = FileRead { path: log.path.clone(), rows: 0, values: 0 };
        let mut columns: Option<Columns> = None;
        let (mut bytes, mut at, mut headers) = (Vec::new(), 0u64, 0u64);
        if log.assumed_order {
            self.notes.count(&notes::DATE_ORDER, 1, &log.path, 0);
        }
        loop {
            let io = |source| CountersError::Io { file: log.path.clone(), source };
            let ended = match line(&mut reader, &mut bytes).map_err(io)? {
                Line::End => break,
                Line::TooLong => {
                    at += 1;
                    self.notes.count(&notes::LONG_LINE, 1, &log.path, at);
                    continue;
                }
                Line::Read { ended } => ended,
            };
            at += 1;
            // UTF-16 has a mark of its own, which is a character here.
            if at == 1 && bytes.starts_with("\u{FEFF}".as_bytes()) {
                bytes.drain(..3);
            }
            let separator_now = columns.as_ref().map_or(log.separator, |c| c.separator);
            let mut fields = Fields::new(&bytes, separator_now);
            let time = fields.next().unwrap_or(&[]);
            match (stamp::parse(time, log.order), &mut columns) {
                (Some(local), Some(columns)) => {
                    if let Some(values) = self.row(log, number, columns, local, fields, &bytes, ended, at) {
                        read.values += values;
                        read.rows += 1;
                    }
                }
                _ if is_header(&bytes) => {
                    headers += 1;
                    if headers > 1 {
                        self.notes.count(&notes::REPEATED_HEADER, 1, &log.path, at);
                    }
                    self.interval(number, &columns);
                    columns = Some(self.header(log, number, &bytes, at));
                }
                _ if bytes.trim_ascii().is_empty() => {}
                (None, Some(_)) if fields.any(|text| matches!(field(text), Field::Value(_))) => {
                    self.notes.count(&notes::STAMP_UNREADABLE, 1, &log.path, at);
                }
                _ => self.notes.count(&notes::NO_STAMP, 1, &log.path, at),
            }
        }
        self.interval(number, &columns);
        Ok(read)
    }

    /// Keeps the usual time between samples for the machines of a file.
    fn interval(&mut self, file: usize, columns: &Option<Columns>) {
        let interval = columns.as_ref().and_then(|c| c.clock.interval());
        for machine in self.all.machines.iter_mut().filter(|m| m.files.last() == Some(&file)) {
            machine.interval_ns = machine.interval_ns.or(interval);
        }
    }

    /// Reads a header.
    fn header(&mut self, log: &Log, file: usize, bytes: &[u8], at: u64) -> Columns {
        let separator = separator(bytes);
        let names = Names::parse(bytes, separator);
        if matches!(names, Names::Page(_)) {
            self.notes.count(&notes::CODE_PAGE, 1, &log.path, at);
        }
        let mut fields = Fields::new(bytes, separator);
        let zone = fields.next().and_then(|first| zone_of(&names.read(first)));
        let bias = match (&zone, self.options.utc_offset_min) {
            (Some((_, bias)), _) => *bias,
            (None, Some(offset)) => offset.saturating_neg(),
            (None, None) => {
                self.notes.count(&notes::NO_ZONE, 1, &log.path, 0);
                0
            }
        };
        let mut seen: HashMap<String, u32> = HashMap::new();
        let mut counters = Vec::new();
        let mut whole = 0;
        for (column, field) in fields.enumerate() {
            let text = names.read(field);
            let Some(path) = CounterPath::parse(&text) else {
                counters.push(NONE);
                // A separator at the end of the line makes an empty column.
                if !text.trim().is_empty() {
                    self.notes.count(&notes::NO_COUNTER, 1, &log.path, at);
                }
                continue;
            };
            whole = column + 1;
            let nth = seen.entry(text.to_lowercase()).or_insert(0);
            if *nth > 0 {
                self.notes.count(&notes::REPEATED_COUNTER, 1, &log.path, at);
            }
            let wanted = self.options.keep.is_none_or(|keep| keep(&text));
            let counter = if wanted {
                self.all.counter(text.trim(), path, *nth)
            } else {
                self.all.leave_out(&path);
                None
            };
            *nth += 1;
            if wanted && counter.is_none() {
                self.notes.count(&notes::TOO_MANY_COUNTERS, 1, &log.path, at);
            }
            if let Some(machine) = counter.and_then(|c| self.all.counters.get(c)).map(|c| c.machine)
                && let Some(machine) = self.all.machines.get_mut(machine)
            {
                if machine.files.last() != Some(&file) {
                    machine.files.push(file);
                }
                if machine.zone.is_none() {
                    machine.zone.clone_from(&zone);
                }
            }
            counters.push(counter.and_then(|c| u32::try_from(c).ok()).unwrap_or(NONE));
        }
        Columns { counters, whole, clock: Clock::new(bias), separator }
    }

    /// Reads the values of a line; gives how many of them are of counters that are wanted. `None` if its time is not.
    #[allow(clippy::too_many_arguments)]
    fn row(
        &mut self,
        log: &Log,
        file: usize,
        columns: &mut Columns,
        local: i64,
        mut fields: Fields<'_>,
        bytes: &[u8],
        ended: bool,
        at: u64,
    ) -> Option<u64> {
        let is_first = columns.clock.is_fresh();
        let (utc, step) = columns.clock.utc(local);
        match step {
            Step::On => {}
            Step::SummerEnds => self.notes.count(&notes::SUMMER_ENDS, 1, &log.path, at),
            Step::SummerBegins => self.notes.count(&notes::SUMMER_BEGINS, 1, &log.path, at),
            Step::SetBack => self.notes.count(&notes::SET_BACK, 1, &log.path, at),
        }
        let is_before = |bound: Bound| match bound {
            Bound::Local(ns) => local < ns,
            Bound::Utc(ns) => utc < ns,
        };
        if self.options.from.is_some_and(is_before) || !self.options.to.is_none_or(is_before) {
            return None;
        }
        let zero = *self.zero.get_or_insert(utc);
        // A value in whose middle the file ends says something else.
        let cut = !ended && is_cut(bytes);
        let slice = self.all.grid.slice(utc);
        let grid = self.all.grid;
        let reach = columns.clock.interval().map_or(i64::MAX, |usual| usual.saturating_mul(2));
        let (mut values, mut kept, mut overlap) = (0u64, 0u64, 0u64);
        let mut present: Option<usize> = None;
        for &number in &columns.counters {
            let Some(text) = fields.next() else { break };
            values += 1;
            kept += u64::from(number != NONE);
            if number == NONE || (cut && fields.clone().next().is_none()) {
                continue;
            }
            let Some(counter) = self.all.counters.get_mut(number as usize) else { continue };
            match field(text).of_counter(counter.name.is_some()) {
                Field::Value(value) if value == -1.0 && counter.name.is_some() => {
                    counter.missing += 1;
                    self.notes.count(&notes::MINUS_ONE, 1, &log.path, at);
                }
                Field::Value(value) => {
                    if counter.file != file {
                        if counter.last.is_some_and(|(last, _)| utc <= last) {
                            overlap += 1;
                            continue;
                        }
                        counter.file = file;
                        // What was between two files nobody knows.
                        counter.add(&grid, slice, utc, value, 0);
                    } else {
                        counter.add(&grid, slice, utc, value, reach);
                    }
                    present = Some(counter.machine);
                    if self.samples.is_kept() {
                        let ts_ns = utc.saturating_sub(zero);
                        self.samples.push(CounterSampleRow {
                            ts_ns,
                            utc_ns: utc,
                            counter: number as i32,
                            value,
                        });
                    }
                }
                Field::Missing => counter.missing += 1,
                Field::Wrong => {
                    counter.missing += 1;
                    self.notes.count(&notes::NOT_A_NUMBER, 1, &log.path, at);
                }
            }
        }
        if let Some(machine) = present {
            // Between files the usual time is that of the file before.
            let usual = (!is_first).then(|| columns.clock.interval());
            let gaps = self.seen(machine, file, utc, usual);
            self.notes.count(&notes::GAP, gaps, &log.path, at);
        }
        self.notes.count(&notes::OVERLAP, overlap, &log.path, at);
        if cut || (values as usize) < columns.whole {
            self.notes.count(&notes::CUT_LINE, 1, &log.path, at);
        }
        let extra = fields.filter(|f| !f.trim_ascii().is_empty()).count();
        self.notes.count(&notes::EXTRA_VALUES, extra as u64, &log.path, at);
        Some(kept)
    }

    /// Widens the time of the machines of a file, and counts gaps before the sample.
    fn seen(&mut self, machine: usize, file: usize, utc: i64, usual: Option<Option<i64>>) -> u64 {
        let mut gaps = 0;
        // Nearly all files have one machine.
        let several = self.all.machines.len() > 1;
        for (at, machine_of) in self.all.machines.iter_mut().enumerate() {
            if at == machine || (several && machine_of.files.last() == Some(&file)) {
                let (first, last) = machine_of.range.unwrap_or((utc, utc));
                machine_of.range = Some((first.min(utc), last.max(utc)));
                let step = utc.saturating_sub(last);
                let usual = usual.unwrap_or(machine_of.interval_ns).filter(|usual| *usual > 0);
                if usual.is_some_and(|usual| step > usual.saturating_mul(3)) {
                    machine_of.gaps.0 += 1;
                    machine_of.gaps.1 = machine_of.gaps.1.saturating_add(step);
                    gaps = 1;
                }
            }
        }
        gaps
    }
}

/// Zone and minutes to UTC of `(PDH-CSV 4.0) (Pacific Standard Time)(480)`.
fn zone_of(first: &str) -> Option<(String, i32)> {
    let (rest, bias) = first.trim().strip_suffix(')')?.rsplit_once('(')?;
    let bias: i32 = bias.trim().parse().ok().filter(|bias: &i32| bias.abs() <= 24 * 60)?;
    let rest = rest.trim_end().strip_suffix(')')?;
    // The name may hold brackets itself: "(UTC+01:00) Berlin".
    let (_, behind) = rest.split_once(')')?;
    let name = behind.trim_start().strip_prefix('(')?;
    Some((name.trim().to_owned(), bias))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones() {
        let zone = |text: &str| zone_of(text);
        assert_eq!(
            zone("(PDH-CSV 4.0) (Pacific Standard Time)(480)"),
            Some(("Pacific Standard Time".into(), 480))
        );
        assert_eq!(
            zone("(PDH-CSV 4.0) (W. Europe Daylight Time)(-120)"),
            Some(("W. Europe Daylight Time".into(), -120))
        );
        assert_eq!(zone("(PDH-TSV 4.0) (UTC)(0)"), Some(("UTC".into(), 0)));
        assert_eq!(
            zone("(PDH-CSV 4.0) (Mitteleuropäische Zeit (MEZ))(-60)"),
            Some(("Mitteleuropäische Zeit (MEZ)".into(), -60))
        );
        assert_eq!(zone("(PDH-CSV 4.0)"), None);
        assert_eq!(zone("Time"), None);
        assert_eq!(zone("(PDH-CSV 4.0) (x)(99999)"), None);
    }

    #[test]
    fn headers() {
        assert!(is_header(br#""(PDH-CSV 4.0)","\\A\Memory\Pages/sec""#));
        assert!(is_header(br#"Time,\\A\Memory\Pages/sec"#));
        assert!(!is_header(br#""02/27/2012 18:36:00.000","1""#));
        assert!(!is_header(br#"Exiting, please wait..."#));
    }
}
