//! Windows audit policy: reads it in the forms that Windows writes, and says what each subcategory makes and what could be changed.
//!
//! [`parse()`](parse::parse) reads a file of any form, `Policies` puts several together, [`advise()`](advise::advise) compares them with
//! Microsoft's recommendations and with what a log holds.
#![forbid(unsafe_code)]

pub mod advise;
pub mod encoding;
pub mod names;
pub mod parse;
pub mod policies;
pub mod policy;
pub mod setting;
pub mod table;
pub mod write;

pub use parse::parse;
pub use policy::{Entry, Form, Policy, Subject, Unknown};
pub use setting::{PerUser, Setting};
