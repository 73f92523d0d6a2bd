//! Texts of Windows events, without Windows: templates and message tables from the resources of DLLs, a database that
//! is built from them once, and the substitution of inserts, parameters and control characters.
//!
//! Windows' own output was not available to compare with. What is shown follows Microsoft's documentation, named at
//! each place; texts and templates are compared with other readers of the same files.
#![forbid(unsafe_code)]

pub mod build;
mod bytes;
mod error;
mod known;
pub mod lang;
mod messages;
mod missing;
mod names;
pub mod pe;
mod show;
pub mod sid;
mod store;
pub mod table;
mod template;
mod version;
pub mod wevt;
pub mod winmeta;

pub use error::Error;
pub use messages::{EventKey, Messages, MissingTexts, Options};
pub use names::ProviderNames;
pub use show::{EventSummary, ProviderSummary};
pub use store::{Counts, FileInfo, Registration, SCHEMA_VERSION, module_name};
pub use template::{Appended, EventText, FieldInfo, Inserts, Origin, Parameters, ValueMap};
pub use version::Version;
