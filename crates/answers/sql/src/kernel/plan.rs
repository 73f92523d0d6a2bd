//! Blocks of a query that the kernel can answer: `SELECT` over tables, with conditions, groups and sums.
//!
//! A block is not answered as a whole. The kernel makes a small table of what costs time (rows that meet the conditions, groups with
//! their sums), and the block reads that in place of its tables: names, further arithmetic, `HAVING`, `ORDER BY` and `LIMIT` stay
//! SQLite's, in the query's own words.

use super::block::{Block, First, OURS, Wants};
use super::expr::{Expr, Ty};
use super::read::{KEYWORDS, Named, Reader, commas, whole};
use super::rewrite::{Rewriter, SCALARS, aggregate_at};
use super::text::Op;
use crate::tokens::{Token, placed};
use etwhy_table::Database;
use std::ops::Range;

/// A block with what to write in its place.
#[derive(Debug)]
pub struct Found {
    pub block: Block,
    /// Bytes of the query and their replacement; [`RESULT`] stands for the name of the small table.
    pub pieces: Vec<(Range<usize>, String)>,
}

/// Stands for the name of a block's table.
pub const RESULT: &str = "\u{0}";

/// More tokens are not looked at.
const MOST_TOKENS: usize = 3000;

/// The blocks of a query that the kernel can answer.
pub fn blocks(sql: &str, db: &Database) -> Vec<Found> {
    let tokens = placed(sql).collect::<Vec<_>>();
    if tokens.len() > MOST_TOKENS || sql.contains(RESULT) || sql.to_ascii_lowercase().contains(OURS) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let mut reader = Reader { sql, tokens: &tokens, at, scope: Vec::new(), parts: 0 };
        if reader.take("select") {
            found.extend(block(&mut reader, at, db));
        }
    }
    found
}

/// Where the clauses of a block begin; each ends where the next begins.
#[derive(Debug, Default)]
struct Clauses {
    /// By clause of [`Clauses::NAMES`].
    at: [Option<usize>; 6],
    end: usize,
}

impl Clauses {
    const NAMES: [&'static str; 6] = ["from", "where", "group", "having", "order", "limit"];

    fn of(reader: &Reader<'_>, select: usize) -> Option<Clauses> {
        let mut clauses = Clauses::default();
        // `ORDER BY` and `LIMIT` behind the last of several selects are those of all.
        let before = select.checked_sub(1);
        let later =
            before.is_some_and(|at| ["union", "all", "intersect", "except"].iter().any(|w| reader.is(at, w)));
        let mut at = select + 1;
        let mut next = 0;
        while let Some(token) = reader.token(at) {
            if token.is("(") {
                at = reader.behind(at)?;
                continue;
            }
            let ends = [")", "union", "intersect", "except", ";"].iter().any(|end| token.is(end));
            if ends || (later && (token.is("order") || token.is("limit"))) {
                break;
            }
            if let Some(place) = Clauses::NAMES.iter().position(|name| token.is(name)) {
                // In any other order it is not understood.
                if place < next {
                    return None;
                }
                next = place + 1;
                *clauses.at.get_mut(place)? = Some(at);
            }
            at += 1;
        }
        clauses.end = at;
        Some(clauses)
    }

    /// Tokens of a clause behind its name.
    fn inside(&self, place: usize) -> Option<Range<usize>> {
        let from = (*self.at.get(place)?)?;
        let to = self.at.get(place + 1..)?.iter().flatten().next().copied().unwrap_or(self.end);
        let words = if matches!(place, 2 | 4) { 2 } else { 1 };
        (from + words <= to).then_some(from + words..to)
    }
}

fn block(reader: &mut Reader<'_>, select: usize, db: &Database) -> Option<Found> {
    let clauses = Clauses::of(reader, select)?;
    let from = clauses.inside(0)?;
    let (left, mut conditions, names) = tables(reader, &from, db)?;
    if let Some(inside) = clauses.inside(1) {
        conditions.push(whole(reader, &inside)?);
    }
    let conditions = conditions.into_iter().flat_map(conjuncts).collect::<Vec<_>>();
    if !conditions.iter().all(|c| matches!(c.ty(), Some(Ty::Int | Ty::Null))) {
        return None;
    }
    let mut at = select + 1;
    let distinct = reader.is(at, "distinct");
    at += usize::from(distinct || reader.is(at, "all"));
    let items = items(reader, at..clauses.at.first().copied().flatten()?)?;
    let has_sums = items.iter().any(|item| has_aggregate(reader, &item.tokens))
        || clauses.inside(3).is_some_and(|having| has_aggregate(reader, &having))
        || clauses.inside(4).is_some_and(|order| has_aggregate(reader, &order));
    let grouped = clauses.inside(2).is_some();
    let tables = reader.scope.iter().map(|named| named.table.clone()).collect();
    let block = |wants| Block { tables, left, conditions, wants };
    if !(grouped || has_sums || distinct) {
        // Windows see all rows that meet the conditions, and so do they here.
        let (place, has_alias) = *names.first().filter(|_| names.len() == 1)?;
        let first = first(reader, &clauses, &items);
        let named = &reader.scope.first()?.name;
        let name = if has_alias { RESULT.to_owned() } else { format!("{RESULT} AS {}", quoted(named)) };
        let block = block(Wants::Rows { first });
        if block.conditions.is_empty() && matches!(block.wants, Wants::Rows { first: None }) {
            return None;
        }
        return Some(Found { block, pieces: vec![(reader.tokens.get(place)?.1.clone(), name)] });
    }
    let mut keys = Vec::new();
    if let Some(inside) = clauses.inside(2) {
        for term in commas(reader, inside) {
            keys.push(key(reader, &term, &items)?);
        }
    } else if !has_sums {
        for item in &items {
            keys.push(whole(reader, &item.tokens)?);
        }
    }
    if !keys.iter().all(|key| matches!(key.ty(), Some(Ty::Int | Ty::Float | Ty::Text))) {
        return None;
    }
    let mut rewriter = Rewriter { keys: &keys, aggregates: Vec::new(), aliases: Vec::new() };
    let mut select_list = String::new();
    for item in &items {
        if reader.is(item.tokens.start, "*") {
            return None;
        }
        let name = item.name(reader)?;
        let value = rewriter.rewrite(reader, item.tokens.clone())?;
        if !select_list.is_empty() {
            select_list.push_str(", ");
        }
        select_list.push_str(&format!("{value} AS {}", quoted(&name)));
        rewriter.aliases.push(name);
    }
    let having = match clauses.inside(3) {
        Some(inside) => format!(" WHERE {}", rewriter.rewrite(reader, inside)?),
        None => String::new(),
    };
    let mut order = String::new();
    if let Some(inside) = clauses.inside(4) {
        let mut terms = Vec::new();
        for term in commas(reader, inside) {
            terms.push(rewriter.order(reader, term)?);
        }
        order = format!(" ORDER BY {}", terms.join(", "));
    }
    let limit = clauses.inside(5).map(|inside| reader.text(inside)).map_or(Some(""), |text| text)?;
    let limit = if limit.is_empty() { String::new() } else { format!(" LIMIT {limit}") };
    let distinct = if distinct && has_sums | grouped { "DISTINCT " } else { "" };
    let text = format!("SELECT {distinct}{select_list} FROM {RESULT}{having}{order}{limit}");
    let aggregates = rewriter.aggregates;
    let bytes = reader.tokens.get(select)?.1.start..reader.tokens.get(clauses.end.checked_sub(1)?)?.1.end;
    Some(Found { block: block(Wants::Groups { keys, aggregates }), pieces: vec![(bytes, text)] })
}

/// A name in double quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::And(sides) => {
            let (left, right) = *sides;
            let mut all = conjuncts(left);
            all.extend(conjuncts(right));
            all
        }
        other => vec![other],
    }
}

