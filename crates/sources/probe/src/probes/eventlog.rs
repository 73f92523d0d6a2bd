//! Reading the event logs of Windows through its API.

use crate::error::ProbeError;
use crate::probe::{Contrast, Grows, Parameter, Probe, System};
use crate::run::Run;
use crate::sample::Sample;
use crate::summary::Figures;
use crate::words::time;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "eventlog",
    about: "Event log: what reading and formatting one record costs with each API of Windows",
    manual: "Reads the first records of a log and times what each API takes for one: the old one (ReadEventLog), which hands over \
             blocks of records; the newer one, step by step (EvtQuery with EvtNext; rendering values; rendering XML; the message \
             with EvtFormatMessage). Messages are formatted twice: with the publisher's metadata kept open, and opened anew for each \
             message, as simple programs do. The log is only read.\n\n\
             The yardstick: 10,000 messages took 1.85 to 1.98 s with the old API, all in; with the newer one 10.4 s \
             (Application) and 129.4 s (Security), where every call formatted all names of tasks. `etwhy evtx why` tells what \
             reading a whole log would take.\n\n\
             What fools it: the log's first records are read in every round, so the file is in memory. Both APIs ask the Event Log \
             service, whose CPU time is not that of this program: it stands among those who were busy meanwhile. This \
             program's own reader of .evtx files takes part in `etwhy evtx`, not here.\n\n\
             It cannot run under Wine, which has no such service. Some logs (Security) are for administrators only.",
    systems: &[System::Windows],
    parameters: &[
        Parameter::text("log", "Log to read", "System"),
        Parameter::number(
            "records",
            "Records to read; with metadata opened anew a twentieth of it",
            "records",
            (5_000, 500),
            (20, 1_000_000),
        ),
    ],
    grows: Grows::No,
    n_is: "",
    contrasts: &[
        Contrast {
            title: "metadata opened for each message against kept open",
            dear: (MESSAGE, ANEW),
            cheap: (MESSAGE, KEPT),
            meaning: "What opening the publisher's metadata adds to each message.",
        },
        Contrast {
            title: "newer API against the old one",
            dear: (NEXT, ""),
            cheap: (OLD, ""),
            meaning: "What fetching a record costs more through EvtNext than through ReadEventLog, without its text.",
        },
    ],
    run,
    child: None,
    conclude,
};

const OLD: &str = "ReadEventLog";
const NEXT: &str = "EvtNext";
const VALUES: &str = "EvtRender values";
const XML: &str = "EvtRender XML";
const MESSAGE: &str = "EvtFormatMessage";
const KEPT: &str = "metadata kept";
const ANEW: &str = "metadata opened anew";

#[cfg(not(windows))]
fn run(_: &mut Run<'_>) -> Result<(), ProbeError> {
    Err(ProbeError::Impossible(
        "only Windows has this API; `etwhy evtx` reads .evtx files everywhere".to_owned(),
    ))
}

#[cfg(windows)]
fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    windows::run(run)
}

#[cfg(windows)]
mod windows {
    use super::{ANEW, KEPT, MESSAGE, NEXT, OLD, VALUES, XML};
    use crate::clock::nanos;
    use crate::error::ProbeError;
    use crate::run::Run;
    use crate::sample::{Case, Laps};
    use etwhy_os::windows::event_log::{EventLog, Opened};
    use etwhy_os::windows::event_records::{BUFFER, OldLog};
    use std::collections::BTreeMap;
    use std::io;
    use std::time::Instant;

    /// Records that are asked for at once: what Event Viewer and PowerShell ask for is of this size.
    const BATCH: usize = 64;

