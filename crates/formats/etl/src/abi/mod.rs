//! Definitions only: offsets, flags and names of the format, under their usual names.
//!
//! Sources: `WMI_BUFFER_HEADER` and the trace headers as documented in the public headers `evntrace.h`,
//! `evntcons.h` and in `ntwmi.h` of the winsiderss/systeminformer project (phnt, MIT), checked on real
//! files from Windows 7 to Windows 11.

pub mod buffer;
pub mod ext;
pub mod guids;
pub mod header;
pub mod logfile;
