//! Reports in every format.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod documents;
