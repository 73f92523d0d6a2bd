//! A selection: some rows of a table, in some order, and the columns to show.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringArray,
};
use arrow_schema::{ArrowError, SchemaRef};
use hashbrown::HashMap;

use crate::filter::has_wildcard;
use crate::sort::{for_each_cell, sorted};
use crate::{
    CHUNK_ROWS, ColumnRef, ColumnSpec, ColumnType, ColumnView, FilterError, Matcher, Pattern, Predicate,
    SortKey, Table, TableSpec, Value, arrow_schema,
};

/// Rows and columns chosen from a table; what writers write.
#[derive(Debug, Clone)]
pub struct Selection<'t> {
    table: &'t Table,
    /// `None` means all, in order.
    rows: Option<Vec<u32>>,
    columns: Vec<ColumnRef>,
}

impl<'t> Selection<'t> {
    /// All rows and columns.
    pub fn all(table: &'t Table) -> Selection<'t> {
        let columns = table.spec().columns.iter().enumerate().map(|(i, c)| ColumnRef::plain(i, c));
        Selection { table, rows: None, columns: columns.collect() }
    }

    /// Keeps the rows for which all conditions hold. Conditions must have been parsed for this table.
    pub fn filter(mut self, conditions: &[Predicate]) -> Selection<'t> {
        if !conditions.is_empty() {
            let mut matcher = Matcher::new(self.table, conditions);
            self.rows = Some(match self.rows.take() {
                None => matcher.rows(),
                Some(mut rows) => {
                    let place = |row| self.table.locate(row);
                    rows.retain(|row| place(*row).is_some_and(|(batch, row)| matcher.matches(batch, row)));
                    rows
                }
            });
        }
        self
    }

