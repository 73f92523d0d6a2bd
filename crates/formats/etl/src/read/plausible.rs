//! What a session header cannot honestly say, and what is assumed instead.

use super::logfile::LogFileHeader;
use crate::abi::logfile::{CLOCK_CPU_CYCLE, CLOCK_SYSTEM_TIME};

/// Performance counters count between these, Hz: slower ones could not time an event, faster ones do not exist.
const COUNTER_HZ: std::ops::RangeInclusive<i64> = 1_000..=10_000_000_000;
/// What all current systems have, Hz.
const USUAL_HZ: i64 = 10_000_000;
/// Windows runs on no more processors.
const MOST_PROCESSORS: u32 = 2_048;
/// No processor is as fast, MHz.
const MOST_MHZ: u32 = 100_000;
/// Minutes of a day.
const DAY: u32 = 24 * 60;
/// 100 ns.
const YEAR: i64 = 3_652_425 * 86_400 * 1_000;
/// Sessions began between these years of our time, FILETIME: Windows 2000 was the first with such files.
const STARTS: std::ops::Range<i64> = (1999 - 1601) * YEAR..(2200 - 1601) * YEAR;

impl LogFileHeader {
    /// Replaces what cannot be, and gives how many fields that were.
    pub(super) fn make_plausible(&mut self) -> u32 {
        let mut count = 0;
        let mut doubt = |doubtful: bool| {
            count += u32::from(doubtful);
            doubtful
        };
        if doubt(self.cpu_speed_mhz > MOST_MHZ) {
            self.cpu_speed_mhz = 0;
        }
        // Of an unknown kind of clock the performance counter is assumed.
        doubt(self.clock_type > CLOCK_CPU_CYCLE);
        match self.clock_type {
            CLOCK_SYSTEM_TIME => {}
            CLOCK_CPU_CYCLE => _ = doubt(self.cpu_speed_mhz == 0),
            _ => {
                if doubt(!COUNTER_HZ.contains(&self.perf_freq)) {
                    self.perf_freq = USUAL_HZ;
                }
            }
        }
        if doubt(self.processors == 0 || self.processors > MOST_PROCESSORS) {
            // Not known.
            self.processors = 0;
        }
        let zone = &mut self.time_zone;
        for bias in [&mut zone.bias, &mut zone.standard_bias, &mut zone.daylight_bias] {
            if doubt(bias.unsigned_abs() > DAY) {
                *bias = 0;
            }
        }
        // Nothing is better than what is there.
        doubt(!STARTS.contains(&self.start_time));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> LogFileHeader {
        LogFileHeader {
            processors: 8,
            perf_freq: 3_579_545,
            clock_type: 1,
            cpu_speed_mhz: 3000,
            start_time: 133_800_000_000_000_000,
            ..LogFileHeader::default()
        }
    }

    #[test]
    fn impossible_fields_are_counted_and_replaced() {
        let mut header = sound();
        assert_eq!((header.make_plausible(), &header), (0, &sound()));
        for hz in [0, -1, 1, i64::MAX] {
            let mut header = LogFileHeader { perf_freq: hz, ..sound() };
            assert_eq!((header.make_plausible(), header.perf_freq), (1, USUAL_HZ), "{hz}");
        }
        for processors in [0, 65_535, u32::MAX] {
            let mut header = LogFileHeader { processors, ..sound() };
            assert_eq!((header.make_plausible(), header.processors), (1, 0), "{processors}");
        }
        let mut header = sound();
        (header.cpu_speed_mhz, header.time_zone.bias) = (u32::MAX, i32::MIN);
        assert_eq!((header.make_plausible(), header.cpu_speed_mhz, header.time_zone.bias), (2, 0, 0));
        for start_time in [0, -1, 1, i64::MAX] {
            assert_eq!(LogFileHeader { start_time, ..sound() }.make_plausible(), 1, "{start_time}");
        }
        // The counter's frequency is of no use to the other clocks.
        for (clock_type, doubts) in [(0, 1), (2, 0), (3, 0), (4, 2), (99, 2)] {
            let mut header = LogFileHeader { clock_type, perf_freq: 0, ..sound() };
            assert_eq!(header.make_plausible(), doubts, "{clock_type}");
        }
    }
}
