//! `etwhy audit`: audit policy, what it costs in a log, what could be switched off.

mod compare;
mod document;
mod logs;
mod machine;

use crate::command::Command;
use crate::exit::Exit;
use crate::open::logs::LogReading;
use crate::options::document::MarkdownArgs;
use crate::report::terminal::out;
use anyhow::Context as _;
use clap::{Args as _, FromArgMatches as _};
use etwhy_audit::advise::Tier;
use etwhy_audit::write::Proposed;
use etwhy_audit::{Form, Policy, Unknown, parse};
use etwhy_base::units::counted;
use etwhy_export::sanitize;
use etwhy_knowledge::Role;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "audit",
    about: "Audit policy: what each subcategory costs in the Security log, and what could be switched off",
    long_about: "Reads audit policies and Security logs, and compares them with each other and with Microsoft's recommendations.\n\n\
                 POLICY is what `auditpol /get /category:* /r`, `auditpol /get /category:*` or `auditpol /backup` wrote, or audit.csv \
                 of a Group Policy object; several are put together. Without one the log says which subcategories are on, without \
                 a log the volume that documents state takes the place of cost.\n\n\
                 Proposals are in two tiers: safe ones are what no recommendation of Microsoft asks for, the others need somebody's \
                 decision. That a setting is the switch of what a log holds is likely, not certain.",
    examples: "Examples:\n  auditpol /get /category:* /r > policy.csv     (on the machine, as administrator)\n  \
               etwhy audit policy.csv --log Security.evtx\n  etwhy audit policy.csv audit.csv --baseline dc\n  \
               etwhy audit --log C:\\Windows\\System32\\winevt\\Logs\n  \
               etwhy audit policy.csv --log Security.evtx --propose restore.csv",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// Files of auditpol or Group Policy
    #[arg(value_name = "POLICY", required_unless_present = "log")]
    policies: Vec<PathBuf>,
    /// Security logs (.evtx), folders or archives that hold them, `-` for standard input
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    log: Vec<PathBuf>,
    /// Kind of machine that recommendations are for (default: dc if the log says so, else server)
    #[arg(long, value_name = "KIND", value_parser = ["client", "server", "dc"])]
    baseline: Option<String>,
    /// Also list the subcategories that cost nothing and are not recommended
    #[arg(long)]
    all: bool,
    /// Write the policy with the safe proposals, as `auditpol /restore /file:FILE` reads it, and show each setting before and
    /// after; refused if a line of the policy is not certain
    #[arg(long, value_name = "FILE", requires = "policies")]
    propose: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["csv", "md"])]
    json: bool,
    /// Print a line per subcategory and outcome, as CSV
    #[arg(long, conflicts_with = "md")]
    csv: bool,
    #[command(flatten)]
    markdown: MarkdownArgs,
    #[command(flatten)]
    reading: LogReading,
}

/// A policy is read up to here: what is larger is none.
const LARGEST: u64 = etwhy_audit::encoding::MAX_BYTES as u64 + 1;

fn run(args: Args) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    let mut policies: Vec<(String, Policy)> = Vec::new();
    for path in &args.policies {
        let policy = read(path)?;
        if policy.is_empty() {
            anyhow::bail!(
                "{}: no audit policy: no line names a subcategory (read as {}, {} not understood). Write one with \
                 `auditpol /get /category:* /r > policy.csv`",
                path.display(),
                policy.encoding,
                counted(policy.unknown_count, "line", "lines")
            );
        }
        if policy.says_nothing() {
            let first =
                policy.uncertain().into_iter().next().map(|line| place(&path.display().to_string(), &line));
            anyhow::bail!(
                "{}: none of the settings of its {} lines was understood (read as {}{}), so nothing can be said about this policy. \
                 Write one with `auditpol /backup /file:policy.csv`, which has numbers in all languages. {}",
                path.display(),
                policy.entries.len(),
                policy.encoding,
                if policy.encoding_guessed { ", guessed" } else { "" },
                first.unwrap_or_default()
            );
        }
        let uncertain = policy.uncertain();
        for line in uncertain.iter().take(MOST_LINES) {
            say!("etwhy: {}", place(&path.display().to_string(), line));
        }
        if uncertain.len() > MOST_LINES {
            say!("etwhy: {}: {} more such lines", path.display(), uncertain.len() - MOST_LINES);
        }
        if !uncertain.is_empty() || policy.left_out > 0 || policy.left_out_bytes > 0 {
            exit = Exit::InPart;
        }
        policies.push((path.display().to_string(), policy));
    }
    let logs = logs::read(&args.log, &policies, &args.reading)?;
    if logs.exit != Exit::Done {
        exit = logs.exit;
    }
    for fault in &logs.faults {
        say!("etwhy: {fault}");
        exit = Exit::InPart;
    }
    if !args.log.is_empty() && logs.machines.is_empty() {
        anyhow::bail!(
            "{}: no audit records in {}; a Security log is wanted",
            shown(&args.log),
            counted(logs.read as i128, "log", "logs")
        );
    }
    let role = args.baseline.as_deref().and_then(Role::from_name);
    let compared = compare::compare(policies, logs, role);
    let written = args.propose.as_deref().map(|path| propose(path, &compared)).transpose()?;
    let mut out = out();
    if args.json {
        etwhy_report::json::to_writer_pretty(&mut out, &machine::json(&compared, written.as_ref()))?;
        writeln!(out)?;
    } else if args.csv {
        out.write_all(machine::csv(&compared).as_bytes())?;
    } else {
        args.markdown.write(&document::document(&compared, written.as_ref(), args.all), &mut out)?;
    }
    out.flush()?;
    Ok(exit)
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn read(path: &Path) -> anyhow::Result<Policy> {
    let file = std::fs::File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).with_context(|| format!("{}: cannot read", path.display()))?;
    if bytes.starts_with(b"ElfFile\0") {
        anyhow::bail!("{}: this is an event log; give it behind --log", path.display());
    }
    Ok(parse(&bytes))
}

