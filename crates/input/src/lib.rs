//! etwhy-input
#![forbid(unsafe_code)]
