//! Worker pools that spin when they have nothing to do.

use crate::child::ask;
use crate::error::ProbeError;
use crate::omp::{ADVICE, Answer, SETTINGS, Setting, Window, Work, child, command, find, variables_here};
use crate::probe::{Contrast, EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::words::time;
use etwhy_stats::percentile::median;
use std::time::Duration;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "spin",
    about: "OpenMP worker pools that have nothing to do: the CPU that they burn, and the setting that ends it",
    manual: "A child process loads an OpenMP runtime of this machine (GCC's libgomp, LLVM's libomp, Intel's libiomp5, Microsoft's vcomp140), \
             and every 200 ms runs a parallel region in which nobody does anything. What it burns in between are workers that wait \
             for the next region in a loop instead of asleep. The figure is CPU time for each region, all threads together.\n\n\
             It does so with several settings, each in a child of its own: none; OMP_WAIT_POLICY=passive and active; KMP_BLOCKTIME=0 and \
             200 (LLVM and Intel: milliseconds that workers spin after a region; 200 unless set); GOMP_SPINCOUNT=0 (GCC: turns of \
             the loop). Variables of that kind that are set where etwhy was started are taken away from the children.\n\n\
             How to read it: with 200 ms between regions, workers that spin for 200 ms never sleep, and a program that calls one \
             small parallel region now and then keeps all processors busy. The price of sleeping is in the percentiles, which are of \
             something else than the figure: the time that a region takes on the clock, workers to be woken included.\n\n\
             What fools it: on a busy machine spinning workers do not get the processor; CPU time is a lower bound then, and time \
             in the run queue, which stands beside it on Linux, is what they would have burnt. On Windows CPU time is counted in ticks of \
             15.6 ms. Whether a program of yours is bound to one of these runtimes its list of modules tells.",
    systems: EVERYWHERE,
    parameters: &[
        Parameter::text(
            "runtime",
            "Path or name of the runtime; none: those that the loader and the usual folders have",
            "",
        ),
        Parameter::number("regions", "Parallel regions with each setting", "regions", (15, 5), (2, 100_000)),
        Parameter::number("every", "Time between them", "ms", (200, 200), (1, 10_000)),
        Parameter::number("threads", "Threads of a region; 0: as many as processors", "", (0, 0), (0, 1024)),
        Parameter::choice("settings", "Settings that are tried", ALL, WORDS),
    ],
    grows: Grows::No,
    n_is: "",
    contrasts: &[
        Contrast {
            title: "no setting against OMP_WAIT_POLICY=passive",
            dear: ("", "no setting"),
            cheap: ("", "OMP_WAIT_POLICY=passive"),
            meaning: "What workers burn that wait awake.",
        },
        Contrast {
            title: "KMP_BLOCKTIME=200 against 0",
            dear: ("", "KMP_BLOCKTIME=200"),
            cheap: ("", "KMP_BLOCKTIME=0"),
            meaning: "What workers burn that stay awake for 200 ms after each region.",
        },
    ],
    run,
    child: Some(child),
    conclude,
};

const ALL: &str = "default,passive,active,blocktime-0,blocktime-200,spincount-0";
const WORDS: &[&str] = &["default", "passive", "active", "blocktime-0", "blocktime-200", "spincount-0"];

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let given = run.text("runtime").to_owned();
    let found = find(run, &given)?;
    if found.runtimes.is_empty() {
        return Err(ProbeError::Impossible(format!(
            "no OpenMP runtime was found: {ADVICE}; --set runtime=PATH names another. Looked for {}",
            found.missing.join("; ")
        )));
    }
    let here = variables_here();
    if !here.is_empty() {
        run.note(format!("{} is set here and was taken away for the measurement", here.join(", ")));
    }
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let threads = match run.number("threads") {
        0 => processors,
        set => set,
    };
    if threads < 2 {
        return Err(ProbeError::Impossible(
            "with one thread there are no workers that could spin; --set threads=2 makes one".to_owned(),
        ));
    }
    let words = run.words("settings");
    let mut cases: Vec<_> = found
        .runtimes
        .iter()
        .flat_map(|(path, kind)| SETTINGS.iter().map(move |setting| (path, *kind, setting)))
        .filter(|(_, kind, setting)| setting.suits(*kind) && words.iter().any(|word| word == setting.word))
        .collect();
    if run.round() % 2 == 1 {
        cases.reverse();
    }
    let work = Work { threads, every_ms: run.number("every"), regions: run.number("regions") };
    let limit = Duration::from_millis(work.every_ms.saturating_mul(work.regions + 1).saturating_mul(4))
        .saturating_add(Duration::from_secs(30));
    for (done, (path, _, setting)) in cases.iter().enumerate() {
        run.progress(&setting.variant(), done as u64, cases.len() as u64);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let start_ns = run.since_start();
        let mut command = command(run, path, work, Some(setting));
        match ask::<Answer>(run, &mut command, limit)? {
            Ok(answer) => {
                answer.windows.iter().for_each(|window| keep(run, &name, setting, window, start_ns));
            }
            Err(silent) => run.note(format!("{name}, {}: left out: {silent}", setting.variant())),
        }
    }
    Ok(())
}

