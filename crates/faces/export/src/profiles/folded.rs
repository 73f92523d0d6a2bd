//! Folded stacks: one line for each process, thread and different stack of names, as `flamegraph.pl` and inferno read them.
//!
//! `process;thread;frame;frame weight`, the root first. Frames are separated by `;` and the weight stands behind the last
//! blank, so names lose what would be read as either: `;` becomes `:`, line breaks and other controls become visible, a
//! blank in front of a number at the end of a name becomes `_` (`flamegraph.pl` takes such a number for the weight of a
//! second profile). Other blanks stay. Lines whose weight is not positive are left out.

use std::collections::BTreeMap;
use std::io::Write;

use crate::profile::{People, Profile, ProfileFormat, Stacks, sums};
use crate::{Result, sanitize};

/// Declaration.
pub static FORMAT: ProfileFormat = ProfileFormat {
    name: "folded",
    extensions: &["folded", "collapsed"],
    about: "Folded stacks, for flamegraph.pl, inferno and speedscope",
    open: "flamegraph.pl FILE > flame.svg; inferno-flamegraph FILE > flame.svg; https://www.speedscope.app",
    weighted: true,
    most_weights: 1,
    always_gzip: false,
    binary: false,
    parts: &[],
    write,
};

fn write(profile: &Profile<'_>, out: &mut dyn Write) -> Result<()> {
    let people = People::read(profile.db);
    let stacks = Stacks::read(profile.db);
    // Stacks differ by address, lines by name. Those of one thread are together.
    let mut lines: BTreeMap<String, i64> = BTreeMap::new();
    let mut whose = None;
    for (key, sums) in sums(profile, &people) {
        if whose != Some((key.upid, key.utid)) {
            flush(&mut lines, out)?;
            whose = Some((key.upid, key.utid));
        }
        let Some(sum) = sums.first() else { continue };
        let mut line = String::new();
        add(&mut line, people.process_label(key.upid));
        if let Some(thread) = people.thread(key.utid) {
            add(&mut line, &thread.label);
        }
        for frame in stacks.at(key.at).rev() {
            add(&mut line, stacks.frame(frame).label);
        }
        let total = lines.entry(line).or_default();
        *total = total.saturating_add(sum.weight);
    }
    flush(&mut lines, out)
}

/// Writes the lines of a thread.
fn flush(lines: &mut BTreeMap<String, i64>, out: &mut dyn Write) -> Result<()> {
    for (line, weight) in std::mem::take(lines).into_iter().filter(|(_, weight)| *weight > 0) {
        writeln!(out, "{line} {weight}")?;
    }
    Ok(())
}

/// Adds a name to a line.
fn add(line: &mut String, name: &str) {
    if !line.is_empty() {
        line.push(';');
    }
    let start = line.len();
    for c in sanitize(name).chars() {
        line.push(match c {
            ';' => ':',
            c if c.is_whitespace() && c != ' ' => '_',
            c => c,
        });
    }
    let name = line.get(start..).unwrap_or("");
    let trimmed = name.trim_matches(' ');
    let is_number = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    if trimmed.is_empty() {
        line.truncate(start);
        line.push_str("[no name]");
    } else if trimmed.len() < name.len() || trimmed.rsplit(' ').next().is_some_and(is_number) {
        let joined = name.replace(' ', "_");
        line.truncate(start);
        line.push_str(&joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::test_profile::{profile, written};

    fn name(text: &str) -> String {
        let mut line = String::new();
        add(&mut line, text);
        line
    }

    #[test]
    fn names_cannot_be_taken_for_separators_or_weights() {
        assert_eq!(name("a;b\nc"), "a:b␊c");
        assert_eq!(name("std::map<int, long>"), "std::map<int, long>");
        assert_eq!(name("evil 99"), "evil_99");
        assert_eq!(name("evil 1 2.5"), "evil_1_2.5");
        assert_eq!(name("  "), "[no name]");
        assert_eq!(name("a "), "a_");
        assert_eq!(name("a\u{3000}7"), "a_7");
    }

    #[test]
    fn stacks_stand_root_first_with_their_sums() {
        let text = String::from_utf8(written(&FORMAT, &profile())).unwrap();
        assert_eq!(
            text,
            "evil:name␊ 12.exe (40);worker (44);a.dll!main;a.dll!work 3000\n\
             evil:name␊ 12.exe (40);worker (44);a.dll!main;ntoskrnl.exe!+0x10 1500\n"
        );
    }
}