    /// Keeps the rows, by their number, that are wanted.
    pub fn filter_rows(mut self, mut wanted: impl FnMut(u32) -> bool) -> Selection<'t> {
        let mut rows = self.take_rows();
        rows.retain(|row| wanted(*row));
        self.rows = Some(rows);
        self
    }

    /// Keeps the rows whose number in a column is wanted; null is asked about too.
    pub fn filter_number(
        mut self,
        column: usize,
        mut wanted: impl FnMut(Option<i64>) -> bool,
    ) -> Selection<'t> {
        let views: Vec<ColumnView<'t>> =
            (0..self.table.batches().len()).map(|batch| self.table.view(batch, column)).collect();
        let mut rows = self.take_rows();
        rows.retain(|row| {
            let place = self.table.locate(*row);
            let number = place.and_then(|(batch, row)| views.get(batch)?.i64(row));
            wanted(number)
        });
        self.rows = Some(rows);
        self
    }

    /// Sorts the rows and keeps at most `limit`; without keys it only limits. Equal rows keep their
    /// order, nulls come last. With a limit the rest is not sorted, which is much faster.
    pub fn sort(mut self, keys: &[SortKey], limit: Option<usize>) -> Selection<'t> {
        let rows = self.take_rows();
        self.rows = Some(sorted(self.table, &rows, keys, limit));
        self
    }

    /// Keeps the first `limit` rows.
    pub fn top(mut self, limit: usize) -> Selection<'t> {
        if limit < self.len() {
            self.rows = Some(self.row_ids().take(limit).collect());
        }
        self
    }

    /// Keeps the first `limit` rows of each distinct value of a column.
    pub fn top_per(mut self, column: &ColumnRef, limit: usize) -> Selection<'t> {
        let rows = self.take_rows();
        let mut keep = Vec::with_capacity(rows.len());
        let mut numbers: HashMap<Option<u64>, usize> = HashMap::new();
        let mut texts: HashMap<String, usize> = HashMap::new();
        for_each_cell(self.table, &rows, column.index, |view, row| {
            let number = match view {
                ColumnView::LongText(_) => None,
                ColumnView::F64(..) => view.f64(row).map(f64::to_bits),
                _ => view.key(row).map(|sym| u64::from(sym.0)).or(view.i64(row).map(|v| v as u64)),
            };
            let count = match (view, view.text(row)) {
                (ColumnView::LongText(_), Some(text)) => texts.entry_ref(text).or_insert(0),
                _ => numbers.entry(number).or_insert(0),
            };
            *count += 1;
            keep.push(*count <= limit);
        });
        let kept = rows.into_iter().zip(keep).filter(|(_, keep)| *keep);
        self.rows = Some(kept.map(|(row, _)| row).collect());
        self
    }

    /// Chooses columns by a list such as `ts_s,process,wait_ms`, `*` and `!stack` included: an item with
    /// wildcards adds what matches, `!` takes away (from all columns if it comes first). `,` and `;`
    /// both separate.
    ///
    /// # Errors
    /// If an item is no column of the table.
    pub fn columns(mut self, list: &str) -> Result<Selection<'t>, FilterError> {
        let spec = self.table.spec();
        let mut chosen: Vec<ColumnRef> = Vec::new();
        let plain = || spec.columns.iter().enumerate().map(|(i, c)| ColumnRef::plain(i, c));
        for (at, item) in list.split([',', ';']).map(str::trim).filter(|i| !i.is_empty()).enumerate() {
            if let Some(item) = item.strip_prefix('!') {
                if at == 0 {
                    chosen = plain().collect();
                }
                let gone = matching(item, spec)?;
                chosen.retain(|c| !gone.iter().any(|g| g.index == c.index));
            } else {
                for column in matching(item, spec)? {
                    // `process,*` puts one column first and does not repeat it.
                    if !has_wildcard(item) || !chosen.iter().any(|c| c.index == column.index) {
                        chosen.push(column);
                    }
                }
            }
        }
        if !chosen.is_empty() {
            self.columns = chosen;
        }
        Ok(self)
    }

    /// The row numbers if they are not all of the table's.
    pub fn into_rows(self) -> Option<Vec<u32>> {
        self.rows
    }

    /// Keeps these rows, by their number.
    pub fn with_rows(mut self, rows: Option<Vec<u32>>) -> Selection<'t> {
        self.rows = rows;
        self
    }

    /// The table.
    pub fn table(&self) -> &'t Table {
        self.table
    }

    /// The columns to show, in order.
    pub fn shown(&self) -> &[ColumnRef] {
        &self.columns
    }

    /// Shows these columns.
    pub fn with_shown(mut self, columns: Vec<ColumnRef>) -> Selection<'t> {
        self.columns = columns;
        self
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.table.rows(), Vec::len)
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows, with all columns, as a table of their own.
    ///
    /// # Errors
    /// None that a caller could cause; Arrow checks the layout.
    pub fn to_table(&self) -> crate::Result<Table> {
        let all = Selection { rows: self.rows.clone(), ..Selection::all(self.table) };
        let spec = Arc::new(all.spec());
        let schema = all.schema();
        match all.batches().collect::<Result<Vec<_>, _>>() {
            Ok(batches) => Ok(Table::new(spec, schema, batches, self.table.texts().clone())),
            Err(source) => Err(crate::TableError::Arrow { table: self.table.name().to_owned(), source }),
        }
    }

    /// The row numbers, in order.
    pub fn row_ids(&self) -> impl Iterator<Item = u32> + '_ {
        let (all, some) = match &self.rows {
            None => (0..self.table.rows() as u32, [].as_slice()),
            Some(rows) => (0..0, rows.as_slice()),
        };
        all.chain(some.iter().copied())
    }

    fn take_rows(&mut self) -> Vec<u32> {
        self.rows.take().unwrap_or_else(|| (0..self.table.rows() as u32).collect())
    }

    /// Access to the shown cells, prepared for loops over rows.
    pub fn reader(&self) -> Reader<'_> {
        let views =
            |c: &ColumnRef| (0..self.table.batches().len()).map(|b| self.table.view(b, c.index)).collect();
        Reader { table: self.table, columns: &self.columns, views: self.columns.iter().map(views).collect() }
    }

    /// The declaration of what is shown: columns in another unit are floats.
    pub fn spec(&self) -> TableSpec {
        let mut spec = self.table.spec().clone();
        let shown = |c: &ColumnRef| {
            let mut column: ColumnSpec = self.table.spec().columns.get(c.index)?.clone();
            if !c.is_plain() {
                column.ty = ColumnType::F64;
                column.unit = c.unit;
                column.name = c.name.clone().into();
            }
            Some(column)
        };
        spec.columns = self.columns.iter().filter_map(shown).collect::<Vec<_>>().into();
        let sorted = |name: &str| spec.columns.iter().any(|c| c.name == name);
        spec.sorted_by = spec.sorted_by.take().filter(|name| self.rows.is_none() && sorted(name));
        spec
    }

    /// The Arrow schema of [`Selection::batches`].
    pub fn schema(&self) -> SchemaRef {
        arrow_schema(&self.spec())
    }

    /// The selection as Arrow batches, made one at a time. A whole table passes as it is; text columns
    /// keep the dictionary of the table.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + '_ {
        let schema = self.schema();
        let whole = self.rows.is_none() && self.columns.iter().all(ColumnRef::is_plain);
        let indexes: Vec<usize> = self.columns.iter().map(|c| c.index).collect();
        let as_is = self.table.batches().iter().take(if whole { usize::MAX } else { 0 });
        let projected = {
            let schema = schema.clone();
            as_is.map(move |batch| batch.project(&indexes)?.with_schema(schema.clone()))
        };
        let gathered = if whole { 0 } else { self.len().div_ceil(CHUNK_ROWS) };
        let reader = self.reader();
        let gathered = (0..gathered).map(move |chunk| {
            let from = chunk * CHUNK_ROWS;
            let rows: Vec<u32> = match &self.rows {
                Some(rows) => rows.iter().skip(from).take(CHUNK_ROWS).copied().collect(),
                None => (from..self.len().min(from + CHUNK_ROWS)).map(|row| row as u32).collect(),
            };
            reader.gather(&rows, &schema)
        });
        projected.chain(gathered)
    }
}

