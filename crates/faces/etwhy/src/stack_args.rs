//! What commands about stacks share: the metric, the part of the trace, how stacks are made simpler.

use crate::catalog::{meant, specs};
use crate::open::{Analysed, Opened, size};
use crate::options::time::{TimeArgs, duration};
use crate::report::missing::cannot_tell;
use crate::report::services;
use crate::who::{chosen, thread_names};
use anyhow::{Context as _, anyhow, bail};
use etwhy_analysis::operators::process_names;
use etwhy_analysis::stacks::{
    Folding, GroupBy, Limits, MAX_FOCUS, METRICS, Matcher, Metric, Source, Sum, TracePart, View,
};
use etwhy_table::{Database, Unit};
use std::collections::BTreeSet;
use std::io::Write;

/// What is added up, of which part of the trace, and how.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct StackArgs {
    /// What to add up along stacks: cpu, busy, run, wait, disk-bytes, … (--list-metrics), or TABLE.COLUMN of any table with
    /// stacks, TABLE.count for its rows
    #[arg(long, short, value_name = "NAME", default_value = "cpu")]
    pub metric: String,
    /// Name the metrics and say what they mean
    #[arg(long)]
    pub list_metrics: bool,
    /// Levels above the stacks: process, thread, service, module, tag, category, or none
    #[arg(long, value_name = "LEVELS", value_delimiter = ',', default_value = "process")]
    pub by: Vec<String>,
    /// Only these processes, by name or id: 'chrome;!4711'
    #[arg(long, value_name = "FILTER")]
    pub process: Option<String>,
    /// Only these threads, by name or id
    #[arg(long, value_name = "FILTER")]
    pub thread: Option<String>,
    /// Only threads that work for these services, by name
    #[arg(long, value_name = "FILTER")]
    pub service: Option<String>,
    #[command(flatten)]
    pub time: TimeArgs,
    /// Only stacks with a frame that matches: function, module!function, module; wildcards, `;` between alternatives. Given
    /// several times, all must match
    #[arg(long, value_name = "FRAME")]
    pub focus: Vec<String>,
    /// No stacks with a frame that matches
    #[arg(long, value_name = "FRAME")]
    pub exclude: Vec<String>,
    /// Leave out what called these: stacks begin there
    #[arg(long, value_name = "FRAME")]
    pub trim_above: Vec<String>,
    /// Leave out what these call: their time is their own
    #[arg(long, value_name = "FRAME")]
    pub trim_below: Vec<String>,
    /// Leave these frames out; what they cost is their caller's
    #[arg(long, value_name = "FRAME")]
    pub drop: Vec<String>,
    /// Show each visit of these modules as one frame
    #[arg(long, value_name = "MODULE")]
    pub collapse: Vec<String>,
    /// Show a function that is called again inside of itself once
    #[arg(long)]
    pub merge_recursion: bool,
    /// Hide code of Windows: the kernel, drivers that come with it, system libraries; what it costs is the caller's
    #[arg(long)]
    pub just_my_code: bool,
}

/// Which nodes are shown.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct LimitArgs {
    /// Fold nodes that are lighter than this share of the whole
    #[arg(long, value_name = "PERCENT")]
    pub min_percent: Option<f64>,
    /// Fold nodes that are lighter than this (e.g. 5ms, 1MB, 100)
    #[arg(long, value_name = "WEIGHT")]
    pub min_weight: Option<String>,
    /// Show at most N levels
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// At most N nodes, the heaviest
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
}

impl LimitArgs {
    /// The limits; `percent` where none is given.
    ///
    /// # Errors
    /// If a number is none.
    pub fn limits(&self, metric: &Metric, percent: f64) -> anyhow::Result<Limits> {
        let least_percent = self.min_percent.unwrap_or(if self.min_weight.is_some() || self.top.is_some() {
            0.0
        } else {
            percent
        });
        if !(0.0..=100.0).contains(&least_percent) {
            bail!("--min-percent wants 0 to 100");
        }
        let least =
            self.min_weight.as_deref().map(|text| amount(metric.unit, text)).transpose()?.unwrap_or(0);
        Ok(Limits { least, least_percent, nodes: self.top, depth: self.depth })
    }
}

/// An amount in a metric's unit, as people write it.
fn amount(unit: Unit, text: &str) -> anyhow::Result<i64> {
    match unit {
        Unit::Ns => duration(text),
        Unit::Bytes => {
            size(text).map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)).map_err(|e| anyhow!(e))
        }
        Unit::MicroJoules => {
            let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let scale = match text.get(number.len()..).unwrap_or("") {
                "" | "J" => 1e6,
                "mJ" => 1e3,
                "uJ" => 1.0,
                _ => bail!("`{text}` is no energy; try 2.5J or 10mJ"),
            };
            Ok((number.trim().parse::<f64>().with_context(|| format!("`{text}` is no energy; try 2.5J"))?
                * scale) as i64)
        }
        _ => text.trim().parse().with_context(|| format!("`{text}` is not a number")),
    }
}

