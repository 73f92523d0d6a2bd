//! The three clocks that stamp events, and wall time.

use super::logfile::LogFileHeader;
use crate::abi::logfile::{CLOCK_CPU_CYCLE, CLOCK_SYSTEM_TIME};
use etwhy_base::time::unix_ns;

/// Which clock stamped the events of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// `QueryPerformanceCounter`.
    Qpc,
    /// System time: timestamps are FILETIMEs.
    SystemTime,
    /// Processor cycles.
    CpuCycle,
}

impl ClockKind {
    /// The word shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            ClockKind::Qpc => "qpc",
            ClockKind::SystemTime => "system_time",
            ClockKind::CpuCycle => "cpu_cycle",
        }
    }
}

/// Converts ticks of one session to nanoseconds and wall time.
///
/// The anchor is the timestamp of the session's header event, which belongs to `StartTime`. Boot time is
/// no anchor: the performance counter does not count from boot on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Which clock.
    pub kind: ClockKind,
    /// Ticks per second, at least 1.
    pub frequency: i64,
    /// Timestamp of the header event, in ticks.
    pub anchor_ticks: i64,
    /// Wall time of the anchor, FILETIME (100 ns since 1601, UTC).
    pub anchor_filetime: i64,
    /// Boot time, FILETIME: two files with the same boot share their tick domain.
    pub boot_filetime: i64,
}

impl Clock {
    /// The clock of a session whose header event was stamped `anchor_ticks`.
    pub fn from_header(header: &LogFileHeader, anchor_ticks: i64) -> Clock {
        let (kind, frequency) = match header.clock_type {
            CLOCK_SYSTEM_TIME => (ClockKind::SystemTime, 10_000_000),
            CLOCK_CPU_CYCLE => (ClockKind::CpuCycle, i64::from(header.cpu_speed_mhz) * 1_000_000),
            _ => (ClockKind::Qpc, header.perf_freq),
        };
        // Cycles of unknown length: 10 MHz is what counters of all current systems have.
        let frequency = if frequency > 0 { frequency } else { 10_000_000 };
        Clock {
            kind,
            frequency,
            anchor_ticks,
            anchor_filetime: header.start_time,
            boot_filetime: header.boot_time,
        }
    }

    /// Length of a span of ticks in nanoseconds (saturating).
    #[inline]
    pub fn span_ns(&self, ticks: i64) -> i64 {
        if self.frequency == 10_000_000 {
            return ticks.saturating_mul(100);
        }
        let ns = i128::from(ticks) * 1_000_000_000 / i128::from(self.frequency);
        i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
    }

    /// Nanoseconds from the anchor to `ticks`, may be negative.
    #[inline]
    pub fn ns(&self, ticks: i64) -> i64 {
        self.span_ns(ticks.saturating_sub(self.anchor_ticks))
    }

    /// Wall time of `ticks` in nanoseconds since 1970 (UTC), saturating.
    pub fn unix_ns(&self, ticks: i64) -> i64 {
        unix_ns(self.anchor_filetime).saturating_add(self.ns(ticks))
    }

    /// Whether `other` counts the same ticks, so that both can be compared without wall time.
    pub fn same_domain(&self, other: &Clock) -> bool {
        self.kind == other.kind
            && self.frequency == other.frequency
            && (self.kind == ClockKind::SystemTime || self.boot_filetime == other.boot_filetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::time::UNIX_EPOCH;

    #[test]
    fn ticks_to_ns_without_overflow() {
        let mut clock = Clock {
            kind: ClockKind::Qpc,
            frequency: 3_000_000,
            anchor_ticks: 10,
            anchor_filetime: UNIX_EPOCH,
            boot_filetime: 0,
        };
        assert_eq!(clock.ns(13), 1000);
        assert_eq!(clock.ns(7), -1000);
        assert_eq!(clock.ns(i64::MAX), i64::MAX);
        clock.frequency = 10_000_000;
        assert_eq!(clock.ns(11), 100);
        assert_eq!(clock.unix_ns(11), 100);
        assert_eq!(clock.ns(i64::MIN), i64::MIN);
    }
}
