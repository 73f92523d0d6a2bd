//! Traces read and written, against other readers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contradictions;
mod corpus_walk;
mod write_dissect;
mod write_shapes;
