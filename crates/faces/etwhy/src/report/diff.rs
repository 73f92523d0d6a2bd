//! The comparison of traces for people.

use etwhy_base::units::{digits, duration_ns, thousands};
use etwhy_diff::entities::Entity;
use etwhy_diff::interrupts::Module;
use etwhy_diff::modules::Changes;
use etwhy_diff::table::Line;
use etwhy_diff::{Diff, Ratio, Scale, other_length};
use etwhy_export::sanitize;
use etwhy_export::text::{bar, pad_end, pad_start, truncate_middle, wrap};
use std::io::{self, Write};

/// Prints a comparison; `top` rows of each list.
pub fn print(out: &mut impl Write, diff: &Diff, top: usize, width: usize) -> io::Result<()> {
    for (at, trace) in diff.traces.iter().enumerate() {
        let busy =
            trace.busy_share.map_or("busy unknown".to_owned(), |share| format!("{} busy", percent(share)));
        let line = format!(
            "{} {}: {}, {} processors, {busy}",
            letter(at),
            trace.label,
            duration_ns(trace.duration_ns),
            trace.cpus
        );
        writeln!(out, "{}", truncate_middle(&sanitize(&line), width))?;
    }
    caveats(out, &diff.caveats, width)?;
    verdicts(out, diff, width)?;
    modules(out, diff, width)?;
    for (kind, title) in [
        ("process", "Processes: share of the observed time"),
        ("driver", "Drivers: share of the observed time, the work below them included"),
        ("function", "Functions: share of the observed time, exclusive"),
    ] {
        let of_kind: Vec<&Entity> = diff.entities.iter().filter(|e| e.kind == kind).take(top).collect();
        entities(out, title, &of_kind, &diff.traces, width)?;
    }
    interrupts(out, diff, top, width)
}

/// A, B, C, …
fn letter(at: usize) -> char {
    char::from_u32('A' as u32 + at as u32 % 26).unwrap_or('?')
}

fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// What must be known first.
fn caveats(out: &mut impl Write, caveats: &[String], width: usize) -> io::Result<()> {
    for caveat in caveats {
        for (n, line) in wrap(&sanitize(caveat), width.saturating_sub(6)).into_iter().enumerate() {
            writeln!(out, "{}{line}", if n == 0 { "But:  " } else { "      " })?;
        }
    }
    Ok(())
}

/// `x0.30 (0.28 to 0.33)`, marked where it is no more than chance.
fn ratio(ratio: &Ratio) -> String {
    let chance = if ratio.significant { "" } else { " ~" };
    match ratio.ratio {
        None if ratio.after > 0.0 => format!("new{chance}"),
        None => "-".to_owned(),
        Some(0.0) => format!("gone{chance}"),
        Some(value) => match (ratio.ratio_low, ratio.ratio_high) {
            (Some(low), Some(high)) => {
                format!("x{} ({} to {}){chance}", digits(value), digits(low), digits(high))
            }
            _ => format!("x{}{chance}", digits(value)),
        },
    }
}

fn verdicts(out: &mut impl Write, diff: &Diff, width: usize) -> io::Result<()> {
    writeln!(out, "\nFindings")?;
    if diff.verdicts.is_empty() {
        return writeln!(out, "  none in any of the traces");
    }
    for verdict in &diff.verdicts {
        let changes: Vec<String> = verdict
            .changes
            .iter()
            .enumerate()
            .map(|(at, change)| format!("{} {change}", letter(at + 1)))
            .collect();
        let shares: Vec<String> =
            verdict.shares.iter().map(|share| share.map_or("-".to_owned(), percent)).collect();
        let times: Vec<String> =
            verdict.costs_ns.iter().map(|ns| ns.map_or("-".to_owned(), duration_ns)).collect();
        let cost = if verdict.shares.iter().all(Option::is_none) {
            String::new()
        } else if differ(&diff.traces) {
            format!("  [{}; per run {}]", shares.join(" > "), times.join(" > "))
        } else {
            format!("  [{}]", shares.join(" > "))
        };
        let text = format!(
            "{}  {} {}  {}{cost}",
            changes.join(", "),
            verdict.severity.name(),
            verdict.id,
            verdict.culprit
        );
        for (n, line) in wrap(&sanitize(&text), width.saturating_sub(4)).into_iter().enumerate() {
            writeln!(out, "{}{line}", if n == 0 { "  " } else { "      " })?;
        }
    }
    Ok(())
}

