//! `etwhy explain`: what is known of a function or driver, who calls it here, what it costs here.

use super::dump::ledger_hints;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::amount::{amount, percent_text};
use crate::report::explain::{Knowledge, document};
use crate::report::terminal::{out, text, width};
use crate::report::tree::{LETTERS, Look, print, print_list};
use crate::rules::RuleArgs;
use crate::stack_args::{StackArgs, nothing};
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::stacks::{
    Butterfly, Frames, GroupBy, Limits, Matcher, Metric, TracePart, View, butterfly,
};
use etwhy_doc::{Doc, Line};
use etwhy_table::Database;
use std::io::Write;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "explain",
    about: "What is known of a function or driver, who calls it in a trace, what it costs there",
    long_about: "Says what the knowledge base has on a function (SleepEx, ntoskrnl!KeWaitForSingleObject) or module (tedrdrv.sys): vendor, \
                 product, category, altitude, stack tags, findings that speak of it; of a status code (0xC0000022, STATUS_ACCESS_DENIED) \
                 its name and number. With a trace also what it costs there, in \
                 which processes, who calls it and what it calls.\n\n\
                 Wildcards work. Without a trace only what is known is said.",
    examples: "Examples:\n  etwhy explain tedrdrv.sys\n  etwhy explain 'ntoskrnl.exe!ExfAcquireRundownProtection'\n  \
               etwhy explain SleepEx trace.etl\n  etwhy explain WdFilter.sys trace.etl --json",
    build: |command| {
        Args::augment_args(command)
            .mut_arg("traces", |arg| arg.required_unless_present_any(["demo", "function"]))
    },
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// Function, module!function, module, or status code
    #[arg(value_name = "FUNCTION")]
    function: String,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Callers and callees below this share of the function's time are folded, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    min_percent: f64,
    /// At most N processes and findings
    #[arg(long, value_name = "N", default_value_t = 8)]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a function costs here: what is added up, under which name.
const COSTS: &[(&str, &str)] =
    &[("cpu", "threads"), ("dpc", "DPCs"), ("isr", "ISRs"), ("wait", "waits"), ("energy", "energy")];

fn run(args: Args) -> anyhow::Result<Exit> {
    crate::knowledge::load(&args.trace.knowledge)?;
    let known = Knowledge::about(&args.function, &args.rules.load()?);
    let mut out = out();
    if args.trace.traces.is_empty() && !args.trace.demo {
        if args.json {
            etwhy_report::json::to_writer_pretty(
                &mut out,
                &serde_json::json!({ "schema": "etwhy.explain/1", "function": args.function, "knowledge": known, "here": null }),
            )?;
            writeln!(out)?;
        } else {
            write!(out, "{}", text(&document(&known, args.top)))?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let metrics: Vec<(&Metric, &str)> =
        COSTS.iter().filter_map(|(name, label)| Some((Metric::by_name(name)?, *label))).collect();
    let mut tables = std::collections::BTreeSet::new();
    for (metric, _) in &metrics {
        tables.extend(StackArgs::tables(metric));
    }
    let analysed = args.trace.open()?.analyse(Some(tables))?;
    let db = &analysed.db;
    let costs = costs(db, &metrics, &args.function);
    if args.json {
        let here: Vec<serde_json::Value> = costs.iter().map(|cost| cost.json(db)).collect();
        let value = serde_json::json!({ "schema": "etwhy.explain/1", "function": args.function, "knowledge": known, "here": here });
        etwhy_report::json::to_writer_pretty(&mut out, &value)?;
        writeln!(out)?;
    } else {
        let mut doc = document(&known, args.top);
        let any = here(&mut doc, db, &args.function, &costs);
        write!(out, "{}", text(&doc))?;
        if any {
            trees(&mut out, &args, &costs)?;
        }
    }
    out.flush()?;
    for line in ledger_hints(&analysed) {
        say!("etwhy: {line}");
    }
    Ok(analysed.exit)
}

/// What the function costs by one metric.
struct Cost<'m> {
    metric: &'m Metric,
    label: &'m str,
    found: Butterfly,
}

impl Cost<'_> {
    fn json(&self, db: &Database) -> serde_json::Value {
        let found = &self.found;
        let groups = found.by_group.iter().map(|(name, all, own)| serde_json::json!({ "process": name, "inclusive": all.weight, "exclusive": own.weight }));
        let first = |tree: &etwhy_analysis::stacks::Tree| -> Vec<serde_json::Value> {
            let below = tree.nodes.iter().skip(1).filter(|node| node.parent == 0);
            let mut list: Vec<_> =
                below.map(|node| (tree.name(node).label.clone(), node.total.weight)).collect();
            list.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            list.into_iter()
                .map(|(name, weight)| serde_json::json!({ "name": name, "weight": weight }))
                .collect()
        };
        serde_json::json!({
            "metric": self.metric.name,
            "unit": self.metric.unit.name(),
            "functions": found.functions.iter().map(|f| f.label.as_str()).collect::<Vec<_>>(),
            "total": found.all.weight,
            "cannot_tell": nothing(db, self.metric, &found.all),
            "inclusive": found.inclusive.weight,
            "exclusive": found.exclusive.weight,
            "by_process": groups.collect::<Vec<_>>(),
            "callers": first(&found.callers),
            "callees": first(&found.callees),
        })
    }
}

