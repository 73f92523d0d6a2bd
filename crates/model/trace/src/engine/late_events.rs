//! The rows of table `event`, made part by part while the trace is walked once more.
//!
//! The text of all events is many times the trace. Whose an event is, and which stack it has, is known only at the end of a pass;
//! so the pass keeps these numbers ([`OWNER`](crate::catalog::event::OWNER)), and the rest of a row, which follows from its record
//! alone, is made when the row is wanted.

use super::TypeState;
use crate::catalog::event::{OwnerRow, RowMaker};
use crate::event::Event;
use crate::fit::{Fit, Fitting, Verdict};
use etwhy_decode::EventTypes;
use etwhy_decode::schema::DecodedBy;
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, Timeline, Walk};
use etwhy_table::{Memory, PART_ROWS, Table, TableBuilder, TableError, Texts};
use std::ops::ControlFlow;

/// Bytes of text after which a part ends.
const PART_TEXT: usize = 8 << 20;

/// The records that the pass showed to analyses, by order key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub from: i64,
    /// Records from here on only told names.
    pub behind: i64,
    /// Records from here on were not read.
    pub end: i64,
}

/// What is needed to make the rows of table `event` once the pass is over.
pub struct LateEvents {
    types: EventTypes,
    states: Vec<TypeState>,
    span: Span,
    owners: Table,
    texts: Texts,
}

impl LateEvents {
    pub(super) fn new(
        types: EventTypes,
        states: Vec<TypeState>,
        span: Span,
        owners: Table,
        texts: Texts,
    ) -> LateEvents {
        LateEvents { types, states, span, owners, texts }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.owners.rows()
    }

    /// Makes the rows from the files of the pass, in their order, in tables of some thousands of rows (one without rows if
    /// there is none), until `each` has had enough. Gives their number: fewer than [`LateEvents::rows`] if it had, or if files have
    /// changed since the pass.
    ///
    /// # Errors
    /// Only those of the table builder.
    pub fn each(
        &self,
        files: &[EtlFile],
        threads: usize,
        each: &mut dyn FnMut(Table) -> ControlFlow<()>,
    ) -> etwhy_table::Result<usize> {
        let timeline = Timeline::read(files, &mut Ledger::new());
        let owners = self.owners.read::<OwnerRow>().map_err(|absent| TableError::NoColumn {
            table: self.owners.name().to_owned(),
            column: absent.to_string(),
        })?;
        let mut owners = owners.iter();
        let mut types = self.types.clone();
        let mut fits = vec![Fit::default(); self.states.len()];
        let mut fitting = Fitting::default();
        let mut maker = RowMaker::default();
        let mut rows = TableBuilder::new(&Memory::unlimited());
        let mut ledger = Ledger::new();
        let (mut made, mut in_part) = (0usize, 0usize);
        let mut result = Ok(());
        let mut goes_on = true;
        let mut hand_over = |rows: &mut TableBuilder<_>| match rows.take(&self.texts) {
            Ok(part) => each(part).is_continue(),
            Err(error) => {
                result = Err(error);
                false
            }
        };
        let walk = Walk::new(files, &timeline).part(self.span.from, self.span.end);
        walk.for_each_pipelined(threads, &mut Ledger::new(), |record, key| {
            if !goes_on || key >= self.span.behind {
                return;
            }
            let type_index = types.index(record);
            let at = type_index as usize;
            let (Some(state), Some(fit), Some(owner)) =
                (self.states.get(at), fits.get_mut(at), owners.next())
            else {
                return;
            };
            // As the pass did.
            let verdict = match state.schema.as_deref() {
                Some(schema) if schema.decoded_by != DecodedBy::None => {
                    fitting.verdict(fit, record, schema, state.identity, &mut ledger)
                }
                _ => Verdict::Pointers(record.pointer_size()),
            };
            let pointer_size = match verdict {
                Verdict::Pointers(size) => size,
                Verdict::Never => record.pointer_size(),
            };
            let event = Event {
                record,
                payload: record.payload(),
                ns: timeline.key_to_ns(key),
                tag: 0,
                type_index,
                schema: state.schema.as_deref(),
                names: state.names.as_ref().map_or(("", ""), |(provider, name)| (provider, name)),
                slots: &[],
                own_header: state.own_header,
                pointer_size,
            };
            let number = |cell: Option<i64>| cell.map(|cell| cell as i32);
            let owner = OwnerRow {
                upid: number(owner.upid()),
                utid: number(owner.utid()),
                stack_id: number(owner.stack_id()),
            };
            rows.push(maker.row(&event, owner, &mut |text| self.texts.interned(text)));
            (made, in_part) = (made + 1, in_part + 1);
            if in_part >= PART_ROWS || rows.text_bytes() >= PART_TEXT {
                goes_on = hand_over(&mut rows);
                in_part = 0;
            }
        });
        if goes_on {
            hand_over(&mut rows);
        }
        result.map(|()| made)
    }
}
