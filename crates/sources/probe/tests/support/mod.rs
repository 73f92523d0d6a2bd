//! What tests of probes share: unit tests of this crate too, and tests of the program.
#![allow(dead_code)] // Each test uses a part of it.

use etwhy_probe::machine::Machine;
use etwhy_probe::outcome::{Outcome, ProbeOutcome, SCHEMA};
use etwhy_probe::run::{Made, Options, Run};
use etwhy_probe::{Interrupt, Probe};
use std::path::Path;

/// The probe of a name.
pub fn probe(name: &str) -> &'static Probe {
    etwhy_probe::probes::ALL.iter().find(|probe| probe.name == name).copied().unwrap()
}

/// One round with small numbers, files in `folder`, and these parameters.
pub fn options(folder: &Path, set: &[(&str, &str)]) -> Options {
    Options {
        quick: true,
        rounds: 1,
        folder: folder.to_owned(),
        child: Vec::new(),
        set: set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

/// What a probe makes of that, whether it ended early or not.
pub fn tried(probe: &'static Probe, options: &Options) -> Made {
    Run::all_rounds(probe, options, &Interrupt::new(), &mut |_, _, _| ()).unwrap()
}

/// The same of a probe that must come to its end.
pub fn made(probe: &'static Probe, options: &Options) -> Made {
    let made = tried(probe, options);
    assert!(made.error.is_none(), "{:?}", made.error);
    made
}

/// Results that began at this second, which tells runs apart.
pub fn outcome(probes: Vec<ProbeOutcome>, started: u64) -> Outcome {
    Outcome {
        schema: SCHEMA.to_owned(),
        version: "test".to_owned(),
        started_utc_s: started,
        took_ns: 1,
        machine: Machine::default(),
        products: Vec::new(),
        probes,
    }
}
