//! How often each kind of event came, when most of it, and how much of it tells of errors.
//!
//! # How it is computed
//! Records count for the provider and name of their event; kinds that share both (versions, levels, other fields) are one row.
//! `per_second` divides by the time from the first to the last event of the trace, whatever their kind. Peaks are counted in whole
//! seconds since the start of the trace, so `peak` is the largest `count(*)` of table `event` by `ts_ns / 1000000000`. Errors and
//! warnings are told by the level in each record's header: 1 (critical) and 2 (error), 3 (warning), as winmeta.xml defines them.
//!
//! # What fools it
//! Providers choose levels as they like: an error may be written as information, and the other way round. Kernel events and WPP
//! messages have no level in their headers. Lost events are not counted. In a recording shorter than a second, and in its first and last
//! second, peaks are those of a part of a second.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_decode::EventKey;
use etwhy_decode::kernel::KernelLayouts;
use etwhy_etl::abi::guids::WRITTEN_BY_MERGE;
use etwhy_table::{Sym, TableBuilder, define_table};
use std::collections::BTreeMap;
use std::sync::Arc;

define_table! {
    /// Rates of all kinds of events, with peaks, errors and warnings.
    pub table EVENT_RATE: EventRateRow = "event_rate" {
        version: 1, evidence: Verified("an independent reader's counts for every trace of the corpus"),
        /// Provider.
        provider: Sym [None, Name],
        /// Name of the event.
        name: Sym [None, Name],
        /// Kinds of this name (table `event_type`).
        event_types: i64 [Count, Count],
        /// Events.
        count: i64 [Count, Count],
        /// Share of all events.
        share_percent: Option<f64> [Percent, Other],
        /// Events per second of the recording; none if that has no length.
        per_second: Option<f64> [None, Other],
        /// Most events in one second.
        peak: i64 [Count, Other],
        /// Begin of that second, the first one if there are several.
        peak_ns: i64 [Ns, Time],
        /// First one.
        first_ns: i64 [Ns, Time],
        /// Last one.
        last_ns: i64 [Ns, Time],
        /// Those of level 1 or 2 (critical, error).
        errors: i64 [Count, Count],
        /// Those of level 3 (warning).
        warnings: i64 [Count, Count],
        /// Written when a session starts or ends or traces are merged: they tell what there was, not what happened.
        rundown: bool [None, Flag],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&EVENT_RATE],
    selects: &[Select::new(What::Any, 0)],
    stacks: false,
    on_demand: true,
    new: |memory| Box::new(Rates { rows: TableBuilder::new(memory), kinds: Vec::new() }),
};

const SECOND_NS: i64 = 1_000_000_000;
/// Levels of winmeta.xml. Level 0 is "always", of no severity.
const CRITICAL: u8 = 1;
const ERROR: u8 = 2;
const WARNING: u8 = 3;

/// Groups of the kernel that tell of the session and of the machine.
const SESSION: [u8; 2] = [0x00, 0x0B];
/// Groups of processes, threads and images; types of what there was when the session started (3) and ended (4).
const OF_WHO: [u8; 3] = [0x03, 0x05, 0x14];
const DC_START: u8 = 3;
const DC_END: u8 = 4;
/// Microsoft-Windows-DotNETRuntimeRundown.
const CLR_RUNDOWN: Guid = Guid::from_text("a669021c-c450-4609-a035-5af59af4df18");

fn is_rundown(key: &EventKey) -> bool {
    let is_dc = |ty: u8| matches!(ty, DC_START | DC_END);
    match key {
        EventKey::Kernel { group, ty, .. } => {
            SESSION.contains(group) || (OF_WHO.contains(group) && is_dc(*ty))
        }
        // Old kernels write records of the same classes by their GUIDs.
        EventKey::Classic { guid, opcode, .. } => {
            let of_who = |group: &u8| KernelLayouts::builtin().group_guid(*group) == Some(*guid);
            WRITTEN_BY_MERGE.contains(guid) || (is_dc(*opcode) && OF_WHO.iter().any(of_who))
        }
        EventKey::Event { provider, .. } => *provider == CLR_RUNDOWN,
        _ => false,
    }
}

struct Rates {
    rows: TableBuilder<EventRateRow>,
    /// By number of the kind.
    kinds: Vec<Seen>,
}

/// What was seen of one kind.
#[derive(Clone, Default)]
struct Seen {
    count: i64,
    first: i64,
    last: i64,
    /// Seconds with events, in order, and how many each has. Names are known at the end, and peaks of several kinds cannot be had from
    /// peaks of each.
    seconds: Vec<(i64, u32)>,
    errors: i64,
    warnings: i64,
}

