//! The pass: records in time order, through the trackers, to the analyses, into tables.

mod base;
mod identity;
mod late_events;

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish, Finisher};
use crate::anomalies::{EVENT_TYPES_UNDECODED, NAMED_BY_TABLES};
use crate::catalog;
use crate::event::{Context, Event, Select, What};
use crate::fit::{Fit, Fitting, Verdict};
use crate::inputs::Inputs;
use crate::model::Model;
use crate::resolve::Resolved;
use crate::symbols::Symbols;
use crate::trackers::{Needed, TRACKERS};
pub use base::{Base, Wanted};
use etwhy_base::parallel;
use etwhy_decode::kernel::{Slot, Slots};
use etwhy_decode::schema::{DecodedBy, EventSchema};
use etwhy_decode::{Decoder, EventKey, EventTypes};
use etwhy_etl::read::{EtlFile, Timeline, WalkStats};
use etwhy_etl::{Ledger, Record};
use etwhy_table::{Database, Memory, Role, Strings};
use identity::Identity;
pub use late_events::LateEvents;
use late_events::Span;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// How far a pass has come.
pub trait Progress {
    /// `done` of `total` bytes of records are read.
    fn bytes(&mut self, done: u64, total: u64);
}

impl Progress for () {
    fn bytes(&mut self, _: u64, _: u64) {}
}

/// What to do and how.
pub struct Options {
    /// Names of the tables wanted; `None` for all that are not on demand.
    pub tables: Option<BTreeSet<String>>,
    /// Threads to use, at least 1. Results do not depend on it.
    pub threads: usize,
    /// Where columns go.
    pub memory: Memory,
    /// Where symbols are looked for.
    pub symbols: Symbols,
    /// Schemas that the user gave.
    pub decoder: Decoder,
    /// What is given for single analyses.
    pub inputs: Inputs,
}

/// What a pass gives.
pub struct Output {
    /// The tables.
    pub db: Database,
    /// All anomalies, also as table `ledger`.
    pub ledger: Ledger,
    /// Those of them that were counted for some tables only, with the names of these tables: a pass without them
    /// would not have them.
    pub ledgers: Vec<(Vec<&'static str>, Ledger)>,
    /// What the walk saw.
    pub stats: WalkStats,
    /// The rows of table `event`, if it is wanted and its rows were not to be kept.
    pub events: Option<LateEvents>,
}

/// A handler of an event type: where the event goes, and which fields it gets quickly.
#[derive(Clone)]
struct Binding {
    tracker: bool,
    /// It wants every event, whatever its payload says.
    any: bool,
    handler: u16,
    tag: u8,
    /// Slots for 4- and 8-byte pointers.
    slots: [Vec<Option<Slot>>; 2],
}

/// What is known of an event type.
#[derive(Clone, Default)]
struct TypeState {
    resolved: bool,
    schema: Option<Arc<EventSchema>>,
    /// Provider and name as in the table `event_type`.
    names: Option<(Arc<str>, Arc<str>)>,
    /// The thread in the header wrote the record, in the process that stands there too.
    own_header: bool,
    /// It tells of a process, a thread or an image.
    identity: bool,
    fit: Fit,
    bindings: Vec<Binding>,
    schemas_seen: u64,
}

/// Runs the analyses whose tables are wanted over `files`.
///
/// # Errors
/// Only those of the table builder; damage of the trace is counted in the ledger.
pub fn analyse(
    files: &[EtlFile],
    options: Options,
    progress: &mut dyn Progress,
    ledger: Ledger,
) -> etwhy_table::Result<Output> {
    analyse_part(files, options, Part::default(), progress, ledger)
}

/// As [`analyse`], but analyses see only the events of a part. What trackers learnt before it is known in it; names that come behind it
/// are not lost either.
///
/// # Errors
/// Those of [`analyse`].
pub fn analyse_part(
    files: &[EtlFile],
    mut options: Options,
    part: Part,
    progress: &mut dyn Progress,
    mut ledger: Ledger,
) -> etwhy_table::Result<Output> {
    let timeline = Timeline::read(files, &mut ledger);
    let mut base = Base::new(options.decoder);
    options.decoder = Decoder::new(&Default::default(), &mut Ledger::new());
    if let Some(from_ns) = part.from_ns {
        base.advance(files, &timeline, &mut options.symbols, options.threads, timeline.ns_to_key(from_ns));
    }
    let wanted = Wanted {
        tables: options.tables.as_ref(),
        threads: options.threads,
        memory: &options.memory,
        inputs: &options.inputs,
        to_ns: part.to_ns,
        end: i64::MAX,
    };
    base.analyse(files, &timeline, &wanted, &mut options.symbols, progress, ledger)
}

/// A part of a trace, in nanoseconds since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Begin; `None`: that of the trace.
    pub from_ns: Option<i64>,
    /// End, exclusive; `None`: that of the trace.
    pub to_ns: Option<i64>,
}

