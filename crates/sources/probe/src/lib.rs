//! Probes: small workloads that measure what products and API use cost on this machine.
//!
//! A probe is safe to run on a machine that is in use: it touches nothing but a folder of its own, asks before it fills a disk,
//! ends at Ctrl-C, and leaves nothing behind. What it says holds for this machine, now: results carry the facts that they
//! depend on, and everything is repeated, since a single measurement cannot tell its own noise.
#![forbid(unsafe_code)]

pub mod amount;
pub mod call_cost;
pub mod child;
pub mod clock;
pub mod compare;
pub mod content;
pub mod error;
pub mod fresh_files;
pub mod interrupt;
pub mod interrupts;
pub mod law;
pub mod machine;
pub mod omp;
pub mod outcome;
pub mod probe;
pub mod probes;
pub mod run;
pub mod sample;
pub mod scanned_files;
pub mod scratch;
pub mod show;
pub mod summary;
pub mod tables;
pub mod tracer;
pub mod watchers;
pub mod who;
pub mod words;

// Tests of this crate share what those beside it do, which know it by its name.
#[cfg(test)]
extern crate self as etwhy_probe;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

pub use error::ProbeError;
pub use interrupt::Interrupt;
pub use outcome::{Outcome, ProbeOutcome};
pub use probe::Probe;
pub use run::{Options, Run};
pub use sample::{Case, Laps, Sample};
pub use scratch::Scratch;
