//! Markdown as GitHub shows it.

mod activity;

use crate::bill::unobserved;
use crate::several::{HEAD, One, Several};
use crate::{BillRow, Report};
use etwhy_base::units::percent;
use etwhy_base::units::{bytes, duration_ns, energy_range, energy_unit, thousands};
use etwhy_export::markdown::{block, code, prose, reference};
use etwhy_rules::rule::Source;
use etwhy_rules::text::label;
use etwhy_rules::{Answer, Hit, Outcome, Severity};
use std::io::{self, Write};

/// Writes the report as Markdown.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Why was it slow?\n\n{}\n", prose(&report.sentence))?;
    quality(report, out)?;
    findings(report, out)?;
    bill(&report.bill, out)?;
    activity::write(report, out)?;
    cpu(report, out)?;
    interrupts(report, out)?;
    clr(report, out)?;
    disk(report, out)?;
    cannot_tell(report, out)
}

/// The summary of several recordings.
pub(crate) fn summary(several: &Several, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Why was it slow? {} recordings\n", several.traces.len())?;
    let row = |one: &One| {
        let mut cells = vec![code(&one.name())];
        cells.extend(one.facts().iter().map(|fact| prose(fact)));
        cells.push(prose(one.verdict()));
        cells
    };
    table(out, &HEAD, HEAD.len(), &several.traces.iter().map(row).collect::<Vec<_>>())?;
    if !several.apart.is_empty() {
        writeln!(out, "Why they are not read as one:\n")?;
    }
    for line in &several.apart {
        writeln!(out, "- {}", prose(line))?;
    }
    writeln!(out)
}

/// The heading of one of several recordings.
pub(crate) fn part(number: usize, one: &One, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {number}. {}\n", code(&one.name()))?;
    match &one.error {
        Some(error) => writeln!(out, "{}\n", prose(error)),
        None => Ok(()),
    }
}

/// A table; the first columns are aligned left, those from `numbers` on right.
fn table(out: &mut dyn Write, head: &[&str], numbers: usize, rows: &[Vec<String>]) -> io::Result<()> {
    writeln!(out, "| {} |", head.join(" | "))?;
    let line: Vec<&str> = (0..head.len()).map(|n| if n < numbers { "---" } else { "---:" }).collect();
    writeln!(out, "|{}|", line.join("|"))?;
    for row in rows {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    writeln!(out)
}

fn share(part: i64, whole: i64) -> String {
    format!("{:.1} %", percent(part, whole))
}

fn quality(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let quality = &report.quality;
    for file in &quality.files {
        writeln!(out, "- {}", code(file))?;
    }
    let memory = quality.memory_bytes.map(|b| format!(", {} memory", bytes(b))).unwrap_or_default();
    writeln!(out, "- Windows {}, {} processors{memory}", prose(&quality.os), quality.cpus)?;
    writeln!(out, "- {} UTC, {} recorded", prose(&quality.start_utc), duration_ns(quality.duration_ns))?;
    writeln!(
        out,
        "- {} events of {} kinds ({} undecoded), {} events and {} buffers lost",
        thousands(quality.events.into()),
        quality.event_types,
        quality.undecoded_types,
        thousands(quality.events_lost.into()),
        thousands(quality.buffers_lost.into())
    )?;
    if let (Some(stacks), Some(named)) = (quality.stacks_percent, quality.named_percent) {
        let interval = quality.sample_interval_ns.map_or("1 ms assumed".to_owned(), duration_ns);
        writeln!(
            out,
            "- CPU samples every {interval}; of busy time {stacks:.0} % have a stack, {named:.0} % a function name"
        )?;
    }
    for line in quality.ledger.iter().filter(|line| line.severity != "info") {
        let count = thousands(line.count.into());
        writeln!(
            out,
            "- **{}**: {count} × {}: {}",
            prose(&line.severity),
            code(&line.name),
            prose(&line.meaning)
        )?;
    }
    writeln!(out)
}

fn findings(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## Findings\n")?;
    let count = |answer: Answer| report.findings.iter().filter(|f| f.answer == answer).count();
    if report.findings.is_empty() {
        return writeln!(out, "No findings were evaluated.\n");
    }
    writeln!(
        out,
        "{} found, {} not found, {} cannot be determined from this trace.\n",
        count(Answer::Found),
        count(Answer::NotFound),
        count(Answer::CannotTell)
    )?;
    for finding in report.findings.iter().filter(|f| f.answer == Answer::Found) {
        found(finding, out)?;
    }
    Ok(())
}

/// Culprits of one finding that are told; the others are counted.
const HITS: usize = 5;

fn found(finding: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "### {}: {}\n",
        finding.severity.map_or("", Severity::name).to_uppercase(),
        prose(&finding.title)
    )?;
    for hit in finding.hits.iter().take(HITS) {
        write_hit(hit, out)?;
    }
    if let Some(more) = finding.hits.len().checked_sub(HITS).filter(|more| *more > 0) {
        writeln!(out, "And {more} more.\n")?;
    }
    for caveat in &finding.caveats {
        writeln!(out, "But: {}\n", prose(caveat))?;
    }
    if !finding.disproof.is_empty() {
        writeln!(out, "What would disprove it: {}\n", prose(&finding.disproof))?;
    }
    writeln!(out, "<details><summary>Evidence and limits</summary>\n\nFinding {}\n", code(&finding.id))?;
    for (name, limit) in &finding.thresholds {
        let source = match limit.source {
            Source::Doc => "documented",
            Source::Derived => "derived",
            Source::Case => "a real case",
            Source::Heuristic => "rule of thumb",
        };
        let (name, unit, text) = (prose(&label(name)), prose(&limit.unit), reference(&limit.reference));
        writeln!(out, "- {name}: {} {unit} ({source}): {text}", limit.value)?;
    }
    if !finding.sql.trim().is_empty() {
        writeln!(out, "\n{}", block("sql", finding.sql.trim()))?;
    }
    writeln!(out, "</details>\n")
}

