//! Arithmetic that fits into 32 bits in SQLite alone, and orders that Spark does not resolve.

use super::brackets::{closing, is, opening};
use crate::tokens::Token;

/// Products of literals, from the left: DuckDB and Spark multiply 32-bit literals with 32 bits and refuse to overflow, as
/// soon as a row is there. A literal that does not fit is of 64 bits, and so is what it is multiplied with.
pub(super) fn products(tokens: &[Token<'_>], at: usize, faults: &mut Vec<String>) {
    let begins = !at.checked_sub(1).is_some_and(|before| is(tokens, Some(before), "*"));
    if !begins {
        return;
    }
    let mut product: i64 = 1;
    let mut next = at;
    while let Some(Token::Number(text)) = tokens.get(next) {
        let Ok(number) = text.parse::<i64>() else { return };
        if i32::try_from(number).is_err() {
            return;
        }
        product = product.saturating_mul(number);
        if i32::try_from(product).is_err() {
            let first = tokens.get(at).map_or("", Token::shown);
            faults.push(format!(
                "{first} * …: {product} does not fit into 32 bits: write CAST({first} AS BIGINT) * …"
            ));
            return;
        }
        if !is(tokens, Some(next + 1), "*") {
            return;
        }
        next += 2;
    }
}

/// Functions over groups.
const AGGREGATES: [&str; 5] = ["sum", "count", "avg", "min", "max"];

/// `ORDER BY` of an aggregate, outside of windows: behind `HAVING` Spark finds only what the SELECT has.
pub(super) fn order(tokens: &[Token<'_>], at: usize, faults: &mut Vec<String>) {
    if !is(tokens, Some(at), "order") || in_window(tokens, at) {
        return;
    }
    let mut next = at + 1;
    while let Some(token) = tokens.get(next) {
        if ["limit", "union", ")"].iter().any(|end| token.is(end)) {
            return;
        }
        if token.is("(") {
            next = closing(tokens, next) + 1;
            continue;
        }
        if AGGREGATES.iter().any(|name| token.is(name)) && is(tokens, Some(next + 1), "(") {
            let name = token.shown();
            faults.push(format!("ORDER BY {name}(…): give it a name in the SELECT and order by that"));
        }
        next += 1;
    }
}

/// True between the brackets of `OVER (…)`.
fn in_window(tokens: &[Token<'_>], at: usize) -> bool {
    let mut at = at;
    while let Some(before) = at.checked_sub(1) {
        at = before;
        if is(tokens, Some(at), ")") {
            at = opening(tokens, at).unwrap_or(0);
        } else if is(tokens, Some(at), "(") {
            return is(tokens, at.checked_sub(1), "over");
        }
    }
    false
}
