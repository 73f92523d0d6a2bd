//! `etwhy flame`: flame graphs, icicles, and differences of two traces, as pictures.

use super::dump::ledger_hints;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::{Analysed, TraceArgs};
use crate::report::amount::Scale;
use crate::report::terminal::{out, width};
use crate::stack_args::{LimitArgs, StackArgs, nothing};
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::derived::machine::MachineRow;
use etwhy_analysis::stacks::{Frames, Metric, Tree, View, tree};
use etwhy_base::units::{duration_ns, thousands};
use etwhy_export::sanitize;
use etwhy_report::flame::{Colours, Comparison, Options, html, svg};
use etwhy_table::RowOf;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "flame",
    about: "Flame graph or icicle as SVG or HTML; differential for two traces",
    long_about: "Draws the tree of `etwhy tree`: each box is a function, as wide as the metric with it on the stack; callers below what they \
                 call, with --icicle above. SVG is a picture whose boxes say their numbers when pointed at; HTML adds zoom and \
                 search, and asks for nothing over the network.\n\n\
                 With --diff the second trace is drawn: red boxes have more than before, blue ones less, pink ones were not there. \
                 The first trace is put on the scale of the second: its weights times (duration x processors) of the second / \
                 those of the first. Processes and threads go by name, since their ids differ.",
    examples: "Examples:\n  etwhy flame trace.etl -o cpu.svg\n  etwhy flame trace.etl --process server --metric wait --icicle -o wait.html\n  \
               etwhy flame before.etl after.etl --diff -o change.html",
    build: |command| {
        let required = |arg: clap::Arg| arg.required_unless_present_any(["demo", "list_metrics"]);
        Args::augment_args(command)
            .mut_arg("traces", required)
            .override_usage("etwhy flame [OPTIONS] <TRACE>... -o <FILE>\n       etwhy flame --list-metrics")
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
    /// Write to a file: .svg, or .html with zoom and search
    #[arg(long, short, value_name = "FILE", required_unless_present = "list_metrics")]
    output: Option<PathBuf>,
    /// Callers on top
    #[arg(long)]
    icicle: bool,
    /// Bottom-up: functions in which stacks end first
    #[arg(long, visible_alias = "bottom-up")]
    invert: bool,
    /// Compare two traces: the second is drawn, coloured by what changed since the first
    #[arg(long)]
    diff: bool,
    /// What colours mean: kind or category
    #[arg(long, value_name = "WHAT", default_value = "kind", conflicts_with = "diff")]
    color: String,
    /// Width of the picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1400)]
    width: u32,
    /// Words on top
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// One trace and its tree.
struct Side {
    name: String,
    analysed: Analysed,
    tree: Tree,
    /// Processors times duration.
    capacity: Option<i64>,
    duration_ns: i64,
}

fn run(args: Args) -> anyhow::Result<Exit> {
    if args.stacks.list_metrics {
        let mut out = out();
        StackArgs::list(&mut out, width())?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let path = args.output.clone().context("-o names the file to write")?;
    let page = match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("svg") => false,
        Some("html" | "htm") => true,
        _ => bail!("{}: write .svg or .html", path.display()),
    };
    let colours = match args.color.as_str() {
        "kind" => Colours::Kind,
        "category" => Colours::Category,
        other => bail!("--color knows kind and category, not `{other}`"),
    };
    if !(400..=20_000).contains(&args.width) {
        bail!("--width wants 400 to 20000 pixels");
    }
    let metric = args.stacks.metric()?;
    let view = View { without_ids: args.diff, ..args.stacks.view(args.invert)? };
    let limits = args.limits.limits(&metric, 0.0)?;
    let mut sides = Vec::new();
    if args.diff {
        if args.trace.traces.len() != 2 {
            bail!("--diff compares two traces: etwhy flame BEFORE AFTER --diff -o FILE");
        }
        for trace in &args.trace.traces {
            sides.push(side(
                &args,
                TraceArgs { traces: vec![trace.clone()], ..args.trace.clone() },
                &metric,
                &view,
            )?);
        }
    } else {
        sides.push(side(&args, args.trace.clone(), &metric, &view)?);
    }
    let Some((now, before)) = sides.split_last() else { return Ok(Exit::WrongUse) };
    for side in &sides {
        if let Some(text) = nothing(&side.analysed.db, &metric, &side.tree.total()) {
            bail!("{}: {text}", side.name);
        }
    }
    let shown = now.tree.limited(&limits);
    let comparison = before.first().map(|before| compare(&shown, before, now));
    let scale = Scale::for_total(metric.unit, now.tree.total().weight);
    let amount = |weight: i64| scale.text(weight);
    let title = args.title.clone().unwrap_or_else(|| title(&metric, &sides));
    let subtitle = subtitle(&args, &metric, &sides, comparison.as_ref(), &amount);
    let options = Options {
        title: &title,
        subtitle: &subtitle,
        icicle: args.icicle,
        width: args.width,
        colours,
        amount: &amount,
    };
    etwhy_export::replace_file(&path, |file| {
        let mut file = BufWriter::new(file);
        if page {
            html(&shown, &options, comparison.as_ref(), &mut file)?
        } else {
            svg(&shown, &options, comparison.as_ref(), &mut file)?
        };
        file.flush()?;
        Ok(())
    })?;
    let mut exit = Exit::Done;
    for side in &sides {
        for line in ledger_hints(&side.analysed) {
            say!("etwhy: {line}");
        }
        if exit == Exit::Done {
            exit = side.analysed.exit;
        }
    }
    Ok(exit)
}

fn side(args: &Args, trace: TraceArgs, metric: &Metric, view: &View) -> anyhow::Result<Side> {
    let name = match trace.traces.as_slice() {
        [] => "demonstration".to_owned(),
        [one] => one.file_name().unwrap_or(one.as_os_str()).to_string_lossy().into_owned(),
        many => format!("{} traces", many.len()),
    };
    let analysed = args.stacks.analyse(trace.open()?, metric)?;
    let db = &analysed.db;
    let part = args.stacks.part(db, metric)?;
    let tree = tree(db, &Frames::read(db), metric, &part, view);
    let machine = db.read_or_empty::<MachineRow>();
    let machine = machine.first();
    let end = machine.map_or(0, |machine| machine.duration_ns());
    let (from, to) = (part.from_ns.unwrap_or(0).max(0), part.to_ns.unwrap_or(end).min(end));
    let duration_ns = to.saturating_sub(from).max(0);
    // The whole of a trace counts as far as it was observed.
    let whole = (from, to) == (0, end);
    let observed = |machine: RowOf<'_, '_, MachineRow>| match whole {
        true => machine.capacity_ns(),
        false => machine.cpus().saturating_mul(duration_ns),
    };
    let capacity = machine.map(observed).filter(|&ns| ns > 0);
    Ok(Side { name, analysed, tree, capacity, duration_ns })
}

fn compare(shown: &Tree, before: &Side, now: &Side) -> Comparison {
    let factor = match (now.capacity, before.capacity) {
        (Some(now), Some(before)) => now as f64 / before as f64,
        _ => 1.0,
    };
    Comparison { before: shown.compared_with(&before.tree), factor }
}

fn title(metric: &Metric, sides: &[Side]) -> String {
    let about = metric.about.trim_end_matches('.');
    let mut letters = about.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    match sides {
        [before, now] => format!("{first}{}: {} since {}", letters.as_str(), now.name, before.name),
        _ => format!("{first}{}", letters.as_str()),
    }
}

fn subtitle(
    args: &Args,
    metric: &Metric,
    sides: &[Side],
    comparison: Option<&Comparison>,
    amount: &dyn Fn(i64) -> String,
) -> String {
    let Some(now) = sides.last() else { return String::new() };
    let total = now.tree.total();
    let mut parts = vec![format!(
        "{}: {} {} in {} events, {}",
        now.name,
        metric.label(),
        amount(total.weight),
        thousands(total.count.into()),
        duration_ns(now.duration_ns)
    )];
    if let (Some(before), Some(comparison)) = (sides.first().filter(|_| sides.len() > 1), comparison) {
        parts.push(format!(
            "{}: {} in {}, times {:.3} for duration and processors",
            before.name,
            amount(before.tree.total().weight),
            duration_ns(before.duration_ns),
            comparison.factor
        ));
    }
    let stacks = &args.stacks;
    let filters = [("process", &stacks.process), ("thread", &stacks.thread), ("service", &stacks.service)];
    parts.extend(filters.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?))));
    let (from, to) = stacks.time.in_trace(&now.analysed.db).unwrap_or_default();
    let times = [("from", from), ("to", to)];
    parts.extend(times.iter().filter_map(|(name, at)| Some(format!("{name} {}", duration_ns((*at)?)))));
    parts.extend(stacks.focus.iter().map(|focus| format!("focus {focus}")));
    parts.extend(args.invert.then(|| "bottom-up".to_owned()));
    sanitize(&parts.join("; ")).into_owned()
}
