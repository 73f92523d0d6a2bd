//! Brackets of a query's tokens.

use crate::tokens::Token;

/// True if the token there, if any, is this text.
pub(super) fn is(tokens: &[Token<'_>], at: Option<usize>, text: &str) -> bool {
    at.and_then(|at| tokens.get(at)).is_some_and(|t| t.is(text))
}

/// Index of the bracket that the one at `close` closes.
pub(super) fn opening(tokens: &[Token<'_>], close: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in (0..=close).rev() {
        if is(tokens, Some(at), ")") {
            depth += 1;
        } else if is(tokens, Some(at), "(") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Index of the bracket that closes the one at `open`.
pub(super) fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for at in open..tokens.len() {
        if is(tokens, Some(at), "(") {
            depth += 1;
        } else if is(tokens, Some(at), ")") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at;
            }
        }
    }
    tokens.len()
}
