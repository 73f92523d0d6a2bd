//! Maps files into memory.
