//! What questions about stacks have in common: the metric, the part, the levels, the steps.

pub mod nodes;
mod sql;

use crate::call::{Call, Fault};
use crate::part::{Kind, Part};
use crate::trace::Trace;
use etwhy_analysis::stacks::{
    Builder, Class, Folding, GroupBy, METRICS, Matcher, Metric, Ordered, Step, TracePart, View, Weighed,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use ts_rs::TS;

/// What a body says besides its part.
#[derive(Clone, Debug, Deserialize, Serialize, TS)]
#[ts(rename = "StackQuestion")]
pub struct Question {
    /// Name of a metric, or TABLE.COLUMN.
    #[serde(default = "cpu")]
    pub metric: String,
    /// Levels above the frames.
    #[serde(default = "process")]
    pub by: Vec<String>,
    /// Functions in which stacks end first.
    #[serde(default)]
    pub inverted: bool,
    /// Steps in the order in which they were taken.
    #[serde(default)]
    pub steps: Vec<StepBody>,
    /// Processes and threads by name alone, which two traces may share.
    #[serde(default)]
    pub names_only: bool,
}

fn cpu() -> String {
    "cpu".to_owned()
}

fn process() -> Vec<String> {
    vec!["process".to_owned()]
}

/// A step.
#[derive(Clone, Debug, Deserialize, Serialize, TS)]
#[ts(rename = "Step")]
#[serde(tag = "op", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum StepBody {
    /// A node becomes the top.
    Subtree { path: Vec<String>, inverted: bool },
    /// Only stacks with the function, from it on.
    Focus { function: String },
    /// Only stacks with the function.
    With { function: String },
    /// No stacks with the function.
    Drop { function: String },
    /// The function is left out; what it cost is its caller's.
    Merge { function: String },
    /// Stacks begin at the function, if they have it.
    TrimAbove { function: String },
    /// Stacks end at the function, if they have it.
    TrimBelow { function: String },
    /// Only stacks with the module, from it on.
    FocusModule { module: String },
    /// No stacks with the module.
    DropModule { module: String },
    /// The module is left out; what it cost is its caller's.
    MergeModule { module: String },
    /// Each visit of the module is one frame.
    Collapse { module: String },
    /// A function that is called again inside of itself stands once.
    Recursion,
    /// Code of Windows is left out.
    Mine,
}

/// Filters that somebody may set.
const MOST_FILTERS: usize = 1000;

/// Steps that somebody may take.
const MOST_STEPS: usize = 100;

impl StepBody {
    fn step(&self) -> Step {
        let function = |label: &String| vec![Matcher::function(label.clone())];
        let module = |name: &String| vec![Matcher::module(name.clone())];
        let none = Folding::default();
        Step::Fold(match self {
            StepBody::Subtree { path, inverted } => {
                return Step::Subtree { path: path.clone(), inverted: *inverted };
            }
            StepBody::Focus { function: f } => Folding { focus: function(f), above: function(f), ..none },
            StepBody::With { function: f } => Folding { focus: function(f), ..none },
            StepBody::Drop { function: f } => Folding { exclude: function(f), ..none },
            StepBody::Merge { function: f } => Folding { drop: function(f), ..none },
            StepBody::TrimAbove { function: f } => Folding { above: function(f), ..none },
            StepBody::TrimBelow { function: f } => Folding { below: function(f), ..none },
            StepBody::FocusModule { module: m } => Folding { focus: module(m), above: module(m), ..none },
            StepBody::DropModule { module: m } => Folding { exclude: module(m), ..none },
            StepBody::MergeModule { module: m } => Folding { drop: module(m), ..none },
            StepBody::Collapse { module: m } => Folding { collapse: module(m), ..none },
            StepBody::Recursion => Folding { merge_recursion: true, ..none },
            StepBody::Mine => Folding { just_my_code: true, ..none },
        })
    }
}

