//! What handlers see of an event, and how they say which events they want. Trackers name the files `fields` and `select`
//! themselves: what they know stands in the context.

mod context;
pub(crate) mod fields;
pub(crate) mod select;
pub(crate) mod span;

pub use context::Context;
pub use fields::{Event, Fields};
pub use select::{Select, What};
pub use span::{INTERRUPT_BEFORE_NS, OPERATION_BEFORE_NS};
