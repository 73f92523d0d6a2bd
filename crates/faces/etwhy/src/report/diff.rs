//! The comparison of traces for people.

use etwhy_base::units::{counted, digits, duration_ns, thousands};
use etwhy_diff::entities::Entity;
use etwhy_diff::interrupts::Module;
use etwhy_diff::modules::Changes;
use etwhy_diff::table::Line as TableLine;
use etwhy_diff::verdicts::Verdict;
use etwhy_diff::{Diff, Ratio, Scale, other_length};
use etwhy_doc::{Column, Doc, Line, Span, Table};

/// A comparison; `top` rows of each list.
pub fn document(diff: &Diff, top: usize) -> Doc {
    let mut doc = head(&diff.traces, &diff.caveats);
    verdicts(&mut doc, diff);
    for (at, changes) in diff.modules.iter().enumerate() {
        modules(&mut doc, at, changes);
    }
    for (kind, title) in [
        ("process", "Processes: share of the observed time"),
        ("driver", "Drivers: share of the observed time, the work below them included"),
        ("function", "Functions: share of the observed time, exclusive"),
    ] {
        let of_kind: Vec<&Entity> = diff.entities.iter().filter(|e| e.kind == kind).take(top).collect();
        entities(&mut doc, title, &of_kind, &diff.traces);
    }
    interrupts(&mut doc, diff, top);
    doc
}

/// What is compared, and what must be known first.
fn head(traces: &[Scale], caveats: &[String]) -> Doc {
    let mut doc = Doc::titled("What changed?");
    for (at, trace) in traces.iter().enumerate() {
        let busy = trace.busy_share.map_or(String::new(), |share| format!(", {} busy", percent(share)));
        let cpus = counted(trace.cpus, "processor", "processors");
        let facts = format!(": {}, {cpus}{busy}", duration_ns(trace.duration_ns));
        doc.note(letter(at), Line::name(&trace.label).and(facts));
    }
    for caveat in caveats {
        doc.note("But:", caveat);
    }
    doc
}

/// A, B, C, …
fn letter(at: usize) -> String {
    char::from_u32('A' as u32 + at as u32 % 26).unwrap_or('?').to_string()
}

/// Heads of columns: from the first trace to each other one.
fn ways(traces: &[Scale]) -> impl Iterator<Item = Column> {
    (1..traces.len()).map(|at| Column::word(format!("A to {}", letter(at))))
}

/// Heads of columns of numbers, one for each trace.
fn letters(traces: &[Scale]) -> impl Iterator<Item = Column> {
    (0..traces.len()).map(|at| Column::number(letter(at)))
}

fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
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

fn verdicts(doc: &mut Doc, diff: &Diff) {
    doc.heading("Findings");
    if diff.verdicts.is_empty() {
        doc.text("none in any of the traces");
    }
    for verdict in &diff.verdicts {
        let changes: Vec<String> = verdict
            .changes
            .iter()
            .enumerate()
            .map(|(at, change)| format!("{} {change}", letter(at + 1)))
            .collect();
        let line = Line::from(format!("{}: ", changes.join(", "))).and(Line::mark(verdict.severity.name()));
        let what = Line::from(format!(" {}, ", verdict.id)).and(Line::name(&verdict.culprit));
        doc.item(line.and(what).and(cost(verdict, &diff.traces)), None::<Line>);
    }
}

fn cost(verdict: &Verdict, traces: &[Scale]) -> String {
    let shares: Vec<String> =
        verdict.shares.iter().map(|share| share.map_or("-".to_owned(), percent)).collect();
    let times: Vec<String> =
        verdict.costs_ns.iter().map(|ns| ns.map_or("-".to_owned(), duration_ns)).collect();
    if verdict.shares.iter().all(Option::is_none) {
        String::new()
    } else if differ(traces) {
        format!(" [{}; per run {}]", shares.join(" > "), times.join(" > "))
    } else {
        format!(" [{}]", shares.join(" > "))
    }
}

fn modules(doc: &mut Doc, at: usize, changes: &Changes) {
    let Changes { added, removed, replaced, together } = changes;
    if added.is_empty() && removed.is_empty() && replaced.is_empty() {
        return;
    }
    doc.heading(format!("Modules, A to {}", letter(at + 1)));
    let replaced: Vec<String> =
        replaced.iter().map(|(name, old, new)| format!("{name} ({old} > {new})")).collect();
    for (what, list) in [("came:", added), ("went:", removed), ("replaced:", &replaced)] {
        let more = list.len().saturating_sub(12);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        if !list.is_empty() {
            let names: Vec<&str> = list.iter().take(12).map(String::as_str).collect();
            doc.note(what, format!("{}{rest}", names.join(", ")));
        }
    }
    if *together {
        doc.text("Several drivers changed at once: what follows cannot be credited to one of them.");
    }
}

/// The traces have different lengths: what a whole run cost is another question than its share.
fn differ(traces: &[Scale]) -> bool {
    traces
        .split_first()
        .is_some_and(|(first, others)| others.iter().any(|o| other_length(first, o).is_some()))
}

