//! What was recorded and what was lost, as far as it bears on an answer.

use super::loss::Loss;
use super::rule::{Need, Rule};
use super::unsampled;
use etwhy_analysis::derived::machine::{MachineRow, silent_ns};
use etwhy_base::units::{digits, duration_ns, thousands};
use etwhy_table::Database;
use etwhy_trace::catalog::{
    event_type::EventTypeRow, kernel_class::KernelClassRow, ledger::LedgerRow, trace::TraceRow,
    unobserved::UnobservedRow,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Views that tell which processes are one program.
const FAMILIES: [&str; 2] = ["process_family", "process_or_program"];

/// Why a question cannot be answered.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Reason {
    /// In words.
    pub text: String,
    /// The command that prints the recording that would tell.
    pub record: Option<String>,
}

/// What a trace holds, and what it lost.
pub struct Facts {
    /// Names of kernel events, short and with their group.
    events: BTreeSet<String>,
    providers: BTreeSet<String>,
    caveats: Vec<String>,
    /// What is missing of all events, in words, if it is enough to hide something.
    lost: Option<String>,
    /// What is missing of the kernel's events, in words, if it is enough to hide something.
    unobserved: Option<String>,
    /// Processors without samples, in words, if they are enough to hide something.
    unsampled: Option<String>,
    /// What is missing of the samples.
    pub loss: Option<Loss>,
    /// Stacks were recorded.
    pub stacks: bool,
}

/// From this share on, what is missing could hide a finding: it is also the share from which `trace.events-lost` is more than a remark.
const COULD_HIDE: f64 = 0.01;

/// Anomalies that count buffers which are missing or of which the rest was not read.
const MISSING_BUFFERS: &[&str] = &[
    "buffers_missing",
    "fewer_buffers_than_written",
    "buffer_header_bad",
    "buffer_not_unpacked",
    "records_behind_end",
    "record_header_unknown",
    "record_size_bad",
    "read_failed",
];

/// The part of the trace that was asked for holds none of what is missing: the counts of the file are of other times.
const LOST_OUTSIDE: &str = "losses_outside_part";

/// As `event_type` names the kernel.
const KERNEL: &str = "Windows Kernel";

/// Share of the processors' time that was not observed, and the processor of which most is missing with its share.
fn unobserved(db: &Database, capacity_ns: i64, duration_ns: i64) -> (f64, Option<(i64, f64)>) {
    let mut of_cpu: BTreeMap<i64, f64> = BTreeMap::new();
    for range in &db.read_or_empty::<UnobservedRow>() {
        *of_cpu.entry(range.cpu()).or_default() += range.dur_ns() as f64;
    }
    let all: f64 = of_cpu.values().sum();
    let worst = of_cpu.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let share = if capacity_ns > 0 { all / capacity_ns as f64 } else { 0.0 };
    (share, worst.map(|(cpu, ns)| (cpu, ns / duration_ns.max(1) as f64)))
}

