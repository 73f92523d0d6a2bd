//! A compiled template.

use super::plan::Plan;
use super::tokens::{Broken, NameRef, Token, Tokens};
use super::value::Value;
use std::sync::Arc;

/// An instruction.
#[derive(Clone, Debug)]
pub enum Op {
    /// An element begins. `end` is the place behind its `End`.
    Open {
        /// Its name.
        name: Arc<str>,
        /// It is left out if this value is null.
        depends: Option<u16>,
        /// Place behind its `End`.
        end: usize,
        /// Substitutions that stand in its content (first) and attributes, not in elements within.
        own: Box<[u16]>,
    },
    /// An attribute begins; its value ends before `end`.
    Attribute(Arc<str>, usize),
    /// Content begins.
    Content,
    /// The element ends.
    End,
    /// A literal, not escaped.
    Text(Box<str>),
    /// A CDATA section.
    CData(Box<str>),
    /// `&name;`.
    Entity(Box<str>),
    /// `<?target data?>`.
    Instruction(Box<str>, Box<str>),
    /// A value of the instance.
    Substitution {
        /// Which.
        number: u16,
        /// Nothing is written if it is empty.
        optional: bool,
    },
}

/// A name that a definition refers to.
#[derive(Debug)]
pub struct NameUse {
    /// Where its offset stands, from the beginning of the data.
    at: usize,
    inline: bool,
    raw: Box<[u8]>,
}

/// A compiled template.
#[derive(Debug)]
pub struct Program {
    /// GUID of the template.
    pub guid: [u8; 16],
    /// Instructions, in order of the document.
    pub ops: Vec<Op>,
    /// Where system values and fields are.
    pub plan: Plan,
    /// The definition as it stood, to know it again.
    data: Box<[u8]>,
    names: Vec<NameUse>,
}

/// More than any definition that was seen has.
const MOST_OPS: usize = 100_000;
/// Deeper than any document that was seen.
pub const MOST_DEPTH: usize = 128;

impl Program {
    /// Compiles the definition that stands at `from..to` of the chunk.
    ///
    /// # Errors
    /// Where it is broken.
    pub fn compile(chunk: &[u8], guid: [u8; 16], from: usize, to: usize) -> Result<Program, Broken> {
        let mut tokens = Tokens::new(chunk, from, to, true);
        let mut ops: Vec<Op> = Vec::new();
        let mut names = Vec::new();
        // Places of elements that are open, and of an attribute.
        let mut open: Vec<usize> = Vec::new();
        let mut attribute: Option<usize> = None;
        let mut target: Option<String> = None;
        let text = |bytes: &[u8]| {
            let mut out = String::new();
            super::text::push_utf16(&mut out, bytes);
            out.into_boxed_str()
        };
        while let Some(token) = tokens.next()? {
            if ops.len() > MOST_OPS {
                return Err(Broken::Large);
            }
            let here = ops.len();
            let mut named = |name: &NameRef<'_>| -> String {
                let at = name.at.saturating_sub(from);
                names.push(NameUse { at, inline: name.inline, raw: name.raw.into() });
                name.text()
            };
            if let Some(at) = attribute
                && !matches!(
                    token,
                    Token::Value(..)
                        | Token::Substitution(..)
                        | Token::CharRef(_)
                        | Token::EntityRef(_)
                        | Token::CData(_)
                )
            {
                if let Some(Op::Attribute(_, end)) = ops.get_mut(at) {
                    *end = here;
                }
                attribute = None;
            }
            match token {
                Token::Open(name, depends) => {
                    if open.len() >= MOST_DEPTH {
                        return Err(Broken::Deep);
                    }
                    let name = named(&name).into();
                    open.push(here);
                    ops.push(Op::Open { name, depends, end: usize::MAX, own: Box::default() });
                }
                Token::CloseStart => ops.push(Op::Content),
                Token::CloseEmpty | Token::End => {
                    ops.push(Op::End);
                    close(&mut ops, open.pop());
                }
                Token::Attribute(name) => {
                    attribute = Some(here);
                    ops.push(Op::Attribute(named(&name).into(), usize::MAX));
                }
                Token::Value(kind, bytes) => {
                    let mut out = String::new();
                    Value::of(kind, bytes).push_text(&mut out);
                    ops.push(Op::Text(out.into()));
                }
                Token::CData(bytes) => ops.push(Op::CData(text(bytes))),
                Token::CharRef(unit) => {
                    ops.push(Op::Text(
                        char::from_u32(u32::from(unit)).unwrap_or('\u{FFFD}').to_string().into(),
                    ));
                }
                Token::EntityRef(name) => ops.push(Op::Entity(named(&name).into())),
                Token::PiTarget(name) => target = Some(named(&name)),
                Token::PiData(bytes) => {
                    ops.push(Op::Instruction(target.take().unwrap_or_default().into(), text(bytes)));
                }
                Token::Substitution(number, optional) => ops.push(Op::Substitution { number, optional }),
                // A definition holds no instances ([MS-EVEN6] 2.2.12).
                Token::Instance(_) => return Err(Broken::Token(crate::abi::token::TEMPLATE_INSTANCE, from)),
            }
        }
        while !open.is_empty() {
            ops.push(Op::End);
            close(&mut ops, open.pop());
        }
        for op in &mut ops {
            if let Op::Attribute(_, end) = op
                && *end == usize::MAX
            {
                return Err(Broken::Short(to));
            }
        }
        let data = chunk.get(from..to).unwrap_or(&[]).into();
        let plan = Plan::of(&ops);
        Ok(Program { guid, ops, plan, data, names })
    }

    /// True if the definition at `from..to` of the chunk is this one: the same but for where its names stand.
    pub fn is(&self, chunk: &[u8], from: usize, to: usize) -> bool {
        let Some(data) = chunk.get(from..to).filter(|data| data.len() == self.data.len()) else {
            return false;
        };
        let mut at = 0;
        for name in &self.names {
            if data.get(at..name.at) != self.data.get(at..name.at) {
                return false;
            }
            let Some(offset) = crate::bytes::u32_at(data, name.at).map(|o| o as usize) else { return false };
            if (offset == from + name.at + 4) != name.inline {
                return false;
            }
            let raw =
                offset.checked_add(4).and_then(|begin| crate::bytes::slice(chunk, begin, name.raw.len()));
            if raw != Some(&name.raw) {
                return false;
            }
            // Behind the offset, and behind the offset of the next name.
            at = name.at + if name.inline { 8 } else { 4 };
        }
        data.get(at..) == self.data.get(at..)
    }
}

/// Tells an element where it ends and which substitutions are its own.
fn close(ops: &mut [Op], element: Option<usize>) {
    let Some(begin) = element else { return };
    let (mut content, mut attributes) = (Vec::new(), Vec::new());
    let mut at = begin + 1;
    let mut within_attribute = 0;
    let behind = ops.len();
    while at < behind {
        match ops.get(at) {
            // Elements within are closed already.
            Some(Op::Open { end, .. }) if *end > at && *end != usize::MAX => {
                at = *end;
                continue;
            }
            Some(Op::Attribute(_, end)) => within_attribute = *end,
            Some(Op::Substitution { number, .. }) if at < within_attribute => attributes.push(*number),
            Some(Op::Substitution { number, .. }) => content.push(*number),
            _ => {}
        }
        at += 1;
    }
    content.extend(attributes);
    if let Some(Op::Open { end, own, .. }) = ops.get_mut(begin) {
        *end = behind;
        *own = content.into();
    }
}
