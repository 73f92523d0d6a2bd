//! What trackers know at a moment of a trace, from where a pass over what follows begins.
//!
//! A part of a trace is read in two passes: one that only trackers see, up to its beginning, and one over the part. Who follows a trace
//! keeps the first one, moves it on as the window moves, and starts the second from a copy; so both give the same rows.

use super::{Output, Pass, Progress, Span, TypeState, needed};
use crate::analysis::AnalysisSpec;
use crate::anomalies::{LOSSES_OUTSIDE_PART, PART_ENDS_EARLY};
use crate::catalog;
use crate::catalog::event::RowsLater;
use crate::event::What;
use crate::fit::Fitting;
use crate::inputs::Inputs;
use crate::model::Model;
use crate::symbols::Symbols;
use crate::trackers::Needed;
use etwhy_decode::{Decoder, EventTypes};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, Timeline, Walk};
use etwhy_table::{Memory, Strings};
use std::collections::BTreeSet;
use std::time::Instant;

/// What trackers know at a moment.
pub struct Base {
    model: Model,
    strings: Strings,
    decoder: Decoder,
    types: EventTypes,
    states: Vec<TypeState>,
    fitting: Fitting,
    schemas_seen: u64,
    /// All records before this order key were seen.
    at: i64,
}

/// What is wanted of a part, and how.
pub struct Wanted<'a> {
    /// Names of the tables wanted; `None` for all that are not on demand.
    pub tables: Option<&'a BTreeSet<String>>,
    /// Threads to use, at least 1. Results do not depend on it.
    pub threads: usize,
    /// Where columns go.
    pub memory: &'a Memory,
    /// What is given for single analyses.
    pub inputs: &'a Inputs,
    /// From here on, nanoseconds since the start of the trace, only names are learnt.
    pub to_ns: Option<i64>,
    /// Records at or behind this order key are not read.
    pub end: i64,
}

impl Base {
    /// Nothing is known yet but schemas that users gave.
    pub fn new(decoder: Decoder) -> Base {
        Base {
            model: Model::default(),
            strings: Strings::new(),
            decoder,
            types: EventTypes::new(),
            states: Vec::new(),
            fitting: Fitting::default(),
            schemas_seen: 0,
            at: i64::MIN,
        }
    }

    /// The same once more.
    pub fn copy(&self) -> Base {
        Base {
            model: self.model.fork(i64::MIN),
            strings: self.strings.clone(),
            decoder: self.decoder.clone(),
            types: self.types.clone(),
            states: self.states.clone(),
            fitting: Fitting::default(),
            ..*self
        }
    }

    /// All records before this order key were seen.
    pub fn at(&self) -> i64 {
        self.at
    }

    /// Bytes of texts, and numbers of processes, threads and files that are known: what grows while a trace is followed.
    pub fn holds(&self) -> (usize, [usize; 3]) {
        let model = &self.model;
        (
            self.strings.bytes(),
            [model.processes.all().len(), model.threads.all().len(), model.files.all().len()],
        )
    }

    /// Shows trackers the records up to the order key `to`, not including it.
    pub fn advance(
        &mut self,
        files: &[EtlFile],
        timeline: &Timeline,
        symbols: &mut Symbols,
        threads: usize,
        to: i64,
    ) {
        if to <= self.at {
            return;
        }
        let begin = Instant::now();
        let from = std::mem::replace(&mut self.at, to);
        let empty = Base::new(Decoder::new(&Default::default(), &mut Ledger::new()));
        let base = std::mem::replace(self, empty);
        let inputs = Inputs::default();
        let mut pass = Pass {
            analyses: Vec::new(),
            ledgers: Vec::new(),
            stack_ledger: Ledger::new(),
            // What the tables will be is not known yet.
            needed: Needed::ForStacks,
            chosen: Vec::new(),
            model: base.model,
            strings: base.strings,
            timeline,
            // What is wrong before the part is not counted in it.
            ledger: Ledger::new(),
            types: base.types,
            states: base.states,
            decoder: base.decoder,
            symbols,
            inputs: &inputs,
            fitting: base.fitting,
            schemas_seen: base.schemas_seen,
            observe: true,
            span: (i64::MAX, i64::MIN),
            before: true,
            behind: false,
            shown: Span { from, behind: to, end: to },
        };
        pass.model.cpus.set_gaps(files, timeline);
        let walk = Walk::new(files, timeline).part(from, to);
        walk.for_each_pipelined(threads, &mut Ledger::new(), |record, key| pass.record(record, key));
        let Pass { model, strings, types, states, decoder, fitting, schemas_seen, .. } = pass;
        *self = Base { model, strings, decoder, types, states, fitting, schemas_seen, at: to };
        tracing::debug!("before the part: {:.3} s", begin.elapsed().as_secs_f64());
    }

