//! Stacks with weights: what call trees, flame graphs and exports are made of.
//!
//! A [`Metric`] says what is added up along stacks (CPU samples, waiting, bytes, …) and where its rows stand. Each is one
//! declaration in `metrics/`; [`METRICS`] lists them, and [`Metric::of_column`] makes one of any table with stacks.
//! [`Frames`] gives the frames of a weight, [`tree`] and [`butterfly`] add weights up.

mod butterfly;
mod chart;
mod diff;
mod flat;
mod folding;
mod frames;
mod groups;
mod grow;
mod matcher;
mod metrics;
mod prune;
mod retag;
mod rows;
mod shown;
mod steps;
mod tree;
mod weighed;

pub use butterfly::Butterfly;
pub use chart::{Chart, ChartBox, Lane, chart};
pub use diff::Before;
pub use flat::Flat;
pub use folding::{Folding, MAX_FOCUS};
pub use frames::{FrameKind, FrameName, Frames};
pub use groups::GroupBy;
pub use grow::{Builder, View, butterfly, tree};
pub use matcher::Matcher;
pub use metrics::ALL as METRICS;
pub use prune::Limits;
pub use retag::retag;
pub use rows::Rows;
pub use shown::{Ordered, Shown};
pub use steps::Step;
pub use tree::{Node, NodeKind, NodeName, Sum, Tree};
pub use weighed::Weighed;

use super::ProcessRow;
use crate::fold::{FactsRows, StacksRows};
use etwhy_table::{ColumnType, Database, Reads, Role, Row, TableSpec, Unit};
use etwhy_trace::catalog::{stack::StackRow, stack_cost::STACK_COST, thread::ThreadRow};
pub use etwhy_trace::stacks::Class;

/// A weight at a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightedStack {
    /// When, in nanoseconds since the start of the trace; `None` if the rows are sums over time.
    pub ts_ns: Option<i64>,
    /// Process that it is charged to; of a DPC or ISR the one that it interrupted.
    pub upid: Option<i64>,
    /// Thread that it is charged to; `None` if the rows are sums over threads.
    pub utid: Option<i64>,
    /// Processor; `None` if the rows are of no processor.
    pub cpu: Option<i64>,
    /// What ran. A DPC or ISR has only the part of the stack that is its own: see [`Frames::frames_of`].
    pub class: Class,
    /// Row of table `stack`; `None` if no stack was recorded.
    pub stack: Option<i64>,
    /// Row of table `frame` that stands for the stack where none was recorded.
    pub frame: Option<i64>,
    /// How much, in the metric's unit.
    pub weight: i64,
    /// How many events it stands for.
    pub count: i64,
}

/// Something that can be added up along stacks.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// How it is computed, and what fools it.
    pub manual: &'static str,
    /// Unit of the weight.
    pub unit: Unit,
    /// Where its weights come from.
    pub source: Source,
}

/// Where weights come from.
#[derive(Clone, Copy)]
pub enum Source {
    /// Rows of a table.
    Rows(Rows),
    /// What the function hands over, and what it reads besides [`FramesRows`]. The first of these tables is empty if its events
    /// were not recorded.
    Code(fn() -> Vec<&'static TableSpec>, fn(&Database, &mut dyn FnMut(WeightedStack))),
}

/// What [`Frames`] and trees read: stacks, frames, processes and threads.
pub type FramesRows = (StacksRows, FactsRows, ProcessRow, ThreadRow);

impl Metric {
    /// The metric with this name.
    pub fn by_name(name: &str) -> Option<&'static Metric> {
        METRICS.iter().copied().find(|metric| metric.name.eq_ignore_ascii_case(name))
    }

    /// A metric of any table with stacks: the sum of a column, or the number of rows for column `count` of a table that has
    /// no such column.
    ///
    /// # Errors
    /// If the table has no stacks or no such numbers; the text names those that it has.
    pub fn of_column(spec: &'static TableSpec, column: &str) -> Result<Metric, String> {
        let table = spec.name.as_ref();
        let rows = Rows::guess(spec).ok_or_else(|| format!("table {table} has no stacks"))?;
        let metric = |rows, about, unit, name| Metric {
            name,
            about,
            manual: spec.title.as_ref(),
            unit,
            source: Source::Rows(rows),
        };
        let adds_up = |role, unit| {
            matches!(role, Role::Duration | Role::Weight | Role::Bytes | Role::Count)
                || matches!(unit, Unit::Ns | Unit::Bytes | Unit::Count) && role != Role::Time
        };
        let numbers = || {
            let of = |c: &&etwhy_table::ColumnSpec| {
                matches!(c.ty, ColumnType::I32 | ColumnType::I64) && adds_up(c.role, c.unit)
            };
            spec.columns.iter().filter(of)
        };
        if let Some(found) = numbers().find(|c| c.name.eq_ignore_ascii_case(column)) {
            let name = found.name.as_ref();
            let rows = Rows { weight: Some(name), ..rows };
            return Ok(metric(rows, found.doc.as_ref(), found.unit, name));
        }
        if column.eq_ignore_ascii_case("count") {
            return Ok(metric(Rows { weight: None, ..rows }, "Number of rows.", Unit::Count, "count"));
        }
        let names: Vec<&str> = numbers().map(|c| c.name.as_ref()).chain(["count"]).collect();
        Err(format!(
            "table {table} has no column `{column}` that can be added up; it has {}",
            names.join(", ")
        ))
    }