/// Facts of every answer: the metric, what says nothing of it, the query, why nothing is there.
#[derive(Serialize, TS)]
pub struct StackFacts {
    metric: String,
    about: &'static str,
    manual: &'static str,
    unit: &'static str,
    table: &'static str,
    unused: Vec<&'static str>,
    sql: Option<String>,
    why: Option<String>,
    /// The command that records what is missing.
    record: Option<String>,
}

/// A question that was understood.
pub struct Asked {
    /// The trace.
    pub trace: Arc<Trace>,
    /// What is added up.
    pub metric: Metric,
    /// Of which part.
    pub part: TracePart,
    /// How.
    pub view: View,
    /// What says nothing of the metric's rows.
    pub unused: Vec<&'static str>,
    /// The query with the same total, if there is one.
    pub sql: Option<String>,
    /// The same for the same answer.
    pub key: String,
    why_nothing: Option<String>,
}

/// The metric of this name.
///
/// # Errors
/// If there is none.
pub fn metric_of(call: &Call<'_>, name: &str) -> Result<Metric, Fault> {
    if let Some(metric) = Metric::by_name(name) {
        return Ok(*metric);
    }
    let unknown = || {
        let names: Vec<&str> = METRICS.iter().map(|m| m.name).collect();
        Fault::Wrong(format!("there is no metric {name}; there are {}, and TABLE.COLUMN", names.join(", ")))
    };
    let (table, column) = name.split_once('.').ok_or_else(unknown)?;
    let spec = call.spec(table).ok_or_else(unknown)?;
    Metric::of_column(spec, column).map_err(Fault::Wrong)
}

