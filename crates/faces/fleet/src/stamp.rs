//! Rows of a trace with their ids in front.

use crate::contract::{self, MODULE_ID, StoreTable, schema};
use crate::error::{FleetError, Result};
use crate::ids::Ids;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use etwhy_etl::read::short_id;
use etwhy_table::{ColumnType, ColumnView, Table, TableError};
use std::sync::Arc;

/// The rows of a table of a trace as rows of the store.
///
/// # Errors
/// If the table is not the one that the contract names.
pub fn stamp(to: &StoreTable, table: &Table, ids: &Ids) -> Result<Vec<RecordBatch>> {
    let wanted = schema(&to.spec);
    let mut all = Vec::with_capacity(table.batches().len());
    for (number, rows) in table.batches().iter().enumerate() {
        let count = rows.num_rows();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(wanted.fields().len());
        if !to.own_ids {
            for id in [&ids.trace, &ids.machine, &ids.extract] {
                columns.push(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(id, count))));
            }
        }
        let names: Vec<&str> = match to.own_ids {
            true => to.spec.columns.iter().map(|c| c.name.as_ref()).collect(),
            false => to.columns.iter().map(String::as_str).collect(),
        };
        for name in names {
            let at = table.spec().column_index(name);
            let is_text = at.and_then(|at| table.spec().columns.get(at)).map(|c| c.ty);
            let Some((column, ty)) = at.and_then(|at| rows.columns().get(at)).zip(is_text) else {
                let text = format!("{} has no column {name}", table.name());
                return Err(FleetError::View { view: "contract", why: text });
            };
            let file = ids.file.as_ref().filter(|_| to.spec.name == "trace_file" && name == "trace_id");
            columns.push(match (file, ty) {
                (Some(file), _) => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(file, count))),
                (None, ColumnType::Text) => plain(&ColumnView::new(column), count),
                (None, _) => column.clone(),
            });
        }
        if to.spec.name == "module" && to.spec.columns.last().is_some_and(|c| c.name == MODULE_ID) {
            columns.push(module_ids(table, number, count));
        }
        let rows = RecordBatch::try_new(wanted.clone(), columns)
            .map_err(|source| TableError::Arrow { table: to.spec.name.to_string(), source })?;
        all.push(rows);
    }
    Ok(all)
}

fn plain(view: &ColumnView<'_>, rows: usize) -> ArrayRef {
    Arc::new((0..rows).map(|row| view.text(row)).collect::<StringArray>())
}

/// Names of builds: the same file has the same in every trace.
fn module_ids(table: &Table, batch: usize, rows: usize) -> ArrayRef {
    let columns = ["name", "file_version", "size_bytes", "link_unix_ns"]
        .map(|name| table.spec().column_index(name).map(|at| table.view(batch, at)));
    let id = |row: usize| {
        let facts = columns.each_ref().map(|view| view.as_ref().map(|view| view.value(row)));
        short_id(&format!("{facts:?}").to_lowercase())
    };
    Arc::new(StringArray::from_iter_values((0..rows).map(id)))
}

/// The tables of a trace, stamped, by their names in the store; those without rows are left out.
///
/// # Errors
/// If a table is not the one that the contract names.
pub fn all(
    db: &etwhy_table::Database,
    own: &[Table],
    ids: &Ids,
) -> Result<Vec<(&'static StoreTable, Vec<RecordBatch>)>> {
    let mut stamped = Vec::new();
    for to in contract::tables().iter().filter(|to| !to.own_ids) {
        let table = match to.source {
            "" => own.iter().find(|table| table.name() == to.spec.name),
            source => db.get(source),
        };
        if let Some(table) = table.filter(|table| table.rows() > 0) {
            stamped.push((to, stamp(to, table, ids)?));
        }
    }
    Ok(stamped)
}
