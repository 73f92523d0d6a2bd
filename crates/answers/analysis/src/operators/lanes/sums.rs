//! Lanes that add rows of one table up: a declaration says which rows, and both the index and the query are made of it.

use super::cells::Cells;
use super::index::{Entry, Index, Item};
use super::spans::{named, together};
use super::{Ask, Extent, Kind, Lane, Shape, Source};
use etwhy_table::{ColumnView, Database, Matcher, Predicate, Table};

/// When rows are.
#[derive(Clone, Copy)]
pub enum When {
    /// At a moment: what counts is an amount.
    At(&'static str),
    /// From one column to another; what counts is the time.
    Between(&'static str, &'static str),
    /// As long as the second column says, from the first on.
    After(&'static str, &'static str),
    /// As long as the second column says, up to the first.
    Before(&'static str, &'static str),
}

impl When {
    fn columns(self) -> [&'static str; 2] {
        match self {
            When::At(at) => [at, ""],
            When::Between(a, b) | When::After(a, b) | When::Before(a, b) => [a, b],
        }
    }

    /// Begin and end.
    fn read(self, a: Option<i64>, b: Option<i64>) -> Option<(i64, i64)> {
        let a = a?;
        Some(match self {
            When::At(_) => (a, a),
            When::Between(..) => (a, b?),
            When::After(..) => (a, a.saturating_add(b?.max(0))),
            When::Before(..) => (a.saturating_sub(b?.max(0)), a),
        })
    }