struct Pass<'p> {
    analyses: Vec<Box<dyn Analysis>>,
    /// What each analysis counts.
    ledgers: Vec<Ledger>,
    /// What is counted because of stacks.
    stack_ledger: Ledger,
    needed: Needed,
    chosen: Vec<&'static AnalysisSpec>,
    model: Model,
    strings: Strings,
    timeline: &'p Timeline,
    ledger: Ledger,
    types: EventTypes,
    states: Vec<TypeState>,
    decoder: Decoder,
    symbols: &'p mut Symbols,
    inputs: &'p Inputs,
    fitting: Fitting,
    schemas_seen: u64,
    observe: bool,
    span: (i64, i64),
    /// Before the part that analyses see: only trackers whose past matters are at work.
    before: bool,
    /// Behind that part.
    behind: bool,
    /// What records analyses see.
    shown: Span,
}

impl Pass<'_> {
    #[inline]
    fn record(&mut self, record: &Record<'_>, key: i64) {
        let ns = self.timeline.key_to_ns(key);
        if !self.behind {
            self.span = (self.span.0.min(ns), self.span.1.max(ns));
        }
        if self.observe && Decoder::wants(record) {
            self.decoder.observe(record, &mut self.ledger);
            self.schemas_seen += 1;
        }
        // What comes behind the part gives names, and is no event of it.
        let type_index = if self.behind { self.types.find(record) } else { self.types.index(record) };
        if self.states.len() <= type_index as usize {
            self.states.resize_with(type_index as usize + 1, TypeState::default);
        }
        let Some(state) = self.states.get_mut(type_index as usize) else { return };
        if !state.resolved
            || (state.schema.is_none()
                && !state.bindings.is_empty()
                && state.schemas_seen != self.schemas_seen)
        {
            let Some(ty) = self.types.get(type_index) else { return };
            state.schemas_seen = self.schemas_seen;
            resolve_type(state, record, &self.chosen, self.needed, &mut self.decoder, &ty.key, self.before);
            state.names = self.types.describe(type_index, &self.decoder).map(|i| (i.provider, i.name));
        }
        if state.own_header {
            self.model.written_by(record, ns);
        }
        self.model.named = Default::default();
        let verdict = match state.schema.as_deref() {
            Some(schema) if schema.decoded_by != DecodedBy::None => {
                self.fitting.verdict(&mut state.fit, record, schema, state.identity, &mut self.ledger)
            }
            _ => Verdict::Pointers(record.pointer_size()),
        };
        let pointer_size = match verdict {
            Verdict::Pointers(size) => size,
            Verdict::Never => record.pointer_size(),
        };
        let width = usize::from(pointer_size == 8);
        let payload = if state.bindings.is_empty() { &[][..] } else { record.payload() };
        let mut event = Event {
            record,
            payload,
            ns,
            tag: 0,
            type_index,
            schema: state.schema.as_deref(),
            names: state.names.as_ref().map_or(("", ""), |(provider, name)| (provider, name)),
            slots: &[],
            own_header: state.own_header,
            pointer_size,
        };
        let behind = self.behind;
        let bindings = state.bindings.iter().filter(|binding| binding.tracker || !behind);
        for binding in bindings.filter(|binding| binding.any || verdict != Verdict::Never) {
            event.tag = binding.tag;
            event.slots = binding.slots.get(width).map_or(&[][..], Vec::as_slice);
            let handler = usize::from(binding.handler);
            let own = match binding.tracker {
                true if TRACKERS.get(handler).is_some_and(|t| t.needed > Needed::Always) => {
                    Some(&mut self.stack_ledger)
                }
                true => None,
                false => self.ledgers.get_mut(handler),
            };
            let mut cx = Context {
                model: &mut self.model,
                strings: &mut self.strings,
                timeline: self.timeline,
                ledger: own.unwrap_or(&mut self.ledger),
                inputs: self.inputs,
                symbols: self.symbols,
            };
            if binding.tracker {
                cx.model.seal(false);
                if let Some(tracker) = TRACKERS.get(handler) {
                    (tracker.event)(&event, &mut cx);
                }
            } else if let Some(analysis) = self.analyses.get_mut(handler) {
                cx.model.seal(true);
                analysis.event(&event, &mut cx);
            }
        }
        self.model.seal(false);
    }

    fn finish(mut self, files: &[EtlFile], stats: WalkStats, threads: usize) -> etwhy_table::Result<Output> {
        let by_tables = self.model.processes.made_by_tables + self.model.threads.made_by_tables;
        self.ledger.count(&NAMED_BY_TABLES, by_tables);
        let finished = if self.needed == Needed::ForStacks {
            self.model.stacks.finish(&self.model.threads, &self.model.images, &mut self.stack_ledger)
        } else {
            Default::default()
        };
        let begin = Instant::now();
        let resolved = Resolved::new(
            &self.model,
            finished,
            self.symbols,
            &mut self.strings,
            &mut self.ledger,
            stats.bytes,
        );
        tracing::info!("stacks and symbols: {:.3} s", begin.elapsed().as_secs_f64());
        let undecoded = (0..self.types.len() as u32)
            .filter(|&t| {
                self.types.describe(t, &self.decoder).is_some_and(|i| i.decoded_by == DecodedBy::None)
            })
            .count();
        self.ledger.count(&EVENT_TYPES_UNDECODED, undecoded as u64);
        let unfit: Vec<bool> = self.states.iter().map(|state| state.fit.unfit).collect();
        let span_ns = if self.span.0 > self.span.1 { (0, 0) } else { self.span };
        let mut filled = Vec::new();
        let mut order: Vec<_> = self.chosen.into_iter().zip(self.analyses).zip(self.ledgers).collect();
        order.sort_by_key(|((_, analysis), _)| analysis.reads_counts());
        let names = |spec: &'static AnalysisSpec| {
            // Whoever makes the rows later has the anomalies that it would have counted.
            let spec = if std::ptr::eq(spec, &catalog::event::LATER) { &catalog::event::SPEC } else { spec };
            spec.tables.iter().map(|t| t.name.as_ref())
        };
        self.ledger.merge(&self.stack_ledger);
        let with_stacks = catalog::ALL.iter().copied().filter(|spec| spec.stacks);
        let mut ledgers: Vec<(Vec<&'static str>, Ledger)> =
            vec![(with_stacks.flat_map(names).collect(), self.stack_ledger)];
        for ((spec, analysis), mut ledger) in order {
            let mut end = Finish {
                model: &self.model,
                strings: &mut self.strings,
                timeline: self.timeline,
                ledger: &mut ledger,
                counted: &self.ledger,
                files,
                types: &self.types,
                decoder: &self.decoder,
                resolved: &resolved,
                stats: &stats,
                span_ns,
                inputs: self.inputs,
                unfit: &unfit,
            };
            let begin = Instant::now();
            filled.extend(analysis.finish(&mut end)?);
            let name = spec.tables.first().map_or("", |table| table.name.as_ref());
            tracing::debug!("rows of {name} finished: {:.3} s", begin.elapsed().as_secs_f64());
            self.ledger.merge(&ledger);
            ledgers.push((names(spec).collect(), ledger));
        }
        ledgers.retain(|(_, ledger)| !ledger.is_empty());
        let texts = self
            .strings
            .freeze()
            .map_err(|source| etwhy_table::TableError::Arrow { table: "texts".into(), source })?;
        let mut db = Database::new();
        let rows = filled.into_iter().filter_map(|Filled(rows)| rows).collect();
        for table in parallel::map(threads, rows, || (), |(), finish: Finisher| finish(&texts)) {
            db.insert(table?);
        }
        let owners = db.remove(&catalog::event::OWNER.name);
        let events = owners.map(|owners| LateEvents::new(self.types, self.states, self.shown, owners, texts));
        Ok(Output { db, ledger: self.ledger, ledgers, stats, events })
    }
}