/// What a `FROM` says: how tables are joined on the left, conditions behind `ON`, and for each table the token of its name and whether
/// it has another one.
type Tables = (Vec<Option<(Expr, Expr)>>, Vec<Expr>, Vec<(usize, bool)>);

/// Reads `FROM`; the tables come into the reader's scope.
fn tables(reader: &mut Reader<'_>, inside: &Range<usize>, db: &Database) -> Option<Tables> {
    let (mut left, mut conditions, mut names) = (Vec::new(), Vec::new(), Vec::new());
    reader.at = inside.start;
    loop {
        let mut is_left = false;
        let mut joins = false;
        if !names.is_empty() {
            if reader.at == inside.end {
                return Some((left, conditions, names));
            }
            if !reader.take(",") {
                is_left = reader.take("left");
                if is_left {
                    reader.take("outer");
                } else if !reader.take("inner") {
                    reader.take("cross");
                }
                reader.expect("join")?;
                joins = true;
            }
        }
        let place = reader.at;
        let name = reader.name(place)?;
        let table = db.tables().find(|table| table.name().eq_ignore_ascii_case(name))?.clone();
        // A name that the query gives itself may stand for something else.
        let given = |at: usize| {
            reader.name(at).is_some_and(|other| other.eq_ignore_ascii_case(name))
                && at
                    .checked_sub(1)
                    .is_some_and(|b| ["with", "recursive", ","].iter().any(|w| reader.is(b, w)))
                && (reader.is(at + 1, "as") && reader.is(at + 2, "(")
                    || reader.is(at + 1, "as")
                        && (reader.is(at + 2, "materialized") || reader.is(at + 2, "not"))
                    || reader.is(at + 1, "("))
        };
        if (0..reader.tokens.len()).any(given) {
            return None;
        }
        reader.at += 1;
        let explicit = reader.take("as");
        let alias = reader.name(reader.at).filter(|_| reader.at < inside.end);
        if explicit && alias.is_none() {
            return None;
        }
        reader.at += usize::from(alias.is_some());
        reader.scope.push(Named { name: alias.unwrap_or(name).to_owned(), table });
        names.push((place, alias.is_some()));
        let mut joined = None;
        if joins && reader.take("on") {
            let on = reader.expr()?;
            if is_left {
                let Expr::Compare(Op::Eq, sides) = on else { return None };
                joined = Some(*sides);
            } else {
                conditions.push(on);
            }
        }
        if is_left && joined.is_none() {
            return None;
        }
        left.push(joined);
    }
}

