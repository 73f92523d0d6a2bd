//! Files that are made from others: where they come from, and whether they are fresh.

use crate::catalogues;
use crate::picture;
use crate::repo::Repo;
use crate::schema_page;
use anyhow::{Result, bail};
use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};

/// A file that is made.
pub struct Generated {
    /// Path inside the repository.
    pub path: &'static str,
    /// Its text.
    pub text: String,
}

/// Writes what is stale. Catalogues come first, because the reference is made by a build that needs them.
///
/// # Errors
/// If something cannot be read, built or written.
pub fn write(repo: &Repo) -> Result<()> {
    for make in [catalogues::all, documents, reference] {
        write_stale(repo, make(repo)?)?;
    }
    Ok(())
}

/// Writes the catalogues alone, which needs no build.
///
/// # Errors
/// If a folder cannot be listed or a file not be written.
pub fn write_catalogues(repo: &Repo) -> Result<()> {
    write_stale(repo, catalogues::all(repo)?)
}

fn write_stale(repo: &Repo, files: Vec<Generated>) -> Result<()> {
    for file in files.iter().filter(|file| is_stale(repo, file)) {
        repo.write(file.path, &file.text)?;
        println!("{}: written", file.path);
    }
    Ok(())
}

/// Fails if a file is stale.
///
/// # Errors
/// The stale files by name.
pub fn check(repo: &Repo) -> Result<()> {
    let mut stale = Vec::new();
    for make in [catalogues::all, documents, reference] {
        stale.extend(make(repo)?.into_iter().filter(|file| is_stale(repo, file)).map(|file| file.path));
    }
    if !stale.is_empty() {
        bail!("stale, run `cargo xtask gen`: {}", stale.join(", "));
    }
    Ok(())
}

fn is_stale(repo: &Repo, file: &Generated) -> bool {
    repo.read(file.path).map_or(true, |text| text.replace("\r\n", "\n") != file.text)
}

/// Builds the program and the example that knows the project. For the whole workspace, so that dependencies have
/// the same features as in `cargo test --workspace` and are not built twice.
const BUILD: &[&str] = &["build", "--quiet", "--workspace", "--bin", "etwhy", "--example", "reference"];

/// Documents that are made from files alone.
fn documents(repo: &Repo) -> Result<Vec<Generated>> {
    Ok(vec![Generated { path: "docs/reference/why-json.md", text: schema_page::page(repo)? }])
}

/// The program, built if there is none yet.
///
/// # Errors
/// If it cannot be built.
pub fn program(repo: &Repo) -> Result<PathBuf> {
    let path = repo.target()?.join(format!("debug/etwhy{EXE_SUFFIX}"));
    if !path.exists() {
        repo.cargo(BUILD)?;
    }
    Ok(path)
}

/// A document that the example `reference` prints.
fn document(repo: &Repo, name: &str) -> Result<String> {
    repo.run(&repo.target()?.join(format!("debug/examples/reference{EXE_SUFFIX}")), &[name])
}

/// The documents below `docs/reference` that need the program, and what the program prints in README.md.
fn reference(repo: &Repo) -> Result<Vec<Generated>> {
    repo.cargo(BUILD)?;
    let program = program(repo)?;
    let demo = repo.run(&program, &["why", "--demo"])?;
    Ok(vec![
        Generated { path: "README.md", text: picture::renewed(&repo.read("README.md")?, &demo)? },
        Generated { path: "docs/reference/tables.md", text: document(repo, "tables")? },
        Generated { path: "docs/reference/anomalies.md", text: document(repo, "anomalies")? },
        Generated { path: "docs/reference/views.md", text: document(repo, "views")? },
        Generated { path: "docs/reference/cli.md", text: command_line(repo, &program)? },
        Generated { path: "docs/reference/demo.txt", text: demo },
    ])
}

/// Writes the manual pages that ship with a release and are not kept in the repository, where `etwhy rules show` and the
/// files themselves say the same: nobody has to renew them with each finding.
///
/// # Errors
/// If something cannot be built or written.
pub fn release(repo: &Repo, folder: &str) -> Result<()> {
    repo.cargo(BUILD)?;
    let path = format!("{folder}/findings.md");
    repo.write(&path, &document(repo, "findings")?)?;
    println!("{path}: written");
    Ok(())
}

/// The commands within a command, from its help.
fn words(help: &str) -> impl Iterator<Item = &str> {
    let list =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Names are indented by two, texts that go on by more.
    let names = list.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).filter(|word| *word != "help")
}

/// The help of the program and of each of its commands, as users see it.
fn command_line(repo: &Repo, program: &Path) -> Result<String> {
    let help = |arguments: &[&str]| -> Result<String> {
        let text = repo.run(program, arguments)?;
        let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
        Ok(format!("```text\n{}\n```\n", lines.join("\n")))
    };
    let mut text = String::from(
        "# Commands\n\n<!-- Generated by `cargo xtask gen`: do not edit. -->\n\nWhat `etwhy help` prints.\n\n",
    );
    text.push_str(&help(&["--help"])?);
    for name in repo.modules(catalogues::COMMANDS)? {
        let page = help(&["help", &name])?;
        text.push_str(&format!("\n## etwhy {name}\n\n{page}"));
        for word in words(&page) {
            text.push_str(&format!("\n### etwhy {name} {word}\n\n{}", help(&["help", &name, word])?));
        }
    }
    Ok(text)
}
