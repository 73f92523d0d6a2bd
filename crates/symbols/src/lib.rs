//! etwhy-symbols
#![forbid(unsafe_code)]
