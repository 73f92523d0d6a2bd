//! What each party has of a path, filters apart from the programs whose calls they were asked about.

use super::evidence::Evidence;
use super::{Cause, Driver, Path, Piece, Whom, largest};
use crate::fold::id;
use crate::operators::add;
use etwhy_table::{Strings, Sym, TableBuilder, define_table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

define_table! {
    /// Who had which part of a critical path, by work, sleep, the processor or the disk.
    ///
    /// Waits whose end nobody is known to owe are in no row, and neither are parties with less than a tenth of the path.
    pub table PATH_SHARE: PathShareRow = "path_share" {
        version: 1,
        /// Path (table `critical_path`).
        path_id: i32 [None, Id],
        /// Process; null for drivers.
        upid: Option<i32> [None, Process],
        /// Driver: of a filter, or whose DPCs and ISRs or work in the System process it was, `[unknown]` where no stacks tell which; null for a process.
        driver: Option<Sym> [None, Name],
        /// The driver, or the process with its services.
        name: Sym [None, Name],
        /// Its part.
        part_ns: i64 [Ns, Duration],
        /// What of it threads ran.
        run_ns: i64 [Ns, Duration],
        /// Part of the time range, 0 to 1.
        share: f64 [None, Other],
    }
}

/// Parties of a path that are looked at.
const MOST: usize = 8;

/// A party with what drivers may have of its part.
pub(super) struct Party<'d> {
    pub whom: Whom<'d>,
    /// All that is charged to it.
    pub sum_ns: i64,
    part_ns: i64,
    run_ns: i64,
    pub causes: Vec<OfCause<'d>>,
    pub calls: Calls<'d>,
}

/// What a party has by one cause, and the thread with most of it.
pub(super) struct OfCause<'d> {
    pub cause: Cause<'d>,
    pub ns: i64,
    pub utid: i64,
    pub utid_ns: i64,
    /// The question what that thread did there.
    pub request: usize,
}

/// The parties that may be named, the largest first.
pub(super) fn parties<'d>(
    path: &Path<'d>,
    whom: &dyn Fn(&Piece<'d>) -> Whom<'d>,
    is_system: &dyn Fn(i64) -> bool,
    evidence: &mut Evidence<'_>,
) -> Vec<Party<'d>> {
    let mut all: BTreeMap<Whom<'d>, Vec<&Piece<'d>>> = BTreeMap::new();
    path.pieces.iter().for_each(|piece| all.entry(whom(piece)).or_default().push(piece));
    let mut all: Vec<_> = all.into_iter().map(|(whom, pieces)| (sum(&pieces), whom, pieces)).collect();
    all.sort_by_key(|(ns, whom, _)| (Reverse(*ns), *whom));
    let large = |ns: i64| ns.saturating_mul(10) >= path.dur_ns;
    let first = all.into_iter().enumerate().filter(|(at, (ns, ..))| *at == 0 || large(*ns)).take(MOST);
    first
        .map(|(_, (sum_ns, whom, pieces))| {
            let (mut part_ns, mut run_ns) = (0, 0);
            let mut by_cause: BTreeMap<Cause<'d>, Vec<&Piece<'d>>> = BTreeMap::new();
            pieces.iter().for_each(|piece| by_cause.entry(piece.cause).or_default().push(piece));
            let mut causes = Vec::new();
            for (cause, mut pieces) in by_cause {
                let ns = sum(&pieces);
                if is_proof(&cause) {
                    add(&mut part_ns, ns);
                }
                if cause == Cause::Work {
                    run_ns = ns;
                }
                let Some((utid, utid_ns)) = largest(pieces.iter().map(|p| (p.utid, p.length()))) else {
                    continue;
                };
                pieces.retain(|piece| piece.utid == utid);
                causes.push(OfCause { cause, ns, utid, utid_ns, request: evidence.of(cause, utid, &pieces) });
            }
            // System's threads are asked about nobody's calls.
            let calls = Calls::of(if is_system(whom.0) { &[] } else { &pieces }, evidence);
            Party { whom, sum_ns, part_ns, run_ns, causes, calls }
        })
        .collect()
}

fn sum(pieces: &[&Piece<'_>]) -> i64 {
    pieces.iter().map(|piece| piece.length()).fold(0, i64::saturating_add)
}

/// Any other wait is owed by somebody else, and the path would have gone on if it were known by whom.
fn is_proof(cause: &Cause<'_>) -> bool {
    !matches!(cause, Cause::Wait(class) if !["sleep", "throttled", "suspended"].contains(class))
}

impl Party<'_> {
    /// The driver that has half of its time or more, if stacks do not tell whether the program itself called it.
    pub fn unasked(&self, evidence: &Evidence<'_>) -> Option<u32> {
        let mut sums = self.calls.unasked.clone();
        for (module, ns) in evidence.seen_at(self.calls.request).unasked {
            add(sums.entry(module).or_default(), ns);
        }
        let all = sums.values().fold(0i64, |all, ns| all.saturating_add(*ns));
        let most = sums.iter().max_by_key(|(module, ns)| (**ns, Reverse(**module)))?;
        (all.saturating_mul(2) >= self.sum_ns).then_some(*most.0)
    }

    /// Half of its time or more are sleeps without a stack: those of the program, or of a filter in its calls.
    pub fn sleeps_unseen(&self) -> bool {
        self.calls.unseen_ns > 0 && self.calls.unseen_ns.saturating_mul(2) >= self.sum_ns
    }
}

