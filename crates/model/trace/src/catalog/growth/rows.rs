//! The end of the pass: from series to laws, verdicts and culprits.

use super::bins::{Bin, Bins, Sizes};
use super::samples::{ByStack, Culprit, CulpritSearch, Samples, costs, stack_of};
use super::series::{AllSeries, Memory, Operation, Series};
use super::{GrowthPointRow, GrowthRow};
use crate::catalog::process::{initial_loads, lifetime, name_and_path};
use crate::finish::Finish;
use crate::owner::Owner;
use etwhy_decode::kernel::events::{FileIo, Registry};
use etwhy_stats::Interval;
use etwhy_stats::growth::{Doubt, Form, Growth, LAWS, MIN_FACTOR, MIN_POINTS, Verdict, compare, fit};
use etwhy_stats::rank::{Trend, mann_kendall};
use etwhy_table::{Sym, TableBuilder};
use foldhash::HashMap;

/// One row to be.
struct Candidate {
    operation: Operation,
    /// Number of the series whose samples tell the culprit.
    series: Option<u32>,
    upid: Option<u32>,
    source: &'static str,
    /// In the order of n.
    bins: Vec<Bin>,
    by_size: bool,
    growth: Growth,
    verdict: Verdict,
    doubt: Option<&'static str>,
    confounded: Option<&'static str>,
    trend: Option<Trend>,
    size_factor: Option<f64>,
    total: f64,
    calls: u64,
    /// Samples in its calls, if these tell the cost.
    samples: Option<u32>,
    culprit: Culprit,
}

/// Share of the trace's time that a series must have cost to have a row, and to have points although it does not grow.
const LEAST_SHARE: f64 = 1e-4;
const POINTS_SHARE: f64 = 1e-3;
/// A trend as clear by chance in any of all series.
const CHANCE: f64 = 0.01;
/// Growth of sizes that explains growth of costs.
const LARGER: f64 = 1.3;

pub(super) fn fill(
    rows: &mut TableBuilder<GrowthRow>,
    points: &mut TableBuilder<GrowthPointRow>,
    series: &mut AllSeries,
    samples: &Samples,
    types: &HashMap<u16, Sym>,
    end: &mut Finish<'_>,
) {
    let span = end.span_ns.1.saturating_sub(end.span_ns.0).max(1) as f64;
    let (starts, members) = process_starts(end);
    let sampled = costs(samples, end, |number| {
        let series = series.list.get(number as usize)?;
        Some((&series.bins, series.operation.within()?))
    });
    let mut found: Vec<Candidate> = Vec::new();
    for (number, series) in series.list.iter().enumerate() {
        let number = number as u32;
        if series.bins.calls < MIN_POINTS as u64 {
            continue;
        }
        let upid = series.owner.upid(end.model);
        let mut add = |bins: &Bins, source| {
            let candidate = Candidate::by_calls(series, number, upid, bins, source, span);
            let samples = matches!(source, "samples" | "kernel_samples" | "interval")
                .then(|| sampled.get(&number).map_or(0, |costs| costs.count));
            found.extend(candidate.map(|candidate| Candidate { samples, ..candidate }));
        };
        match sampled.get(&number) {
            Some(costs) if costs.bins.list.len() >= MIN_POINTS => {
                add(&costs.bins, if costs.by_name { "samples" } else { "kernel_samples" });
            }
            _ if series.operation.within().is_some() => add(&series.bins, "interval"),
            _ if matches!(series.operation, Operation::Syscall(_)) => add(&series.bins, "on_cpu"),
            _ => add(&series.bins, "duration"),
        }
        if let Some(walls) = &series.walls {
            add(walls, "duration");
        }
        if let Some(sizes) = &series.sizes {
            found.extend(Candidate::by_size(series, number, upid, sizes, span));
        }
    }
    for (series, source) in &starts {
        found.extend(Candidate::by_calls(series, u32::MAX, None, &series.bins, source, span));
    }
    judge_together(&mut found);
    culprits(&mut found, samples, &members, end);
    found.sort_by(|a, b| {
        let order = |c: &Candidate| (c.verdict != Verdict::SuperLinear, c.verdict != Verdict::WithTime);
        order(a).cmp(&order(b)).then(b.weight().total_cmp(&a.weight()))
    });
    for (number, candidate) in found.iter().enumerate() {
        candidate.push(number as i32, span, rows, points, types, end);
    }
}

