//! Skeletons of new files.

use crate::repo::Repo;
use crate::{catalogues, generated};
use anyhow::{Result, bail};

/// A kind of file that can be started: its folder, its text and what to do next.
struct Skeleton {
    kind: &'static str,
    folder: &'static str,
    ending: &'static str,
    text: &'static str,
    next: &'static str,
}

const SKELETONS: &[Skeleton] = &[
    Skeleton {
        kind: "analysis",
        folder: catalogues::ANALYSES,
        ending: "rs",
        text: include_str!("skeletons/analysis.txt"),
        next: "Next: events in `selects`, columns in the table, rows in `event`, a test. CONTRIBUTING.md has the steps.",
    },
    Skeleton {
        kind: "command",
        folder: catalogues::COMMANDS,
        ending: "rs",
        text: include_str!("skeletons/command.txt"),
        next: "Next: its texts, its arguments, what it does. CONTRIBUTING.md has the steps.",
    },
    Skeleton {
        kind: "format",
        folder: catalogues::FORMATS,
        ending: "rs",
        text: include_str!("skeletons/format.txt"),
        next: "Next: its name and endings, how it writes, a test. CONTRIBUTING.md has the steps.",
    },
    Skeleton {
        kind: "metric",
        folder: catalogues::METRICS,
        ending: "rs",
        text: include_str!("skeletons/metric.txt"),
        next: "Next: its texts, its unit, its table and columns. CONTRIBUTING.md has the steps.",
    },
    Skeleton {
        kind: "profile",
        folder: catalogues::PROFILES,
        ending: "rs",
        text: include_str!("skeletons/profile.txt"),
        next: "Next: its names, what it carries, how it writes, a test. CONTRIBUTING.md has the steps.",
    },
    Skeleton {
        kind: "probe",
        folder: catalogues::PROBES,
        ending: "rs",
        text: include_str!("skeletons/probe.txt"),
        next: "Next: its manual, its parameters, what it measures, a test. CONTRIBUTING.md has the steps.",
    },
    Skeleton {
        kind: "finding",
        folder: catalogues::FINDINGS,
        ending: "toml",
        text: include_str!("skeletons/finding.txt"),
        next: "Next: its manual, needs, query, thresholds, texts and tests. CONTRIBUTING.md has the steps.",
    },
    Skeleton {
        kind: "view",
        folder: catalogues::VIEWS,
        ending: "sql",
        text: include_str!("skeletons/view.txt"),
        next: "Next: its title, its columns, its query. CONTRIBUTING.md has the steps.",
    },
];

/// Writes the skeleton of a `kind` called `name` and the catalogues and reference that follow from it.
///
/// # Errors
/// If there is no such kind, the name is none, or the file exists.
pub fn write(repo: &Repo, kind: &str, name: &str) -> Result<()> {
    let Some(skeleton) = SKELETONS.iter().find(|s| s.kind == kind) else {
        let known: Vec<&str> = SKELETONS.iter().map(|s| s.kind).collect();
        bail!("cannot start a new `{kind}`; known: {}", known.join(", "));
    };
    if skeleton.kind == "finding" {
        if !is_id(name) {
            bail!("`{name}` is no id: area.pattern-seen, in small letters and digits");
        }
    } else if !is_name(name) {
        bail!("`{name}` is no name: small letters, digits and _, a letter first");
    }
    let path = format!("{}/{name}.{}", skeleton.folder, skeleton.ending);
    if repo.path(&path).exists() {
        bail!("{path} exists");
    }
    repo.write(&path, &fill(skeleton.text, name))?;
    println!("{path}: written");
    generated::write(repo)?;
    println!("{}", skeleton.next);
    Ok(())
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
