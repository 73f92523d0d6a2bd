//! The verdict: collected from tables, printed for people.

use super::missing::missing;
use super::terminal::width;
use etwhy_analysis::activity::{self, Activity};
use etwhy_analysis::clr::ClrProcess;
use etwhy_analysis::cpu::{Cost, Cpu, Scope, Top};
use etwhy_analysis::disk::Disk;
use etwhy_analysis::{clr, cpu, disk};
use etwhy_base::units::percent;
use etwhy_base::units::{bytes, duration_ns, thousands};
use etwhy_export::sanitize;
use etwhy_export::text::{bar, boxed, pad_end, pad_start, truncate_middle, wrap};
use etwhy_report::{BillRow, Missing, Parts, Quality, Report};
use etwhy_rules::Outcome;
use etwhy_table::Database;
use std::io::{self, Write};

/// Everything that `why` says.
#[derive(Debug)]
pub struct Verdict {
    /// One sentence.
    pub sentence: String,
    /// How good the trace is.
    pub quality: Quality,
    /// What products, programs and drivers cost.
    pub bill: Vec<BillRow>,
    /// The answers to all findings, found ones first.
    pub findings: Vec<Outcome>,
    /// Where the CPU went.
    pub cpu: Cpu,
    /// .NET by process.
    pub clr: Vec<ClrProcess>,
    /// Disks.
    pub disk: Disk,
    /// What a trace without kernel events shows.
    pub activity: Option<Activity>,
    /// What cannot be determined.
    pub cannot_tell: Vec<Missing>,
}

impl Verdict {
    /// Collects the verdict from the tables of a pass.
    pub fn of(db: &Database, scope: &Scope, top: Top, findings: Vec<Outcome>) -> Verdict {
        let cpu = cpu::cpu(db, scope, top);
        let quality = Quality::read(db, &cpu);
        let bill = etwhy_report::bill::read(db);
        let activity = activity::activity(db, top.overall);
        let load = match &activity {
            Some(activity) => super::activity::sentence(activity),
            None => sentence(&cpu, &quality),
        };
        let sentence = match super::headline::sentence(db, &findings, &bill) {
            Some(worst) => format!("{worst} {load}"),
            None => load,
        };
        Verdict {
            sentence,
            bill,
            findings,
            cpu,
            clr: clr::clr(db),
            disk: disk::disk(db, top.overall),
            activity,
            cannot_tell: missing(db),
            quality,
        }
    }

    /// The verdict as a document, without charts.
    pub fn report(self, db: &Database) -> Report {
        let parts = Parts {
            sentence: self.sentence,
            quality: self.quality,
            findings: self.findings,
            cpu: self.cpu,
            clr: self.clr,
            disk: self.disk,
            activity: self.activity,
            cannot_tell: self.cannot_tell,
        };
        Report::new(db, parts)
    }
}

