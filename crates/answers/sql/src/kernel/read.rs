//! Reads expressions of a query as far as the kernel knows them. What it does not know is nobody's mistake: SQLite answers then.

use super::expr::{Expr, Ty};
use super::text::Op;
use super::text::Test;
use crate::tokens::Token;
use etwhy_table::Table;
use std::ops::Range;

/// A table of `FROM` under the name that columns are asked by.
pub struct Named {
    pub name: String,
    pub table: Table,
}

/// A query's tokens, and how far they are read.
pub struct Reader<'a> {
    pub sql: &'a str,
    pub tokens: &'a [(Token<'a>, Range<usize>)],
    pub at: usize,
    pub scope: Vec<Named>,
    /// Parts of expressions so far.
    pub parts: usize,
}

/// Most parts of expressions of a block: what is longer is not worth the depth of the stack.
const MOST_PARTS: usize = 300;

/// Words that end an expression or have a meaning of their own: no names of columns or aliases.
pub const KEYWORDS: &[&str] = &[
    "all",
    "and",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "cast",
    "collate",
    "cross",
    "desc",
    "distinct",
    "else",
    "end",
    "escape",
    "except",
    "exists",
    "filter",
    "from",
    "full",
    "glob",
    "group",
    "having",
    "in",
    "indexed",
    "inner",
    "intersect",
    "is",
    "isnull",
    "join",
    "left",
    "like",
    "limit",
    "match",
    "natural",
    "not",
    "notnull",
    "null",
    "nulls",
    "offset",
    "on",
    "or",
    "order",
    "outer",
    "over",
    "regexp",
    "right",
    "select",
    "then",
    "union",
    "using",
    "values",
    "when",
    "where",
    "window",
    "with",
];

