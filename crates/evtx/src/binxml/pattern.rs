//! Records without a template: what they have in common is learned from the first of them.
//!
//! Nearly all of them have `System`, and `EventData` with `Data` elements, and come by the hundred from one writer. A pattern is the
//! sequence of tokens of such a record; the next one is compared with it, which gives the places of its values, instead of being
//! read token by token.

use super::cells::Cell;
use super::event::Raw;
use super::fields::SystemField;
use super::tokens::{NameRef, Token, Tokens, literal_at};
use crate::abi::{token, value as ty};
use crate::bytes::{slice, u16_at, u32_at, u64_at};
use std::sync::Arc;

/// Patterns that are remembered; a log has a handful.
const MOST: usize = 64;
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
struct Known {
    /// Hash, length, text.
    raw: Box<[u8]>,
    /// Where it was found in the present chunk.
    here: u32,
}

/// What records of one form have in common.
#[derive(Debug)]
pub struct Pattern {
    /// No other pattern has or had this number.
    pub number: u32,
    steps: Vec<Step>,
    names: Vec<Known>,
    /// The chunk in which names were found.
    chunk: u64,
    /// System values, by the number of the value.
    pub system: Vec<(SystemField, u16)>,
    /// Fields.
    pub cells: Vec<Cell>,
}

/// Patterns of records.
#[derive(Debug, Default)]
pub struct Patterns {
    all: Vec<Pattern>,
    last: usize,
    given: u32,
}

impl Patterns {
    /// Finds or learns the pattern of the record at `from..to` and the places of its values; `None` if it has none.
    pub fn find(
        &mut self,
        chunk: &[u8],
        number: u64,
        (from, to): (usize, usize),
        values: &mut Vec<Raw>,
        name: &mut impl FnMut(&[u8]) -> Arc<str>,
    ) -> Option<usize> {
        let count = self.all.len();
        for n in 0..count {
            // The one that came last goes first.
            let at = (self.last + n) % count;
            values.clear();
            if self.all.get_mut(at)?.fits(chunk, number, from, to, values).is_some() {
                self.last = at;
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
        self.last = at;
        let fits = self.all.get_mut(at)?.fits(chunk, number, from, to, values);
        fits.map(|()| at)
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
            self.names.iter_mut().for_each(|name| name.here = u32::MAX);
        }
        let mut at = from;
        for step in &self.steps {
            match step {
                Step::Bytes { value, mask, len } => {
                    if u64_at(chunk, at)? & mask != *value {
                        return None;
                    }
                    at += usize::from(*len);
                }
                Step::Name(n) => {
                    let known = self.names.get_mut(usize::from(*n))?;
                    let offset = u32_at(chunk, at)?;
                    at += 4;
                    let inline = offset as usize == at;
                    if known.here != offset {
                        if slice(chunk, (offset as usize).checked_add(4)?, known.raw.len())? != &*known.raw {
                            return None;
                        }
                        known.here = offset;
                    }
                    if inline {
                        at += 4 + known.raw.len() + 2;
                    }
                }
                Step::Text(text) => {
                    if slice(chunk, at, text.len())? != &**text {
                        return None;
                    }
                    at += text.len();
                }
                Step::Value(ty::STRING) => {
                    let size = u16_at(chunk, at)?.checked_mul(2)?;
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
                self.names.push(Known { raw: name.raw.into(), here: u32::MAX });
                self.names.len() - 1
            }
        };
        self.steps.push(Step::Name(u16::try_from(at).ok()?));
        Some(())
    }

    /// The pattern of this record, if it has nothing but `System` and `EventData` with `Data` elements, whose names differ.
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
            cells: Vec::new(),
        };
        let mut begin = from;
        if chunk.get(from) == Some(&token::FRAGMENT_HEADER) {
            pattern.byte(token::FRAGMENT_HEADER);
            pattern.skip(3);
            begin += 4;
        }
        let mut tokens = Tokens::new(chunk, begin, to, false);
        let mut depth = 0usize;
        let (mut in_system, mut had_system) = (false, false);
        let mut values = 0u16;
        let mut names: Vec<&[u8]> = Vec::new();
        let (mut element, mut attribute): (&[u8], Option<&[u8]>) = (&[], None);
        let (mut name, mut value) = (None, None);
        loop {
            let at = tokens.at();
            let Some(token) = tokens.next().ok()? else { break };
            let code = *chunk.get(at)?;
            if code == token::FRAGMENT_HEADER || pattern.steps.len() > MOST_STEPS {
                return None;
            }
            pattern.byte(code);
            match token {
                Token::Open(of, _, sized) => {
                    depth += 1;
                    attribute = None;
                    element = of.raw.get(4..)?;
                    match depth {
                        1 if is(element, "Event") => {}
                        2 if is(element, "System") && !had_system => (in_system, had_system) = (true, true),
                        2 if is(element, "EventData") => in_system = false,
                        3 if in_system => {}
                        3 if is(element, "Data") => (name, value) = (None, None),
                        _ => return None,
                    }
                    pattern.skip(4);
                    pattern.name(&of)?;
                    if sized {
                        pattern.skip(4);
                    }
                }
                Token::Attribute(of) => {
                    let text = of.raw.get(4..)?;
                    match depth {
                        1 | 2 if is(text, "xmlns") => {}
                        3 if in_system => {}
                        3 if is(text, "Name") && name.is_none() => {}
                        _ => return None,
                    }
                    attribute = Some(text);
                    pattern.name(&of)?;
                }
                Token::CloseStart => attribute = None,
                Token::Value(kind, bytes) => {
                    pattern.byte(kind);
                    match (depth, attribute) {
                        (1 | 2, Some(_)) => {}
                        (3, _) if in_system => {
                            if let Some(field) = SystemField::in_utf16(element, attribute) {
                                pattern.system.push((field, values));
                            }
                        }
                        (3, Some(_)) if kind == ty::STRING && name.is_none() && !bytes.is_empty() => {
                            name = Some(bytes);
                            pattern.steps.push(Step::Text(slice(chunk, at + 2, 2 + bytes.len())?.into()));
                            continue;
                        }
                        (3, None) if value.is_none() => value = Some(values),
                        _ => return None,
                    }
                    pattern.steps.push(Step::Value(kind));
                    values = values.checked_add(1)?;
                }
                Token::CloseEmpty | Token::End => {
                    if depth == 3 && !in_system {
                        let name = name.take();
                        // Two of one name are told apart elsewhere.
                        if let Some(name) = name {
                            if names.contains(&name) {
                                return None;
                            }
                            names.push(name);
                        }
                        let value = value.take().unwrap_or(Cell::NOTHING);
                        pattern.cells.push(Cell { name: name.map(&mut *intern), value, optional: false });
                    }
                    depth = depth.checked_sub(1)?;
                    attribute = None;
                }
                _ => return None,
            }
        }
        (depth == 0 && Cell::are_simple(&pattern.cells)).then_some(pattern)
    }
}

/// True if the UTF-16 text is this ASCII text.
pub(super) fn is(utf16: &[u8], text: &str) -> bool {
    utf16.len() == text.len() * 2
        && utf16.as_chunks::<2>().0.iter().zip(text.bytes()).all(|(unit, byte)| *unit == [byte, 0])
}
