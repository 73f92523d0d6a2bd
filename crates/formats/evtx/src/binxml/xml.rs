//! Events as XML, as Windows writes them.

use super::event::{Decoder, Event, Fault, Root};
use super::op::Op;
use super::program::Program;
use super::raw::{Raw, push_values};
use super::tokens::{self, Broken, MOST_DEPTH, Token, Tokens};
use super::value::{Items, Value};
use crate::abi::token;
use std::sync::Arc;

/// More than the XML of any record that Windows can write: a record has at most 64 KiB.
const MOST_BYTES: usize = 16 << 20;

impl Decoder {
    /// Appends the event as XML, on one line.
    ///
    /// # Errors
    /// If it cannot be read to its end; what stands before is appended.
    pub fn xml(&mut self, event: &Event<'_>, out: &mut String) -> Result<(), Fault> {
        let limit = out.len().saturating_add(MOST_BYTES);
        let result = match &event.root {
            Root::Instance(number, _, instance) => {
                let program = self.templates.get(*number).map(Arc::clone).ok_or(Fault::NoTemplate)?;
                let count = self.take_values(instance);
                let mut writer = Writer { decoder: self, chunk: Decoder::parts(event), limit };
                let end = program.ops.len();
                writer.ops(&program, 0, end, &Scope { first: 0, count, items: Vec::new() }, 0, out)
            }
            Root::Pattern(_, from, to) | Root::Inline(from, to) => {
                let mut writer = Writer { decoder: self, chunk: Decoder::parts(event), limit };
                writer.document(*from, *to, 0, out)
            }
        };
        result.map_err(Fault::Broken)
    }
}

/// Values of an instance, and which items of its arrays are meant.
struct Scope {
    first: usize,
    count: usize,
    items: Vec<(u16, usize)>,
}

struct Writer<'d, 'c> {
    decoder: &'d mut Decoder,
    chunk: &'c [u8],
    limit: usize,
}

