//! `etwhy tree`: where a metric went, along stacks.

use super::dump::ledger_hints;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::options::rows::{RowArgs, write_selection};
use crate::report::amount::percent_text;
use crate::report::missing::recording_for;
use crate::report::terminal::{out, width};
use crate::report::tree::{LETTERS, Look, print, print_list};
use crate::report::tree_file::{document, table};
use crate::stack_args::{LimitArgs, StackArgs, nothing};
use anyhow::{Result, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::stacks::{self, Butterfly, Frames, Matcher, Metric, NodeKind, Tree};
use etwhy_base::units::thousands;
use etwhy_export::sanitize;
use etwhy_table::Selection;
use std::borrow::Cow;
use std::io::Write;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "tree",
    about: "Call tree of CPU time, waits, bytes and more: top-down, bottom-up, or around a function",
    long_about: "Adds up a metric along stacks and prints the tree: weight, share, what a function cost itself, how often. Callers stand \
                 above what they call; --invert turns that around, --butterfly shows both sides of one function. --metric says what is \
                 added up (--list-metrics).\n\n\
                 DPCs and ISRs stand apart from the threads that they interrupted. What is folded because it is small stays \
                 visible as [… n others], so that the column `self` always adds up to the whole. Frames without a \
                 symbol stand as module!?.\n\n\
                 Order of the foldings: --focus and --exclude choose stacks; --trim-above and --trim-below cut them; --drop and \
                 --just-my-code take frames out; --collapse and --merge-recursion make one of several.",
    examples: "Examples:\n  etwhy tree trace.etl\n  etwhy tree trace.etl --process server --invert --depth 4\n  \
               etwhy tree trace.etl --butterfly SleepEx\n  etwhy tree trace.etl --metric wait --by thread --focus 'ntoskrnl.exe!*'\n  \
               etwhy tree trace.etl --metric virtual_alloc.committed_bytes --just-my-code --json",
    build: |command| {
        Args::augment_args(command)
            .mut_arg("traces", |arg| arg.required_unless_present_any(["demo", "list_metrics"]))
    },
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Bottom-up: functions in which the time was spent first, their callers below them
    #[arg(long, visible_alias = "bottom-up", conflicts_with = "butterfly")]
    invert: bool,
    /// Callers and callees of a function or module; recursion counts once
    #[arg(long, value_name = "FRAME")]
    butterfly: Option<String>,
    #[command(flatten)]
    rows: RowArgs,
    /// Print CSV, a row for each node
    #[arg(long, hide = true, conflicts_with_all = ["json", "format"])]
    csv: bool,
}

/// Nodes below this share are folded in a terminal, in per cent.
const LEAST_PERCENT: f64 = 1.0;
/// Processes that are listed beside a butterfly.
const LISTED: usize = 10;

