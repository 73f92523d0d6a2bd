//! Options that several commands have: declared once, so that they are called the same, take the same values and mean the same.
//! `etwhy help grammar` and GUIDE.md ("Options that mean the same everywhere") say it to users, `tests/grammar.rs` holds all commands to it.

pub mod time;
