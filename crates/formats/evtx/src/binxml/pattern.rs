//! Records without a template: what they have in common is learned from the first of them.
//!
//! They come by the hundred from one writer, and differ in their values alone. A pattern is the
//! sequence of tokens of such a record; the next one is compared with it, which gives the places of its values, instead of being
//! read token by token.

use super::cell::Cell;
use super::escape::Xml;
use super::fields::{Finder, Piece, SystemField, Target};
use super::flat::{Builder, Steps};
use super::raw::Raw;
use super::text::is;
use super::tokens::{MOST_DEPTH, NameRef, Token, Tokens, literal_at};
use super::value::Value;
use super::wellformed;
use crate::abi::{token, value as ty};
use etwhy_base::Bytes as _;
use std::sync::Arc;

/// Patterns that are remembered; a log has a handful, many logs together some more.
const MOST: usize = 256;
/// So many are found without looking at others, by some bits of what asks.
const RECENT: usize = 256;
/// Steps of a pattern; a longer record is read token by token.
const MOST_STEPS: usize = 2048;

/// What comes next.
#[derive(Debug)]
enum Step {
    /// Up to eight bytes, of which those that the mask has must be these.
    Bytes { value: u64, mask: u64, len: u8 },
    /// The offset of a name, behind which the name may stand.
    Name(u16),
    /// These bytes.
    Text(Box<[u8]>),
    /// A value of this type.
    Value(u8),
}

/// A name.
#[derive(Debug)]
struct RawName {
    /// Hash, length, text.
    raw: Box<[u8]>,
    /// Where it was found in the present chunk.
    here: Option<u32>,
}

/// What records of one form have in common.
#[derive(Debug)]
pub struct Pattern {
    /// No other pattern has or had this number.
    pub number: u32,
    steps: Vec<Step>,
    names: Vec<RawName>,
    /// The chunk in which names were found.
    chunk: u64,
    /// System values, by the number of the value.
    pub system: Vec<(SystemField, u16)>,
    /// Fields.
    pub cells: Box<[Cell]>,
    /// The fields can be read as cells.
    pub simple: bool,
    /// The XML, if that is literals with holes.
    pub xml: Option<Arc<Steps>>,
    /// It has names that are none in XML; they are written otherwise.
    pub odd_names: bool,
}

/// Patterns of records.
#[derive(Debug, Default)]
pub struct Patterns {
    all: Vec<Pattern>,
    last: usize,
    /// The one that came last, by who asked.
    recent: Vec<u16>,
    given: u32,
}

impl Patterns {
    /// Finds or learns the pattern of the XML at `from..to` and the places of its values; `None` if it has none. What the same `asks` for
    /// is nearly always of the same form.
    pub fn find(
        &mut self,
        chunk: &[u8],
        number: u64,
        (from, to): (usize, usize),
        asks: u32,
        values: &mut Vec<Raw>,
        name: &mut impl FnMut(&[u8]) -> Arc<str>,
    ) -> Option<usize> {
        let count = self.all.len();
        self.recent.resize(RECENT, 0);
        let hint = asks as usize % RECENT;
        let at = self.recent.get(hint).copied().map_or(0, usize::from);
        values.clear();
        if let Some(pattern) = self.all.get_mut(at)
            && pattern.fits(chunk, number, from, to, values).is_some()
        {
            self.last = at;
            return Some(at);
        }
        for n in 0..count {
            // The one that came last goes first.
            let at = (self.last + n) % count;
            values.clear();
            if self.all.get_mut(at)?.fits(chunk, number, from, to, values).is_some() {
                self.found(hint, at);
                return Some(at);
            }
        }
        values.clear();
        let pattern = Pattern::learn(chunk, from, to, self.given, name)?;
        self.given = self.given.wrapping_add(1);
        let at = if count < MOST { count } else { (self.last + 1) % MOST };
        match self.all.get_mut(at) {
            Some(place) => *place = pattern,
            None => self.all.push(pattern),
        }
        self.found(hint, at);
        let fits = self.all.get_mut(at)?.fits(chunk, number, from, to, values);
        fits.map(|()| at)
    }

    fn found(&mut self, hint: usize, at: usize) {
        self.last = at;
        if let (Some(recent), Ok(at)) = (self.recent.get_mut(hint), u16::try_from(at)) {
            *recent = at;
        }
    }

    /// A pattern.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&Pattern> {
        self.all.get(at)
    }
}

