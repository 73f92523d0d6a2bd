//! Written traces, against another reader.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

const EVERYTHING: &str = include_str!("everything.toml");

mod causes;
mod findings;
mod layouts;
mod scenarios;
mod tasks;
