//! Words, numbers, texts and signs of a query.

/// A piece of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// A number.
    Number(&'a str),
    /// What stands between single quotes, doubled quotes as they are.
    Text(&'a str),
    /// Something in double quotes, back quotes or brackets, with them.
    Quoted(&'a str),
    /// An operator or a bracket.
    Sign(&'a str),
}

impl<'a> Token<'a> {
    /// The word, or the sign.
    pub fn is(&self, text: &str) -> bool {
        match self {
            Token::Word(word) => word.eq_ignore_ascii_case(text),
            Token::Sign(sign) => *sign == text,
            _ => false,
        }
    }

    /// The word.
    pub fn word(&self) -> Option<&'a str> {
        match self {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    /// As it stands in the query, roughly.
    pub fn shown(&self) -> &'a str {
        match self {
            Token::Word(t) | Token::Number(t) | Token::Text(t) | Token::Quoted(t) | Token::Sign(t) => t,
        }
    }
}

/// Signs of two characters.
const PAIRS: &[&str] = &["==", "<>", "!=", "<=", ">=", "||", "<<", ">>", "->", "::"];

/// The tokens of a query without its comments.
pub fn tokens(sql: &str) -> Vec<Token<'_>> {
    placed(sql).map(|(token, _)| token).collect()
}

/// The first token.
pub fn first(sql: &str) -> Option<Token<'_>> {
    placed(sql).next().map(|(token, _)| token)
}

/// The tokens with the bytes of the query that they take.
pub fn placed(sql: &str) -> impl Iterator<Item = (Token<'_>, std::ops::Range<usize>)> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        while let Some(first) = rest.chars().next() {
            let at = sql.len().saturating_sub(rest.len());
            let (token, len) = next(rest, first);
            rest = rest.get(len..).unwrap_or("");
            if let Some(token) = token {
                return Some((token, at..at.saturating_add(len)));
            }
        }
        None
    })
}

fn next(rest: &str, first: char) -> (Option<Token<'_>>, usize) {
    // Nearly all of a query is ASCII: bytes are looked at until one is not.
    let until = |end: fn(char) -> bool| match rest.bytes().position(|b| !b.is_ascii() || end(char::from(b))) {
        Some(at) if rest.as_bytes().get(at).is_some_and(u8::is_ascii) => at,
        Some(_) => rest.find(end).unwrap_or(rest.len()),
        None => rest.len(),
    };
    let piece = |len: usize| rest.get(..len).unwrap_or(rest);
    if first.is_whitespace() {
        return (None, until(|c| !c.is_whitespace()));
    }
    if rest.starts_with("--") {
        return (None, until(|c| c == '\n'));
    }
    if rest.starts_with("/*") {
        return (None, rest.find("*/").map_or(rest.len(), |at| at + 2));
    }
    if first == '\'' {
        let len = closing(rest);
        let inside = rest.get(1..len.saturating_sub(1)).unwrap_or("");
        return (Some(Token::Text(inside)), len);
    }
    if let Some(close) = match first {
        '"' => Some('"'),
        '`' => Some('`'),
        '[' => Some(']'),
        _ => None,
    } {
        let end = rest.char_indices().skip(1).find(|&(_, c)| c == close);
        let len = end.map_or(rest.len(), |(at, c)| at + c.len_utf8());
        return (Some(Token::Quoted(piece(len))), len);
    }
    if first.is_ascii_digit() {
        let len = until(|c| !(c.is_ascii_alphanumeric() || c == '.'));
        return (Some(Token::Number(piece(len))), len);
    }
    if first.is_alphabetic() || first == '_' {
        let len = until(|c| !(c.is_alphanumeric() || c == '_'));
        return (Some(Token::Word(piece(len))), len);
    }
    let two = PAIRS.iter().find(|pair| rest.starts_with(**pair));
    let len = two.map_or(first.len_utf8(), |pair| pair.len());
    (Some(Token::Sign(piece(len))), len)
}

/// Length of the text in single quotes at the start; `''` inside is a quote.
fn closing(rest: &str) -> usize {
    let mut at = 1;
    while let Some(quote) = rest.get(at..).and_then(|r| r.find('\'')) {
        at += quote + 1;
        match rest.get(at..) {
            Some(behind) if behind.starts_with('\'') => at += 1,
            _ => return at,
        }
    }
    rest.len()
}

/// Names that stand where tables stand in a query (behind `FROM`, `JOIN` or a comma): tables, views, common table
/// expressions.
pub fn words(sql: &str) -> Vec<&str> {
    let tokens = tokens(sql);
    let place = |before: &Token<'_>| ["from", "join", ","].iter().any(|word| before.is(word));
    let pairs = tokens.iter().zip(tokens.iter().skip(1)).filter(|(before, _)| place(before));
    pairs
        .filter_map(|(_, token)| match token {
            Token::Word(word) => Some(*word),
            Token::Quoted(name) => Some(name.trim_matches(['"', '`', '[', ']'])),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_comes_apart() {
        let found =
            tokens("SELECT a.b,1.5e3 -- not 'this\nFROM \"x y\" /* nor this */ WHERE c<='it''s' || 'é'");
        assert_eq!(
            found.iter().map(Token::shown).collect::<Vec<_>>(),
            [
                "SELECT", "a", ".", "b", ",", "1.5e3", "FROM", "\"x y\"", "WHERE", "c", "<=", "it''s", "||",
                "é"
            ]
        );
        assert!(found[0].is("select") && found[10].is("<=") && !found[11].is("it''s"));
        assert_eq!(tokens("'open"), [Token::Text("ope")]);
        assert_eq!(tokens("\"open /* open"), [Token::Quoted("\"open /* open")]);
        assert_eq!(tokens("é€/*"), [Token::Word("é"), Token::Sign("€")]);
    }
}
