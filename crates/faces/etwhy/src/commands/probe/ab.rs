//! `etwhy probe run --ab`: each round in both states.

use super::rounds;
use anyhow::bail;
use etwhy_export::sanitize;
use etwhy_probe::compare::{OFF, ON, TWICE};
use etwhy_probe::outcome::ProbeOutcome;
use etwhy_probe::run::Options;
use etwhy_probe::{Interrupt, Probe, who};
use std::io::{Read as _, Seek as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How the state of the machine is changed.
pub struct Switch<'a> {
    on: &'a str,
    off: &'a str,
    settle: Duration,
}

impl<'a> Switch<'a> {
    pub fn new(on: &'a str, off: &'a str, settle_s: f64) -> Switch<'a> {
        Switch { on, off, settle: Duration::try_from_secs_f64(settle_s).unwrap_or_default() }
    }

    /// Runs the command of a state and waits until the machine has settled.
    fn to(&self, on: bool, interrupt: &Interrupt) -> anyhow::Result<()> {
        shell(if on { self.on } else { self.off })?;
        let start = Instant::now();
        while start.elapsed() < self.settle && !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(20).min(self.settle));
        }
        Ok(())
    }
}

/// Most of a command's output that is shown if it fails.
const MOST_OUTPUT: u64 = 4000;

/// Runs a command. Its output goes to a file, not to a pipe: what it starts may hold a pipe open for ever.
fn shell(text: &str) -> anyhow::Result<()> {
    let mut file = tempfile::tempfile()?;
    let mut command = system_shell(text);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    let mut output = Vec::new();
    file.rewind()?;
    file.take(MOST_OUTPUT).read_to_end(&mut output)?;
    let output = String::from_utf8_lossy(&output);
    bail!("`{}` failed ({status}): {}", sanitize(text), sanitize(output.trim()));
}

#[cfg(windows)]
fn system_shell(text: &str) -> Command {
    use std::os::windows::process::CommandExt as _;
    let mut command = Command::new("cmd");
    // As it stands: cmd has rules of its own for quotes.
    command.raw_arg("/D /S /C \"").raw_arg(text).raw_arg("\"");
    // CREATE_NEW_PROCESS_GROUP (winbase.h). Ctrl-C is for us: the command that restores must not be ended by it.
    command.creation_flags(0x0000_0200);
    command
}

#[cfg(not(windows))]
fn system_shell(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(text);
    // Ctrl-C is for us: the command that restores must not be ended by it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// Undoes the state at the end, whatever the end is, unless it is undone already: a second time such a command may fail.
struct Restore<'a> {
    off: &'a str,
    is_off: bool,
    interrupt: &'a Interrupt,
    /// What is said if the program ends without it.
    left: String,
}

impl<'a> Restore<'a> {
    fn new(off: &'a str, interrupt: &'a Interrupt) -> Restore<'a> {
        // Nothing was switched yet.
        let left = format!("the state was not restored, please do it: {}", sanitize(off));
        Restore { off, is_off: true, interrupt, left }
    }

    fn set(&mut self, is_off: bool) {
        self.is_off = is_off;
        if is_off {
            self.interrupt.settled(&self.left);
        } else {
            self.interrupt.leaves(&self.left);
        }
    }
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        if self.is_off {
            return;
        }
        if let Err(error) = shell(self.off) {
            say!("etwhy: the state could not be restored, please do it: {error:#}");
        }
        self.interrupt.settled(&self.left);
    }
}

/// Runs all probes: first twice in the state of the second command, then each round in both states, in the order off on, on off,
/// off on, … so that neither gains by drift. Interrupted, or if a command fails later than the first time, it gives what was measured.
pub fn run(
    probes: &[&'static Probe],
    options: &Options,
    interrupt: &Interrupt,
    quiet: bool,
    switch: &Switch<'_>,
) -> anyhow::Result<Vec<ProbeOutcome>> {
    let mut restore = Restore::new(switch.off, interrupt);
    let mut all: Vec<ProbeOutcome> = Vec::new();
    let mut state = None;
    let mut steps = vec![(0, TWICE[0], false), (0, TWICE[1], false)];
    for round in 0..options.rounds {
        let (off, on) = ((round, OFF, false), (round, ON, true));
        steps.extend(if round % 2 == 0 { [off, on] } else { [on, off] });
    }
    for (round, name, on) in steps {
        if interrupt.is_set() {
            break;
        }
        if state != Some(on) {
            // A command that fails may have done half of it.
            restore.set(false);
            if let Err(error) = switch.to(on, interrupt) {
                if all.is_empty() {
                    return Err(error);
                }
                give_up(&mut all, &error);
                break;
            }
            state = Some(on);
            restore.set(!on);
        }
        for probe in probes {
            let made = rounds::run(probe, options, round..round + 1, interrupt, quiet)?;
            add(&mut all, made, name);
            if interrupt.is_set() {
                break;
            }
        }
    }
    drop(restore);
    Ok(all)
}

/// Says of all probes that they ended here.
fn give_up(all: &mut [ProbeOutcome], error: &anyhow::Error) {
    say!("etwhy: {error:#}");
    for one in all.iter_mut().filter(|one| one.ended.is_empty()) {
        one.ended = format!("the state could not be changed: {error:#}");
    }
}

/// Puts a round to the others of its probe and state.
fn add(all: &mut Vec<ProbeOutcome>, mut made: ProbeOutcome, state: &str) {
    let there = all.iter_mut().find(|one| one.probe == made.probe && one.state == state);
    let Some(there) = there else {
        made.state = state.to_owned();
        all.push(made);
        return;
    };
    let end = there.samples.iter().map(|s| s.start_ns.saturating_add(s.wall_ns)).max().unwrap_or(0);
    there.samples.extend(made.samples.into_iter().map(|mut sample| {
        sample.start_ns = sample.start_ns.saturating_add(end);
        sample
    }));
    for note in made.notes {
        if !there.notes.iter().any(|known| shape(known) == shape(&note)) {
            there.notes.push(note);
        }
    }
    if there.ended.is_empty() {
        there.ended = made.ended;
    }
    who::join(&mut there.suspects, made.suspects);
}

/// A note without its numbers: of each round the same is said once, of the first.
fn shape(note: &str) -> String {
    note.chars().filter(|c| !c.is_ascii_digit()).collect()
}
