//! `etwhy export`: stacks, threads and events for the profile viewers of others.

use super::dump::ledger_hints;
use crate::catalog::specs;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::options::rows::of_file;
use crate::options::time::TimeArgs;
use crate::report::missing::cannot_tell;
use crate::report::services::Services;
use crate::report::terminal::{entry, out};
use crate::who::chosen;
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::operators::stacks::{Class, Frames, METRICS, Metric, WeightedStack};
use etwhy_base::units::bytes;
use etwhy_export::profile::{
    At, INTERRUPTS, Profile, ProfileFormat, Scope, Weight, Weights, profile_formats, write_profile,
};
use etwhy_export::replace_file;
use etwhy_table::{Database, Role};
use etwhy_trace::catalog::{sample::SampleRow, thread::ThreadRow};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "export",
    about: "Stacks, threads and events for Firefox Profiler, Perfetto, speedscope, pprof and flame graphs",
    long_about: "Writes a trace in the format of another program. FORMAT comes before the trace, or follows from the ending of \
                 FILE; a further ending .gz compresses. `--list` says what each format carries and how to open it.\n\n\
                 Formats that are made of weights (folded, pprof, speedscope) take --metric; the others carry CPU samples and \
                 what happened besides. Idle threads are left out unless --idle is given.",
    examples: "Examples:\n  etwhy export firefox trace.etl -o trace.json.gz\n  \
               etwhy export trace.etl -o trace.pftrace\n  \
               etwhy export perfetto trace.etl -o part.pftrace.gz --from 2s --to 5s --without syscall\n  \
               etwhy export pprof trace.etl -o trace.pb.gz --process 'chrome;!4711'\n  \
               etwhy export folded trace.etl --service Dnscache | flamegraph.pl > dns.svg\n  \
               etwhy export --list",
    build: |command| {
        Args::augment_args(command)
            .mut_arg("traces", |traces| traces.required_unless_present("list"))
            .override_usage(
                "etwhy export [OPTIONS] [FORMAT] <TRACE>... [-o <FILE>]\n       etwhy export --list",
            )
    },
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// List the formats: what they carry, how to open them
    #[arg(long)]
    list: bool,
    /// What stacks weigh, for folded, pprof and speedscope; several for the last two: cpu,wait (default: cpu)
    #[arg(long, short, value_name = "LIST", value_delimiter = ',')]
    metric: Vec<String>,
    /// Only these processes, by name or id: 'chrome;!4711'
    #[arg(long, value_name = "FILTER")]
    process: Option<String>,
    /// Only threads that work for these services, by name
    #[arg(long, value_name = "FILTER")]
    service: Option<String>,
    #[command(flatten)]
    time: TimeArgs,
    /// With the idle threads
    #[arg(long)]
    idle: bool,
    /// Leave out parts of what the format carries (`--list` names them): syscall,file_io
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    without: Vec<String>,
}

/// What every format reads.
const TABLES: &[&str] =
    &["trace", "process", "thread", "stack", "stack_frame", "frame", "image", "event_type", "ledger"];

