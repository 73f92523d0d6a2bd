//! A part of a trace that is followed, as it stands.

use crate::error::Result;
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, Timeline};
use etwhy_table::Memory;
use etwhy_trace::{Base, Inputs, Output, Symbols, Wanted};
use std::collections::BTreeSet;

/// What is read, and how.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// Order key of the first record whose time counts.
    pub(crate) from: i64,
    /// Records at or behind this order key are not read.
    pub(crate) end: i64,
    /// Threads to use.
    pub(crate) threads: usize,
    /// What was counted before.
    pub(crate) ledger: Ledger,
}

/// Tables and where their columns go.
pub(crate) type Asked<'a> = (&'a BTreeSet<String>, &'a Memory);

/// The tables of a part; `base` knows what lies before some moment at or before its beginning.
pub(crate) fn read(
    files: &[EtlFile],
    timeline: &Timeline,
    base: &Base,
    span: &Span,
    (tables, memory): Asked<'_>,
    symbols: &mut Symbols,
) -> Result<Output> {
    let mut later = None;
    if base.at() < span.from {
        later.insert(base.copy()).advance(files, timeline, symbols, span.threads, span.from);
    }
    let inputs = Inputs::default();
    let wanted = Wanted {
        tables: Some(tables),
        threads: span.threads,
        memory,
        inputs: &inputs,
        to_ns: None,
        end: span.end,
    };
    let base = later.as_ref().unwrap_or(base);
    Ok(base.analyse(files, timeline, &wanted, symbols, &mut (), span.ledger.clone())?)
}

/// A part of a trace that is followed, which stays as it is while more comes: it can be read on a thread of its own.
pub struct Part {
    pub(crate) files: Vec<EtlFile>,
    pub(crate) timeline: Timeline,
    pub(crate) base: Base,
    pub(crate) span: Span,
}

impl Part {
    /// Its tables.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn tables(
        &self,
        symbols: &mut Symbols,
        tables: &BTreeSet<String>,
        memory: &Memory,
    ) -> Result<Output> {
        read(&self.files, &self.timeline, &self.base, &self.span, (tables, memory), symbols)
    }
}
