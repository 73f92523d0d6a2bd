//! What a written trace says about itself.

use crate::abi::logfile;

/// Which clock stamps the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Performance counter: ticks of `perf_freq`.
    Qpc,
    /// FILETIME.
    SystemTime,
    /// CPU cycles: ticks of `cpu_mhz`.
    CpuCycle,
}

impl Clock {
    /// The value of `ReservedFlags`.
    pub fn code(self) -> u32 {
        match self {
            Clock::Qpc => logfile::CLOCK_QPC,
            Clock::SystemTime => logfile::CLOCK_SYSTEM_TIME,
            Clock::CpuCycle => logfile::CLOCK_CPU_CYCLE,
        }
    }
}

/// Everything that stands in buffer 0, and which shape the file gets.
///
/// The default is a raw 64-bit Windows 10 session with QPC at 10 MHz and 64 KiB buffers.
#[derive(Clone, Debug)]
pub struct TraceSetup {
    /// Bytes of a buffer, header included; rounded up to 1 KiB, at most 16 MiB.
    pub buffer_size: u32,
    /// `NumberOfProcessors`. Records may name higher processors.
    pub processors: u32,
    /// Pointer size of the machine and of the header record: 4 or 8.
    pub pointer_size: u8,
    /// OS major and minor version, e.g. `(10, 0)`.
    pub os_version: (u8, u8),
    /// OS build, e.g. 19045.
    pub os_build: u32,
    /// FILETIME of the start.
    pub start_time: i64,
    /// FILETIME of the end; written by `finish`. 0: computed from the newest record.
    pub end_time: i64,
    /// FILETIME of the boot.
    pub boot_time: i64,
    /// Timestamp of the header record: the tick that belongs to `start_time`.
    pub start_ticks: i64,
    /// Ticks per second of the performance counter.
    pub perf_freq: i64,
    /// The clock of the timestamps.
    pub clock: Clock,
    /// `CpuSpeedInMHz`; also the tick rate of [`Clock::CpuCycle`].
    pub cpu_mhz: u32,
    /// `TimerResolution` in 100 ns.
    pub timer_resolution: u32,
    /// Session name, e.g. `NT Kernel Logger`.
    pub session_name: String,
    /// The log file's name as recorded.
    pub log_file_name: String,
    /// Minutes: UTC = local time + bias.
    pub time_zone_bias: i32,
    /// Standard and daylight name of the time zone.
    pub time_zone_names: (String, String),
    /// `TIME_ZONE_INFORMATION` (172 bytes) as another header has it; bias and names above are not used then.
    pub time_zone: Option<Vec<u8>>,
    /// `LogFileMode`; the compressed, circular and append bits are added as needed.
    pub log_file_mode: u32,
    /// `MaximumFileSize` in MB.
    pub maximum_file_size: u32,
    /// Session id in the buffer headers.
    pub logger_id: u16,
    /// `EventsLost` in the header.
    pub events_lost: u32,
    /// `BuffersLost` in the header.
    pub buffers_lost: u32,
    /// Pack every buffer but the first with plain XPRESS, as merged files are.
    pub compressed: bool,
    /// `finish` leaves BuffersWritten and EndTime at 0, as after a power loss.
    pub unfinalised: bool,
    /// Keep at most this many data buffers and overwrite the oldest (raw files only).
    pub circular_buffers: Option<u32>,
    /// Buffer headers as Windows 7 wrote them: byte-sized processor, alignment byte, `SavedOffset` 0 in
    /// buffer 0.
    pub windows7: bool,
    /// Appended sessions: write a header buffer again (see [`super::TraceWriter::append`]).
    pub append_header: bool,
}

impl Default for TraceSetup {
    fn default() -> TraceSetup {
        TraceSetup {
            buffer_size: 64 * 1024,
            processors: 1,
            pointer_size: 8,
            os_version: (10, 0),
            os_build: 19045,
            start_time: 133_500_000_000_000_000,
            end_time: 0,
            boot_time: 133_499_000_000_000_000,
            start_ticks: 1_000_000,
            perf_freq: 10_000_000,
            clock: Clock::Qpc,
            cpu_mhz: 3000,
            timer_resolution: 156_250,
            session_name: "NT Kernel Logger".into(),
            log_file_name: "C:\\kernel.etl".into(),
            time_zone_bias: 0,
            time_zone_names: ("@tzres.dll,-262".into(), "@tzres.dll,-261".into()),
            time_zone: None,
            log_file_mode: 1,
            maximum_file_size: 0,
            logger_id: 2,
            events_lost: 0,
            buffers_lost: 0,
            compressed: false,
            unfinalised: false,
            circular_buffers: None,
            windows7: false,
            append_header: true,
        }
    }
}

impl TraceSetup {
    /// FILETIME of a timestamp of this session.
    pub fn file_time(&self, ticks: i64) -> i64 {
        let delta = i128::from(ticks) - i128::from(self.start_ticks);
        let delta = match self.clock {
            Clock::SystemTime => return ticks,
            Clock::Qpc => delta * 10_000_000 / i128::from(self.perf_freq.max(1)),
            Clock::CpuCycle => delta * 10 / i128::from(self.cpu_mhz.max(1)),
        };
        i64::try_from(i128::from(self.start_time) + delta).unwrap_or(self.start_time)
    }

    /// The timestamp of a moment, in nanoseconds since the start of the session.
    pub fn ticks_at(&self, nanoseconds: i64) -> i64 {
        let ns = i128::from(nanoseconds);
        let delta = match self.clock {
            Clock::SystemTime => ns / 100,
            Clock::Qpc => ns * i128::from(self.perf_freq) / 1_000_000_000,
            Clock::CpuCycle => ns * i128::from(self.cpu_mhz) / 1000,
        };
        i64::try_from(i128::from(self.first_ticks()) + delta).unwrap_or(i64::MAX)
    }

    /// Timestamp of the header record.
    pub fn first_ticks(&self) -> i64 {
        if self.clock == Clock::SystemTime { self.start_time } else { self.start_ticks }
    }

    pub(super) fn mode(&self) -> u32 {
        let mut mode = self.log_file_mode;
        if self.compressed {
            mode |= logfile::MODE_COMPRESSED;
        }
        if self.circular_buffers.is_some() {
            mode = mode & !1 | logfile::MODE_CIRCULAR;
        }
        mode
    }

    pub(super) fn rounded_buffer_size(&self) -> usize {
        let size = self.buffer_size.clamp(1024, crate::abi::buffer::MAX_SIZE);
        size.div_ceil(1024) as usize * 1024
    }
}
