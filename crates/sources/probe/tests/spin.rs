//! Idle workers of OpenMP: the setting that ends the spinning is seen to end it.
//!
//! A process of its own: its workers take all processors.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use etwhy_probe::Options;
use etwhy_probe::run::Made;

fn run(set: &[(&str, &str)]) -> Made {
    let options = Options {
        child: vec![env!("CARGO_BIN_EXE_probe-child").into()],
        ..support::options(&std::env::temp_dir(), set)
    };
    support::tried(support::probe("spin"), &options)
}

/// CPU time of all regions, and that with what workers waited for a processor.
fn burnt(made: &Made, library: &str, variant: &str) -> (f64, f64) {
    let measure = format!("empty region, {library}");
    let of_case = made.samples.iter().filter(|s| s.case.measure == measure && s.case.variant == variant);
    let sums = of_case.map(|s| (s.cpu_ns.unwrap_or(0), s.cpu_ns.unwrap_or(0) + s.queue_ns.unwrap_or(0)));
    let (cpu, wanted) = sums.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    (cpu as f64 / 1e6, wanted as f64 / 1e6)
}

#[test]
fn blocktime_200_against_0_shows_the_burnt_cpu() {
    let made = run(&[
        ("runtime", "libomp.so.5"),
        ("regions", "10"),
        ("threads", "2"),
        ("settings", "default,blocktime-0,blocktime-200,passive"),
    ]);
    if let Some(error) = made.error {
        etwhy_testkit::skipped(error.to_string().lines().next().unwrap_or_default());
        return;
    }
    let (zero, _) = burnt(&made, "libomp.so.5", "KMP_BLOCKTIME=0");
    let (passive, _) = burnt(&made, "libomp.so.5", "OMP_WAIT_POLICY=passive");
    let (full, wanted) = burnt(&made, "libomp.so.5", "KMP_BLOCKTIME=200");
    println!(
        "libomp.so.5, 10 regions: blocktime 0 {zero:.1} ms, passive {passive:.1} ms, 200 {full:.0} ms (wanted {wanted:.0})"
    );
    // Elsewhere: 2.8 ms against 2033 ms in 4 s, 700 times.
    assert!(full > 50.0 * zero, "{full} ms against {zero} ms");
    // Ten regions, 200 ms apart, one worker: two seconds, whether the machine lets it or not.
    assert!(wanted > 1500.0, "{wanted} ms");
    assert!(passive < full / 20.0, "{passive} ms");
    let sentences = (support::probe("spin").conclude)(&made.samples);
    println!("{}", sentences.join("\n"));
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(sentences[0].contains("KMP_BLOCKTIME=0"), "{sentences:?}");
}

#[test]
fn libgomp_spins_less_when_told_so() {
    let made = run(&[
        ("runtime", "libgomp.so.1"),
        ("regions", "10"),
        ("threads", "2"),
        ("settings", "active,passive,spincount-0"),
    ]);
    if let Some(error) = made.error {
        etwhy_testkit::skipped(error.to_string().lines().next().unwrap_or_default());
        return;
    }
    let (active, wanted) = burnt(&made, "libgomp.so.1", "OMP_WAIT_POLICY=active");
    let (passive, _) = burnt(&made, "libgomp.so.1", "OMP_WAIT_POLICY=passive");
    let (spincount, _) = burnt(&made, "libgomp.so.1", "GOMP_SPINCOUNT=0");
    println!(
        "libgomp.so.1, 10 regions: active {active:.0} ms (wanted {wanted:.0}), passive {passive:.1} ms, spincount 0 {spincount:.1} ms"
    );
    assert!(active > 20.0 * passive && active > 20.0 * spincount);
}

#[test]
fn where_it_looked_is_said() {
    let made = run(&[("runtime", "/no/such/libomp.so"), ("threads", "2")]);
    let error = made.error.unwrap().to_string();
    assert!(error.contains("no OpenMP runtime was found") && error.contains("/no/such/libomp.so"), "{error}");
    assert!(made.samples.is_empty());
}
