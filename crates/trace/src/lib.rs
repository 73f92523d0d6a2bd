//! etwhy-trace
#![forbid(unsafe_code)]