fn write_hit(hit: &Hit, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", prose(&hit.headline))?;
    let mut facts = vec![format!("{} {}", prose(&hit.culprit_kind), code(&hit.culprit))];
    facts.extend(hit.cost_ns.map(|ns| format!("cost {}", duration_ns(ns))));
    facts.extend(hit.share.map(|share| format!("share {:.1} %", share * 100.0)));
    facts.extend(hit.confidence.as_ref().map(|c| format!("confidence {}", prose(c))));
    writeln!(out, "{}\n", facts.join(" · "))?;
    if !hit.explanation.is_empty() {
        writeln!(out, "{}\n", prose(&hit.explanation))?;
    }
    if !hit.fix.is_empty() {
        writeln!(out, "What to do: {}\n", prose(&hit.fix))?;
    }
    Ok(())
}

fn bill(rows: &[BillRow], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## The bill\n")?;
    // What was not observed is no row of a partition.
    let unobserved = unobserved(rows);
    let rows: Vec<&BillRow> = rows.iter().filter(|row| row.unobserved_ns.is_none()).collect();
    if rows.is_empty() {
        return writeln!(out, "Cannot tell: nothing was recorded that could be charged.\n");
    }
    let mut kinds: Vec<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
    kinds.dedup();
    for kind in kinds {
        let rows: Vec<&BillRow> = rows.iter().copied().filter(|row| row.kind == kind).collect();
        bill_of(kind, &rows, out)?;
    }
    unobserved.map_or(Ok(()), |text| writeln!(out, "{}.\n", prose(&text)))
}

fn bill_of(kind: &str, rows: &[&BillRow], out: &mut dyn Write) -> io::Result<()> {
    let time = |ns: i64| if ns == 0 { "–".to_owned() } else { duration_ns(ns) };
    let known = |ns: Option<i64>| ns.map_or("–".to_owned(), duration_ns);
    // One unit for all rows.
    let unit = energy_unit(rows.iter().filter_map(|row| row.energy_j).fold(0.0, f64::max));
    let energy = |row: &BillRow| match (row.energy_j, row.energy_low_j, row.energy_high_j) {
        (Some(mid), Some(low), Some(high)) => energy_range([mid, low, high], unit),
        _ => "–".to_owned(),
    };
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                code(&row.culprit),
                duration_ns(row.total_cpu_ns),
                row.share_percent.map_or("–".to_owned(), |share| format!("{share:.1} %")),
                time(row.own_cpu_ns),
                time(row.frames_cpu_ns),
                time(row.dpc_ns.saturating_add(row.isr_ns)),
                known(row.imposed_wait_ns),
                known(row.file_ns),
                known(row.registry_ns),
                energy(row),
                prose(&row.confidence),
            ]
        })
        .collect();
    let head = [
        kind,
        "CPU",
        "of the observed time",
        "own threads",
        "on others' threads",
        "DPC, ISR",
        "made others wait",
        "files",
        "registry",
        "energy",
        "confidence",
    ];
    table(out, &head, 1, &lines)
}

fn cpu(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let cpu = &report.cpu;
    writeln!(out, "## CPU\n")?;
    if cpu.samples == 0 {
        return writeln!(out, "Cannot tell: the trace holds no CPU samples.\n");
    }
    writeln!(out, "{} busy, {} idle.\n", duration_ns(cpu.busy_ns), duration_ns(cpu.idle_ns))?;
    let rows: Vec<Vec<String>> = cpu
        .processes
        .iter()
        .map(|p| {
            let pid = if p.pid < 0 { "–".to_owned() } else { p.pid.to_string() };
            vec![
                code(&p.name),
                pid,
                duration_ns(p.cpu_ns),
                share(p.cpu_ns, cpu.busy_ns),
                share(p.kernel_ns, p.cpu_ns),
            ]
        })
        .collect();
    table(out, &["process", "id", "CPU", "share", "of it kernel"], 1, &rows)?;
    for (title, list) in [
        ("module", &cpu.modules),
        ("function", &cpu.functions),
        ("function, with what it called", &cpu.inclusive),
    ] {
        let rows: Vec<Vec<String>> = list
            .iter()
            .map(|cost| {
                vec![
                    code(&cost.name),
                    cost.category.as_deref().map_or("–".to_owned(), prose),
                    duration_ns(cost.exclusive_ns),
                    share(cost.exclusive_ns, cpu.busy_ns),
                    duration_ns(cost.inclusive_ns),
                    share(cost.inclusive_ns, cpu.busy_ns),
                ]
            })
            .collect();
        table(out, &[title, "category", "exclusive", "share", "inclusive", "share"], 2, &rows)?;
    }
    Ok(())
}

