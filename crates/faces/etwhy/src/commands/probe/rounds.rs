//! Rounds of one probe, with a bar and somebody who watches.

use etwhy_probe::outcome::ProbeOutcome;
use etwhy_probe::run::{Options, Run};
use etwhy_probe::who::Watch;
use etwhy_probe::{Interrupt, Probe};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;

/// Runs them.
pub fn run(
    probe: &'static Probe,
    options: &Options,
    rounds: std::ops::Range<u32>,
    interrupt: &Interrupt,
    quiet: bool,
) -> anyhow::Result<ProbeOutcome> {
    let bar = ProgressBar::new(0);
    if quiet || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template("{prefix:14} [{bar:30}] {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(probe.name);
    let mut progress = |doing: &str, done: u64, total: u64| {
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(doing.to_owned());
    };
    if !probe.runs_here() {
        let systems: Vec<&str> = probe.systems.iter().map(|system| system.name()).collect();
        return Ok(ProbeOutcome {
            probe: probe.name.to_owned(),
            ended: format!("it runs on {} only", systems.join(", ")),
            ..ProbeOutcome::default()
        });
    }
    let watch = Watch::start(&options.folder);
    let made = Run::rounds(probe, options, rounds, interrupt, &mut progress).map_err(anyhow::Error::msg)?;
    bar.finish_and_clear();
    Ok(ProbeOutcome::new(probe.name, made, watch.finish()))
}
