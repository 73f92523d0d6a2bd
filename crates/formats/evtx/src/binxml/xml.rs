//! Events as XML, as Windows writes them.

use super::escape::{Escape as _, Xml, push_raw, push_str, push_value};
use super::event::{Decoder, Event, Fault, MOST_BYTES, Root};
use super::flat::{Steps, Then};
use super::op::Op;
use super::program::Program;
use super::raw::{Raw, push_values};
use super::tokens::{self, Broken, Instance, MOST_DEPTH, Token, Tokens};
use super::value::{Items, Value};
use super::{closed, wellformed};
use crate::abi::{token, value as ty};
use std::ops::Range;
use std::sync::Arc;

impl Decoder {
    /// Appends the event as XML, on one line. `SAFE`: references stand for what acts on terminals.
    ///
    /// # Errors
    /// If it cannot be read to its end; what stands before is appended, with its elements closed. [`Fault::OddNames`] if all of it is, with other names.
    pub fn push_xml<const SAFE: bool>(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let before = out.len();
        let limit = before.saturating_add(MOST_BYTES.saturating_sub(self.spent));
        let chunk = Decoder::parts(event);
        let asks = if let Root::Instance(number, ..) = &event.root { *number } else { 0 };
        let mut writer = Writer::<SAFE> { decoder: self, chunk, limit, asks, odd_names: false };
        let result = match &event.root {
            Root::Instance(number, _, instance) => {
                let program = writer.decoder.templates.get(*number).map(Arc::clone);
                let program = program.ok_or(Fault::NoTemplate)?;
                writer.decoder.values.clear();
                writer.instance_of(&program, instance, 0, out)
            }
            Root::Pattern(at, from, to) => match writer.steps_of(*at) {
                Some(steps) => writer.steps(&steps, 0, 0, out),
                None => writer.tokens(*from, *to, 0, out),
            },
            Root::Inline(from, to) => writer.tokens(*from, *to, 0, out),
        };
        let odd_names = writer.odd_names;
        if result.is_err() {
            closed::close(out, before);
        }
        self.spent = self.spent.saturating_add(out.len().saturating_sub(before));
        result.map_err(Fault::Broken)?;
        if odd_names { Err(Fault::OddNames) } else { Ok(()) }
    }

    /// Appends the event as XML, on one line.
    ///
    /// # Errors
    /// As [`Decoder::push_xml`].
    pub fn xml(&mut self, event: &Event<'_>, out: &mut String) -> Result<(), Fault> {
        let mut bytes = Vec::new();
        let result = self.push_xml::<false>(event, &mut bytes);
        out.push_str(&String::from_utf8_lossy(&bytes));
        result
    }
}

/// Values of an instance, and which items of its arrays are meant.
struct Scope<'c> {
    first: usize,
    count: usize,
    items: Vec<(u16, Value<'c>)>,
}

struct Writer<'d, 'c, const SAFE: bool> {
    decoder: &'d mut Decoder,
    chunk: &'c [u8],
    limit: usize,
    /// The template of the event.
    asks: u32,
    /// Some name was none in XML.
    odd_names: bool,
}

