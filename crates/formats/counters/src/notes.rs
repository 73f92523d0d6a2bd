//! What is strange about logs, counted.

use std::path::Path;

/// A kind of strangeness.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name.
    pub name: &'static str,
    /// info, warning, data_loss.
    pub severity: &'static str,
    /// What it means for the results.
    pub meaning: &'static str,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $NAME:ident = $name:literal, $severity:literal, $meaning:literal;)+) => {
        $( $(#[doc = $doc])+ pub static $NAME: Kind = Kind { name: $name, severity: $severity, meaning: $meaning }; )+
        /// All of them.
        pub static ALL: &[&Kind] = &[$(&$NAME),+];
    };
}

kinds! {
    /// A line that has no stamp.
    NO_STAMP = "line-without-stamp", "info", "lines that are no samples, such as what typeperf says at its end; they are skipped";
    /// A line of values whose stamp cannot be read.
    STAMP_UNREADABLE = "stamp-unreadable", "data_loss", "lines of values whose date or time cannot be read; they are skipped";
    /// A line that ends in the middle.
    CUT_LINE = "cut-line", "data_loss", "lines that end inside of a value or have fewer values than counters, as when the recording was ended; the values that are there are used, a value that is cut is not";
    /// A line that has too many values.
    EXTRA_VALUES = "extra-values", "data_loss", "lines with more values than the header has counters; the values behind are not used";
    /// A value that is no number.
    NOT_A_NUMBER = "not-a-number", "data_loss", "values that are no numbers, larger than any counter, or negative where a counter of these kinds cannot be; they count as missing";
    /// A value of minus one.
    MINUS_ONE = "minus-one", "info", "values of exactly -1, which typeperf writes where a counter could not be read, and no counter of these kinds can have; they count as missing";
    /// A header in the middle.
    REPEATED_HEADER = "repeated-header", "info", "headers within a file: the recording was started again; counters are joined by name";
    /// A header's column that is no counter.
    NO_COUNTER = "column-without-counter", "info", "columns of a header that are no counter paths, such as a data collector set's description; they are skipped";
    /// A counter that is there more than once.
    REPEATED_COUNTER = "repeated-counter", "info", "counters that stand in a header more than once, as of two processes of one name; each is a counter of its own";
    /// Too many counters.
    TOO_MANY_COUNTERS = "too-many-counters", "data_loss", "counters beyond the first 100,000; they are skipped";
    /// A line that is too long.
    LONG_LINE = "long-line", "data_loss", "lines of more than 64 MiB; they are skipped";
    /// Daylight saving time ended.
    SUMMER_ENDS = "daylight-saving-ends", "warning", "the clock goes back by an hour within a file; this is taken for the end of daylight saving time, so that UTC goes on";
    /// Daylight saving time began.
    SUMMER_BEGINS = "daylight-saving-begins", "warning", "the clock goes forward by an hour in a night to Sunday within a file; this is taken for the begin of daylight saving time, so that UTC goes on";
    /// The clock was set back.
    SET_BACK = "clock-set-back", "warning", "the clock goes back within a file, not by an hour: these times are in the log twice";
    /// Samples are missing.
    GAP = "gap", "warning", "times without samples that are more than three times as long as usual, within a file or between files of a machine: nothing is known of them, and shares of time leave them out";
    /// Times that were read before.
    OVERLAP = "overlapping-samples", "info", "values of times that another file of the same machine has too; they count once";
    /// No zone.
    NO_ZONE = "no-time-zone", "warning", "files whose header names no time zone (typeperf's): their UTC is local time, unless --utc-offset tells the zone";
    /// Day and month could be exchanged.
    DATE_ORDER = "date-order", "warning", "files whose dates may be month/day or day/month; month/day is assumed";
    /// A name that could not be read.
    CODE_PAGE = "code-page", "info", "headers in a code page of Windows, not in Unicode: the page is guessed by the names of counters";
}

/// Counts of all kinds, with the place of the first.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    counts: Vec<(&'static Kind, i64, String)>,
}

impl Notes {
    /// Counts something. `line` is counted from 1; 0 is the file as a whole.
    #[cold]
    pub fn count(&mut self, kind: &'static Kind, n: u64, file: &Path, line: u64) {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        if n == 0 {
            return;
        }
        match self.counts.iter_mut().find(|(k, ..)| std::ptr::eq(*k, kind)) {
            Some((_, count, _)) => *count = count.saturating_add(n),
            None => {
                let place = if line == 0 { String::new() } else { format!(", line {line}") };
                self.counts.push((kind, n, format!("{}{place}", file.display())));
            }
        }
    }

    /// Kind, count and place of the first, in the order of [`ALL`].
    pub fn all(&self) -> Vec<&(&'static Kind, i64, String)> {
        ALL.iter().filter_map(|kind| self.counts.iter().find(|(k, ..)| std::ptr::eq(*k, *kind))).collect()
    }
}
