//! Tracers that are put on while calls are measured: their multiples come out.
//!
//! A process of its own: tracers slow down whatever runs in it.
#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(target_os = "linux")]

mod support;

use etwhy_probe::Options;
use etwhy_probe::run::Made;

fn run(probe: &str, set: &[(&str, &str)]) -> Made {
    let options = Options {
        rounds: 2,
        child: vec![env!("CARGO_BIN_EXE_probe-child").into()],
        ..support::options(&std::env::temp_dir(), set)
    };
    support::made(support::probe(probe), &options)
}

/// Median of the values of a variant with one thread.
fn value(made: &Made, variant: &str) -> Option<f64> {
    let one = made.samples.iter().filter(|s| s.case.variant == variant && s.case.n.unwrap_or(1.0) <= 1.0);
    etwhy_stats::percentile::median(&mut one.map(|s| s.value).collect::<Vec<_>>())
}

#[test]
fn strace_costs_a_multiple() {
    for probe in ["syscall", "sleep0"] {
        let made = run(probe, &[("tracer", "none,strace")]);
        let plain = value(&made, "untraced").unwrap();
        let Some(traced) = value(&made, "strace") else {
            etwhy_testkit::skipped(&made.notes.join("; "));
            return;
        };
        println!("{probe}: {plain:.0} ns a call, {traced:.0} ns under strace: {:.1} times", traced / plain);
        // Measured elsewhere: 117 to 243 times for getppid, 21 to 46 times for sched_yield.
        assert!(traced > 5.0 * plain, "{probe}: {plain} ns plain, {traced} ns traced");
    }
}

#[test]
fn filters_cost_what_they_read_and_strace_of_another_call_costs_little() {
    let made = run("syscall", &[("tracer", "none,seccomp-1,seccomp-16,strace-other"), ("ms", "200")]);
    let plain = value(&made, "untraced").unwrap();
    let (Some(one), Some(many)) = (value(&made, "1 seccomp filter"), value(&made, "16 seccomp filters"))
    else {
        etwhy_testkit::skipped(&made.notes.join("; "));
        return;
    };
    println!("getppid: {plain:.0} ns, 1 filter {one:.0} ns, 16 filters {many:.0} ns");
    // Sixteen times 200 instructions are 3,200; no processor does more than 40 in a nanosecond.
    assert!(many > one && many > plain + 80.0, "{plain} {one} {many}");
    if let Some(other) = value(&made, "strace of another call") {
        assert!(other < 5.0 * plain + 1000.0, "{plain} ns plain, {other} ns with strace of another call");
    }
}

#[test]
fn tracefs_is_taken_off_again() {
    let made = run("syscall", &[("tracer", "none,tracefs")]);
    let Some(traced) = value(&made, "tracefs raw_syscalls") else {
        etwhy_testkit::skipped(&made.notes.join("; "));
        return;
    };
    let plain = value(&made, "untraced").unwrap();
    println!("getppid: {plain:.0} ns, {traced:.0} ns with tracefs");
    assert!(traced > plain + 20.0, "{plain} {traced}");
    for root in ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"] {
        let ours = format!("etwhy-probe-{}", std::process::id());
        assert!(!std::path::Path::new(root).join(ours).exists());
    }
}
