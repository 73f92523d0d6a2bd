//! The verdict: collected from tables.

use super::missing::missing;
use etwhy_analysis::cpu::{Cpu, Scope, Top};
use etwhy_analysis::{activity, clr, cpu, disk};
use etwhy_base::units::{digits, duration_ns, percent};
use etwhy_report::{BillRow, Quality, Report, SCHEMA};
use etwhy_rules::Outcome;
use etwhy_table::Database;

/// Collects the verdict from the tables of a pass, without charts.
pub fn verdict(db: &Database, scope: &Scope, top: Top, findings: Vec<Outcome>) -> Report {
    let cpu = cpu::cpu(db, scope, top);
    let quality = Quality::read(db, &cpu);
    let bill = etwhy_report::bill::read(db);
    let activity = activity::activity(db, top.overall);
    // The worst finding alone: beside it, whoever was merely busy would stand accused.
    let worst = super::headline::sentence(db, &findings, &bill);
    let sentence = worst.unwrap_or_else(|| match &activity {
        Some(activity) => super::activity::sentence(activity),
        None => sentence(&cpu, &quality, &findings, &bill),
    });
    Report {
        schema: SCHEMA,
        sentence,
        bill,
        findings,
        cpu,
        clr: clr::clr(db),
        disk: disk::disk(db, top.overall),
        activity,
        cannot_tell: missing(db),
        quality,
        charts: None,
    }
}

fn sentence(cpu: &Cpu, quality: &Quality, findings: &[Outcome], bill: &[BillRow]) -> String {
    if cpu.samples == 0 {
        let untold = || format!("Cannot tell who used the CPU: {}.", quality.no_samples());
        return switched(findings, bill).unwrap_or_else(untold);
    }
    let total = cpu.busy_ns.saturating_add(cpu.idle_ns);
    let known_idle = cpu.idle_ns > 0;
    let load = if known_idle {
        format!(
            "The processors were busy {} % of the time ({} of {} CPU time).",
            whole_percent(percent(cpu.busy_ns, total)),
            duration_ns(cpu.busy_ns),
            duration_ns(total)
        )
    } else {
        format!(
            "Processes used {} of CPU time in {}.",
            duration_ns(cpu.busy_ns),
            duration_ns(quality.duration_ns)
        )
    };
    // Of a program in many processes the largest is a small part.
    if let Some(program) =
        findings.iter().find(|o| o.id == "cpu.dominant-program").and_then(|o| o.hits.first())
    {
        return format!("{load} {}.", program.headline.trim_end_matches('.'));
    }
    let Some(first) = cpu.processes.first() else { return load };
    let share = percent(first.cpu_ns, cpu.busy_ns);
    let most = if share > 50.0 { "most of it" } else { "more of it than any other" };
    let mut text =
        format!("{load} {} used {most}: {} %", process_name(&first.name, first.pid), whole_percent(share));
    if let Some(module) = first.modules.first() {
        text.push_str(&format!(
            ", of which {} % in {}",
            whole_percent(percent(module.exclusive_ns, first.cpu_ns)),
            module.name
        ));
        if let Some(category) = &module.category {
            text.push_str(&format!(" ({category})"));
        }
    }
    text.push('.');
    text
}

/// Who used the processors according to context switches, which the bill rests on where there are no samples.
fn switched(findings: &[Outcome], bill: &[BillRow]) -> Option<String> {
    let found = |id: &str| findings.iter().find(|o| o.id == id).and_then(|o| o.hits.first());
    if let Some(hit) = found("cpu.dominant-program").or_else(|| found("cpu.dominant")) {
        return Some(format!("{}.", hit.headline.trim_end_matches('.')));
    }
    let used = |row: &&BillRow| row.kind == "process" && row.part == "culprit" && row.total_cpu_ns > 0;
    let most = bill.iter().filter(used).max_by_key(|row| row.total_cpu_ns)?;
    let of_all = |share| format!(", {} % of the processors", whole_percent(share));
    let share = most.share_percent.map_or(String::new(), of_all);
    Some(format!(
        "{} used more CPU time than any other process: {}{share}.",
        most.culprit,
        duration_ns(most.total_cpu_ns)
    ))
}

/// A share in whole percent, or in more digits where that would say that there was nothing.
fn whole_percent(share: f64) -> String {
    if share < 1.0 { digits(share) } else { format!("{share:.0}") }
}

/// Name and id of a process; what is no process has no id.
fn process_name(name: &str, pid: i64) -> String {
    if pid < 0 { name.to_owned() } else { format!("{name} ({pid})") }
}
