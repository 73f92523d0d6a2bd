//! Which of a path's parties it leads to. Filters are taken off the programs about whose calls Windows had asked them, and stand for themselves.

use super::evidence::{Evidence, Seen};
use super::share::{Asked, Party};
use super::{Cause, Path, Piece, largest};
use crate::operators::add;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Whom a path leads to, and what it did there.
pub(super) struct Root<'p, 'd> {
    pub party: &'p Party<'d>,
    pub filter: Option<Filter<'p, 'd>>,
    /// Filters that have most of the party's time only together.
    pub together: &'p [Asked<'d>],
    pub ns: i64,
    /// What it mostly did, and for how long in all its threads.
    pub cause: Cause<'d>,
    pub cause_ns: i64,
    /// The thread that did most of that, and for how long.
    pub utid: i64,
    pub utid_ns: i64,
    pub seen: Seen,
}

/// A filter with what it has of all parties.
pub(super) struct Filter<'p, 'd> {
    pub module: u32,
    ns: i64,
    causes: BTreeMap<Cause<'d>, i64>,
    /// The parties in whose calls it was, the one with most first.
    pub parties: Vec<&'p Party<'d>>,
}

impl<'d> Filter<'_, 'd> {
    /// Whether this piece is its own, as far as pieces tell.
    pub fn has(&self, piece: &Piece<'d>, cause: Cause<'d>, evidence: &Evidence<'_>) -> bool {
        let ran = cause == Cause::Work && matches!(piece.cause, Cause::Work | Cause::Processor);
        self.parties.iter().any(|party| party.whom.0 == piece.upid)
            && (ran || piece.cause == cause && evidence.asked(piece.stack) == Some(self.module))
    }
}

/// The party, or the filter, with most of a path.
pub(super) fn choose<'p, 'd>(
    path: &Path<'d>,
    parties: &'p [(&'p Party<'d>, Vec<Asked<'d>>)],
    evidence: &Evidence<'_>,
) -> Option<Root<'p, 'd>> {
    let owns = parties.iter().map(|(party, asked)| own(party, asked, evidence));
    let own = owns.max_by_key(|root| (root.ns, root.party.sum_ns, Reverse(root.party.whom)))?;
    let filter = filters(parties).into_iter().max_by_key(|filter| (filter.ns, Reverse(filter.module)));
    let Some(filter) = filter.filter(|filter| filter.ns >= own.ns) else { return Some(own) };
    let (cause, cause_ns) = largest(filter.causes.iter().map(|(cause, ns)| (*cause, *ns)))?;
    let pieces = path.pieces.iter().filter(|piece| filter.has(piece, cause, evidence));
    let (utid, utid_ns) = largest(pieces.map(|piece| (piece.utid, piece.length()))).unwrap_or((-1, 0));
    let party = *filter.parties.first()?;
    let (ns, seen) = (filter.ns, Seen::default());
    Some(Root { party, filter: Some(filter), together: &[], ns, cause, cause_ns, utid, utid_ns, seen })
}

/// A party without the filters that were asked about its calls, unless only several together have half of it.
fn own<'p, 'd>(party: &'p Party<'d>, asked: &'p [Asked<'d>], evidence: &Evidence<'_>) -> Root<'p, 'd> {
    let half = |ns: i64| ns.saturating_mul(2) >= party.sum_ns;
    let all = asked.iter().fold(0i64, |all, asked| all.saturating_add(asked.ns));
    let together = half(all) && !asked.first().is_some_and(|first| half(first.ns));
    let (together, taken) = if together { (asked, &[][..]) } else { (&[][..], asked) };
    let of = |cause: Cause<'d>| {
        taken
            .iter()
            .filter_map(|asked| asked.causes.get(&cause))
            .fold(0i64, |all, ns| all.saturating_add(*ns))
    };
    // A filter that had the processor ran: what is more than the party's runs is of that.
    let ran = party.causes.iter().find(|of| of.cause == Cause::Work).map_or(0, |of| of.ns);
    let rest = party.causes.iter().map(|part| {
        let filters = match part.cause {
            Cause::Work => of(Cause::Work).min(ran),
            Cause::Processor => of(Cause::Work).saturating_sub(ran).max(0),
            cause => of(cause),
        };
        (part, part.ns.saturating_sub(filters).max(0))
    });
    let main = rest.max_by_key(|(part, ns)| (*ns, Reverse(part.cause)));
    let ns = if together.is_empty() { party.sum_ns.saturating_sub(all) } else { party.sum_ns };
    let (cause, cause_ns) = main.as_ref().map_or((Cause::Work, 0), |(part, ns)| (part.cause, *ns));
    let (utid, utid_ns) = main.as_ref().map_or((-1, 0), |(part, ns)| (part.utid, part.utid_ns.min(*ns)));
    let seen = main.map(|(part, _)| evidence.seen_at(part.request)).unwrap_or_default();
    Root { party, filter: None, together, ns, cause, cause_ns, utid, utid_ns, seen }
}

