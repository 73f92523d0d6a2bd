//! Event logs of the corpus, against another reader and damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod against_evtx;
mod columns;
mod common;
mod damage;
mod in_time;
mod markup;
mod text;
