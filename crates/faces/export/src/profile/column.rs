//! Cells by row number, of columns that a declaration of events names: one reader serves the tables of all kinds.

use etwhy_table::{ColumnView, Table, Value};

/// A column of a table that may be missing: then every cell is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column<'a> {
    table: Option<&'a Table>,
    views: Vec<ColumnView<'a>>,
}

impl<'a> Column<'a> {
    /// The column `name` of a table.
    pub fn find(table: &'a Table, name: &str) -> Column<'a> {
        table.column(name).map_or_else(Column::default, |views| Column { table: Some(table), views })
    }

    fn at(&self, row: u32) -> Option<(ColumnView<'a>, usize)> {
        let (batch, row) = self.table?.locate(row)?;
        Some((*self.views.get(batch)?, row))
    }

    /// The number in a row.
    pub fn i64(&self, row: u32) -> Option<i64> {
        let (view, row) = self.at(row)?;
        view.i64(row)
    }

    /// The text in a row.
    pub fn text(&self, row: u32) -> Option<&'a str> {
        let (view, row) = self.at(row)?;
        view.text(row)
    }

    /// The cell in a row.
    pub fn value(&self, row: u32) -> Value<'a> {
        self.at(row).map_or(Value::Null, |(view, row)| view.value(row))
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.table.map_or(0, |table| u32::try_from(table.rows()).unwrap_or(u32::MAX))
    }
}

/// A row number from a cell.
pub(crate) fn row(id: impl Into<Option<i64>>) -> Option<u32> {
    id.into().and_then(|id| u32::try_from(id).ok())
}
