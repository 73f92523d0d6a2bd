//! Windows event logs.
#![forbid(unsafe_code)]

mod abi;
pub mod binxml;
mod bytes;
mod codes;
mod column;
pub mod columns;
pub mod counts;
mod error;
pub mod filter;
pub mod json;
pub mod pick;
pub mod read;
pub mod render;
pub mod scan;
mod system_columns;
pub mod tables;
mod wanted;

pub use codes::Codes;
pub use error::EvtxError;
