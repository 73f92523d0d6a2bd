//! Windows event logs.
#![forbid(unsafe_code)]

pub mod tables;
