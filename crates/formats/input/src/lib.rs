//! Opens what users have and hands out plain files: `.etl`, archives that hold them, folders of
//! rotated segments, standard input.
//!
//! The trace reader works on files it can open by path (and map), so everything that is packed or
//! comes from a pipe is unpacked into a private temporary folder first. The folder lives as long as
//! one [`InputFile`] of it does.
//!
//! What an archive says is hostile: names inside it are shown (cleaned) but never used as a path,
//! sizes are believed only as a reason to refuse early, nesting ends after one level, and
//! [`InputOptions`] bounds what is written. What stood in front of damage is still used, and the
//! damage is counted in the [`Ledger`](etwhy_etl::Ledger).
#![forbid(unsafe_code)]

pub mod anomaly;
mod archive;
mod budget;
mod collect;
mod error;
mod etl_magic;
mod file;
mod folder;
mod kind;
mod open;
mod options;
pub mod seven_zip;
mod shown;
mod spool;

pub use error::InputError;
pub use file::{InputFile, TempGuard};
pub use kind::{Foreign, Kind, SNIFF_LEN, sniff};
pub use open::{open, open_with_stdin};
pub use options::{InputOptions, Progress, WantedFiles};