    /// Runs the analyses whose tables are wanted over what follows. `ledger` has what was counted before.
    ///
    /// # Errors
    /// Only those of the table builder; damage of the trace is counted in the ledger.
    pub fn analyse(
        &self,
        files: &[EtlFile],
        timeline: &Timeline,
        wanted: &Wanted<'_>,
        symbols: &mut Symbols,
        progress: &mut dyn Progress,
        mut ledger: Ledger,
    ) -> etwhy_table::Result<Output> {
        for file in files {
            ledger.merge(file.ledger());
        }
        let at = self.at;
        let from_ns = if at == i64::MIN { i64::MIN } else { timeline.key_to_ns(at) };
        let mut decoder = self.decoder.clone();
        let part = || Walk::new(files, timeline).part(at, wanted.end);
        let named = |spec: &AnalysisSpec| match wanted.tables {
            Some(names) => spec.tables.iter().any(|t| names.contains(t.name.as_ref())),
            None => !spec.on_demand,
        };
        let is_late = !wanted.inputs.all::<RowsLater>().is_empty();
        let later = |spec: &'static AnalysisSpec| match is_late && std::ptr::eq(spec, &catalog::event::SPEC) {
            true => &catalog::event::LATER,
            false => spec,
        };
        let chosen: Vec<&'static AnalysisSpec> =
            catalog::ALL.iter().copied().filter(|spec| named(spec)).map(later).collect();
        let to_key = wanted.to_ns.map_or(i64::MAX, |ns| timeline.ns_to_key(ns));
        let needs_schemas_first = chosen.iter().any(|spec| spec.selects.iter().any(|s| s.what == What::Any));
        if needs_schemas_first {
            let decoder = &mut decoder;
            part().for_each_threaded(wanted.threads, &mut Ledger::new(), |record, _| {
                if Decoder::wants(record) {
                    decoder.observe(record, &mut ledger);
                }
            });
        }
        let memory = match wanted.tables {
            Some(names) => wanted.memory.wanting(names.clone()),
            None => wanted.memory.clone(),
        };
        let memory = memory.with_threads(wanted.threads);
        let mut pass = Pass {
            analyses: chosen.iter().map(|spec| (spec.new)(&memory)).collect(),
            ledgers: vec![Ledger::new(); chosen.len()],
            stack_ledger: Ledger::new(),
            needed: needed(&chosen),
            chosen,
            model: self.model.fork(from_ns),
            strings: self.strings.clone(),
            timeline,
            ledger,
            types: EventTypes::new(),
            states: Vec::new(),
            decoder,
            symbols,
            inputs: wanted.inputs,
            fitting: Fitting::default(),
            schemas_seen: 0,
            observe: !needs_schemas_first,
            span: (i64::MAX, i64::MIN),
            before: false,
            behind: false,
            shown: Span { from: at, behind: to_key, end: wanted.end },
        };
        pass.model.cpus.set_gaps(files, timeline);
        if pass.model.cpus.lost_outside((from_ns, wanted.to_ns.unwrap_or(i64::MAX))) {
            pass.ledger.count(&LOSSES_OUTSIDE_PART, 1);
        }
        pass.model.stacks.set_threads(wanted.threads);
        let walk = part();
        walk.judge_clocks(&mut pass.ledger);
        let total: u64 = files.iter().flat_map(|f| f.buffers()).map(|b| u64::from(b.end)).sum();
        let (mut done, mut shown) = (0u64, 0u64);
        let mut walk_ledger = Ledger::new();
        let begin = Instant::now();
        let stats = walk.for_each_pipelined(wanted.threads, &mut walk_ledger, |record, key| {
            done += record.bytes.len() as u64;
            if done - shown > 16 << 20 {
                shown = done;
                progress.bytes(done, total);
            }
            pass.behind = key >= to_key;
            pass.record(record, key);
        });
        tracing::info!(
            "pass: {:.3} s, {} analyses, {total} bytes",
            begin.elapsed().as_secs_f64(),
            pass.chosen.len()
        );
        pass.ledger.merge(&walk_ledger);
        pass.ledger.count(&PART_ENDS_EARLY, u64::from(pass.behind));
        pass.finish(files, stats, wanted.threads)
    }
}
