//! Tables to people and programs.
//!
//! A [`Format`] is one file in `formats/`; [`formats`] lists them all and [`Format::by_name`] and
//! [`Format::by_path`] find one. Every writer takes a [`Selection`](etwhy_table::Selection), streams, and
//! says the same: the terminal's table for eyes, the others exactly.
//!
//! [`extract`] writes all tables of a trace as a folder of Parquet files, and reads such a folder back; [`sqlite`]
//! writes them into one file.
//!
//! [`profile`] writes stacks, threads and events for profile viewers: a
//! [`ProfileFormat`](profile::ProfileFormat) is one file in `profiles/`.
//!
//! # Hostile text
//!
//! Names in a trace are chosen by whoever wrote the trace. [`sanitize`] makes control characters and
//! direction marks visible; the terminal's table does so to every cell, JSON escapes them (which loses
//! nothing), and CSV does so, and disarms formulas, unless [`Options::exact`] is asked for. Parquet keeps bytes.
//!
//! Each format has one place that escapes: [`sanitize`] for terminals, [`escape_markup`] for HTML and SVG, [`markdown`] for
//! Markdown, [`harmless`] (in cells [`csv_cell`] and [`csv_lines`]) for CSV. Whoever writes text of a trace, a log or a file calls one of them.
#![forbid(unsafe_code)]

mod cell;
mod device;
mod error;
pub mod extract;
mod format;
mod formats;
mod hex;
mod lookup;
pub mod profile;
mod profiles;
mod protobuf;
pub mod sqlite;
#[cfg(test)]
mod test_table;

pub use cell::{csv_cell, csv_lines, harmless};
pub use device::{create, is_device, is_stdout, spare_recording, write_whole};
pub use error::{ExportError, Result, is_closed_pipe};
pub use etwhy_doc::markdown::escape as markdown;
pub use etwhy_doc::{escape_json, escape_markup, is_unsafe, layout as text, sanitize};
pub use format::{Format, Options, PartWriter, Start, replace_file, replace_file_with, write_file};
pub use lookup::formats;
