//! Machines that differ from those like them: the same model and the same build of Windows.
//!
//! For each culprit, the share that it takes of a machine's time is compared with the median of its peers, in units of their spread (median
//! absolute deviation): as it is and as a multiple, and the smaller distance counts, since costs that lie far apart on all machines are
//! nothing special on one. A machine without the culprit has a share of none. How far out a machine has to lie follows from how many comparisons
//! are made.
//!
//! # What fools it
//! Machines that are used for something else are outliers, and rightly so. Machines whose model is not recorded are peers of each other.

use etwhy_stats::normal::student_quantile;
use etwhy_stats::percentile::median;
use etwhy_table::Table;
use std::collections::{BTreeMap, BTreeSet};

/// Fewest machines that have peers.
pub const LEAST_PEERS: usize = 8;
/// Share of the time, in per cent, that a machine must take more: less matters to nobody.
const LEAST_EXCESS: f64 = 1.0;
/// Spread of peers is at least this, in per cent of the time: that all have the same is chance.
const LEAST_SPREAD: f64 = 0.2;
/// The same of logarithms: one in seven.
const LEAST_RATIO_SPREAD: f64 = 0.15;
/// What is less, in per cent of the time, is none.
const NONE: f64 = 0.05;
/// Standard deviations in a median absolute deviation, of normal values.
const TO_DEVIATIONS: f64 = 1.4826;
/// A median absolute deviation tells as much about the spread as a standard deviation of this share of the values.
const EFFICIENCY: f64 = 0.37;
/// Chance of naming a machine in a fleet without outliers. Tests find half as many.
const FALSE_ALARMS: f64 = 0.05;

/// How names begin that a recording did not tell.
pub const NAMELESS: &str = "[unknown";

/// A machine that takes more than its peers.
#[derive(Clone, Debug)]
pub struct Outlier {
    /// The machine.
    pub machine_id: String,
    /// Its name, where recorded.
    pub computer: Option<String>,
    /// Its model, where recorded.
    pub model: Option<String>,
    /// Its build of Windows.
    pub os_build: i64,
    /// machine, process, driver, product or category.
    pub kind: String,
    /// What takes the time.
    pub culprit: String,
    /// Share of its time, in per cent.
    pub percent: f64,
    /// Median of its peers.
    pub peers_percent: f64,
    /// How far above them, in their standard deviations.
    pub deviations: f64,
    /// Machines of its model and build.
    pub peers: usize,
}

/// Machines that are alike: model and build.
type Peers = (Option<String>, i64);

/// The outliers of view `machine_shares`, the largest excess first.
pub fn outliers(table: &Table) -> Vec<Outlier> {
    let mut machines: BTreeMap<(Peers, String), BTreeSet<String>> = BTreeMap::new();
    let mut shares: BTreeMap<(Peers, String, String), BTreeMap<String, f64>> = BTreeMap::new();
    let mut computers: BTreeMap<String, Option<String>> = BTreeMap::new();
    for row in 0..u32::try_from(table.rows()).unwrap_or(u32::MAX) {
        let text = |column: &str| table.text(row, column).map(str::to_owned);
        let need = |column: &str| text(column).unwrap_or_default();
        let peers = (text("model"), table.i64(row, "os_build").unwrap_or(0));
        let machine = need("machine_id");
        computers.insert(machine.clone(), text("computer"));
        machines.entry((peers.clone(), need("kind"))).or_default().insert(machine.clone());
        // Time of nobody is there where names are missing: that recording is another one, not its machine.
        if need("culprit").starts_with(NAMELESS) {
            continue;
        }
        let of = shares.entry((peers, need("kind"), need("culprit"))).or_default();
        of.insert(machine, table.f64(row, "share_percent").unwrap_or(0.0));
    }
    let compared: usize = shares
        .iter()
        .filter_map(|((peers, kind, _), _)| machines.get(&(peers.clone(), kind.clone())))
        .filter(|all| all.len() >= LEAST_PEERS)
        .map(BTreeSet::len)
        .sum();
    let mut found = Vec::new();
    for ((peers, kind, culprit), of) in &shares {
        let Some(all) = machines.get(&(peers.clone(), kind.clone())).filter(|all| all.len() >= LEAST_PEERS)
        else {
            continue;
        };
        let share = |machine: &String| of.get(machine).copied().unwrap_or(0.0);
        let names: Vec<&String> = all.iter().collect();
        let values: Vec<f64> = all.iter().map(share).collect();
        for (n, deviations, middle) in apart(&values, compared) {
            if let (Some(machine), Some(percent)) = (names.get(n), values.get(n)) {
                found.push(Outlier {
                    machine_id: (*machine).clone(),
                    computer: computers.get(*machine).cloned().flatten(),
                    model: peers.0.clone(),
                    os_build: peers.1,
                    kind: kind.clone(),
                    culprit: culprit.clone(),
                    percent: *percent,
                    peers_percent: middle,
                    deviations,
                    peers: all.len(),
                });
            }
        }
    }
    let excess = |o: &Outlier| o.percent - o.peers_percent;
    found.sort_by(|a, b| excess(b).total_cmp(&excess(a)).then_with(|| a.machine_id.cmp(&b.machine_id)));
    found
}