/// What each filter has in all parties.
fn filters<'p, 'd>(parties: &'p [(&'p Party<'d>, Vec<Asked<'d>>)]) -> Vec<Filter<'p, 'd>> {
    let mut all: BTreeMap<u32, Vec<(&'p Asked<'d>, &'p Party<'d>)>> = BTreeMap::new();
    for (party, asked) in parties {
        asked.iter().for_each(|asked| all.entry(asked.module).or_default().push((asked, *party)));
    }
    let filter = |(module, mut of): (u32, Vec<(&'p Asked<'d>, &'p Party<'d>)>)| {
        of.sort_by_key(|(asked, _)| Reverse(asked.ns));
        let (mut ns, mut causes) = (0, BTreeMap::new());
        for (cause, part) in of.iter().flat_map(|(asked, _)| &asked.causes) {
            add(&mut ns, *part);
            add(causes.entry(*cause).or_default(), *part);
        }
        Filter { module, ns, causes, parties: of.into_iter().map(|(_, party)| party).collect() }
    };
    all.into_iter().map(filter).collect()
}

/// Filters that are named where none has most of the time.
const MOST_NAMED: usize = 4;

impl Root<'_, '_> {
    /// What it did, in words.
    pub fn did<'n>(&self, name: &dyn Fn(i64) -> &'n str, module: &dyn Fn(u32) -> Option<String>) -> String {
        if let Some(filter) = &self.filter {
            let mut names: Vec<&str> = filter.parties.iter().map(|party| name(party.whom.0)).collect();
            names.dedup();
            let threads = if names.len() == 1 { "a thread" } else { "threads" };
            return format!("{} as a filter in {threads} of {}", verb(self.cause), names.join(", "));
        }
        if !self.together.is_empty() {
            let names = self.together.iter().filter_map(|asked| module(asked.module)).take(MOST_NAMED);
            return format!("was mostly in the filters {}", names.collect::<Vec<_>>().join(", "));
        }
        format!("{}{}", how_far(self.cause_ns, self.ns), did(self.cause, &self.seen))
    }
}

/// What a filter did.
fn verb(cause: Cause<'_>) -> &'static str {
    match cause {
        Cause::Work => "worked",
        Cause::Wait("call") => "waited until a timeout, for an answer that did not come,",
        _ => "slept",
    }
}

/// Whether the root did it all the time.
fn how_far(part_ns: i64, all_ns: i64) -> &'static str {
    match (part_ns as f64, all_ns as f64) {
        (part, all) if part >= 0.9 * all => "",
        (part, all) if part >= 0.5 * all => "mostly ",
        _ => "among other things ",
    }
}

/// What the root did, in words.
fn did(cause: Cause<'_>, seen: &Seen) -> String {
    let at = |verb: &str| match (&seen.function, &seen.callee) {
        (Some(function), Some(callee)) => format!("{verb} in {function}, which had called {callee}"),
        (Some(function), None) => format!("{verb} in {function}"),
        (None, Some(callee)) => format!("{verb} in {callee}"),
        (None, None) => verb.to_owned(),
    };
    let path = |verb: &str| match &seen.path {
        Some(path) => format!("{verb} {path}"),
        None => at("waited for I/O"),
    };
    match cause {
        Cause::Work => at("worked"),
        Cause::Processor => at("had the processor"),
        Cause::Disk => match &seen.path {
            Some(path) => format!("kept the disk busy with transfers of {path}"),
            None => "kept the disk busy".to_owned(),
        },
        Cause::Interrupt(_) => "kept the processor with its DPCs and ISRs".to_owned(),
        Cause::Wait("lock") => at("waited for a lock"),
        Cause::Wait("sleep") if seen.function.is_none() && seen.callee.is_none() => {
            "slept (no stack tells in whose code)".to_owned()
        }
        Cause::Wait("sleep") => at("slept"),
        Cause::Wait("call") => at("waited for an answer"),
        Cause::Wait("io") => path("waited for"),
        Cause::Wait("page_fault") => path("waited for a page of"),
        Cause::Wait("throttled") => at("was throttled"),
        Cause::Wait("suspended") => at("was suspended"),
        Cause::Wait("queue" | "condition") => at("waited for work"),
        // A wait in the kernel during a file operation of the same thread is for that.
        Cause::Wait(_) if seen.path.is_some() => path("waited for"),
        Cause::Wait(_) => at("waited"),
    }
}
