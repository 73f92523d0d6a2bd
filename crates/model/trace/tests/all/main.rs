//! The pass over written and real traces; README.md says what the tests on real traces compare.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clr_lines;
mod corpus_counts;
mod exact_values;
mod generic_tables;
mod handle_tables;
mod identity;
mod idle_stacks;
mod io_tables;
mod memory_tables;
mod perfview;
mod same_tables;
mod support;
mod symbols;
mod syscalls;
mod tracker_truths;
mod unfit_payloads;
mod whose_event;
