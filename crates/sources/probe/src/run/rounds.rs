//! Runs a probe, round by round.

use super::{Made, Options, Progress, Run};
use crate::interrupt::Interrupt;
use crate::probe::Probe;
use std::time::Instant;

impl<'a> Run<'a> {
    /// Runs `probe` as often as `options` say.
    ///
    /// # Errors
    /// A sentence if what was set makes no sense. What goes wrong later stands in [`Made::error`].
    pub fn all_rounds(
        probe: &'static Probe,
        options: &'a Options,
        interrupt: &'a Interrupt,
        progress: Progress<'a>,
    ) -> Result<Made, String> {
        Run::rounds(probe, options, 0..options.rounds.max(1), interrupt, progress)
    }

    /// Runs some rounds of `probe`: between rounds others may change the machine.
    ///
    /// # Errors
    /// As [`Run::all_rounds`].
    pub fn rounds(
        probe: &'static Probe,
        options: &'a Options,
        rounds: std::ops::Range<u32>,
        interrupt: &'a Interrupt,
        progress: Progress<'a>,
    ) -> Result<Made, String> {
        let mut run = Run {
            options,
            probe: probe.name,
            parameters: probe.values(options)?,
            interrupt,
            progress,
            start: Instant::now(),
            round: 0,
            samples: Vec::new(),
            notes: Vec::new(),
        };
        let mut error = None;
        for round in rounds {
            run.round = round;
            if let Err(reason) = run.goes_on().and_then(|()| (probe.run)(&mut run)) {
                error = Some(reason);
                break;
            }
        }
        Ok(Made {
            samples: run.samples,
            notes: run.notes,
            parameters: run.parameters,
            error,
            start: run.start,
        })
    }
}
