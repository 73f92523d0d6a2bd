//! .NET by process: garbage collection, exceptions, compilation, contention.

use super::{add, process_names};
use etwhy_table::Database;
use etwhy_trace::catalog::{
    clr_contention::ClrContentionRow, clr_exception::ClrExceptionRow, clr_gc::ClrGcRow, clr_jit::ClrJitRow,
};
use foldhash::HashMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// .NET facts of a process.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClrProcess {
    /// Instance (table `process`).
    pub upid: i64,
    /// Image name.
    pub name: String,
    /// Process id.
    pub pid: i64,
    /// Collections by generation (0, 1, 2).
    pub gc_by_generation: [i64; 3],
    /// Time in which the program stood still for collections.
    pub gc_pause_ns: i64,
    /// Longest of these pauses.
    pub gc_longest_pause_ns: i64,
    /// Largest heap after a collection.
    pub gc_peak_heap_bytes: i64,
    /// Collections that the program asked for.
    pub gc_induced: i64,
    /// Exceptions thrown.
    pub exceptions: i64,
    /// Exceptions by type, most frequent first.
    pub exception_types: Vec<(String, i64)>,
    /// Methods compiled at run time.
    pub jit_methods: i64,
    /// Time that compilation took.
    pub jit_ns: i64,
    /// Waits for monitors.
    pub contentions: i64,
    /// Time of these waits.
    pub contention_ns: i64,
}

/// .NET facts of all processes that have any, by pause, then exceptions.
pub fn clr(db: &Database) -> Vec<ClrProcess> {
    let mut all: BTreeMap<i64, ClrProcess> = BTreeMap::new();
    for row in &db.read_or_empty::<ClrGcRow>() {
        let Some(upid) = row.upid() else { continue };
        let p = all.entry(upid).or_default();
        let generation = row.generation().clamp(0, 2) as usize;
        if let Some(n) = p.gc_by_generation.get_mut(generation) {
            *n += 1;
        }
        let pause = row.pause_ns();
        add(&mut p.gc_pause_ns, pause);
        p.gc_longest_pause_ns = p.gc_longest_pause_ns.max(pause);
        p.gc_peak_heap_bytes = p.gc_peak_heap_bytes.max(row.heap_bytes().unwrap_or(0));
        p.gc_induced += i64::from(row.reason().starts_with("induced"));
    }
    let mut types: HashMap<i64, BTreeMap<String, i64>> = HashMap::default();
    for row in &db.read_or_empty::<ClrExceptionRow>() {
        let Some(upid) = row.upid() else { continue };
        all.entry(upid).or_default().exceptions += 1;
        let kind = row.exception_type().unwrap_or("[unknown]").to_owned();
        *types.entry(upid).or_default().entry(kind).or_default() += 1;
    }
    for row in &db.read_or_empty::<ClrJitRow>() {
        let Some(upid) = row.upid() else { continue };
        let p = all.entry(upid).or_default();
        p.jit_methods += 1;
        add(&mut p.jit_ns, row.dur_ns());
    }
    for row in &db.read_or_empty::<ClrContentionRow>() {
        let Some(upid) = row.upid() else { continue };
        let p = all.entry(upid).or_default();
        p.contentions += 1;
        add(&mut p.contention_ns, row.dur_ns().unwrap_or(0));
    }
    let names = process_names(db);
    let mut out: Vec<ClrProcess> = all
        .into_iter()
        .map(|(upid, mut p)| {
            p.upid = upid;
            if let Some((name, pid)) = usize::try_from(upid).ok().and_then(|u| names.get(u)) {
                p.name = name.clone();
                p.pid = *pid;
            }
            p.exception_types = types.remove(&upid).unwrap_or_default().into_iter().collect();
            p.exception_types.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            p
        })
        .collect();
    out.sort_by_key(|p| (-p.gc_pause_ns, -p.exceptions, p.upid));
    out
}