impl Pattern {
    /// Compares, and appends the places of values.
    #[inline]
    fn fits(
        &mut self,
        chunk: &[u8],
        number: u64,
        from: usize,
        to: usize,
        values: &mut Vec<Raw>,
    ) -> Option<()> {
        if self.chunk != number {
            self.chunk = number;
            self.names.iter_mut().for_each(|name| name.here = None);
        }
        let mut at = from;
        for step in &self.steps {
            match step {
                Step::Bytes { value, mask, len } => {
                    if chunk.u64_at(at)? & mask != *value {
                        return None;
                    }
                    at += usize::from(*len);
                }
                Step::Name(n) => {
                    let known = self.names.get_mut(usize::from(*n))?;
                    let offset = chunk.u32_at(at)?;
                    at += 4;
                    let inline = offset as usize == at;
                    if known.here != Some(offset) {
                        if chunk.sub((offset as usize).checked_add(4)?, known.raw.len())? != &*known.raw {
                            return None;
                        }
                        known.here = Some(offset);
                    }
                    if inline {
                        at += 4 + known.raw.len() + 2;
                    }
                }
                Step::Text(text) => {
                    if chunk.sub(at, text.len())? != &**text {
                        return None;
                    }
                    at += text.len();
                }
                Step::Value(ty::STRING) => {
                    let size = chunk.u16_at(at)?.checked_mul(2)?;
                    values.push(Raw::new(at + 2, size, ty::STRING));
                    at += 2 + usize::from(size);
                }
                Step::Value(kind) => {
                    let (begin, size) = literal_at(chunk, at, *kind)?;
                    values.push(Raw::new(begin, u16::try_from(size).ok()?, *kind));
                    at = begin + size;
                }
            }
        }
        // The last token has one byte, so all of them begin within the record.
        let ends = at == to || at < to && chunk.get(at) == Some(&token::EOF);
        ends.then_some(())
    }

    fn byte(&mut self, byte: u8) {
        if let Some(Step::Bytes { value, mask, len }) = self.steps.last_mut()
            && *len < 8
        {
            *value |= u64::from(byte) << (*len * 8);
            *mask |= 0xFF << (*len * 8);
            *len += 1;
            return;
        }
        self.steps.push(Step::Bytes { value: u64::from(byte), mask: 0xFF, len: 1 });
    }

    /// Bytes that do not matter.
    fn skip(&mut self, n: u8) {
        match self.steps.last_mut() {
            Some(Step::Bytes { len, .. }) if *len + n <= 8 => *len += n,
            _ => self.steps.push(Step::Bytes { value: 0, mask: 0, len: n }),
        }
    }

    fn name(&mut self, name: &NameRef<'_>) -> Option<()> {
        let at = match self.names.iter().position(|known| *known.raw == *name.raw) {
            Some(at) => at,
            None => {
                self.names.push(RawName { raw: name.raw.into(), here: None });
                self.names.len() - 1
            }
        };
        self.steps.push(Step::Name(u16::try_from(at).ok()?));
        Some(())
    }

