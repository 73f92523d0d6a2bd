//! Whether two files are parts of one recording.
//!
//! Files of one recording are of one machine and one boot, and either
//! * one session wrote them one after the other (a series: `EVENT_TRACE_FILE_MODE_NEW_FILE`, or a collector that goes on in
//!   files with a running number), or
//! * different sessions wrote them at the same time (kernel and user part), or
//! * they carry one name with the endings that PerfView, xperf and etwhy give to parts (`x.kernel.etl`, `x.clrRundown.etl`, `x.names.etl`).
//!
//! Two kernel parts of the same time would count everything twice, so they are never one. One behind the other is, if its name says so: etwhy goes on in
//! `x.kernel-2.etl` when its session was taken, and has the kernel tell who is who in `x.names.etl`.

use super::Identity;
use super::machine::{Difference, utc};
use etwhy_base::time::unix_ns;

/// A series goes on at once: a collector that restarts its session needs less.
const SERIES_GAP_NS: i64 = 5_000_000_000;
/// The rundown of .NET is recorded when the other sessions have ended, and takes its time.
const PARTS_GAP_NS: i64 = 120_000_000_000;
/// Numbers that tools give to the files of a series have leading zeros: `_000001`.
const LEAST_DIGITS: usize = 3;
/// Endings of the parts of one recording.
const PARTS: [&str; 8] =
    [".kernel", ".user", ".clrrundown", ".rundown", ".userrundown", ".kernelrundown", ".clr", NAMES];
/// Who is who at the end of a flight recorder of etwhy.
const NAMES: &str = ".names";
/// What etwhy puts before the number of a further session of a kind.
const NUMBERED: [&str; 3] = [".kernel-", ".user-", ".names-"];

/// What two files are to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Parts of one recording.
    Parts,
    /// Nothing says that they belong together, but they may both belong to a third.
    Unrelated(Difference),
    /// They cannot be one.
    Apart(Vec<Difference>),
}

/// What two files are to each other.
pub fn relation(a: &Identity, b: &Identity) -> Relation {
    let mut differences = a.machine.differences(&b.machine);
    if a.trace_id == b.trace_id {
        differences.push(Difference::stated("content", "the files are copies of one".to_owned()));
    }
    let series = is_series(a, b);
    let common = a.span_ns.1.min(b.span_ns.1).saturating_sub(a.span_ns.0.max(b.span_ns.0));
    if a.kernel && b.kernel && common > 0 && !series {
        differences.push(Difference::stated(
            "overlapping kernel sessions",
            format!("both hold kernel events of the same {}, which would count twice", seconds(common)),
        ));
    }
    if !differences.is_empty() {
        return Relation::Apart(differences);
    }
    let follows = -common <= PARTS_GAP_NS && (!(a.kernel && b.kernel) || may_follow(a) || may_follow(b));
    if series || common > 0 || (follows && are_parts(a, b)) {
        return Relation::Parts;
    }
    let [earlier, later] = if a.span_ns.0 <= b.span_ns.0 { [a, b] } else { [b, a] };
    Relation::Unrelated(Difference::stated(
        "time",
        format!(
            "{} begins {} after {} has ended, and they are not files of one series",
            later.shown.display(),
            seconds(later.span_ns.0.saturating_sub(earlier.span_ns.1)),
            earlier.shown.display()
        ),
    ))
}

