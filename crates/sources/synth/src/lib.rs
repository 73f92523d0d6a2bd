//! Scenarios written as text become `.etl` files with known truth.
//!
//! A scenario (TOML, see `docs/scenarios.md`) says which machine ran, who used its processors with which
//! stacks, and what else happened. [`write()`] turns it into a trace of any size in constant memory, a
//! `symbols/` folder beside it, and a truth file that says what an analysis has to find.
//!
//! ```no_run
//! use etwhy_synth::{DEMO, Scenario, write};
//! # fn main() -> etwhy_synth::Result<()> {
//! let mut scenario = Scenario::parse(DEMO, "demo.toml")?;
//! scenario.scale_to_bytes(1 << 30)?;
//! write(&scenario, "demo.etl".as_ref(), &mut |_bytes| ())?;
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod degrade;
mod engine;
mod error;
mod events;
mod model;
mod output;
mod scenario;
mod symbols;
mod tally;
mod truth;
mod value;
mod without;
mod world;

pub use degrade::{Dropped, drop_buffers};
pub use error::{Result, ScenarioError};
pub use scenario::{DEMO, Report, Scenario, write};

/// A 64-bit hash of a text.
fn hash_text(text: &str) -> u64 {
    etwhy_base::rng::mix(etwhy_base::rng::fnv1a(text))
}
