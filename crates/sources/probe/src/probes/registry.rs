//! Reading the registry of Windows.

use crate::error::ProbeError;
use crate::probe::{Contrast, Grows, Parameter, Probe, System};
use crate::run::Run;
use crate::sample::Sample;
use crate::summary::Figures;
use crate::words::time;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "registry",
    about: "Registry reads: a value of an open key, with opening, missing ones, the user's key, texts in a language, counters",
    manual: "Reads the same few values of the registry again and again, one call after the other on one thread; nothing is written. \
             Each kind of read is what programs do: a value of a key that stays open; the key opened and closed around each read; \
             a key and a value that do not exist (programs ask for defaults that nobody has set); a key below \
             HKEY_CURRENT_USER, which Windows finds by the thread's user; a text like `@tzres.dll,-930`, for which Windows looks up \
             the language and loads a library (RegLoadMUIString); and an object of HKEY_PERFORMANCE_DATA, which is no key at all \
             but makes Windows collect counters. The figure is what one of them took.\n\n\
             A security product that registers for registry callbacks sees every one of these calls; so does registry tracing, \
             which slowed programs by up to 40 % where it was measured. Compare a run with it and one without.\n\n\
             What fools it: values are read again and again, so they are in memory. First reads after a start cost more.\n\n\
             Why it matters: formatting one event log message made about 13 registry reads to find the language; 60,232 messages \
             made over 800,000.",
    systems: &[System::Windows],
    parameters: &[Parameter::number(
        "reads",
        "Reads of each kind; texts in a language are a tenth of it, counters a two-hundredth",
        "reads",
        (20_000, 2_000),
        (200, 10_000_000),
    )],
    grows: Grows::No,
    n_is: "",
    contrasts: &[
        Contrast {
            title: "key opened for each read against key kept open",
            dear: (OPEN_READ, ""),
            cheap: (READ, ""),
            meaning: "What opening and closing a key adds to each read.",
        },
        Contrast {
            title: "user's key against the machine's",
            dear: (OPEN_USER, ""),
            cheap: (OPEN_MACHINE, ""),
            meaning: "What finding the user's part of the registry adds to opening a key.",
        },
        Contrast {
            title: "text in the user's language against plain text",
            dear: (LANGUAGE, ""),
            cheap: (READ, ""),
            meaning: "What looking up the language and its library adds to reading a text.",
        },
    ],
    run,
    child: None,
    conclude,
};

const READ: &str = "read, key open";
const OPEN_READ: &str = "open, read, close";
const NO_KEY: &str = "open a missing key";
const NO_VALUE: &str = "read a missing value";
const OPEN_MACHINE: &str = "open and close, machine";
const OPEN_USER: &str = "open and close, user";
const LANGUAGE: &str = "text in the user's language";
#[cfg_attr(not(windows), allow(dead_code, reason = "only Windows has counters"))]
const COUNTERS: &str = "performance data";

/// Registry reads that `FormatMessage` of the Event Log service made for each message, where it was measured.
const READS_PER_MESSAGE: f64 = 13.0;

#[cfg(not(windows))]
fn run(_: &mut Run<'_>) -> Result<(), ProbeError> {
    Err(ProbeError::Impossible("only Windows has a registry".to_owned()))
}

#[cfg(windows)]
fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    windows::run(run)
}

#[cfg(windows)]
mod windows {
    use super::{COUNTERS, LANGUAGE, NO_KEY, NO_VALUE, OPEN_MACHINE, OPEN_READ, OPEN_USER, READ};
    use crate::clock::nanos;
    use crate::error::ProbeError;
    use crate::run::Run;
    use crate::sample::Case;
    use etwhy_os::windows::registry::{Key, Name, Root, is_too_small, read_of};
    use std::io;
    use std::time::Instant;

    /// Every Windows has it, and everybody may read it.
    const VERSION: &str = "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion";
    /// Has a text that stands for another in each language: `MUI_Display` of each time zone.
    const ZONE: &str = "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Time Zones\\UTC";
    /// The object `System` of the counters.
    const OBJECT: &str = "2";
    /// Room for an object of the counters; the system's own have some KB.
    const MOST_BYTES: usize = 16 << 20;

    type Read<'a> = Box<dyn FnMut() -> io::Result<()> + 'a>;

    pub(super) fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
        let reads = run.number("reads");
        let name = |text: &str| Name::new(text).map_err(ProbeError::system(format!("the name {text}")));
        let (version, zone, build) = (name(VERSION)?, name(ZONE)?, name("CurrentBuild")?);
        let (missing, user, software) =
            (name("No such thing 4F1C")?, name("Control Panel")?, name("SOFTWARE")?);
        let (display, object) = (name("MUI_Display")?, name(OBJECT)?);
        let refused = |path: &str| ProbeError::system(format!("HKLM\\{path} cannot be opened"));
        let open = Key::open(Root::Machine, &version).map_err(refused(VERSION))?;
        let zone = Key::open(Root::Machine, &zone);
        let (mut bytes, mut text, mut data) = ([0_u8; 256], [0_u16; 512], vec![0_u8; 64 << 10]);
        let mut again = bytes;

