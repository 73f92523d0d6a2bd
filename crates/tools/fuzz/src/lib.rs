//! Damaged and hostile input for every parser of the project.
//!
//! * [`targets`] holds the functions under test: bytes in, nothing out, and a panic when something that must
//!   hold does not. They have the signature that `cargo fuzz` wants, so a wrapper for it is one line each; the
//!   driver of this crate needs neither a nightly compiler nor a sanitizer.
//! * [`mutate`] and [`etl_mutate`] make mutants: [`seeds`] are damaged in a way that depends on a number
//!   alone, so that every finding can be made again.
//! * [`driver`] runs mutants in child processes and watches their time and memory.
//!
//! `cargo run --release -p etwhy-fuzz -- --seconds 600` is the long campaign; the tests of this crate run a
//! short one.
#![forbid(unsafe_code)]

pub mod driver;
pub mod etl_mutate;
pub mod hostile;
pub mod mutate;
pub mod scratch;
pub mod seeds;
pub mod targets;
pub mod watch;
