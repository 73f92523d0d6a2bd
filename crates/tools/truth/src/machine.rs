//! A random machine: its shape, its innocents and decoys, and the causes planted on it.

use crate::cause::{Kind, Planted, Sums};
use crate::innocents;
use crate::kinds;
use crate::plan::Plan;
use crate::random::Random;

/// A cause on a machine.
pub struct Cause {
    /// Of which kind.
    pub kind: &'static Kind,
    /// What is known of it.
    pub planted: Planted,
    /// How many times its limit it is.
    pub multiple: f64,
}

/// A machine, ready to be written.
pub struct Machine {
    /// The scenario's text.
    pub scenario: String,
    /// What was planted.
    pub causes: Vec<Cause>,
}

/// The machine of a seed. With a kind its first cause is of that kind.
pub fn machine(seed: u64, wanted: Option<&'static Kind>) -> Machine {
    // The same seed is another machine for each kind.
    let salt = wanted.map_or(0, |kind| {
        kind.id.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(u64::from(byte)))
    });
    let mut random = Random::new(seed.wrapping_add(salt << 32));
    let cpus = *random.pick(&[2, 4, 4, 6, 8, 8, 12, 16, 16, 24, 32, 48, 64]);
    let small = cpus <= 32 && random.chance(0.2);
    let duration = if cpus > 16 { random.between(2.5, 3.5) } else { random.between(3.0, 5.0) };
    let duration = (duration * 100.0).round() / 100.0;
    let shape = shape(&mut random, seed, cpus, small, duration);
    let chosen = choose(&mut random, wanted);
    let mut plan = Plan::new(random, cpus, duration, small);
    plan.quiet = chosen.iter().any(|kind| kind.alone);
    plan.kinds = chosen.iter().map(|kind| kind.id).collect();
    innocents::write(&mut plan);
    let mut planted: Vec<(&'static Kind, Planted)> = Vec::new();
    for kind in chosen {
        let multiple = plan.random.log_between(0.3, kind.most.min(100.0));
        let cause = (kind.plant)(&mut plan, multiple);
        planted.push((kind, cause));
    }
    let sums = Sums { duration, busy: plan.busy, capacity: plan.capacity() };
    let causes: Vec<Cause> = planted
        .into_iter()
        .map(|(kind, planted)| Cause { kind, multiple: planted.multiple(&sums), planted })
        .collect();
    let stall = plan
        .stall
        .map(|(at, length)| format!("stall = {{ at = \"{at:.3}s\", length = \"{length:.3}s\" }}\n"));
    let list: Vec<String> = causes
        .iter()
        .map(|cause| {
            format!(
                "# {} at {:.2} times its limit: {}",
                cause.kind.id,
                cause.multiple,
                cause.planted.target.text()
            )
        })
        .collect();
    let scenario = format!("{}\n\n{shape}{}{}", list.join("\n"), stall.unwrap_or_default(), plan.text());
    Machine { scenario, causes }
}

/// The machine's own table.
fn shape(random: &mut Random, seed: u64, cpus: u32, small: bool, duration: f64) -> String {
    let buffers = random.pick(&["16KB", "32KB", "64KB", "128KB", "256KB"]);
    let style = random.pick(&["walk", "walk", "full", "keys"]);
    let clock = random.pick(&["qpc", "qpc", "qpc", "system", "cpu"]);
    let nodes = if cpus >= 16 { *random.pick(&[1, 2]) } else { 1 };
    let compressed = random.chance(0.15);
    format!(
        "[machine]\nname = \"PC\"\ncpus = {cpus}\nnuma_nodes = {nodes}\nmemory = \"16GB\"\nduration = \"{duration}s\"\npointer_size = {}\nbuffer_size = \"{buffers}\"\nstack_style = \"{style}\"\nclock = \"{clock}\"\ncompressed = {compressed}\ncontext_switches = true\nseed = {}\n",
        if small { 4 } else { 8 },
        seed % 1_000_000,
    )
}

/// Kinds of which a machine may have several: each has its own culprit, figures and resources.
const SEVERAL: [&str; 20] = [
    "dpc-over-limit",
    "isr-over-limit",
    "minifilter-delay",
    "network-filter",
    "rundown",
    "process-notify",
    "failing-opens",
    "registry-storm",
    "repeated-reads",
    "spin-wait",
    "flush-storm",
    "small-random",
    "disk-slow",
    "hard-faults",
    "commit-leak",
    "handle-leak",
    "pool-leak",
    "dns-slow",
    "retransmits",
    "exceptions",
];

/// Kinds that are not on one machine: a library that is in many processes is in few of many short ones.
const APART: [(&str, &str); 3] =
    [("injected-dll", "process-churn"), ("injected-dll", "slower-starts"), ("injected-dll", "crash-loop")];

/// The kinds of causes: none on a tenth of the machines, one on most.
fn choose(random: &mut Random, wanted: Option<&'static Kind>) -> Vec<&'static Kind> {
    let list: Vec<&'static Kind> = kinds::all().collect();
    let draw = random.unit();
    let count = if draw < 0.1 {
        0
    } else if draw < 0.7 {
        1
    } else {
        2 + random.below(3)
    };
    let mut chosen: Vec<&'static Kind> = wanted.into_iter().collect();
    let wants = count.max(chosen.len());
    while chosen.len() < wants {
        let again = chosen.last().filter(|kind| SEVERAL.contains(&kind.id)).copied();
        // Three programs that wait for the same servers: that is the servers' fault.
        let crowd =
            |kind: &&Kind| kind.id == "dns-slow" && chosen.iter().filter(|k| k.id == kind.id).count() > 1;
        if let Some(kind) = again.filter(|kind| random.chance(0.15) && !crowd(kind)) {
            chosen.push(kind);
            continue;
        }
        let kind = *random.pick(&list);
        let fits = !kind.alone || (wants == 1 && chosen.is_empty());
        let apart = |a: &str, b: &str| APART.contains(&(a, b)) || APART.contains(&(b, a));
        let clash = |other: &Kind| other.id == kind.id || other.alone || apart(other.id, kind.id);
        if fits && !chosen.iter().any(|other| clash(other)) {
            chosen.push(kind);
        } else if chosen.iter().any(|other| other.alone) {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::SILENT;

    #[test]
    fn a_seed_is_a_machine() {
        let (one, two) = (machine(11, None), machine(11, None));
        assert_eq!(one.scenario, two.scenario);
        assert_ne!(one.scenario, machine(12, None).scenario);
        assert!((0..40).all(|seed| machine(seed, None).causes.len() <= 4));
    }

    #[test]
    fn costs_are_spread_around_the_limit() {
        let kind = kinds::find("handle-leak");
        let multiples: Vec<f64> = (0..60)
            .filter_map(|seed| machine(seed, kind).causes.first().map(|cause| cause.multiple))
            .collect();
        assert!(multiples.iter().any(|m| *m < SILENT) && multiples.iter().any(|m| *m > 5.0));
        assert!(multiples.iter().all(|m| (0.25..=100.0).contains(m)), "{multiples:?}");
    }
}
