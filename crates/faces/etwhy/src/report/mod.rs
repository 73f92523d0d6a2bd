//! Reports in words.

pub mod activity;
pub mod amount;
pub mod counters;
pub mod diff;
pub mod explain;
pub mod findings_page;
pub mod headline;
pub mod missing;
pub mod quality;
pub mod rules;
pub mod series;
pub mod services;
pub mod strace;
pub mod symbols;
pub mod table_json;
pub mod terminal;
pub mod tree;
pub mod tree_file;
pub mod why;