/// A part of a select's list.
struct Item {
    tokens: Range<usize>,
    alias: Option<String>,
}

impl Item {
    /// What the column is called: as SQLite calls it.
    fn name(&self, reader: &Reader<'_>) -> Option<String> {
        if let Some(alias) = &self.alias {
            return Some(alias.clone());
        }
        match reader.column(self.tokens.start) {
            Some((Expr::Column { table, column, .. }, behind)) if behind == self.tokens.end => {
                let table = &reader.scope.get(table)?.table;
                Some(table.spec().columns.get(column)?.name.to_string())
            }
            _ => reader.text(self.tokens.clone()).map(str::to_owned),
        }
    }
}

fn items(reader: &Reader<'_>, tokens: Range<usize>) -> Option<Vec<Item>> {
    let mut items = Vec::new();
    for part in commas(reader, tokens) {
        let last = part.end.checked_sub(1)?;
        let explicit = last.checked_sub(1).is_some_and(|at| at > part.start && reader.is(at, "as"));
        let before = last.checked_sub(1).filter(|at| *at >= part.start);
        // A name behind what ends an expression.
        let behind_value = before.is_some_and(|at| match reader.token(at) {
            Some(Token::Sign(sign)) => sign == ")",
            Some(Token::Word(word)) => {
                word.eq_ignore_ascii_case("end") || !KEYWORDS.iter().any(|k| word.eq_ignore_ascii_case(k))
            }
            Some(Token::Quoted(_) | Token::Number(_) | Token::Text(_)) => true,
            None => false,
        });
        let alias = reader.name(last).filter(|_| explicit || behind_value).map(str::to_owned);
        // `AS 'name'` is allowed, too.
        if explicit && alias.is_none() {
            return None;
        }
        let cut = match (&alias, explicit) {
            (Some(_), true) => 2,
            (Some(_), false) => 1,
            _ => 0,
        };
        let tokens = part.start..part.end.checked_sub(cut).filter(|end| *end > part.start)?;
        items.push(Item { tokens, alias });
    }
    Some(items)
}

fn has_aggregate(reader: &Reader<'_>, tokens: &Range<usize>) -> bool {
    tokens.clone().any(|at| {
        aggregate_at(reader, at)
            .is_some_and(|(_, behind)| !reader.is(behind, "over") && !reader.is(behind, "filter"))
    })
}

/// A term of `GROUP BY`: an expression, the number of an item, or its name.
fn key(reader: &mut Reader<'_>, term: &Range<usize>, items: &[Item]) -> Option<Expr> {
    if let Some(expr) = whole(reader, term) {
        let Expr::Int(number) = expr else { return Some(expr) };
        let item = items.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        return whole(reader, &item.tokens);
    }
    let name = reader.name(term.start).filter(|_| term.len() == 1)?;
    let item = items.iter().find(|item| item.alias.as_ref().is_some_and(|a| a.eq_ignore_ascii_case(name)))?;
    whole(reader, &item.tokens)
}

/// The first rows that a `LIMIT` behind an `ORDER BY` leaves, if both are plain.
fn first(reader: &mut Reader<'_>, clauses: &Clauses, items: &[Item]) -> Option<First> {
    let limit = clauses.inside(5)?;
    let number = |at: usize| match reader.token(at) {
        Some(Token::Number(text)) => text.parse::<usize>().ok(),
        _ => None,
    };
    let rows = match limit.len() {
        1 => number(limit.start)?,
        3 if reader.is(limit.start + 1, "offset") || reader.is(limit.start + 1, ",") => {
            number(limit.start)?.checked_add(number(limit.start + 2)?)?
        }
        _ => return None,
    };
    // Windows and sums see all rows, whatever comes out.
    let called = |at: usize| reader.is(at + 1, "(") && matches!(reader.token(at), Some(Token::Word(_)));
    let single = |at: usize| {
        SCALARS.iter().any(|name| reader.is(at, name)) || KEYWORDS.iter().any(|k| reader.is(at, k))
    };
    let list = items.first()?.tokens.start..clauses.end;
    if clauses.inside(3).is_some()
        || list
            .clone()
            .any(|at| reader.is(at, "over") || reader.is(at, "filter") || called(at) && !single(at))
    {
        return None;
    }
    let mut term = commas(reader, clauses.inside(4)?).into_iter().next()?;
    let last = term.end.checked_sub(1)?;
    let descending = reader.is(last, "desc");
    if descending || reader.is(last, "asc") {
        term.end = last;
    }
    let name = reader.name(term.start).filter(|_| term.len() == 1);
    let item = items.iter().find(|item| {
        item.alias.as_ref().zip(name).is_some_and(|(alias, name)| alias.eq_ignore_ascii_case(name))
    });
    let by = match item {
        Some(item) => whole(reader, &item.tokens)?,
        None => whole(reader, &term)?,
    };
    let column = matches!(by, Expr::Column { ty: Ty::Int | Ty::Float, .. });
    column.then_some(First { by, descending, rows })
}