    /// The pattern of this record, if it is nothing but elements, attributes and values.
    #[cold]
    fn learn(
        chunk: &[u8],
        from: usize,
        to: usize,
        number: u32,
        intern: &mut impl FnMut(&[u8]) -> Arc<str>,
    ) -> Option<Pattern> {
        let mut pattern = Pattern {
            number,
            steps: Vec::new(),
            names: Vec::new(),
            chunk: 0,
            system: Vec::new(),
            cells: Box::default(),
            simple: false,
            xml: None,
            odd_names: false,
        };
        let mut begin = from;
        if chunk.get(from) == Some(&token::FRAGMENT_HEADER) {
            pattern.byte(token::FRAGMENT_HEADER);
            pattern.skip(3);
            begin += 4;
        }
        let mut tokens = Tokens::new(chunk, begin, to, false);
        let mut finder = Finder::<ValueSlot>::new();
        let mut found: Vec<(Target, Vec<ValueSlot>)> = Vec::new();
        let mut values = 0u16;
        // As `Writer::tokens` writes it.
        let (mut xml, mut in_value, mut is_xml) = (Builder::default(), false, true);
        let mut in_tag = false;
        let mut names: Vec<String> = Vec::new();
        // As `inline_system` goes: `System` is the first of its name in the root.
        let (mut depth, mut in_system, mut had_system) = (0usize, false, false);
        let (mut open, mut attribute): (Vec<&[u8]>, Option<&[u8]>) = (Vec::new(), None);
        loop {
            let at = tokens.at();
            let Some(token) = tokens.next().ok()? else { break };
            let code = *chunk.get(at)?;
            if code == token::FRAGMENT_HEADER || pattern.steps.len() > MOST_STEPS {
                return None;
            }
            pattern.byte(code);
            let mut each = |target: Target, places: &[ValueSlot]| found.push((target, places.to_vec()));
            if in_value && !matches!(token, Token::Value(..)) {
                xml.markup(&["\""]);
                in_value = false;
            }
            // An order of which nothing well-formed comes is followed token by token.
            let of_tag = matches!(token, Token::Attribute(_) | Token::CloseStart | Token::CloseEmpty);
            if of_tag != (in_tag && !in_value) {
                return None;
            }
            match token {
                Token::Open(of, _, sized) => {
                    depth += 1;
                    if depth > MOST_DEPTH {
                        return None;
                    }
                    attribute = None;
                    open.push(of.raw.get(4..)?);
                    if depth == 2 && !had_system {
                        in_system = is(of.raw.get(4..)?, "System");
                    }
                    let name = of.text();
                    let written = wellformed::name(&name, &mut pattern.odd_names).into_owned();
                    xml.markup(&["<", &written]);
                    finder.open(&name, &mut each);
                    names.push(written);
                    in_tag = true;
                    pattern.skip(4);
                    pattern.name(&of)?;
                    if sized {
                        pattern.skip(4);
                    }
                }
                Token::Attribute(of) => {
                    attribute = Some(of.raw.get(4..)?);
                    let name = of.text();
                    xml.markup(&[" ", &wellformed::name(&name, &mut pattern.odd_names), "=\""]);
                    in_value = true;
                    finder.attribute(&name, &mut each);
                    pattern.name(&of)?;
                }
                Token::CloseStart => {
                    attribute = None;
                    in_tag = false;
                    xml.markup(&[">"]);
                    finder.content(&mut each);
                }
                Token::Value(kind, bytes) => {
                    pattern.byte(kind);
                    let element = open.last().copied().unwrap_or(&[]);
                    // What is a name is the same in all records of the pattern.
                    let names = attribute.is_some_and(|name| is(name, "Name"))
                        && (is(element, "Data") || is(element, "ComplexData"));
                    if names {
                        if kind != ty::STRING {
                            return None;
                        }
                        let mut text = String::new();
                        Value::parse(kind, bytes).push_text(&mut text);
                        xml.literal::<Xml<true, false>>(&text);
                        finder.piece(ValueSlot(0, Some(text)));
                        pattern.steps.push(Step::Text(chunk.sub(at + 2, 2 + bytes.len())?.into()));
                        continue;
                    }
                    if in_system
                        && depth == 3
                        && let Some(field) = SystemField::in_utf16(element, attribute)
                    {
                        pattern.system.push((field, values));
                    }
                    finder.piece(ValueSlot(values, None));
                    pattern.steps.push(Step::Value(kind));
                    xml.value(values, in_value);
                    is_xml &= kind != ty::BIN_XML;
                    values = values.checked_add(1)?;
                }
                Token::CloseEmpty | Token::End => {
                    finder.end(&mut each);
                    if depth == 2 && in_system {
                        (in_system, had_system) = (false, true);
                    }
                    depth = depth.checked_sub(1)?;
                    attribute = None;
                    open.pop();
                    in_tag = false;
                    let name = names.pop();
                    match (token, name) {
                        (Token::End, Some(name)) => xml.markup(&["</", &name, ">"]),
                        (Token::End, None) => {}
                        _ => xml.markup(&["/>"]),
                    }
                }
                _ => return None,
            }
        }
        let mut cells = Vec::new();
        for (target, places) in found {
            let name = match target {
                Target::System(_) | Target::Container => continue,
                Target::Named(name) => {
                    let utf16: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
                    Some(intern(&utf16))
                }
                Target::Unnamed => None,
            };
            let value = match places.as_slice() {
                [] => Cell::NOTHING,
                [ValueSlot(value, None)] => *value,
                _ => return None,
            };
            cells.push(Cell::new(name, value, false));
        }
        pattern.simple = Cell::are_simple(&cells);
        pattern.cells = Cell::numbered(cells);
        pattern.xml = xml.finish().filter(|_| is_xml && !in_value).map(Arc::new);
        (depth == 0).then_some(pattern)
    }
}

/// A value: its number, or the text that it has in all records.
#[derive(Clone, Debug)]
struct ValueSlot(u16, Option<String>);

impl Piece for ValueSlot {
    fn literal(&self) -> Option<String> {
        self.1.clone()
    }
}