impl<'a> Reader<'a> {
    pub fn token(&self, at: usize) -> Option<Token<'a>> {
        self.tokens.get(at).map(|(token, _)| *token)
    }

    pub fn is(&self, at: usize, text: &str) -> bool {
        self.token(at).is_some_and(|token| token.is(text))
    }

    /// Goes over a word or sign if it is next.
    pub fn take(&mut self, text: &str) -> bool {
        let there = self.is(self.at, text);
        self.at += usize::from(there);
        there
    }

    pub fn expect(&mut self, text: &str) -> Option<()> {
        self.take(text).then_some(())
    }

    /// A name, quoted or not, that is no keyword.
    pub fn name(&self, at: usize) -> Option<&'a str> {
        match self.token(at)? {
            Token::Word(word) if !KEYWORDS.iter().any(|k| word.eq_ignore_ascii_case(k)) => Some(word),
            Token::Quoted(name) => name.get(1..name.len().checked_sub(1)?),
            _ => None,
        }
    }

    /// The text of some tokens as it stands in the query.
    pub fn text(&self, tokens: Range<usize>) -> Option<&'a str> {
        let from = self.tokens.get(tokens.start)?.1.start;
        let to = self.tokens.get(tokens.end.checked_sub(1)?)?.1.end;
        self.sql.get(from..to)
    }

    /// The token behind the bracket that closes the one at `open`.
    pub fn behind(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        for at in open..self.tokens.len() {
            if self.is(at, "(") {
                depth += 1;
            } else if self.is(at, ")") {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
        }
        None
    }

    /// A column of the tables, `name` or `table.name`, and the token behind it. A name that two tables have is none.
    pub fn column(&self, at: usize) -> Option<(Expr, usize)> {
        let first = self.name(at)?;
        if self.is(at + 1, "(") {
            return None;
        }
        let (table, name, behind) = match self.is(at + 1, ".") {
            true => (Some(first), self.name(at + 2)?, at + 3),
            false => (None, first, at + 1),
        };
        if self.is(behind, ".") {
            return None;
        }
        let mut found = None;
        for (place, named) in self.scope.iter().enumerate() {
            if table.is_some_and(|table| !named.name.eq_ignore_ascii_case(table)) {
                continue;
            }
            let columns = named.table.spec().columns.iter();
            let Some(column) = columns.clone().position(|c| c.name.eq_ignore_ascii_case(name)) else {
                continue;
            };
            // A column that was not read has no values here.
            if found.is_some() || !named.table.has(column) {
                return None;
            }
            let ty = Ty::of(named.table.spec().columns.get(column)?.ty);
            found = Some(Expr::Column { table: place, column, ty });
        }
        found.map(|column| (column, behind))
    }

    /// An expression that makes sense.
    pub fn expr(&mut self) -> Option<Expr> {
        let mut left = self.and()?;
        while self.take("or") {
            left = Expr::Or(Box::new((left, self.and()?)));
        }
        left.ty().map(|_| left)
    }

    fn and(&mut self) -> Option<Expr> {
        let mut left = self.not()?;
        while self.take("and") {
            left = Expr::And(Box::new((left, self.not()?)));
        }
        Some(left)
    }

    fn not(&mut self) -> Option<Expr> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return None;
        }
        if self.take("not") { Some(Expr::Not(Box::new(self.not()?))) } else { self.comparison() }
    }

    fn comparison(&mut self) -> Option<Expr> {
        if let Some(test) = self.text_test() {
            return self.alone(test?);
        }
        let left = self.sum()?;
        let negated = self.take("not");
        let sure = |expr: Expr| if negated { Expr::Not(Box::new(expr)) } else { expr };
        if self.take("between") {
            let low = self.sum()?;
            self.expect("and")?;
            let high = self.sum()?;
            let low = Expr::Compare(Op::Ge, Box::new((left.clone(), low)));
            let high = Expr::Compare(Op::Le, Box::new((left, high)));
            return self.alone(sure(Expr::And(Box::new((low, high)))));
        }
        if self.take("in") {
            let mut list = Vec::new();
            for value in self.list(Reader::sum)? {
                let Expr::Int(n) = value else { return None };
                list.push(n);
            }
            return self.alone(sure(Expr::OneOf(Box::new(left), list)));
        }
        if negated {
            return None;
        }
        if self.take("is") {
            let negated = self.take("not");
            self.expect("null")?;
            let null = Expr::IsNull(Box::new(left));
            return self.alone(if negated { Expr::Not(Box::new(null)) } else { null });
        }
        let Some(op) = self.op() else { return Some(left) };
        let right = self.sum()?;
        self.alone(self.compare(op, left, right)?)
    }

    /// A comparison; of texts that of their numbers, where both are of one pool.
    pub fn compare(&self, op: Op, left: Expr, right: Expr) -> Option<Expr> {
        if left.ty()? == Ty::Text {
            let texts = |expr: &Expr| match expr {
                Expr::Column { table, .. } => self.scope.get(*table).map(|named| named.table.texts().clone()),
                _ => None,
            };
            if !texts(&left)?.is_same(&texts(&right)?) {
                return None;
            }
        }
        Some(Expr::Compare(op, Box::new((left, right))))
    }

    /// A condition behind which no other comparison stands, which would bind in another way.
    fn alone(&self, condition: Expr) -> Option<Expr> {
        const MORE: &[&str] = &[
            "=", "==", "<>", "!=", "<", "<=", ">", ">=", "is", "in", "like", "between", "isnull", "notnull",
            "not", "glob", "collate", "escape", "+", "-", "*", "/", "%", "||",
        ];
        (!MORE.iter().any(|sign| self.is(self.at, sign))).then_some(condition)
    }

    fn op(&mut self) -> Option<Op> {
        let op = match self.token(self.at)? {
            Token::Sign("=" | "==") => Op::Eq,
            Token::Sign("<>" | "!=") => Op::Ne,
            Token::Sign("<") => Op::Lt,
            Token::Sign("<=") => Op::Le,
            Token::Sign(">") => Op::Gt,
            Token::Sign(">=") => Op::Ge,
            _ => return None,
        };
        self.at += 1;
        Some(op)
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.expect("(")?;
        let mut list = vec![one(self)?];
        while self.take(",") {
            list.push(one(self)?);
        }
        self.expect(")")?;
        Some(list)
    }

    /// A test of a text column, if one stands here; `Some(None)` if it does in a way that is not known.
    fn text_test(&mut self) -> Option<Option<Expr>> {
        let lower = self.is(self.at, "lower") && self.is(self.at + 1, "(");
        let (found, mut behind) = self.column(if lower { self.at + 2 } else { self.at })?;
        let Expr::Column { table, column, ty: Ty::Text | Ty::LongText } = found else { return None };
        if lower {
            if !self.is(behind, ")") {
                return None;
            }
            behind += 1;
        }
        let start = std::mem::replace(&mut self.at, behind);
        let negated = self.take("not");
        let test = if self.take("like") {
            self.literal().filter(|pattern| pattern.len() < 1000).map(Test::Like)
        } else if self.take("in") {
            self.list(Reader::literal).map(Test::OneOf)
        } else if let Some(op) = self.op() {
            match self.token(self.at) {
                Some(Token::Text(_)) if !negated => self.literal().map(|text| Test::Is(op, text)),
                _ => {
                    self.at = start;
                    return None;
                }
            }
        } else {
            self.at = start;
            return None;
        };
        Some(test.map(|test| {
            let test = Expr::Text { table, column, lower, test };
            if negated { Expr::Not(Box::new(test)) } else { test }
        }))
    }

    fn literal(&mut self) -> Option<String> {
        let Some(Token::Text(text)) = self.token(self.at) else { return None };
        // An open quote at the end is SQLite's to complain of.
        let whole = self.text(self.at..self.at + 1).is_some_and(|t| t.len() == text.len() + 2);
        self.at += 1;
        whole.then(|| text.replace("''", "'"))
    }

    fn sum(&mut self) -> Option<Expr> {
        let mut left = self.product()?;
        loop {
            let op = if self.take("+") {
                '+'
            } else if self.take("-") {
                '-'
            } else {
                return Some(left);
            };
            left = Expr::Arith(op, Box::new((left, self.product()?)));
        }
    }

    fn product(&mut self) -> Option<Expr> {
        let mut left = self.value()?;
        loop {
            let op = if self.take("*") {
                '*'
            } else if self.take("/") {
                '/'
            } else {
                return Some(left);
            };
            left = Expr::Arith(op, Box::new((left, self.value()?)));
        }
    }

    fn value(&mut self) -> Option<Expr> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return None;
        }
        let negative = self.take("-");
        if let Some(Token::Number(text)) = self.token(self.at) {
            self.at += 1;
            return number(text, negative);
        }
        if negative {
            return None;
        }
        if self.take("(") {
            let inner = self.expr()?;
            self.expect(")")?;
            return Some(inner);
        }
        if self.take("null") {
            return Some(Expr::Null);
        }
        if self.take("case") {
            return self.case();
        }
        let opens = self.is(self.at + 1, "(");
        if opens && ["coalesce", "ifnull"].iter().any(|name| self.is(self.at, name)) {
            self.at += 1;
            let list = self.list(Reader::expr)?;
            return (list.len() > 1).then_some(Expr::Coalesce(list));
        }
        if opens && self.take("cast") {
            self.expect("(")?;
            let inner = self.expr()?;
            self.expect("as")?;
            let float = self.take("double") || self.take("real");
            let whole = !float && (self.take("bigint") || self.take("integer"));
            self.expect(")")?;
            return match inner.ty()? {
                Ty::Int | Ty::Float if float => Some(Expr::ToFloat(Box::new(inner))),
                Ty::Int if whole => Some(inner),
                _ => None,
            };
        }
        let (column, behind) = self.column(self.at)?;
        self.at = behind;
        Some(column)
    }

    /// Behind `CASE`, which compares no value.
    fn case(&mut self) -> Option<Expr> {
        let mut cases = Vec::new();
        while self.take("when") {
            let condition = self.expr()?;
            self.expect("then")?;
            cases.push((condition, self.expr()?));
        }
        let otherwise = if self.take("else") { self.expr()? } else { Expr::Null };
        self.expect("end")?;
        (!cases.is_empty()).then(|| Expr::Case(cases, Box::new(otherwise)))
    }
}