fn seconds(ns: i64) -> String {
    match ns {
        60_000_000_000.. => format!("{} s", ns / 1_000_000_000),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

/// The session went on from one file to the other.
fn is_series(a: &Identity, b: &Identity) -> bool {
    if a.session != b.session || a.trace_id == b.trace_id {
        return false;
    }
    let [first, next] = if (a.sequence, a.span_ns) <= (b.sequence, b.span_ns) { [a, b] } else { [b, a] };
    if a.new_file && b.new_file {
        // One session has one start, and gives each buffer its own number.
        let numbered = first.sequence.zip(next.sequence).is_some_and(|(f, n)| f.1 < n.0);
        return numbered && (a.started == b.started || in_a_row(first, next));
    }
    // Told to go on in another file, a session keeps its start, and may state it in each (`ControlTrace`).
    let one_start = a.started == b.started && unix_ns(a.started) > 0;
    if one_start && (counts_on(&a.log_file, &b.log_file) || counts_on(&b.log_file, &a.log_file)) {
        return true;
    }
    let [first, next] = if a.span_ns <= b.span_ns { [a, b] } else { [b, a] };
    let shown = |i: &Identity| i.shown.to_string_lossy().into_owned();
    in_a_row(first, next)
        && (counts_on(&first.log_file, &next.log_file)
            || (a.merged && b.merged && counts_on(&shown(first), &shown(next))))
}

/// The next one begins about when the first one ends. Short traces of one moment, such as copies or two machines, do not: they have
/// most of their time in common.
fn in_a_row(first: &Identity, next: &Identity) -> bool {
    let common = first.span_ns.1.saturating_sub(next.span_ns.0);
    let length = |i: &Identity| i.span_ns.1.saturating_sub(i.span_ns.0);
    common.abs() <= SERIES_GAP_NS && 2 * common.max(0) <= length(first).min(length(next))
}

/// Names that differ in a running number that a tool wrote, behind which the earlier one is smaller.
fn counts_on(first: &str, next: &str) -> bool {
    let parts = |name: &str| {
        let name = name.to_lowercase();
        let stem = name.strip_suffix(".etl").unwrap_or(&name).to_owned();
        let head = stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let digits = stem.get(head..).unwrap_or("").to_owned();
        (stem.get(..head).unwrap_or("").to_owned(), digits)
    };
    let ((head, number), (other_head, other)) = (parts(first), parts(next));
    let value = |digits: &str| digits.parse::<u128>().ok();
    head == other_head
        && number.len() >= LEAST_DIGITS
        && value(&number).zip(value(&other)).is_some_and(|(a, b)| a < b)
}

/// A name in lower case without the ending of a part, and that ending.
fn stem(name: &str) -> (String, Option<String>) {
    let name = name.to_lowercase();
    let bare = name.strip_suffix(".etl").unwrap_or(&name);
    if let Some(working) = working_name(bare) {
        return working;
    }
    let head = bare.trim_end_matches(|c: char| c.is_ascii_digit());
    let numbered = NUMBERED.iter().find(|part| head.len() < bare.len() && head.ends_with(*part));
    let length = numbered.or_else(|| PARTS.iter().find(|part| bare.ends_with(*part))).map(|part| part.len());
    let Some(length) = length else { return (bare.to_owned(), None) };
    let whole = if numbered.is_some() { head } else { bare };
    let (stem, _) = whole.split_at(whole.len().saturating_sub(length));
    (stem.to_owned(), bare.strip_prefix(stem).map(str::to_owned))
}

/// The same of a name that etwhy gives while it records: `0000002a-kernel-2-001`, `0000002a-user-save-002`, `0000002a-names-1-001`.
fn working_name(bare: &str) -> Option<(String, Option<String>)> {
    let file = bare.rsplit(['\\', '/']).next()?;
    let mut words = file.split('-');
    let (id, kind, session) = (words.next()?, words.next()?, words.next()?);
    let is_id = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_ours = is_id && matches!(kind, "kernel" | "user" | "names");
    let further = session.parse::<u32>().ok().filter(|number| *number > 1 && kind != "names");
    let part = further.map_or_else(|| format!(".{kind}"), |number| format!(".{kind}-{number}"));
    is_ours.then(|| (bare.strip_suffix(file).unwrap_or_default().to_owned() + id, Some(part)))
}

/// Whether it is a part that holds the kernel's events behind those of another.
fn may_follow(identity: &Identity) -> bool {
    let (_, part) = stem(&identity.shown.to_string_lossy());
    part.is_some_and(|part| part == NAMES || NUMBERED.iter().any(|numbered| part.starts_with(numbered)))
}

/// Names of parts: one name with different endings.
fn are_parts(a: &Identity, b: &Identity) -> bool {
    let same = |a: &str, b: &str| {
        let ((a, a_part), (b, b_part)) = (stem(a), stem(b));
        a == b && (a_part.is_some() || b_part.is_some())
    };
    same(&a.shown.to_string_lossy(), &b.shown.to_string_lossy()) || same(&a.log_file, &b.log_file)
}

/// One line about a file: whose it is and from when.
pub fn describe(identity: &Identity) -> String {
    let machine = &identity.machine;
    let computer = machine.computer.as_deref().unwrap_or("computer not recorded");
    let windows =
        machine.windows.map(|(a, b, build)| format!(", Windows {a}.{b}.{build}")).unwrap_or_default();
    let processors = machine.processors.map(|n| format!(", {n} processors")).unwrap_or_default();
    let boot = machine.boot.map(|boot| format!(", booted {}", utc(boot))).unwrap_or_default();
    let started = if unix_ns(identity.started) > 0 { utc(identity.started) } else { "?".to_owned() };
    format!("{computer}{windows}{processors}{boot}, recorded from {started}")
}
