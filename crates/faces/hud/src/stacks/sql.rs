//! The query whose sum is a metric's total over a part.
//!
//! # What fools it
//!
//! A metric that is computed (energy) has no such query; neither have weights that stand at a frame and at no stack, once a filter
//! asks what is on the stack.

use crate::call::Call;
use crate::part::{Kind, Part, quoted, text};
use etwhy_analysis::stacks::{Metric, Source};

/// Which columns say what of a metric's rows.
pub struct Columns {
    table: &'static str,
    /// Time.
    pub ts: Option<&'static str>,
    /// Process.
    pub upid: Option<&'static str>,
    /// Thread.
    pub utid: Option<&'static str>,
    /// Processor.
    pub cpu: Option<&'static str>,
    stack: Option<&'static str>,
    /// What is added up; `None` if no query does.
    sum: Option<String>,
    conditions: Vec<String>,
    /// Some rows are DPCs or ISRs, which are nobody's: a filter of processes or threads leaves these out by this condition.
    threads_only: Option<&'static str>,
    /// All rows are.
    interrupts: bool,
}

const OF_THREAD: &str = "NOT in_dpc AND NOT in_isr";

/// The columns of a metric.
pub fn columns(call: &Call<'_>, metric: &Metric) -> Columns {
    let mut out = Columns {
        table: metric.table(),
        ts: Some("ts_ns"),
        upid: Some("upid"),
        utid: Some("utid"),
        cpu: Some("cpu"),
        stack: Some("stack_id"),
        sum: None,
        conditions: Vec::new(),
        threads_only: None,
        interrupts: false,
    };
    let not_idle =
        |column: &str| format!("coalesce({column}, -1) NOT IN (SELECT upid FROM process WHERE pid = 0)");
    let mut set = |sum: &str, conditions: &[String]| {
        out.sum = Some(sum.to_owned());
        out.conditions = conditions.to_vec();
    };
    match (&metric.source, metric.name) {
        (Source::Rows(rows), _) => {
            let spec = super::spec_of(call, &rows.table.name);
            let known = |name: Option<&'static str>| {
                name.filter(|name| spec.is_some_and(|spec| spec.column(name).is_some()))
            };
            out.ts = known(rows.ts);
            out.upid = known(rows.upid);
            out.utid = known(rows.utid);
            out.cpu = known(rows.cpu);
            out.stack = known(rows.stack);
            let weight = rows.weight.map(quoted);
            let count = known(rows.count).map(|c| format!("coalesce({}, 1)", quoted(c)));
            let amount = weight.or(count);
            out.conditions.extend(amount.iter().map(|amount| format!("{amount} >= 0")));
            out.sum = Some(amount.map_or_else(|| "count(*)".to_owned(), |amount| format!("sum({amount})")));
        }
        (_, "cpu") => set("sum(weight_ns)", &[OF_THREAD.to_owned(), not_idle("upid")]),
        (_, "dpc") => {
            set("sum(weight_ns)", &["in_dpc AND NOT in_isr".to_owned()]);
            out.interrupts = true;
        }
        (_, "isr") => {
            set("sum(weight_ns)", &["in_isr".to_owned()]);
            out.interrupts = true;
        }
        (_, "busy") => {
            set("sum(weight_ns)", &[format!("(in_dpc OR in_isr OR {})", not_idle("upid"))]);
            out.threads_only = Some(OF_THREAD);
        }
        (_, "run" | "switches") => {
            let sum = if metric.name == "run" { "sum(cpu_ns)" } else { "count(*)" };
            set(sum, &["cpu_ns >= 0".to_owned(), not_idle("new_upid")]);
            (out.upid, out.utid) = (Some("new_upid"), Some("new_utid"));
        }
        (_, "dpc-time" | "isr-time") => {
            set("sum(max(exclusive_ns, 0))", &[]);
            out.interrupts = true;
        }
        (_, "heap-outstanding" | "pool-outstanding") => {
            set("sum(size_bytes)", &["freed_by IS NULL".to_owned(), "size_bytes >= 0".to_owned()]);
            out.cpu = None;
        }
        (_, "syscall-time") => {
            set("sum(dur_ns)", &["coalesce(depth, 0) = 0".to_owned(), "dur_ns >= 0".to_owned()]);
            (out.ts, out.cpu) = (Some("start_ns"), None);
        }
        _ => {}
    }
    out
}

impl Columns {
    /// Its rows are DPCs or ISRs, which belong to no process.
    pub fn interrupts_only(&self) -> bool {
        self.interrupts
    }

    /// The query, if there is one.
    pub fn query(&self, part: &Part, unused: &[&str]) -> Option<String> {
        let sum = self.sum.as_ref()?;
        let mut conditions = self.conditions.clone();
        if let (Some([from, to]), Some(ts)) = (part.range, self.ts) {
            conditions.push(format!("{0} >= {from} AND {0} < {to}", quoted(ts)));
        }
        for filter in &part.filters {
            let column = match filter.kind {
                Kind::Process => self.upid,
                Kind::Thread => self.utid,
                Kind::Cpu => self.cpu,
                Kind::Module | Kind::Frame => {
                    // DPCs have a part of their stacks only, and the stacks of some system calls are not recorded.
                    if self.interrupts || self.threads_only.is_some() || self.table == "syscall" {
                        return None;
                    }
                    let condition =
                        format!("stack_has({}, {})", quoted(self.stack?), text(filter.value.as_str()?));
                    conditions.push(if filter.not {
                        format!("NOT coalesce({condition}, 0)")
                    } else {
                        condition
                    });
                    continue;
                }
            };
            if unused.contains(&filter.kind.name()) {
                continue;
            }
            if filter.kind != Kind::Cpu {
                if self.interrupts {
                    return None;
                }
                conditions.extend(self.threads_only.map(str::to_owned));
            }
            let is = format!("{} = {}", quoted(column?), filter.value.as_i64()?);
            // Rows of nobody are in no process that is not this one either.
            conditions.push(if filter.not { format!("NOT {is}") } else { is });
        }
        let conditions = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        Some(format!("SELECT {sum} AS total FROM {}{conditions}", quoted(self.table)))
    }
}
