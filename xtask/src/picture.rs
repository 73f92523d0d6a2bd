//! The picture in README.md: parts of what `etwhy why --demo` prints.

use anyhow::{Context as _, Result};

/// How the paragraphs begin that are shown, and how many of their lines.
const SHOWN: &[(&str, usize)] = &[
    // The sentence that says it all.
    ("", 3),
    ("Findings", 11),
    ("The bill", 6),
];
/// Stands for lines that are left out.
const LEFT_OUT: &str = "…";
const OPEN: &str = "\n```text\n";
const CLOSE: &str = "\n```";

/// The text of README.md with its first block of plain text renewed from the whole output.
///
/// # Errors
/// If there is no such block.
pub fn renewed(readme: &str, output: &str) -> Result<String> {
    let (head, rest) = readme.split_once(OPEN).context("README.md has no block ```text for its picture")?;
    let (_, tail) = rest.split_once(CLOSE).context("README.md: the block ```text has no end")?;
    Ok(format!("{head}{OPEN}{}{CLOSE}{tail}", picture(output)))
}

fn picture(output: &str) -> String {
    let mut paragraphs = output.split("\n\n").map(|paragraph| paragraph.trim_matches('\n'));
    let mut shown: Vec<String> = Vec::new();
    for (start, lines) in SHOWN {
        let mut ahead = paragraphs.clone();
        let Some(paragraph) = ahead.find(|paragraph| paragraph.starts_with(start)) else { continue };
        paragraphs = ahead;
        let mut kept: Vec<&str> = paragraph.lines().take(*lines).collect();
        if kept.len() < paragraph.lines().count() {
            kept.push(LEFT_OUT);
        }
        shown.push(kept.join("\n"));
    }
    shown.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_renewed_and_the_rest_stays() {
        let output = "The processors were busy.\n\nother\n\nFindings\na\n\nThe bill\na\nb\nc\nd\ne\nf\n";
        let readme =
            "# etwhy\n```sh\nrun\n```\nprints\n\n```text\nold\n```\nand so on\n```text\nsecond\n```\n";
        let expected = "# etwhy\n```sh\nrun\n```\nprints\n\n```text\nThe processors were busy.\n\nFindings\na\n\n\
                        The bill\na\nb\nc\nd\ne\n…\n```\nand so on\n```text\nsecond\n```\n";
        let new = renewed(readme, output).unwrap();
        assert_eq!(new, expected);
        assert_eq!(renewed(&new, output).unwrap(), new);
        assert!(renewed("# etwhy\n", output).is_err());
    }
}