    /// A metric of nothing in a unit, for tests of how trees look.
    #[doc(hidden)]
    pub fn of_unit(unit: Unit) -> Metric {
        Metric { name: "test", about: "", manual: "", unit, source: Source::Code(Vec::new, |_, _| {}) }
    }

    /// What the command line calls it.
    pub fn label(&self) -> String {
        match &self.source {
            Source::Rows(rows)
                if Metric::by_name(self.name).is_none_or(|known| known.about != self.about) =>
            {
                format!("{}.{}", rows.table.name, self.name)
            }
            _ => self.name.to_owned(),
        }
    }

    /// The table whose rows it adds up.
    pub fn table(&self) -> &'static str {
        &self.spec().name
    }

    fn spec(&self) -> &'static TableSpec {
        match &self.source {
            Source::Rows(rows) => rows.table,
            Source::Code(reads, _) => reads().first().copied().unwrap_or(StackRow::spec()),
        }
    }

    /// All tables that must be there, those of stacks, processes and threads behind its own.
    pub fn tables(&self) -> Vec<&'static TableSpec> {
        let mut tables = match &self.source {
            Source::Rows(rows) => vec![rows.table],
            Source::Code(reads, _) => reads(),
        };
        FramesRows::add_to(&mut tables);
        tables
    }

    /// The columns of its rows.
    pub fn rows(&self) -> Rows {
        match self.source {
            Source::Rows(rows) => rows,
            Source::Code(..) => Rows::counted(self.spec()),
        }
    }

    /// Where the pass has added its rows up by process and stack, over all time, threads and processors: hundreds of times fewer.
    pub fn sums(&self) -> Option<Rows> {
        let label = self.label();
        let (class, only): (Class, &[&str]) = match label.as_str() {
            "cpu" => (Class::Thread, &["class=thread"]),
            "dpc" => (Class::Dpc, &["class=dpc"]),
            "isr" => (Class::Isr, &["class=isr"]),
            _ => return None,
        };
        let weighted = Rows::weighted(&STACK_COST, "weight_ns");
        let (ts, utid, cpu) = (None, None, None);
        Some(Rows { ts, utid, cpu, count: Some("samples"), only, class: Some(class), ..weighted })
    }

    /// Hands over all its weights.
    pub fn each(&self, db: &Database, give: &mut dyn FnMut(WeightedStack)) {
        match &self.source {
            Source::Rows(rows) => rows.each(db, give),
            Source::Code(_, each) => each(&db.limited_to(&self.tables()), give),
        }
    }

    /// Hands over the weights of a part of the trace.
    pub fn each_of(&self, db: &Database, part: &TracePart, give: &mut dyn FnMut(WeightedStack)) {
        self.each(db, &mut |weight| {
            if part.has(&weight) {
                give(weight);
            }
        });
    }
}

/// A part of a trace. What a filter knows nothing of is not in it: rows without a time are in no stretch.
#[derive(Clone, Debug, Default)]
pub struct TracePart {
    /// First moment, ns.
    pub from_ns: Option<i64>,
    /// End, ns.
    pub to_ns: Option<i64>,
    /// For each process (`upid`) whether it is wanted. DPCs and ISRs belong to no process.
    pub processes: Option<Vec<bool>>,
    /// For each thread (`utid`) whether it is wanted.
    pub threads: Option<Vec<bool>>,
    /// For each logical processor whether it is wanted, DPCs and ISRs on it included.
    pub cpus: Option<Vec<bool>>,
}

impl TracePart {
    /// Whether sums over all time, threads and processors can tell what is in it.
    pub fn of_sums(&self) -> bool {
        let TracePart { from_ns, to_ns, processes: _, threads, cpus } = self;
        from_ns.is_none() && to_ns.is_none() && threads.is_none() && cpus.is_none()
    }

    /// Whether a weight is in it.
    pub fn has(&self, weight: &WeightedStack) -> bool {
        let wanted = |list: &Option<Vec<bool>>, id: Option<i64>| {
            let Some(list) = list else { return true };
            let known = id.and_then(|id| usize::try_from(id).ok()).and_then(|id| list.get(id));
            weight.class == Class::Thread && known == Some(&true)
        };
        self.from_ns.is_none_or(|from| weight.ts_ns.is_some_and(|ts| ts >= from))
            && self.to_ns.is_none_or(|to| weight.ts_ns.is_some_and(|ts| ts < to))
            && wanted(&self.processes, weight.upid)
            && wanted(&self.threads, weight.utid)
            && self.cpus.as_ref().is_none_or(|list| marked(list, weight.cpu))
    }
}

/// For each process whether it is Idle, whose time nobody used.
pub(crate) fn idle_processes(db: &Database) -> Vec<bool> {
    super::process_names(db).iter().map(|(_, pid)| *pid == 0).collect()
}

/// Whether a list of processes has one marked.
pub(crate) fn marked(list: &[bool], upid: Option<i64>) -> bool {
    upid.and_then(|u| usize::try_from(u).ok()).and_then(|u| list.get(u)).copied().unwrap_or(false)
}

#[cfg(test)]
mod looks_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;