/// Series with the source of their costs.
type Sources = Vec<(Series, &'static str)>;
/// Name of each process that was started, and which start of that name it was.
type Members = HashMap<u32, (Sym, u64)>;

/// Starts of processes by name, as series of lifetimes and of load times, and the series and number of each process.
fn process_starts(end: &mut Finish<'_>) -> (Sources, Members) {
    let model = end.model;
    let mut started: Vec<(i64, u32)> = Vec::new();
    for (upid, process) in model.processes.all().iter().enumerate() {
        started.extend(process.start_ns.map(|start| (start, upid as u32)));
    }
    started.sort_unstable();
    let mut by_name: Vec<(Sym, [Bins; 2])> = Vec::new();
    let mut known: HashMap<Sym, usize> = HashMap::default();
    let mut members = HashMap::default();
    for (start, upid) in started {
        let Some(name) = name_and_path(end, upid).0 else { continue };
        let Some(process) = model.processes.get(upid) else { continue };
        let load = initial_loads(model.images.for_process(Some(upid)), end, process).0;
        let at = *known.entry(name).or_insert_with(|| {
            by_name.push((name, Default::default()));
            by_name.len() - 1
        });
        let Some((_, [lives, loads])) = by_name.get_mut(at) else { continue };
        lives.add(start, lifetime(process), 0);
        loads.add(start, load, 0);
        members.insert(upid, (name, lives.calls));
    }
    let series = |name, bins| Series {
        operation: Operation::Start(name),
        owner: Owner::Unknown,
        bins,
        walls: None,
        sizes: None,
        last_ns: None,
    };
    let all = by_name.into_iter().flat_map(|(name, [lives, loads])| {
        [(series(name, lives), "lifetime"), (series(name, loads), "load")]
    });
    (all.filter(|(series, _)| series.bins.known() >= MIN_POINTS as u64).collect(), members)
}

impl Candidate {
    fn by_calls(
        series: &Series,
        number: u32,
        upid: Option<u32>,
        bins: &Bins,
        source: &'static str,
        span: f64,
    ) -> Option<Candidate> {
        let (total, calls) = (bins.total(), bins.known());
        // What starts of processes take is not the machine's time alone; they are few, and all are shown.
        if calls < MIN_POINTS as u64 || total < LEAST_SHARE * span {
            return None;
        }
        let points = bins.points();
        let growth = fit(&points, Form::PerCall);
        let over_time: Vec<(f64, f64)> = points.iter().filter_map(|p| Some((p.time?, p.cost))).collect();
        let size = |bin: &Bin| bin.sizes / f64::from(bin.calls.max(1));
        let size_factor = bins.thirds().map(|(first, last)| size(&last) / size(&first));
        let mut candidate = Candidate {
            operation: series.operation,
            series: series.operation.within().map(|_| number),
            upid,
            source,
            bins: bins.list.iter().copied().filter(|bin| bin.known > 0).collect(),
            by_size: false,
            verdict: growth.verdict,
            doubt: growth.doubt.map(Doubt::text),
            confounded: match (growth.verdict, growth.doubt) {
                (Verdict::WithTime, _) | (_, Some(Doubt::Time)) => Some("time"),
                (_, Some(Doubt::Step)) => Some("step"),
                _ => None,
            },
            growth,
            trend: mann_kendall(&over_time),
            size_factor: size_factor.filter(|f| f.is_finite() && *f > 0.0),
            total,
            calls,
            samples: None,
            culprit: Culprit::default(),
        };
        if candidate.verdict == Verdict::SuperLinear {
            if source == "interval" {
                candidate.withhold(
                    "calls become rarer; that each costs more would take more CPU samples in them",
                    None,
                );
            } else if candidate.size_factor.is_some_and(|f| f > LARGER) {
                candidate.withhold("the calls became larger, too", Some("size"));
            }
        }
        Some(candidate)
    }

    fn by_size(
        series: &Series,
        number: u32,
        upid: Option<u32>,
        sizes: &Sizes,
        span: f64,
    ) -> Option<Candidate> {
        let total: f64 = sizes.bins().map(|bin| bin.sum).sum();
        let calls = sizes.bins().map(|bin| u64::from(bin.known)).sum();
        let growth = compare(&sizes.points(), Form::Total);
        if growth.points < MIN_POINTS || total < LEAST_SHARE * span {
            return None;
        }
        let growth =
            if growth.verdict == Verdict::SuperLinear { fit(&sizes.points(), Form::Total) } else { growth };
        Some(Candidate {
            operation: series.operation,
            series: Some(number),
            upid,
            source: "duration",
            bins: sizes.bins().copied().collect(),
            by_size: true,
            verdict: growth.verdict,
            doubt: growth.doubt.map(Doubt::text),
            confounded: None,
            growth,
            trend: None,
            size_factor: None,
            total,
            calls,
            samples: None,
            culprit: Culprit::default(),
        })
    }

    fn withhold(&mut self, why: &'static str, confounded: Option<&'static str>) {
        self.verdict = Verdict::CannotTell;
        self.doubt = Some(why);
        self.confounded = confounded;
    }

    /// What it costs more than if nothing grew, or in all: the order of rows.
    fn weight(&self) -> f64 {
        self.excess().unwrap_or(0.0).max(0.0) + self.total * 1e-6
    }

    /// Cost beyond that of as many calls as the first ones.
    fn excess(&self) -> Option<f64> {
        let law = self.growth.total_at(self.growth.range.1);
        let flat = self.growth.cost_at(self.growth.range.0) * self.growth.range.1;
        (!self.by_size).then(|| self.total * (1.0 - flat / law.max(f64::MIN_POSITIVE)).max(0.0))
    }

    fn grows(&self) -> bool {
        !self.by_size && self.growth.factor() >= MIN_FACTOR
    }
}

/// Trends that are to be expected by chance among so many series make no verdict.
fn judge_together(found: &mut [Candidate]) {
    let tried = found.len() as f64;
    for candidate in found.iter_mut().filter(|c| c.verdict == Verdict::SuperLinear) {
        let p = candidate.growth.trend.map_or(1.0, |trend| if trend.tau > 0.0 { trend.p } else { 1.0 });
        if p * tried > CHANCE {
            candidate.withhold("with this many operations, a trend like this one arises by chance", None);
        }
    }
}

/// Finds the functions in which the growth is, for all that grow.
fn culprits(found: &mut [Candidate], samples: &Samples, members: &Members, end: &Finish<'_>) {
    let mut of_process: HashMap<u32, Vec<usize>> = HashMap::default();
    let mut of_name: HashMap<Sym, Vec<usize>> = HashMap::default();
    let mut wanted: HashMap<usize, (CulpritSearch, ByStack)> = HashMap::default();
    for (at, candidate) in found.iter().enumerate().filter(|(_, c)| c.grows()) {
        let bins = Bins::complete(candidate.bins.clone());
        let Some((first, last)) = bins.thirds() else { continue };
        match (candidate.operation, candidate.upid) {
            (Operation::Start(name), _) => of_name.entry(name).or_default().push(at),
            (_, Some(upid)) => of_process.entry(upid).or_default().push(at),
            _ => continue,
        }
        let series = candidate.series.filter(|_| candidate.source != "interval");
        wanted.insert(at, (CulpritSearch { series, first, last }, ByStack::default()));
    }
    if wanted.is_empty() {
        return;
    }
    for sample in &samples.list {
        let Some(upid) = end.model.upid_of(sample.utid) else { continue };
        let stack = stack_of(sample, end);
        for at in of_process.get(&upid).into_iter().flatten() {
            if let Some((wanted, by_stack)) = wanted.get_mut(at)
                && let Some(third) = sample.third(wanted)
            {
                by_stack.add(third, stack, sample.weight_ns);
            }
        }
        let Some((name, n)) = members.get(&upid) else { continue };
        for at in of_name.get(name).into_iter().flatten() {
            let Some((wanted, by_stack)) = wanted.get_mut(at) else { continue };
            let within = |bin: &Bin| (bin.first..=bin.last()).contains(n);
            if let Some(third) = [&wanted.first, &wanted.last].into_iter().position(within) {
                by_stack.add(third, stack, sample.weight_ns);
            }
        }
    }
    for (at, (wanted, by_stack)) in wanted {
        if let Some(candidate) = found.get_mut(at) {
            candidate.culprit = by_stack.culprit([wanted.first.calls, wanted.last.calls], end);
        }
    }
}

/// Nothing that is not a number.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::MAX }
}

