//! `etwhy rules`: what findings there are, what they rest on, whether they do what they say.

use crate::catalog;
use crate::command::Command;
use crate::exit::Exit;
use crate::report::rules::{list, page};
use crate::report::terminal::out;
use crate::rules::RuleArgs;
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_rules::check::{check, check_sql};
use etwhy_rules::{Rule, Source, load_file, load_folder};
use etwhy_table::TableSpec;
use std::io::Write as _;
use std::path::PathBuf;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "rules",
    about: "The findings that why looks for: list them, read their manual, test your own",
    long_about: "A finding is a text file: what it needs, thresholds with their sources, a query over tables, texts, tests. \
                 `list`, or no word, lists those in force. `show ID` prints the manual page with thresholds, query and fix. \
                 `test` runs the tests that files hold, and checks that their SQL is what SQLite, DuckDB and Spark share \
                 (docs/sql.md).\n\n\
                 CONTRIBUTING.md says how to write one.",
    examples: "Examples:\n  etwhy rules\n  etwhy rules show dpc.over-limit\n  etwhy rules --rules my-findings --json\n  \
               etwhy rules test my-findings/app.slow-login.toml\n  etwhy rules test --rules my-findings",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    rules: RuleArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// `list`, `show ID…`, `test`, or `test FILE…`; without a word, lists all
    #[arg(value_name = "list | show ID | test [FILE]")]
    words: Vec<String>,
}

fn run(args: Args) -> anyhow::Result<Exit> {
    let mut out = out();
    // `list` says no more than no word.
    let words: &[String] = if args.words == ["list"] { &[] } else { &args.words };
    let exit = match words.split_first() {
        None => {
            let rules = args.rules.load()?;
            if args.json {
                json(&mut out, &rules.iter().map(listed).collect::<Vec<_>>())?;
            } else {
                list(&mut out, &rules)?;
            }
            Exit::Done
        }
        Some((word, ids)) if word == "show" => {
            show(&mut out, &args, ids)?;
            Exit::Done
        }
        Some((word, files)) if word == "test" => test(&mut out, &args, files)?,
        Some((word, _)) if word == "list" => {
            bail!("`list` takes nothing behind it; `show ID` prints one finding")
        }
        Some((word, _)) => bail!("`{word}` is none of `list`, `show` and `test`"),
    };
    out.flush()?;
    Ok(exit)
}

fn json(out: &mut impl std::io::Write, value: &impl serde::Serialize) -> anyhow::Result<()> {
    etwhy_report::json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}

/// A finding in the list.
fn listed(rule: &Rule) -> serde_json::Value {
    serde_json::json!({
        "id": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "topic": rule.topic,
        "needs": rule.needs,
        "file": rule.file,
    })
}

fn show(out: &mut impl std::io::Write, args: &Args, ids: &[String]) -> anyhow::Result<()> {
    let rules = args.rules.load()?;
    if ids.is_empty() {
        bail!("which one? `etwhy rules` lists them");
    }
    let mut chosen = Vec::new();
    for id in ids {
        let found = rules.iter().find(|r| r.id == *id);
        chosen.push(found.with_context(|| unknown(&rules, id))?);
    }
    if args.json {
        return json(out, &chosen);
    }
    for (n, rule) in chosen.into_iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        page(out, rule)?;
    }
    Ok(())
}

fn unknown(rules: &[Rule], id: &str) -> String {
    let part = id.rsplit('.').next().unwrap_or(id);
    let close: Vec<&str> = rules
        .iter()
        .map(|r| r.id.as_str())
        .filter(|known| known.contains(id) || known.contains(part))
        .collect();
    let meant = catalog::meant(id, rules.iter().map(|r| r.id.as_str()));
    match (meant.as_str(), close.is_empty()) {
        ("", true) => format!("there is no finding `{id}`; `etwhy rules` lists them"),
        ("", false) => format!("there is no finding `{id}`; {}", close.join(", ")),
        _ => format!("there is no finding `{id}`{meant}"),
    }
}

/// Runs the tests of the files, of the folders, or of what ships.
fn test(out: &mut impl std::io::Write, args: &Args, files: &[String]) -> anyhow::Result<Exit> {
    let mut rules = Vec::new();
    for file in files {
        let path = PathBuf::from(file);
        if path.is_dir() {
            rules.extend(load_folder(&path)?);
        } else {
            rules.push(load_file(&path)?);
        }
    }
    for folder in &args.rules.rules {
        rules.extend(load_folder(folder)?);
    }
    if rules.is_empty() && files.is_empty() && args.rules.rules.is_empty() {
        rules = etwhy_rules::builtin_with_tests()?;
    }
    let specs: Vec<&TableSpec> = catalog::all().collect();
    let mut failed = 0usize;
    let mut tests = 0usize;
    for rule in &rules {
        let faults = faults(rule, &specs);
        tests += rule.tests.len();
        if faults.is_empty() {
            writeln!(out, "ok      {} ({} tests)", rule.id, rule.tests.len())?;
        } else {
            failed += 1;
            writeln!(out, "FAILED  {}", rule.id)?;
        }
        for fault in faults {
            writeln!(out, "        {}", etwhy_export::sanitize(&fault))?;
        }
    }
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let n = rules.len();
    writeln!(out, "{n} finding{}, {tests} test{}, {failed} failed", s(n), s(tests))?;
    Ok(if failed > 0 { Exit::InPart } else { Exit::Done })
}

/// Everything that is wrong with a finding.
fn faults(rule: &Rule, specs: &[&TableSpec]) -> Vec<String> {
    let mut faults = check_sql(rule, specs);
    if rule.tests.is_empty() {
        faults.push("it has no [[test]]".to_owned());
    }
    if !rule.needs.is_empty() && !rule.tests.iter().any(|t| t.expect == "cannot_tell") {
        faults.push("no test expects cannot_tell, although it needs events".to_owned());
    }
    for (name, threshold) in &rule.thresholds {
        if threshold.reference.trim().is_empty() {
            faults.push(format!("threshold {name} does not say where it comes from"));
        }
        if threshold.source == Source::Doc && threshold.reference.len() < 10 {
            faults.push(format!("threshold {name} is said to be documented; cite the document"));
        }
    }
    for need in &rule.needs {
        if !etwhy_record::profiles().iter().any(|p| p.name == need.record) {
            faults.push(format!("there is no recording profile {}", need.record));
        }
    }
    faults.extend(check(rule, specs).err().unwrap_or_default());
    faults
}
