//! A system call that does nothing.

use crate::call_cost::{Call, Load};
use crate::error::ProbeError;
use crate::probe::{Contrast, EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::summary::Figures;
use crate::tracer::{TRACERS, Tracer, UNTRACED, USUAL, child, cost, costs, note_lookers};
use crate::words::time;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "syscall",
    about: "A system call that does nothing: what the way into the kernel and back costs, with and without somebody who looks",
    manual: "Makes one call over and over that the kernel answers without work: getppid on Linux and macOS, GetPriorityClass on Windows \
             (NtQueryInformationProcess for two bytes of the own process; calls like GetTickCount are no system calls, and closing an invalid \
             handle is an error that products look at). What is left is the price of the way itself, and of all who look at each call: \
             tracers, audit rules, security products, seccomp filters of containers, mitigations of the processor.\n\n\
             The figure is the time of a thread for one call, on the clock, less time in the run queue where the system tells that. The \
             percentiles are of time on the clock, run queue included, over lots of 64 calls.\n\n\
             How to read it: 50 to 200 ns is usual for an untraced call in a machine of today, also in a virtual one. Several hundred \
             mean that somebody looks at each call. The tracers are there to compare with: measured on one machine, a filter of \
             seccomp cost some 100 ns, tracefs 300 ns, strace 20,000 ns.\n\n\
             Tracers (Linux): strace of all calls; strace of another call with --seccomp-bpf; 1, 4, 16 seccomp filters of 200 instructions \
             that look at an argument (kernels since 5.11 answer filters that look at the number only from a table, for nothing); \
             tracefs only if asked for (--set tracer=none,tracefs, needs root), since it slows all programs for some hundred milliseconds. It \
             gets a trace buffer of its own that is removed again. strace and seccomp act on a child process only.\n\n\
             What fools it: programs pay for what their calls do, too; a product that adds 1 us to each call is heavy for a program with \
             100,000 small calls a second and nothing for others.",
    systems: EVERYWHERE,
    parameters: &[
        Parameter::number("ms", "How long each case calls", "ms", (300, 100), (10, 60_000)),
        Parameter::number("repeat", "Times that each case is measured in a round", "", (5, 3), (1, 1000)),
        Parameter::choice("tracer", "Who looks at the calls", USUAL, TRACERS),
    ],
    grows: Grows::No,
    n_is: "",
    contrasts: &[
        Contrast {
            title: "strace against none",
            dear: ("", "strace"),
            cheap: ("", UNTRACED),
            meaning: "What a tracer that stops the program at each call costs.",
        },
        Contrast {
            title: "16 seccomp filters against none",
            dear: ("", "16 seccomp filters"),
            cheap: ("", UNTRACED),
            meaning: "What filters cost that look at the arguments of each call.",
        },
    ],
    run,
    child: Some(child),
    conclude,
};

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    note_lookers(run);
    let mut tracers: Vec<Tracer> =
        run.words("tracer").iter().filter_map(|word| Tracer::named(word)).collect();
    if run.round() % 2 == 1 {
        tracers.reverse();
    }
    let (ms, repeat) = (run.number("ms"), run.number("repeat"));
    // In turns, so that what changes with time meets all of them.
    for turn in 0..repeat {
        let mut missing = Vec::new();
        for (done, &tracer) in tracers.iter().enumerate() {
            let total = repeat.saturating_mul(tracers.len() as u64);
            run.progress(&tracer.variant(), turn * tracers.len() as u64 + done as u64, total);
            let start_ns = run.since_start();
            let load = Load { call: Call::Null, threads: 1, ms: (ms / repeat).max(10) };
            let Some(cost) = cost(run, load, tracer)? else {
                missing.push(tracer);
                continue;
            };
            let case = Case::new(Call::Null.name()).when(tracer.variant());
            let blank = run.sample(case, start_ns, 0, &Default::default(), &Default::default());
            run.push(cost.sample(blank));
        }
        tracers.retain(|tracer| !missing.contains(tracer));
    }
    Ok(())
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let plain = figures.all().iter().find(|one| one.key.variant == UNTRACED).map(|one| one.median);
    let mut sentences = Vec::new();
    if let Some(ns) = plain {
        sentences.push(format!(
            "{}: {} a call, so a processor makes {:.1} million a second and does nothing else.",
            Call::Null.name(),
            time(ns),
            1e3 / ns.max(1.0)
        ));
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
    fn it_measures_and_says_what_it_left_out() {
        let options = Options {
            child: vec!["/no/such/program".into()],
            ..options(&std::env::temp_dir(), &[("ms", "20"), ("repeat", "2"), ("tracer", "none,seccomp-1")])
        };
        let made = made(&PROBE, &options);
        assert_eq!(made.samples.len(), 2);
        assert!(made.notes.iter().any(|note| note.starts_with("1 seccomp filter: ")), "{:?}", made.notes);
        assert_eq!(conclude(&made.samples).len(), 1);
    }
}
