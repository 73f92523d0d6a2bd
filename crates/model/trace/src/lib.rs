//! Events to tables: one pass over the records of a trace, trackers that know who is who at each moment, and
//! analyses that fill tables.
//!
//! * [`engine`] drives the pass: it resolves each event type once to the handlers that want it.
//! * [`model`] holds the trackers, one file each: processes, threads, images, stacks, files, .NET methods.
//! * [`catalog`] holds the analyses, one file each. To add one, add a file and run `cargo xtask gen`.
//!
//! # The central decision: one pass in time order, names bound late
//!
//! Windows reuses process ids, thread ids, stack keys and file keys within minutes, and tells many names only
//! at the end of a trace. So ids are resolved to dense numbers (`upid`, `utid`, file, stack) at the moment of
//! the event, when it is clear which instance is meant, and names are bound to these numbers whenever they
//! come. Nothing is resolved by a map built in one pass and applied in another.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod anomalies;
mod attribution;
mod calls;
pub mod catalog;
pub mod engine;
pub mod event;
mod exit_code;
mod extended;
mod fields_text;
pub mod finish;
mod fit;
mod histogram;
pub mod identity;
pub mod inputs;
pub mod logger_text;
pub mod model;
mod owner;
mod resolve;
mod row_ends;
mod silence;
pub mod stacks;
mod symbols;
mod trackers;
mod trend;
mod wait_class;
mod work_owner;

pub use analysis::{Analysis, AnalysisSpec};
pub use attribution::Actor;
pub use engine::{Base, LateEvents, Options, Output, Part, Progress, Wanted, analyse, analyse_part};
pub use event::{Context, Event, Select, What};
pub use inputs::Inputs;
pub use model::Model;
pub use symbols::Symbols;
