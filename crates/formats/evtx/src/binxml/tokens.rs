//! Tokens of binary XML, one after the other.

use crate::abi::{token, value as ty};
use etwhy_base::Bytes as _;

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It ends within a token.
    Short(usize),
    /// There is no such token.
    Token(u8, usize),
    /// Nested too deeply.
    Deep,
    /// It makes more than a record can hold.
    Large,
}

/// A name as it stands in a chunk: hash, length and UTF-16 text.
#[derive(Clone, Copy, Debug)]
pub struct NameRef<'c> {
    /// Hash, length, text: what makes names equal.
    pub raw: &'c [u8],
    /// Where its offset stands in the chunk.
    pub at: usize,
    /// The name itself stands behind the offset.
    pub inline: bool,
}

impl NameRef<'_> {
    /// The text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        super::text::push_utf16(&mut out, self.raw.get(4..).unwrap_or(&[]));
        out
    }
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub enum Token<'c> {
    /// An element begins; with the substitution on which it depends, and whether the size of its attributes stands behind its name.
    Open(NameRef<'c>, Option<u16>, bool),
    /// Attributes end, content begins.
    CloseStart,
    /// The element ends and has no content.
    CloseEmpty,
    /// The element ends.
    End,
    /// A literal: its type and bytes.
    Value(u8, &'c [u8]),
    /// An attribute begins.
    Attribute(NameRef<'c>),
    /// A CDATA section.
    CData(&'c [u8]),
    /// A character by its number.
    CharRef(u16),
    /// An entity by its name.
    EntityRef(NameRef<'c>),
    /// A processing instruction begins.
    PiTarget(NameRef<'c>),
    /// Its text.
    PiData(&'c [u8]),
    /// A value of the instance takes its place: number, and whether it is optional.
    Substitution(u16, bool),
    /// An instance of a template.
    Instance(Instance<'c>),
}

/// An instance of a template: where its definition and its values are.
#[derive(Clone, Copy, Debug)]
pub struct Instance<'c> {
    /// The first four bytes of the template's GUID.
    pub id: u32,
    /// Where the definition stands in the chunk.
    pub definition: usize,
    /// Four bytes for each value: size (u16), type, 0.
    pub descriptors: &'c [[u8; 4]],
    /// Where the first value stands in the chunk.
    pub values: usize,
}

/// Reads tokens of a chunk.
pub struct Tokens<'c> {
    chunk: &'c [u8],
    at: usize,
    end: usize,
    /// Elements of definitions name the substitution on which they depend.
    in_definition: bool,
}

impl<'c> Tokens<'c> {
    /// The tokens of a stretch of the chunk.
    pub fn new(chunk: &'c [u8], at: usize, end: usize, in_definition: bool) -> Tokens<'c> {
        Tokens { chunk, at, end: end.min(chunk.len()), in_definition }
    }

    /// The next one.
    ///
    /// # Errors
    /// If the stretch ends within it, or there is no such token.
    pub fn next(&mut self) -> Result<Option<Token<'c>>, Broken> {
        loop {
            if self.at >= self.end {
                return Ok(None);
            }
            let at = self.at;
            let short = Broken::Short(at);
            let code = *self.chunk.get(at).ok_or(short)?;
            self.at = at + 1;
            return Ok(Some(match code {
                token::EOF => {
                    self.at = self.end;
                    return Ok(None);
                }
                token::FRAGMENT_HEADER => {
                    self.at += 3;
                    continue;
                }
                token::TEMPLATE_INSTANCE => {
                    let (instance, end) = instance(self.chunk, self.at, self.end).ok_or(short)?;
                    self.at = end;
                    Token::Instance(instance)
                }
                token::CLOSE_START_ELEMENT => Token::CloseStart,
                token::CLOSE_EMPTY_ELEMENT => Token::CloseEmpty,
                token::END_ELEMENT => Token::End,
                token::SUBSTITUTION | token::OPTIONAL_SUBSTITUTION => {
                    let number = self.chunk.u16_at(self.at).ok_or(short)?;
                    // The declared type follows; that of the instance's value counts.
                    self.at += 3;
                    Token::Substitution(number, code == token::OPTIONAL_SUBSTITUTION)
                }
                _ => match code & !token::MORE {
                    token::OPEN_START_ELEMENT => {
                        let mut depends = None;
                        if self.in_definition {
                            depends =
                                Some(self.chunk.u16_at(self.at).ok_or(short)?).filter(|id| *id != 0xFFFF);
                            self.at += 2;
                        }
                        // The size of the element follows, which nothing needs.
                        self.at += 4;
                        let name = self.name().ok_or(short)?;
                        if code & token::MORE != 0 {
                            self.at += 4;
                        }
                        Token::Open(name, depends, code & token::MORE != 0)
                    }
                    token::ATTRIBUTE => Token::Attribute(self.name().ok_or(short)?),
                    token::ENTITY_REF => Token::EntityRef(self.name().ok_or(short)?),
                    token::PI_TARGET => Token::PiTarget(self.name().ok_or(short)?),
                    token::CDATA => Token::CData(self.text().ok_or(short)?),
                    token::PI_DATA => Token::PiData(self.text().ok_or(short)?),
                    token::CHAR_REF => {
                        let unit = self.chunk.u16_at(self.at).ok_or(short)?;
                        self.at += 2;
                        Token::CharRef(unit)
                    }
                    token::VALUE => {
                        let kind = *self.chunk.get(self.at).ok_or(short)?;
                        self.at += 1;
                        Token::Value(kind, self.literal(kind).ok_or(short)?)
                    }
                    _ => return Err(Broken::Token(code, at)),
                },
            }));
        }
    }

    /// Where the next token begins.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// A name: the offset of one, behind which the name itself may stand.
    fn name(&mut self) -> Option<NameRef<'c>> {
        let at = self.at;
        let offset = self.chunk.u32_at(at)? as usize;
        self.at += 4;
        // u32 offset of the next name, u16 hash, u16 length, text, NUL.
        let len = usize::from(self.chunk.u16_at(offset.checked_add(6)?)?);
        let raw = self.chunk.sub(offset + 4, 4 + len * 2)?;
        let inline = offset == self.at;
        if inline {
            self.at += 10 + len * 2;
        }
        Some(NameRef { raw, at, inline })
    }

    /// A text with its length before it.
    fn text(&mut self) -> Option<&'c [u8]> {
        let len = usize::from(self.chunk.u16_at(self.at)?);
        let text = self.chunk.sub(self.at + 2, len * 2)?;
        self.at += 2 + len * 2;
        (self.at <= self.end).then_some(text)
    }

    /// The bytes of a literal of this type.
    fn literal(&mut self, kind: u8) -> Option<&'c [u8]> {
        let (at, size) = literal_at(self.chunk, self.at, kind)?;
        let bytes = self.chunk.sub(at, size)?;
        self.at = at + size;
        (self.at <= self.end).then_some(bytes)
    }
}

/// Place and size of the literal of this type that begins at `at`, perhaps with its length.
pub fn literal_at(chunk: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let size = match kind {
        ty::NULL => 0,
        ty::STRING => return Some((at + 2, usize::from(chunk.u16_at(at)?) * 2)),
        ty::INT8 | ty::UINT8 => 1,
        ty::INT16 | ty::UINT16 => 2,
        ty::INT32 | ty::UINT32 | ty::REAL32 | ty::BOOL | ty::HEX_INT32 => 4,
        ty::INT64 | ty::UINT64 | ty::REAL64 | ty::FILE_TIME | ty::HEX_INT64 => 8,
        ty::GUID | ty::SYS_TIME => 16,
        ty::SID => 8 + 4 * usize::from(*chunk.get(at + 1)?),
        ty::BIN_XML => return Some((at + 2, usize::from(chunk.u16_at(at)?))),
        _ => return None,
    };
    Some((at, size))
}

/// The instance whose token ends at `at`; whether its values are there is not looked at.
#[inline]
pub fn instance_head(chunk: &[u8], at: usize) -> Option<Instance<'_>> {
    // u8 version, u32 template id, u32 offset of the definition.
    let id = chunk.u32_at(at + 1)?;
    let definition = chunk.u32_at(at + 5)? as usize;
    let mut at = at + 9;
    if definition == at {
        // The definition stands here: u32 next, GUID, u32 size, data.
        at = (at + 24).checked_add(chunk.u32_at(at + 20)? as usize)?;
    }
    let count = chunk.u32_at(at)? as usize;
    let descriptors = chunk.sub(at + 4, count.checked_mul(4)?)?.as_chunks::<4>().0;
    Some(Instance { id, definition, descriptors, values: at + 4 + count * 4 })
}

/// Bytes of the values of these descriptors. A chunk has room for 16,384 of them, so 32 bits hold any sum.
#[inline]
pub fn sum_of_sizes(descriptors: &[[u8; 4]]) -> usize {
    descriptors.iter().map(|d| u32::from_le_bytes(*d) & 0xFFFF).fold(0, u32::wrapping_add) as usize
}

/// The instance whose token ends at `at`, and where its values end.
#[inline]
pub fn instance(chunk: &[u8], at: usize, end: usize) -> Option<(Instance<'_>, usize)> {
    let instance = instance_head(chunk, at)?;
    let past = instance.values + sum_of_sizes(instance.descriptors);
    (past <= end).then_some((instance, past))
}

/// The GUID and the data of a definition.
pub fn definition(chunk: &[u8], at: usize) -> Option<([u8; 16], usize, usize)> {
    let guid = chunk.array(at.checked_add(4)?)?;
    let size = chunk.u32_at(at + 20)? as usize;
    let end = (at + 24).checked_add(size)?;
    (end <= chunk.len()).then_some((guid, at + 24, end))
}

/// Deeper than any document that was seen.
pub const MOST_DEPTH: usize = 128;
