//! Chores of the repository: `cargo xtask` lists them.
#![forbid(unsafe_code)]

mod catalogues;
mod files;
mod generated;
mod layers;
mod new;
mod picture;
mod repo;
mod schema_page;
mod web;

use anyhow::{Result, bail};
use repo::Repo;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <TASK>

Tasks:
  gen                   Write the generated catalogues and docs/reference
  gen --check           Fail if one of them is stale
  new analysis <name>   Write the skeleton of an analysis with one table
  new command <name>    Write the skeleton of a command
  new format <name>     Write the skeleton of a format of tables
  new metric <name>     Write the skeleton of a metric of stacks
  new profile <name>    Write the skeleton of a profile format, for `etwhy export`
  new finding <id>      Write the skeleton of a finding
  new view <name>       Write the skeleton of a view
  layers                Check that crates depend on each other only as ARCHITECTURE.md says
  files                 Check lengths of files, links and paths in documents
  web                   Check that the page of web/ is built from what stands there
  check                 gen --check, layers, files and web";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    let repo = Repo::here()?;
    match arguments {
        ["gen"] => generated::write(&repo),
        ["gen", "--check"] => generated::check(&repo),
        ["new", kind, name] => new::write(&repo, kind, name),
        ["layers"] => layers::check(&repo),
        ["files"] => files::check(&repo),
        ["web"] => web::check(&repo),
        ["check"] => {
            generated::check(&repo)?;
            layers::check(&repo)?;
            files::check(&repo)?;
            web::check(&repo)
        }
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        other => bail!("`{}` is no task\n\n{USAGE}", other.join(" ")),
    }
}