fn sentence(cpu: &Cpu, quality: &Quality) -> String {
    if cpu.samples == 0 {
        return "Cannot tell who used the CPU: the trace holds no CPU samples.".to_owned();
    }
    let total = cpu.busy_ns.saturating_add(cpu.idle_ns);
    let known_idle = cpu.idle_ns > 0;
    let load = if known_idle {
        format!(
            "The processors were busy {:.0} % of the time ({} of {} CPU time).",
            percent(cpu.busy_ns, total),
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
    let Some(first) = cpu.processes.first() else { return load };
    let mut text = format!(
        "{load} {} used most of it: {:.0} %",
        process_name(&first.name, first.pid),
        percent(first.cpu_ns, cpu.busy_ns)
    );
    if let Some(module) = first.modules.first() {
        text.push_str(&format!(
            ", of which {:.0} % in {}",
            percent(module.exclusive_ns, first.cpu_ns),
            module.name
        ));
        if let Some(category) = &module.category {
            text.push_str(&format!(" ({category})"));
        }
    }
    text.push('.');
    text
}

/// Name and id of a process; what is no process has no id.
fn process_name(name: &str, pid: i64) -> String {
    if pid < 0 { name.to_owned() } else { format!("{name} ({pid})") }
}

/// Prints the verdict. `frames`: how many frames of a stack, 0 for all.
pub fn print(out: &mut impl Write, verdict: &Verdict, frames: usize, all: bool) -> io::Result<()> {
    let width = width();
    for line in wrap(&sanitize(&verdict.sentence), width) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    print_quality(out, &verdict.quality, width)?;
    super::findings::print(out, &verdict.findings, all, width)?;
    super::headline::print_bill(out, &verdict.bill, width)?;
    if let Some(activity) = &verdict.activity {
        super::activity::print(out, activity, width)?;
    }
    if verdict.cpu.samples > 0 {
        print_cpu(out, &verdict.cpu, frames, width)?;
    }
    print_clr(out, &verdict.clr, width)?;
    print_disk(out, &verdict.disk, width)?;
    print_missing(out, &verdict.cannot_tell, width)
}

fn print_quality(out: &mut impl Write, quality: &Quality, width: usize) -> io::Result<()> {
    let mut lines = Vec::new();
    for file in &quality.files {
        lines.push(sanitize(file).into_owned());
    }
    let memory = quality.memory_bytes.map(|b| format!(", {} memory", bytes(b))).unwrap_or_default();
    lines.push(format!("Windows {}, {} processors{memory}", sanitize(&quality.os), quality.cpus));
    lines.push(format!("{} UTC, {} recorded", quality.start_utc, duration_ns(quality.duration_ns)));
    lines.push(format!(
        "{} events of {} kinds ({} undecoded), {} events and {} buffers lost",
        thousands(quality.events.into()),
        quality.event_types,
        quality.undecoded_types,
        thousands(quality.events_lost.into()),
        thousands(quality.buffers_lost.into())
    ));
    if let (Some(stacks), Some(named)) = (quality.stacks_percent, quality.named_percent) {
        let interval = quality.sample_interval_ns.map_or("1 ms assumed".to_owned(), duration_ns);
        lines.push(format!(
            "CPU samples every {interval}; of busy time {stacks:.0} % have a stack, {named:.0} % a function name"
        ));
    }
    let inner = width.saturating_sub(4);
    for line in quality.ledger.iter().filter(|line| line.severity != "info") {
        let count = thousands(line.count.into());
        let text = format!("{}: {count} x {}: {}", line.severity, line.name, line.meaning);
        lines.extend(wrap(&sanitize(&text), inner));
    }
    for line in boxed("Quality of the trace", &lines, width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn heading(out: &mut impl Write, title: &str) -> io::Result<()> {
    writeln!(out, "\n{}", sanitize(title))
}

/// `1,234.5 ms` with a share and a bar.
fn cost_line(ns: i64, whole: i64, bar_width: usize) -> String {
    let share = percent(ns, whole);
    format!(
        "{} {} {}",
        pad_start(&ms(ns), 11),
        pad_start(&format!("{share:.1} %"), 7),
        bar(share / 100.0, bar_width)
    )
}

fn ms(ns: i64) -> String {
    let tenths = ns / 100_000;
    format!("{}.{} ms", thousands((tenths / 10).into()), (tenths % 10).abs())
}

fn print_cpu(out: &mut impl Write, cpu: &Cpu, frames: usize, width: usize) -> io::Result<()> {
    let wide = width >= 120;
    let bar_width = if wide { 20 } else { 8 };
    heading(out, &format!("CPU by process ({} busy, {} idle)", ms(cpu.busy_ns), ms(cpu.idle_ns)))?;
    for process in &cpu.processes {
        let name = process_name(&process.name, process.pid);
        let kernel = format!("{:.0} % kernel", percent(process.kernel_ns, process.cpu_ns));
        let room = width.saturating_sub(24 + bar_width + 14);
        writeln!(
            out,
            "{}  {}  {kernel}",
            cost_line(process.cpu_ns, cpu.busy_ns, bar_width),
            pad_end(&truncate_middle(&sanitize(&name), room), room.min(40))
        )?;
    }
    for process in cpu.processes.iter().take(3).filter(|p| !p.modules.is_empty()) {
        heading(
            out,
            &format!(
                "{} by module, then by function (exclusive, inclusive)",
                process_name(&process.name, process.pid)
            ),
        )?;
        costs(out, &process.modules, process.cpu_ns, width)?;
        writeln!(out)?;
        costs(out, &process.functions, process.cpu_ns, width)?;
    }
    heading(out, "All processes: modules (exclusive, inclusive)")?;
    costs(out, &cpu.modules, cpu.busy_ns, width)?;
    heading(out, "All processes: functions by exclusive time (exclusive, inclusive)")?;
    costs(out, &cpu.functions, cpu.busy_ns, width)?;
    heading(out, "All processes: functions by inclusive time (exclusive, inclusive)")?;
    costs(out, &cpu.inclusive, cpu.busy_ns, width)?;
    if !cpu.stacks.is_empty() {
        heading(out, "Stacks (innermost frame first)")?;
    }
    for stack in cpu.stacks.iter().take(5) {
        let share = percent(stack.cpu_ns, cpu.busy_ns);
        let process = process_name(&stack.process, stack.pid);
        writeln!(out, "{} {share:.1} %  {}", ms(stack.cpu_ns), sanitize(&process))?;
        let shown = if frames == 0 { stack.frames.len() } else { frames };
        for frame in stack.frames.iter().take(shown) {
            writeln!(out, "    {}", truncate_middle(&sanitize(frame), width.saturating_sub(4)))?;
        }
        if stack.frames.len() > shown {
            writeln!(out, "    ... {} more", stack.frames.len() - shown)?;
        }
    }
    Ok(())
}

fn costs(out: &mut impl Write, list: &[Cost], whole: i64, width: usize) -> io::Result<()> {
    for cost in list {
        let exclusive =
            format!("{} {:>5.1} %", pad_start(&ms(cost.exclusive_ns), 12), percent(cost.exclusive_ns, whole));
        let inclusive =
            format!("{} {:>5.1} %", pad_start(&ms(cost.inclusive_ns), 12), percent(cost.inclusive_ns, whole));
        let category = cost.category.as_ref().map(|c| format!("  [{c}]")).unwrap_or_default();
        let room = width.saturating_sub(46 + category.len());
        writeln!(
            out,
            "{exclusive} {inclusive}  {}{}",
            truncate_middle(&sanitize(&cost.name), room),
            sanitize(&category)
        )?;
    }
    Ok(())
}

fn print_clr(out: &mut impl Write, clr: &[ClrProcess], width: usize) -> io::Result<()> {
    if clr.is_empty() {
        return Ok(());
    }
    heading(out, ".NET")?;
    for process in clr {
        let [g0, g1, g2] = process.gc_by_generation;
        let mut facts = Vec::new();
        if g0 + g1 + g2 > 0 {
            facts.push(format!(
                "{} collections ({g0} gen 0, {g1} gen 1, {g2} gen 2; {} induced), paused {} in all, {} at most, heap up to {}",
                g0 + g1 + g2,
                process.gc_induced,
                duration_ns(process.gc_pause_ns),
                duration_ns(process.gc_longest_pause_ns),
                bytes(process.gc_peak_heap_bytes)
            ));
        }
        if process.jit_methods > 0 {
            facts.push(format!(
                "{} methods compiled in {}",
                thousands(process.jit_methods.into()),
                duration_ns(process.jit_ns)
            ));
        }
        if process.contentions > 0 {
            facts.push(format!(
                "{} waits for locks, {}",
                process.contentions,
                duration_ns(process.contention_ns)
            ));
        }
        if process.exceptions > 0 {
            let types: Vec<String> =
                process.exception_types.iter().take(5).map(|(name, n)| format!("{n} x {name}")).collect();
            facts.push(format!("{} exceptions: {}", thousands(process.exceptions.into()), types.join(", ")));
        }
        writeln!(out, "{} ({})", sanitize(&process.name), process.pid)?;
        for fact in facts {
            for line in wrap(&sanitize(&fact), width.saturating_sub(4)) {
                writeln!(out, "    {line}")?;
            }
        }
    }
    Ok(())
}

fn print_disk(out: &mut impl Write, disk: &Disk, width: usize) -> io::Result<()> {
    let total = &disk.total;
    if total.reads + total.writes == 0 {
        return Ok(());
    }
    heading(
        out,
        &format!(
            "Disk: {} reads ({}), {} writes ({}), {} of service time, longest {}",
            thousands(total.reads.into()),
            bytes(total.read_bytes),
            thousands(total.writes.into()),
            bytes(total.write_bytes),
            duration_ns(total.service_ns),
            duration_ns(total.longest_ns)
        ),
    )?;
    for (list, n) in [(&disk.processes, 5), (&disk.files, 5)] {
        for cost in list.iter().take(n) {
            let head = format!(
                "{} {} {}",
                pad_start(&ms(cost.service_ns), 12),
                pad_start(&thousands((cost.reads + cost.writes).into()), 8),
                pad_start(&bytes(cost.read_bytes.saturating_add(cost.write_bytes)), 10)
            );
            let room = width.saturating_sub(35);
            writeln!(out, "{head}  {}", truncate_middle(&sanitize(&cost.name), room))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn print_missing(out: &mut impl Write, missing: &[Missing], width: usize) -> io::Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    heading(out, "Cannot tell from this trace")?;
    for item in missing {
        let text = format!("- {}: {}.", item.question, item.because);
        for (n, line) in wrap(&text, width.saturating_sub(2)).into_iter().enumerate() {
            writeln!(out, "{}{line}", if n == 0 { "" } else { "  " })?;
        }
        for line in wrap(&format!("record: {}", item.record), width.saturating_sub(4)) {
            writeln!(out, "    {line}")?;
        }
    }
    Ok(())
}
