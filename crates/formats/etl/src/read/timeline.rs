//! The common time of several files: ticks of any of them as order keys, and as nanoseconds since the start of the trace.

use super::anomalies::CLOCKS_DIFFER;
use super::clock::Clock;
use super::file::EtlFile;
use crate::Ledger;

/// Common time of several files.
#[derive(Clone, Debug)]
pub struct Timeline {
    clocks: Vec<Vec<Clock>>,
    /// All clocks count the same ticks, so that keys are ticks.
    pub(super) shared: bool,
    /// Key of time zero.
    origin: i64,
    /// The clock of the first file.
    first: Clock,
}

impl Timeline {
    /// The timeline of `files`, whose zero is the earliest session start. Counts different clocks.
    pub fn read(files: &[EtlFile], ledger: &mut Ledger) -> Timeline {
        let clocks: Vec<Vec<Clock>> =
            files.iter().map(|f| f.segments().iter().map(|s| s.clock).collect()).collect();
        let first = files.first().map_or_else(
            || Clock {
                kind: super::ClockKind::Qpc,
                frequency: 10_000_000,
                anchor_ticks: 0,
                anchor_filetime: 0,
                boot_filetime: 0,
            },
            |f| *f.clock(),
        );
        let shared = clocks.iter().flatten().all(|c| c.same_domain(&first));
        if !shared {
            ledger.count(&CLOCKS_DIFFER, files.len() as u64);
        }
        let anchor = |c: &Clock| if shared { c.anchor_ticks } else { c.unix_ns(c.anchor_ticks) };
        let origin = clocks.iter().flatten().map(anchor).min().unwrap_or(0);
        Timeline { clocks, shared, origin, first }
    }

    /// Nanoseconds since the start of the trace, of an order key.
    #[inline]
    pub fn key_to_ns(&self, key: i64) -> i64 {
        let span = key.saturating_sub(self.origin);
        if self.shared { self.first.span_ns(span) } else { span }
    }

    /// Whether all files count the same ticks, so that order keys are the ticks of their records.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether the keys of `other`, and the nanoseconds that they stand for, are the same.
    pub fn counts_like(&self, other: &Timeline) -> bool {
        (self.shared, self.origin, self.first) == (other.shared, other.origin, other.first)
    }

    /// The order key of ticks in a file (first session's clock).
    pub fn ticks_to_key(&self, file: u16, ticks: i64) -> i64 {
        self.key(file, 0, ticks)
    }

    /// The order key of a moment, in nanoseconds since the start of the trace: the first that is not before it.
    pub fn ns_to_key(&self, ns: i64) -> i64 {
        if !self.shared {
            return self.origin.saturating_add(ns);
        }
        let hz = i128::from(self.first.frequency.max(1));
        let ticks = (i128::from(ns) * hz + 999_999_999).div_euclid(1_000_000_000);
        let ticks = i64::try_from(ticks).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX });
        self.origin.saturating_add(ticks)
    }

    /// Nanoseconds since the start of the trace, of ticks in a file (first session's clock).
    #[inline]
    pub fn ticks_to_ns(&self, file: u16, ticks: i64) -> i64 {
        if self.shared {
            return self.key_to_ns(ticks);
        }
        self.clock(file, 0).map_or(0, |c| c.unix_ns(ticks).saturating_sub(self.origin))
    }

    /// Length of a span of ticks of a file in nanoseconds.
    #[inline]
    pub fn span_ns(&self, file: u16, ticks: i64) -> i64 {
        self.clock(file, 0).unwrap_or(&self.first).span_ns(ticks)
    }

    /// Wall time of the start of the trace, nanoseconds since 1970 (UTC).
    pub fn start_unix_ns(&self) -> i64 {
        if self.shared { self.first.unix_ns(self.origin) } else { self.origin }
    }

    fn clock(&self, file: u16, segment: u16) -> Option<&Clock> {
        self.clocks.get(usize::from(file))?.get(usize::from(segment))
    }

    /// The order key of ticks in a session of a file.
    pub(super) fn key(&self, file: u16, segment: u16, ticks: i64) -> i64 {
        if self.shared { ticks } else { self.clock(file, segment).map_or(ticks, |c| c.unix_ns(ticks)) }
    }
}
