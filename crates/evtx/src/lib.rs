//! Windows event logs.
#![forbid(unsafe_code)]

mod abi;
pub mod binxml;
mod bytes;
mod error;
pub mod read;
pub mod tables;

pub use error::EvtxError;