/// A proposal that was written.
pub struct Written {
    /// Its file.
    pub path: PathBuf,
    /// The policy that it was made from.
    pub of: String,
    /// What it holds.
    pub proposed: Proposed,
}

/// Lines of a file that an error names.
const MOST_LINES: usize = 10;

/// A line in doubt as users find it.
fn place(file: &str, unknown: &Unknown) -> String {
    format!("{file}, line {}: {}: {}", unknown.line, unknown.reason, unknown.text)
}

/// Writes the last policy that is in force (else the last one) with the safe proposals.
///
/// # Errors
/// If something in the policy is not certain, if it is of another machine than the log, or if the file cannot be written.
fn propose(path: &Path, compared: &compare::Compared) -> anyhow::Result<Written> {
    let in_force = compared.policies.iter().rev().find(|(_, policy)| policy.form.is_in_force());
    let (file, policy) = in_force.or(compared.policies.last()).context("--propose needs a policy")?;
    let first = compared.machines.first().context("--propose needs a policy")?;
    if first.foreign.contains(file) {
        anyhow::bail!(
            "{} was not written: {file} is of another machine than the log, which is of {}",
            path.display(),
            first.name
        );
    }
    let proposed = match etwhy_audit::write::proposed(policy, &first.advised.proposals) {
        Ok(proposed) => proposed,
        Err(uncertain) => {
            let mut lines: Vec<String> =
                uncertain.lines.iter().take(MOST_LINES).map(|line| place(file, line)).collect();
            let more = uncertain.others + uncertain.lines.len().saturating_sub(MOST_LINES) as u64;
            if more > 0 {
                lines.push(format!("and {more} more"));
            }
            anyhow::bail!(
                "{} was not written: `auditpol /restore` must not be given what was guessed, and {file} has lines that are not \
                 certain. Correct them, or make the file with `auditpol /backup /file:policy.csv`, which has numbers. {}",
                path.display(),
                lines.join("; ")
            );
        }
    };
    etwhy_export::write_whole(path, proposed.text.as_bytes())
        .with_context(|| format!("{}: cannot write", path.display()))?;
    let safe = first.advised.proposals.iter().filter(|p| p.tier == Tier::Safe).count();
    let changed = proposed.changed();
    say!(
        "etwhy: {}: {} with {changed} setting{} changed ({safe} safe proposal{}{}).",
        sanitize(&path.display().to_string()),
        sanitize(file),
        if changed == 1 { "" } else { "s" },
        if safe == 1 { "" } else { "s" },
        if compared.machines.len() > 1 {
            format!(", those for {}", sanitize(&first.name))
        } else {
            String::new()
        },
    );
    if policy.form != Form::Backup {
        say!(
            "etwhy: it has no options and no accounts, because {} has none: keep `auditpol /backup /file:before.csv` before \
             `auditpol /restore /file:…`, or make the proposal from such a backup.",
            sanitize(file)
        );
    }
    Ok(Written { path: path.to_path_buf(), of: file.clone(), proposed })
}
