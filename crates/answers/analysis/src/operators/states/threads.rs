//! Threads by what they did in a range: running, ready, waiting, and for whom they waited.
//!
//! # How it is computed
//!
//! Each run, queue and wait of table `cswitch` is cut at the ends of the range; switches count if they lie in it. A wait
//! belongs to the processor on which the thread came back. [`sql`] says the same as a query.
//!
//! # What fools it
//!
//! See [the folder](super). A thread that waits when the trace ends has that wait in `open_wait_ns` alone.

use super::{Index, Range, State, Switch, Switches, common};
use crate::operators::add;
use crate::operators::among::Among;
use etwhy_table::{Database, Sym};
use foldhash::HashMap;
use serde::Serialize;

/// Which threads, and what of them.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// From and to, ns.
    pub range: Range,
    /// For each process whether it counts.
    pub processes: Option<Vec<bool>>,
    /// For each thread whether it counts.
    pub threads: Option<Vec<bool>>,
    /// Processors on which they ran or came back.
    pub cpus: Among,
}

impl Choice {
    fn wants(&self, index: &Index, utid: u32) -> bool {
        let marked = |list: &Option<Vec<bool>>, id: Option<u32>| match list {
            Some(list) => id.and_then(|id| list.get(id as usize)).copied().unwrap_or(false),
            None => true,
        };
        !index.is_idle(utid) && marked(&self.threads, Some(utid)) && marked(&self.processes, index.upid(utid))
    }
}

/// A thread and its sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadSums {
    /// Thread.
    pub utid: u32,
    /// Process.
    pub upid: Option<u32>,
    /// Running.
    pub run_ns: i64,
    /// Ready without a processor.
    pub ready_ns: i64,
    /// Waiting.
    pub wait_ns: i64,
    /// Longest piece of a wait that lies in the range.
    pub wait_max_ns: i64,
    /// Waiting at the end of the trace, for how long nobody knows; not in `wait_ns`.
    pub open_wait_ns: i64,
    /// Switches to it.
    pub switches: i64,
    /// The wait reason that took most, and its time.
    pub top_reason: Option<(String, i64)>,
    /// The process whose threads ended most of the waits by time, and that time; `None` within: a DPC.
    pub top_readier: Option<(Option<u32>, i64)>,
}

#[derive(Default)]
struct Sums {
    out: ThreadSums,
    reasons: HashMap<Sym, i64>,
    readiers: HashMap<Option<u32>, i64>,
}

/// Sums of all threads that had any, by number. `go_on` is asked now and then.
pub fn threads(
    db: &Database,
    index: &Index,
    choice: &Choice,
    mut go_on: impl FnMut() -> bool,
) -> Vec<ThreadSums> {
    let Some(switches) = Switches::read(db) else { return Vec::new() };
    let wanted: Vec<bool> = (0..index.threads() as u32).map(|utid| choice.wants(index, utid)).collect();
    let mut sums: HashMap<u32, Sums> = HashMap::default();
    let mut names: HashMap<Sym, String> = HashMap::default();
    let range = choice.range;
    for batch in switches.0.batches() {
        if !go_on() {
            break;
        }
        for row in batch {
            let Some(utid) = super::id(row.new_utid()) else { continue };
            let of_cpu = || choice.cpus.has(Some(row.cpu()));
            if !wanted.get(utid as usize).copied().unwrap_or(false) || !of_cpu() {
                continue;
            }
            let switch = Switch {
                ts: row.ts_ns(),
                run: row.run_ns(),
                wait: row.wait_ns(),
                ready: row.ready_ns(),
                ..Switch::default()
            };
            let part = |piece: Option<Range>| piece.map_or(0, |piece| common(piece, range));
            let (run, ready, wait) = (part(switch.running()), part(switch.queued()), part(switch.waiting()));
            let counts = switch.ts >= range.0 && switch.ts < range.1;
            if run == 0 && ready == 0 && wait == 0 && !counts {
                continue;
            }
            let sum = sums.entry(utid).or_default();
            add(&mut sum.out.run_ns, run);
            add(&mut sum.out.ready_ns, ready);
            add(&mut sum.out.wait_ns, wait);
            sum.out.wait_max_ns = sum.out.wait_max_ns.max(wait);
            sum.out.switches += i64::from(counts);
            if wait == 0 {
                continue;
            }
            if let Some(key) = row.views.prev_wait_reason.sym(row.at) {
                add(sum.reasons.entry(key).or_default(), wait);
                names.entry(key).or_insert_with(|| row.prev_wait_reason().unwrap_or_default().to_owned());
            }
            let by = row.readying_utid().and_then(super::id);
            let by = by.filter(|&by| !index.is_idle(by)).and_then(|by| index.upid(by));
            if by.is_some() || row.readied_in_dpc() == Some(true) {
                add(sum.readiers.entry(by).or_default(), wait);
            }
        }
    }
    let name = |key: Sym| names.get(&key).cloned().unwrap_or_default();
    // Threads that wait through the whole range have no row in it.
    if choice.cpus.is_empty() {
        for utid in (0..index.threads() as u32).filter(|&u| wanted.get(u as usize) == Some(&true)) {
            let Some((ns, row)) = index.left_for_good(&switches, utid) else { continue };
            let open = common((ns, i64::MAX), range);
            if open > 0 && switches.old(row).0 == Some("Waiting") {
                sums.entry(utid).or_default().out.open_wait_ns = open;
            }
        }
    }
    let mut out: Vec<ThreadSums> = sums
        .into_iter()
        .map(|(utid, sum)| ThreadSums {
            utid,
            upid: index.upid(utid),
            top_reason: sum
                .reasons
                .into_iter()
                .map(|(key, ns)| (name(key), ns))
                .max_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0))),
            top_readier: sum.readiers.into_iter().max_by_key(|&(by, ns)| (ns, by)),
            ..sum.out
        })
        .collect();
    out.sort_by_key(|sum| sum.utid);
    out
}

/// What threads are ranked by.
pub fn rank(sums: &ThreadSums, by: State) -> i64 {
    match by {
        State::Run => sums.run_ns,
        State::Ready => sums.ready_ns,
        State::Wait => sums.wait_ns,
        State::Unknown => sums.switches,
    }
}

/// The sums as a query; `conditions` restrict rows of `cswitch`.
pub fn sql((from, to): Range, conditions: &[String]) -> String {
    let part = |begin: &str, end: &str| format!("sum(max(0, min({end}, {to}) - max({begin}, {from})))");
    let queued = "ts_ns - ready_ns";
    let waited = "ts_ns - coalesce(ready_ns, 0)";
    let more: String = conditions.iter().map(|c| format!(" AND {c}")).collect();
    format!(
        "SELECT new_upid, new_utid, {} AS run_ns, {} AS ready_ns, {} AS wait_ns, sum(ts_ns >= {from} AND ts_ns < {to}) AS switches \
         FROM cswitch WHERE ts_ns + coalesce(run_ns, 0) >= {from} AND \
         ts_ns - coalesce(since_last_ns, ready_ns, 0) < {to} AND new_utid NOT IN (SELECT utid FROM thread WHERE tid = 0){more} \
         GROUP BY new_utid ORDER BY run_ns DESC",
        part("ts_ns", "ts_ns + run_ns"),
        part(queued, "ts_ns"),
        part(&format!("{waited} - wait_ns"), waited),
    )
}
