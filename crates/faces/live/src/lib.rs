//! Traces that are still being written.
//!
//! * [`Follower`] reads buffers as they come, keeps what trackers know at the beginning of a sliding window, and gives the tables of
//!   the window: the same as those of a pass over the part of the finished trace.
#![forbid(unsafe_code)]

pub mod anomalies;
mod arrivals;
mod error;
mod folder;
mod follower;

pub use error::{LiveError, Result};
pub use follower::{FollowOptions, Follower, Polled, Window, no_schemas};
