//! What a trace without kernel events shows, for people.

use etwhy_analysis::activity::{Activity, LongInterval, Operation, Problems, Rate, Undecoded};
use etwhy_base::units::{decimal, duration_ns, thousands};
use etwhy_export::sanitize;
use etwhy_export::text::{hanging, pad_start, wrap};
use std::io::{self, Write};

/// What cannot be determined, and what can, in two sentences.
pub fn sentence(activity: &Activity) -> String {
    let mut text = format!("{} It holds {}", activity.cannot, holds(activity));
    if let Some(longest) = activity.longest.first() {
        text.push_str(&format!(
            "; the longest operation is {}{}, {}",
            longest.name,
            longest.process.as_ref().map(|process| format!(" of {process}")).unwrap_or_default(),
            duration_ns(longest.dur_ns)
        ));
    }
    text.push('.');
    let happened = activity.events.saturating_sub(activity.rundown);
    if activity.undecoded_events > 0 && activity.undecoded_events.saturating_mul(2) >= happened {
        text.push_str(" Most of them could not be decoded: see below what would.");
    }
    text
}

/// `69 events of 1 provider in 4.20 s`.
fn holds(activity: &Activity) -> String {
    let happened = activity.events.saturating_sub(activity.rundown);
    let rundown = match activity.rundown {
        0 => String::new(),
        n => format!(
            " (and {} that {} machine and session)",
            thousands(n.into()),
            if n == 1 { "describes" } else { "describe" }
        ),
    };
    format!(
        "{} of {} in {}{rundown}",
        count(happened, "event", "events"),
        count(activity.providers, "provider", "providers"),
        duration_ns(activity.duration_ns)
    )
}

fn count(n: i64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n.into()), if n == 1 { one } else { many })
}

/// In the unit that leaves digits.
fn rate(per_second: Option<f64>) -> String {
    let Some(rate) = per_second else { return "–".to_owned() };
    let units = [(1.0, "s"), (60.0, "min"), (3600.0, "h")];
    let (times, unit) = units.into_iter().find(|(times, _)| rate * times >= 0.1).unwrap_or((3600.0, "h"));
    let value = rate * times;
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 1000.0) };
    format!("{} /{unit}", decimal(value, decimals))
}

/// The only provider of a list, which then needs to be said once only.
fn only<'a>(mut providers: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = providers.next()?;
    providers.all(|other| other == first).then_some(first)
}

/// ` of PROVIDER` behind a heading.
fn of(provider: Option<&str>) -> String {
    provider.map(|provider| format!(" of {provider}")).unwrap_or_default()
}

/// A name, with its provider unless that was said.
fn named(name: &str, provider: &str, said: Option<&str>) -> String {
    if said == Some(provider) { name.to_owned() } else { format!("{name} ({provider})") }
}

