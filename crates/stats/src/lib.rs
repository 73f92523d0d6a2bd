//! Statistics that verdicts rest on. Numbers in, numbers out: no tables, no events.
#![forbid(unsafe_code)]
