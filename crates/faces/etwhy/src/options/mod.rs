//! Options that several commands have: declared once, so that they are called the same, take the same values and mean the same.
//! docs/guide/options.md says it to users, `grammar.rs` holds all commands to it.

pub mod document;
#[cfg(test)]
mod grammar;
pub mod rows;
pub mod time;
