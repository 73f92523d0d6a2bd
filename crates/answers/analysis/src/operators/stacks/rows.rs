//! Weights that are rows of one table.

use super::WeightedStack;
use etwhy_table::{ColumnView, Database, Role, TableSpec};

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
    /// Weight; the number of rows without it. Rows whose weight is empty or negative are left out.
    pub weight: Option<&'static str>,
    /// How many events a row stands for; one without it.
    pub count: Option<&'static str>,
}

impl Rows {
    /// Rows of a table with the usual names of columns.
    pub const fn of(table: &'static TableSpec, weight: &'static str) -> Rows {
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
            weight: None,
            count: None,
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
            table: spec,
            ts: time,
            upid,
            utid,
            cpu: first(Role::Cpu),
            stack: Some(stack),
            weight: None,
            count,
        })
    }

    /// Hands over all rows.
    pub fn each(&self, db: &Database, give: &mut dyn FnMut(WeightedStack)) {
        let Some(table) = db.get(&self.table.name) else { return };
        let number = |name: Option<&str>| name.and_then(|name| table.spec().column_index(name));
        let columns =
            [self.ts, self.upid, self.utid, self.cpu, self.stack, self.weight, self.count].map(number);
        if self.weight.is_some() && columns[5].is_none() {
            return;
        }
        for (batch, rows) in table.batches().iter().map(|b| b.num_rows()).enumerate() {
            let [ts, upid, utid, cpu, stack, weight, count] =
                columns.map(|c| c.map(|c| table.view(batch, c)));
            let get = |view: &Option<ColumnView<'_>>, row| view.as_ref().and_then(|view| view.i64(row));
            for row in 0..rows {
                let count = get(&count, row).unwrap_or(1);
                let amount = if weight.is_some() { get(&weight, row) } else { Some(count) };
                let Some(amount) = amount.filter(|&w| w >= 0) else { continue };
                give(WeightedStack {
                    ts_ns: get(&ts, row),
                    upid: get(&upid, row),
                    utid: get(&utid, row),
                    cpu: get(&cpu, row),
                    stack: get(&stack, row),
                    weight: amount,
                    count,
                    ..WeightedStack::default()
                });
            }
        }
    }
}
