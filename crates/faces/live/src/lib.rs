//! Traces that are still being written.
//!
//! * [`Follower`] reads buffers as they come, keeps what trackers know at the beginning of a sliding window, and gives the tables of
//!   the window: the same as those of a pass over that part of the finished trace.
//! * [`Watch`] asks findings of each window; [`History`] remembers when they began and ended.
//! * [`StopWhen`] decides when to stop, [`Pace`] how often to look.
#![forbid(unsafe_code)]

pub mod anomalies;
mod arrivals;
mod error;
mod folder;
mod follower;
pub mod history;
pub mod line;
mod looks;
pub mod one_process;
mod options;
mod pace;
mod part;
pub mod stop;
pub mod view;
pub mod watch;

pub use error::{LiveError, Result};
pub use follower::{Follower, Polled, Window, no_schemas};
pub use history::{Episode, History};
pub use looks::Looks;
pub use options::FollowOptions;
pub use pace::Pace;
pub use part::Part;
pub use stop::{Fired, StopWhen, trigger};
pub use watch::{Look, Range, Summary, Watch};