fn entities(doc: &mut Doc, title: &str, list: &[&Entity], traces: &[Scale]) {
    if list.is_empty() {
        return;
    }
    doc.heading(format!("{title} (~: no more than chance)"));
    let name = std::iter::once(Column::name("").least(16));
    let mut table = Table::new(name.chain(letters(traces)).chain(ways(traces)));
    let row = |name: Line, figures: Vec<String>, changes: Vec<String>| {
        std::iter::once(name).chain(figures.into_iter().chain(changes).map(Line::from))
    };
    for entity in list {
        let shares = entity.share.iter().map(|share| percent(*share)).collect();
        let changes = entity.changes.iter().map(|c| ratio(&c.per_second)).collect();
        table.row(row(Line::name(&entity.name), shares, changes));
        if differ(traces) {
            let times = entity.cpu_ns.iter().map(|ns| duration_ns(*ns)).collect();
            let runs =
                entity.changes.iter().map(|c| c.per_run.as_ref().map_or(String::new(), ratio)).collect();
            table.row(row("per run".into(), times, runs));
        }
    }
    doc.table(table);
}

fn interrupts(doc: &mut Doc, diff: &Diff, top: usize) {
    if diff.interrupts.is_empty() {
        return;
    }
    doc.heading("DPCs and ISRs");
    let figures = ["count", "time", "mean", "longest", "over the limit", "95 %", "per second"];
    let first = [Column::name("driver"), Column::word("")];
    let mut table = Table::new(first.into_iter().chain(figures.map(Column::number)));
    let first = [Column::name("change"), Column::word("")];
    let mut changes = Table::new(first.into_iter().chain(["time", "mean", "time per run"].map(Column::word)));
    for module in diff.interrupts.iter().take(top) {
        let name = || Line::from(format!("{} ", module.class)).and(Line::name(&module.module));
        for (at, one) in module.traces.iter().enumerate() {
            let figures = [
                letter(at),
                thousands(one.count.into()),
                duration_ns(one.total_ns),
                duration_ns(one.mean_ns),
                duration_ns(one.max_ns),
                thousands(one.over_limit.into()),
                duration_ns(one.p95_ns),
                digits(one.per_second),
            ];
            let name = if at == 0 { name() } else { Line::default() };
            table.row(std::iter::once(name).chain(figures.map(Line::from)));
        }
        for (at, (all, mean)) in module.changes.iter().zip(&module.mean_changes).enumerate() {
            let run = all.per_run.as_ref().filter(|_| differ(&diff.traces)).map_or(String::new(), ratio);
            let way = format!("A to {}", letter(at + 1));
            let figures = [way, ratio(&all.per_second), ratio(&mean.per_second), run];
            changes.row(std::iter::once(name()).chain(figures.map(Line::from)));
        }
    }
    doc.table(table);
    doc.subheading("DPCs and ISRs: changes");
    doc.table(changes);
    for module in diff.interrupts.iter().take(2) {
        histogram(doc, module, &diff.traces);
    }
}

/// The distributions beside each other: a line for each class, a bar for each trace.
fn histogram(doc: &mut Doc, module: &Module, traces: &[Scale]) {
    let count = |at: usize| module.histogram.iter().filter_map(move |class| class.counts.get(at));
    let totals: Vec<i64> = (0..traces.len()).map(|at| count(at).sum()).collect();
    doc.subheading(
        Line::from(format!("Durations of {} ", module.class))
            .and(Line::name(&module.module))
            .and(", share of each trace's"),
    );
    let bars = letters(traces).flat_map(|letter| [letter, Column::word("")]);
    let mut table = Table::new(std::iter::once(Column::number("")).chain(bars).chain([Column::word("")]));
    let mut over = false;
    for class in module.histogram.iter().filter(|c| c.counts.iter().any(|n| *n > 0)) {
        let end = class.up_to_ns.map_or_else(
            || format!("> {}", duration_ns(class.above_ns)),
            |up| format!("<= {}", duration_ns(up)),
        );
        let mut row = vec![Line::from(end)];
        for (at, total) in totals.iter().enumerate() {
            let n = class.counts.get(at).copied().unwrap_or(0);
            let share = n as f64 / (*total).max(1) as f64;
            row.extend([percent(share).into(), Span::Bar(share).into()]);
        }
        if class.over_limit && !over {
            over = true;
            let limit = if module.class == "dpc" { "100 µs" } else { "25 µs" };
            row.push(format!("over Microsoft's limit, {limit}").into());
        }
        table.row(row);
    }
    doc.table(table);
}

/// The comparison of a table.
pub fn table_document(traces: &[Scale], lines: &[TableLine], top: usize) -> Doc {
    let mut doc = head(traces, &etwhy_diff::caveats(traces));
    let runs = differ(traces);
    let times = |ratio: &Option<f64>| match ratio {
        None => "new".to_owned(),
        Some(0.0) => "gone".to_owned(),
        Some(ratio) => format!("x{}", digits(*ratio)),
    };
    for lines in lines.chunk_by(|a, b| a.metric == b.metric) {
        let metric = lines.first().map_or("", |line| &line.metric);
        let is_time = metric.ends_with("_ns");
        let what = if is_time { "share of the observed time" } else { "per second" };
        let more = if runs { "; in brackets the ratio of the whole runs" } else { "" };
        doc.heading(format!("{metric} ({what}{more})"));
        let name = std::iter::once(Column::name("").least(20));
        let mut table = Table::new(name.chain(letters(traces)).chain(ways(traces)));
        for line in lines {
            let figures = line.normal.iter().map(|n| if is_time { percent(*n) } else { digits(*n) });
            let ratios = line.ratios.iter().zip(&line.run_ratios).map(|(ratio, run)| {
                let run = if runs { format!(" ({})", times(run)) } else { String::new() };
                format!("{}{run}", times(ratio))
            });
            let name = Line::name(line.key.join("  "));
            table.row(std::iter::once(name).chain(figures.chain(ratios).map(Line::from)));
        }
        doc.table(table.at_most(top));
    }
    doc
}
