//! The program, run as users run it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use etwhy_testkit::{Are, Json, Program, Str, text};

/// The program.
const ETWHY: Program = Program::new(env!("CARGO_BIN_EXE_etwhy"));

mod activity;
mod advice;
mod aggregates;
mod around;
mod audit;
mod bad_input;
mod beside;
mod bill;
mod brute_force;
mod command_line;
mod counter_needs;
mod counters;
mod degraded;
mod diff;
mod diff_chance;
mod duckdb;
mod every_command;
mod evtx;
mod evtx_filters;
mod evtx_why;
mod export;
mod extract;
mod families;
mod findings;
mod fleet;
mod generic_tables;
mod growth;
mod hostile_names;
mod hud_cpu;
mod identity;
mod io_scenarios;
mod lost_sums;
mod memory;
mod merge;
mod modules;
mod outputs;
mod pivot;
mod recomputed;
mod record;
mod refusals;
mod report;
mod reused_ids;
mod roots;
mod same_answers;
mod same_rows;
mod same_sql;
mod sampled_stacks;
mod serve;
mod serve_hostile;
mod serve_stacks;
mod serve_store;
mod server;
mod sql_doors;
mod stack_tags;
mod strace;
mod symbols;
mod symbols_apply;
mod tree;
mod truth;
mod truth_tables;
mod unfilled;
mod verdicts;
mod windows;
mod wpa_page;