impl Asked {
    /// What a call asks about its trace and part.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn parse(call: &Call<'_>) -> Result<Asked, Fault> {
        let question: Question = call.parse()?;
        Asked::with(call, call.trace()?, &Part::parse(call)?, question)
    }

    /// As [`Asked::parse`], of another trace or part.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn with(call: &Call<'_>, trace: Arc<Trace>, of: &Part, question: Question) -> Result<Asked, Fault> {
        let metric = metric_of(call, &question.metric)?;
        let mut groups = Vec::new();
        for name in question.by.iter().filter(|name| !name.is_empty()) {
            let group = GroupBy::by_name(name);
            let group = group.ok_or_else(|| Fault::Wrong(format!("there is no level {name}")))?;
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let (focus, exclude) = of.frames();
        if question.steps.len() > MOST_STEPS || of.filters.len() > MOST_FILTERS {
            return Err(Fault::wrong("too many steps or filters"));
        }
        let folding = Folding { focus, exclude, ..Folding::default() };
        let view = View {
            groups,
            inverted: question.inverted,
            folding,
            steps: question.steps.iter().map(StepBody::step).collect(),
            without_ids: question.names_only,
            ..View::default()
        };
        let mut part = of.of_stacks(&trace);
        let mut unused = Vec::new();
        let spec = call.spec(metric.table());
        let rows = metric.rows().known(spec);
        let mut without = |missing: bool, asked: bool, word: &'static str| {
            if missing && asked {
                unused.push(word);
            }
            missing && asked
        };
        if without(rows.ts.is_none(), of.range.is_some(), "range") {
            (part.from_ns, part.to_ns) = (None, None);
        }
        if without(rows.upid.is_none(), part.processes.is_some(), Kind::Process.name()) {
            part.processes = None;
        }
        if without(rows.utid.is_none(), part.threads.is_some(), Kind::Thread.name()) {
            part.threads = None;
        }
        if without(rows.cpu.is_none(), part.cpus.is_some(), Kind::Cpu.name()) {
            part.cpus = None;
        }
        let sql = sql::query(&metric, &rows, spec, of, &unused);
        let why_nothing = matches!(rows.class, Some(Class::Dpc | Class::Isr))
            .then(|| of.filters.iter().any(|f| matches!(f.kind, Kind::Process | Kind::Thread)));
        let why_nothing = why_nothing.filter(|named| *named).map(|_| {
            "DPCs and ISRs belong to no process and no thread: they interrupt whoever runs. Drop the filter to see them.".to_owned()
        });
        let filters: Vec<Value> = of.filters.iter().map(|f| json!([f.kind.name(), f.value, f.not])).collect();
        let key = json!([question, of.range, filters]).to_string();
        Ok(Asked { trace, metric, part, view, unused, sql, key, why_nothing })
    }

    /// A builder with all weights of the part.
    ///
    /// # Errors
    /// If nobody waits any more.
    pub fn builder(&self, call: &Call<'_>) -> Result<Builder<'_>, Fault> {
        let db = &self.trace.db;
        let mut builder = Builder::new(db, self.trace.frames(), &self.view);
        let by_thread = |group: &GroupBy| matches!(group, GroupBy::Thread | GroupBy::Service);
        let whole = self.part.of_sums() && !self.view.groups.iter().any(by_thread);
        let sums = self.metric.sums().filter(|sums| whole && self.trace.rows_of(&sums.table.name) > 0);
        if let Some(sums) = sums {
            sums.each(db, &mut |weight| {
                if self.part.has(&weight) {
                    builder.add(&weight);
                }
            });
            return Ok(builder);
        }
        let weighed = weighed(call, &self.trace, &self.metric)?;
        match weighed.as_ref() {
            Some(weighed) => weighed.each_of(&self.part, &mut |weight| builder.add(&weight)),
            None => self.metric.each_of(db, &self.part, &mut |weight| {
                if !call.cancel.is_set() {
                    builder.add(&weight);
                }
            }),
        }
        call.cancel.check()?;
        Ok(builder)
    }

    /// The tree.
    ///
    /// # Errors
    /// If nobody waits any more.
    pub fn tree(&self, call: &Call<'_>) -> Result<Arc<Ordered>, Fault> {
        self.trace.cached(&format!("tree {}", self.key), || {
            let tree = Ordered::new(self.builder(call)?.finish("[all]"));
            call.cancel.check()?;
            let bytes = tree.tree.nodes.len() * 160 + tree.tree.names.len() * 250;
            Ok((tree, bytes))
        })
    }

    /// Facts of every answer: the metric, what says nothing of it, the query, why nothing is there.
    pub fn facts(&self, call: &Call<'_>, count: i64) -> StackFacts {
        let host = &call.hud.host;
        let table = self.metric.table();
        let rows = self.trace.rows_of(table);
        let (why, record) = match (count, rows) {
            (0, 0) => (host.why_empty(&self.trace.db, table), Some(host.recording_for(table))),
            (0, _) => {
                let here =
                    || "Nothing of this metric is in this part of the trace, or on such stacks.".to_owned();
                (Some(self.why_nothing.clone().unwrap_or_else(here)), None)
            }
            _ => (None, None),
        };
        StackFacts {
            metric: self.metric.label(),
            about: self.metric.about,
            manual: self.metric.manual,
            unit: self.metric.unit.name(),
            table,
            unused: self.unused.clone(),
            sql: self.sql.clone(),
            why,
            record,
        }
    }
}

/// Rows of a metric that are kept in memory besides their table; more are read anew each time.
const MOST_KEPT: usize = 16_000_000;

/// The weights of a metric in the order of time; `None` if there are too many to be kept.
///
/// # Errors
/// If nobody waits any more.
pub fn weighed(call: &Call<'_>, trace: &Trace, metric: &Metric) -> Result<Arc<Option<Weighed>>, Fault> {
    trace.cached(&format!("weights of {}", metric.label()), || {
        let read = Weighed::read(&trace.db, metric, MOST_KEPT, &|| !call.cancel.is_set());
        call.cancel.check()?;
        let bytes = read.as_ref().map_or(0, Weighed::bytes);
        Ok((read, bytes))
    })
}
