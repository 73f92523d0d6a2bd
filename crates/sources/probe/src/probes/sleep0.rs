//! Giving the processor away for nothing.

use crate::call_cost::{Call, Load};
use crate::error::ProbeError;
use crate::probe::{Contrast, EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::summary::Figures;
use crate::tracer::{TRACERS, Tracer, UNTRACED, child, cost, costs, note_lookers};
use crate::words::time;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "sleep0",
    about: "Sleep(0), SwitchToThread, sched_yield: what a call costs with 1 to many threads, and with a tracer on",
    manual: "Spin locks of many libraries give the processor away when they have waited a little: with Sleep(0) or SwitchToThread on \
             Windows, with sched_yield elsewhere. Where nobody else is ready the call comes back at once, so a lock that \
             is held for long makes millions of them. The probe does the same, with 1, 2, 4, … threads up to twice as many as there \
             are processors, and again with a tracer on.\n\n\
             The figure is the time of a thread for one call: time on the clock less time in the run queue (where the system tells \
             that; else it is in it). CPU time stands beside it. It is not CPU time alone, since a tracer like strace stops the thread \
             while it works. The percentiles are of time on the clock, run queue included, over lots of 64 calls.\n\n\
             How to read it: some 100 ns to 1 us a call is usual. More means that somebody looks at each call: a tracer of system \
             calls, a security product that hooks them, an audit rule. On a server such a hook made Sleep(0) 33 times as \
             expensive, and 60 % of all processors went into it.\n\n\
             Tracers (Linux): strace of all calls, and strace of another call with --seccomp-bpf, which leaves this one alone; filters of \
             seccomp, 200 instructions each, that look at an argument and allow everything; tracefs, the kernel's own tracer, only \
             if asked for (--set tracer=none,tracefs, needs root): it slows all programs while it is on, for some hundred milliseconds, \
             and is taken off again. strace and seccomp act on a child process of the probe only.\n\n\
             What fools it: on a busy machine the call really gives the processor away. That time is in the run queue and left out, yet \
             caches are cold afterwards.",
    systems: EVERYWHERE,
    parameters: &[
        Parameter::number("ms", "How long each case calls", "ms", (300, 100), (10, 60_000)),
        Parameter::number("threads", "Most threads at once; 0: twice the processors", "", (0, 0), (0, 4096)),
        Parameter::choice("tracer", "Who looks at the calls", DEFAULT, TRACERS),
    ],
    grows: Grows::No,
    n_is: "threads",
    contrasts: &[Contrast {
        title: "strace against none",
        dear: ("", "strace"),
        cheap: ("", UNTRACED),
        meaning: "What a tracer that stops the program at each call costs.",
    }],
    run,
    child: Some(child),
    conclude,
};

const DEFAULT: &str = if cfg!(target_os = "linux") { "none,strace" } else { "none" };

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    note_lookers(run);
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let most = match run.number("threads") {
        0 => processors.saturating_mul(2),
        set => set,
    };
    let mut cases = Vec::new();
    for word in run.words("tracer") {
        let Some(tracer) = Tracer::named(&word) else { continue };
        for &call in Call::OF_SPINNERS {
            cases.extend(steps(processors, most).into_iter().map(|threads| (tracer, call, threads)));
        }
    }
    if run.round() % 2 == 1 {
        cases.reverse();
    }
    let ms = run.number("ms");
    for (done, &(tracer, call, threads)) in cases.iter().enumerate() {
        run.progress(&format!("{}, {threads} threads", tracer.variant()), done as u64, cases.len() as u64);
        let start_ns = run.since_start();
        let Some(cost) = cost(run, Load { call, threads, ms }, tracer)? else { continue };
        let case = Case::new(call.name()).when(tracer.variant()).at(threads as f64);
        let blank = run.sample(case, start_ns, 0, &Default::default(), &Default::default());
        run.push(cost.sample(blank));
    }
    Ok(())
}

/// 1, 2, 4, … up to `most`, with the number of processors and `most` among them.
fn steps(processors: u64, most: u64) -> Vec<u64> {
    let doubled = std::iter::successors(Some(1_u64), |n| n.checked_mul(2));
    let mut steps: Vec<u64> = doubled.take_while(|&n| n < most).collect();
    steps.extend([processors.min(most), most]);
    steps.sort_unstable();
    steps.dedup();
    steps
}

fn threads(n: Option<f64>) -> String {
    match n.unwrap_or(1.0) {
        1.0 => "one thread".to_owned(),
        n => format!("{} threads", crate::amount::size(n)),
    }
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let mut sentences = Vec::new();
    let figures = Figures::from_samples(samples);
    for call in Call::OF_SPINNERS {
        let plain = figures.by_size(call.name(), UNTRACED);
        if let (Some(one), Some(many)) = (plain.first(), plain.last()) {
            sentences.push(format!(
                "{}: {} a call with {}, {} with {} at once.",
                call.name(),
                time(one.median),
                threads(one.key.n),
                time(many.median),
                threads(many.key.n)
            ));
        }
    }
    sentences.extend(costs(samples));
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Options;
    use crate::support::{made, options};

    #[test]
    fn threads_double_and_the_processors_are_among_them() {
        assert_eq!(steps(2, 4), [1, 2, 4]);
        assert_eq!(steps(6, 12), [1, 2, 4, 6, 8, 12]);
        assert_eq!(steps(64, 1), [1]);
    }

    #[test]
    fn it_measures_each_number_of_threads() {
        let options = Options {
            rounds: 2,
            ..options(&std::env::temp_dir(), &[("ms", "10"), ("threads", "4"), ("tracer", "none")])
        };
        let made = made(&PROBE, &options);
        assert!(made.samples.len() >= 6, "{:?}", made.samples);
        assert!(made.samples.iter().all(|s| s.value > 0.0 && s.operations > 0));
        assert!(conclude(&made.samples).iter().any(|sentence| sentence.contains("with 4 threads at once")));
    }
}
