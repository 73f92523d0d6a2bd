//! The header of the result.

use etwhy_base::{Bytes as _, time};
use etwhy_etl::Record;
use etwhy_etl::abi::logfile::{LAYOUT32, LAYOUT64};
use etwhy_etl::read::{ClockKind, EtlFile, Timeline};
use etwhy_etl::write::{Clock, TraceSetup};

/// Bytes of a buffer: any record fits, and a file that names thousands of processors takes no more memory than there is.
const BUFFER_SIZE: u32 = 128 << 10;
/// `EVENT_TRACE_FILE_MODE_SEQUENTIAL` and `EVENT_TRACE_RELOG_MODE` (evntrace.h), as merged traces have them.
const MODE: u32 = 0x0001_0001;
/// What merged traces have in the place of the name of their file.
const SEVERAL: &str = "[multiple files]";
/// Longest name of a session, in characters (`StartTrace`).
const LONGEST_NAME: usize = 1024;

/// `TIME_ZONE_INFORMATION` of a session's header.
pub fn time_zone(header: &Record<'_>) -> Option<Vec<u8>> {
    let layout = if header.pointer_size() == 4 { LAYOUT32 } else { LAYOUT64 };
    header.payload().sub(layout.time_zone, 172).map(<[u8]>::to_vec)
}

/// One header of many: the machine is the same, the time is that of all of them, losses are added.
pub fn setup(files: &[EtlFile], timeline: &Timeline, time_zone: Option<Vec<u8>>) -> TraceSetup {
    let segments = || files.iter().flat_map(EtlFile::segments);
    let headers = || segments().map(|segment| &segment.header);
    let sum = |of: fn(&etwhy_etl::read::LogFileHeader) -> u32| {
        headers().fold(0_u32, |all, header| all.saturating_add(of(header)))
    };
    let mut setup = TraceSetup {
        buffer_size: BUFFER_SIZE,
        processors: headers().map(|header| header.processors).max().unwrap_or(1),
        end_time: headers().map(|header| header.end_time).max().unwrap_or(0),
        boot_time: headers().map(|header| header.boot_time).max().unwrap_or(0),
        start_time: time::filetime(timeline.start_unix_ns()),
        start_ticks: segments().map(|segment| segment.clock.anchor_ticks).min().unwrap_or(0),
        events_lost: sum(|header| header.events_lost),
        buffers_lost: sum(|header| header.buffers_lost),
        session_name: names(headers().map(|header| header.session_name.as_str())),
        log_file_name: SEVERAL.to_owned(),
        log_file_mode: MODE,
        logger_id: 0,
        compressed: true,
        time_zone,
        ..TraceSetup::default()
    };
    if let Some(first) = segments().next() {
        let (header, clock) = (&first.header, &first.clock);
        setup.pointer_size = if header.pointer_size == 4 { 4 } else { 8 };
        setup.os_version = (header.version[0], header.version[1]);
        setup.os_build = header.os_build;
        setup.perf_freq = header.perf_freq;
        setup.cpu_mhz = header.cpu_speed_mhz;
        setup.timer_resolution = header.timer_resolution;
        setup.maximum_file_size = header.maximum_file_size;
        setup.clock = match clock.kind {
            ClockKind::Qpc => Clock::Qpc,
            ClockKind::SystemTime => Clock::SystemTime,
            ClockKind::CpuCycle => Clock::CpuCycle,
        };
        if clock.kind == ClockKind::Qpc {
            // Also of a header that does not say it.
            setup.perf_freq = clock.frequency;
        }
    }
    setup
}

/// The sessions, each once: no other place of a merged trace names them.
fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut room = LONGEST_NAME;
    for name in all.filter(|name| !name.is_empty()) {
        let needed = name.encode_utf16().count() + 2;
        if !seen.contains(&name) && needed <= room {
            seen.push(name);
            room -= needed;
        }
    }
    seen.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_named_once_and_as_far_as_there_is_room() {
        assert_eq!(names(["a", "b", "a", ""].into_iter()), "a, b");
        let long = "x".repeat(600);
        let other = "y".repeat(600);
        assert_eq!(names([long.as_str(), other.as_str(), "z"].into_iter()), format!("{long}, z"));
    }
}
