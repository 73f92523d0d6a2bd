//! Cells by row number, quickly, of columns that a declaration names: the same names make the query of its lane.

use etwhy_table::{ColumnView, Database, Table};

/// Columns of a table.
pub struct Cells<'a, const N: usize> {
    table: &'a Table,
    views: Vec<[ColumnView<'a>; N]>,
}

impl<'a, const N: usize> Cells<'a, N> {
    /// `None` if the table or a column is missing; a column without a name is empty.
    pub fn read(db: &'a Database, table: &str, names: [&str; N]) -> Option<Cells<'a, N>> {
        let table = db.get(table)?;
        let columns = names.map(|name| table.spec().column_index(name));
        if names.iter().zip(&columns).any(|(name, column)| !name.is_empty() && column.is_none()) {
            return None;
        }
        let view = |batch, column: Option<usize>| column.map_or(ColumnView::Empty, |c| table.view(batch, c));
        let views = (0..table.batches().len()).map(|batch| columns.map(|column| view(batch, column)));
        Some(Cells { table, views: views.collect() })
    }

    /// Rows of the table.
    pub fn rows(&self) -> u32 {
        u32::try_from(self.table.rows()).unwrap_or(u32::MAX)
    }

    /// The columns, and the row's number in them.
    #[inline]
    pub fn row(&self, row: u32) -> Option<(&[ColumnView<'a>; N], usize)> {
        let (batch, row) = self.table.locate(row)?;
        Some((self.views.get(batch)?, row))
    }
}
