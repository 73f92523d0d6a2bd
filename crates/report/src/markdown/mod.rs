//! Markdown as GitHub shows it.

mod escape;

use crate::finding::{Finding, Hit};
use crate::quality::percent;
use crate::{BillRow, Report};
use escape::{block, code, prose, reference};
use etwhy_export::{bytes, duration_ns, thousands};
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
    cpu(report, out)?;
    interrupts(report, out)?;
    clr(report, out)?;
    disk(report, out)?;
    cannot_tell(report, out)
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
    let count = |answer: &str| report.findings.iter().filter(|f| f.answer == answer).count();
    if report.findings.is_empty() {
        return writeln!(out, "No findings were evaluated.\n");
    }
    writeln!(
        out,
        "{} found, {} not found, {} cannot be told from this trace.\n",
        count("found"),
        count("not_found"),
        count("cannot_tell")
    )?;
    for finding in report.findings.iter().filter(|f| f.found()) {
        found(finding, out)?;
    }
    Ok(())
}

fn found(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "### {}: {}\n", prose(&finding.worst().to_uppercase()), prose(&finding.title))?;
    for hit in &finding.hits {
        write_hit(hit, out)?;
    }
    if let [] = finding.hits.as_slice() {
        writeln!(out, "{}\n", prose(&finding.explanation))?;
    }
    if !finding.disproof.is_empty() {
        writeln!(out, "What would disprove it: {}\n", prose(&finding.disproof))?;
    }
    writeln!(out, "<details><summary>Evidence and limits</summary>\n\nFinding {}\n", code(&finding.id))?;
    for limit in &finding.thresholds {
        let source = [prose(&limit.source), reference(&limit.reference)];
        let source: Vec<String> = source.into_iter().filter(|s| !s.is_empty()).collect();
        let name = code(&limit.name);
        writeln!(out, "- {name} = {} {}: {}", limit.value, prose(&limit.unit), source.join(", "))?;
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
    facts.extend(hit.share.map(|share| format!("{:.1} % of the machine", share * 100.0)));
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
    if rows.is_empty() {
        return writeln!(out, "Cannot tell: there is nothing to charge.\n");
    }
    let time = |ns: Option<i64>| ns.map_or("–".to_owned(), duration_ns);
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let energy = match (row.energy_low_wh, row.energy_mid_wh, row.energy_high_wh) {
                (Some(low), Some(mid), Some(high)) => format!("{mid:.3} ({low:.3}–{high:.3}) Wh"),
                _ => "–".to_owned(),
            };
            vec![
                prose(&row.kind),
                code(&row.culprit),
                row.share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0)),
                time(row.own_cpu_ns),
                time(row.others_cpu_ns),
                time(row.dpc_ns),
                time(row.isr_ns),
                time(row.wait_imposed_ns),
                time(row.file_delay_ns),
                energy,
                row.confidence.as_deref().map_or("–".to_owned(), prose),
            ]
        })
        .collect();
    let head = [
        "kind",
        "culprit",
        "share",
        "own CPU",
        "on others' threads",
        "DPC",
        "ISR",
        "made others wait",
        "delayed files",
        "energy",
        "confidence",
    ];
    table(out, &head, 2, &lines)
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
                let later = g.at_ten_times_ns.map_or("–".to_owned(), |ns| duration_ns(ns as i64));
                vec![
                    code(&g.operation),
                    g.process.as_deref().map_or("–".to_owned(), code),
                    prose(&g.model),
                    format!(
                        "{} ({}–{})",
                        number(g.exponent),
                        number(g.exponent_low),
                        number(g.exponent_high)
                    ),
                    later,
                ]
            })
            .collect();
        table(
            out,
            &["operation", "process", "cost per call grows with", "exponent", "call at 10 × n"],
            3,
            &rows,
        )?;
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
    let findings: Vec<&Finding> = report.findings.iter().filter(|f| f.cannot_tell()).collect();
    if report.cannot_tell.is_empty() && findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Cannot tell from this trace\n")?;
    for missing in &report.cannot_tell {
        let record = if missing.record.is_empty() {
            String::new()
        } else {
            format!(" Record: {}", code(&missing.record))
        };
        writeln!(out, "- {}: {}.{record}", prose(&missing.question), prose(&missing.because))?;
    }
    for finding in findings {
        for reason in &finding.reasons {
            let record = if reason.record.is_empty() {
                String::new()
            } else {
                format!(" Record: {}", code(&reason.record))
            };
            let text = prose(reason.text.trim_end_matches('.'));
            writeln!(out, "- {} ({}): {text}.{record}", prose(&finding.title), code(&finding.id))?;
        }
    }
    Ok(())
}
