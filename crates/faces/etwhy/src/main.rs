//! The `etwhy` program: faces on what the other crates compute. One file per command in `commands/`.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout)] // `stdout` is the only way, because it notices when results do not arrive.
#![deny(clippy::print_stderr)] // `stderr` is the only way, because it lets nothing through that acts on terminals.

#[macro_use]
mod stderr;

mod catalog;
mod command;
mod commands;
mod exit;
mod knowledge;
mod open;
mod open_files;
mod options;
mod own;
mod progress;
mod report;
mod resolve_extract;
mod rules;
mod shell;
mod stack_args;
mod stdout;
mod symbol_args;
mod verbose;
mod who;

use clap::error::{ContextKind, ErrorKind};
use exit::Exit;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    open_files::allow_many();
    let result = run();
    let ended = stdout::end();
    match (result, ended) {
        (Ok(_), stdout::Ended::Failed(error)) => not_written(&error),
        (Err(_), stdout::Ended::Failed(error)) => not_written(&error),
        (Ok(exit), _) => exit,
        (Err(_), stdout::Ended::Closed) => Exit::Done,
        (Err(error), stdout::Ended::Whole) if exit::is_closed_pipe(&error) => Exit::Done,
        (Err(error), stdout::Ended::Whole) => {
            match error.downcast_ref::<open::SeveralRecordings>() {
                Some(several) => several.lines.iter().for_each(|line| say(line)),
                None => say(&format!("{}{}", message(&error), exit::advice_of(&error))),
            }
            exit::of_error(&error)
        }
    }
    .into()
}

/// Results did not arrive, whatever else happened.
fn not_written(error: &std::io::Error) -> Exit {
    say(&format!("standard output cannot be written: {error}{}", exit::advice(error.kind())));
    Exit::InPart
}

/// A line on standard error, if anybody can read it.
fn say(text: &str) {
    say!("etwhy: {text}");
}

fn run() -> anyhow::Result<Exit> {
    let parse =
        |line: Vec<OsString>| command_line().try_get_matches_from(stdout::plain_line(line.into_iter()));
    let line: Vec<OsString> = std::env::args_os().collect();
    let parsed = parse(line.clone()).or_else(|error| match with_command(&error, line) {
        Some(line) => parse(line),
        None => Err(error),
    });
    let matches = match parsed {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            complain(&error);
            // A file whose ending does not say which command reads it.
            let given = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string);
            if let Some(file) = given.as_deref().filter(|name| Path::new(name).exists()) {
                say(&format!(
                    "`etwhy why {file}` explains a trace, `etwhy evtx {file}` reads an event log, `etwhy counters {file}` a counter log"
                ));
            } else if let Some(like) = given.as_deref().and_then(|name| meant_command(&error, name)) {
                say(&format!("did you mean `etwhy {like}`?"));
            }
            let missing = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
            if error.kind() == ErrorKind::MissingRequiredArgument {
                let known = WHERE_FROM.iter().filter(|(argument, _)| missing.contains(argument));
                known.for_each(|(_, from)| say(from));
            }
            return Ok(Exit::WrongUse);
        }
        Err(help) => {
            let text = help.render();
            let text = if report::terminal::color() { text.ansi().to_string() } else { text.to_string() };
            stdout::watched().write_all(text.as_bytes())?;
            return Ok(Exit::Done);
        }
    };
    let mut deepest = &matches;
    while let Some((_, arguments)) = deepest.subcommand() {
        deepest = arguments;
    }
    verbose::start(deepest.get_count("verbose"))?;
    let Some((name, arguments)) = matches.subcommand() else { return Ok(Exit::WrongUse) };
    let Some(command) = commands::ALL.iter().find(|c| c.name == name) else { return Ok(Exit::WrongUse) };
    verbose::stage("all", || (command.run)(arguments))
}

/// Where what an argument takes comes from: said to whoever leaves it out.
const WHERE_FROM: [(&str, &str); 3] = [
    ("<PROFILES>", "`etwhy record --list` names the profiles"),
    ("<TABLE>", "`etwhy dump --list` names the tables"),
    ("<STORE>", "`etwhy fleet run FOLDER -o STORE` makes a store of the traces in a folder"),
];

/// What Rust says of text that is no number, and what a user understands.
const NO_NUMBERS: [(&str, &str); 4] = [
    ("invalid digit found in string", "not a whole number"),
    ("cannot parse integer from empty string", "not a whole number"),
    ("number too large to fit in target type", "too large"),
    ("number too small to fit in target type", "too small"),
];

