//! Bytes to records in time order.
//!
//! * [`EtlFile`] opens one file, finds its buffers (`index`) and reads its header (`logfile`).
//! * [`Walk`] pushes the records of one or more files into a closure, in time order.
//! * [`anomalies`] names what can be wrong without stopping.

mod ahead;
pub mod anomalies;
mod clock;
mod file;
mod gaps;
mod grow;
mod header;
mod heap;
mod index;
mod logfile;
mod part;
mod past;
mod pipe;
mod plausible;
mod resync;
mod sample;
mod series;
mod source;
mod timeline;
mod tokens;
mod walk;

pub use clock::{Clock, ClockKind};
pub use file::{EtlFile, OpenOptions, Segment};
pub use grow::{Growth, Held, forget_before};
pub use index::BufferEntry;
pub use logfile::{LogFileHeader, TimeZone};
pub use part::PartWritten;
pub use past::Gap;
pub use sample::{content_id, file_sha256, joint_trace_id, short_id};
pub use series::without_first_file;
pub use timeline::Timeline;
pub use walk::{Walk, WalkStats};
