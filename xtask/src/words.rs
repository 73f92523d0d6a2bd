//! Phrases that texts for readers avoid: the second column of `docs/terms.md`.

use crate::repo::Repo;
use anyhow::{Result, bail};

const TERMS: &str = "docs/terms.md";

/// What ships for a reader. Help of commands, columns, anomalies and views are in `docs/reference`, which is generated.
const TEXTS: &[(&str, &str)] = &[
    ("crates/answers/rules/findings", ".toml"),
    ("crates/answers/sql/views", ".sql"),
    ("crates/faces/fleet/views", ".sql"),
    ("docs", ".md"),
    ("crates/sources/record/profiles", ".toml"),
    ("crates/faces/fleet", "contract.json"),
    ("web/hud", ".ts"),
    ("web/hud", ".tsx"),
    ("web/src", ".ts"),
    ("crates", ".rs"),
];

/// Fails where a text has a phrase that `docs/terms.md` replaces.
///
/// # Errors
/// All places.
pub fn check(repo: &Repo) -> Result<()> {
    let phrases = phrases(&repo.read(TERMS)?);
    let mut wrong = Vec::new();
    for (folder, ending) in TEXTS {
        for file in repo.files(folder)?.iter().filter(|file| file.ends_with(ending)) {
            if file == TERMS || file.contains("/tests/") {
                continue;
            }
            for (line, text) in repo.read(file)?.lines().enumerate() {
                let text = if file.ends_with(".rs") { literals(text) } else { text.to_owned() };
                for (phrase, better) in found(&text, &phrases) {
                    wrong.push(format!("{file}:{}: `{phrase}`: write {better}", line + 1));
                }
            }
        }
    }
    if !wrong.is_empty() {
        bail!("{} phrases that docs/terms.md replaces\n  {}", wrong.len(), wrong.join("\n  "));
    }
    Ok(())
}

/// What is between quotes in a line of Rust: messages are there. Comments are for those who read the source.
fn literals(line: &str) -> String {
    let code = Some(line.trim_start()).filter(|line| !line.starts_with("//"));
    code.unwrap_or_default().split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" ")
}

/// Phrases with what to write.
fn phrases(terms: &str) -> Vec<(String, String)> {
    let rows =
        terms.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.skip(1)
        .flat_map(|(better, phrases)| {
            phrases.split(", ").map(|phrase| (phrase.to_lowercase(), better.to_owned()))
        })
        .collect()
}

/// Phrases of a line, as whole words.
fn found<'p>(line: &str, phrases: &'p [(String, String)]) -> Vec<(&'p str, &'p str)> {
    let line = line.to_lowercase();
    let edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let whole = |phrase: &str| {
        line.match_indices(phrase).any(|(at, _)| {
            let (before, after) = (line.get(..at), line.get(at + phrase.len()..));
            edge(before.and_then(|text| text.chars().next_back()))
                && edge(after.and_then(|text| text.chars().next()))
        })
    };
    phrases.iter().filter(|(phrase, _)| whole(phrase)).map(|(p, b)| (p.as_str(), b.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_as_whole_words_in_any_case() {
        let phrases = phrases("| write | instead of |\n|---|---|\n| slower | dearer, busy to |\n");
        assert_eq!(phrases.len(), 2);
        assert_eq!(found("It is Dearer.", &phrases), [("dearer", "slower")]);
        assert_eq!(found("dearer_ns, busy together", &phrases), []);
        assert_eq!(literals(r#"bail!("{n} is dearer", "or not"); // dearer"#), "{n} is dearer or not");
        assert_eq!(literals(r#"  /// "dearer""#), "");
    }
}
