//! Symbols from every source, against other readers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod damage;
mod hostile;
mod llvm;
mod portable;
mod repeated;
mod sources;
mod support;
