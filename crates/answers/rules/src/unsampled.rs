//! Processors that ran threads but of which few or no CPU samples were taken.
//!
//! What ran there is in no sum over samples: such a sum is a lower bound, and what it does not show may still be there. It happens on virtual
//! machines, and where the profile interrupt of a processor is off. Context switches tell these processors from those that only slept.

use etwhy_analysis::derived::machine::{MachineRow, unrecorded_ns};
use etwhy_base::units::duration_ns;
use etwhy_table::Database;
use etwhy_trace::catalog::cpu_time::CpuRow;

/// From this part of the known busy time on, what was not sampled could hide a finding.
const COULD_HIDE: f64 = 0.01;
/// More than this part of a processor's busy time without samples is no bias of sampling.
const LEAST_PART: f64 = 0.5;
/// Standard deviations of a count of samples (Poisson) that are chance.
const DEVIATIONS: f64 = 4.0;
/// Where samples cover less than this part of the time of the processors that have some, idle processors are not sampled, and one without any
/// may have slept. As for the finding `machine.stall`.
const SAMPLED_SHARE: f64 = 0.6;

/// Times of a processor, ns.
#[derive(Clone, Copy, Debug)]
struct Processor {
    /// Threads, DPCs and ISRs, and the idle thread, by context switches.
    switched: Option<(f64, f64)>,
    /// Samples that were not idle, and idle ones.
    sampled: (f64, f64),
}

impl Processor {
    fn samples(self) -> f64 {
        self.sampled.0 + self.sampled.1
    }

    /// For how long threads ran without samples. `still`: for so long the whole machine stood still, with whoever ran at that moment. None of it
    /// if samples of the idle thread make up for it (work in step with the timer of the samples), or if it may be chance.
    fn without_samples(self, interval: f64, still: f64) -> f64 {
        let Some((ran, idle)) = self.switched else { return 0.0 };
        let lacking = (ran - self.sampled.0).min(ran + idle - self.samples()) - still;
        let chance = LEAST_PART * ran + DEVIATIONS * (ran * interval).sqrt();
        if lacking > chance { lacking } else { 0.0 }
    }
}

/// What to say of processors without samples, in words, if it is enough to hide something.
pub(crate) fn read(db: &Database) -> Option<String> {
    let machine = db.read_or_empty::<MachineRow>();
    let machine = machine.first()?;
    let each: Vec<Processor> = db
        .read_or_empty::<CpuRow>()
        .iter()
        .map(|row| Processor {
            switched: row.thread_ns().map(|thread| {
                (thread as f64 + row.dpc_ns() as f64 + row.isr_ns() as f64, row.idle_ns().unwrap_or(0) as f64)
            }),
            sampled: (row.sampled_busy_ns() as f64, row.sampled_idle_ns() as f64),
        })
        .collect();
    let observed = machine.duration_ns().saturating_sub(unrecorded_ns(db));
    let interval = machine.sample_interval_ns().unwrap_or(1_000_000) as f64;
    let still = machine.stood_still_ns().unwrap_or(0) as f64;
    said(&each, usize::try_from(machine.cpus()).unwrap_or(0), observed as f64, interval, still)
}

/// `cpus`: processors of the machine, some of which may have no row. `observed`: for so long kernel events came.
fn said(each: &[Processor], cpus: usize, observed: f64, interval: f64, still: f64) -> Option<String> {
    let sampled: Vec<&Processor> = each.iter().filter(|one| one.samples() > 0.0).collect();
    // No samples at all are another reason, and it is given without this.
    if sampled.is_empty() {
        return None;
    }
    let cpus = cpus.max(each.len());
    if each.iter().any(|one| one.switched.is_some()) {
        let lacking = each.iter().map(|one| one.without_samples(interval, still));
        let lacking: Vec<f64> = lacking.filter(|ns| *ns > 0.0).collect();
        let missing: f64 = lacking.iter().sum();
        let busy: f64 = each.iter().filter_map(|one| Some(one.switched?.0)).sum();
        let hides = !lacking.is_empty() && missing >= COULD_HIDE * busy;
        return hides.then(|| {
            format!(
                "few or no CPU samples were taken on {} of {cpus} processors, where threads ran for {} without",
                lacking.len(),
                duration_ns(missing as i64)
            )
        });
    }
    let bare = cpus.saturating_sub(sampled.len());
    let covered: f64 = sampled.iter().map(|one| one.samples()).sum();
    let hides = bare > 0 && covered >= SAMPLED_SHARE * observed * sampled.len() as f64;
    hides.then(|| {
        format!(
            "no CPU samples were taken on {bare} of {cpus} processors, and without context switches it is not known whether threads ran there"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: f64 = 1e9;
    const MS: f64 = 1e6;

    /// A processor over four seconds: ran by context switches, sampled busy and idle.
    fn one(ran: f64, busy: f64, idle: f64) -> Processor {
        Processor { switched: Some((ran, 4.0 * S - ran)), sampled: (busy, idle) }
    }

    fn of(each: &[Processor], still: f64) -> Option<String> {
        said(each, 0, 4.0 * S, MS, still)
    }

    #[test]
    fn processors_that_ran_threads_without_samples() {
        let full = one(S, S, 3.0 * S);
        assert_eq!(
            of(&[full, one(2.0 * S, 0.0, 0.0)], 0.0).unwrap(),
            "few or no CPU samples were taken on 1 of 2 processors, where threads ran for 2 s without"
        );
        // Sampled for a quarter of the time, then no more.
        assert!(of(&[full, one(2.0 * S, S / 2.0, S / 2.0)], 0.0).is_some());
        // Nothing is missing; idle processors are not sampled; one slept all the time.
        assert_eq!(of(&[full, full], 0.0), None);
        assert_eq!(of(&[one(S, S, 0.0), one(0.0, 0.0, 0.0)], 0.0), None);
        let never_switched = Processor { switched: None, sampled: (0.0, 0.0) };
        assert_eq!(of(&[full, never_switched], 0.0), None);
        // A few milliseconds are chance, and a hundredth of the work hides nothing.
        assert_eq!(of(&[full, one(20.0 * MS, 0.0, 0.0)], 0.0), None);
        let busy = [one(4.0 * S, 4.0 * S, 0.0); 5];
        let most = [busy.as_slice(), &[one(150.0 * MS, 0.0, 0.0)]].concat();
        assert_eq!(of(&most, 0.0), None);
        // Work in step with the timer is never hit, and the idle thread instead.
        assert_eq!(of(&[full, one(S, S / 10.0, 3.9 * S)], 0.0), None);
        // The whole machine stood still while somebody ran.
        assert_eq!(of(&[full, one(3.0 * S, S / 2.0, S)], 2.5 * S), None);
        // No samples at all.
        assert_eq!(of(&[one(S, 0.0, 0.0), one(S, 0.0, 0.0)], 0.0), None);
    }

    #[test]
    fn without_context_switches_a_processor_without_samples_is_not_known_to_be_idle() {
        let sampled = |busy: f64, idle: f64| Processor { switched: None, sampled: (busy, idle) };
        let whole = sampled(S, 3.0 * S);
        let none = sampled(0.0, 0.0);
        assert_eq!(
            of(&[whole, none], 0.0).unwrap(),
            "no CPU samples were taken on 1 of 2 processors, and without context switches it is not known whether threads ran there"
        );
        // One has no row.
        assert!(said(&[whole], 2, 4.0 * S, MS, 0.0).is_some());
        assert_eq!(of(&[whole, whole], 0.0), None);
        // Idle processors are not sampled.
        assert_eq!(of(&[sampled(S, 0.0), none], 0.0), None);
    }
}