impl Candidate {
    fn operation_name(&self, types: &HashMap<u16, Sym>, end: &mut Finish<'_>) -> Sym {
        let text = match self.operation {
            Operation::Syscall(place) => {
                return end.resolved.frame_of_place(place).map_or(Sym::EMPTY, |(_, frame)| frame.label);
            }
            Operation::Handle(ty) => {
                return types.get(&ty).copied().unwrap_or_else(|| end.strings.intern(&format!("type {ty}")));
            }
            Operation::File(op) => FileIo::name(op),
            Operation::Registry(op) => Registry::name(op),
            Operation::Memory(Memory::ReserveTopDown) => "VirtualAlloc MEM_TOP_DOWN",
            Operation::Memory(Memory::Reserve) => "VirtualAlloc MEM_RESERVE",
            Operation::Memory(Memory::Commit) => "VirtualAlloc MEM_COMMIT",
            Operation::Memory(Memory::Free) => "VirtualFree",
            Operation::Start(_) => "process start",
        };
        end.strings.intern(text)
    }

    fn why(&self) -> String {
        let (growth, cost) =
            (&self.growth, if self.by_size { "an operation on n bytes" } else { "the n-th call" });
        match (self.verdict, self.doubt) {
            (_, Some(doubt)) => doubt.to_owned(),
            (Verdict::SuperLinear, _) if self.by_size => format!("{cost} costs like {}", growth.law.name()),
            (Verdict::SuperLinear, _) => {
                let [call, all] = [growth.law.name(), growth.law.total_name()];
                let sure = if growth.weight(growth.law) > 0.9 { "" } else { ", or a law near it" };
                format!("{cost} costs like {call}, all of them like {all}{sure}")
            }
            (Verdict::WithTime, _) => {
                "the cost rises with time rather than with the number of calls".to_owned()
            }
            (Verdict::Slight, _) => "the cost rises, to less than one and a half times".to_owned(),
            (Verdict::Constant, _) => "the cost does not depend on n".to_owned(),
            _ => format!("{cost} costs like {}", growth.law.name()),
        }
    }