impl Seen {
    fn add(&mut self, ns: i64, level: u8) {
        let second = ns.div_euclid(SECOND_NS);
        if self.count == 0 {
            self.first = ns;
        }
        match self.seconds.last_mut().filter(|(last, _)| *last == second) {
            Some((_, n)) => *n = n.saturating_add(1),
            None => self.seconds.push((second, 1)),
        }
        self.count += 1;
        self.last = ns;
        self.errors += i64::from(matches!(level, CRITICAL | ERROR));
        self.warnings += i64::from(level == WARNING);
    }

    fn merge(&mut self, other: Seen) {
        if self.count == 0 {
            *self = other;
            return;
        }
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.seconds.extend(other.seconds);
        self.errors += other.errors;
        self.warnings += other.warnings;
    }

    /// Most events in one second, and the first second that has so many.
    fn peak(&mut self) -> (i64, i64) {
        self.seconds.sort_unstable();
        let mut best = (0, 0);
        for of_second in self.seconds.chunk_by(|a, b| a.0 == b.0) {
            let n = of_second.iter().map(|(_, n)| i64::from(*n)).sum();
            if n > best.0 {
                best = (n, of_second.first().map_or(0, |(second, _)| *second));
            }
        }
        best
    }
}

impl Analysis for Rates {
    #[inline]
    fn event(&mut self, event: &Event<'_>, _: &mut Context<'_>) {
        let index = event.type_index as usize;
        if self.kinds.len() <= index {
            self.kinds.resize(index + 1, Seen::default());
        }
        if let Some(seen) = self.kinds.get_mut(index) {
            seen.add(event.ns, event.record.level());
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let all: i64 = self.kinds.iter().map(|seen| seen.count).sum();
        let seconds = end.span_ns.1.saturating_sub(end.span_ns.0) as f64 / 1e9;
        /// Provider, name, and whether it comes from a rundown.
        type Named = (Arc<str>, Arc<str>, bool);
        let mut named: BTreeMap<Named, (i64, Seen)> = BTreeMap::new();
        for (index, seen) in std::mem::take(&mut self.kinds).into_iter().enumerate() {
            let index = index as u32;
            let known = end.types.get(index).zip(end.types.describe(index, end.decoder));
            let Some((ty, info)) = known.filter(|_| seen.count > 0) else { continue };
            let (kinds, sum) = named.entry((info.provider, info.name, is_rundown(&ty.key))).or_default();
            *kinds += 1;
            sum.merge(seen);
        }
        for ((provider, name, rundown), (event_types, mut seen)) in named {
            let (peak, second) = seen.peak();
            self.rows.push(EventRateRow {
                provider: end.strings.intern(&provider),
                name: end.strings.intern(&name),
                event_types,
                count: seen.count,
                share_percent: (all > 0).then(|| seen.count as f64 * 100.0 / all as f64),
                per_second: (seconds > 0.0).then(|| seen.count as f64 / seconds),
                peak,
                peak_ns: second.saturating_mul(SECOND_NS),
                first_ns: seen.first,
                last_ns: seen.last,
                errors: seen.errors,
                warnings: seen.warnings,
                rundown,
            });
        }
        Ok(vec![self.rows.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_fullest_seconds_is_the_peak() {
        let mut seen = Seen::default();
        let at = |tenths: i64| tenths * SECOND_NS / 10;
        for (tenths, level) in [(-1, 0), (0, 4), (9, 2), (10, 1), (35, 3), (36, 5), (39, 2), (40, 0), (59, 3)]
        {
            seen.add(at(tenths), level);
        }
        assert_eq!((seen.count, seen.first, seen.last), (9, at(-1), at(59)));
        // Seconds -1: 1, 0: 2, 1: 1, 3: 3, 4: 1, 5: 1.
        assert_eq!(seen.peak(), (3, 3));
        assert_eq!((seen.errors, seen.warnings), (3, 2));
        // Another kind of the same name: its second 5 has two, which makes three of both.
        let mut other = Seen::default();
        [51, 52].into_iter().for_each(|tenths| other.add(at(tenths), 0));
        seen.merge(other.clone());
        assert_eq!(
            (seen.count, seen.last, seen.peak()),
            (11, at(59), (3, 3)),
            "an equal one later is not the first"
        );
        seen.merge(other);
        assert_eq!(seen.peak(), (5, 5));
    }
}