/// Prints what is wrong with a command line.
fn complain(error: &clap::Error) {
    let text = error.render().to_string();
    let known = NO_NUMBERS.iter().find(|(rust, _)| text.contains(rust));
    match known.filter(|_| error.kind() == ErrorKind::ValueValidation) {
        Some((rust, plain)) => stderr::lines(&text.replacen(rust, plain, 1)),
        // What the shell made of a pattern may be the name of a file from somebody else.
        None if stderr::is_unsafe(&text) => stderr::lines(&text),
        None => drop(error.print()),
    }
}

/// The command that was meant by a `name` in its place, where clap finds none.
fn meant_command(error: &clap::Error, name: &str) -> Option<&'static str> {
    let mut line = std::env::args_os().skip(1);
    let first = line.find(|argument| !argument.as_encoded_bytes().starts_with(b"-"))?;
    let is_clear = first.to_str() == Some(name) && error.get(ContextKind::SuggestedSubcommand).is_none();
    etwhy_table::closest(name, commands::ALL.iter().map(|command| command.name)).filter(|_| is_clear)
}

/// The command line with the command that a file in its place stands for: `etwhy TRACE` is `etwhy why TRACE`, `etwhy LOG.evtx` is
/// `etwhy evtx why LOG.evtx`. What is no file, or may be of several kinds (.csv, .json), stands for none.
fn with_command(error: &clap::Error, mut line: Vec<OsString>) -> Option<Vec<OsString>> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let given = error.get(ContextKind::InvalidSubcommand)?.to_string();
    // Options in front of it are those of all commands, which take no values.
    let at = line.iter().skip(1).position(|argument| !argument.as_encoded_bytes().starts_with(b"-"))? + 1;
    let path = Path::new(line.get(at).filter(|argument| argument.to_string_lossy() == given)?);
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let command: &[&str] = match ending.as_str() {
        "evtx" => &["evtx", "why"],
        "blg" => &["counters"],
        "etl" | "diagsession" => &["why"],
        "csv" | "tsv" | "json" | "toml" | "man" | "xml" => return None,
        _ if path.exists() => &["why"],
        _ => return None,
    };
    line.splice(at..at, command.iter().map(OsString::from));
    Some(line)
}

/// The error and its causes, each said once: some errors name their cause themselves.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    text
}

/// The whole command line, put together from the commands.
fn command_line() -> clap::Command {
    let mut line = clap::Command::new("etwhy")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Why was this Windows machine slow, who did it, what did it cost, and what should I do?")
        .long_about(
            "etwhy reads Windows event traces (.etl) on any system and says where the time went.\n\n\
             Start with `etwhy TRACE.etl`, or `etwhy why --demo` without a trace. A trace in the place of a command is explained \
             (`etwhy why`), and so is an event log (`etwhy evtx why LOG.evtx`). A file that is called like a command is ./NAME.",
        )
        .after_help(
            "The same in every command that has it: --json, --md[=FILE], --html FILE, --format FORMAT, -o FILE, --top N, --all; \
             --from and --to (or --since and --until) take 1.5s after the start, -2h before the end, \"2026-11-24 10:00\" local time, \
             2026-11-24T09:00Z, 2026-11-24T10:00+01:00.\n\n\
             Exit codes: 0 done, 1 done in part (the ledger says what is missing) or output that could not be written, \
             2 wrong use, 3 not a trace, 4 newer than known, 5 a condition of --fail-on is met.",
        )
        .arg(
            clap::Arg::new("verbose")
                .short('v')
                .long("verbose")
                .action(clap::ArgAction::Count)
                .global(true)
                // Behind the options of the command itself.
                .display_order(998)
                .help(
                    "Report on standard error what is opened, found, chosen and skipped, and how long it takes; -vv adds symbol files, \
                     derived tables and findings (ETWHY_LOG=etwhy_symbols=debug,info selects by crate)",
                ),
        )
        .subcommand_required(true)
        .arg_required_else_help(true);
    for command in commands::ALL {
        // The texts come last: arguments that several commands share would put theirs in their place.
        line = line.subcommand(
            (command.build)(clap::Command::new(command.name))
                .about(command.about)
                .long_about(command.long_about)
                .after_help(command.examples),
        );
    }
    line
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_sound() {
        super::command_line().debug_assert();
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("no such file").context("x.etl: cannot open: no such file");
        assert_eq!(super::message(&error), "x.etl: cannot open: no such file");
        let error = anyhow::anyhow!("no such file").context("cannot open x.etl");
        assert_eq!(super::message(&error), "cannot open x.etl: no such file");
    }
}