fn modules(out: &mut impl Write, diff: &Diff, width: usize) -> io::Result<()> {
    for (at, changes) in diff.modules.iter().enumerate() {
        let Changes { added, removed, replaced, together } = changes;
        if added.is_empty() && removed.is_empty() && replaced.is_empty() {
            continue;
        }
        writeln!(out, "\nModules, A to {}", letter(at + 1))?;
        let replaced: Vec<String> =
            replaced.iter().map(|(name, old, new)| format!("{name} ({old} > {new})")).collect();
        for (what, list) in [("came", added), ("went", removed), ("replaced", &replaced)] {
            if list.is_empty() {
                continue;
            }
            let more = list.len().saturating_sub(12);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text =
                format!("{what}: {}{rest}", list.iter().take(12).cloned().collect::<Vec<_>>().join(", "));
            for line in wrap(&sanitize(&text), width.saturating_sub(4)) {
                writeln!(out, "  {line}")?;
            }
        }
        if *together {
            let text = "Several drivers changed at once: what follows cannot be credited to one of them.";
            for line in wrap(text, width.saturating_sub(4)) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    Ok(())
}

/// The traces have different lengths: what a whole run cost is another question than its share.
fn differ(traces: &[Scale]) -> bool {
    traces
        .split_first()
        .is_some_and(|(first, others)| others.iter().any(|o| other_length(first, o).is_some()))
}

fn entities(
    out: &mut impl Write,
    title: &str,
    list: &[&Entity],
    traces: &[Scale],
    width: usize,
) -> io::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title} (~: no more than chance)")?;
    let all = |ratios: Vec<String>| -> String {
        ratios.iter().map(|text| format!("  {}", pad_end(text, 24))).collect()
    };
    for entity in list {
        let shares: String = entity.share.iter().map(|share| pad_start(&percent(*share), 9)).collect();
        let changes = all(entity.changes.iter().map(|c| ratio(&c.per_second)).collect());
        let room = width.saturating_sub(shares.chars().count() + changes.chars().count() + 2).max(16);
        writeln!(out, "{shares}{changes}  {}", truncate_middle(&sanitize(&entity.name), room))?;
        if differ(traces) {
            let times: String = entity.cpu_ns.iter().map(|ns| pad_start(&duration_ns(*ns), 9)).collect();
            let runs =
                entity.changes.iter().map(|c| c.per_run.as_ref().map_or(String::new(), ratio)).collect();
            writeln!(out, "{times}{}  per run", all(runs))?;
        }
    }
    Ok(())
}

fn interrupts(out: &mut impl Write, diff: &Diff, top: usize, width: usize) -> io::Result<()> {
    if diff.interrupts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nDPCs and ISRs: count, per second, time, mean, 95 %, longest, over the limit")?;
    for module in diff.interrupts.iter().take(top) {
        writeln!(
            out,
            "  {} {}",
            module.class,
            truncate_middle(&sanitize(&module.module), width.saturating_sub(8))
        )?;
        for (at, f) in module.traces.iter().enumerate() {
            let change = at
                .checked_sub(1)
                .and_then(|n| module.changes.get(n).zip(module.mean_changes.get(n)))
                .map(|(all, mean)| {
                    let run = all.per_run.as_ref().filter(|_| differ(&diff.traces));
                    let run = run.map_or(String::new(), |run| format!("  per run {}", ratio(run)));
                    format!("  time {}{run}  mean {}", ratio(&all.per_second), ratio(&mean.per_second))
                });
            let line = format!(
                "    {} {} {} {} {} {} {} {}",
                letter(at),
                pad_start(&thousands(f.count.into()), 11),
                pad_start(&format!("{}/s", digits(f.per_second)), 10),
                pad_start(&duration_ns(f.total_ns), 9),
                pad_start(&duration_ns(f.mean_ns), 9),
                pad_start(&duration_ns(f.p95_ns), 9),
                pad_start(&duration_ns(f.max_ns), 9),
                pad_start(&thousands(f.over_limit.into()), 9)
            );
            match change {
                // A narrow terminal has them on a line of their own.
                Some(change) if line.chars().count() + change.chars().count() > width => {
                    writeln!(out, "{line}\n    {change}")?;
                }
                change => writeln!(out, "{line}{}", change.unwrap_or_default())?,
            }
        }
    }
    for module in diff.interrupts.iter().take(2) {
        histogram(out, module, width)?;
    }
    Ok(())
}