    /// A step that newer programs take with each event.
    type Step<'a> = Box<dyn FnMut(&Opened<'_>) -> io::Result<()> + 'a>;

    pub(super) fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
        let (name, records) = (run.text("log").to_owned(), run.number("records"));
        let log = EventLog::load().map_err(|error| {
            ProbeError::Impossible(format!("the event log cannot be measured here: {error}"))
        })?;
        let refused = |what: &str| {
            ProbeError::system(format!("the log {name} ({what}); some logs need administrator's rights"))
        };
        old(run, &name, records)?;
        run.progress("fetching", 1, 6);
        run.measure(Case::new(NEXT), |run, laps| {
            let query = log.query(&name).map_err(refused("EvtQuery"))?;
            let mut read = 0;
            while read < records {
                run.goes_on()?;
                let start = Instant::now();
                let events = log.next(&query, BATCH).map_err(refused("EvtNext"))?;
                if events.is_empty() {
                    break;
                }
                share(laps, nanos(start), events.len());
                read += events.len() as u64;
            }
            if read < records {
                run.note(format!("the log {name} has {read} records only"));
            }
            Ok((read, 0))
        })?;
        let context = log.context().map_err(refused("EvtCreateRenderContext"))?;
        let (mut values, mut xml) = (Vec::new(), Vec::new());
        steps(
            run,
            &log,
            &name,
            records,
            Case::new(VALUES),
            2,
            Box::new(|event| log.values(&context, event, &mut values).map(drop)),
        )?;
        steps(
            run,
            &log,
            &name,
            records,
            Case::new(XML),
            3,
            Box::new(|event| log.xml(event, &mut xml).map(drop)),
        )?;

        // Publishers as programs do that keep what they have opened; `None` for those that are not registered.
        let mut publishers: BTreeMap<String, Option<Opened<'_>>> = BTreeMap::new();
        let (mut buffer, mut text) = (Vec::new(), vec![0_u16; 32 << 10]);
        let unknown = || io::Error::other("a publisher without metadata");
        let kept = |event: &Opened<'_>| {
            let used = log.values(&context, event, &mut buffer)?;
            let name = EventLog::publisher_name(&buffer, used).ok_or_else(unknown)?;
            let publisher = publishers.entry(name).or_insert_with_key(|name| log.publisher(name).ok());
            log.message(publisher.as_ref().ok_or_else(unknown)?, event, &mut text).map(drop)
        };
        steps(run, &log, &name, records, Case::new(MESSAGE).when(KEPT), 4, Box::new(kept))?;
        let (mut buffer, mut text) = (Vec::new(), vec![0_u16; 32 << 10]);
        let anew = |event: &Opened<'_>| {
            let used = log.values(&context, event, &mut buffer)?;
            let name = EventLog::publisher_name(&buffer, used).ok_or_else(unknown)?;
            log.message(&log.publisher(&name)?, event, &mut text).map(drop)
        };
        steps(run, &log, &name, (records / 20).max(1), Case::new(MESSAGE).when(ANEW), 5, Box::new(anew))
    }

    /// The old API.
    fn old(run: &mut Run<'_>, name: &str, records: u64) -> Result<(), ProbeError> {
        run.progress("old API", 0, 6);
        let mut buffer = vec![0; BUFFER];
        match OldLog::open(name).and_then(|log| Ok((log.records()?, log))) {
            Ok((there, log)) if there > 0 => run.measure(Case::new(OLD), |run, laps| {
                let mut read = 0;
                while read < records {
                    run.goes_on()?;
                    let start = Instant::now();
                    let more = log.read(&mut buffer).map_err(ProbeError::system("ReadEventLog"))?;
                    if more == 0 {
                        break;
                    }
                    share(laps, nanos(start), usize::try_from(more).unwrap_or(usize::MAX));
                    read += more;
                }
                Ok((read, 0))
            }),
            Ok(_) => {
                run.note(format!("the old API knows no records of the log {name}"));
                Ok(())
            }
            Err(error) => {
                run.note(format!("the old API does not open the log {name}: {error}"));
                Ok(())
            }
        }
    }

    /// Does `step` with each of the first events; fetching them is not part of what is measured one by one, but of the sample.
    fn steps(
        run: &mut Run<'_>,
        log: &EventLog,
        name: &str,
        records: u64,
        case: Case,
        done: u64,
        mut step: Step<'_>,
    ) -> Result<(), ProbeError> {
        run.progress(&case.measure.clone(), done, 6);
        let (mut laps, mut failures, mut first) = (Laps::default(), 0, None);
        let start_ns = run.since_start();
        let before = crate::clock::Moment::now();
        let query = log.query(name).map_err(ProbeError::system("EvtQuery"))?;
        let (mut read, mut inside_ns) = (0, 0_u64);
        while read < records {
            let events = log.next(&query, BATCH).map_err(ProbeError::system("EvtNext"))?;
            if events.is_empty() {
                break;
            }
            for event in events.iter().take(usize::try_from(records - read).unwrap_or(usize::MAX)) {
                run.goes_on()?;
                let start = Instant::now();
                let result = step(event);
                let ns = nanos(start);
                laps.push(ns);
                inside_ns = inside_ns.saturating_add(ns);
                if let Err(error) = result {
                    failures += 1;
                    first.get_or_insert(error);
                }
                read += 1;
            }
        }
        let spent = before.until_now();
        if let Some(error) = first {
            run.note(format!(
                "{} {}: {failures} of {read} records fail, the first with: {error}",
                case.measure, case.variant
            ));
        }
        let sample = run.sample(case, start_ns, read, &spent, &laps);
        let value = inside_ns as f64 / read.max(1) as f64;
        run.push(crate::sample::Sample { failures, value, unit: "ns".to_owned(), ..sample });
        Ok(())
    }

    /// A call that gave several records: each took its share.
    fn share(laps: &mut Laps, ns: u64, records: usize) {
        for _ in 0..records {
            laps.push(ns / records.max(1) as u64);
        }
    }
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let middle = |measure: &str, variant: &str| {
        figures.one(measure, variant, None).filter(|one| one.operations > 0).map(|one| one.median)
    };
    let mut said = Vec::new();
    let rates: Vec<String> = [(OLD, ""), (NEXT, ""), (VALUES, ""), (XML, ""), (MESSAGE, KEPT)]
        .into_iter()
        .filter_map(|(measure, variant)| Some(format!("{measure} {}", time(middle(measure, variant)?))))
        .collect();
    if !rates.is_empty() {
        said.push(format!("One record took: {}.", rates.join(", ")));
    }
    if let (Some(kept), Some(anew)) = (middle(MESSAGE, KEPT), middle(MESSAGE, ANEW)) {
        said.push(format!(
            "A message typically took {} with the publisher's metadata kept and {} with it opened each time.",
            time(kept),
            time(anew)
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Case;
    use crate::support::{options, tried};

    #[test]
    fn it_measures_or_says_why_not() {
        let options = options(&std::env::temp_dir(), &[("records", "100")]);
        let made = tried(&PROBE, &options);
        match made.error {
            None => {
                assert_eq!(std::env::consts::OS, "windows");
                assert!(made.samples.iter().any(|s| s.case.measure == XML && s.operations > 0));
            }
            Some(ProbeError::Impossible(why)) => {
                assert!(why.contains("Wine") || why.contains("only Windows"), "{why}");
                assert!(made.samples.is_empty());
            }
            Some(error) => panic!("{error}"),
        }
    }

    #[test]
    fn sentences_say_what_many_messages_take() {
        let sample = |case: Case, value: f64| Sample { case, value, operations: 10, ..Sample::default() };
        let samples = [
            sample(Case::new(OLD), 190_000.0),
            sample(Case::new(MESSAGE).when(KEPT), 270_000.0),
            sample(Case::new(MESSAGE).when(ANEW), 1_040_000.0),
        ];
        let said = conclude(&samples).join(" ");
        assert!(
            said.contains("ReadEventLog 190 µs")
                && said.contains("270 µs with the publisher's metadata kept and 1.04 ms"),
            "{said}"
        );
        assert!(conclude(&[]).is_empty());
    }
}
