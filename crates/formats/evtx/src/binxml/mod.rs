//! Binary XML: values, templates and events.
//!
//! A record is an instance of a template: values, and a definition that says where they stand in the XML. A definition is compiled
//! once into a program and known again in other chunks by its content (`templates`); after that a record costs
//! a table of its values (`shape`, `cells`). Records without a template (inline XML) are compared with the form of the ones before
//! (`pattern`); those that have none go through `tokens`, token by token.

mod ansi;
mod cell;
mod cells;
mod closed;
pub mod escape;
mod event;
mod fields;
mod flat;
mod narrow;
mod op;
mod out;
mod pattern;
mod piece;
mod plan;
mod program;
mod raw;
mod shape;
mod system;
mod templates;
pub mod text;
pub mod time;
mod tokens;
mod value;
mod wellformed;
mod xml;

pub use cell::Cell;
pub use cells::{Cells, InOrder};
pub use event::{Decoder, Event, Fault};
pub use fields::Name;
pub use out::Out;
pub use piece::Piece;
pub use system::System;
pub use value::{Items, Value, push_decimal, push_guid, push_hex, push_hex_bytes, push_sid};