fn keep(run: &mut Run<'_>, name: &str, setting: &Setting, window: &Window, start_ns: u64) {
    let case = Case::new(format!("empty region, {name}")).when(setting.variant());
    let blank = run.sample(case, start_ns, window.regions, &Default::default(), &Default::default());
    run.push(filled(window, blank));
}

/// The figure is CPU time; the percentiles are what regions take on the clock.
fn filled(window: &Window, blank: Sample) -> Sample {
    let [p50_ns, p95_ns, p99_ns, max_ns] = window.laps;
    Sample {
        value: window.cpu_ns as f64 / window.regions.max(1) as f64,
        unit: "ns".to_owned(),
        wall_ns: window.wall_ns,
        cpu_ns: Some(window.cpu_ns),
        queue_ns: window.queue_ns,
        p50_ns,
        p95_ns,
        p99_ns,
        max_ns,
        percentiles_apart: true,
        ..blank
    }
}

/// Share of a processor from which on workers are said to burn it.
const BURNS: f64 = 0.02;

fn conclude(samples: &[Sample]) -> Vec<String> {
    let mut measures: Vec<&str> = samples.iter().map(|s| s.case.measure.as_str()).collect();
    measures.sort_unstable();
    measures.dedup();
    measures.into_iter().filter_map(|measure| sentence(samples, measure)).collect()
}

/// What one setting costs: share of a processor burnt, share that it would burn if it got it, typical time of a region.
struct Costs<'a> {
    variant: &'a str,
    burnt: f64,
    wanted: f64,
    region_ns: f64,
}

fn sentence(samples: &[Sample], measure: &str) -> Option<String> {
    let mut variants: Vec<&str> = Vec::new();
    for sample in samples.iter().filter(|s| s.case.measure == measure) {
        if !variants.contains(&sample.case.variant.as_str()) {
            variants.push(&sample.case.variant);
        }
    }
    let costs: Vec<Costs<'_>> =
        variants.iter().filter_map(|variant| costs(samples, measure, variant)).collect();
    let plain = costs.iter().find(|c| c.variant == "no setting").or_else(|| costs.first())?;
    let library = measure.strip_prefix("empty region, ").unwrap_or(measure);
    let queue = if plain.wanted > plain.burnt * 1.2 + BURNS {
        format!(" (this machine was busy; alone it would be up to {:.0} %)", plain.wanted * 100.0)
    } else {
        String::new()
    };
    if plain.burnt < BURNS {
        return Some(format!(
            "{library}: idle workers burn next to nothing with {} ({} of a processor){queue}.",
            plain.variant,
            little(plain.burnt)
        ));
    }
    let watts = etwhy_knowledge::watt_groups().first().map_or_else(String::new, |group| {
        format!(
            ", some {:.1} W ({:.1} to {:.1} W by the kind of machine)",
            group.p50 * plain.burnt,
            group.p10 * plain.burnt,
            group.p90 * plain.burnt
        )
    });
    // All that end it, the cheapest first: they differ by noise only.
    let mut ends: Vec<&Costs<'_>> =
        costs.iter().filter(|c| c.burnt < BURNS / 2.0 && c.burnt < plain.burnt / 4.0).collect();
    ends.sort_by(|a, b| a.burnt.total_cmp(&b.burnt));
    let cure = match ends.first() {
        Some(best) => format!(
            " {} {} it: {} of a processor; a region then takes {} instead of {}.",
            ends.iter().map(|c| c.variant).collect::<Vec<_>>().join(" or "),
            if ends.len() == 1 { "ends" } else { "end" },
            little(best.burnt),
            time(best.region_ns),
            time(plain.region_ns)
        ),
        None => " None of the settings that were tried ends it.".to_owned(),
    };
    Some(format!(
        "{library}: with {} its workers burn {:.0} % of a processor while there is nothing to do{queue}{watts}.{cure}",
        plain.variant,
        plain.burnt * 100.0
    ))
}

