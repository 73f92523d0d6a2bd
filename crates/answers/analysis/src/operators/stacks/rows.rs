//! Weights that are rows of one table.

use super::{Class, WeightedStack, idle_processes};
use etwhy_table::filter::{IdSet, Test, quoted};
use etwhy_table::{ColumnView, Database, Matcher, Predicate, Role, TableSpec};
use std::sync::Arc;

/// Which columns of a table say what. A column that the table lacks is empty.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The table.
    pub table: &'static TableSpec,
    /// Time of a row.
    pub ts: Option<&'static str>,
    /// Process.
    pub upid: Option<&'static str>,
    /// Thread.
    pub utid: Option<&'static str>,
    /// Processor.
    pub cpu: Option<&'static str>,
    /// Stack.
    pub stack: Option<&'static str>,
    /// Frame that stands for the stack where none was recorded.
    pub frame: Option<&'static str>,
    /// Weight; the number of rows without it. Rows whose weight is empty or negative are left out.
    pub weight: Option<&'static str>,
    /// How many events a row stands for; one without it.
    pub count: Option<&'static str>,
    /// What must hold for a row, in the language of [`Predicate::parse`].
    pub only: &'static [&'static str],
    /// What ran; `None`: columns `in_dpc` and `in_isr` say it of each row.
    pub class: Option<Class>,
    /// Threads of Idle count too.
    pub idle: bool,
}

impl Rows {
    /// Rows of a table with the usual names of columns.
    pub const fn weighted(table: &'static TableSpec, weight: &'static str) -> Rows {
        Rows { weight: Some(weight), ..Rows::counted(table) }
    }

    /// Rows of a table with the usual names of columns, one like the other.
    pub const fn counted(table: &'static TableSpec) -> Rows {
        Rows {
            table,
            ts: Some("ts_ns"),
            upid: Some("upid"),
            utid: Some("utid"),
            cpu: Some("cpu"),
            stack: Some("stack_id"),
            frame: None,
            weight: None,
            count: None,
            only: &[],
            class: Some(Class::Thread),
            idle: true,
        }
    }

    /// What a declaration says of the columns; `None` if the table has no stacks of its own.
    pub fn guess(spec: &'static TableSpec) -> Option<Rows> {
        let first = |role: Role| spec.columns.iter().find(|c| c.role == role).map(|c| c.name.as_ref());
        let stack = spec.columns.iter().find(|c| c.name == "stack_id")?.name.as_ref();
        // These say what a stack is.
        if matches!(spec.name.as_ref(), "stack" | "stack_frame") {
            return None;
        }
        let named = |name: &str| spec.columns.iter().find(|c| c.name == name).map(|c| c.name.as_ref());
        let time = named("ts_ns").or_else(|| first(Role::Time));
        let (upid, utid) = (first(Role::Process), first(Role::Thread));
        let count = named("count").or_else(|| named("samples"));
        Some(Rows {
            ts: time,
            upid,
            utid,
            cpu: first(Role::Cpu),
            stack: Some(stack),
            count,
            ..Rows::counted(spec)
        })
    }

    /// Without the columns that a table lacks.
    pub fn known(self, spec: Option<&TableSpec>) -> Rows {
        let known = |name: Option<&'static str>| {
            name.filter(|name| spec.is_some_and(|spec| spec.column(name).is_some()))
        };
        Rows {
            ts: known(self.ts),
            upid: known(self.upid),
            utid: known(self.utid),
            cpu: known(self.cpu),
            stack: known(self.stack),
            count: known(self.count),
            ..self
        }
    }

    /// What must hold for a row; `idle` marks the processes that are Idle. `None` if the table lacks a column.
    fn conditions(&self, spec: &TableSpec, idle: Vec<bool>) -> Option<Vec<Predicate>> {
        let parse = |text: &&str| Predicate::parse(text, spec).ok();
        let mut out = self.only.iter().map(parse).collect::<Option<Vec<Predicate>>>()?;
        if !self.idle {
            let of_interrupts: &[&str] =
                if self.class.is_none() { &["in_dpc=yes", "in_isr=yes"] } else { &[] };
            let interrupts = of_interrupts.iter().map(parse).collect::<Option<Vec<Predicate>>>()?;
            let mut any: Vec<(usize, Test)> = interrupts.into_iter().flat_map(|one| one.any).collect();
            let sql = "coalesce({}, -1) NOT IN (SELECT upid FROM process WHERE pid = 0)".to_owned();
            let ids = Arc::new(idle.into_iter().map(|idle| !idle).collect());
            any.push((
                spec.column_index(self.upid?)?,
                Test::Ids(IdSet { ids, others: true, sql: Some(sql) }),
            ));
            out.push(Predicate { any, negated: false });
        }
        Some(out)
    }

    /// What is added up, and the conditions under which, in SQL; `None` if there is no such query.
    pub fn sql(&self, spec: &TableSpec) -> Option<(String, Vec<String>)> {
        let conditions = self.conditions(spec, Vec::new())?;
        let mut conditions =
            conditions.iter().map(|one| one.sql_of(spec)).collect::<Option<Vec<String>>>()?;
        let count = self.count.map(|count| format!("coalesce({}, 1)", quoted(count)));
        let amount = self.weight.map(quoted).or(count);
        conditions.extend(amount.iter().map(|amount| format!("{amount} >= 0")));
        Some((amount.map_or_else(|| "count(*)".to_owned(), |amount| format!("sum({amount})")), conditions))
    }

    /// Hands over all rows.
    pub fn each(&self, db: &Database, give: &mut dyn FnMut(WeightedStack)) {
        let Some(table) = db.get(&self.table.name) else { return };
        let idle = if self.idle { Vec::new() } else { idle_processes(db) };
        let Some(conditions) = self.conditions(table.spec(), idle) else { return };
        let flag = |name| Some(name).filter(|_| self.class.is_none());
        let number = |name: Option<&str>| name.and_then(|name| table.spec().column_index(name));
        let columns = [
            self.ts,
            self.upid,
            self.utid,
            self.cpu,
            self.stack,
            self.frame,
            self.weight,
            self.count,
            flag("in_dpc"),
            flag("in_isr"),
        ]
        .map(number);
        if self.weight.is_some() && columns[6].is_none() {
            return;
        }
        let mut matcher = Matcher::new(table, &conditions);
        let (within, mut rows) = (matcher.within(), Vec::new());
        for batch in 0..table.batches().len() {
            matcher.rows_of(batch, &within, &mut rows);
            let [ts, upid, utid, cpu, stack, frame, weight, count, dpc, isr] =
                columns.map(|c| c.map(|c| table.view(batch, c)));
            let get = |view: &Option<ColumnView<'_>>, row| view.as_ref().and_then(|view| view.i64(row));
            for row in rows.iter().map(|row| *row as usize) {
                let count = get(&count, row).unwrap_or(1);
                let amount = if self.weight.is_some() { get(&weight, row) } else { Some(count) };
                let Some(amount) = amount.filter(|&w| w >= 0) else { continue };
                give(WeightedStack {
                    ts_ns: get(&ts, row),
                    upid: get(&upid, row),
                    utid: get(&utid, row),
                    cpu: get(&cpu, row),
                    class: self.class.unwrap_or_else(|| {
                        Class::of_sample(get(&dpc, row) == Some(1), get(&isr, row) == Some(1))
                    }),
                    stack: get(&stack, row),
                    frame: get(&frame, row),
                    weight: amount,
                    count,
                });
            }
        }
    }
}
