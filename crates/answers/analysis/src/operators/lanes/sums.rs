//! Lanes that add rows of one table up: a declaration says which rows, and both the index and the query are made of it.

use super::cells::Cells;
use super::index::{Entry, Index, Item};
use super::spans::{named, together};
use super::{Ask, Extent, Kind, Lane, Shape, Source};
use etwhy_table::{ColumnView, Database, Matcher, Predicate, Table};

/// Begin or end of a row: a column, and one with a length that is before the begin or behind the end, if it has a name.
pub type Point = (&'static str, &'static str);

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
    /// Begin of a row.
    pub from: Point,
    /// End; the begin itself if rows are moments, which count an amount and not their time.
    pub to: Point,
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
    pub const fn over(table: &'static str, from: Point, to: Point) -> Sum {
        Sum {
            id: "",
            title: "",
            unit: "ns",
            shape: Shape::Stack,
            table,
            from,
            to,
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

    fn moments(&self) -> bool {
        self.from == self.to
    }

    fn cells<'a>(&self, db: &'a Database) -> Option<Cells<'a, 9>> {
        let ((from, before), (to, behind)) = (self.from, self.to);
        let names = [from, before, to, behind, self.amount, self.by, self.words.0, self.upid, self.cpu];
        Cells::read(db, self.table, names)
    }

    fn item(&self, views: &[ColumnView<'_>; 9], row: usize) -> Option<Item> {
        let [from, before, to, behind, amount, by, word, ..] = views;
        let length = |view: &ColumnView<'_>, name: &str| {
            if name.is_empty() { Some(0) } else { view.i64(row).map(|ns| ns.max(0)) }
        };
        let from_ns = from.i64(row)?.saturating_sub(length(before, self.from.1)?);
        let to_ns = to.i64(row)?.saturating_add(length(behind, self.to.1)?);
        let mut key = if self.by.is_empty() { 0 } else { by.i32(row)? };
        if !self.words.1.is_empty() {
            let word = word.text(row)?;
            let at = self.words.1.iter().position(|known| *known == word)?;
            key = key.checked_mul(self.words.1.len() as i32)?.checked_add(at as i32)?;
        }
        let amount = if self.amount.is_empty() { i64::from(self.moments()) } else { amount.i64(row)? };
        Some(Item { from_ns, to_ns, key, amount })
    }

    fn conditions(&self, table: &Table) -> Option<Vec<Predicate>> {
        self.only.iter().map(|text| Predicate::parse(text, table.spec()).ok()).collect()
    }

    fn index(&self, db: &Database, extent: Extent) -> Index {
        let Some(table) = db.get(self.table) else { return Index::default() };
        let (Some(cells), Some(conditions)) = (self.cells(db), self.conditions(table)) else {
            return Index::default();
        };
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
        let [name, mean] = self.names;
        let point = |(column, length): Point, sign: char| {
            if length.is_empty() { column.to_owned() } else { format!("{column} {sign} {length}") }
        };
        let (begin, end) = (point(self.from, '-'), point(self.to, '+'));
        let (sum, inside) = if self.moments() {
            let amount = self.amount;
            let sum = if amount.is_empty() { "count(*)".to_owned() } else { format!("sum({amount})") };
            (sum, format!("{begin} >= {from} AND {begin} < {to}"))
        } else {
            let sum = format!("sum(min({end}, {to}) - max({begin}, {from}))");
            (sum, format!("{end} > {from} AND {begin} < {to}"))
        };
        let over = to.saturating_sub(from);
        let mean = if mean.is_empty() { String::new() } else { format!(", {sum} * 1.0 / {over} AS {mean}") };
        let sum = format!("{sum} AS {name}{mean}");
        let by: Vec<&str> = [self.by, self.words.0].into_iter().filter(|name| !name.is_empty()).collect();
        let by = by.join(", ");
        let mut sql = if by.is_empty() { format!("SELECT {sum}") } else { format!("SELECT {by}, {sum}") };
        sql += &format!("\nFROM {}\nWHERE {inside}", self.table);
        if let Some(table) = db.get(self.table) {
            let conditions = self.conditions(table).unwrap_or_default();
            let conditions = conditions.iter().filter_map(|one| one.sql_of(table.spec()));
            sql.extend(conditions.map(|one| format!(" AND {one}")));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use crate::operators::among::Among;
    use crate::operators::lanes::{Grid, kinds};
    use etwhy_sql::Engine;
    use etwhy_table::ColumnType::{I32, I64, Text};
    use etwhy_table::Value;

    /// Rows of every table, 40 ns apart, some with nulls and words that do not count.
    fn db() -> Database {
        let words = ["read", "write", "flush", "send", "receive"];
        let row = |n: i64| {
            let number = |null: bool, value| if null { Value::Null } else { Value::I64(value) };
            vec![
                Value::I64(40 * n),
                Value::I64(40 * n + 25 + 35 * (n % 2)),
                number(n % 7 == 3, n % 5 * 30),
                Value::Text(words[n as usize % 5]),
                Value::I64(n % 2),
                Value::I64(100 + n),
                number(n % 6 == 5, n % 4),
            ]
        };
        let rows: Vec<Vec<Value<'static>>> = (0..60).map(row).collect();
        let mut db = Database::new();
        let mut insert = |name, columns: [&'static str; 7]| {
            let types = [I64, I64, I64, Text, I32, I64, I32];
            let there = |at: &usize| !columns[*at].is_empty();
            let of = |row: &Vec<Value<'static>>| (0..7).filter(there).map(|at| row[at]).collect();
            let rows: Vec<Vec<Value<'_>>> = rows.iter().map(of).collect();
            let columns: Vec<_> = (0..7).filter(there).map(|at| (columns[at], types[at])).collect();
            db.insert(table(name, &columns, &rows));
        };
        insert("disk_io", ["start_ns", "ts_ns", "service_ns", "op", "disk", "size_bytes", "upid"]);
        insert("network", ["", "ts_ns", "", "op", "", "size_bytes", "upid"]);
        insert("cswitch", ["", "ts_ns", "ready_ns", "", "", "", "new_upid"]);
        insert("hard_fault", ["start_ns", "", "", "", "", "", "upid"]);
        insert("idle_state", ["start_ns", "", "dur_ns", "", "state", "cpu", ""]);
        db
    }

    #[test]
    fn bands_are_those_of_the_query() {
        let (db, extent) = (db(), Extent { first_ns: 0, end_ns: 2_400 });
        let engine = Engine::new(&db).unwrap();
        let mut totals = Vec::new();
        let asked: [&[(i64, bool)]; 5] =
            [&[], &[(1, true)], &[(1, true), (2, true)], &[(1, false), (2, false)], &[(1, true), (2, false)]];
        for processes in asked {
            for kind in kinds::ALL {
                if !["disk", "network", "ready", "faults", "idle"].contains(&kind.name) {
                    continue;
                }
                let ask = Ask {
                    grid: Grid::plain(128, 64, 20),
                    processes: processes.iter().copied().collect(),
                    cpus: Among::default(),
                    modes: false,
                    given_up: &|| false,
                };
                for lane in (kind.open)(&db, extent).draw(&db, &ask) {
                    let theirs = engine.query("t", &lane.sql).unwrap();
                    let amount = ["busy_ns", "bytes", "request_ns", "ready_ns", "faults", "idle_ns"];
                    let amount =
                        amount.into_iter().find(|name| theirs.spec().column(name).is_some()).unwrap();
                    let mut theirs: Vec<i64> =
                        (0..theirs.rows() as u32).filter_map(|row| theirs.i64(row, amount)).collect();
                    let mut ours: Vec<i64> = lane.series.iter().map(|series| series.total as i64).collect();
                    ours.sort_unstable();
                    theirs.sort_unstable();
                    assert_eq!(ours, theirs, "{}", lane.sql);
                    totals.push((lane.id, ours.iter().sum::<i64>()));
                }
            }
        }
        let sum =
            |id: &str| totals.iter().filter(|(one, _)| one == id).map(|(_, sum)| *sum).collect::<Vec<_>>();
        assert!(totals.len() == 35 && totals.iter().all(|(_, sum)| *sum > 0), "{totals:?}");
        assert_eq!(sum("faults"), [32, 5, 13, 19, 5]);
    }
}
