//! What a report is made of, and how it is written.
//!
//! A [`Doc`] is a list of blocks: headings, paragraphs, tables, findings, notes. Whoever knows the answer builds one, and knows neither
//! widths nor markup; [`terminal`], [`markdown`], [`html`] and [`json`] write it.
//!
//! ```
//! use etwhy_doc::{Column, Doc, Line, Table, markdown, terminal::Terminal};
//!
//! let mut doc = Doc::titled("Disks");
//! doc.heading("Disk time by process");
//! let mut table = Table::new([Column::name("process"), Column::number("time")]);
//! table.row([Line::name("C:\\x\u{202e}gpj.exe"), "1.2 s".into()]);
//! doc.table(table);
//! assert_eq!(Terminal::plain(40).render(&doc), "Disk time by process\n  process        time\n  C:\\x�gpj.exe  1.2 s\n");
//! assert!(markdown::render(&doc).contains("| `C:\\x�gpj.exe` | 1.2 s |"));
//! ```
//!
//! # Hostile text
//!
//! Names in traces, logs and files are chosen by whoever wrote them. A document holds them as they are; each renderer makes them harmless
//! when it writes them: control characters and direction marks become visible ([`sanitize`]), markup becomes text
//! ([`markdown::escape`], [`escape_markup`]), and what is too long is cut ([`limits`]). Nothing has to be sanitized before it goes in.
//!
//! Names are [`Line::name`], which Markdown shows as code; sentences that hold names are plain text.
#![forbid(unsafe_code)]

mod figure;
pub mod html;
pub mod json;
pub mod layout;
pub mod limits;
mod line;
pub mod markdown;
mod model;
mod sanitize;
mod table;
pub mod terminal;

pub use etwhy_base::is_unsafe;
pub use figure::{Figure, Timeline};
pub use line::{Level, Line, Span};
pub use model::{Block, Doc, Finding, Item};
pub use sanitize::{escape_json, escape_markup, sanitize};
pub use table::{Column, Fit, Table};
