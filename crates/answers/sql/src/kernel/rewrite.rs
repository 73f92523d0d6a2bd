//! The words of a block with its keys and sums replaced by columns of the small table.

use super::block::{Aggregate, Block, Function};
use super::expr::{Expr, Ty};
use super::read::{Reader, commas, whole};
use crate::tokens::Token;
use std::ops::Range;

/// Functions of single values, which may stand around sums.
pub const SCALARS: &[&str] = &[
    "abs",
    "cast",
    "coalesce",
    "ifnull",
    "iif",
    "instr",
    "length",
    "lower",
    "ltrim",
    "nullif",
    "printf",
    "format",
    "replace",
    "round",
    "rtrim",
    "sign",
    "substr",
    "trim",
    "upper",
    "min",
    "max",
    "typeof",
    "ntstatus",
    "time_of_day",
];

/// Words that may stand around sums.
const WORDS: &[&str] = &[
    "and", "or", "not", "case", "when", "then", "else", "end", "null", "is", "in", "between", "like", "as",
    "double", "bigint", "real", "integer", "text", "asc", "desc", "nulls", "first", "last", "true", "false",
];

/// Puts columns of the small table into the words of a query.
pub struct Rewriter<'k> {
    pub keys: &'k [Expr],
    pub aggregates: Vec<Aggregate>,
    pub aliases: Vec<String>,
}

impl Rewriter<'_> {
    /// A term of `ORDER BY`. What is one name is that of an item, if there is one.
    pub fn order(&mut self, reader: &mut Reader<'_>, term: Range<usize>) -> Option<String> {
        let mut end = term.end;
        while end > term.start
            && ["asc", "desc", "nulls", "first", "last"].iter().any(|word| reader.is(end - 1, word))
        {
            end -= 1;
        }
        let behind = if end < term.end { format!(" {}", reader.text(end..term.end)?) } else { String::new() };
        let text = reader.text(term.start..end)?;
        let alias = reader.name(term.start).filter(|_| end == term.start + 1);
        let plain = match reader.token(term.start) {
            Some(Token::Number(_)) => end == term.start + 1,
            _ => alias.is_some_and(|name| self.is_alias(name)),
        };
        if plain {
            return Some(format!("{text}{behind}"));
        }
        Some(format!("{}{behind}", self.rewrite(reader, term.start..end)?))
    }

    fn is_alias(&self, name: &str) -> bool {
        self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }

    /// The words with keys and sums replaced; `None` if anything else of the tables is left.
    pub fn rewrite(&mut self, reader: &mut Reader<'_>, tokens: Range<usize>) -> Option<String> {
        let mut out = String::new();
        let mut at = tokens.start;
        while at < tokens.end {
            let behind = match self.replacement(reader, &tokens, at) {
                Some((text, behind)) if behind <= tokens.end => {
                    out.push_str(&text);
                    behind
                }
                // An aggregate that stays would add up groups.
                _ if aggregate_at(reader, at).is_some() => return None,
                _ => {
                    self.harmless(reader, at)?;
                    out.push_str(reader.text(at..at + 1)?);
                    at + 1
                }
            };
            out.push(' ');
            at = behind;
        }
        Some(out.trim_end().to_owned())
    }

    /// The column that stands for what begins here, and the token behind that.
    fn replacement(
        &mut self,
        reader: &mut Reader<'_>,
        tokens: &Range<usize>,
        at: usize,
    ) -> Option<(String, usize)> {
        if let Some((function, behind)) = aggregate_at(reader, at) {
            let aggregate =
                Aggregate { function, of: argument(reader, function, at + 2..behind.checked_sub(1)?)? };
            let known = self.aggregates.iter().position(|a| *a == aggregate);
            let place = known.unwrap_or(self.aggregates.len());
            if known.is_none() {
                self.aggregates.push(aggregate);
            }
            // Without the affinity of a column, which sums do not have.
            return Some((format!("+{}", Block::aggregate_name(place)), behind));
        }
        let key = |expr: &Expr, plain: bool| {
            let place = self.keys.iter().position(|key| key == expr)?;
            Some(format!("{}{}", if plain { "" } else { "+" }, Block::key_name(place)))
        };
        if let Some((column, behind)) = reader.column(at)
            && let Some(text) = key(&column, true)
        {
            return Some((text, behind));
        }
        // An expression as a whole, between what cannot belong to it.
        let starts = at == tokens.start
            || ["(", ",", "when", "then", "else", "and", "or", "not"]
                .iter()
                .any(|word| at.checked_sub(1).is_some_and(|b| reader.is(b, word)));
        if !starts {
            return None;
        }
        reader.at = at;
        let expr = reader.expr()?;
        let behind = reader.at;
        let ends = behind == tokens.end
            || [")", ",", "when", "then", "else", "end", "and", "or"]
                .iter()
                .any(|word| reader.is(behind, word));
        if !ends || matches!(expr, Expr::Int(_) | Expr::Float(_) | Expr::Null) {
            return None;
        }
        key(&expr, false).map(|text| (text, behind))
    }

    /// `Some` for a token that reads nothing of the tables.
    fn harmless(&self, reader: &Reader<'_>, at: usize) -> Option<()> {
        let any = |names: &[&str]| names.iter().any(|name| reader.is(at, name));
        let fine = match reader.token(at)? {
            Token::Number(_) | Token::Text(_) => true,
            Token::Sign(sign) => !matches!(sign, "?" | "@" | "$" | ":" | "#" | ";" | "{" | "}"),
            Token::Word(_)
                if reader.is(at + 1, "(")
                    && !any(&["in", "and", "or", "not", "when", "then", "else", "case"]) =>
            {
                any(SCALARS)
            }
            Token::Word(word) => any(WORDS) || (self.is_alias(word) && reader.column(at).is_none()),
            Token::Quoted(_) => {
                reader.name(at).is_some_and(|name| self.is_alias(name)) && reader.column(at).is_none()
            }
        };
        fine.then_some(())
    }
}

/// The argument of a function over rows.
fn argument(reader: &mut Reader<'_>, function: Function, inside: Range<usize>) -> Option<Option<Expr>> {
    let behind = inside.end + 1;
    if reader.is(behind, "over") || reader.is(behind, "filter") {
        return None;
    }
    if function == Function::Count && (inside.is_empty() || inside.len() == 1 && reader.is(inside.start, "*"))
    {
        return Some(None);
    }
    let of = whole(reader, &inside)?;
    let fits = match of.ty()? {
        Ty::Int | Ty::Float => true,
        Ty::Text => matches!(function, Function::Min | Function::Max | Function::Count),
        Ty::LongText => function == Function::Count,
        Ty::Null => false,
    };
    fits.then_some(Some(of))
}

/// The function that stands here, and the token behind its brackets.
pub fn aggregate_at(reader: &Reader<'_>, at: usize) -> Option<(Function, usize)> {
    const NAMES: [(&str, Function); 5] = [
        ("count", Function::Count),
        ("sum", Function::Sum),
        ("avg", Function::Avg),
        ("min", Function::Min),
        ("max", Function::Max),
    ];
    if !reader.is(at + 1, "(") {
        return None;
    }
    let (_, function) = NAMES.into_iter().find(|(name, _)| reader.is(at, name))?;
    let behind = reader.behind(at + 1)?;
    // The least of several values.
    let several = commas(reader, at + 2..behind.checked_sub(1)?).len() > 1;
    (!several || !matches!(function, Function::Min | Function::Max)).then_some((function, behind))
}
