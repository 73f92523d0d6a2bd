//! What every crate needs and none should write again. Nothing here knows ETW.
#![forbid(unsafe_code)]

pub mod aside;
mod bytes;
pub mod files;
mod guid;
pub mod parallel;
pub mod rng;
mod shown;
pub mod time;
pub mod units;
pub mod utf16;

pub use bytes::Bytes;
pub use guid::Guid;
pub use shown::is_unsafe;
