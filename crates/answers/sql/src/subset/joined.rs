//! Counts that are joined to a text.

use super::brackets::{is, opening};
use crate::tokens::{Token, tokens};
use std::collections::BTreeSet;

/// Functions that count.
const COUNTING: [&str; 3] = ["count", "sum", "row_number"];

/// Counts that a query joins to a text with `||`, by their names: a sentence made so has no commas between thousands. `is_count` knows the
/// names of columns that count.
pub fn joined_counts<'q>(sql: &'q str, is_count: &dyn Fn(&str) -> bool) -> BTreeSet<&'q str> {
    let tokens = tokens(sql);
    let tokens = tokens.as_slice();
    let word = |at: usize| tokens.get(at).and_then(Token::word);
    // What the query itself counts, by the names that it gives.
    let is_named = |at: &usize| {
        let end = at.checked_sub(2).filter(|_| is(tokens, at.checked_sub(1), "as"));
        end.and_then(|end| counting(tokens, end)).is_some()
    };
    let own: BTreeSet<&str> = (0..tokens.len()).filter(is_named).filter_map(word).collect();
    let counts = |name: &str| own.contains(name) || is_count(name);
    let mut found = BTreeSet::new();
    for at in (0..tokens.len()).filter(|at| is(tokens, Some(*at), "||")) {
        if let Some(before) = at.checked_sub(1) {
            found.extend(word(before).filter(|name| counts(name)).or_else(|| counting(tokens, before)));
        }
        // A column stands behind its table.
        let name = if is(tokens, Some(at + 2), ".") { at + 3 } else { at + 1 };
        let is_call = is(tokens, Some(name + 1), "(");
        let is_counting = |word: &str| COUNTING.iter().any(|known| word.eq_ignore_ascii_case(known));
        found.extend(word(name).filter(|word| if is_call { is_counting(word) } else { counts(word) }));
    }
    found
}

/// The function that counts whose call ends there, if one does.
fn counting<'q>(tokens: &[Token<'q>], end: usize) -> Option<&'q str> {
    if !is(tokens, Some(end), ")") {
        return None;
    }
    let open = opening(tokens, end)?;
    let before = open.checked_sub(1)?;
    let wrapped = ["coalesce", "cast"].iter().any(|name| is(tokens, Some(before), name));
    let at = if wrapped { open + 1 } else { before };
    let known = COUNTING.iter().any(|name| is(tokens, Some(at), name));
    tokens.get(at).filter(|_| known)?.word()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_texts_are_found_and_names_are_not() {
        fn found(sql: &str) -> Vec<&str> {
            joined_counts(sql, &|name| name == "calls").into_iter().collect()
        }
        for (sql, names) in [
            ("SELECT 'called it ' || q.calls || ' times' AS x FROM q", vec!["calls"]),
            ("SELECT calls || ' calls' AS x FROM q", vec!["calls"]),
            ("SELECT count(*) || ' processes' AS x FROM q", vec!["count"]),
            ("SELECT 'in ' || count(*) AS x FROM q", vec!["count"]),
            (
                "SELECT 'in ' || f.n || ' of ' || m AS x FROM (SELECT count(*) AS n, 'm' AS m FROM q) f",
                vec!["n"],
            ),
            ("SELECT '' || a.n AS x FROM (SELECT CAST(coalesce(b, 0) AS BIGINT) AS n FROM q) a", vec![]),
            ("SELECT '' || a.n AS x FROM (SELECT coalesce(sum(b), 0) AS n FROM q) a", vec!["n"]),
            ("SELECT b.name || ' (' || b.pid || ')' AS x, b.calls AS calls FROM b", vec![]),
            ("SELECT '{calls} calls of ' || b.name AS x FROM b", vec![]),
        ] {
            assert_eq!(found(sql), names, "{sql}");
        }
    }
}
