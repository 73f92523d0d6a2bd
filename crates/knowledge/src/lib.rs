//! etwhy-knowledge
#![forbid(unsafe_code)]