/// The columns that an item of a list names.
fn matching(item: &str, spec: &TableSpec) -> Result<Vec<ColumnRef>, FilterError> {
    if !has_wildcard(item) {
        return Ok(vec![ColumnRef::find(item, spec)?]);
    }
    let pattern = Pattern::parse(item);
    let found: Vec<ColumnRef> = spec
        .columns
        .iter()
        .enumerate()
        .filter(|(_, c)| pattern.matches(&c.name))
        .map(|(i, c)| ColumnRef::plain(i, c))
        .collect();
    if found.is_empty() { Err(FilterError::unknown_column(item, spec)) } else { Ok(found) }
}

/// The shown cells of a selection.
#[derive(Debug)]
pub struct Reader<'a> {
    table: &'a Table,
    columns: &'a [ColumnRef],
    /// By shown column, then batch.
    views: Vec<Vec<ColumnView<'a>>>,
}

impl<'a> Reader<'a> {
    /// The cell of a row (a number from [`Selection::row_ids`]) in a shown column, in the shown unit.
    #[inline]
    pub fn value(&self, row: u32, shown: usize) -> Value<'a> {
        let cell = self.stored(row, shown);
        self.columns.get(shown).map_or(Value::Null, |column| column.show(cell))
    }

    /// Where a row is, for [`Reader::value_at`].
    #[inline]
    pub fn place(&self, row: u32) -> Option<(usize, usize)> {
        self.table.locate(row)
    }

    /// As [`Reader::value`], for who asks for many cells of a row.
    #[inline]
    pub fn value_at(&self, (batch, row): (usize, usize), shown: usize) -> Value<'a> {
        let view = self.views.get(shown).and_then(|views| views.get(batch));
        let (Some(view), Some(column)) = (view, self.columns.get(shown)) else { return Value::Null };
        column.show(view.value(row))
    }

    /// The cell as it is stored.
    #[inline]
    pub fn stored(&self, row: u32, shown: usize) -> Value<'a> {
        let Some((batch, row)) = self.table.locate(row) else { return Value::Null };
        let view = self.views.get(shown).and_then(|views| views.get(batch));
        view.map_or(Value::Null, |view| view.value(row))
    }

    fn gather(&self, rows: &[u32], schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let cells = |shown: usize| rows.iter().map(move |row| self.value(*row, shown));
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (shown, column) in self.columns.iter().enumerate() {
            let ty = self.table.spec().columns.get(column.index).map_or(ColumnType::LongText, |c| c.ty);
            arrays.push(match ty {
                _ if !column.is_plain() => {
                    Arc::new(cells(shown).map(Value::as_f64).collect::<Float64Array>())
                }
                ColumnType::I64 => Arc::new(cells(shown).map(Value::as_i64).collect::<Int64Array>()),
                ColumnType::I32 => {
                    let narrow = |v: Value<'_>| v.as_i64().map(|v| v as i32);
                    Arc::new(cells(shown).map(narrow).collect::<Int32Array>())
                }
                ColumnType::F64 => Arc::new(cells(shown).map(Value::as_f64).collect::<Float64Array>()),
                ColumnType::Bool => {
                    let truth = |v: Value<'_>| v.as_i64().map(|v| v != 0);
                    Arc::new(cells(shown).map(truth).collect::<BooleanArray>())
                }
                ColumnType::LongText => Arc::new(cells(shown).map(Value::as_text).collect::<StringArray>()),
                ColumnType::Text => {
                    let key = |row: &u32| {
                        let (batch, row) = self.table.locate(*row)?;
                        let sym = self.views.get(shown)?.get(batch)?.key(row)?;
                        i32::try_from(sym.0).ok()
                    };
                    let keys: Int32Array = rows.iter().map(key).collect();
                    let texts = self.table.texts().array();
                    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts)?)
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;
    use crate::test_table::{EXAMPLE, example, example_with};

    fn names(selection: &Selection<'_>) -> Vec<String> {
        selection.shown().iter().map(|c| c.name.clone()).collect()
    }

    fn condition(text: &str) -> Predicate {
        Predicate::parse(text, &EXAMPLE).unwrap()
    }

    #[test]
    fn columns_are_chosen_by_lists() {
        let table = example();
        let of = |list: &str| Selection::all(&table).columns(list).map(|s| names(&s));
        assert_eq!(of("ts_s, process;wait_ms").unwrap(), ["ts_s", "process", "wait_ms"]);
        assert_eq!(of("process,*").unwrap().len(), 10);
        assert_eq!(
            of("!*_ns;!cpu").unwrap(),
            ["size", "process", "address", "status", "share", "in_dpc", "fields"]
        );
        assert_eq!(of("").unwrap().len(), 10);
        assert!(of("nope").is_err());
        assert!(of("nope*").is_err());
    }

    #[test]
    fn steps_combine() {
        let table = example_with(&Memory::unlimited(), 200_000);
        let keys = [SortKey::parse("-ts_ns", &EXAMPLE).unwrap()];
        let process = ColumnRef::find("process", &EXAMPLE).unwrap();
        let found = Selection::all(&table)
            .filter(&[condition("ts_us>=1")])
            .filter(&[condition("cpu!=3")])
            .sort(&keys, None)
            .top_per(&process, 2);
        assert_eq!(
            found.row_ids().collect::<Vec<_>>(),
            [199_998, 199_997, 199_996, 199_994, 199_993, 199_992]
        );
        let rows: Vec<u32> = Selection::all(&table).top(2).row_ids().collect();
        assert_eq!(rows, [0, 1]);
        let fields = ColumnRef::find("fields", &EXAMPLE).unwrap();
        assert_eq!(Selection::all(&table).top_per(&fields, 1).row_ids().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn batches_hold_what_the_selection_shows() {
        let table = example_with(&Memory::unlimited(), 150_000);
        let whole = Selection::all(&table);
        let batches: Vec<RecordBatch> = whole.batches().map(Result::unwrap).collect();
        assert_eq!(batches, table.batches());
        assert_eq!(whole.spec().sorted_by.as_deref(), Some("ts_ns"));

        let part = Selection::all(&table)
            .filter(&[condition("cpu=1..2")])
            .columns("wait_ms,process,fields,cpu")
            .unwrap();
        let batches: Vec<RecordBatch> = part.batches().map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 75_000);
        assert_eq!(part.spec().sorted_by, None);
        let first = ColumnView::new(batches[0].column(0));
        assert_eq!((first.f64(0), first.f64(1)), (Some(2.0), Some(7000.0)));
        assert_eq!(ColumnView::new(batches[1].column(1)).text(0), Some("cmdkey.exe"));
        assert_eq!(ColumnView::new(batches[1].column(2)).text(0), Some("two"));
        assert_eq!(batches[0].schema().field(0).name(), "wait_ms");
    }
}
