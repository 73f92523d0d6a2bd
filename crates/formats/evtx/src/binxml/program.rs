//! A compiled template.

use super::flat::{Steps, steps};
use super::op::Op;
use super::plan::Plan;
use super::tokens::{Broken, MOST_DEPTH, NameRef, Token, Tokens};
use super::value::Value;
use super::wellformed::mend;
use crate::bytes::same;
use etwhy_base::Bytes as _;
use std::sync::Arc;

/// Bytes of a definition that differ from chunk to chunk although it says the same.
///
/// A name stands in the definition that uses it first in its chunk, and is only referred to in others; sizes of elements count
/// the names that stand in them.
#[derive(Debug)]
enum Varying {
    /// A size.
    Size,
    /// The offset of a name, behind which the name may stand: hash, length, text.
    Name(Box<[u8]>),
}

/// A compiled template.
#[derive(Debug)]
pub struct Program {
    /// GUID of the template.
    pub guid: [u8; 16],
    /// Instructions, in order of the document: what they write is well-formed.
    pub ops: Vec<Op>,
    /// Its XML, if that is literals with holes.
    pub xml: Option<Steps>,
    /// It has names that are none in XML; they are written otherwise.
    pub odd_names: bool,
    /// Where system values and fields are.
    pub plan: Plan,
    /// The definition without the names that stand in it, to know it again.
    data: Box<[u8]>,
    /// What varies, by its place in `data`.
    varying: Vec<(usize, Varying)>,
}

/// More than any definition that was seen has.
const MOST_OPS: usize = 100_000;
/// The same for the bytes of its names: each use of a name is a few bytes, which may name 64 KiB.
const MOST_NAMES: usize = 1 << 20;

impl Program {
    /// Compiles the definition that stands at `from..to` of the chunk.
    ///
    /// # Errors
    /// Where it is broken.
    pub fn compile(chunk: &[u8], guid: [u8; 16], from: usize, to: usize) -> Result<Program, Broken> {
        let mut tokens = Tokens::new(chunk, from, to, true);
        let mut ops: Vec<Op> = Vec::new();
        let mut varying: Vec<(usize, Varying)> = Vec::new();
        // Bytes of names that stand in the definition so far, and where they are.
        let mut inline = 0;
        let mut cuts: Vec<(usize, usize)> = Vec::new();
        // Places of elements that are open, and of an attribute.
        let mut open: Vec<usize> = Vec::new();
        let mut attribute: Option<usize> = None;
        let mut target: Option<String> = None;
        let mut names = 0usize;
        let text = |bytes: &[u8]| {
            let mut out = String::new();
            super::text::push_utf16(&mut out, bytes);
            out.into_boxed_str()
        };
        while let Some(token) = tokens.next()? {
            if ops.len() > MOST_OPS || names > MOST_NAMES {
                return Err(Broken::Large);
            }
            let here = ops.len();
            let mut named = |name: &NameRef<'_>| -> String {
                let at = name.at.saturating_sub(from).saturating_sub(inline);
                names = names.saturating_add(name.raw.len());
                varying.push((at, Varying::Name(name.raw.into())));
                if name.inline {
                    let len = inline_size(name.raw);
                    cuts.push((name.at.saturating_sub(from) + 4, len));
                    inline += len;
                }
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
                Token::Open(name, depends, sized) => {
                    if open.len() >= MOST_DEPTH {
                        return Err(Broken::Deep);
                    }
                    let text = named(&name).into();
                    let at = name.at.saturating_sub(from);
                    let here_inline = inline - if name.inline { inline_size(name.raw) } else { 0 };
                    let place = at.saturating_sub(here_inline);
                    let before = varying.len().saturating_sub(1);
                    varying.insert(before, (place.saturating_sub(4), Varying::Size));
                    if sized {
                        varying.push((place + 4, Varying::Size));
                    }
                    let name: Arc<str> = text;
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
                    Value::parse(kind, bytes).push_text(&mut out);
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
        let whole = chunk.get(from..to).unwrap_or(&[]);
        let mut data = Vec::with_capacity(whole.len());
        let mut at = 0;
        for (cut, len) in cuts {
            data.extend_from_slice(whole.get(at..cut).unwrap_or(&[]));
            at = cut + len;
        }
        data.extend_from_slice(whole.get(at..).unwrap_or(&[]));
        // Fields have their names as the log has them.
        let plan = Plan::from_ops(&ops);
        let odd_names = mend(&mut ops);
        let xml = steps(&ops);
        Ok(Program { guid, ops, xml, odd_names, plan, data: data.into(), varying })
    }

    /// True if the definition at `from..to` of the chunk is this one: the same but for what varies.
    pub fn is(&self, chunk: &[u8], from: usize, to: usize) -> bool {
        self.compare(chunk, from, to).unwrap_or(false)
    }

    fn compare(&self, chunk: &[u8], from: usize, to: usize) -> Option<bool> {
        let data = chunk.get(from..to)?;
        // `at` counts in our data; names that stand in theirs shift it.
        let (mut at, mut shift) = (0, 0);
        for (place, varying) in &self.varying {
            if !same(data.get(at + shift..place + shift)?, self.data.get(at..*place)?) {
                return Some(false);
            }
            at = place + 4;
            if let Varying::Name(raw) = varying {
                let offset = data.u32_at(place + shift)? as usize;
                if !same(chunk.sub(offset.checked_add(4)?, raw.len())?, raw) {
                    return Some(false);
                }
                if offset == from + at + shift {
                    shift += inline_size(raw);
                }
            }
        }
        Some(data.get(at + shift..)? == self.data.get(at..)?)
    }
}

/// Bytes of a name where it stands: offset of the next, hash, length, text, NUL.
const fn inline_size(raw: &[u8]) -> usize {
    4 + raw.len() + 2
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