/// The distributions over each other: a line for each class, a bar for each trace.
fn histogram(out: &mut impl Write, module: &Module, width: usize) -> io::Result<()> {
    let traces = module.traces.len();
    let totals: Vec<i64> =
        (0..traces).map(|at| module.histogram.iter().filter_map(|c| c.counts.get(at)).sum()).collect();
    writeln!(out, "\n  durations of {} {}, share of each trace's", module.class, sanitize(&module.module))?;
    let room = (width.saturating_sub(22) / traces.max(1)).saturating_sub(10).clamp(4, 30);
    let mut over = false;
    for class in module.histogram.iter().filter(|c| c.counts.iter().any(|n| *n > 0)) {
        if class.over_limit && !over {
            over = true;
            let limit = if module.class == "dpc" { "100 µs" } else { "25 µs" };
            writeln!(
                out,
                "  {}",
                truncate_middle(
                    &format!("--- Microsoft's limit, {limit} {}", "-".repeat(width)),
                    width.saturating_sub(4)
                )
            )?;
        }
        let end = class.up_to_ns.map_or_else(
            || format!("> {}", duration_ns(class.above_ns)),
            |up| format!("<= {}", duration_ns(up)),
        );
        let mut line = format!("  {}", pad_start(&end, 12));
        for at in 0..traces {
            let n = class.counts.get(at).copied().unwrap_or(0);
            let share = n as f64 / totals.get(at).copied().unwrap_or(0).max(1) as f64;
            line.push_str(&format!(
                "  {} {} {}",
                letter(at),
                pad_start(&percent(share), 7),
                pad_end(&bar(share, room), room)
            ));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Prints the comparison of a table.
pub fn print_table(
    out: &mut impl Write,
    traces: &[Scale],
    lines: &[Line],
    top: usize,
    width: usize,
) -> io::Result<()> {
    for (at, trace) in traces.iter().enumerate() {
        writeln!(
            out,
            "{} {}: {}, {} processors",
            letter(at),
            sanitize(&trace.label),
            duration_ns(trace.duration_ns),
            trace.cpus
        )?;
    }
    caveats(out, &etwhy_diff::caveats(traces), width)?;
    let runs = differ(traces);
    let mut metric = "";
    let mut shown = 0;
    for line in lines {
        if line.metric != metric {
            (metric, shown) = (&line.metric, 0);
            let what = if metric.ends_with("_ns") { "share of the observed time" } else { "per second" };
            let more = if runs { "; in brackets the ratio of the whole runs" } else { "" };
            writeln!(out, "\n{} ({what}{more})", sanitize(metric))?;
        }
        shown += 1;
        if shown > top {
            continue;
        }
        let figures: String = line
            .normal
            .iter()
            .map(|n| pad_start(&if metric.ends_with("_ns") { percent(*n) } else { digits(*n) }, 12))
            .collect();
        let times = |r: &Option<f64>| match r {
            None => "new".to_owned(),
            Some(0.0) => "gone".to_owned(),
            Some(r) => format!("x{}", digits(*r)),
        };
        let ratios: String = line
            .ratios
            .iter()
            .zip(&line.run_ratios)
            .map(|(r, run)| {
                let run = if runs { format!(" ({})", times(run)) } else { String::new() };
                pad_start(&format!("{}{run}", times(r)), if runs { 18 } else { 9 })
            })
            .collect();
        let room = width.saturating_sub(figures.chars().count() + ratios.chars().count() + 2).max(20);
        writeln!(out, "{figures}{ratios}  {}", truncate_middle(&sanitize(&line.key.join("  ")), room))?;
    }
    Ok(())
}
