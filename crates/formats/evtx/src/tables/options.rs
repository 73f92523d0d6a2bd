//! How tables are made, and why they cannot be.

use crate::error::EvtxError;
use crate::filter::Filter;
use etwhy_table::{Memory, Strings, Sym, TableError};

/// What column `log_record.fields` holds, which is most of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// Nothing: it is null.
    None,
    /// The fields of these names (`Data3` is the third of those without): what is made from records needs no others.
    Named(&'static [&'static str]),
    /// All fields.
    All,
}

/// How logs become tables.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads.
    pub threads: usize,
    /// Zero of `ts_ns`, since 1970 (UTC); `None`: the earliest record.
    pub zero_utc_ns: Option<i64>,
    /// Make `log_record` too.
    pub records: bool,
    /// What its column `fields` holds.
    pub fields: Fields,
    /// Make a table `event_<id>` for each of these.
    pub ids: Vec<u16>,
    /// Which records `log_record`, `log_type` and `event_<id>` have; `log_file` describes whole files.
    pub filter: Filter,
    /// Where columns are held.
    pub memory: Memory,
}

/// Why tables cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] EvtxError),
    /// A table cannot be made.
    #[error(transparent)]
    Table(#[from] TableError),
}

pub(super) fn some(strings: &mut Strings, text: &str) -> Option<Sym> {
    (!text.is_empty()).then(|| strings.intern(text))
}
