//! The comparison of traces for people.

use etwhy_export::text::{bar, pad_end, pad_start, truncate_middle, wrap};
use etwhy_export::{duration_ns, sanitize, thousands};
use etwhy_query::diff::entities::Entity;
use etwhy_query::diff::interrupts::Module;
use etwhy_query::diff::modules::Changes;
use etwhy_query::diff::table::Line;
use etwhy_query::diff::{Change, Diff, Scale};
use etwhy_query::findings::text::digits;
use std::io::{self, Write};

/// Prints a comparison; `top` rows of each list.
pub fn print(out: &mut impl Write, diff: &Diff, top: usize, width: usize) -> io::Result<()> {
    for (at, trace) in diff.traces.iter().enumerate() {
        let busy = trace
            .busy_ns
            .map_or("busy unknown".to_owned(), |ns| format!("{} busy", percent(trace.share(ns as f64))));
        let line = format!(
            "{} {}: {}, {} processors, {busy}",
            letter(at),
            trace.label,
            duration_ns(trace.duration_ns),
            trace.cpus
        );
        writeln!(out, "{}", truncate_middle(&sanitize(&line), width))?;
    }
    verdicts(out, diff, width)?;
    modules(out, diff, width)?;
    for (kind, title) in [
        ("process", "Processes: share of the machine's time"),
        ("driver", "Drivers: share of the machine's time, the work below them included"),
        ("function", "Functions: share of the machine's time, exclusive"),
    ] {
        let of_kind: Vec<&Entity> = diff.entities.iter().filter(|e| e.kind == kind).take(top).collect();
        entities(out, title, &of_kind, width)?;
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

/// `x0.30 (0.28 to 0.33)`, marked where it is more than chance.
fn ratio(change: &Change) -> String {
    let text = match change.ratio {
        None if change.after > 0.0 => "new".to_owned(),
        None => "-".to_owned(),
        Some(ratio) if ratio == 0.0 => "gone".to_owned(),
        Some(ratio) => format!("x{}", digits(ratio)),
    };
    match (change.ratio_low, change.ratio_high) {
        (Some(low), Some(high)) if change.ratio.is_some_and(|r| r > 0.0) => {
            format!(
                "{text} ({} to {}){}",
                digits(low),
                digits(high),
                if change.significant { "" } else { " ~" }
            )
        }
        _ => text,
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
        let cost = if verdict.shares.iter().any(Option::is_some) {
            format!("  [{}]", shares.join(" > "))
        } else {
            String::new()
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

fn entities(out: &mut impl Write, title: &str, list: &[&Entity], width: usize) -> io::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title} (~: no more than chance)")?;
    for entity in list {
        let shares: String = entity.share.iter().map(|share| pad_start(&percent(*share), 9)).collect();
        let changes: Vec<String> = entity.changes.iter().map(ratio).collect();
        let changes: String = changes.iter().map(|c| format!("  {}", pad_end(c, 24))).collect();
        let room = width.saturating_sub(shares.chars().count() + changes.chars().count() + 2).max(16);
        writeln!(out, "{shares}{changes}  {}", truncate_middle(&sanitize(&entity.name), room))?;
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
                .and_then(|n| module.mean_changes.get(n))
                .map(|c| format!("  mean {}", ratio(c)));
            let line = format!(
                "    {} {} {} {} {} {} {} {}{}",
                letter(at),
                pad_start(&thousands(f.count.into()), 11),
                pad_start(&format!("{}/s", digits(f.per_second)), 10),
                pad_start(&duration_ns(f.total_ns), 9),
                pad_start(&duration_ns(f.mean_ns), 9),
                pad_start(&duration_ns(f.p95_ns), 9),
                pad_start(&duration_ns(f.max_ns), 9),
                pad_start(&thousands(f.over_limit.into()), 9),
                change.unwrap_or_default()
            );
            writeln!(out, "{}", truncate_middle(&line, width))?;
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
    let mut metric = "";
    let mut shown = 0;
    for line in lines {
        if line.metric != metric {
            (metric, shown) = (&line.metric, 0);
            let what = if metric.ends_with("_ns") { "share of the machine's time" } else { "per second" };
            writeln!(out, "\n{} ({what})", sanitize(metric))?;
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
        let ratios: String = line
            .ratios
            .iter()
            .map(|r| {
                pad_start(
                    &r.map_or("new".to_owned(), |r| {
                        if r == 0.0 { "gone".to_owned() } else { format!("x{}", digits(r)) }
                    }),
                    9,
                )
            })
            .collect();
        let room = width.saturating_sub(figures.chars().count() + ratios.chars().count() + 2).max(20);
        writeln!(out, "{figures}{ratios}  {}", truncate_middle(&sanitize(&line.key.join("  ")), room))?;
    }
    Ok(())
}
