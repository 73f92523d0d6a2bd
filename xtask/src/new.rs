//! Kinds of files that contributors add: skeletons to begin with, and the tests that concern one such file.

use crate::repo::Repo;
use crate::{catalogues, generated};
use anyhow::{Context as _, Result, bail};

/// A kind of file that can be started: its folder, its text and what to do next.
struct Skeleton {
    kind: &'static str,
    folder: &'static str,
    ending: &'static str,
    text: &'static str,
    next: &'static str,
    /// Arguments of `cargo test` that run the tests of one file, whose name stands for `@name@`. Empty if the program
    /// itself tests the file.
    tests: &'static [&'static str],
}

const SKELETONS: &[Skeleton] = &[
    Skeleton {
        kind: "analysis",
        folder: catalogues::ANALYSES,
        ending: "rs",
        text: include_str!("skeletons/analysis.txt"),
        next: "Next: events in `selects`, columns in the table, rows in `event`, a test. CONTRIBUTING.md has the steps.",
        tests: &["-p", "etwhy-trace", "--lib", "catalog::@name@"],
    },
    Skeleton {
        kind: "command",
        folder: catalogues::COMMANDS,
        ending: "rs",
        text: include_str!("skeletons/command.txt"),
        next: "Next: its texts, its arguments, what it does. CONTRIBUTING.md has the steps.",
        tests: &["-p", "etwhy", "--bin", "etwhy", "commands::@name@"],
    },
    Skeleton {
        kind: "format",
        folder: catalogues::FORMATS,
        ending: "rs",
        text: include_str!("skeletons/format.txt"),
        next: "Next: its name and endings, how it writes, a test. CONTRIBUTING.md has the steps.",
        tests: &["-p", "etwhy-export", "--lib", "formats::@name@"],
    },
    Skeleton {
        kind: "metric",
        folder: catalogues::METRICS,
        ending: "rs",
        text: include_str!("skeletons/metric.txt"),
        next: "Next: its texts, its unit, its table and columns. CONTRIBUTING.md has the steps.",
        tests: &["-p", "etwhy-analysis", "--lib", "operators::stacks"],
    },
    Skeleton {
        kind: "profile",
        folder: catalogues::PROFILES,
        ending: "rs",
        text: include_str!("skeletons/profile.txt"),
        next: "Next: its names, what it carries, how it writes, a test. CONTRIBUTING.md has the steps.",
        tests: &["-p", "etwhy-export", "--lib", "profiles::@name@"],
    },
    Skeleton {
        kind: "probe",
        folder: catalogues::PROBES,
        ending: "rs",
        text: include_str!("skeletons/probe.txt"),
        next: "Next: its manual, its parameters, what it measures, a test. CONTRIBUTING.md has the steps.",
        tests: &["-p", "etwhy-probe", "--lib", "probes::@name@"],
    },
    Skeleton {
        kind: "finding",
        folder: catalogues::FINDINGS,
        ending: "toml",
        text: include_str!("skeletons/finding.txt"),
        next: "Next: its manual, needs, query, thresholds, texts and tests. CONTRIBUTING.md has the steps.",
        tests: &[],
    },
    Skeleton {
        kind: "view",
        folder: catalogues::VIEWS,
        ending: "sql",
        text: include_str!("skeletons/view.txt"),
        next: "Next: its title, its columns, its query. CONTRIBUTING.md has the steps.",
        tests: &["-p", "etwhy-sql", "--lib"],
    },
];

/// All kinds, for the help.
pub fn kinds() -> String {
    SKELETONS.iter().map(|skeleton| skeleton.kind).collect::<Vec<_>>().join(", ")
}

fn skeleton(kind: &str) -> Result<&'static Skeleton> {
    let found = SKELETONS.iter().find(|skeleton| skeleton.kind == kind);
    found.with_context(|| format!("unknown kind `{kind}`; known kinds: {}", kinds()))
}

/// Writes the skeleton of a `kind` called `name` and the catalogue that lists it. Nothing is built.
///
/// # Errors
/// If the kind is unknown, the name is invalid, or the file exists.
pub fn write(repo: &Repo, kind: &str, name: &str) -> Result<()> {
    let skeleton = skeleton(kind)?;
    if skeleton.kind == "finding" {
        if !is_id(name) {
            bail!("invalid id `{name}`: expected area.pattern-seen in lower-case letters and digits");
        }
    } else if !is_name(name) {
        bail!("invalid name `{name}`: expected lower-case letters, digits and _, a letter first");
    }
    let path = skeleton.path(name);
    if repo.path(&path).exists() {
        bail!("{path} exists");
    }
    repo.write(&path, &fill(skeleton.text, name))?;
    println!("{path}: written");
    generated::write_catalogues(repo)?;
    println!("{}\nIts tests: cargo xtask check {kind} {name}", skeleton.next);
    Ok(())
}

/// Runs the tests of one file. Those of a finding are in the file: the program that was built last reads it, so that a
/// changed text costs no build.
///
/// # Errors
/// If the kind or the file is unknown, or a test fails.
pub fn check(repo: &Repo, kind: &str, name: &str) -> Result<()> {
    let skeleton = skeleton(kind)?;
    let path = skeleton.path(name);
    if !repo.path(&path).exists() {
        bail!("{path} does not exist");
    }
    generated::write_catalogues(repo)?;
    if skeleton.tests.is_empty() {
        let program = generated::program(repo)?;
        print!("{}", repo.run(&program, &["rules", "test", &path])?);
        return Ok(());
    }
    let tests: Vec<String> = skeleton.tests.iter().map(|word| word.replace("@name@", name)).collect();
    let words: Vec<&str> = std::iter::once("test").chain(tests.iter().map(String::as_str)).collect();
    print!("{}", repo.cargo(&words)?);
    Ok(())
}

impl Skeleton {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}.{}", self.folder, self.ending)
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The id of a finding: `area.pattern-seen`.
fn is_id(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    name.split_once('.').is_some_and(|(area, pattern)| part(area) && part(pattern))
}

/// The skeleton with the name in it: `@name@`, `@NAME@`, `@Name@`.
fn fill(text: &str, name: &str) -> String {
    let camel: String = name
        .split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        })
        .collect();
    text.replace("@name@", name).replace("@NAME@", &name.to_ascii_uppercase()).replace("@Name@", &camel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in() {
        assert_eq!(fill("@name@ @NAME@ @Name@Row", "page_fault"), "page_fault PAGE_FAULT PageFaultRow");
        assert!(is_name("alpc2") && !is_name("Alpc") && !is_name("../x") && !is_name(""));
        assert!(
            is_id("dpc.over-limit") && !is_id("dpc") && !is_id("a.b/c") && !is_id(".x") && !is_id("a.b.c")
        );
        for skeleton in SKELETONS {
            assert!(!fill(skeleton.text, "x").contains('@'), "{}", skeleton.kind);
        }
    }
}