fn resolve_type(
    state: &mut TypeState,
    record: &Record<'_>,
    chosen: &[&'static AnalysisSpec],
    needed: Needed,
    decoder: &mut Decoder,
    key: &EventKey,
    before: bool,
) {
    let first = !state.resolved;
    state.resolved = true;
    state.schema = decoder.schema(record);
    if !first {
        return;
    }
    let identity = Identity::from_record(record, key);
    state.own_header = identity.has_own_header();
    state.identity = identity.is_identity();
    let slots = state.schema.as_deref().map(|s| [Slots::for_schema(s, 4), Slots::for_schema(s, 8)]);
    let mut bind = |tracker: bool, handler: usize, selects: &[Select]| {
        for select in selects.iter().filter(|s| identity.matches(s.what)) {
            let find = |slots: &Slots| {
                let field = |names: &&str| names.split('|').find_map(|name| slots.slot(name));
                select.fields.iter().map(field).collect::<Vec<_>>()
            };
            state.bindings.push(Binding {
                tracker,
                any: select.what == What::Any,
                handler: handler as u16,
                tag: select.tag,
                slots: slots.as_ref().map_or([Vec::new(), Vec::new()], |s| [find(&s[0]), find(&s[1])]),
            });
        }
    };
    for (number, tracker) in TRACKERS.iter().enumerate() {
        if tracker.needed <= needed && (tracker.before || !before) {
            bind(true, number, tracker.selects);
        }
    }
    for (number, spec) in chosen.iter().enumerate() {
        bind(false, number, spec.selects);
    }
}

/// What the chosen analyses need to be known.
fn needed(chosen: &[&'static AnalysisSpec]) -> Needed {
    let mut columns =
        chosen.iter().flat_map(|spec| spec.tables.iter()).flat_map(|table| table.columns.iter());
    if chosen.iter().any(|spec| spec.stacks) {
        Needed::ForStacks
    } else if columns.any(|column| column.role == Role::Frame) {
        Needed::ForFrames
    } else {
        Needed::Always
    }
}