fn title(out: &mut impl Write, text: &str, width: usize) -> io::Result<()> {
    writeln!(out)?;
    for line in wrap(&sanitize(text), width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{share:.1} %"))
}

fn time(ns: Option<i64>) -> String {
    ns.map_or("–".to_owned(), duration_ns)
}

/// Prints the section.
pub fn print(out: &mut impl Write, activity: &Activity, width: usize) -> io::Result<()> {
    print_operations(out, activity, width)?;
    print_rates(out, &activity.rates, width)?;
    print_problems(out, &activity.problems, width)?;
    print_undecoded(out, activity, width)
}

/// A row: figures, and a text that goes on below itself.
fn row(out: &mut impl Write, figures: &str, text: &str, width: usize) -> io::Result<()> {
    let first = format!("{figures}  ");
    let rest = " ".repeat(first.chars().count());
    for line in hanging(&first, &rest, &sanitize(text), width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn whose(process: Option<&String>) -> String {
    process.map(|process| format!(", {process}")).unwrap_or_default()
}

fn print_operations(out: &mut impl Write, activity: &Activity, width: usize) -> io::Result<()> {
    title(out, &activity.tally(), width)?;
    let provider = only(activity.longest.iter().map(|one| one.provider.as_str()));
    if !activity.longest.is_empty() {
        title(out, &format!("Longest operations{} (time, begin)", of(provider)), width)?;
    }
    for one in &activity.longest {
        let figures = format!(
            "{} {}",
            pad_start(&duration_ns(one.dur_ns), 11),
            pad_start(&duration_ns(one.start_ns), 11)
        );
        row(out, &figures, &long(one, provider), width)?;
    }
    let same = |a: &[Operation], b: &[Operation]| {
        let key = |one: &Operation| (one.provider.clone(), one.name.clone(), one.process.clone());
        let keys = |list: &[Operation]| list.iter().map(key).collect::<std::collections::BTreeSet<_>>();
        keys(b).is_subset(&keys(a))
    };
    list(out, "by total time", &activity.by_total, width)?;
    if !same(&activity.by_total, &activity.by_count) {
        list(out, "by number", &activity.by_count, width)?;
    }
    Ok(())
}

fn long(one: &LongInterval, said: Option<&str>) -> String {
    let thread = one.tid.map(|tid| format!(", thread {tid}")).unwrap_or_default();
    let activity = one.activity.as_ref().map(|id| format!(", activity {id}")).unwrap_or_default();
    format!("{}{}{thread}{activity}", named(&one.name, &one.provider, said), whose(one.process.as_ref()))
}

fn list(out: &mut impl Write, order: &str, list: &[Operation], width: usize) -> io::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let wide = width >= 100;
    let more = if wide { ", median, 95 %" } else { ", median" };
    let provider = only(list.iter().map(|one| one.provider.as_str()));
    title(out, &format!("Operations{} {order} (total, number{more}, longest)", of(provider)), width)?;
    for one in list {
        let mut figures = vec![
            pad_start(&duration_ns(one.total_ns), 11),
            pad_start(&thousands(one.count.into()), 8),
            pad_start(&time(one.median_ns), 9),
        ];
        if wide {
            figures.push(pad_start(&time(one.p95_ns), 9));
        }
        figures.push(pad_start(&time(one.longest_ns), 9));
        let open = match (one.unfinished, one.doubtful) {
            (0, 0) => String::new(),
            (open, 0) => format!(", {} without an end", thousands(open.into())),
            (0, doubtful) => format!(", {} doubtful", thousands(doubtful.into())),
            (open, doubtful) => {
                format!(
                    ", {} without an end, {} doubtful",
                    thousands(open.into()),
                    thousands(doubtful.into())
                )
            }
        };
        let text =
            format!("{}{}{open}", named(&one.name, &one.provider, provider), whose(one.process.as_ref()));
        row(out, &figures.join(" "), &text, width)?;
    }
    Ok(())
}

fn print_rates(out: &mut impl Write, rates: &[Rate], width: usize) -> io::Result<()> {
    if rates.is_empty() {
        return Ok(());
    }
    let wide = width >= 100;
    let provider = only(rates.iter().map(|one| one.provider.as_str()));
    let what = if wide {
        "number, share, mean rate, most in one second, which"
    } else {
        "number, share, most in one second"
    };
    title(out, &format!("Events{} by number ({what})", of(provider)), width)?;
    for one in rates {
        let mut figures =
            vec![pad_start(&thousands(one.count.into()), 10), pad_start(&percent(one.share_percent), 7)];
        if wide {
            figures.push(pad_start(&rate(one.per_second), 11));
        }
        figures.push(pad_start(&thousands(one.peak.into()), 7));
        if wide {
            figures.push(pad_start(&format!("{} s", thousands((one.peak_ns / 1_000_000_000).into())), 9));
        }
        row(out, &figures.join(" "), &named(&one.name, &one.provider, provider), width)?;
    }
    Ok(())
}

fn print_problems(out: &mut impl Write, problems: &[Problems], width: usize) -> io::Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nErrors and warnings by provider (errors, warnings)")?;
    for one in problems {
        let figures = format!(
            "{} {}",
            pad_start(&thousands(one.errors.into()), 10),
            pad_start(&thousands(one.warnings.into()), 10)
        );
        row(out, &figures, &format!("{}, most of them {}", one.provider, one.most), width)?;
    }
    Ok(())
}

fn print_undecoded(out: &mut impl Write, activity: &Activity, width: usize) -> io::Result<()> {
    if activity.undecoded.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nCould not be decoded: {} of {}",
        count(activity.undecoded_events, "event", "events"),
        thousands(activity.events.into())
    )?;
    let mut kinds: Vec<&str> = Vec::new();
    for one in &activity.undecoded {
        if !kinds.contains(&one.kind.as_str()) {
            kinds.push(&one.kind);
        }
    }
    for kind in kinds {
        let of: Vec<&Undecoded> = activity.undecoded.iter().filter(|one| one.kind == kind).collect();
        print_kind(out, &of, width)?;
    }
    Ok(())
}

