//! A template's XML as literal texts with holes, for what nearly all instances are: without arrays, which repeat elements.

use super::escape::{Escape, Markup, Xml, push_str};
use super::op::Op;
use etwhy_base::is_unsafe;

/// A literal that is XML already, and what is written behind it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Place and size of the literal among the texts.
    from: u32,
    len: u32,
    /// What follows.
    pub then: Then,
}

/// What is written behind a literal.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// The next literal.
    Next,
    /// This value, in an element.
    Value(u16),
    /// This value, in an attribute.
    InAttribute(u16),
    /// An attribute whose only value is this one: nothing if that is empty. So many bytes that stand before it follow the literal.
    Optional(u16, u16),
    /// If this value is null, the steps up to this one are left out.
    Unless(u16, u32),
}

/// XML as literals with holes. All of it stands close together: a record of another kind than the one before finds it in the cache.
#[derive(Debug)]
pub struct Steps {
    /// The literals, and behind them as many zeros as are copied at once.
    texts: Box<[u8]>,
    steps: Box<[Step]>,
}

/// Bytes that are copied without a call.
const SHORT: usize = 32;
const MIDDLE: usize = 64;

impl Steps {
    /// One after the other.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&Step> {
        self.steps.get(at)
    }

    /// Appends the literal of a step.
    #[inline(always)]
    pub fn literal(&self, step: &Step, out: &mut Vec<u8>) {
        self.text(step.from as usize, step.len as usize, out);
    }

    /// Appends what stands before the value of an optional attribute.
    #[inline(always)]
    pub fn before(&self, step: &Step, len: u16, out: &mut Vec<u8>) {
        self.text(step.from as usize + step.len as usize, usize::from(len), out);
    }

    /// Copying a fixed number of bytes, of which some are cut off again, is faster than asking how many to copy.
    #[inline(always)]
    fn text(&self, from: usize, len: usize, out: &mut Vec<u8>) {
        let rest = self.texts.get(from..).unwrap_or(&[]);
        let end = out.len() + len;
        match rest.first_chunk::<MIDDLE>() {
            Some(block) if len <= SHORT => {
                out.extend_from_slice(block.first_chunk::<SHORT>().unwrap_or(&[0; SHORT]))
            }
            Some(block) if len <= MIDDLE => out.extend_from_slice(block),
            _ => out.extend_from_slice(rest.get(..len).unwrap_or(&[])),
        }
        out.truncate(end);
    }
}

/// Collects steps; literals that follow each other become one.
#[derive(Default)]
pub struct Builder {
    texts: Vec<u8>,
    steps: Vec<Step>,
    /// Where the literals since the last step begin.
    from: usize,
    /// Some literal has what is written differently for terminals.
    odd: bool,
}

impl Builder {
    /// A literal.
    pub fn literal<E: Escape>(&mut self, text: &str) {
        self.odd |= text.contains(|c| is_unsafe(c) && !matches!(c, '\n' | '\t'));
        push_str::<E>(&mut self.texts, text);
    }

    /// Literals that are not escaped.
    pub fn markup(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.literal::<Markup<false>>(part));
    }

    /// What follows the literals since the last step.
    fn step(&mut self, then: Then) {
        let behind = if let Then::Optional(_, len) = then { usize::from(len) } else { 0 };
        // A definition has 64 KiB, of which a byte becomes at most six.
        let len = self.texts.len().saturating_sub(self.from + behind) as u32;
        self.steps.push(Step { from: self.from as u32, len, then });
        self.from = self.texts.len();
    }

    /// Ends the literals since the last step, so that one can jump behind them.
    fn end_text(&mut self) {
        if self.texts.len() > self.from {
            self.step(Then::Next);
        }
    }

    /// A value.
    pub fn value(&mut self, number: u16, in_attribute: bool) {
        self.step(if in_attribute { Then::InAttribute(number) } else { Then::Value(number) });
    }

    /// The steps, if all literals are the same for terminals.
    pub fn finish(mut self) -> Option<Steps> {
        self.end_text();
        self.texts.extend_from_slice(&[0; MIDDLE]);
        (!self.odd).then(|| Steps { texts: self.texts.into(), steps: self.steps.into() })
    }
}

