//! Performance counter logs.
#![forbid(unsafe_code)]
