//! The `etwhy` program: faces on what the other crates compute. One file per command in `commands/`.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout)] // `stdout` is the only way, because it notices when results do not arrive.

mod catalog;
mod command;
mod commands;
mod exit;
mod knowledge;
mod open;
mod options;
mod progress;
mod report;
mod resolve_extract;
mod rules;
mod shell;
mod stack_args;
mod stdout;
mod symbol_args;
mod who;

use clap::error::ContextKind;
use exit::Exit;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
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
                None => say(&message(&error)),
            }
            exit::of_error(&error)
        }
    }
    .into()
}

/// Results did not arrive, whatever else happened.
fn not_written(error: &std::io::Error) -> Exit {
    say(&format!("standard output cannot be written: {error}"));
    Exit::InPart
}

/// A line on standard error, if anybody can read it.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "etwhy: {}", etwhy_export::sanitize(text));
}

fn run() -> anyhow::Result<Exit> {
    let matches = match command_line().try_get_matches_from(stdout::without_dash(std::env::args_os())) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            let _ = error.print();
            // A file in the place of a command.
            let given = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string);
            if let Some(file) = given.filter(|name| std::path::Path::new(name).exists()) {
                say(&format!("`etwhy why {file}` explains a trace, `etwhy evtx {file}` reads an event log"));
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
    let Some((name, arguments)) = matches.subcommand() else { return Ok(Exit::WrongUse) };
    let Some(command) = commands::ALL.iter().find(|c| c.name == name) else { return Ok(Exit::WrongUse) };
    (command.run)(arguments)
}

/// The error and its causes, each said once: some errors name their cause themselves.
fn message(error: &anyhow::Error) -> String {
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
             Start with `etwhy why TRACE.etl`, or `etwhy why --demo` without a trace.",
        )
        .after_help(
            "Exit codes: 0 done, 1 done in part (the ledger says what is missing) or output that could not be written, \
             2 wrong use, 3 not a trace, 4 newer than known.",
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