    /// Begin and end in SQL.
    fn sql(self) -> (String, String) {
        match self {
            When::At(at) => (at.to_owned(), at.to_owned()),
            When::Between(a, b) => (a.to_owned(), b.to_owned()),
            When::After(a, b) => (a.to_owned(), format!("{a} + {b}")),
            When::Before(a, b) => (format!("{a} - {b}"), a.to_owned()),
        }
    }
}

/// A lane of sums.
pub struct Sum {
    /// Behind the kind in the lane's id, if the kind has several.
    pub id: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// How to draw it.
    pub shape: Shape,
    /// The table.
    pub table: &'static str,
    /// When its rows are.
    pub when: When,
    /// What a moment counts, if not one.
    pub amount: &'static str,
    /// Rows that count, in the language of filters.
    pub only: &'static [&'static str],
    /// Processor of a row; the lane is full when all processors are.
    pub cpu: &'static str,
    /// Process of a row.
    pub upid: &'static str,
    /// Number by which there are bands.
    pub by: &'static str,
    /// Column by whose words there are bands too, and the words. Rows with others do not count.
    pub words: (&'static str, &'static [&'static str]),
    /// What people call a band: the number, times the number of words, plus that of the word.
    pub band: fn(i32) -> String,
    /// Names of the sum and of its mean over time in the query.
    pub names: [&'static str; 2],
}

impl Sum {
    /// A lane of all rows of a table.
    pub const fn of(table: &'static str, when: When) -> Sum {
        Sum {
            id: "",
            title: "",
            unit: "ns",
            shape: Shape::Stack,
            table,
            when,
            amount: "",
            only: &[],
            cpu: "",
            upid: "",
            by: "",
            words: ("", &[]),
            band: |_| String::new(),
            names: ["", ""],
        }
    }

    fn cells<'a>(&self, db: &'a Database) -> Option<Cells<'a, 7>> {
        let [a, b] = self.when.columns();
        Cells::of(db, self.table, [a, b, self.amount, self.by, self.words.0, self.upid, self.cpu])
    }

    fn item(&self, [a, b, amount, by, word, ..]: &[ColumnView<'_>; 7], row: usize) -> Option<Item> {
        let (from_ns, to_ns) = self.when.read(a.i64(row), b.i64(row))?;
        let mut key = if self.by.is_empty() { 0 } else { by.i32(row)? };
        if !self.words.1.is_empty() {
            let word = word.text(row)?;
            let at = self.words.1.iter().position(|known| *known == word)?;
            key = key.checked_mul(self.words.1.len() as i32)?.checked_add(at as i32)?;
        }
        let amount = match (self.when, self.amount) {
            (When::At(_), "") => 1,
            (When::At(_), _) => amount.i64(row)?,
            _ => 0,
        };
        Some(Item { from_ns, to_ns, key, amount })
    }

    fn conditions(&self, table: &Table) -> Vec<Predicate> {
        self.only.iter().filter_map(|text| Predicate::parse(text, table.spec()).ok()).collect()
    }

    fn index(&self, db: &Database, extent: Extent) -> Index {
        let (Some(cells), Some(table)) = (self.cells(db), db.get(self.table)) else {
            return Index::default();
        };
        let conditions = self.conditions(table);
        let counts = (!conditions.is_empty()).then(|| Matcher::new(table, &conditions).mask());
        let group = |row: u32| {
            let counts = counts.as_ref().is_none_or(|counts| counts.get(row as usize) == Some(&true));
            let (views, at) = cells.row(row).filter(|_| counts)?;
            if self.cpu.is_empty() { Some(0) } else { views.last()?.i64(at) }
        };
        let read = |row| cells.row(row).and_then(|(views, row)| self.item(views, row));
        Index::build(cells.rows(), extent, group, read)
    }

    fn sql(&self, db: &Database, ask: &Ask<'_>) -> String {
        let (from, to) = (ask.grid.start_ns, ask.grid.end_ns);
        let ((begin, end), [name, mean]) = (self.when.sql(), self.names);
        let (mut sum, inside) = match (self.when, self.amount) {
            (When::At(_), "") => ("count(*)".to_owned(), format!("{begin} >= {from} AND {begin} < {to}")),
            (When::At(_), amount) => {
                (format!("sum({amount})"), format!("{begin} >= {from} AND {begin} < {to}"))
            }
            _ => (
                format!("sum(min({end}, {to}) - max({begin}, {from}))"),
                format!("{end} > {from} AND {begin} < {to}"),
            ),
        };
        let over = to.saturating_sub(from);
        let mean = if mean.is_empty() { String::new() } else { format!(", {sum} * 1.0 / {over} AS {mean}") };
        sum = format!("{sum} AS {name}{mean}");
        let by: Vec<&str> = [self.by, self.words.0].into_iter().filter(|name| !name.is_empty()).collect();
        let by = by.join(", ");
        let mut sql = if by.is_empty() { format!("SELECT {sum}") } else { format!("SELECT {by}, {sum}") };
        sql += &format!("\nFROM {}\nWHERE {inside}", self.table);
        let spec = db.get(self.table).map(Table::spec);
        for one in self.only.iter().filter_map(|text| Predicate::parse(text, spec?).ok()?.sql_of(spec?)) {
            sql += &format!(" AND {one}");
        }
        if !self.words.1.is_empty() {
            sql += &format!(" AND {} IN ('{}')", self.words.0, self.words.1.join("', '"));
        }
        if !self.upid.is_empty() {
            sql += &ask.sql(self.upid);
        }
        if by.is_empty() { sql } else { format!("{sql}\nGROUP BY {by}") }
    }
}

/// Indexes of the lanes of a kind.
pub struct Sums(&'static str, Vec<(&'static Sum, Index)>);

impl Sums {
    /// Reads their tables.
    pub fn open(kind: &'static Kind, sums: &'static [Sum], db: &Database, extent: Extent) -> Box<dyn Source> {
        Box::new(Sums(kind.name, sums.iter().map(|sum| (sum, sum.index(db, extent))).collect()))
    }
}

impl Source for Sums {
    fn draw(&self, db: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let mut out = Vec::new();
        for (sum, index) in &self.1 {
            let Some(cells) = sum.cells(db).filter(|_| !index.groups.is_empty()) else { continue };
            let every_row = !sum.upid.is_empty() && !ask.all_processes();
            let read = |row| {
                let (views, row) = cells.row(row)?;
                let [.., upid, _] = views;
                let wanted = !every_row || ask.wants(upid.i64(row));
                wanted.then(|| sum.item(views, row)).flatten()
            };
            let wanted: Vec<_> =
                index.groups.iter().filter(|group| sum.cpu.is_empty() || ask.wants_cpu(group.id)).collect();
            let of = |group: &&_| index.sum(group, &ask.grid, every_row, read, ask.given_up);
            let lists: Vec<Vec<Entry>> = wanted.iter().map(of).collect();
            let mut lane = Lane::new(self.0, sum.title, sum.unit, sum.shape);
            if !sum.id.is_empty() {
                lane.id = format!("{}:{}", self.0, sum.id);
            }
            lane.series = named(&together(lists), sum.band);
            if sum.shape == Shape::Share {
                let parts = if sum.cpu.is_empty() { lane.series.len() } else { wanted.len() };
                lane.full = ask.grid.bucket_ns as f64 * parts.max(1) as f64;
            }
            lane.sql = sum.sql(db, ask);
            out.push(lane);
        }
        out
    }
}