/// A number as SQLite reads it, if that is beyond doubt.
fn number(text: &str, negative: bool) -> Option<Expr> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if digits == text.len() {
        let n: i64 = text.parse().ok()?;
        return Some(Expr::Int(if negative { n.checked_neg()? } else { n }));
    }
    // Fifteen digits are exact whoever reads them.
    let plain = digits + 1 == text.len() && text.contains('.') && digits <= 15;
    let n: f64 = text.parse().ok().filter(|_| plain)?;
    Some(Expr::Float(if negative { -n } else { n }))
}

/// An expression that takes all of some tokens.
pub fn whole(reader: &mut Reader<'_>, tokens: &Range<usize>) -> Option<Expr> {
    reader.at = tokens.start;
    let expr = reader.expr()?;
    (reader.at == tokens.end).then_some(expr)
}

/// Ranges of tokens between commas that stand in no bracket.
pub fn commas(reader: &Reader<'_>, tokens: Range<usize>) -> Vec<Range<usize>> {
    let (mut parts, mut from, mut at) = (Vec::new(), tokens.start, tokens.start);
    while at < tokens.end {
        if reader.is(at, "(") {
            at = reader.behind(at).unwrap_or(tokens.end);
            continue;
        }
        if reader.is(at, ",") {
            parts.push(from..at);
            from = at + 1;
        }
        at += 1;
    }
    parts.push(from..tokens.end);
    parts
}
