//! What every crate needs and none should write again. Nothing here knows ETW.
#![forbid(unsafe_code)]

mod bytes;
mod guid;

pub use bytes::Bytes;
pub use guid::Guid;
