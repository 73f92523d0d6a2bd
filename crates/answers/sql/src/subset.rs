//! The SQL that findings and views are written in: what SQLite, DuckDB and Spark understand alike.
//!
//! `docs/sql.md` has the rules with their reasons. The check reads words and brackets, it does not parse: it knows nothing
//! of types but which names are flags, and does not see a column that is missing behind `GROUP BY`.

mod brackets;
mod joined;
mod numbers;

pub use joined::joined_counts;

use super::tokens::{Token, tokens};
use brackets::{closing, is, opening};

/// Functions that mean the same in all three.
const FUNCTIONS: &[&str] = &[
    "abs",
    "avg",
    "cast",
    "coalesce",
    "count",
    "cume_dist",
    "dense_rank",
    "first_value",
    "instr",
    "lag",
    "last_value",
    "lead",
    "length",
    "lower",
    "ltrim",
    "max",
    "min",
    "ntile",
    "nullif",
    "percent_rank",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "substr",
    "sum",
    "trim",
    "upper",
];

/// Keywords that may stand before a bracket.
const BEFORE_BRACKET: &[&str] = &[
    "all",
    "and",
    "as",
    "between",
    "by",
    "case",
    "distinct",
    "else",
    "except",
    "exists",
    "filter",
    "from",
    "having",
    "in",
    "intersect",
    "join",
    "like",
    "not",
    "on",
    "or",
    "over",
    "select",
    "then",
    "union",
    "when",
    "where",
    "with",
];

/// Words that one of the three does not know, with what to write instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("glob", "use LIKE"),
    ("regexp", "use LIKE"),
    ("match", "use LIKE"),
    ("isnull", "write IS NULL"),
    ("notnull", "write IS NOT NULL"),
    ("collate", "use lower()"),
    ("indexed", "leave it out"),
    ("recursive", "Spark has it since version 4 only"),
    ("natural", "name the columns behind ON"),
    ("using", "name the columns behind ON"),
    ("offset", "use row_number()"),
    ("qualify", "use a subquery"),
    ("rowid", "tables have no such column elsewhere"),
    ("pivot", "use CASE"),
    ("lateral", "use a join"),
    ("ilike", "use lower() and LIKE"),
];

/// Signs that mean different things, with what to write instead.
const SIGNS: &[(&str, &str)] = &[
    ("==", "write ="),
    ("::", "write CAST(x AS type)"),
    ("->", "read no JSON"),
    ("<<", "multiply"),
    (">>", "divide"),
    ("^", "use power()"),
    (";", "one SELECT and nothing behind it"),
    ("?", "there are no parameters"),
    ("@", "there are no parameters"),
    ("$", "there are no parameters"),
];

/// Types of `CAST` that all three know.
const TYPES: &[&str] = &["bigint", "double"];

