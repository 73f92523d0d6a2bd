//! Reads rows of declared tables by the names of their columns, which the compiler checks.

use crate::{Absent, Database, Row, Table, TableSpec};

/// The rows of a declared table. One view per column and batch is made at the beginning; after that a cell costs an index.
pub struct Rows<'a, R: Row> {
    table: Option<&'a Table>,
    batches: Vec<(R::Views<'a>, usize)>,
}

/// A row of a table: a function for each column.
pub type RowOf<'r, 'a, R> = <R as Row>::Ref<'r, 'a>;

impl Database {
    /// The rows of a table.
    ///
    /// # Errors
    /// If it is not there.
    pub fn read<R: Row>(&self) -> Result<Rows<'_, R>, Absent> {
        self.table::<R>()?.read()
    }

    /// The table whose rows are `R`, for code that shows all of its columns.
    ///
    /// # Errors
    /// If it is not there.
    pub fn table<R: Row>(&self) -> Result<&Table, Absent> {
        self.get(&R::spec().name).ok_or_else(|| Absent::Table(name::<R>()))
    }

    /// The rows of a table, none if it is not there: for sums, and for names of what has none.
    pub fn read_or_empty<R: Row>(&self) -> Rows<'_, R> {
        self.read().unwrap_or_else(|absent| {
            debug_assert!(matches!(absent, Absent::Table(_)), "{absent}");
            Rows::default()
        })
    }
}

impl Table {
    /// The rows, as those that `R` declares.
    ///
    /// # Errors
    /// If a column is missing or of another type.
    pub fn read<R: Row>(&self) -> Result<Rows<'_, R>, Absent> {
        let spec: &'static TableSpec = R::spec();
        let mut at = Vec::with_capacity(spec.columns.len());
        for column in spec.columns.iter() {
            let index = self.spec().column_index(&column.name);
            let same = index.filter(|&i| self.spec().columns.get(i).is_some_and(|c| c.ty == column.ty));
            at.push(same.ok_or_else(|| Absent::Column(name::<R>(), &column.name))?);
        }
        let rows = self.batches().iter().map(arrow_array::RecordBatch::num_rows).enumerate();
        let views = rows.map(|(batch, rows)| Some((R::views(self, batch, &at)?, rows)));
        let batches = views.collect::<Option<_>>().ok_or_else(|| Absent::Column(name::<R>(), ""))?;
        Ok(Rows { table: Some(self), batches })
    }
}

fn name<R: Row>() -> &'static str {
    &R::spec().name
}

impl<'a, R: Row> Rows<'a, R> {
    /// All rows, in order.
    #[inline]
    pub fn iter(&self) -> Iter<'_, 'a, R> {
        Iter { views: None, row: 0, rows: 0, rest: self.batches.iter() }
    }

    /// The rows batch by batch, for loops that can be stopped.
    pub fn batches(&self) -> impl Iterator<Item = Iter<'_, 'a, R>> {
        let batches = self.batches.iter();
        batches.map(|(views, rows)| Iter { views: Some(views), row: 0, rows: *rows, rest: [].iter() })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.table.map_or(0, Table::rows)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of a number: tables of things that have numbers are in their order.
    #[inline]
    pub fn get(&self, row: impl TryInto<u32>) -> Option<RowOf<'_, 'a, R>> {
        let (batch, row) = self.table?.locate(row.try_into().ok()?)?;
        self.batches.get(batch).map(|(views, _)| R::at(views, row))
    }

    /// The first row: tables of facts have one.
    pub fn first(&self) -> Option<RowOf<'_, 'a, R>> {
        self.get(0u32)
    }
}

impl<R: Row> Default for Rows<'_, R> {
    fn default() -> Self {
        Rows { table: None, batches: Vec::new() }
    }
}

impl<R: Row> std::fmt::Debug for Rows<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows({}, {})", R::spec().name, self.len())
    }
}

