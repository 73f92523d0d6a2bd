//! Calls into the operating system that need `unsafe`: the one small place of the project that may.
//!
//! # Contract
//!
//! * Each module is one thing that safe libraries do not offer, behind functions that are safe whatever they are given:
//!   no pointer comes in or goes out, lengths are checked here, what was reserved is released when its owner goes.
//! * Every `unsafe` block says why it is sound. A block that cannot say so does not belong here.
//! * Nothing here interprets data, measures or decides. Who can do without this crate (`std`, `rustix`) does.
//!
//! [`Mapped`] has a contract of its own, since other programs can break what it needs: see [`map`].
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(windows)]
pub mod calls;
pub mod end;
pub mod held;
pub mod library;
pub mod map;
pub mod memory;
#[cfg(windows)]
pub mod windows;

pub use held::{held_by_process, held_in_status};
pub use library::{Library, OpenMp, OpenMpCalls};
pub use map::Mapped;
