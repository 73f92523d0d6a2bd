//! Standard error: one place through which all messages go. Paths and names in them may come from a trace, an archive or a store, and a
//! message that is whole when it comes here cannot leave one of them out.

use etwhy_export::sanitize;
use std::borrow::Cow;
use std::io::Write as _;

/// A line on standard error, as `eprintln!`: nothing in it acts on a terminal, and it is not endless.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::stderr::line(&format!($($text)*))
    };
}

/// Most characters of a line: what a file calls something may have a megabyte.
const LONGEST: usize = 4000;

/// A line, if anybody can read it.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(text));
}

/// Lines that have their ends.
pub fn lines(text: &str) {
    text.lines().for_each(line);
}

/// True if some of these lines must not be printed as it is.
pub fn is_unsafe(lines: &str) -> bool {
    lines.lines().any(|line| line.contains(etwhy_export::is_unsafe))
}

fn harmless(text: &str) -> String {
    sanitize(&short(text)).into_owned()
}

/// Beginning and end of what is too long: messages name their place first and the reason last.
fn short(text: &str) -> Cow<'_, str> {
    let mut places = text.char_indices();
    let (Some((begin, _)), Some((end, _))) = (places.nth(LONGEST), places.nth_back(LONGEST / 4)) else {
        return Cow::Borrowed(text);
    };
    Cow::Owned(format!("{} … {}", text.split_at(begin).0, text.split_at(end).1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        assert_eq!(super::short("x.toml: unknown field"), "x.toml: unknown field");
        let nothing_to_leave_out = "ä".repeat(super::LONGEST + 100);
        assert_eq!(super::short(&nothing_to_leave_out), nothing_to_leave_out);
        let text = format!("x.toml:1:1: unknown field `{}`, expected `id`", "ä".repeat(1_000_000));
        let short = super::short(&text);
        assert!(short.starts_with("x.toml:1:1: unknown field `ä") && short.ends_with("ä`, expected `id`"));
        assert!(short.chars().count() < 2 * super::LONGEST, "{} characters", short.chars().count());
    }

    #[test]
    fn a_line_is_one_and_does_nothing() {
        assert_eq!(harmless("x\u{1b}[2J\netwhy: y\u{202e}: written"), "x␛[2J␊etwhy: y\u{fffd}: written");
        assert!(is_unsafe("a\nb\u{9b}c\n") && !is_unsafe("a\nb\n"));
    }
}