/// How many machines of view `machine_shares` have enough peers to be compared. Where none has, nothing can be said of any.
pub fn compared(table: &Table) -> usize {
    let mut machines: BTreeMap<Peers, BTreeSet<String>> = BTreeMap::new();
    for row in 0..u32::try_from(table.rows()).unwrap_or(u32::MAX) {
        let peers = (table.text(row, "model").map(str::to_owned), table.i64(row, "os_build").unwrap_or(0));
        machines
            .entry(peers)
            .or_default()
            .insert(table.text(row, "machine_id").unwrap_or_default().to_owned());
    }
    machines.values().map(BTreeSet::len).filter(|all| *all >= LEAST_PEERS).sum()
}

/// Which values of peers lie too far above the others, by how many deviations, and what the others have. `compared` is how many values are
/// compared in all.
fn apart(values: &[f64], compared: usize) -> Vec<(usize, f64, f64)> {
    let limit = student_quantile(
        1.0 - FALSE_ALARMS / compared.max(1) as f64,
        EFFICIENCY * (values.len() as f64 - 1.0),
    );
    let logs: Vec<f64> = values.iter().map(|value| value.max(NONE).ln()).collect();
    let (Some(plain), Some(ratio)) = (spread(values, LEAST_SPREAD), spread(&logs, LEAST_RATIO_SPREAD)) else {
        return Vec::new();
    };
    let all = values.iter().zip(&logs).enumerate();
    all.filter_map(|(n, (value, log))| {
        let deviations = ((value - plain.0) / plain.1).min((log - ratio.0) / ratio.1);
        (deviations > limit && value - plain.0 >= LEAST_EXCESS).then_some((n, deviations, plain.0))
    })
    .collect()
}

/// Median and spread.
fn spread(values: &[f64], least: f64) -> Option<(f64, f64)> {
    let middle = median(&mut values.to_vec())?;
    let mut distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some((middle, (TO_DEVIATIONS * median(&mut distances)?).max(least)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    /// Fleets of 40 machines and 12 culprits whose shares differ by factors, one with a machine that stands out.
    #[test]
    fn quiet_fleets_have_no_outliers() {
        let (mut alarms, mut found) = (0, 0);
        for seed in 0..1_000 {
            let mut rng = Rng::new(seed);
            let mut quiet = 0;
            for _ in 0..12 {
                let mut values: Vec<f64> = (0..40).map(|_| 4.0 * (0.5 * rng.normal()).exp()).collect();
                quiet += apart(&values, 480).len();
                if let Some(value) = values.get_mut(7) {
                    *value = 70.0;
                }
                found += usize::from(apart(&values, 480).iter().any(|(n, ..)| *n == 7));
            }
            alarms += usize::from(quiet > 0);
        }
        println!("{alarms} of 1,000 quiet fleets had outliers, {found} of 12,000 outliers were found");
        assert!(alarms <= 50, "{alarms}");
        // Six of their deviations away.
        assert!(found > 9_000, "{found}");
    }
}