fn run(mut args: Args) -> Result<Exit> {
    if args.csv {
        args.rows.format = Some("csv".to_owned());
    }
    // The tree itself is a document; files and other formats have a row for each node.
    let json = args.rows.json && args.rows.output.is_none();
    let mut out = out();
    if args.stacks.list_metrics {
        if args.rows.are_for_people() {
            StackArgs::list(&mut out, width())?;
        } else {
            let columns =
                [("name", "Name."), ("about", "What is added up."), ("manual", "How, and what fools it.")];
            let list = stacks::METRICS.iter().map(|m| [m.name, m.about, m.manual].map(Cow::Borrowed));
            args.rows.write_list("metrics", columns, list, &mut out)?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let metric = args.stacks.metric()?;
    let view = args.stacks.view(args.invert)?;
    let to_file = json || args.rows.format.is_some() || args.rows.output.is_some();
    let limits = args.limits.limits(&metric, if to_file { 0.0 } else { LEAST_PERCENT })?;
    if to_file && args.butterfly.is_some() && !json {
        bail!("--butterfly has two trees, which no table holds; use --json");
    }
    let analysed = args.stacks.analyse(args.trace.open()?, &metric)?;
    let db = &analysed.db;
    let part = args.stacks.part(db, &metric)?;
    let frames = Frames::read(db);
    if let Some(function) = &args.butterfly {
        let found = stacks::butterfly(db, &frames, &metric, &part, &view, &Matcher::parse(function));
        if json {
            etwhy_report::json::to_writer_pretty(
                &mut out,
                &butterfly_json(&metric, &found, nothing(db, &metric, &found.all), &|tree| {
                    tree.limited(&limits)
                }),
            )?;
            writeln!(out)?;
        } else if let Some(text) = nothing(db, &metric, &found.all) {
            writeln!(out, "{}", sanitize(&text))?;
        } else if found.functions.is_empty() {
            writeln!(out, "{} stands on no stack of metric {}", sanitize(function), metric.label())?;
        } else {
            print_butterfly(&mut out, &metric, &found, &|tree| tree.limited(&limits))?;
        }
    } else {
        let tree = stacks::tree(db, &frames, &metric, &part, &view);
        let shown = tree.limited(&limits);
        if json {
            let view = if args.invert { "bottom_up" } else { "top_down" };
            let mut document = document(&metric, view, &shown);
            document.cannot_tell = nothing(db, &metric, &tree.total());
            etwhy_report::json::to_writer_pretty(&mut out, &document)?;
            writeln!(out)?;
        } else if to_file {
            if let Some(text) = nothing(db, &metric, &tree.total()) {
                say!("etwhy: {text}");
            }
            let written = args.rows.written()?;
            let rows = table(&metric, &shown)?;
            write_selection(&Selection::all(&rows), &written, rows.rows(), &mut out)?;
        } else if let Some(text) = nothing(db, &metric, &tree.total()) {
            writeln!(out, "{}", sanitize(&text))?;
        } else {
            print_tree(&mut out, &metric, &tree, &shown, args.invert)?;
        }
    }
    out.flush()?;
    for line in ledger_hints(&analysed) {
        say!("etwhy: {line}");
    }
    Ok(analysed.exit)
}

/// What is added up, in a line.
fn head(metric: &Metric, all: &stacks::Sum) -> String {
    let scale = crate::report::amount::Scale::for_total(metric.unit, all.weight);
    let about = metric.about.trim_end_matches('.');
    let events = if all.count == all.weight {
        String::new()
    } else {
        format!(" in {} events", thousands(all.count.into()))
    };
    format!("{}: {about}; {}{events}", metric.label(), scale.text(all.weight))
}

/// Sentences, as wide as the terminal.
fn wrapped(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    etwhy_export::text::wrap(text, width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn print_tree(
    out: &mut impl Write,
    metric: &Metric,
    tree: &Tree,
    shown: &Tree,
    inverted: bool,
) -> Result<()> {
    let total = tree.total();
    wrapped(out, &head(metric, &total))?;
    if inverted {
        writeln!(out, "bottom-up: callers stand below what they called")?;
    }
    let look = Look::new(metric, total.weight, width(), inverted);
    print(out, shown, &look)?;
    writeln!(out)?;
    wrapped(out, LETTERS)?;
    let bare = tree.nodes.iter().filter(|node| tree.name(node).kind == NodeKind::NoStack);
    let bare = bare.fold(0i64, |sum, node| sum.saturating_add(node.own.weight));
    if bare > total.weight / 2 {
        let share = percent_text(bare, total.weight);
        wrapped(
            out,
            &format!(
                "{share} % have no stack: stacks of these events were not recorded; {}",
                recording_for(metric.table())
            ),
        )?;
    }
    if tree.refused > 0 {
        writeln!(
            out,
            "{} stacks were too many and are counted in part of their frames",
            thousands(tree.refused.into())
        )?;
    }
    Ok(())
}

fn print_butterfly(
    out: &mut impl Write,
    metric: &Metric,
    found: &Butterfly,
    limited: &dyn Fn(&Tree) -> Tree,
) -> Result<()> {
    wrapped(out, &head(metric, &found.all))?;
    let look = Look::new(metric, found.all.weight, width(), false);
    let name =
        found.callees.nodes.first().map(|root| found.callees.name(root).label.clone()).unwrap_or_default();
    writeln!(
        out,
        "{}: {} inclusive ({} %), {} in itself ({} %)",
        sanitize(&name),
        look.scale.text(found.inclusive.weight),
        percent_text(found.inclusive.weight, found.all.weight),
        look.scale.text(found.exclusive.weight),
        percent_text(found.exclusive.weight, found.all.weight),
    )?;
    if found.recursive.weight > 0 {
        writeln!(
            out,
            "{} with it on the stack more than once, counted once",
            look.scale.text(found.recursive.weight)
        )?;
    }
    if !found.by_group.is_empty() && !found.by_group.iter().all(|(name, ..)| name.is_empty()) {
        writeln!(out, "\nwhere it runs")?;
        let rows: Vec<(String, i64, i64)> =
            found.by_group.iter().map(|(name, all, own)| (name.clone(), all.weight, own.weight)).collect();
        print_list(out, &rows, &look, LISTED)?;
    }
    writeln!(out, "\ncallers (who calls it, outwards)")?;
    print(
        out,
        &limited(&found.callers),
        &Look { own: false, ..Look::new(metric, found.all.weight, width(), true) },
    )?;
    writeln!(out, "\ncallees (what it calls)")?;
    print(out, &limited(&found.callees), &look)?;
    writeln!(out)?;
    wrapped(out, LETTERS)?;
    Ok(())
}

fn butterfly_json(
    metric: &Metric,
    found: &Butterfly,
    cannot_tell: Option<String>,
    limited: &dyn Fn(&Tree) -> Tree,
) -> serde_json::Value {
    let groups = found.by_group.iter().map(
        |(name, all, own)| serde_json::json!({ "name": name, "weight": all.weight, "self": own.weight }),
    );
    serde_json::json!({
        "schema": "etwhy.butterfly/1",
        "metric": metric.label(),
        "unit": metric.unit.name(),
        "functions": found.functions.iter().map(|f| f.label.as_str()).collect::<Vec<_>>(),
        "total": found.all.weight,
        "cannot_tell": cannot_tell,
        "inclusive": found.inclusive.weight,
        "exclusive": found.exclusive.weight,
        "inclusive_count": found.inclusive.count,
        "exclusive_count": found.exclusive.count,
        "recursive": found.recursive.weight,
        "by_group": groups.collect::<Vec<_>>(),
        "callers": document(metric, "callers", &limited(&found.callers)),
        "callees": document(metric, "callees", &limited(&found.callees)),
    })
}