impl<'c, const SAFE: bool> Writer<'_, 'c, SAFE> {
    fn raw(&self, scope: &Scope<'c>, number: u16) -> Option<Raw> {
        self.decoder.values.get(scope.first..scope.first + scope.count)?.get(usize::from(number)).copied()
    }

    /// A value, or the item of its array that is meant.
    fn value(&self, scope: &Scope<'c>, number: u16) -> Value<'c> {
        match scope.items.iter().find(|(n, _)| *n == number) {
            Some((_, item)) => *item,
            None => self.raw(scope, number).map_or(Value::Null, |raw| raw.value(self.chunk)),
        }
    }

    /// An instance of a template, whose values are put behind those that there are.
    fn instance_of(
        &mut self,
        program: &Program,
        instance: &Instance<'_>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        self.odd_names |= program.odd_names;
        let first = self.decoder.values.len();
        let count = push_values(&mut self.decoder.values, instance);
        let arrays = instance.descriptors.iter().any(|[_, _, kind, _]| kind & ty::ARRAY != 0);
        let result = match &program.xml {
            Some(steps) if !arrays => self.steps(steps, first, depth, out),
            _ => {
                let scope = Scope { first, count, items: Vec::new() };
                self.ops(program, 0, program.ops.len(), &scope, depth, out)
            }
        };
        self.decoder.values.truncate(first);
        result
    }

    /// The steps of a pattern, if it has some.
    fn steps_of(&mut self, at: usize) -> Option<Arc<Steps>> {
        let pattern = self.decoder.patterns.get(at)?;
        let steps = pattern.xml.as_ref().map(Arc::clone)?;
        self.odd_names |= pattern.odd_names;
        Some(steps)
    }

    /// The usual way: literals and values in turns.
    fn steps(&mut self, steps: &Steps, first: usize, depth: usize, out: &mut Vec<u8>) -> Result<(), Broken> {
        let chunk = self.chunk;
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            // The values of this instance are the last.
            let raw = |number: u16| self.decoder.values.get(first + usize::from(number));
            steps.literal(step, out);
            match step.then {
                Then::Next => {}
                Then::Value(number) => {
                    if out.len() > self.limit {
                        return Err(Broken::Large);
                    }
                    let Some(raw) = raw(number) else { continue };
                    let (kind, size, tail) = raw.tail(chunk);
                    if let Some((from, to)) = raw.document() {
                        self.document(from, to, depth + 1, out)?;
                    } else {
                        push_raw::<Xml<false, SAFE>>(out, kind, size, tail);
                    }
                }
                Then::InAttribute(number) => {
                    if out.len() > self.limit {
                        return Err(Broken::Large);
                    }
                    let Some(raw) = raw(number) else { continue };
                    let (kind, size, tail) = raw.tail(chunk);
                    push_raw::<Xml<true, SAFE>>(out, kind, size, tail);
                }
                Then::Optional(number, before) => {
                    if out.len() > self.limit {
                        return Err(Broken::Large);
                    }
                    let Some(raw) = raw(number) else { continue };
                    if !raw.is_empty(chunk) {
                        let (kind, size, tail) = raw.tail(chunk);
                        steps.before(step, before, out);
                        push_raw::<Xml<true, SAFE>>(out, kind, size, tail);
                        out.push(b'"');
                    }
                }
                Then::Unless(number, to) => {
                    if raw(number).is_some_and(Raw::is_null) {
                        at = (to as usize).max(at);
                    }
                }
            }
        }
        Ok(())
    }

    /// The long way, which knows arrays.
    fn ops(
        &mut self,
        program: &Program,
        from: usize,
        to: usize,
        scope: &Scope<'c>,
        depth: usize,
        out: &mut Vec<u8>,
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
                Some(Op::Text(text)) => push_str::<Xml<false, SAFE>>(out, text),
                Some(Op::CData(text)) => markup(out, &["<![CDATA[", text, "]]>"]),
                Some(Op::Entity(name)) => markup(out, &["&", name, ";"]),
                Some(Op::Instruction(target, data)) => {
                    markup(out, &["<?", target, " ", data, "?>"]);
                }
                Some(Op::Substitution { number, .. }) => match self.value(scope, *number) {
                    Value::BinXml(bytes) if !bytes.is_empty() => {
                        if let Some((from, to)) = self.raw(scope, *number).and_then(|raw| raw.document()) {
                            self.document(from, to, depth + 1, out)?;
                        }
                    }
                    value => push_value::<Xml<false, SAFE>>(out, &value),
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
        scope: &Scope<'c>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let items_of = |number: &u16| match self.value(scope, *number) {
            Value::Array(kind, bytes) => Some((*number, Items::new(kind, bytes))),
            _ => None,
        };
        // One item stands for itself.
        let several = |(_, items): &(u16, Items<'c>)| items.clone().nth(1).is_some();
        if let Some((number, items)) = own.iter().filter_map(items_of).find(several) {
            for item in items {
                let mut inner = Scope { first: scope.first, count: scope.count, items: scope.items.clone() };
                inner.items.push((number, item));
                self.repeated(program, at, name, (end, own), &inner, depth, out)?;
            }
            return Ok(());
        }
        if out.len() > self.limit {
            return Err(Broken::Large);
        }
        markup(out, &["<", name]);
        let mut place = at + 1;
        while let Some(Op::Attribute(name, end)) = program.ops.get(place) {
            if out.len() > self.limit {
                return Err(Broken::Large);
            }
            self.attribute(program, place + 1, *end, name, scope, out);
            place = (*end).max(place + 1);
        }
        let last = end.saturating_sub(1);
        if matches!(program.ops.get(place), Some(Op::Content)) {
            place += 1;
        }
        if place >= last {
            out.extend_from_slice(b"/>");
            return Ok(());
        }
        out.push(b'>');
        self.ops(program, place, last, scope, depth, out)?;
        markup(out, &["</", name, ">"]);
        Ok(())
    }

    /// An attribute; one whose only value is optional and empty is not written.
    fn attribute(
        &self,
        program: &Program,
        from: usize,
        to: usize,
        name: &str,
        scope: &Scope<'c>,
        out: &mut Vec<u8>,
    ) {
        let begin = out.len();
        let mut written = false;
        markup(out, &[" ", name, "=\""]);
        for op in program.ops.get(from..to).unwrap_or(&[]) {
            match op {
                Op::Text(text) | Op::CData(text) => {
                    push_str::<Xml<true, SAFE>>(out, text);
                    written = true;
                }
                Op::Entity(name) => {
                    markup(out, &["&", name, ";"]);
                    written = true;
                }
                Op::Substitution { number, optional } => {
                    let value = self.value(scope, *number);
                    if !(*optional && value.is_empty()) {
                        push_value::<Xml<true, SAFE>>(out, &value);
                        written = true;
                    }
                }
                _ => {}
            }
        }
        if written {
            out.push(b'"');
        } else {
            out.truncate(begin);
        }
    }

    /// Binary XML in a value: nearly always an instance of a template, and nothing else.
    fn document(&mut self, from: usize, to: usize, depth: usize, out: &mut Vec<u8>) -> Result<(), Broken> {
        if depth > MOST_DEPTH {
            return Err(Broken::Deep);
        }
        let at = match self.chunk.get(from..to) {
            Some([token::FRAGMENT_HEADER, _, _, _, token::TEMPLATE_INSTANCE, ..]) => from + 5,
            Some([token::TEMPLATE_INSTANCE, ..]) => from + 1,
            _ => return self.inline(from, to, depth, out),
        };
        let (instance, end) = tokens::instance(self.chunk, at, to).ok_or(Broken::Short(at - 1))?;
        self.instance(&instance, depth + 1, out)?;
        match self.chunk.get(end..to) {
            None | Some([] | [token::EOF, ..]) => Ok(()),
            Some(_) => self.tokens(end, to, depth, out),
        }
    }

    /// XML without a template in a value.
    fn inline(&mut self, from: usize, to: usize, depth: usize, out: &mut Vec<u8>) -> Result<(), Broken> {
        let decoder = &mut *self.decoder;
        let number = decoder.templates.chunk();
        let mut name = |utf16: &[u8]| decoder.templates.name(utf16);
        let asks = self.asks;
        let place = (from, to);
        let at = decoder.patterns.find(self.chunk, number, place, asks, &mut decoder.inner, &mut name);
        let Some(steps) = at.and_then(|at| self.steps_of(at)) else {
            return self.tokens(from, to, depth, out);
        };
        let first = self.decoder.values.len();
        self.decoder.values.append(&mut self.decoder.inner);
        let result = self.steps(&steps, first, depth, out);
        self.decoder.values.truncate(first);
        result
    }

    /// Binary XML at a stretch of the chunk.
    fn tokens(&mut self, from: usize, to: usize, depth: usize, out: &mut Vec<u8>) -> Result<(), Broken> {
        let mut tokens = Tokens::new(self.chunk, from, to, false);
        // Where the names of the elements stand that are open.
        let mut open: Vec<Range<usize>> = Vec::new();
        // In a start tag, in an attribute's value.
        let (mut in_tag, mut in_value) = (false, false);
        let mut target = String::new();
        let close = |name: Range<usize>, out: &mut Vec<u8>| {
            out.extend_from_slice(b"</");
            out.extend_from_within(name);
            out.push(b'>');
        };
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
            let is_value =
                matches!(token, Token::Value(..) | Token::EntityRef(_) | Token::CharRef(_) | Token::CData(_));
            if in_value && !is_value {
                out.push(b'"');
                in_value = false;
            }
            // Whatever the order of tokens is, a tag ends before what is no part of it, and no other does.
            let of_tag = matches!(token, Token::Attribute(_) | Token::CloseStart | Token::CloseEmpty);
            if in_tag && !in_value && !of_tag {
                out.push(b'>');
                in_tag = false;
            } else if !in_tag && of_tag {
                if let Token::CloseEmpty = token
                    && let Some(name) = open.pop()
                {
                    close(name, out);
                }
                continue;
            }
            match token {
                Token::Open(name, ..) => {
                    out.push(b'<');
                    let from = out.len();
                    markup(out, &[&wellformed::name(&name.text(), &mut self.odd_names)]);
                    open.push(from..out.len());
                    in_tag = true;
                }
                Token::Attribute(name) => {
                    let name = name.text();
                    markup(out, &[" ", &wellformed::name(&name, &mut self.odd_names), "=\""]);
                    in_value = true;
                }
                Token::CloseStart => {
                    out.push(b'>');
                    in_tag = false;
                }
                Token::CloseEmpty => {
                    out.extend_from_slice(b"/>");
                    open.pop();
                    in_tag = false;
                }
                Token::End => {
                    if let Some(name) = open.pop() {
                        close(name, out);
                    }
                }
                Token::Value(kind, bytes) if in_value => {
                    push_value::<Xml<true, SAFE>>(out, &Value::parse(kind, bytes));
                }
                Token::Value(kind, bytes) => {
                    push_value::<Xml<false, SAFE>>(out, &Value::parse(kind, bytes));
                }
                Token::CData(bytes) if in_value => {
                    push_value::<Xml<true, SAFE>>(out, &Value::Utf16(bytes));
                }
                Token::CData(bytes) => {
                    let mut text = String::new();
                    super::text::push_utf16(&mut text, bytes);
                    if wellformed::is_cdata(&text) {
                        markup(out, &["<![CDATA[", &text, "]]>"]);
                    } else {
                        push_str::<Xml<false, SAFE>>(out, &text);
                    }
                }
                Token::CharRef(unit) => {
                    let c = char::from_u32(u32::from(unit)).unwrap_or('\u{FFFD}');
                    if in_value {
                        Xml::<true, SAFE>::push(out, c);
                    } else {
                        Xml::<false, SAFE>::push(out, c);
                    }
                }
                Token::EntityRef(name) => match name.text() {
                    name if wellformed::is_entity(&name) => markup(out, &["&", &name, ";"]),
                    other if in_value => push_str::<Xml<true, SAFE>>(out, &format!("&{other};")),
                    other => push_str::<Xml<false, SAFE>>(out, &format!("&{other};")),
                },
                Token::PiTarget(name) => {
                    target = wellformed::target(&name.text(), &mut self.odd_names).into_owned();
                }
                Token::PiData(bytes) => {
                    let mut text = String::new();
                    super::text::push_utf16(&mut text, bytes);
                    let target = if target.is_empty() { "_" } else { &target };
                    markup(out, &["<?", target, " ", &wellformed::instruction(&text), "?>"]);
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
            out.push(b'"');
        }
        if in_tag && !open.is_empty() {
            out.push(b'>');
        }
        while let Some(name) = open.pop() {
            close(name, out);
        }
        result
    }

    fn instance(&mut self, instance: &Instance<'c>, depth: usize, out: &mut Vec<u8>) -> Result<(), Broken> {
        if depth > MOST_DEPTH {
            return Err(Broken::Deep);
        }
        let (program, _) = self.decoder.templates.find(self.chunk, instance.id, instance.definition);
        let Some(program) = program.and_then(|n| self.decoder.templates.get(n)).map(Arc::clone) else {
            return Err(Broken::Short(instance.definition));
        };
        self.instance_of(&program, instance, depth, out)
    }
}

/// Appends what is not escaped: it is well-formed.
fn markup(out: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
}
