//! etwhy-export
#![forbid(unsafe_code)]