fn run(mut args: Args) -> anyhow::Result<Exit> {
    if args.list {
        list(&mut out())?;
        return Ok(Exit::Done);
    }
    let format = format(&mut args)?;
    if args.trace.traces.is_empty() && !args.trace.demo {
        bail!("which trace? Name it behind the format, or use --demo");
    }
    let gzip = args.output.as_deref().is_some_and(ends_with_gz);
    if args.output.is_none() && (format.binary || format.always_gzip) && std::io::stdout().is_terminal() {
        bail!("{} is no text for a terminal; write it to a file with -o", format.name);
    }
    let metrics = metrics(format, &args.metric)?;
    let without = without(format, &args.without)?;
    let mut tables: BTreeSet<String> = TABLES.iter().map(|name| (*name).to_owned()).collect();
    let parts = format.parts.iter().filter(|part| !without.contains(part.name));
    tables.extend(parts.flat_map(|part| part.tables).map(|name| (*name).to_owned()));
    tables.extend(metrics.iter().flat_map(|metric| metric.tables()).map(|table| table.name.to_string()));
    let analysed = args.trace.open()?.analyse(Some(tables))?;
    let db = &analysed.db;
    let mut profile = Profile::new(db);
    let (from_ns, to_ns) = args.time.in_trace(db)?;
    let (processes, threads) = (processes(db, &args)?, threads(db, &args)?);
    profile.scope = Scope { from_ns, to_ns, processes, threads, idle: args.idle };
    profile.without = without;
    profile.weights = metrics.iter().map(|metric| weights(db, metric)).collect();
    match &args.output {
        Some(path) => {
            let written = replace_file(path, |out| write_profile(format, &profile, gzip, out));
            written.map_err(|error| of_file(error.into(), path))?;
            let size = std::fs::metadata(path).map_or(0, |file| file.len());
            say!("etwhy: {}: {}, {}", path.display(), format.name, bytes(size as i64));
        }
        None => {
            let mut out = out();
            write_profile(format, &profile, false, &mut out)?;
            out.flush()?;
        }
    }
    for text in empty(db, format, &profile, &metrics) {
        say!("etwhy: {text}");
    }
    if profile.untimed.get() > 0 {
        say!(
            "etwhy: --metric {} has sums that stand for no moment; --from and --to left {} of them out",
            args.metric.join(","),
            profile.untimed.get()
        );
    }
    for line in ledger_hints(&analysed) {
        say!("etwhy: {line}");
    }
    Ok(analysed.exit)
}

/// What a file has nothing of, and why: without it an empty picture would be all that one sees.
fn empty(
    db: &Database,
    format: &ProfileFormat,
    profile: &Profile<'_>,
    metrics: &[&'static Metric],
) -> Vec<String> {
    if !format.weighted {
        let asked =
            format.parts.iter().any(|part| part.name == "sample") && !profile.without.contains("sample");
        let none = asked && db.read_or_empty::<SampleRow>().is_empty();
        return none.then(|| format!("no stacks: {}", cannot_tell(db, "sample"))).into_iter().collect();
    }
    let (from, to) = (profile.scope.from_ns.unwrap_or(i64::MIN), profile.scope.to_ns.unwrap_or(i64::MAX));
    let mut out = Vec::new();
    for metric in metrics {
        let (mut any, mut inside) = (false, false);
        metric.each(db, &mut |weight| {
            any = true;
            inside |= weight.ts_ns.is_none_or(|ts| (from..to).contains(&ts));
        });
        if !any {
            out.push(format!("nothing of metric {}: {}", metric.label(), cannot_tell(db, metric.table())));
        } else if !inside {
            out.push(format!("nothing of metric {} is between --from and --to", metric.label()));
        }
    }
    out
}

fn ends_with_gz(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"))
}

/// The format that is named in front of the traces, else that of the output file.
fn format(args: &mut Args) -> anyhow::Result<&'static ProfileFormat> {
    let named = |path: &PathBuf| path.to_str().and_then(ProfileFormat::by_name);
    if let Some(format) = args.trace.traces.first().and_then(named) {
        args.trace.traces.remove(0);
        return Ok(format);
    }
    let known: Vec<&str> = profile_formats().map(|format| format.name).collect();
    let known = known.join(", ");
    // A word that is no file is a format that does not exist, rather than a trace that does not.
    if let Some(first) = args.trace.traces.first().filter(|first| is_word(first) && !first.exists()) {
        bail!("`{}` is neither a format nor a file; formats: {known}", first.display());
    }
    let Some(path) = &args.output else {
        bail!("which format? Name one in front of the trace: {known}");
    };
    ProfileFormat::by_path(path).with_context(|| {
        format!("{} does not tell the format; name one in front of the trace: {known}", path.display())
    })
}

fn is_word(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The metrics that are asked for.
fn metrics(format: &ProfileFormat, asked: &[String]) -> anyhow::Result<Vec<&'static Metric>> {
    if !format.weighted {
        if !asked.is_empty() {
            bail!(
                "{} carries CPU samples and events as they are; --metric is for folded, pprof and speedscope",
                format.name
            );
        }
        return Ok(Vec::new());
    }
    let names: Vec<&str> =
        if asked.is_empty() { vec!["cpu"] } else { asked.iter().map(|name| name.trim()).collect() };
    if names.len() > format.most_weights {
        bail!("{} takes {} metric(s) at a time", format.name, format.most_weights);
    }
    names
        .iter()
        .map(|name| {
            Metric::by_name(name).with_context(|| {
                let known: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
                format!("unknown metric `{name}`; known: {}", known.join(", "))
            })
        })
        .collect()
}

