//! A store, as rows and as a run sees it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod files;
mod made;
mod merges;
mod runs;
