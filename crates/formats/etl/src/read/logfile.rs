//! The payload of a session's header event.

use crate::Record;
use crate::abi::logfile::{self as abi, *};
use etwhy_base::{Bytes, utf16};

/// `TIME_ZONE_INFORMATION` of the machine that recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// Minutes: UTC = local time + bias.
    pub bias: i32,
    /// Name of the zone, may be a resource reference such as `@tzres.dll,-212`.
    pub standard_name: String,
    /// Minutes added to `bias` in standard time.
    pub standard_bias: i32,
    /// Name in daylight saving time.
    pub daylight_name: String,
    /// Minutes added to `bias` in daylight saving time.
    pub daylight_bias: i32,
}

/// `TRACE_LOGFILE_HEADER`, the machine and session facts in front of every trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFileHeader {
    /// Nominal buffer size in bytes.
    pub buffer_size: u32,
    /// OS major and minor version, log format major and minor version.
    pub version: [u8; 4],
    /// OS build.
    pub os_build: u32,
    /// Processors of the machine (1 for sessions without per-processor buffers).
    pub processors: u32,
    /// FILETIME of the end; 0 if never finalised. May be before or after the last event.
    pub end_time: i64,
    /// Timer resolution, 100 ns.
    pub timer_resolution: u32,
    /// Maximum file size, MB or KB as the mode says.
    pub maximum_file_size: u32,
    /// `EVENT_TRACE_*_MODE` bits.
    pub log_file_mode: u32,
    /// Buffers written, as the header says: a hint only.
    pub buffers_written: u32,
    /// Buffers at start.
    pub start_buffers: u32,
    /// Pointer size of the machine; records carry their own.
    pub pointer_size: u32,
    /// Events lost.
    pub events_lost: u32,
    /// Nominal processor speed.
    pub cpu_speed_mhz: u32,
    /// Time zone.
    pub time_zone: TimeZone,
    /// FILETIME of boot.
    pub boot_time: i64,
    /// Performance counter frequency in Hz.
    pub perf_freq: i64,
    /// FILETIME of the start.
    pub start_time: i64,
    /// Clock type (`ReservedFlags`).
    pub clock_type: u32,
    /// Buffers lost.
    pub buffers_lost: u32,
    /// Fields that cannot be as the file has them; here is what is assumed.
    pub implausible: u32,
    /// Session name (`Relogger` in merged files).
    pub session_name: String,
    /// Log file name as recorded (`[multiple files]` in merged files). Never used as a path.
    pub log_file_name: String,
}

impl LogFileHeader {
    /// Reads the header out of the first record of a session; `None` if the payload is too short.
    pub fn read(record: &Record<'_>) -> Option<LogFileHeader> {
        let p = record.payload();
        let layout = if record.pointer_size() == 4 { LAYOUT32 } else { LAYOUT64 };
        let time_zone = p.sub(layout.time_zone, 172)?;
        let names = p.get(layout.names..).unwrap_or(&[]);
        let (session_name, len) = utf16z(names);
        let (log_file_name, _) = utf16z(names.get(len..).unwrap_or(&[]));
        let mut header = LogFileHeader {
            buffer_size: p.u32_at(abi::BUFFER_SIZE)?,
            version: p.array(VERSION)?,
            os_build: p.u32_at(PROVIDER_VERSION)?,
            processors: p.u32_at(NUMBER_OF_PROCESSORS)?,
            end_time: p.i64_at(END_TIME)?,
            timer_resolution: p.u32_at(TIMER_RESOLUTION)?,
            maximum_file_size: p.u32_at(MAXIMUM_FILE_SIZE)?,
            log_file_mode: p.u32_at(LOG_FILE_MODE)?,
            buffers_written: p.u32_at(BUFFERS_WRITTEN)?,
            start_buffers: p.u32_at(START_BUFFERS)?,
            pointer_size: p.u32_at(POINTER_SIZE)?,
            events_lost: p.u32_at(EVENTS_LOST)?,
            cpu_speed_mhz: p.u32_at(CPU_SPEED_IN_MHZ)?,
            time_zone: TimeZone {
                bias: time_zone.u32_at(0)? as i32,
                standard_name: utf16z(time_zone.sub(4, 64)?).0,
                standard_bias: time_zone.u32_at(84)? as i32,
                daylight_name: utf16z(time_zone.sub(88, 64)?).0,
                daylight_bias: time_zone.u32_at(168)? as i32,
            },
            boot_time: p.i64_at(layout.boot_time)?,
            perf_freq: p.i64_at(layout.perf_freq)?,
            start_time: p.i64_at(layout.start_time)?,
            clock_type: p.u32_at(layout.reserved_flags)?,
            buffers_lost: p.u32_at(layout.buffers_lost)?,
            implausible: 0,
            session_name,
            log_file_name,
        };
        header.implausible = header.make_plausible();
        Some(header)
    }

    /// True for the output of a merge (`xperf -merge`, WPR, PerfView).
    pub fn is_merged(&self) -> bool {
        self.session_name == "Relogger" || self.log_file_name == "[multiple files]"
    }

    /// Names of the bits set in `log_file_mode`.
    pub fn mode_names(&self) -> Vec<&'static str> {
        MODES.iter().filter(|(bit, _)| self.log_file_mode & bit != 0).map(|(_, name)| *name).collect()
    }
}

/// Longest name that is kept, in UTF-16 units: both names are limited to 1024 characters (`StartTrace`).
const MAX_NAME: usize = 1024;

/// A nul-ended UTF-16 string (or up to the end) and the bytes it takes, its end mark included.
fn utf16z(bytes: &[u8]) -> (String, usize) {
    let text = utf16::until_nul(bytes);
    let kept = text.get(..MAX_NAME * 2).unwrap_or(text);
    (utf16::text(kept), text.len() + 2)
}
