//! Rows of table `event` as they are made: they are filtered, named and written part by part.

use super::{Args, choose, names, write as write_whole};
use crate::open::{Analysed, Events};
use crate::options::rows::Written;
use etwhy_table::{ColumnRef, Memory, Selection, Table, TableSpec};
use etwhy_trace::catalog::event::EVENT;
use std::io::Write;
use std::ops::ControlFlow;

/// Whether rows need not all be there to be written: those that match are few, or stay in their order.
pub(super) fn suffice(args: &Args, spec: &'static TableSpec, written: &Written<'_>) -> bool {
    std::ptr::eq(spec, &EVENT) && (streams(args, written) || is_first(args) || is_filtered(args))
}

/// Each row is written when it is made.
fn streams(args: &Args, written: &Written<'_>) -> bool {
    written.format.parts.is_some() && args.top.is_none() && in_order(args)
}

/// The first rows that match are wanted.
fn is_first(args: &Args) -> bool {
    args.top.is_some() && in_order(args)
}

fn in_order(args: &Args) -> bool {
    args.sort.is_empty() && args.top_per.is_none()
}

fn is_filtered(args: &Args) -> bool {
    let by_owner = args.process.is_some() || args.service.is_some();
    !args.conditions.is_empty() || by_owner || args.time.from.is_some() || args.time.to.is_some()
}

/// Writes what is wanted of the rows.
pub(super) fn write(
    args: &Args,
    analysed: &mut Analysed,
    events: &Events,
    mut written: Written<'_>,
    out: &mut (impl Write + Send),
) -> anyhow::Result<()> {
    written.threads = events.threads();
    if streams(args, &written) {
        return stream(args, analysed, events, &written, out);
    }
    let (table, matching) = gather(args, analysed, events, &written)?;
    analysed.db.insert(table);
    write_whole(args, analysed, &EVENT, &written, matching, out)
}

/// Some rows of a part, with the columns to show.
struct Part {
    table: Table,
    rows: Option<Vec<u32>>,
    shown: Vec<ColumnRef>,
}

impl Part {
    fn selection(&self) -> Selection<'_> {
        Selection::all(&self.table).with_rows(self.rows.clone()).with_shown(self.shown.clone())
    }
}

fn stream(
    args: &Args,
    analysed: &Analysed,
    events: &Events,
    written: &Written<'_>,
    out: &mut (impl Write + Send),
) -> anyhow::Result<()> {
    let mut named = Named::new(args, analysed)?;
    let prepare = |part: Table| {
        let table = named.of(&part)?;
        let mut selection = choose(&table, &analysed.db, args)?.0;
        if let Some(list) = &args.columns {
            selection = selection.columns(list)?;
        }
        let (shown, rows) = (selection.shown().to_vec(), selection.into_rows());
        Ok(Part { table, rows, shown })
    };
    events.write(prepare, |mut parts| written.parts(|| parts.take(), Part::selection, out))
}

/// The rows that match, or the first of them and one more, and then how many match.
fn gather(
    args: &Args,
    analysed: &Analysed,
    events: &Events,
    written: &Written<'_>,
) -> anyhow::Result<(Table, Option<usize>)> {
    let most = if is_first(args) { args.top } else { None };
    let most = most.map(|most| most.saturating_add(1));
    // Only a table for people says how many there are.
    let counts = written.format.parts.is_none();
    let mut named = Named::new(args, analysed)?;
    let mut matching = 0usize;
    let mut gathered: Option<Table> = None;
    // What is sorted or cut at the end is only filtered here.
    let all = Args { top: None, top_per: None, sort: Vec::new(), ..args.clone() };
    events.each(|part| {
        let rows = match is_filtered(args) {
            true => choose(&named.of(&part)?, &analysed.db, &all)?.0.into_rows(),
            false => None,
        };
        let left = most.map_or(usize::MAX, |most| most - gathered.as_ref().map_or(0, Table::rows).min(most));
        let selection = Selection::all(&part).with_rows(rows);
        matching += selection.len();
        let taken = selection.top(left).to_table()?;
        match &mut gathered {
            Some(gathered) => gathered.append(taken),
            None => gathered = Some(taken),
        }
        let enough = most.is_some_and(|most| matching >= most) && (!counts || !is_filtered(args));
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    let table = gathered.ok_or_else(|| anyhow::anyhow!("no part of table `event` was made"))?;
    let matching = if is_filtered(args) { matching } else { events.rows() };
    Ok((table, most.map(|_| matching)))
}

/// Adds columns of names to parts.
struct Named<'a> {
    analysed: &'a Analysed,
    derived: Option<Vec<etwhy_table::Derived<'static>>>,
    zero: i64,
    memory: Memory,
}

impl<'a> Named<'a> {
    fn new(args: &Args, analysed: &'a Analysed) -> anyhow::Result<Named<'a>> {
        let zero = super::zero(args, &analysed.db)?;
        Ok(Named { analysed, derived: None, zero, memory: Memory::unlimited() })
    }

    fn of(&mut self, part: &Table) -> anyhow::Result<Table> {
        let derived = self
            .derived
            .get_or_insert_with(|| names(&self.analysed.db, part.spec(), part.texts(), false, self.zero));
        Ok(part.with_derived(derived, &self.memory)?)
    }
}
