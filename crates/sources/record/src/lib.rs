//! Recording profiles: which events answer what, written for `wpr`, `xperf` and `logman`.
//!
//! A profile (`profiles/*.toml`) names kernel keywords, stacks and providers, and the tables that they fill. Profiles
//! combine to a [`Recording`], which [`Format`]s write out. [`run`] starts, guards and stops the same [`Plan`], [`merge`](mod@merge) makes one
//! trace of its files.
#![forbid(unsafe_code)]

mod formats;
pub mod merge;
mod plan;
mod profile;
mod recording;
pub mod run;
pub mod selftest;
mod vocabulary;

pub use formats::{Format, formats};
pub use plan::{Enabled, Plan};
pub use profile::{Cost, Profile, Provider, profile, profile_of_table, profiles};
pub use recording::{Buffers, RecordError, Recording, Session, Size};
pub use vocabulary::{
    EventClass, Keyword, MASKS, Stack, keyword, keyword_of_flag, keywords, keywords_of, masks_of, stack,
    stack_of_flag, stacks, unproven,
};

/// Provider of the marks that `etwhy record mark` and the guard write into a recording.
pub const MARKS: etwhy_base::Guid = etwhy_base::Guid::from_text("65747768-7900-4d61-8000-6b0000000001");