/// The parts to leave out.
fn without(format: &ProfileFormat, asked: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let asked: BTreeSet<String> = asked.iter().map(|name| name.trim().to_owned()).collect();
    for name in &asked {
        if !format.parts.iter().any(|part| part.name == name) {
            let known: Vec<&str> = format.parts.iter().map(|part| part.name).collect();
            let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
            bail!("{} has no part `{name}`; it can go without: {known}", format.name);
        }
    }
    Ok(asked)
}

fn processes(db: &Database, args: &Args) -> anyhow::Result<Option<Vec<bool>>> {
    let Some(filter) = &args.process else { return Ok(None) };
    Ok(Some(chosen("process", &etwhy_analysis::operators::process_names(db), filter)?))
}

/// Threads that work for the services; all threads of their processes where no thread says for whom it works.
fn threads(db: &Database, args: &Args) -> anyhow::Result<Option<Vec<bool>>> {
    let Some(filter) = &args.service else { return Ok(None) };
    let spec = specs().find(|spec| spec.name == "sample").context("there is no table `sample`")?;
    let services = Services::matching(db, spec, filter)?;
    let threads = db.read::<ThreadRow>()?;
    let wanted = threads.iter().zip(0..).map(|(thread, row)| {
        services.wants(row, &|column| match spec.columns.get(column).map(|column| column.role) {
            Some(Role::Thread) => Some(i64::from(row)),
            Some(Role::Process) => thread.upid(),
            _ => None,
        })
    });
    Ok(Some(wanted.collect()))
}

fn weights<'a>(db: &'a Database, metric: &'static Metric) -> Weights<'a> {
    let row = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok());
    let each = move |give: &mut dyn FnMut(Weight)| {
        // Only DPCs and ISRs have less than the whole stack; finding out how much needs all frames.
        let frames = OnceCell::new();
        metric.each(db, &mut |stack: WeightedStack| {
            let interrupt = stack.class != Class::Thread;
            let own = || frames.get_or_init(|| Frames::read(db)).frames_of(&stack).count() as u32;
            let own = (interrupt && stack.stack.is_some()).then(own);
            let WeightedStack { ts_ns, upid, utid, weight, count, .. } = stack;
            give(Weight {
                ts_ns,
                upid: if interrupt { Some(INTERRUPTS) } else { row(upid) },
                utid: row(utid).filter(|_| !interrupt),
                at: At { stack: row(stack.stack), own, frame: row(stack.frame) },
                weight,
                count,
            });
        });
    };
    Weights { name: metric.name, unit: metric.unit, each: Box::new(each) }
}

fn list(out: &mut impl Write) -> anyhow::Result<()> {
    for format in profile_formats() {
        let endings: Vec<String> = format.extensions.iter().map(|e| format!(".{e}")).collect();
        writeln!(out, "{}  {}", format.name, endings.join(" "))?;
        entry(out, "  ", format.about)?;
        entry(out, "  open: ", format.open)?;
        if format.weighted {
            writeln!(out, "  carries: stacks weighed by --metric")?;
        }
        for part in format.parts {
            entry(out, "  carries: ", &format!("{} ({})", part.about, part.name))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "metrics for folded, pprof and speedscope")?;
    for metric in METRICS {
        entry(out, &format!("  {}: ", metric.name), metric.about)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part that names a table that does not exist would be empty without a word.
    #[test]
    fn parts_read_tables_that_exist() {
        for format in profile_formats() {
            for table in format.parts.iter().flat_map(|part| part.tables) {
                assert!(specs().any(|spec| spec.name == *table), "{}: {table}", format.name);
            }
        }
        assert!(TABLES.iter().all(|table| specs().any(|spec| spec.name == *table)));
    }

    #[test]
    fn endings_tell_the_format() {
        let of = |name: &str| ProfileFormat::by_path(Path::new(name)).map(|format| format.name);
        assert_eq!(of("a.pb.gz"), Some("pprof"));
        assert_eq!(of("A.FOLDED"), Some("folded"));
        assert_eq!(of("a.etl"), None);
        assert_eq!(of("folded"), None);
    }
}
