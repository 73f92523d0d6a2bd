//! The adversarial suite. A seed is a machine with decoys and up to four planted causes; `etwhy synth` writes it, `etwhy why`
//! judges it, and the judgement is compared with what was planted.
//!
//! Nothing here knows the code that is judged: scenarios are text, reports are JSON, limits are copied from the manual.
#![forbid(unsafe_code)]

pub mod cause;
mod innocents;
pub mod kinds;
pub mod machine;
pub mod plan;
pub mod random;
pub mod report;
pub mod run;
pub mod score;
mod shapes;
pub mod table;
