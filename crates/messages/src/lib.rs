//! Texts of Windows events, without Windows.
#![forbid(unsafe_code)]