/// Writes the rows of a path. `driver` names that of a party, if it is one, and `module` one that was asked.
pub(super) fn write<'d>(
    rows: &mut TableBuilder<PathShareRow>,
    strings: &mut Strings,
    path: &Path<'d>,
    parties: &[(&Party<'d>, Vec<Asked<'d>>)],
    driver: &dyn Fn(&Party<'d>) -> Option<Driver>,
    module: &dyn Fn(u32) -> Option<String>,
    name: &dyn Fn(i64) -> String,
) {
    let mut all: BTreeMap<(Option<Driver>, i64), (i64, i64)> = BTreeMap::new();
    let mut put = |key: (Option<Driver>, i64), part_ns: i64, run_ns: i64| {
        let sums = all.entry(key).or_default();
        add(&mut sums.0, part_ns);
        add(&mut sums.1, run_ns);
    };
    for (party, asked) in parties {
        let (mut part_ns, mut run_ns) = (party.part_ns, party.run_ns);
        for asked in asked {
            let Some(driver) = module(asked.module).map(Driver::named) else { continue };
            let ran = asked.causes.get(&Cause::Work).copied().unwrap_or(0);
            put((Some(driver), -1), asked.ns, ran);
            let proof = asked.causes.iter().filter(|(cause, _)| is_proof(cause));
            let proof_ns = proof.fold(0i64, |all, (_, ns)| all.saturating_add(*ns));
            (part_ns, run_ns) = (part_ns.saturating_sub(proof_ns), run_ns.saturating_sub(ran).max(0));
        }
        let driver = driver(party);
        let upid = if driver.is_some() { -1 } else { party.whom.0 };
        put((driver, upid), part_ns, run_ns);
    }
    let mut all: Vec<_> =
        all.into_iter().filter(|(_, (ns, _))| ns.saturating_mul(10) >= path.dur_ns).collect();
    all.sort_by_key(|((driver, upid), (ns, _))| (Reverse(*ns), driver.clone(), *upid));
    for ((driver, upid), (part_ns, run_ns)) in all.into_iter().filter(|(_, (ns, _))| *ns > 0) {
        let label = driver.as_ref().map_or_else(|| name(upid), |driver| driver.label.clone());
        rows.push(PathShareRow {
            path_id: path.id as i32,
            upid: id(upid),
            driver: driver.map(|driver| strings.intern(&driver.name)),
            name: strings.intern(&label),
            part_ns,
            run_ns,
            share: part_ns as f64 / path.dur_ns.max(1) as f64,
        });
    }
}

/// Whether a filter that had been asked did it: it slept, or waited for an answer that never came, until its own timeout. Any other wait is somebody
/// else's answer, and who owed it is not known, or the path would have gone on: without `ReadyThread` a filter that waits for its service had been
/// accused.
fn is_own_wait(piece: &Piece<'_>) -> bool {
    piece.cause == Cause::Wait("sleep") || piece.timed_out
}

/// What drivers may have of a party's time that were asked about its calls.
pub(super) struct Calls<'d> {
    /// The question in whose code it ran.
    request: usize,
    /// Waits in such drivers, by module and class.
    waits: BTreeMap<(u32, Cause<'d>), i64>,
    /// Waits in drivers of which nothing tells whether they were asked.
    unasked: BTreeMap<u32, i64>,
    /// Sleeps without a stack.
    unseen_ns: i64,
}

/// A driver that Windows had asked, its time, and its runs and sleeps.
pub(super) struct Asked<'d> {
    pub module: u32,
    pub ns: i64,
    pub causes: BTreeMap<Cause<'d>, i64>,
}

impl<'d> Calls<'d> {
    /// Asks about these pieces. A thread that had the processor ran.
    fn of(pieces: &[&Piece<'d>], evidence: &mut Evidence<'_>) -> Calls<'d> {
        let (mut waits, mut unasked, mut unseen_ns) = (BTreeMap::new(), BTreeMap::new(), 0);
        for piece in pieces.iter().filter(|piece| is_own_wait(piece)) {
            if let Some(module) = evidence.asked(piece.stack) {
                add(waits.entry((module, piece.cause)).or_default(), piece.length());
            } else if let Some(module) = evidence.unasked(piece.stack) {
                add(unasked.entry(module).or_default(), piece.length());
            } else if piece.cause == Cause::Wait("sleep") && evidence.is_unseen(piece.stack) {
                add(&mut unseen_ns, piece.length());
            }
        }
        let runs = pieces.iter().filter(|piece| matches!(piece.cause, Cause::Work | Cause::Processor));
        let request = evidence.calls(runs.map(|piece| (piece.utid, piece.from, piece.to)));
        Calls { request, waits, unasked, unseen_ns }
    }

    /// The drivers with their time of runs and waits together, the one with most first.
    pub fn drivers(&self, evidence: &Evidence<'_>) -> Vec<Asked<'d>> {
        let mut causes: BTreeMap<u32, BTreeMap<Cause<'d>, i64>> = BTreeMap::new();
        let ran =
            evidence.seen_at(self.request).asked.into_iter().map(|(module, ns)| ((module, Cause::Work), ns));
        for ((module, cause), ns) in ran.chain(self.waits.iter().map(|(key, ns)| (*key, *ns))) {
            add(causes.entry(module).or_default().entry(cause).or_default(), ns);
        }
        let of = |(module, causes): (u32, BTreeMap<Cause<'d>, i64>)| Asked {
            module,
            ns: causes.values().fold(0, |all, ns| all.saturating_add(*ns)),
            causes,
        };
        let mut all: Vec<Asked<'d>> = causes.into_iter().map(of).collect();
        all.sort_by_key(|asked| (Reverse(asked.ns), asked.module));
        all
    }
}