fn interrupts(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(charts) = report.charts.as_ref() else { return Ok(()) };
    if !charts.histograms.is_empty() {
        writeln!(out, "## DPCs and interrupts\n")?;
        let rows: Vec<Vec<String>> = charts
            .histograms
            .iter()
            .map(|h| {
                vec![
                    prose(&h.class.to_uppercase()),
                    h.module.as_deref().map_or("all".to_owned(), code),
                    thousands(h.count.into()),
                    duration_ns(h.total_ns),
                    duration_ns(h.limit_ns),
                    thousands(h.over_limit.into()),
                    duration_ns(h.over_limit_ns),
                ]
            })
            .collect();
        table(out, &["class", "driver", "count", "time", "limit", "longer", "time of those"], 2, &rows)?;
    }
    if !charts.growth.is_empty() {
        writeln!(out, "## Growth\n")?;
        let rows: Vec<Vec<String>> = charts
            .growth
            .iter()
            .map(|g| {
                let number = |n: Option<f64>| n.map_or("–".to_owned(), |n| format!("{n:.2}"));
                let later = g.cost_10x_ns.map_or("–".to_owned(), |ns| duration_ns(ns as i64));
                let exponent = [g.exponent, g.exponent_low, g.exponent_high].map(number);
                let [exponent, low, high] = exponent;
                vec![
                    code(&g.operation),
                    code(&g.name),
                    prose(&g.why),
                    prose(&g.model),
                    format!("{exponent} ({low}–{high})"),
                    duration_ns(g.total_ns),
                    later,
                ]
            })
            .collect();
        let head = [
            "operation",
            "process",
            "verdict",
            "law of one call",
            "exponent",
            "cost of all",
            "one call at 10 × n",
        ];
        table(out, &head, 4, &rows)?;
    }
    Ok(())
}

fn clr(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.clr.is_empty() {
        return Ok(());
    }
    writeln!(out, "## .NET\n")?;
    let rows: Vec<Vec<String>> = report
        .clr
        .iter()
        .map(|p| {
            let collections = p.gc_by_generation.iter().fold(0i64, |sum, n| sum.saturating_add(*n));
            vec![
                code(&p.name),
                p.pid.to_string(),
                thousands(collections.into()),
                duration_ns(p.gc_pause_ns),
                duration_ns(p.gc_longest_pause_ns),
                thousands(p.exceptions.into()),
                thousands(p.jit_methods.into()),
                duration_ns(p.jit_ns),
                thousands(p.contentions.into()),
                duration_ns(p.contention_ns),
            ]
        })
        .collect();
    let head = [
        "process",
        "id",
        "collections",
        "paused",
        "longest",
        "exceptions",
        "methods compiled",
        "in",
        "waits for locks",
        "for",
    ];
    table(out, &head, 1, &rows)
}

fn disk(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let total = &report.disk.total;
    if total.reads.saturating_add(total.writes) == 0 {
        return Ok(());
    }
    writeln!(out, "## Disk\n")?;
    for (title, list) in [("process", &report.disk.processes), ("file", &report.disk.files)] {
        let rows: Vec<Vec<String>> = list
            .iter()
            .map(|cost| {
                vec![
                    code(&cost.name),
                    duration_ns(cost.service_ns),
                    thousands(cost.reads.into()),
                    bytes(cost.read_bytes),
                    thousands(cost.writes.into()),
                    bytes(cost.write_bytes),
                    duration_ns(cost.longest_ns),
                ]
            })
            .collect();
        table(out, &[title, "service time", "reads", "read", "writes", "written", "longest"], 1, &rows)?;
    }
    Ok(())
}

fn cannot_tell(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let open = || report.findings.iter().filter(|f| f.answer == Answer::CannotTell);
    if report.cannot_tell.is_empty() && open().next().is_none() {
        return Ok(());
    }
    writeln!(out, "## Cannot tell from this trace\n")?;
    let record = |command: &str| match command {
        "" => String::new(),
        command => format!(" Record: {}", code(command)),
    };
    for missing in &report.cannot_tell {
        let (question, because) = (prose(&missing.question), prose(&missing.because));
        writeln!(out, "- {question}: {because}.{}", record(&missing.record))?;
    }
    for finding in open() {
        for reason in &finding.reasons {
            let text = prose(reason.text.trim_end_matches('.'));
            let record = record(reason.record.as_deref().unwrap_or_default());
            writeln!(out, "- {} ({}): {text}.{record}", prose(&finding.title), code(&finding.id))?;
        }
    }
    Ok(())
}
