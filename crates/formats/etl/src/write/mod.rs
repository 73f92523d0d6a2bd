//! Writing traces that other readers accept, in constant memory (one buffer per processor).
//!
//! ```no_run
//! use etwhy_etl::write::{RecordBuf, TraceSetup, TraceWriter};
//! # fn main() -> std::io::Result<()> {
//! let mut writer = TraceWriter::create("out.etl".as_ref(), TraceSetup::default())?;
//! let mut record = RecordBuf::new();
//! record.perfinfo(8, 0x0F2E, 2, 1_000_100).u64(0xFFFF_F800_0000_1234).u32(4).u16(1).u16(0);
//! writer.write(0, &mut record)?;
//! writer.finish()?;
//! # Ok(()) }
//! ```
//!
//! The shapes that real files have and that a reader must survive (never finalised, wrapped circular,
//! Windows 7, appended, compressed) are options of [`TraceSetup`].

mod buffer;
mod logfile_record;
mod record_buf;
mod record_ext;
mod setup;
mod tracelogging;
mod writer;
mod xpress;

pub use record_buf::{ClassicHead, EventHead, MessageHead, RecordBuf};
pub use setup::{Clock, TraceSetup};
pub use tracelogging::{TlField, tracelogging_schema, tracelogging_traits};
pub use writer::{TraceWriter, Written};
pub use xpress::compress as compress_xpress;