impl StackArgs {
    /// The metric that is asked for.
    ///
    /// # Errors
    /// If there is none of that name; the text names those that there are.
    pub fn metric(&self) -> anyhow::Result<Metric> {
        if let Some(metric) = Metric::by_name(&self.metric) {
            return Ok(*metric);
        }
        let Some((table, column)) = self.metric.split_once('.') else {
            let names: Vec<&str> = METRICS.iter().map(|m| m.name).collect();
            let meant = meant(&self.metric, names.iter().copied());
            bail!(
                "there is no metric `{}`{meant}; there are {}, and TABLE.COLUMN",
                self.metric,
                names.join(", ")
            );
        };
        let Some(spec) = specs().find(|spec| spec.name.eq_ignore_ascii_case(table)) else {
            let with = specs().filter(|s| etwhy_analysis::stacks::Rows::guess(s).is_some());
            let mut names: Vec<&str> = with.map(|s| s.name.as_ref()).collect();
            names.sort_unstable();
            let meant = meant(table, names.iter().copied());
            bail!("there is no table `{table}`{meant}; tables with stacks are {}", names.join(", "));
        };
        Metric::of_column(spec, column).map_err(|text| anyhow!(text))
    }

    /// Levels, direction and folding.
    ///
    /// # Errors
    /// If a level is not known or there are too many patterns.
    pub fn view(&self, inverted: bool) -> anyhow::Result<View> {
        let mut groups = Vec::new();
        for name in self.by.iter().map(|name| name.trim()).filter(|name| !name.is_empty() && *name != "none")
        {
            let Some(group) = GroupBy::by_name(name) else {
                let known: Vec<&str> = GroupBy::ALL.iter().map(|(name, _)| *name).collect();
                bail!("--by knows {} and none, not `{name}`", known.join(", "));
            };
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        if self.focus.len() > MAX_FOCUS {
            bail!("--focus can be given at most {MAX_FOCUS} times");
        }
        let lists =
            [&self.focus, &self.exclude, &self.trim_above, &self.trim_below, &self.drop, &self.collapse];
        if lists.into_iter().flatten().any(|text| text.split(';').all(|part| part.trim().is_empty())) {
            bail!("an empty name of a frame would fit all of them; `*` says so");
        }
        let all = |list: &[String]| list.iter().map(|text| Matcher::parse(text)).collect::<Vec<_>>();
        let folding = Folding {
            focus: all(&self.focus),
            exclude: all(&self.exclude),
            above: all(&self.trim_above),
            below: all(&self.trim_below),
            drop: all(&self.drop),
            just_my_code: self.just_my_code,
            collapse: all(&self.collapse),
            merge_recursion: self.merge_recursion,
        };
        Ok(View { groups, inverted, folding, ..View::default() })
    }

    /// Tables to ask for.
    pub fn tables(metric: &Metric) -> BTreeSet<String> {
        let more = ["thread", "event_type", "machine", "ledger"];
        metric.tables().into_iter().map(|table| &*table.name).chain(more).map(str::to_owned).collect()
    }

    /// Reads what the metric needs.
    ///
    /// # Errors
    /// Those of the pass.
    pub fn analyse(&self, opened: Opened, metric: &Metric) -> anyhow::Result<Analysed> {
        let mut tables = Self::tables(metric);
        if self.time.needs_span() {
            tables.insert("trace".to_owned());
        }
        opened.analyse(Some(tables))
    }

    /// The part of the trace that is asked for.
    ///
    /// # Errors
    /// If a time is none, or nothing has the name.
    pub fn part(&self, db: &Database, metric: &Metric) -> anyhow::Result<TracePart> {
        let (from_ns, to_ns) = self.time.in_trace(db)?;
        let mut part = TracePart { from_ns, to_ns, ..TracePart::default() };
        if let Some(filter) = &self.process {
            part.processes = Some(chosen("process", &process_names(db), filter)?);
        }
        if let Some(filter) = &self.thread {
            part.threads = Some(chosen("thread", &thread_names(db), filter)?);
        }
        if let Some(filter) = &self.service {
            let (threads, processes) = services::wanted(db, filter)?;
            let has_threads = !matches!(&metric.source, Source::Rows(rows) if rows.utid.is_none());
            // Without tags of threads the process is all there is.
            if has_threads && threads.contains(&true) {
                part.threads = Some(both(part.threads, threads));
            } else {
                part.processes = Some(both(part.processes, processes));
            }
        }
        Ok(part)
    }

    /// Lists the metrics.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn list(out: &mut impl Write, width: usize) -> anyhow::Result<()> {
        for metric in METRICS {
            writeln!(out, "{:<20} {}", metric.name, metric.about)?;
            for line in etwhy_export::text::wrap(metric.manual, width.saturating_sub(21)) {
                writeln!(out, "{:<20} {line}", "")?;
            }
        }
        Ok(())
    }
}

fn both(a: Option<Vec<bool>>, b: Vec<bool>) -> Vec<bool> {
    match a {
        Some(a) => a.iter().zip(b).map(|(a, b)| *a && b).collect(),
        None => b,
    }
}

/// Why there is nothing to show, if there is nothing.
pub fn nothing(db: &Database, metric: &Metric, total: &Sum) -> Option<String> {
    if total.count > 0 {
        return None;
    }
    let mut any = false;
    metric.each(db, &mut |_| any = true);
    Some(if any {
        format!("nothing of metric {} is in this part of the trace, or on such stacks", metric.label())
    } else {
        cannot_tell(db, metric.table())
    })
}