impl<'c> Writer<'_, 'c> {
    fn raw(&self, scope: &Scope, number: u16) -> Option<Raw> {
        self.decoder.values.get(scope.first..scope.first + scope.count)?.get(usize::from(number)).copied()
    }

    /// A value, or the item of its array that is meant.
    fn value(&self, scope: &Scope, number: u16) -> Value<'c> {
        let value = self.raw(scope, number).map_or(Value::Null, |raw| raw.value(self.chunk));
        match (scope.items.iter().find(|(n, _)| *n == number), value) {
            (Some((_, item)), Value::Array(kind, bytes)) => {
                Items::new(kind, bytes).nth(*item).unwrap_or(Value::Null)
            }
            _ => value,
        }
    }

    fn ops(
        &mut self,
        program: &Program,
        from: usize,
        to: usize,
        scope: &Scope,
        depth: usize,
        out: &mut String,
    ) -> Result<(), Broken> {
        let mut at = from;
        while at < to {
            if out.len() > self.limit {
                return Err(Broken::Large);
            }
            match program.ops.get(at) {
                Some(Op::Open { name, depends, end, own }) => {
                    // [MS-EVEN6] 2.2.12: not written if the value it depends on is null; a root is.
                    let absent = depends.is_some_and(|number| {
                        at > 0 && self.raw(scope, number).is_some_and(|raw| raw.is_null())
                    });
                    if !absent {
                        self.repeated(program, at, name, (*end, own), scope, depth, out)?;
                    }
                    at = (*end).max(at + 1);
                    continue;
                }
                Some(Op::Text(text)) => escaped(out, false, |out| out.push_str(text)),
                Some(Op::CData(text)) => {
                    out.push_str("<![CDATA[");
                    out.push_str(text);
                    out.push_str("]]>");
                }
                Some(Op::Entity(name)) => {
                    out.push('&');
                    out.push_str(name);
                    out.push(';');
                }
                Some(Op::Instruction(target, data)) => {
                    for part in ["<?", target, " ", data, "?>"] {
                        out.push_str(part);
                    }
                }
                Some(Op::Substitution { number, .. }) => match self.value(scope, *number) {
                    Value::BinXml(bytes) if !bytes.is_empty() => {
                        if let Some((from, to)) = self.raw(scope, *number).and_then(|raw| raw.document()) {
                            self.document(from, to, depth + 1, out)?;
                        }
                    }
                    value => escaped(out, false, |out| value.push_text(out)),
                },
                Some(Op::Attribute(_, end)) => {
                    at = (*end).max(at + 1);
                    continue;
                }
                Some(Op::Content | Op::End) | None => {}
            }
            at += 1;
        }
        Ok(())
    }

    /// An element; it is repeated for each item of an array in it ([MS-EVEN6] 3.1.4.7.5).
    #[expect(clippy::too_many_arguments, reason = "one step of a recursion")]
    fn repeated(
        &mut self,
        program: &Program,
        at: usize,
        name: &str,
        (end, own): (usize, &[u16]),
        scope: &Scope,
        depth: usize,
        out: &mut String,
    ) -> Result<(), Broken> {
        let items_of = |number: u16| match self.value(scope, number) {
            Value::Array(kind, bytes) => Items::new(kind, bytes).count(),
            _ => 0,
        };
        if let Some((number, items)) = own.iter().map(|n| (*n, items_of(*n))).find(|(_, items)| *items > 1) {
            for item in 0..items {
                let mut inner = Scope { first: scope.first, count: scope.count, items: scope.items.clone() };
                inner.items.push((number, item));
                self.repeated(program, at, name, (end, own), &inner, depth, out)?;
            }
            return Ok(());
        }
        if out.len() > self.limit {
            return Err(Broken::Large);
        }
        out.push('<');
        out.push_str(name);
        let mut place = at + 1;
        while let Some(Op::Attribute(name, end)) = program.ops.get(place) {
            self.attribute(program, place + 1, *end, name, scope, out);
            place = (*end).max(place + 1);
        }
        let last = end.saturating_sub(1);
        if matches!(program.ops.get(place), Some(Op::Content)) {
            place += 1;
        }
        if place >= last {
            out.push_str("/>");
            return Ok(());
        }
        out.push('>');
        self.ops(program, place, last, scope, depth, out)?;
        out.push_str("</");
        out.push_str(name);
        out.push('>');
        Ok(())
    }

    /// An attribute; one whose only value is optional and empty is not written.
    fn attribute(
        &self,
        program: &Program,
        from: usize,
        to: usize,
        name: &str,
        scope: &Scope,
        out: &mut String,
    ) {
        let begin = out.len();
        let mut written = false;
        for part in [" ", name, "=\""] {
            out.push_str(part);
        }
        for op in program.ops.get(from..to).unwrap_or(&[]) {
            match op {
                Op::Text(text) | Op::CData(text) => {
                    escaped(out, true, |out| out.push_str(text));
                    written = true;
                }
                Op::Entity(name) => {
                    out.push('&');
                    out.push_str(name);
                    out.push(';');
                    written = true;
                }
                Op::Substitution { number, optional } => {
                    let value = self.value(scope, *number);
                    if !(*optional && value.is_empty()) {
                        escaped(out, true, |out| value.push_text(out));
                        written = true;
                    }
                }
                _ => {}
            }
        }
        if written {
            out.push('"');
        } else {
            out.truncate(begin);
        }
    }

    /// Binary XML at a stretch of the chunk.
    fn document(&mut self, from: usize, to: usize, depth: usize, out: &mut String) -> Result<(), Broken> {
        if depth > MOST_DEPTH {
            return Err(Broken::Deep);
        }
        let mut tokens = Tokens::new(self.chunk, from, to, false);
        let mut open: Vec<String> = Vec::new();
        // In a start tag, in an attribute's value.
        let (mut in_tag, mut in_value) = (false, false);
        let mut target = String::new();
        let result = loop {
            let token = match tokens.next() {
                Ok(Some(token)) => token,
                Ok(None) => break Ok(()),
                Err(broken) => break Err(broken),
            };
            if open.len() > MOST_DEPTH {
                break Err(Broken::Deep);
            }
            if out.len() > self.limit {
                break Err(Broken::Large);
            }
            let is_value = matches!(token, Token::Value(..) | Token::EntityRef(_) | Token::CharRef(_));
            if in_value && !is_value {
                out.push('"');
                in_value = false;
            }
            match token {
                Token::Open(name, ..) => {
                    let name = name.text();
                    out.push('<');
                    out.push_str(&name);
                    open.push(name);
                    in_tag = true;
                }
                Token::Attribute(name) => {
                    for part in [" ", &name.text(), "=\""] {
                        out.push_str(part);
                    }
                    in_value = true;
                }
                Token::CloseStart => {
                    out.push('>');
                    in_tag = false;
                }
                Token::CloseEmpty => {
                    out.push_str("/>");
                    open.pop();
                    in_tag = false;
                }
                Token::End => {
                    if let Some(name) = open.pop() {
                        for part in ["</", &name, ">"] {
                            out.push_str(part);
                        }
                    }
                }
                Token::Value(kind, bytes) => {
                    escaped(out, in_value, |out| Value::parse(kind, bytes).push_text(out));
                }
                Token::CData(bytes) => {
                    out.push_str("<![CDATA[");
                    Value::Utf16(bytes).push_text(out);
                    out.push_str("]]>");
                }
                Token::CharRef(unit) => {
                    escaped(out, in_value, |out| {
                        out.push(char::from_u32(u32::from(unit)).unwrap_or('\u{FFFD}'));
                    });
                }
                Token::EntityRef(name) => {
                    for part in ["&", &name.text(), ";"] {
                        out.push_str(part);
                    }
                }
                Token::PiTarget(name) => target = name.text(),
                Token::PiData(bytes) => {
                    for part in ["<?", &target, " "] {
                        out.push_str(part);
                    }
                    Value::Utf16(bytes).push_text(out);
                    out.push_str("?>");
                }
                Token::Substitution(..) => break Err(Broken::Token(token::SUBSTITUTION, from)),
                Token::Instance(instance) => {
                    if let Err(broken) = self.instance(&instance, depth + 1, out) {
                        break Err(broken);
                    }
                }
            }
        };
        // What is open is closed, so that what follows stays XML.
        if in_value {
            out.push('"');
        }
        if in_tag && !open.is_empty() {
            out.push('>');
        }
        while let Some(name) = open.pop() {
            for part in ["</", &name, ">"] {
                out.push_str(part);
            }
        }
        result
    }

    fn instance(
        &mut self,
        instance: &tokens::Instance<'c>,
        depth: usize,
        out: &mut String,
    ) -> Result<(), Broken> {
        if depth > MOST_DEPTH {
            return Err(Broken::Deep);
        }
        let (program, _) = self.decoder.templates.find(self.chunk, instance.id, instance.definition);
        let Some(program) = program.and_then(|n| self.decoder.templates.get(n)).map(Arc::clone) else {
            return Err(Broken::Short(instance.definition));
        };
        let first = self.decoder.values.len();
        let count = push_values(&mut self.decoder.values, instance);
        let scope = Scope { first, count, items: Vec::new() };
        let result = self.ops(&program, 0, program.ops.len(), &scope, depth, out);
        self.decoder.values.truncate(first);
        result
    }
}

/// Appends what `write` appends, escaped. Characters that XML does not allow become `_`, as Windows writes them.
fn escaped(out: &mut String, in_attribute: bool, write: impl FnOnce(&mut String)) {
    let begin = out.len();
    write(out);
    let odd = |c: char| match c {
        '&' | '<' | '>' | '\u{FFFE}' | '\u{FFFF}' => true,
        '"' | '\'' => in_attribute,
        '\t' | '\n' | '\r' => false,
        c => c < ' ',
    };
    let Some(first) = out.get(begin..).and_then(|text| text.find(odd)) else { return };
    let text = out.split_off(begin + first);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if in_attribute => out.push_str("&quot;"),
            '\'' if in_attribute => out.push_str("&apos;"),
            c if odd(c) => out.push('_'),
            c => out.push(c),
        }
    }
}
