//! Tables and their columns.

use crate::line::Line;
use serde::Serialize;

/// What becomes of a column where there is no room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Its cells stay whole.
    Whole,
    /// Cells lose their middle.
    Cut,
    /// Cells go on in the next line.
    Wrap,
    /// It takes what the others leave, or goes if that is little: sparklines.
    Rest,
}

/// A column.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Its heading. Where no column has one, a terminal shows none.
    pub head: String,
    /// The heading that it shares with its neighbours; empty if none.
    pub group: String,
    /// Unit of its numbers, if all have the same; empty if cells say it.
    pub unit: String,
    /// Numbers end at the right.
    pub right: bool,
    /// What gives way.
    pub fit: Fit,
    /// Columns of a terminal that it keeps when others need room.
    pub least: usize,
}

impl Column {
    fn new(head: impl Into<String>, right: bool, fit: Fit, least: usize) -> Column {
        Column { head: head.into(), group: String::new(), unit: String::new(), right, fit, least }
    }

    /// Names: they are cut in their middle where there is no room.
    pub fn name(head: impl Into<String>) -> Column {
        Column::new(head, false, Fit::Cut, 12)
    }

    /// Short words, which stay whole.
    pub fn word(head: impl Into<String>) -> Column {
        Column::new(head, false, Fit::Whole, 0)
    }

    /// Sentences, which go on in the next line.
    pub fn text(head: impl Into<String>) -> Column {
        Column::new(head, false, Fit::Wrap, 30)
    }

    /// Numbers, with their unit in each cell.
    pub fn number(head: impl Into<String>) -> Column {
        Column::new(head, true, Fit::Whole, 0)
    }

    /// Bars or sparklines, if there is room.
    pub fn rest(head: impl Into<String>) -> Column {
        Column::new(head, false, Fit::Rest, 8)
    }

    /// With a heading that it shares with its neighbours of the same.
    #[must_use]
    pub fn below(mut self, group: impl Into<String>) -> Column {
        self.group = group.into();
        self
    }

    /// With the unit of all its numbers.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Column {
        self.unit = unit.into();
        self
    }

    /// With columns of a terminal that it keeps.
    #[must_use]
    pub fn least(mut self, columns: usize) -> Column {
        self.least = columns;
        self
    }

    /// The heading with its unit.
    pub(crate) fn title(&self) -> String {
        if self.unit.is_empty() { self.head.clone() } else { format!("{} ({})", self.head, self.unit) }
    }
}

/// A table. The last columns say least: they go first where a terminal is too narrow for all.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows; a short one has empty cells at its end.
    pub rows: Vec<Vec<Line>>,
    /// Rows that are not shown.
    pub more: usize,
    /// Where they are: `--top shows more`.
    pub hint: String,
    /// A terminal that is too narrow for all columns names those that it leaves out.
    #[serde(skip)]
    pub names_left_out: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), ..Table::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Line>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whose columns belong together: where a terminal leaves some out, it names them.
    #[must_use]
    pub fn naming_left_out(mut self) -> Table {
        self.names_left_out = true;
        self
    }

    /// With so many rows at most; the others are counted.
    #[must_use]
    pub fn at_most(mut self, rows: usize) -> Table {
        self.more = self.more.saturating_add(self.rows.len().saturating_sub(rows));
        self.rows.truncate(rows);
        self
    }

    /// What is said below the table of the rows that it does not show.
    pub(crate) fn rest(&self) -> Option<String> {
        let more = etwhy_base::units::thousands(self.more as i128);
        let hint = if self.hint.is_empty() { String::new() } else { format!(" ({})", self.hint) };
        (self.more > 0).then(|| format!("… and {more} more{hint}"))
    }

    pub(crate) fn has_head(&self) -> bool {
        self.columns.iter().any(|column| !column.head.is_empty())
    }
}
