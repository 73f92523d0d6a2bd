//! Chores of the repository: `cargo xtask` lists them.
#![forbid(unsafe_code)]

mod catalogues;
mod files;
mod generated;
mod layers;
mod lines;
mod new;
mod picture;
mod repo;
mod schema_page;
mod truth;
mod web;
mod words;

use anyhow::{Result, bail};
use repo::Repo;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <TASK>

Tasks:
  new <KIND> <NAME>     Write the skeleton of a file and list it; builds nothing
  check <KIND> <NAME>   Run the tests of that file
  check                 gen --check, layers, files, words and web
  gen                   Write the catalogues, docs/reference and the output shown in README.md
  gen --check           Fail if one of them is stale
  reference <FOLDER>    Write the manual pages of all findings, which a release ships
  layers                Check that crates depend on each other only as ARCHITECTURE.md says
  files                 Check lengths of files, links and paths in documents
  web                   Check that the page in web/dist is built from the sources in web/
  words                 Check that texts for readers avoid the phrases that docs/terms.md replaces
  truth [OPTIONS]       Judge what etwhy says of random machines with planted causes; --help lists the options
  lines                 Count lines of code, comments and tests, by crate";

fn usage() -> String {
    format!("{USAGE}\n\nKinds: {}", new::kinds())
}

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
        ["check", kind, name] => new::check(&repo, kind, name),
        ["reference", folder] => generated::release(&repo, folder),
        ["words"] => words::check(&repo),
        ["lines"] => lines::print(&repo),
        ["truth", rest @ ..] => truth::run(rest),
        ["layers"] => layers::check(&repo),
        ["files"] => files::check(&repo),
        ["web"] => web::check(&repo),
        ["check"] => {
            generated::check(&repo)?;
            layers::check(&repo)?;
            files::check(&repo)?;
            words::check(&repo)?;
            web::check(&repo)
        }
        [] | ["help" | "--help" | "-h"] => {
            println!("{}", usage());
            Ok(())
        }
        other => bail!("unknown task `{}`\n\n{}", other.join(" "), usage()),
    }
}
