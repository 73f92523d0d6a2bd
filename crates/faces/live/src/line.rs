//! A window as a line of JSON.

use crate::history::Episode;
use crate::one_process::OneProcess;
use crate::stop::Fired;
use crate::watch::Look;
use crate::watch::Watch;
use etwhy_base::time::filetime;
use etwhy_base::time::filetime_text;
use etwhy_report::bill::BillRow;
use serde::Serialize;

/// Version of the lines.
pub const SCHEMA: &str = "etwhy-live-1";
/// Culprits and ended findings of a line.
const ROWS: usize = 10;

/// A line.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What was looked at: `window`, or `last`: its last seconds, which are looked at more often.
    pub range: &'static str,
    /// Begin of the window, UTC.
    pub from_utc: String,
    /// End of the window, UTC: everything before it has arrived, as far as one can know.
    pub to_utc: String,
    /// Begin since the start of the trace.
    pub from_ns: i64,
    /// End since the start of the trace.
    pub to_ns: i64,
    /// Events in the window.
    pub events: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Busy share of the processors; null if nothing tells.
    pub busy_percent: Option<f64>,
    /// Processes that used the processors most.
    pub bill: Vec<&'a BillRow>,
    /// Findings that last.
    pub findings: Vec<Found<'a>>,
    /// Findings that ended, the latest first.
    pub over: Vec<Found<'a>>,
    /// What was lost or is doubtful.
    pub doubts: Vec<Doubt>,
    /// Buffers that came late.
    pub late_buffers: u64,
    /// By how much the worst.
    pub late_ns: i64,
    /// One process, if one is watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<&'a OneProcess>,
    /// How long the evaluation took, in milliseconds.
    pub cost_ms: u128,
    /// The condition that was met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped<'a>>,
}

/// A finding as it came or went.
#[derive(Debug, Serialize)]
pub struct Found<'a> {
    id: &'a str,
    title: &'a str,
    severity: &'static str,
    culprit: &'a str,
    headline: &'a str,
    fix: &'a str,
    /// What the headline is about: `window`, or `last`: its last seconds.
    range: &'static str,
    /// The time range that it is about.
    from_utc: String,
    to_utc: String,
    /// How old that is: from its end to the newest one that was looked at.
    age_ns: i64,
    began_utc: String,
    /// End of the window that showed it last.
    seen_utc: String,
    /// Since when the last seconds do not show it any more, while the window still does.
    quiet_utc: Option<String>,
    over_utc: Option<String>,
    lasted_ns: i64,
}

/// A line of the ledger.
#[derive(Debug, Serialize)]
pub struct Doubt {
    name: &'static str,
    severity: &'static str,
    count: u64,
}

/// The condition that was met.
#[derive(Debug, Serialize)]
pub struct Stopped<'a> {
    text: &'a str,
    cause_utc: String,
    seen_utc: String,
}

/// A moment, UTC.
pub fn utc(unix_ns: i64) -> String {
    format!("{}Z", filetime_text(filetime(unix_ns), 3).replace(' ', "T"))
}

fn found(episode: &Episode, now_unix_ns: i64) -> Found<'_> {
    let said = &episode.said;
    Found {
        id: &episode.id,
        title: &episode.title,
        severity: episode.severity.name(),
        culprit: &said.culprit,
        headline: &said.headline,
        fix: &said.fix,
        range: said.range.name(),
        from_utc: utc(said.from_unix_ns),
        to_utc: utc(said.to_unix_ns),
        age_ns: now_unix_ns.saturating_sub(said.to_unix_ns),
        began_utc: utc(episode.began_unix_ns),
        seen_utc: utc(episode.seen_unix_ns),
        quiet_utc: episode.quiet_unix_ns.map(utc),
        over_utc: episode.over_unix_ns.map(utc),
        lasted_ns: episode.lasted_ns(),
    }
}

/// What a window shows, as a line.
pub fn line<'a>(look: &'a Look, watch: &'a Watch, fired: Option<&'a Fired>) -> Line<'a> {
    let (history, now) = (watch.history(), watch.now_unix_ns());
    let look = &look.sum;
    let processes = look.bill.iter().filter(|row| row.kind == "process" && row.part == "culprit");
    Line {
        schema: SCHEMA,
        range: look.range.name(),
        from_utc: utc(look.window.begin_unix_ns()),
        to_utc: utc(look.window.end_unix_ns()),
        from_ns: look.window.from_ns,
        to_ns: look.window.to_ns,
        events: look.events,
        bytes: look.bytes,
        busy_percent: look.busy_percent,
        bill: processes.take(ROWS).collect(),
        findings: history.lasting().iter().map(|episode| found(episode, now)).collect(),
        over: history.ended().iter().rev().take(ROWS).map(|episode| found(episode, now)).collect(),
        doubts: look
            .doubts
            .iter()
            .map(|d| Doubt { name: d.name, severity: d.severity, count: d.count })
            .collect(),
        late_buffers: look.late.0,
        late_ns: look.late.1,
        process: look.process.as_ref(),
        cost_ms: look.cost.as_millis(),
        stopped: fired.map(|fired| Stopped {
            text: &fired.text,
            cause_utc: utc(fired.cause_unix_ns),
            seen_utc: utc(fired.seen_unix_ns),
        }),
    }
}
