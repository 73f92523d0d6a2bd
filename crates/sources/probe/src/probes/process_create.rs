//! Starting processes.

use crate::clock::nanos;
use crate::error::ProbeError;
use crate::probe::{EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::summary::Figures;
use crate::words::time;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "process-create",
    about: "Start small processes, one after the other: starts per second, and whether they get slower with their number",
    manual: "Starts a process that ends at once, waits for it, and starts the next one: this program (some MB, so loading it counts) and \
             the smallest one of the system (/bin/true; on Windows cmd.exe /d /c exit). The figure is what one start took until the process had \
             ended, against how many were started before; both kinds take turns.\n\n\
             What it shows: products that are told of each start, scan the program or load a library into it make each start slower by the \
             same amount. What keeps a list of all processes there ever were, or writes one log per process, makes it slower with their \
             number: the growth law tells.\n\n\
             What fools it: starting is mostly work of the kernel and of the loader, so it is slower on a busy machine; compare with runs \
             of the same load. On Linux the start of a large program costs more than that of a small one because of its libraries, not \
             because of its size.\n\n\
             Compared with: Application Verifier with its log on made a start of 5 ms one of 25 ms at first and of 2.5 s after 30,000.",
    systems: EVERYWHERE,
    parameters: &[Parameter::number(
        "starts",
        "Processes of each kind",
        "processes",
        (600, 120),
        (20, 50_000),
    )],
    grows: Grows::PerCall,
    n_is: "processes started before",
    contrasts: &[],
    run,
    child: Some(|_| 0),
    conclude,
};

/// Points of the curve.
const POINTS: u64 = 12;

const OWN: &str = "start this program";
const SMALLEST: &str = "start the smallest program";

fn smallest() -> Command {
    if cfg!(windows) {
        let mut command = Command::new("cmd.exe");
        command.args(["/d", "/c", "exit"]);
        return command;
    }
    let there = ["/bin/true", "/usr/bin/true"].iter().find(|path| std::path::Path::new(path).exists());
    Command::new(there.unwrap_or(&"true"))
}

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let starts = run.number("starts");
    let block = (starts / POINTS).max(1);
    let mut kinds = vec![SMALLEST];
    if run.options.child.is_empty() {
        run.note("this program does not know its own path: only the system's smallest one was started");
    } else {
        kinds.push(OWN);
    }
    let (mut done, mut before) = (0, 0_u64);
    while done < starts {
        let count = block.min(starts - done);
        kinds.reverse();
        for kind in &kinds {
            run.progress(kind, done, starts);
            run.measure(Case::new(*kind).at(before as f64 + count as f64 / 2.0), |run, laps| {
                let mut failed = 0;
                for _ in 0..count {
                    run.goes_on()?;
                    let mut command = if *kind == OWN { run.child(&["exit"]) } else { smallest() };
                    let start = Instant::now();
                    let ended = start_quietly(&mut command);
                    laps.push(nanos(start));
                    match ended {
                        Ok(true) => {}
                        Ok(false) => failed += 1,
                        Err(error) if error.kind() == ErrorKind::PermissionDenied => failed += 1,
                        Err(error) => {
                            return Err(ProbeError::system(format!("start {:?}", command.get_program()))(
                                error,
                            ));
                        }
                    }
                }
                Ok((count, failed))
            })?;
            before += count;
        }
        done += count;
    }
    Ok(())
}

/// Starts it, waits for its end, and says whether it was content.
pub(crate) fn start_quietly(command: &mut Command) -> std::io::Result<bool> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    Ok(status.success())
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let mut said = Vec::new();
    let figures = Figures::from_samples(samples);
    for kind in [SMALLEST, OWN] {
        let sizes = figures.by_size(kind, "");
        let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { continue };
        let what = if kind == OWN { "of this program" } else { "of the smallest program" };
        let after = |n: Option<f64>| crate::amount::size(n.unwrap_or(0.0));
        said.push(format!(
            "A start {what} typically took {} among the first {}, and {} among the last of {}.",
            time(first.median),
            after(first.key.n),
            time(last.median),
            after(last.key.n)
        ));
    }
    let failed: u64 = samples.iter().map(|s| s.failures).sum();
    if failed > 0 {
        said.push(format!("{failed} starts were denied or failed: somebody forbids them."));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Options;
    use crate::support::{made, options};

    #[test]
    fn both_kinds_are_started_as_often_as_asked() {
        let options = Options {
            child: vec![if cfg!(windows) { "cmd.exe".into() } else { "/bin/true".into() }],
            ..options(&std::env::temp_dir(), &[("starts", "25")])
        };
        let made = made(&PROBE, &options);
        for kind in [SMALLEST, OWN] {
            let of: Vec<_> = made.samples.iter().filter(|s| s.case.measure == kind).collect();
            assert_eq!(of.iter().map(|s| s.operations).sum::<u64>(), 25);
        }
        assert!(made.samples.iter().filter(|s| s.case.measure == SMALLEST).all(|s| s.failures == 0));
        assert_eq!(conclude(&made.samples).len(), 2);
    }
}