fn costs<'m>(db: &Database, metrics: &[(&'m Metric, &'m str)], function: &str) -> Vec<Cost<'m>> {
    let frames = Frames::read(db);
    let matcher = Matcher::parse(function);
    let view = View { groups: vec![GroupBy::Process], ..View::default() };
    metrics
        .iter()
        .map(|(metric, label)| {
            let found = butterfly(db, &frames, metric, &TracePart::default(), &view, &matcher);
            Cost { metric, label, found }
        })
        .collect()
}

/// What it costs here in a line for each metric; false if it costs nothing, or nobody knows.
fn here(doc: &mut Doc, db: &Database, function: &str, costs: &[Cost<'_>]) -> bool {
    doc.heading("In this trace");
    let Some(cpu) = costs.first() else { return false };
    let busy = costs.iter().fold(etwhy_analysis::stacks::Sum::default(), |mut sum, cost| {
        sum.add(&cost.found.all);
        sum
    });
    if let Some(text) = nothing(db, cpu.metric, &busy) {
        doc.text(text);
        return false;
    }
    let wait = costs.iter().find(|cost| cost.metric.name == "wait");
    let no_waits = wait.and_then(|cost| nothing(db, cost.metric, &cost.found.all));
    let none = costs.iter().all(|cost| cost.found.functions.is_empty());
    if none {
        let what = if no_waits.is_some() { "a CPU sample" } else { "a CPU sample or wait" };
        doc.text(Line::name(function).and(format!(" stands on no stack of {what}")));
    }
    if let Some(text) = no_waits {
        doc.note("waits", text);
    }
    for cost in costs.iter().filter(|cost| cost.found.inclusive.count > 0) {
        let (all, inclusive, own) =
            (cost.found.all.weight, cost.found.inclusive.weight, cost.found.exclusive.weight);
        let what = if cost.metric.name == "energy" { "about " } else { "" };
        let text = format!(
            "{what}{} with it on the stack ({} % of {}), {what}{} in itself ({} %)",
            amount(cost.metric.unit, inclusive),
            percent_text(inclusive, all),
            amount(cost.metric.unit, all),
            amount(cost.metric.unit, own),
            percent_text(own, all),
        );
        doc.note(cost.label, text);
    }
    !none
}

/// Where it is called, and what it calls.
fn trees(out: &mut impl Write, args: &Args, costs: &[Cost<'_>]) -> anyhow::Result<()> {
    for cost in costs.iter().filter(|c| c.found.inclusive.count > 0 && c.metric.name != "energy") {
        let found = &cost.found;
        let whole = found.all.weight;
        let look = Look::new(cost.metric, whole, width(), false);
        let rows: Vec<(String, i64, i64)> =
            found.by_group.iter().map(|(name, all, own)| (name.clone(), all.weight, own.weight)).collect();
        if cost.metric.name == "cpu" {
            writeln!(out, "\n{}: by process", cost.label)?;
            print_list(out, &rows, &look, args.top)?;
        }
        let limits = Limits { least_percent: args.min_percent.clamp(0.0, 100.0), ..Limits::default() };
        writeln!(out, "\n{}: who calls it", cost.label)?;
        let callers = Look { own: false, ..Look::new(cost.metric, whole, width(), true) };
        print(out, &found.callers.limited(&limits), &callers)?;
        writeln!(out, "\n{}: what it calls", cost.label)?;
        print(out, &found.callees.limited(&limits), &look)?;
    }
    writeln!(out)?;
    etwhy_doc::layout::wrap(LETTERS, width()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(())
}
