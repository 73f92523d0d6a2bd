//! What event payloads mean.
//!
//! Every source of meaning (kernel layouts declared as text, metadata embedded in the trace, TraceLogging
//! items, manifests, MOF classes, TMF files) is turned into one form, the [`schema::EventSchema`], and one
//! reader ([`read`]) applies it to payload bytes. A source never reads payloads, the reader never knows
//! where a schema came from.
//!
//! * [`Decoder`] is the door to all sources, [`EventTypes`] numbers and counts event types.
//! * [`FieldPlan`] fetches a few fields of events that occur millions of times.
//! * [`format`](mod@format) shows values as text and JSON, [`message`] fills message templates.
#![forbid(unsafe_code)]

pub mod anomalies;
pub mod builtin;
#[cfg(test)]
mod corpus_test;
mod decoder;
mod describe;
mod event_key;
mod event_types;
mod files;
pub mod format;
pub mod json_keys;
pub mod kernel;
pub mod manifest;
pub mod message;
pub mod metadata;
mod names;
mod numbers;
pub mod plan;
pub mod read;
mod scalar;
pub mod schema;
#[cfg(test)]
mod testing;
mod text;
pub mod tmf;
pub mod tracelogging;
mod value;

pub use decoder::{Decoder, DecoderOptions};
pub use describe::EventTypeInfo;
pub use event_key::EventKey;
pub use event_types::{EventType, EventTypes};
pub use plan::FieldPlan;
pub use text::Text;
pub use value::{Numbers, Value};
