//! Text patterns as users of ETWAnalyzer know them: `cmd*;*build*;!*test*`.

/// A list of wildcard patterns.
///
/// `;` separates, a leading `!` excludes, `*` stands for any characters, `?` for exactly one. Letter case
/// does not count, and a pattern covers the whole text. A text matches if some including pattern
/// matches (or there is none) and no excluding one does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
}

impl Pattern {
    /// Reads a list. Blanks around an item and empty items do not count; every text is a valid list.
    pub fn parse(text: &str) -> Pattern {
        let mut pattern = Pattern { include: Vec::new(), exclude: Vec::new() };
        for item in text.split(';').map(str::trim).filter(|item| !item.is_empty()) {
            match item.strip_prefix('!') {
                Some(rest) => pattern.exclude.push(Glob::new(rest.trim_start())),
                None => pattern.include.push(Glob::new(item)),
            }
        }
        pattern
    }

    /// True if `text` matches the list.
    pub fn matches(&self, text: &str) -> bool {
        let folded = Folded::new(text);
        (self.include.is_empty() || self.include.iter().any(|glob| glob.matches(&folded)))
            && !self.exclude.iter().any(|glob| glob.matches(&folded))
    }

    /// True if a thing with several names matches: none of them is excluded, and one is included (or nothing is asked to be).
    pub fn matches_any(&self, names: &[String]) -> bool {
        let folded: Vec<Folded<'_>> = names.iter().map(|name| Folded::new(name)).collect();
        let any = |globs: &[Glob]| globs.iter().any(|glob| folded.iter().any(|name| glob.matches(name)));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }

    /// True if a cell without text matches: only if nothing is asked to be there.
    pub fn matches_null(&self) -> bool {
        self.include.is_empty()
    }
}

/// True if `text` holds a wildcard.
pub(crate) fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Char(char),
    AnyOne,
    AnyMany,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Glob(Vec<Token>);

fn fold(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

/// The text without letter case; no copy is made of ASCII.
enum Folded<'a> {
    Ascii(&'a [u8]),
    Chars(Vec<char>),
}

impl Folded<'_> {
    fn new(text: &str) -> Folded<'_> {
        if text.is_ascii() {
            Folded::Ascii(text.as_bytes())
        } else {
            Folded::Chars(text.chars().map(fold).collect())
        }
    }

    fn at(&self, i: usize) -> Option<char> {
        match self {
            Folded::Ascii(bytes) => bytes.get(i).map(|b| char::from(b.to_ascii_lowercase())),
            Folded::Chars(chars) => chars.get(i).copied(),
        }
    }
}

impl Glob {
    fn new(text: &str) -> Glob {
        let mut tokens: Vec<Token> = Vec::new();
        for c in text.chars() {
            match c {
                // Two stars in a row say no more than one.
                '*' if tokens.last() == Some(&Token::AnyMany) => {}
                '*' => tokens.push(Token::AnyMany),
                '?' => tokens.push(Token::AnyOne),
                c => tokens.push(Token::Char(fold(c))),
            }
        }
        Glob(tokens)
    }

    /// On a mismatch only the last star is tried again one character later, so the work is bounded by
    /// the product of both lengths.
    fn matches(&self, text: &Folded<'_>) -> bool {
        let (mut token, mut at) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let here = text.at(at);
            let step = match (self.0.get(token), here) {
                (None, None) => return true,
                (Some(Token::AnyMany), _) => {
                    token += 1;
                    retry = Some((token, at));
                    continue;
                }
                (Some(Token::AnyOne), Some(_)) => true,
                (Some(Token::Char(wanted)), Some(had)) => *wanted == had,
                _ => false,
            };
            if step {
                (token, at) = (token + 1, at + 1);
                continue;
            }
            match &mut retry {
                Some((after, from)) if text.at(*from).is_some() => {
                    *from += 1;
                    (token, at) = (*after, *from);
                }
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yes(pattern: &str, text: &str) {
        assert!(Pattern::parse(pattern).matches(text), "{pattern:?} should match {text:?}");
    }

    fn no(pattern: &str, text: &str) {
        assert!(!Pattern::parse(pattern).matches(text), "{pattern:?} should not match {text:?}");
    }

    #[test]
    fn wildcards_cover_the_whole_text() {
        yes("cmd.exe", "CMD.EXE");
        no("cmd", "cmd.exe");
        yes("cmd*", "cmd.exe");
        yes("*build*", "MSBuild.exe");
        yes("?.exe", "a.exe");
        no("?.exe", ".exe");
        no("?.exe", "ab.exe");
        yes("*", "");
        yes("a*b*c", "aXbXbXc");
        no("a*b*c", "aXbXbX");
        yes("**a**", "xxa");
        yes("größe*", "GRÖSSE".replace("SS", "ß").as_str());
        yes("*\\ntdll.dll", "C:\\Windows\\System32\\ntdll.dll");
    }

    #[test]
    fn lists_include_and_exclude() {
        yes("cmd*;*build*;!*test*", "msbuild.exe");
        no("cmd*;*build*;!*test*", "cmdtest.exe");
        yes("!cmd.exe", "explorer.exe");
        no("!cmd.exe", "cmd.exe");
        yes("", "anything");
        yes(" a ; b ", "b");
        assert!(Pattern::parse("!x").matches_null());
        assert!(!Pattern::parse("x").matches_null());
    }

    #[test]
    fn hostile_patterns_end() {
        let pattern = "*a".repeat(200) + "b";
        no(&pattern, &"a".repeat(4000));
    }
}
