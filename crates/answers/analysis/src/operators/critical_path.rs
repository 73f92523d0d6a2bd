//! Critical paths: the chain of pieces, and the share of each cause.

use super::process_names;
use etwhy_table::Database;
use etwhy_trace::catalog::{critical_path::CriticalPathRow, stack::StackRow, thread::ThreadRow};
use serde::Serialize;
use std::collections::BTreeMap;

/// Something that took time on a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct CauseKey {
    kind: String,
    process: String,
    tid: i64,
    wait_reason: Option<String>,
    readied_in_dpc: bool,
    leaf: Option<String>,
}

/// What took time on a path.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    /// run, interrupt (DPCs and ISRs during a run or a time in the queue), ready, wait or unknown.
    pub kind: String,
    /// Process that it is charged to; the driver, for an interrupt.
    pub process: String,
    /// Thread id.
    pub tid: i64,
    /// Why it waited.
    pub wait_reason: Option<String>,
    /// The wait was ended in a DPC.
    pub readied_in_dpc: bool,
    /// Innermost frame: where it waited, or had been switched in.
    pub leaf: Option<String>,
    /// Nanoseconds.
    pub dur_ns: i64,
    /// Share of the stretch.
    pub percent: f64,
}

/// A piece of a path.
#[derive(Clone, Debug, Serialize)]
pub struct Link {
    /// Start, ns.
    pub start_ns: i64,
    /// Wake-ups away from the thread itself.
    pub depth: i64,
    /// What it is.
    #[serde(flatten)]
    pub cause: Cause,
}

/// The critical path of a stretch.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// Why it was looked at.
    pub origin: String,
    /// Process of the thread.
    pub process: String,
    /// Thread id.
    pub tid: i64,
    /// Start of the stretch, ns.
    pub start_ns: i64,
    /// Its length, ns.
    pub dur_ns: i64,
    /// What took the time, largest first.
    pub causes: Vec<Cause>,
    /// Pieces, latest first.
    pub links: Vec<Link>,
}

/// All paths of the table `critical_path`: those of time ranges that were asked for or of windows that were late; where there are none, those
/// of the longest waits.
pub fn paths(db: &Database) -> Vec<Path> {
    let names = process_names(db);
    let threads = db.read_or_empty::<ThreadRow>();
    let stacks = db.read_or_empty::<StackRow>();
    let tid = |utid: i64| threads.get(utid).map_or(-1, |thread| thread.tid());
    let process_of = |utid: i64| {
        let upid = threads.get(utid).and_then(|thread| thread.upid());
        let named = upid.and_then(|u| names.get(usize::try_from(u).ok()?));
        named.map_or_else(|| "[unknown]".to_owned(), |(name, _)| name.clone())
    };
    let leaf = |stack: Option<i64>| stacks.get(stack?)?.leaf().map(str::to_owned);
    let mut found: BTreeMap<i64, Path> = BTreeMap::new();
    for row in &db.read_or_empty::<CriticalPathRow>() {
        let path = found.entry(row.path_id()).or_insert_with(|| Path {
            origin: row.origin().to_owned(),
            process: process_of(row.of_utid()),
            tid: tid(row.of_utid()),
            start_ns: i64::MAX,
            dur_ns: 0,
            causes: Vec::new(),
            links: Vec::new(),
        });
        let (start_ns, dur_ns) = (row.start_ns(), row.dur_ns());
        path.start_ns = path.start_ns.min(start_ns);
        path.dur_ns = path.dur_ns.saturating_add(dur_ns);
        let interrupts = row.interrupted_by().map(|module| (module, row.interrupted_ns().min(dur_ns)));
        let own_ns = dur_ns.saturating_sub(interrupts.map_or(0, |(_, ns)| ns));
        let cause = Cause {
            kind: row.kind().to_owned(),
            process: process_of(row.utid()),
            tid: tid(row.utid()),
            wait_reason: row.wait_reason().map(str::to_owned),
            readied_in_dpc: row.readied_in_dpc() == Some(true),
            leaf: leaf(row.stack_id()),
            dur_ns: own_ns,
            percent: 0.0,
        };
        if let Some((module, dur_ns)) = interrupts {
            let (kind, process) = ("interrupt".to_owned(), module.to_owned());
            let cause = Cause { kind, process, leaf: None, dur_ns, ..cause.clone() };
            path.links.push(Link { start_ns: start_ns.saturating_add(own_ns), depth: row.depth(), cause });
        }
        path.links.push(Link { start_ns, depth: row.depth(), cause });
    }
    let mut paths: Vec<Path> = found.into_values().collect();
    let of_a_wait = |path: &Path| path.origin.ends_with(" wait");
    if !paths.iter().all(of_a_wait) {
        paths.retain(|path| !of_a_wait(path));
    }
    for path in &mut paths {
        let whole = path.dur_ns.max(1) as f64;
        let mut sums: BTreeMap<CauseKey, i64> = BTreeMap::new();
        for link in &mut path.links {
            let cause = &mut link.cause;
            cause.percent = 100.0 * cause.dur_ns as f64 / whole;
            let key = CauseKey {
                kind: cause.kind.clone(),
                process: cause.process.clone(),
                tid: cause.tid,
                wait_reason: cause.wait_reason.clone(),
                readied_in_dpc: cause.readied_in_dpc,
                leaf: cause.leaf.clone(),
            };
            super::add(sums.entry(key).or_default(), cause.dur_ns);
        }
        path.causes = sums
            .into_iter()
            .map(|(key, dur_ns)| Cause {
                kind: key.kind,
                process: key.process,
                tid: key.tid,
                wait_reason: key.wait_reason,
                readied_in_dpc: key.readied_in_dpc,
                leaf: key.leaf,
                dur_ns,
                percent: 100.0 * dur_ns as f64 / whole,
            })
            .collect();
        path.causes.sort_by_key(|c| std::cmp::Reverse(c.dur_ns));
    }
    paths
}