        let mut kinds: Vec<(&str, u64, Read<'_>)> = vec![
            (READ, reads, Box::new(|| open.read(&build, &mut bytes).map(drop))),
            (
                OPEN_READ,
                reads,
                Box::new(|| Key::open(Root::Machine, &version)?.read(&build, &mut again).map(drop)),
            ),
            (NO_KEY, reads, Box::new(|| absent(Key::open(Root::Machine, &missing).map(drop)))),
            (NO_VALUE, reads, Box::new(|| absent(open.read(&missing, &mut [0; 4]).map(drop)))),
            (OPEN_MACHINE, reads, Box::new(|| Key::open(Root::Machine, &software).map(drop))),
            (OPEN_USER, reads, Box::new(|| Key::open(Root::User, &user).map(drop))),
        ];
        if let Ok(zone) = &zone {
            kinds.push((LANGUAGE, reads / 10, Box::new(|| zone.in_language(&display, &mut text).map(drop))));
        }
        kinds.push((COUNTERS, (reads / 200).max(5), Box::new(|| collect(&object, &mut data))));
        if run.round() % 2 == 1 {
            kinds.reverse();
        }
        let all = kinds.len() as u64;
        for (n, (kind, times, mut read)) in kinds.into_iter().enumerate() {
            run.progress(kind, n as u64, all);
            // What cannot be read here is told once and left out: other kinds still say something.
            if let Err(error) = read() {
                run.note(format!("{kind}: left out, it fails here: {error}"));
                continue;
            }
            run.measure(Case::new(kind), |run, laps| {
                let mut failures = 0;
                for n in 0..times {
                    if n % 64 == 0 {
                        run.goes_on()?;
                    }
                    let start = Instant::now();
                    let result = read();
                    laps.push(nanos(start));
                    failures += u64::from(result.is_err());
                }
                Ok((times, failures))
            })?;
        }
        Ok(())
    }

    /// Something must be missing.
    fn absent(result: io::Result<()>) -> io::Result<()> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => Err(io::Error::other("it exists")),
        }
    }

    /// Asks for an object of the counters, with as much room as it needs.
    fn collect(object: &Name, data: &mut Vec<u8>) -> io::Result<()> {
        loop {
            match read_of(Root::Performance, object, data) {
                Err(error) if is_too_small(&error) && data.len() < MOST_BYTES => {
                    data.resize(data.len() * 2, 0);
                }
                // PERF_DATA_BLOCK begins with `PERF` in UTF-16 (winperf.h).
                Ok((_, len)) if len < 8 || !data.starts_with(&[b'P', 0, b'E', 0, b'R', 0, b'F', 0]) => {
                    return Err(io::Error::other("no counters come"));
                }
                result => return result.map(drop),
            }
        }
    }
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let middle =
        |measure: &str| figures.all().iter().find(|one| one.key.measure == measure).map(|one| one.median);
    let mut said = Vec::new();
    if let Some(read) = middle(READ) {
        let opened = middle(OPEN_READ)
            .map_or(String::new(), |ns| format!(", {} with opening and closing its key", time(ns)));
        said.push(format!(
            "A value of an open key took {}{opened}: {} reads/s.",
            time(read),
            (1e9 / read.max(f64::MIN_POSITIVE)).round()
        ));
    }
    if let (Some(key), Some(value)) = (middle(NO_KEY), middle(NO_VALUE)) {
        said.push(format!("To learn that a key is missing took {}, a value {}.", time(key), time(value)));
    }
    if let (Some(user), Some(machine)) = (middle(OPEN_USER), middle(OPEN_MACHINE)) {
        said.push(format!(
            "To open a key of the user took {}, one of the machine {}.",
            time(user),
            time(machine)
        ));
    }
    if let Some(text) = middle(LANGUAGE) {
        said.push(format!("A text in the user's language took {}.", time(text)));
    }
    if let Some(ns) = middle(OPEN_READ) {
        said.push(format!(
            "An event log message whose text costs {READS_PER_MESSAGE} such reads pays {} for them.",
            time(ns * READS_PER_MESSAGE)
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Made, Options};
    use crate::sample::Case;
    use crate::support::{options, tried};

    fn made() -> Made {
        let options = Options { rounds: 2, ..options(&std::env::temp_dir(), &[("reads", "200")]) };
        tried(&PROBE, &options)
    }

    #[test]
    #[cfg(windows)]
    fn each_kind_is_read_in_each_round_or_left_out_with_a_reason() {
        let made = made();
        assert!(made.error.is_none(), "{:?}", made.error);
        for kind in [READ, OPEN_READ, NO_KEY, NO_VALUE, OPEN_MACHINE] {
            let of: Vec<&Sample> = made.samples.iter().filter(|s| s.case.measure == kind).collect();
            assert_eq!(of.len(), 2, "{kind}: {:?}", made.notes);
            assert!(
                of.iter().all(|s| s.operations == 200 && s.failures == 0 && s.p50_ns.is_some()),
                "{of:?}"
            );
        }
        for kind in [OPEN_USER, LANGUAGE, COUNTERS] {
            let measured = made.samples.iter().any(|s| s.case.measure == kind);
            assert!(measured || made.notes.iter().any(|note| note.starts_with(kind)) || kind == LANGUAGE);
        }
        assert_eq!(made.samples.first().unwrap().case.measure, READ);
        assert_eq!(made.samples.last().unwrap().case.measure, READ, "the second round goes backwards");
    }

    #[test]
    #[cfg(not(windows))]
    fn elsewhere_it_says_so() {
        let made = made();
        assert!(made.samples.is_empty());
        assert!(made.error.unwrap().to_string().contains("only Windows"));
    }

    #[test]
    fn sentences_are_about_the_median() {
        let sample =
            |measure: &str, value: f64| Sample { case: Case::new(measure), value, ..Sample::default() };
        let samples =
            [sample(READ, 900.0), sample(READ, 500.0), sample(READ, 400.0), sample(OPEN_READ, 4_000.0)];
        let said = conclude(&samples).join(" ");
        assert!(said.contains("500 ns, 4 µs") && said.contains("2000000 reads/s"), "{said}");
        assert!(said.contains("pays 52 µs"), "{said}");
        assert!(conclude(&[]).is_empty());
    }
}