/// Events that are undecoded for one reason.
fn print_kind(out: &mut impl Write, list: &[&Undecoded], width: usize) -> io::Result<()> {
    let Some(first) = list.first() else { return Ok(()) };
    let help = match first.option.as_deref() {
        Some("--tmf") => {
            " `--tmf FOLDER` reads these files; `tracepdb -f PROGRAM.pdb -p FOLDER` (Windows Driver Kit) writes them:"
        }
        Some("--manifests") => {
            " `--manifests FILE` reads it; PerfView writes it on a machine where the provider is registered:"
        }
        _ => ":",
    };
    let stop = if help == ":" { "" } else { "." };
    for line in hanging("- ", "  ", &format!("{}{stop}{help}", first.reason), width) {
        writeln!(out, "{line}")?;
    }
    for one in list {
        let figures = format!("  {}", pad_start(&thousands(one.count.into()), 10));
        let name = one.needs.as_ref().filter(|_| one.kind == "wpp").unwrap_or(&one.provider);
        row(out, &figures, name, width)?;
        if let Some(command) = one.command.as_ref().filter(|_| one.kind == "manifest") {
            // Whole, so that it can be copied.
            writeln!(out, "              {}", sanitize(command))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_many() {
        let mut activity = Activity { cannot: "No.".into(), events: 1, providers: 1, ..Activity::default() };
        assert_eq!(sentence(&activity), "No. It holds 1 event of 1 provider in 0 ns.");
        activity = Activity { events: 1_500, rundown: 1, providers: 2, undecoded_events: 1_000, ..activity };
        activity.duration_ns = 2_000_000_000;
        activity.longest =
            vec![LongInterval { name: "Request".into(), dur_ns: 5_000_000, ..LongInterval::default() }];
        assert_eq!(
            sentence(&activity),
            "No. It holds 1,499 events of 2 providers in 2.00 s (and 1 that describes machine and session); the longest \
             operation is Request, 5.00 ms. Most of them could not be decoded: see below what would."
        );
    }

    #[test]
    fn no_line_is_wider_than_asked_but_commands() {
        let name = "Microsoft-Windows-Something-With-A-Long-Name".to_owned();
        let operation = Operation {
            provider: name.clone(),
            name: "Operation with words".into(),
            process: Some("program.exe (1234)".into()),
            count: 123_456,
            complete: 123_000,
            total_ns: 3_600_000_000_000,
            ..Operation::default()
        };
        let activity = Activity {
            intervals: 2,
            complete: 1,
            unfinished: 1,
            by_total: vec![operation.clone()],
            by_count: vec![operation],
            rates: vec![Rate { provider: name.clone(), name: "E".into(), count: 7, ..Rate::default() }],
            problems: vec![Problems { provider: name.clone(), errors: 1, warnings: 0, most: "E".into() }],
            ..Activity::default()
        };
        for width in [60, 80, 200] {
            let mut out = Vec::new();
            print(&mut out, &activity, width).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert!(!text.contains("by number (total"), "the same list is not shown twice");
        }
    }
}