impl<'r, 'a: 'r, R: Row> IntoIterator for &'r Rows<'a, R> {
    type Item = RowOf<'r, 'a, R>;
    type IntoIter = Iter<'r, 'a, R>;

    fn into_iter(self) -> Iter<'r, 'a, R> {
        self.iter()
    }
}

/// Goes over the rows of a table, batch by batch.
pub struct Iter<'r, 'a, R: Row> {
    views: Option<&'r R::Views<'a>>,
    row: usize,
    rows: usize,
    rest: std::slice::Iter<'r, (R::Views<'a>, usize)>,
}

impl<R: Row> Clone for Iter<'_, '_, R> {
    fn clone(&self) -> Self {
        Iter { rest: self.rest.clone(), ..*self }
    }
}

impl<R: Row> std::fmt::Debug for Iter<'_, '_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Iter({})", R::spec().name)
    }
}

impl<'r, 'a: 'r, R: Row> Iterator for Iter<'r, 'a, R> {
    type Item = RowOf<'r, 'a, R>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.row >= self.rows {
            let (views, rows) = self.rest.next()?;
            (self.views, self.row, self.rows) = (Some(views), 0, *rows);
        }
        let row = R::at(self.views?, self.row);
        self.row += 1;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::{ExampleRow, example, example_with};
    use crate::{CHUNK_ROWS, Memory, define_table};

    define_table! {
        /// What [`ExampleRow`] was once.
        table OLD: OldRow = "example" {
            version: 2,
            /// Processor.
            cpu: i64 [None, Cpu],
        }
    }

    #[test]
    fn cells_are_what_was_pushed() {
        let mut db = Database::new();
        db.insert(example());
        let rows = db.read::<ExampleRow>().unwrap();
        let read = |row: u32| rows.get(row).unwrap();
        assert_eq!((rows.len(), rows.iter().count()), (4, 4));
        assert_eq!(rows.iter().map(|r| r.ts_ns()).collect::<Vec<_>>(), [0, 10, 20, 30]);
        assert_eq!((read(1).cpu(), read(1).wait_ns(), read(3).wait_ns()), (1, Some(2_000_000), None));
        assert_eq!((read(2).process(), read(3).process()), (Some("System"), None));
        assert_eq!((read(0).share(), read(2).share()), (Some(12.5), None));
        assert_eq!((read(1).in_dpc(), read(3).in_dpc()), (Some(false), None));
        assert_eq!((read(1).fields(), read(3).fields()), ("two", ""));
        assert!(rows.get(4u32).is_none() && rows.get(-1i64).is_none() && rows.get(i64::MAX).is_none());
        let sym = |row| rows.get(row).and_then(|r| r.views.process.sym(r.at));
        assert!(sym(0u32).is_some() && sym(0) != sym(1) && sym(3).is_none());
    }

    #[test]
    fn batches_follow_each_other() {
        let rows = CHUNK_ROWS * 2 + 5;
        let table = example_with(&Memory::unlimited(), rows);
        let read = table.read::<ExampleRow>().unwrap();
        assert!(read.iter().map(|r| r.ts_ns()).eq((0..rows as i64).map(|at| at * 10)));
        assert_eq!(read.get(CHUNK_ROWS).unwrap().ts_ns(), CHUNK_ROWS as i64 * 10);
        let counts: Vec<usize> = read.batches().map(Iterator::count).collect();
        assert_eq!(counts, [CHUNK_ROWS, CHUNK_ROWS, 5]);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let mut db = Database::new();
        assert_eq!(db.read::<ExampleRow>().unwrap_err(), Absent::Table("example"));
        assert!(db.read_or_empty::<ExampleRow>().is_empty());
        assert!(db.read_or_empty::<ExampleRow>().first().is_none());
        db.insert(example());
        assert_eq!(db.read::<OldRow>().unwrap_err(), Absent::Column("example", "cpu"));
    }
}
