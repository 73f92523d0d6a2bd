//! Project chores: generated catalogues and reference docs.
#![forbid(unsafe_code)]
fn main() {}
