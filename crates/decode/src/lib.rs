//! What event payloads mean.
//!
//! Every source of meaning (kernel layouts declared as text, metadata embedded in the trace, TraceLogging
//! items, manifests, MOF classes, TMF files) is turned into one form, the [`schema::EventSchema`], and one
//! reader ([`read`]) applies it to payload bytes. A source never reads payloads, the reader never knows
//! where a schema came from.
#![forbid(unsafe_code)]

pub mod schema;