/// A small share: what rounds to nothing is not known to be nothing.
fn little(share: f64) -> String {
    if share < 0.0005 { "less than 0.1 %".to_owned() } else { format!("{:.1} %", share * 100.0) }
}

fn costs<'a>(samples: &[Sample], measure: &str, variant: &'a str) -> Option<Costs<'a>> {
    let of_case = || samples.iter().filter(|s| s.case.measure == measure && s.case.variant == variant);
    let share = |ns: u64, sample: &Sample| ns as f64 / sample.wall_ns.max(1) as f64;
    let typical = |value: &dyn Fn(&Sample) -> f64| median(&mut of_case().map(value).collect::<Vec<f64>>());
    Some(Costs {
        variant,
        burnt: typical(&|s| share(s.cpu_ns.unwrap_or(0), s))?,
        wanted: typical(&|s| share(s.cpu_ns.unwrap_or(0).saturating_add(s.queue_ns.unwrap_or(0)), s))?,
        region_ns: typical(&|s| s.p50_ns.unwrap_or(0) as f64)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(variant: &str, cpu_ms: u64, queue_ms: u64, region_us: u64) -> Sample {
        Sample {
            case: Case::new("empty region, libx.so").when(variant),
            operations: 5,
            wall_ns: 1_000_000_000,
            cpu_ns: Some(cpu_ms * 1_000_000),
            queue_ns: Some(queue_ms * 1_000_000),
            p50_ns: Some(region_us * 1000),
            ..Sample::default()
        }
    }

    #[test]
    fn the_setting_that_ends_it_is_named() {
        let samples = [sample("no setting", 500, 480, 5), sample("KMP_BLOCKTIME=0", 1, 0, 60)];
        let sentences = conclude(&samples);
        assert_eq!(sentences.len(), 1);
        for part in [
            "libx.so: with no setting its workers burn 50 % of a processor",
            "busy; alone it would be up to 98 %",
            "KMP_BLOCKTIME=0 ends it: 0.1 % of a processor; a region then takes 60 µs instead of 5 µs",
            // Half of the 3.66 W that half of all machines stay below.
            "some 1.8 W",
        ] {
            assert!(sentences[0].contains(part), "{part}: {}", sentences[0]);
        }
    }

    #[test]
    fn what_is_compared_is_cpu_time() {
        // Workers that spin burn 200 ms a region and answer in 5 us; those that sleep burn nothing and answer in 60 us.
        let samples: Vec<Sample> =
            [("no setting", 200_000_000, 5_000), ("OMP_WAIT_POLICY=passive", 50_000, 60_000)]
                .into_iter()
                .map(|(variant, cpu_ns, region_ns): (&str, u64, u64)| {
                    let window = Window {
                        regions: 5,
                        wall_ns: 1_000_000_000,
                        cpu_ns: 5 * cpu_ns,
                        queue_ns: None,
                        laps: [Some(region_ns); 4],
                    };
                    let case = Case::new("empty region, libx.so").when(variant);
                    filled(&window, Sample { case, operations: 5, ..Sample::default() })
                })
                .collect();
        let result = crate::outcome::ProbeOutcome { probe: "spin".into(), samples, ..Default::default() };
        let against = crate::compare::contrasts(&result);
        let [one] = against.as_slice() else { panic!("{against:?}") };
        assert_eq!(one.difference.typical, [50_000.0, 200_000_000.0]);
        assert!(one.difference.ratio.unwrap().value > 1_000.0);
    }

    #[test]
    fn workers_that_sleep_are_not_accused() {
        let sentences =
            conclude(&[sample("no setting", 2, 0, 60), sample("OMP_WAIT_POLICY=passive", 1, 0, 60)]);
        assert!(sentences[0].contains("burn next to nothing"), "{}", sentences[0]);
    }
}
