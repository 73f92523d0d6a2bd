//! etwhy-table
#![forbid(unsafe_code)]
