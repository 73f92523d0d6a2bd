//! The header record of buffer 0: `TRACE_LOGFILE_HEADER` behind a system header.

use super::{RecordBuf, TraceSetup};
use crate::abi::logfile::{LAYOUT32, LAYOUT64};

/// Builds the header record. `buffers` and `end_time` are 0 until the session is finalised.
pub(super) fn logfile_record(setup: &TraceSetup, record: &mut RecordBuf, buffers: u32, end_time: i64) {
    let pointer = if setup.pointer_size == 4 { 4 } else { 8 };
    let layout = if pointer == 4 { LAYOUT32 } else { LAYOUT64 };
    let format = if setup.compressed { (2, 0) } else { (1, 5) };
    record.system(pointer, 0x0000, 2, setup.first_ticks(), 4, 4, (0, 0));
    record
        .u32(setup.rounded_buffer_size() as u32)
        .bytes(&[setup.os_version.0, setup.os_version.1, format.0, format.1])
        .u32(setup.os_build)
        .u32(setup.processors)
        .i64(end_time)
        .u32(setup.timer_resolution)
        .u32(setup.maximum_file_size)
        .u32(setup.mode())
        .u32(buffers)
        .u32(1)
        .u32(u32::from(setup.pointer_size))
        .u32(setup.events_lost)
        .u32(setup.cpu_mhz)
        .ptr(0)
        .ptr(0);
    time_zone(setup, record);
    record
        .pad_payload(layout.boot_time)
        .i64(setup.boot_time)
        .i64(setup.perf_freq)
        .i64(setup.start_time)
        .u32(setup.clock.code())
        .u32(setup.buffers_lost)
        .utf16z(&setup.session_name)
        .utf16z(&setup.log_file_name);
}

/// `TIME_ZONE_INFORMATION` without dates: the rule for daylight saving is not needed to read UTC.
fn time_zone(setup: &TraceSetup, record: &mut RecordBuf) {
    if let Some(whole) = &setup.time_zone {
        record.bytes(whole);
        return;
    }
    record.u32(setup.time_zone_bias as u32);
    record.utf16_fixed(&setup.time_zone_names.0, 32).zeros(16).u32(0);
    record.utf16_fixed(&setup.time_zone_names.1, 32).zeros(16).u32((-60i32) as u32);
}
