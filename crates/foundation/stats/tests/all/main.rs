//! How often methods are right.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod growth_power;
