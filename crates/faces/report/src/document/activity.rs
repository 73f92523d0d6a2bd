//! What a trace without kernel events shows.

use super::dash;
use etwhy_analysis::activity::{Activity, Operation, Undecoded};
use etwhy_base::units::{counted, decimal, duration_ns, thousands};
use etwhy_doc::{Column, Doc, Line, Table};
use std::collections::BTreeSet;

pub(super) fn section(doc: &mut Doc, activity: &Activity) {
    doc.heading("What the trace shows");
    if let Some(tally) = activity.tally() {
        doc.text(format!("{tally}."));
    }
    longest(doc, activity);
    operations(doc, "by total time", &activity.by_total);
    let keys = |list: &[Operation]| -> BTreeSet<_> {
        list.iter().map(|one| (one.provider.clone(), one.name.clone(), one.process.clone())).collect()
    };
    // The same list is not shown twice.
    if !keys(&activity.by_count).is_subset(&keys(&activity.by_total)) {
        operations(doc, "by number", &activity.by_count);
    }
    rates(doc, activity);
    problems(doc, activity);
    undecoded(doc, activity);
}

/// A table whose first column has sentences.
fn table<const N: usize>(what: &str, numbers: [&str; N]) -> Table {
    Table::new(std::iter::once(Column::text(what).least(24)).chain(numbers.map(Column::number)))
}

/// Begins a list, with its provider if it has only one, which is given back: it needs to be said once only.
fn title<'a>(
    doc: &mut Doc,
    what: &str,
    order: &str,
    mut providers: impl Iterator<Item = &'a String>,
) -> Option<&'a String> {
    let first = providers.next();
    let only = first.filter(|first| providers.all(|other| other == *first));
    if first.is_some() {
        let of = only.map(|provider| Line::from(" of ").and(Line::name(provider)));
        doc.subheading(Line::from(what).and(of.unwrap_or_default()).and(order));
    }
    only
}

/// A name, with its provider unless that was said, and its process.
fn named(name: &str, provider: &String, said: Option<&String>, process: Option<&String>) -> Line {
    let mut line = Line::name(name);
    if said != Some(provider) {
        line = line.and(" (").and(Line::name(provider)).and(")");
    }
    process.into_iter().fold(line, |line, process| line.and(", ").and(Line::name(process)))
}

fn number(n: i64) -> Line {
    thousands(n.into()).into()
}

fn time(ns: Option<i64>) -> Line {
    ns.map_or_else(dash, duration_ns).into()
}

fn share(percent: Option<f64>) -> Line {
    percent.map_or_else(dash, |percent| format!("{percent:.1} %")).into()
}

/// In the unit that leaves digits.
fn rate(per_second: Option<f64>) -> Line {
    let Some(rate) = per_second else { return dash().into() };
    let units = [(1.0, "s"), (60.0, "min"), (3600.0, "h")];
    let (times, unit) = units.into_iter().find(|(times, _)| rate * times >= 0.1).unwrap_or((3600.0, "h"));
    let value = rate * times;
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 1000.0) };
    format!("{} /{unit}", decimal(value, decimals)).into()
}

fn longest(doc: &mut Doc, activity: &Activity) {
    let said = title(doc, "Longest operations", "", activity.longest.iter().map(|one| &one.provider));
    let mut table = table("operation", ["time", "begin"]);
    for one in &activity.longest {
        let mut what = named(&one.name, &one.provider, said, one.process.as_ref());
        if let Some(tid) = one.tid {
            what = what.and(format!(", thread {tid}"));
        }
        if let Some(id) = &one.activity {
            what = what.and(", activity ").and(Line::name(id));
        }
        table.row([what, duration_ns(one.dur_ns).into(), duration_ns(one.start_ns).into()]);
    }
    doc.table(table);
}

fn operations(doc: &mut Doc, order: &str, list: &[Operation]) {
    let said = title(doc, "Operations", &format!(" {order}"), list.iter().map(|one| &one.provider));
    let mut table = table("operation", ["total", "number", "longest", "median", "95 %", "per second"]);
    for one in list {
        let mut what = named(&one.name, &one.provider, said, one.process.as_ref());
        for (n, how) in [(one.unfinished, "without an end"), (one.doubtful, "doubtful")] {
            if n > 0 {
                what = what.and(format!(", {} {how}", thousands(n.into())));
            }
        }
        table.row([
            what,
            duration_ns(one.total_ns).into(),
            number(one.count),
            time(one.longest_ns),
            time(one.median_ns),
            time(one.p95_ns),
            rate(one.per_second),
        ]);
    }
    doc.table(table);
}

fn rates(doc: &mut Doc, activity: &Activity) {
    let said = title(doc, "Events", " by number", activity.rates.iter().map(|one| &one.provider));
    let mut table = table("event", ["number", "share", "most in one second", "mean rate", "peak at"]);
    for one in &activity.rates {
        table.row([
            named(&one.name, &one.provider, said, None),
            number(one.count),
            share(one.share_percent),
            number(one.peak),
            rate(one.per_second),
            format!("{} s", thousands((one.peak_ns / 1_000_000_000).into())).into(),
        ]);
    }
    doc.table(table);
}

fn problems(doc: &mut Doc, activity: &Activity) {
    if !activity.problems.is_empty() {
        doc.subheading("Errors and warnings by provider");
    }
    let mut table = table("provider", ["errors", "warnings"]);
    for one in &activity.problems {
        let who = Line::name(&one.provider).and(", most of them ").and(Line::name(&one.most));
        table.row([who, number(one.errors), number(one.warnings)]);
    }
    doc.table(table);
}

fn undecoded(doc: &mut Doc, activity: &Activity) {
    if activity.undecoded.is_empty() {
        return;
    }
    doc.subheading(format!(
        "Could not be decoded: {} of {}",
        counted(activity.undecoded_events, "event", "events"),
        thousands(activity.events.into())
    ));
    let mut kinds: Vec<&str> = Vec::new();
    for one in &activity.undecoded {
        if !kinds.contains(&one.kind.as_str()) {
            kinds.push(&one.kind);
        }
    }
    for kind in kinds {
        let list: Vec<&Undecoded> = activity.undecoded.iter().filter(|one| one.kind == kind).collect();
        undecoded_kind(doc, &list);
    }
}

/// Events that are undecoded for one reason, and what would decode them.
fn undecoded_kind(doc: &mut Doc, list: &[&Undecoded]) {
    let Some(first) = list.first() else { return };
    let help = match first.option.as_deref() {
        Some("--tmf") => {
            ". `--tmf FOLDER` reads these files; `tracepdb -f PROGRAM.pdb -p FOLDER` (Windows Driver Kit) writes them:"
        }
        Some("--manifests") => {
            ". `--manifests FILE` reads it; PerfView writes it on a machine where the provider is registered:"
        }
        _ => ":",
    };
    doc.space();
    doc.text(format!("{}{help}", first.reason));
    let mut table = Table::new([
        Column::name("provider"),
        Column::number("events"),
        Column::number("share"),
        Column::name("needs"),
    ]);
    for one in list {
        let needs = one.needs.as_ref().map_or_else(|| dash().into(), Line::name);
        table.row([Line::name(&one.provider), number(one.count), share(one.share_percent), needs]);
    }
    doc.table(table);
    let commands: Vec<&str> =
        list.iter().filter(|one| one.kind == "manifest").filter_map(|one| one.command.as_deref()).collect();
    if !commands.is_empty() {
        doc.verbatim("bat", &commands.join("\n"));
    }
}
