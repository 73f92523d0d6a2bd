//! Windows audit policy.
#![forbid(unsafe_code)]
