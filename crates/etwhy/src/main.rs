//! The `etwhy` program.
#![forbid(unsafe_code)]
fn main() {}
