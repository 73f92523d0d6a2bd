//! Layouts of kernel events, declared as text under `layouts/` and parsed once.
//!
//! * [`KernelLayouts`] finds the [`EventSchema`](crate::schema::EventSchema) of a kernel record by group,
//!   type and version, and that of a classic record by class GUID, opcode and version.
//! * [`Slots`] resolves fields of fixed offset once, so that trackers read them without walking a payload.
//! * [`measure`] and [`raw_field`] walk a payload field by field.
//! * [`events`] names the events: `Thread::CSwitch`.
//! * [`encode`] is the way back: a payload from named values.
//! * [`names`] and [`keywords`] name values of fields and the bits of a session's group masks.
//!
//! The text files are the only place of the project that knows an offset or an order of fields.

mod encode;
pub mod events;
mod files;
pub mod keywords;
mod lines;
mod measure;
pub mod names;
mod parse;
mod slots;
mod table;

#[cfg(test)]
mod corpus_test;

pub use encode::{KernelValue, encode};
pub use events::KernelEvent;
pub use keywords::{groups_enabled, keyword_names};
pub use measure::{Measured, fitting_pointer_size, measure, raw_field, wbem_sid_len};
pub use slots::{Slot, Slots, Tail};
pub use table::KernelLayouts;