/// The steps of these instructions. `None` if they are of a kind that no template was seen to have: those are followed one by one.
pub fn steps(ops: &[Op]) -> Option<Steps> {
    let mut flat = Flat { ops, to: Builder::default() };
    flat.range(0, ops.len())?;
    flat.to.finish()
}

struct Flat<'o> {
    ops: &'o [Op],
    to: Builder,
}

impl Flat<'_> {
    fn range(&mut self, from: usize, to: usize) -> Option<()> {
        let mut at = from;
        while at < to {
            match self.ops.get(at)? {
                Op::Open { name, depends, end, .. } => {
                    // As `Writer::ops`: a root is never left out.
                    let depends = depends.filter(|_| at > 0);
                    if let Some(number) = depends {
                        self.to.step(Then::Unless(number, 0));
                    }
                    let unless = self.to.steps.len().checked_sub(1).filter(|_| depends.is_some());
                    self.element(at, name, *end)?;
                    if let Some(unless) = unless {
                        self.to.end_text();
                        let next = self.to.steps.len();
                        if let Some(Step { then: Then::Unless(_, to), .. }) = self.to.steps.get_mut(unless) {
                            *to = next as u32;
                        }
                    }
                    at = (*end).max(at + 1);
                    continue;
                }
                Op::Text(text) => self.to.literal::<Xml<false, false>>(text),
                Op::CData(text) => self.to.markup(&["<![CDATA[", text, "]]>"]),
                Op::Entity(name) => self.to.markup(&["&", name, ";"]),
                Op::Instruction(target, data) => self.to.markup(&["<?", target, " ", data, "?>"]),
                Op::Substitution { number, .. } => self.to.value(*number, false),
                Op::Attribute(_, end) => {
                    at = (*end).max(at + 1);
                    continue;
                }
                Op::Content | Op::End => {}
            }
            at += 1;
        }
        Some(())
    }

    fn element(&mut self, at: usize, name: &str, end: usize) -> Option<()> {
        self.to.markup(&["<", name]);
        let mut place = at + 1;
        while let Some(Op::Attribute(name, end)) = self.ops.get(place) {
            self.attribute(name, self.ops.get(place + 1..*end)?)?;
            place = (*end).max(place + 1);
        }
        let last = end.saturating_sub(1);
        if matches!(self.ops.get(place), Some(Op::Content)) {
            place += 1;
        }
        if place >= last {
            self.to.markup(&["/>"]);
            return Some(());
        }
        self.to.markup(&[">"]);
        self.range(place, last)?;
        self.to.markup(&["</", name, ">"]);
        Some(())
    }

    /// An attribute; one whose only value is optional and empty is not written.
    fn attribute(&mut self, name: &str, parts: &[Op]) -> Option<()> {
        let always = parts.iter().any(|op| match op {
            Op::Text(_) | Op::CData(_) | Op::Entity(_) => true,
            Op::Substitution { optional, .. } => !*optional,
            _ => false,
        });
        if !always {
            return match parts {
                [] => Some(()),
                [Op::Substitution { number, .. }] => {
                    let begin = self.to.texts.len();
                    self.to.markup(&[" ", name, "=\""]);
                    let before = u16::try_from(self.to.texts.len() - begin).ok()?;
                    self.to.step(Then::Optional(*number, before));
                    Some(())
                }
                _ => None,
            };
        }
        self.to.markup(&[" ", name, "=\""]);
        for op in parts {
            match op {
                Op::Text(text) | Op::CData(text) => self.to.literal::<Xml<true, false>>(text),
                Op::Entity(name) => self.to.markup(&["&", name, ";"]),
                // An optional one that is empty writes nothing anyway.
                Op::Substitution { number, .. } => self.to.value(*number, true),
                _ => {}
            }
        }
        self.to.markup(&["\""]);
        Some(())
    }
}