impl Facts {
    /// Of the tables of a trace.
    pub fn of(db: &Database) -> Facts {
        let mut facts = Facts {
            events: BTreeSet::new(),
            providers: BTreeSet::new(),
            caveats: Vec::new(),
            lost: None,
            unobserved: None,
            unsampled: None,
            loss: Loss::read(db),
            stacks: false,
        };
        let mut read = 0.0;
        for row in &db.read_or_empty::<EventTypeRow>() {
            read += row.count() as f64;
            facts.providers.insert(row.provider().to_owned());
            if row.provider() == KERNEL {
                let name = row.name();
                facts.stacks |= name.starts_with("StackWalk/");
                facts.events.insert(name.to_owned());
                facts.events.extend(name.rsplit('/').next().map(str::to_owned));
                let group = row.task().zip(row.opcode_name());
                facts.events.extend(group.map(|(task, opcode)| format!("{task}/{opcode}")));
            }
        }
        for row in db.read_or_empty::<MachineRow>().iter().take(1) {
            let ledger = db.read_or_empty::<LedgerRow>();
            let outside = ledger.iter().any(|row| row.name() == LOST_OUTSIDE);
            let (lost, buffers) = if outside { (0, 0) } else { (row.events_lost(), row.buffers_lost()) };
            if lost > 0 || buffers > 0 {
                facts.caveats.push(format!(
                    "the recording lost {} events and {} buffers: counts and sums are lower bounds",
                    thousands(lost.into()),
                    thousands(buffers.into())
                ));
            }
            let traces = db.read_or_empty::<TraceRow>();
            let kept = traces.iter().map(|trace| trace.buffers() as f64).sum::<f64>().max(1.0);
            // The session, the sequence numbers and damage may speak of the same buffers. A lost buffer held as many events as one that was kept.
            let unread = ledger.iter().filter(|row| !outside && MISSING_BUFFERS.contains(&row.name()));
            let buffers = unread.map(|row| row.count()).fold(buffers, i64::max);
            let missing = lost as f64 + buffers as f64 * read / kept;
            let share = missing / (missing + read);
            if share >= COULD_HIDE {
                facts.lost = Some(format!("about {} % of the events were lost", digits(100.0 * share)));
            }
            let (late, silent) = silent_ns(db);
            if late > 0 {
                facts.caveats.push(format!(
                    "kernel events were recorded from {} on: rates and shares of time are of what follows",
                    duration_ns(late)
                ));
            }
            let unrecorded = late.saturating_add(silent);
            let capacity = row.elapsed_cpu_ns().saturating_sub(unrecorded.saturating_mul(row.cpus()));
            let (share, worst) = unobserved(db, capacity, row.duration_ns().saturating_sub(unrecorded));
            if share >= COULD_HIDE {
                let percent = |share: f64| digits(100.0 * share.min(1.0));
                let text = format!("up to {} % of the processors' time was not observed", percent(share));
                let of_one = worst.filter(|(_, most)| *most >= 2.0 * share);
                let of_one = of_one.map(|(cpu, most)| format!(" ({} % of processor {cpu})", percent(most)));
                let less = row.observed_ns().filter(|&ns| ns < row.duration_ns());
                let scaled = less.map_or_else(String::new, |ns| {
                    format!("; rates and shares of time are of {}", duration_ns(ns))
                });
                facts.caveats.push(format!(
                    "{text}{}: counts and sums are lower bounds, by about as much{scaled}",
                    of_one.unwrap_or_default()
                ));
                facts.unobserved = Some(text);
            }
        }
        // A session that was stopped and wrote its rundown is complete; one that lost a class of events on the way is not.
        for row in db.read_or_empty::<KernelClassRow>().iter().filter(|row| row.stopped()) {
            let silent = duration_ns(row.silent_ns());
            let text = format!("{} events stopped {silent} before the end", row.class());
            facts.caveats.push(format!("{text}: what it counts of them is of the time before"));
            facts.unobserved = Some(text);
        }
        // Where a class stopped, who ran at that moment seems to have run until the end.
        if facts.unobserved.is_none() {
            facts.unsampled = unsampled::read(db);
        }
        facts
    }

    /// Why something that was not found may still be there: events that this finding needs are missing.
    pub fn could_hide(&self, rule: &Rule) -> Option<Reason> {
        let kernel = rule.needs.iter().any(|need| !need.events.is_empty());
        let lost = self.lost.as_ref().filter(|_| !rule.needs.is_empty());
        let lost = lost.or(self.unobserved.as_ref().filter(|_| kernel));
        if let Some(why) = lost {
            return Some(Reason { text: format!("{why}: what was lost could hold it"), record: None });
        }
        if let Some(why) = self.unsampled.as_ref().filter(|_| rule.rests_on_samples()) {
            return Some(Reason { text: format!("{why}: what ran there could be it"), record: None });
        }
        // Each process alone stays below the limits, and neither a start nor a rundown tells whose child it is.
        let processes = self.events.iter().any(|event| event.starts_with("Process/"));
        (!processes && rule.words().any(|word| FAMILIES.contains(&word))).then(|| Reason {
            text: "no process events were recorded, so which processes are one program is not known"
                .to_owned(),
            record: Some("etwhy record --print base".to_owned()),
        })
    }

    /// What makes the numbers of a finding uncertain.
    pub fn caveats(&self, rule: &Rule) -> impl Iterator<Item = String> {
        let unsampled = self.unsampled.iter().filter(move |_| rule.rests_on_samples());
        let unsampled = unsampled.map(|why| format!("{why}: sums of samples are lower bounds"));
        self.caveats.iter().cloned().chain(unsampled)
    }

    /// What a need lacks.
    pub fn lacking(need: &Need) -> Reason {
        Reason {
            text: format!("no {} were recorded", need.what),
            record: Some(format!("etwhy record --print {}", need.record)),
        }
    }

    /// Whether any of the events that will do is there.
    pub fn has(&self, need: &Need) -> bool {
        need.events.iter().any(|e| self.events.contains(e))
            || need.providers.iter().any(|p| self.providers.contains(p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_buffers_are_counted_under_names_that_exist() {
        let listed = include_str!("../../../../docs/reference/anomalies.md");
        for name in MISSING_BUFFERS {
            assert!(listed.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}
