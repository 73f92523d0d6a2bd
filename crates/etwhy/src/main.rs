//! The `etwhy` program: faces on what the other crates compute. One file per command in `commands/`.
#![forbid(unsafe_code)]

mod catalog;
mod command;
mod commands;
mod exit;
mod knowledge;
mod moment;
mod open;
mod progress;
mod report;
mod resolve_extract;
mod rules;
mod shell;
mod stack_args;
mod symbol_args;
mod who;

use exit::Exit;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = match command_line().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::WrongUse.into() } else { Exit::Done.into() };
        }
    };
    let Some((name, arguments)) = matches.subcommand() else { return Exit::WrongUse.into() };
    let Some(command) = commands::ALL.iter().find(|c| c.name == name) else { return Exit::WrongUse.into() };
    match (command.run)(arguments) {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_closed_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            let _ = std::io::stdout().flush();
            eprintln!("etwhy: {}", etwhy_export::sanitize(&message(&error)));
            exit::of_error(&error).into()
        }
    }
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
            "Exit codes: 0 done, 1 done in part (the ledger says what is missing), 2 wrong use, 3 not a trace, \
             4 newer than known.",
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
