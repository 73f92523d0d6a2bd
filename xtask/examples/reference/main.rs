//! Prints a document of the reference: `cargo run -p xtask --example reference -- tables`. An example and not
//! a part of the task runner, because it must be built with the project's crates and the runner must not.
#![forbid(unsafe_code)]

mod anomalies;
mod findings;
mod tables;
mod views;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let text = match std::env::args().nth(1).as_deref() {
        Some("tables") => tables::document(),
        Some("anomalies") => anomalies::document(),
        Some("findings") => match findings::document() {
            Ok(text) => text,
            Err(error) => {
                eprintln!("reference: {error}");
                return ExitCode::FAILURE;
            }
        },
        Some("views") => views::document(),
        _ => {
            eprintln!("usage: reference tables|anomalies|findings|views");
            return ExitCode::from(2);
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}
