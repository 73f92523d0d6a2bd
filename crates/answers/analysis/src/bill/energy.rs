//! Joules of CPU time, by a model: seconds times the watts that one more busy logical processor draws.
//!
//! `E = seconds · m · (f / f_nominal)^alpha`. `m` is the median of published results for machines of the processor's family
//! and age, else of all; `alpha` is 2 (1: voltage stays; 3: voltage follows the frequency). The bounds hold what 80 % of
//! machines would show: percentiles 10 and 90 of `m`, alpha from 1 to 3, and the sampling error of the seconds
//! (`1 / sqrt(samples)`). They are independent, so their logarithms are added in quadrature. Idle power is not in it.

use crate::derived::machine::MachineRow;
use etwhy_knowledge::{WattGroup, watt_groups, watts_of};
use etwhy_table::Database;
use etwhy_trace::catalog::cpu_frequency::CpuFrequencyRow;
use etwhy_trace::catalog::trace::TraceRow;

/// The model of one machine.
pub(crate) struct Model {
    group: &'static WattGroup,
    /// The processor's name told the group.
    pub known: bool,
    /// Mean of `(f / f_nominal)^alpha` for alpha 1, 2 and 3.
    phi: [f64; 3],
    /// Frequencies were recorded.
    pub frequency: bool,
    interval_ns: Option<i64>,
}

/// Joules with bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Joules {
    /// Most likely.
    pub mid: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// What [`Model::read`] reads.
pub(crate) type ModelRows = (TraceRow, MachineRow, CpuFrequencyRow);

/// Percentile 90 of the normal distribution, in standard deviations.
const P90: f64 = 1.2816;

impl Model {
    /// Chooses the model for the trace; `None` if there is no data at all.
    pub fn read(db: &Database, sampled: bool) -> Option<Model> {
        let all = watt_groups().first()?;
        let trace = db.read_or_empty::<TraceRow>();
        let found = trace.first().and_then(|trace| watts_of(trace.processor()?));
        let nominal = trace.first().map(|trace| trace.cpu_mhz()).filter(|&mhz| mhz > 0);
        let phi = frequencies(db, nominal);
        let interval = db.read_or_empty::<MachineRow>().first().and_then(|m| m.sample_interval_ns());
        Some(Model {
            group: found.unwrap_or(all),
            known: found.is_some(),
            phi: phi.unwrap_or([1.0; 3]),
            frequency: phi.is_some(),
            interval_ns: sampled.then_some(interval.unwrap_or(1_000_000).max(1)),
        })
    }

    /// Name of the group of machines.
    pub fn group(&self) -> &'static str {
        self.group.group
    }

    /// Samples that so much time stands for; `None` if it was not sampled.
    pub fn samples(&self, cpu_ns: i64) -> Option<i64> {
        Some(cpu_ns / self.interval_ns?)
    }

    /// Joules of CPU time.
    pub fn joules(&self, cpu_ns: i64) -> Joules {
        if cpu_ns <= 0 {
            return Joules::default();
        }
        let [one, two, three] = self.phi;
        let mid = cpu_ns as f64 * 1e-9 * self.group.p50 * two;
        let samples = self.samples(cpu_ns).unwrap_or(i64::MAX).max(1) as f64;
        let sampling = P90 / samples.sqrt();
        let spread = |watts: f64, phi: f64| -> f64 {
            let parts = [(watts / self.group.p50).ln(), (phi / two).ln(), sampling];
            parts.iter().map(|p| p * p).sum::<f64>().sqrt().exp()
        };
        let (least, most) = (one.min(three), one.max(three));
        Joules { mid, low: mid / spread(self.group.p10, least), high: mid * spread(self.group.p90, most) }
    }
}

/// Means of powers 1 to 3 of the frequency over the nominal one, each record of a processor until its next one.
fn frequencies(db: &Database, nominal: Option<i64>) -> Option<[f64; 3]> {
    let mut last: std::collections::BTreeMap<i64, (i64, f64)> = std::collections::BTreeMap::new();
    let (mut sums, mut total) = ([0.0; 3], 0.0);
    let mut charge = |ratio: f64, ns: i64| {
        let ns = ns.max(0) as f64;
        total += ns;
        for (sum, power) in sums.iter_mut().zip(1..) {
            *sum += ns * ratio.powi(power);
        }
    };
    for row in &db.read_or_empty::<CpuFrequencyRow>() {
        if !matches!(row.kind(), "change" | "rundown" | "delivered") {
            continue;
        }
        let by_mhz = row.mhz().zip(nominal).map(|(mhz, nominal)| mhz as f64 / nominal as f64);
        let ratio = by_mhz.or(row.percent().map(|p| p as f64 / 100.0));
        // Faster than five times the nominal frequency is damage.
        let Some(ratio) = ratio.filter(|r| (0.05..5.0).contains(r)) else { continue };
        let Some(cpu) = row.cpu() else { continue };
        let ts = row.ts_ns();
        if let Some((since, ratio)) = last.insert(cpu, (ts, ratio)) {
            charge(ratio, ts.saturating_sub(since));
        }
    }
    let end = db.read_or_empty::<TraceRow>().first().map_or(0, |trace| trace.last_ns());
    for (since, ratio) in last.into_values() {
        charge(ratio, end.saturating_sub(since));
    }
    (total > 0.0).then(|| sums.map(|sum| sum / total))
}
