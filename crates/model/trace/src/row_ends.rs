//! What becomes known of a row only after it was written: when the thing that it tells of ended, how, and by whom.
//!
//! Rows are written when something begins, so they come in the order of time and leave memory soon. Thirteen bytes a
//! row are kept here until the end of the pass.

use crate::anomalies::{ENDS_DOUBTFUL, OUTSTANDING_DOUBTFUL};
use crate::finish::Finish;
use etwhy_table::{Row, TableBuilder};

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum How {
    /// It has not.
    Open = 0,
    /// By a call that gives it back.
    Call = 1,
    /// With its process.
    Exit = 2,
    /// Its address or number was given out again: the end was not recorded.
    Unseen = 3,
    /// By a second kind of call.
    OtherCall = 4,
}

/// Ends of the rows of a table, by row.
#[derive(Debug, Default)]
pub(crate) struct RowEnds {
    ns: Vec<i64>,
    utid: Vec<u32>,
    how: Vec<How>,
}

const NOBODY: u32 = u32::MAX;

impl RowEnds {
    /// A new row; returns its number.
    pub(crate) fn add(&mut self) -> u32 {
        let row = u32::try_from(self.how.len()).unwrap_or(u32::MAX);
        self.ns.push(0);
        self.utid.push(NOBODY);
        self.how.push(How::Open);
        row
    }

    /// The row's thing ends.
    pub(crate) fn end(&mut self, row: u32, ns: i64, how: How, utid: Option<u32>) {
        let row = row as usize;
        if let (Some(n), Some(u), Some(h)) =
            (self.ns.get_mut(row), self.utid.get_mut(row), self.how.get_mut(row))
        {
            (*n, *u, *h) = (ns, utid.unwrap_or(NOBODY), how);
        }
    }

    /// How it ended.
    pub(crate) fn how(&self, row: usize) -> How {
        self.how.get(row).copied().unwrap_or(How::Open)
    }

    /// When it ended, if that was seen.
    pub(crate) fn ns(&self, row: usize) -> Option<i64> {
        let seen = !matches!(self.how(row), How::Open | How::Unseen);
        self.ns.get(row).copied().filter(|_| seen)
    }

    /// Who ended it.
    pub(crate) fn utid(&self, row: usize) -> Option<u32> {
        self.utid.get(row).copied().filter(|&u| u != NOBODY)
    }

    /// Whether it is there at the end of the trace. What was given out again is gone.
    pub(crate) fn open(&self, row: usize) -> bool {
        self.how(row) == How::Open
    }
}

/// Numbers the rows of a table while one of its columns is walked.
#[derive(Default)]
pub(crate) struct Counter(usize);

impl Counter {
    /// The next row.
    pub(crate) fn next(&mut self) -> usize {
        self.0 += 1;
        self.0 - 1
    }
}

/// Rows whose end was seen but may be that of another thing with the same address or number.
pub(crate) struct Doubts(Vec<bool>);

impl Doubts {
    /// Whether the row's end is in doubt.
    pub(crate) fn in_doubt(&self, row: usize) -> bool {
        self.0.get(row).copied().unwrap_or(false)
    }
}

impl Finish<'_> {
    /// Fills the columns for the end, the duration and how it ended; rows hold the start in the duration until then.
    /// `names` are those of a call, an exit, an unseen end and another call. Counts open ones of which the end may be
    /// missing. Where buffers may be missing between start and end, the end may be that of a later thing: such rows
    /// end `doubtful`, at no known time.
    ///
    /// # Errors
    /// Those of the table builder.
    pub(crate) fn fill_ends<R: Row>(
        &mut self,
        rows: &mut TableBuilder<R>,
        ends: &RowEnds,
        columns: [&str; 3],
        names: [&str; 4],
    ) -> etwhy_table::Result<Doubts> {
        let [end_column, duration, how] = columns;
        let cpus = &self.model.cpus;
        let (mut in_doubt, mut open_doubts, mut end_doubts) = (Vec::new(), 0, 0);
        rows.remap_i64(duration, |start| {
            let row = in_doubt.len();
            let until = ends.ns(row).unwrap_or(self.span_ns.1);
            let doubt = start.is_some_and(|start| cpus.doubtful(start, until));
            let called = matches!(ends.how(row), How::Call | How::OtherCall);
            open_doubts += u64::from(doubt && ends.open(row));
            end_doubts += u64::from(doubt && called);
            in_doubt.push(doubt && called);
            Some(ends.ns(row)?.saturating_sub(start?)).filter(|_| !(doubt && called))
        })?;
        self.ledger.count(&OUTSTANDING_DOUBTFUL, open_doubts);
        self.ledger.count(&ENDS_DOUBTFUL, end_doubts);
        let doubts = Doubts(in_doubt);
        let mut row = Counter::default();
        rows.remap_i64(end_column, |_| {
            let row = row.next();
            ends.ns(row).filter(|_| !doubts.in_doubt(row))
        })?;
        let [call, exit, unseen, other] = names.map(|name| self.strings.intern(name));
        let doubtful = self.strings.intern("doubtful");
        let mut row = Counter::default();
        rows.remap_text(how, |_| {
            let row = row.next();
            match ends.how(row) {
                How::Open => None,
                How::Exit => Some(exit),
                How::Unseen => Some(unseen),
                How::Call | How::OtherCall if doubts.in_doubt(row) => Some(doubtful),
                How::Call => Some(call),
                How::OtherCall => Some(other),
            }
        })?;
        Ok(doubts)
    }
}
