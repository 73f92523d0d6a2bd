//! Machines that differ from those like them: the same model and the same build of Windows.
//!
//! For each culprit, the share that it takes of a machine's time is compared with the median of its peers, in units of their spread (median
//! absolute deviation). A machine without the culprit has a share of none. How far out a machine has to lie follows from how many
//! comparisons are made.
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
/// Spread of peers is at least this, in per cent of the time, and at least this share of their median: that all have the same is chance.
const LEAST_SPREAD: (f64, f64) = (0.2, 0.05);
/// Standard deviations in a median absolute deviation, of normal values.
const TO_DEVIATIONS: f64 = 1.4826;
/// Chance of naming a machine in a fleet without outliers.
const FALSE_ALARMS: f64 = 0.05;

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
    let mut names: BTreeMap<String, Option<String>> = BTreeMap::new();
    for row in 0..u32::try_from(table.rows()).unwrap_or(u32::MAX) {
        let text = |column: &str| table.text(row, column).map(str::to_owned);
        let need = |column: &str| text(column).unwrap_or_default();
        let peers = (text("model"), table.i64(row, "os_build").unwrap_or(0));
        let machine = need("machine_id");
        names.insert(machine.clone(), text("computer"));
        machines.entry((peers.clone(), need("kind"))).or_default().insert(machine.clone());
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
        let mut values: Vec<f64> = all.iter().map(share).collect();
        let Some(middle) = median(&mut values) else { continue };
        let mut apart: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
        let spread = TO_DEVIATIONS * median(&mut apart).unwrap_or(0.0);
        let spread = spread.max(LEAST_SPREAD.0).max(LEAST_SPREAD.1 * middle);
        let limit = student_quantile(1.0 - FALSE_ALARMS / compared.max(1) as f64, all.len() as f64 - 1.0);
        for (machine, percent) in of {
            let deviations = (percent - middle) / spread;
            if deviations > limit && percent - middle >= LEAST_EXCESS {
                found.push(Outlier {
                    machine_id: machine.clone(),
                    computer: names.get(machine).cloned().flatten(),
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
