//! A template's XML as literal texts with holes, for what nearly all instances are: without arrays, which repeat elements.

use super::escape::{Escape, Markup, Xml, push_str};
use super::op::Op;
use super::piece::Piece;
use etwhy_base::is_unsafe;

/// What is written next.
#[derive(Debug)]
pub enum Step {
    /// A text that is XML already.
    Literal(Piece),
    /// This value, in an element or in an attribute.
    Value {
        /// Which.
        number: u16,
        /// It stands in an attribute.
        in_attribute: bool,
    },
    /// An attribute whose only value is this one: nothing if that is empty.
    Optional {
        /// Which value.
        number: u16,
        /// What stands before it.
        before: Piece,
    },
    /// If this value is null, the steps up to this one are left out.
    Unless {
        /// Which value.
        number: u16,
        /// The step that comes next then.
        to: usize,
    },
}

/// Collects steps; literals that follow each other become one.
#[derive(Default)]
pub struct Builder {
    steps: Vec<Step>,
    /// Literals since the last step.
    text: Vec<u8>,
    /// Some literal has what is written differently for terminals.
    odd: bool,
}

impl Builder {
    /// A literal.
    pub fn literal<E: Escape>(&mut self, text: &str) {
        self.odd |= text.contains(|c| is_unsafe(c) && !matches!(c, '\n' | '\t'));
        push_str::<E>(&mut self.text, text);
    }

    /// Literals that are not escaped.
    pub fn markup(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.literal::<Markup<false>>(part));
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.steps.push(Step::Literal(Piece::new(&self.text)));
            self.text.clear();
        }
    }

    fn step(&mut self, step: Step) {
        self.end_text();
        self.steps.push(step);
    }

    /// A value.
    pub fn value(&mut self, number: u16, in_attribute: bool) {
        self.step(Step::Value { number, in_attribute });
    }

    /// The steps, if all literals are the same for terminals.
    pub fn finish(mut self) -> Option<Box<[Step]>> {
        self.end_text();
        (!self.odd).then(|| self.steps.into())
    }
}

/// The steps of these instructions. `None` if they are of a kind that no template was seen to have: those are followed one by one.
pub fn steps(ops: &[Op]) -> Option<Box<[Step]>> {
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
                        self.to.step(Step::Unless { number, to: 0 });
                    }
                    let unless = self.to.steps.len().checked_sub(1).filter(|_| depends.is_some());
                    self.element(at, name, *end)?;
                    if let Some(unless) = unless {
                        self.to.end_text();
                        let next = self.to.steps.len();
                        if let Some(Step::Unless { to, .. }) = self.to.steps.get_mut(unless) {
                            *to = next;
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
                    self.to.end_text();
                    self.to.markup(&[" ", name, "=\""]);
                    let before = Piece::new(&std::mem::take(&mut self.to.text));
                    self.to.steps.push(Step::Optional { number: *number, before });
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
