//! How two values compare, and tests of texts.

use std::cmp::Ordering;

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Op {
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Op::Eq => order.is_eq(),
            Op::Ne => order.is_ne(),
            Op::Lt => order.is_lt(),
            Op::Le => order.is_le(),
            Op::Gt => order.is_gt(),
            Op::Ge => order.is_ge(),
        }
    }
}

/// What is asked of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    Is(Op, String),
    OneOf(Vec<String>),
    Like(String),
}

impl Test {
    pub fn holds(&self, text: &str, lower: bool) -> bool {
        let small = lower.then(|| text.to_ascii_lowercase());
        let text = small.as_deref().unwrap_or(text);
        match self {
            Test::Is(op, other) => op.holds(text.as_bytes().cmp(other.as_bytes())),
            Test::OneOf(others) => others.iter().any(|other| other == text),
            // `LIKE` sees what stands before a zero.
            Test::Like(pattern) => like(pattern, text.split('\0').next().unwrap_or_default()),
        }
    }
}

/// `LIKE` where case counts: `%` is any text, `_` a character.
fn like(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // Where the last `%` stands, and where its text ends for now.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let (before, p) = (text.clone(), pattern.next());
        if p == Some('%') {
            retry = Some((pattern.clone(), before));
            continue;
        }
        let t = text.next();
        match (p, t) {
            (None, None) => return true,
            (Some('_'), Some(_)) => continue,
            (Some(a), Some(b)) if a == b => continue,
            _ => {}
        }
        let Some((rest, mut from)) = retry.take() else { return false };
        if from.next().is_none() {
            return false;
        }
        (pattern, text) = (rest.clone(), from.clone());
        retry = Some((rest, from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, holds) in [
            ("a%", "abc", true),
            ("a%", "ba", false),
            ("%b%", "abc", true),
            ("%bc", "abbc", true),
            ("_b_", "abc", true),
            ("_", "é", true),
            ("", "", true),
            ("%", "", true),
            ("a%b%c", "axxbxxbc", true),
            ("a%b%c", "axxbxxb", false),
            ("A", "a", false),
        ] {
            assert_eq!(like(pattern, text), holds, "{pattern} {text}");
        }
    }
}