    fn push(
        &self,
        number: i32,
        span: f64,
        rows: &mut TableBuilder<GrowthRow>,
        points: &mut TableBuilder<GrowthPointRow>,
        types: &HashMap<u16, Sym>,
        end: &mut Finish<'_>,
    ) {
        let growth = &self.growth;
        let operation = self.operation_name(types, end);
        let name = match self.operation {
            Operation::Start(name) => Some(name),
            _ => self.upid.and_then(|upid| name_and_path(end, upid).0),
        };
        let name = name.unwrap_or_else(|| end.strings.intern("[unknown]"));
        let law = LAWS.into_iter().find(|law| *law == growth.law).unwrap_or(growth.law);
        let total_law = if self.by_size { law.name() } else { law.total_name() };
        let [kind, source, verdict] =
            [self.operation.kind(), self.source, self.verdict.name()].map(|text| end.strings.intern(text));
        let [predictor, model, total_model] =
            [if self.by_size { "size_bytes" } else { "calls" }, law.name(), total_law]
                .map(|text| end.strings.intern(text));
        let why = end.strings.intern(&self.why());
        let confounded_by = self.confounded.map(|text| end.strings.intern(text));
        let exponent: Option<Interval> = growth.exponent;
        // The law is that of typical calls; in all they cost in proportion.
        let n = growth.range.1;
        let scale = self.total / growth.total_at(n).max(f64::MIN_POSITIVE);
        let all = |times: f64| (!self.by_size).then(|| finite(scale * growth.total_at(times * n)));
        let upid = self.upid.map(|u| u as i32);
        let (first, last) =
            (self.bins.first().copied().unwrap_or_default(), self.bins.last().copied().unwrap_or_default());
        let (from_ns, to_ns) = if self.by_size {
            let from = self.bins.iter().map(|bin| bin.from_ns).min();
            (from.unwrap_or(0), self.bins.iter().map(|bin| bin.to_ns).max().unwrap_or(0))
        } else {
            (first.from_ns, last.to_ns)
        };
        let has_culprit = self.culprit.function.is_some();
        rows.push(GrowthRow {
            growth_id: number,
            kind,
            operation,
            upid,
            name,
            predictor,
            cost_source: source,
            calls: self.calls as i64,
            n_low: growth.range.0,
            n_high: growth.range.1,
            points: growth.points as i32,
            samples: self.samples.map(i64::from),
            verdict,
            why,
            confounded_by,
            model,
            total_model,
            weight: growth.weight(law),
            super_weight: growth.super_weight,
            a: growth.a,
            b: growth.b,
            exponent: exponent.map(|e| e.value),
            exponent_low: exponent.map(|e| e.low),
            exponent_high: exponent.map(|e| e.high).filter(|high| high.is_finite()),
            r2: growth.r2,
            start_cost_ns: growth.cost_at(growth.range.0),
            end_cost_ns: growth.cost_at(growth.range.1),
            total_ns: self.total as i64,
            excess_ns: self.excess().map(|excess| excess as i64),
            cost_10x_ns: finite(growth.cost_at(10.0 * n)),
            total_2x_ns: all(2.0),
            total_10x_ns: all(10.0),
            start_ns: from_ns,
            end_ns: to_ns,
            trend_tau: self.trend.map(|t| t.tau),
            trend_p: self.trend.map(|t| t.p),
            trend_ns_per_s: self.trend.map(|t| t.slope),
            better_than_time: growth.over_time.filter(|over| over.is_finite()),
            size_factor: self.size_factor,
            function: self.culprit.function,
            module: self.culprit.module,
            caller: self.culprit.caller,
            stack_id: self.culprit.stack_id,
            function_growth_ns: has_culprit.then_some(self.culprit.growth_ns),
        });
        let flat = matches!(self.verdict, Verdict::Constant | Verdict::Slight | Verdict::Linear);
        if flat && self.total < POINTS_SHARE * span {
            return;
        }
        for bin in &self.bins {
            let mean_size = bin.sizes / f64::from(bin.calls.max(1));
            let (low, high, mid) = match self.by_size {
                true => (mean_size, mean_size, mean_size),
                false => (bin.first as f64, bin.last() as f64, bin.middle()),
            };
            points.push(GrowthPointRow {
                growth_id: number,
                kind,
                operation,
                upid,
                predictor,
                cost_source: source,
                n_low: low,
                n_high: high,
                n_mid: mid,
                calls: i64::from(bin.known),
                cost_ns: bin.typical(),
                mean_ns: bin.mean(),
                total_ns: bin.sum as i64,
                fit_ns: growth.cost_at(mid),
                start_ns: bin.from_ns,
                end_ns: bin.to_ns,
            });
        }
    }
}
