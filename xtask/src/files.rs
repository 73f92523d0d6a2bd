//! Lengths of files, and whether documents name things that exist.

use crate::repo::Repo;
use anyhow::{Result, bail};

/// Longest hand-written source file, in lines.
const MAX_LINES: usize = 600;
/// Documents that stay short: how their path begins, and the most lines.
const SHORT: &[(&str, usize)] = &[("README.md", 120), (GUIDE, 200)];
/// The guide: a page for each question, all listed in its README.md.
const GUIDE: &str = "docs/guide/";
/// Folders that paths in ARCHITECTURE.md may start with.
const TOP: &[&str] =
    &["crates/", "docs/", "scenarios/", "scripts/", "tests/", "web/", "xtask/", ".ci/", ".cargo/"];

/// Fails if a source file or a page of the guide is too long, a document links to nothing, a page of the guide is not listed,
/// ARCHITECTURE.md names a path that does not exist or leaves out a crate, a crate lacks its README.md, or a test is a process
/// of its own without a reason.
///
/// # Errors
/// All that was found.
pub fn check(repo: &Repo) -> Result<()> {
    let files = repo.files("")?;
    let index = repo.read(&format!("{GUIDE}README.md"))?;
    let mut wrong = Vec::new();
    for file in &files {
        if is_source(file) {
            let text = repo.read(file)?;
            let lines = text.lines().count();
            if lines > MAX_LINES && !is_generated(&text) {
                wrong.push(format!("{file}: {lines} lines, at most {MAX_LINES}; split it by concept"));
            }
            if is_own_process(file) && !text.contains("//! A process of its own: ") {
                wrong.push(format!(
                    "{file}: belongs into tests/all, or says `//! A process of its own: …` with the reason"
                ));
            }
        } else if file.ends_with(".md") {
            let (text, folder) = (repo.read(file)?, file.rsplit_once('/').map_or("", |(folder, _)| folder));
            let most = SHORT.iter().find(|(start, _)| file.starts_with(start));
            if let Some((_, most)) = most.filter(|(_, most)| text.lines().count() > *most) {
                wrong.push(format!("{file}: more than {most} lines"));
            }
            if file
                .strip_prefix(GUIDE)
                .is_some_and(|page| page != "README.md" && !index.contains(&format!("({page}")))
            {
                wrong.push(format!("{file}: is not listed in {GUIDE}README.md"));
            }
            for target in links(&text) {
                if !repo.path(folder).join(&target).exists() {
                    wrong.push(format!("{file}: links to {target}, which does not exist"));
                }
            }
        }
    }
    let architecture = repo.read("ARCHITECTURE.md")?;
    for path in paths(&architecture) {
        if !repo.path(&path).exists() {
            wrong.push(format!("ARCHITECTURE.md: {path} does not exist"));
        }
    }
    wrong.extend(walks(&architecture));
    for manifest in files.iter().filter(|f| f.starts_with("crates/") && f.ends_with("/Cargo.toml")) {
        let Some(folder) = manifest.strip_suffix("/Cargo.toml") else { continue };
        if !architecture.contains(&format!("`{folder}`")) {
            wrong.push(format!("ARCHITECTURE.md: says nothing of `{folder}`"));
        }
        if !repo.path(folder).join("README.md").exists() {
            wrong.push(format!("{folder}/README.md is missing: what belongs there, what it may know"));
        }
    }
    if !wrong.is_empty() {
        bail!("\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// Stops of a newcomer's walk, at most.
const STOPS: usize = 12;

/// What is wrong with the numbered lists of ARCHITECTURE.md: walks through the code, one path each stop.
fn walks(architecture: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut stops: Vec<&str> = Vec::new();
    let mut lists = 0;
    for line in architecture.lines().chain([""]) {
        let stop = line.split_once(". `").filter(|(n, _)| n.parse::<usize>().is_ok());
        if let Some((_, rest)) = stop {
            lists += usize::from(stops.is_empty());
            stops.push(rest.split('`').next().unwrap_or_default());
            continue;
        }
        if stops.len() > STOPS {
            wrong.push(format!("ARCHITECTURE.md: a walk of {} stops, at most {STOPS}", stops.len()));
        }
        let twice = |stop: &&&str| stops.iter().filter(|other| other == stop).count() > 1;
        wrong.extend(
            stops.iter().filter(twice).map(|stop| format!("ARCHITECTURE.md: a walk visits {stop} twice")),
        );
        stops.clear();
    }
    if lists < 2 {
        wrong.push("ARCHITECTURE.md: the two walks for newcomers are missing".to_owned());
    }
    wrong
}

fn is_source(file: &str) -> bool {
    [".rs", ".py", ".sh", ".ts", ".tsx", ".mjs"].iter().any(|ending| file.ends_with(ending))
}

/// True for a file that cargo makes a test program of by itself.
fn is_own_process(file: &str) -> bool {
    let place: Vec<&str> = file.split('/').collect();
    match place[..] {
        ["crates", _, _, "tests", name] => name.ends_with(".rs"),
        ["crates", _, _, "tests", folder, "main.rs"] => folder != "all",
        _ => false,
    }
}

/// True if the first lines say that nobody edits the file.
fn is_generated(text: &str) -> bool {
    text.lines().take(5).any(|line| line.contains("Generated by"))
}

/// Targets of relative Markdown links, without what follows `#`.
fn links(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for part in prose(text).split("](").skip(1) {
        let target = part.split([')', '#', ' ']).next().unwrap_or_default();
        if !target.is_empty() && !target.contains(':') {
            targets.push(target.to_owned());
        }
    }
    targets
}

/// Paths between backticks.
fn paths(text: &str) -> Vec<String> {
    let prose = prose(text);
    let quoted = prose.split('`').skip(1).step_by(2);
    quoted
        .filter(|q| TOP.iter().any(|top| q.starts_with(top)) && !q.contains(['*', '<', '{', ' ']))
        .map(str::to_owned)
        .collect()
}

/// The text without its fenced blocks.
fn prose(text: &str) -> String {
    text.split("\n```").step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_paths_are_found() {
        let text = "see [a](README.md#filters) and [b](https://x.org/y) in `crates/formats/etl`, `a/b`, `crates/*`\n\
                    ```sh\nx](none.md) `crates/none`\n```\nand [c](docs/d.md)";
        assert_eq!(links(text), ["README.md", "docs/d.md"]);
        assert_eq!(paths(text), ["crates/formats/etl"]);
    }

    #[test]
    fn a_walk_is_short_and_visits_nothing_twice() {
        let walk = |stops: &[&str]| -> String {
            let lines = stops.iter().enumerate().map(|(n, stop)| format!("{}. `{stop}`: x\n", n + 1));
            format!("{}\n", lines.collect::<String>())
        };
        assert_eq!(walks(&(walk(&["a", "b"]) + &walk(&["a", "c"]))), [] as [&str; 0]);
        assert_eq!(walks(&(walk(&["a", "b", "a"]) + &walk(&["c"]))).len(), 2);
        assert_eq!(walks(&(walk(&["a"; 13]) + &walk(&["c"]))).len(), 14);
        assert_eq!(walks(&walk(&["a"])).len(), 1);
    }

    #[test]
    fn test_programs_are_recognised() {
        assert!(is_own_process("crates/sources/probe/tests/spin.rs"));
        assert!(is_own_process("crates/faces/etwhy/tests/browser/main.rs"));
        assert!(
            !is_own_process("crates/sources/probe/tests/all/main.rs")
                && !is_own_process("crates/sources/probe/src/run.rs")
        );
    }

    #[test]
    fn generated_files_may_be_long() {
        assert!(is_generated("//! The analyses. Generated by `cargo xtask gen`: do not edit.\n"));
        assert!(!is_generated("//! Hand-written.\n"));
    }
}