/// What in a query one of the three databases would not understand, or would understand in another way. `is_flag` knows
/// the names of boolean columns.
pub fn faults(sql: &str, is_flag: &dyn Fn(&str) -> bool) -> Vec<String> {
    let tokens = tokens(sql);
    let mut faults = Vec::new();
    for at in 0..tokens.len() {
        words(&tokens, at, &mut faults);
        calls(&tokens, at, &mut faults);
        division(&tokens, at, &mut faults);
        flags(&tokens, at, is_flag, &mut faults);
        numbers::products(&tokens, at, &mut faults);
        numbers::order(&tokens, at, &mut faults);
        if tokens.get(at).is_some_and(|t| t.is("select")) {
            aliases(&tokens, at, &mut faults);
        }
        if tokens.get(at).is_some_and(|t| t.is("limit")) && !has_order(&tokens, at) {
            faults.push("LIMIT without ORDER BY takes any rows".to_owned());
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

fn words(tokens: &[Token<'_>], at: usize, faults: &mut Vec<String>) {
    let Some(token) = tokens.get(at) else { return };
    let before = at.checked_sub(1);
    match token {
        Token::Quoted(text) => faults.push(format!("{text}: quote texts with ', and leave names unquoted")),
        Token::Text(text) if text.contains('\\') => {
            faults.push(format!("'{text}': Spark reads \\ as an escape; use _ in a pattern"));
        }
        Token::Word(word) => {
            if let Some((_, instead)) = FORBIDDEN.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)) {
                faults.push(format!("{}: {instead}", word.to_uppercase()));
            }
            if token.is("like") {
                like(tokens, at, faults);
            }
            let allowed = ["null", "not", "distinct", "true", "false"];
            if token.is("is") && !allowed.iter().any(|w| is(tokens, Some(at + 1), w)) {
                faults.push("IS between values: write =".to_owned());
            }
        }
        Token::Sign(sign) => {
            if let Some((_, instead)) = SIGNS.iter().find(|(name, _)| name == sign) {
                faults.push(format!("{sign}: {instead}"));
            }
            let star = ["select", "distinct", ".", ","].iter().any(|b| is(tokens, before, b));
            if *sign == "*" && star {
                faults.push("SELECT *: name the columns".to_owned());
            }
        }
        _ => {}
    }
}

/// `lower(x) LIKE 'small letters'`.
fn like(tokens: &[Token<'_>], at: usize, faults: &mut Vec<String>) {
    let mut left = at.checked_sub(1);
    if is(tokens, left, "not") {
        left = left.and_then(|l| l.checked_sub(1));
    }
    let call = left.filter(|&l| is(tokens, Some(l), ")")).and_then(|l| opening(tokens, l));
    let function = call.and_then(|open| open.checked_sub(1));
    let lowered = is(tokens, function, "lower");
    let mixed = matches!(tokens.get(at + 1), Some(Token::Text(t)) if t.chars().any(char::is_uppercase));
    if !lowered {
        faults.push("LIKE minds the case of letters: write lower(x) LIKE 'small letters'".to_owned());
    } else if mixed {
        faults.push("LIKE: lower(x) never has capital letters".to_owned());
    }
}

fn calls(tokens: &[Token<'_>], at: usize, faults: &mut Vec<String>) {
    let Some(name) = tokens.get(at).and_then(Token::word) else { return };
    if !is(tokens, Some(at + 1), "(") {
        return;
    }
    let lower = name.to_ascii_lowercase();
    let known = FUNCTIONS.contains(&lower.as_str());
    if !known && !BEFORE_BRACKET.contains(&lower.as_str()) {
        faults.push(format!("{name}(): not among the shared functions"));
    }
    let inside = tokens.get(at + 2..closing(tokens, at + 1)).unwrap_or_default();
    if matches!(lower.as_str(), "min" | "max") && pieces(inside).len() > 1 {
        faults.push(format!("{lower}() of several values: use CASE"));
    }
    if lower == "cast" {
        let ty = inside.last().and_then(Token::word).unwrap_or("");
        if !TYPES.contains(&ty.to_ascii_lowercase().as_str()) {
            faults.push(format!("CAST AS {ty}: use {}", TYPES.join(", ").to_uppercase()));
        }
    }
}

/// Parts between commas that stand in no bracket.
fn pieces<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let mut depth = 0usize;
    let outer = |token: &Token<'a>| {
        if token.is("(") {
            depth += 1;
        } else if token.is(")") {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && token.is(",")
    };
    tokens.split(outer).collect()
}

/// A quotient of integers is an integer in SQLite and a fraction elsewhere.
fn division(tokens: &[Token<'_>], at: usize, faults: &mut Vec<String>) {
    if !is(tokens, Some(at), "/") {
        return;
    }
    let mut from = at;
    while let Some(before) = from.checked_sub(1) {
        let Some(token) = tokens.get(before) else { break };
        if token.is(")") {
            // A function's name goes with its brackets.
            let open = opening(tokens, before).unwrap_or(before);
            let called = open.checked_sub(1).and_then(|f| tokens.get(f)).and_then(Token::word);
            let function = called.is_some_and(|w| FUNCTIONS.iter().any(|f| w.eq_ignore_ascii_case(f)));
            from = if function { open.saturating_sub(1) } else { open };
            continue;
        }
        let ends = match token {
            Token::Sign(sign) => !matches!(*sign, "." | "*" | "/"),
            Token::Word(word) => {
                BEFORE_BRACKET.contains(&word.to_ascii_lowercase().as_str()) || token.is("end")
            }
            _ => false,
        };
        if ends {
            break;
        }
        from = before;
    }
    let mut to = at + 1;
    if is(tokens, Some(to), "(") {
        to = closing(tokens, to);
    } else if is(tokens, Some(to + 1), "(") {
        to = closing(tokens, to + 1);
    }
    let chain = tokens.get(from..=to.min(tokens.len().saturating_sub(1))).unwrap_or_default();
    let fraction = |token: &Token<'_>| match token {
        Token::Number(n) => n.contains(['.', 'e']),
        word => ["double", "avg", "sqrt", "ln", "exp", "power"].iter().any(|w| word.is(w)),
    };
    if !chain.iter().any(fraction) {
        faults.push("a / b of integers is an integer in SQLite alone: write 1.0 * a / b".to_owned());
    }
}

/// Flags are numbers in SQLite alone.
fn flags(tokens: &[Token<'_>], at: usize, is_flag: &dyn Fn(&str) -> bool, faults: &mut Vec<String>) {
    let Some(name) = tokens.get(at).and_then(Token::word).filter(|name| is_flag(name)) else { return };
    // A column of the query's own may have the name.
    let own = |n: usize| {
        is(tokens, Some(n + 1), "as")
            && is(tokens, Some(n + 2), name)
            && [")", "end"].iter().any(|w| is(tokens, Some(n), w))
    };
    if (0..tokens.len()).any(own) {
        return;
    }
    let first = if is(tokens, at.checked_sub(1), ".") { at.saturating_sub(2) } else { at };
    let compared = ["=", "<>", "!=", "<", ">", "<=", ">=", "+", "*", "-"].iter();
    let number = matches!(tokens.get(at + 2), Some(Token::Number(_)));
    let called = is(tokens, first.checked_sub(1), "(")
        && first.checked_sub(2).and_then(|f| tokens.get(f)).and_then(Token::word).is_some_and(|f| {
            matches!(f.to_ascii_lowercase().as_str(), "sum" | "avg" | "min" | "max" | "coalesce" | "abs")
        });
    if called || (number && compared.clone().any(|sign| is(tokens, Some(at + 1), sign))) {
        faults.push(format!("{name} is a flag and no number: write CASE WHEN {name} THEN 1 ELSE 0 END"));
    }
}

/// Where the list of a SELECT ends.
const LIST_ENDS: &[&str] =
    &["from", "where", "group", "union", "order", "limit", "having", "except", "intersect"];

/// Each expression of a SELECT's list has a name.
fn aliases(tokens: &[Token<'_>], select: usize, faults: &mut Vec<String>) {
    let before = select.checked_sub(1);
    let outer = before.and_then(|b| b.checked_sub(1));
    // Names come from the first of several SELECTs, and nobody sees those of a subquery that stands for a value.
    let named = ["from", "join", "as"].iter().any(|w| is(tokens, outer, w));
    let unseen = is(tokens, before, "(") && !named;
    if unseen || ["all", "union", "except", "intersect"].iter().any(|w| is(tokens, before, w)) {
        return;
    }
    let mut from = select + 1;
    if is(tokens, Some(from), "distinct") {
        from += 1;
    }
    let mut to = from;
    while let Some(token) = tokens.get(to) {
        if token.is("(") {
            to = closing(tokens, to);
        } else if token.is(")") || LIST_ENDS.iter().any(|w| token.is(w)) {
            break;
        }
        to += 1;
    }
    for item in pieces(tokens.get(from..to).unwrap_or_default()) {
        let plain = match item {
            [one] => one.word().is_some(),
            [_, dot, _] => dot.is("."),
            _ => false,
        };
        let named = item.len() > 2 && item.iter().rev().nth(1).is_some_and(|t| t.is("as"));
        if !plain && !named && !item.last().is_some_and(|t| t.is("*")) {
            let text: Vec<&str> = item.iter().take(8).map(Token::shown).collect();
            faults.push(format!("`{}` has no name: write AS name", text.join(" ")));
        }
    }
}

/// True if ORDER BY stands before `limit`, in the same brackets.
fn has_order(tokens: &[Token<'_>], limit: usize) -> bool {
    let mut at = limit;
    while let Some(before) = at.checked_sub(1) {
        at = before;
        if is(tokens, Some(at), ")") {
            at = opening(tokens, at).unwrap_or(0);
        } else if is(tokens, Some(at), "(") {
            return false;
        } else if is(tokens, Some(at), "order") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str) -> Vec<String> {
        faults(sql, &|name| name == "pending")
    }

    #[test]
    fn what_all_understand() {
        for sql in [
            "WITH a AS (SELECT x, t.y, 1.0 * sum(z) / count(*) AS m FROM t GROUP BY x, t.y) SELECT m FROM a ORDER BY m LIMIT 3",
            "SELECT CASE WHEN pending THEN 1 ELSE 0 END AS p FROM t WHERE lower(a.name) NOT LIKE 'abc%' AND b IS NOT NULL",
            "SELECT DISTINCT x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.x) AND y IN (SELECT max(y) FROM u)",
            "SELECT a AS a, row_number() OVER (PARTITION BY b ORDER BY c) AS n FROM t UNION ALL SELECT 1, 2 FROM t",
            "SELECT CAST(x AS DOUBLE) / y AS q, (a + b) / 2.0 AS r, 100.0 * (a - b) / nullif(c, 0) AS s, round(x, 2) AS z FROM t",
            "SELECT x FROM (SELECT max(CASE WHEN pending THEN 1 ELSE 0 END) AS pending FROM t) s WHERE s.pending = 1 AND (SELECT count(*) FROM u) = 0",
            "SELECT max(CASE WHEN a > 0 THEN b END) AS m FROM t -- \"comment\"",
            "SELECT a FROM t WHERE b > CAST(5000 AS BIGINT) * 1000000 AND c > 60 * 60000000000 AND d > 3 * 200 * 1000000",
            "SELECT a, sum(b) AS s, rank() OVER (ORDER BY sum(b)) AS r FROM t GROUP BY a HAVING sum(b) > 1 ORDER BY s DESC, a",
        ] {
            assert_eq!(check(sql), Vec::<String>::new(), "{sql}");
        }
    }

    #[test]
    fn what_one_of_them_does_not() {
        for (sql, part) in [
            ("SELECT * FROM t", "SELECT *"),
            ("SELECT t.* FROM t", "SELECT *"),
            ("SELECT a + 1 FROM t", "no name"),
            ("SELECT a b FROM t", "no name"),
            ("SELECT x FROM t WHERE a == 1", "=="),
            ("SELECT x FROM t WHERE a = \"b\"", "quote texts"),
            ("SELECT a / b AS q FROM t", "a / b"),
            ("SELECT (a + b) / count(*) AS q FROM t WHERE x > 1.5", "a / b"),
            ("SELECT 1.0 * a + b / c AS q FROM t", "a / b"),
            ("SELECT max(a, b) AS m FROM t", "max()"),
            ("SELECT x FROM t WHERE a LIKE 'b%'", "LIKE minds"),
            ("SELECT x FROM t WHERE lower(a) LIKE 'B%'", "capital"),
            ("SELECT ifnull(a, 0) AS m FROM t", "ifnull()"),
            ("SELECT x FROM t WHERE a GLOB 'b*'", "GLOB"),
            ("SELECT x FROM t WHERE a IS b", "IS between"),
            ("SELECT x FROM (SELECT x FROM t LIMIT 1) s ORDER BY x", "LIMIT"),
            ("SELECT x FROM t WHERE t.pending = 1", "flag"),
            ("SELECT sum(t.pending) AS n FROM t", "flag"),
            ("SELECT x FROM t WHERE p = 'C:\\'", "escape"),
            ("SELECT CAST(a AS INTEGER) AS n FROM t", "CAST AS"),
            ("SELECT CAST(a AS VARCHAR) AS n FROM t", "CAST AS"),
            ("SELECT x FROM t;", ";"),
            ("SELECT x FROM t WHERE a > 5000 * 1000000", "32 bits"),
            ("SELECT x FROM t WHERE a > (3 * 1000 * 1000000 * b)", "32 bits"),
            ("SELECT x FROM t GROUP BY x ORDER BY x, sum(y) DESC LIMIT 3", "ORDER BY sum"),
        ] {
            let found = check(sql);
            assert!(found.len() == 1 && found[0].contains(part), "{sql}: {found:?}");
        }
    }

    #[test]
    fn hostile_queries_are_survived() {
        for sql in [
            "", ")", "(((", "SELECT", "LIKE", "min(", "/", "a /", ") / (", "SELECT ,", "LIMIT", "pending",
            "(pending",
        ] {
            check(sql);
        }
    }
}
