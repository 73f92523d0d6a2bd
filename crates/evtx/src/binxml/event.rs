//! Events of records.

use super::fields::{Finder, Name, Piece, SystemField, Target};
use super::plan::{Item, Slot, entity};
use super::program::{MOST_DEPTH, Program};
use super::system::System;
use super::templates::Templates;
use super::tokens::{self, Broken, Instance, Token, Tokens};
use super::value::{Items, Value};
use crate::abi::{token, value as ty};
use crate::bytes::array;
use std::sync::Arc;

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its binary XML is broken.
    Broken(Broken),
    /// The definition of its template is damaged, and no other chunk has it: values without names.
    NoTemplate,
    /// It has no binary XML.
    Empty,
}

/// A value of an instance: where it stands in the chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    at: u32,
    size: u16,
    kind: u8,
}

impl Raw {
    #[inline]
    pub(super) fn value<'c>(&self, chunk: &'c [u8]) -> Value<'c> {
        Value::of(self.kind, self.bytes(chunk))
    }

    #[inline]
    fn bytes<'c>(&self, chunk: &'c [u8]) -> &'c [u8] {
        let at = self.at as usize;
        chunk.get(at..at + usize::from(self.size)).unwrap_or(&[])
    }

    /// The value as a number: the short way for the types that system values have.
    #[inline]
    fn number(&self, chunk: &[u8]) -> Option<u64> {
        let bytes = self.bytes(chunk);
        match (self.kind, bytes) {
            (ty::UINT8, [n, ..]) => Some(u64::from(*n)),
            (ty::UINT16, [a, b, ..]) => Some(u64::from(u16::from_le_bytes([*a, *b]))),
            (ty::UINT32, _) => array(bytes, 0).map(|b| u64::from(u32::from_le_bytes(b))),
            (ty::UINT64 | ty::HEX_INT64 | ty::FILE_TIME, _) => array(bytes, 0).map(u64::from_le_bytes),
            _ => self.value(chunk).number(),
        }
    }

    #[inline]
    pub(super) const fn is_null(&self) -> bool {
        self.kind == ty::NULL
    }

    /// Binary XML: where it stands.
    #[inline]
    pub(super) fn document(&self) -> Option<(usize, usize)> {
        let at = self.at as usize;
        (self.kind == ty::BIN_XML && self.size > 0).then(|| (at, at + usize::from(self.size)))
    }
}

/// Reads events; one for each thread. It remembers templates from chunk to chunk.
#[derive(Default)]
pub struct Decoder {
    pub(super) templates: Templates,
    /// Values of the present event, and behind them those of instances within it while they are read.
    pub(super) values: Vec<Raw>,
    /// Text of a value that is made of several.
    scratch: String,
}

/// An event. It is read as far as it was asked for.
#[derive(Clone)]
pub struct Event<'c> {
    chunk: &'c [u8],
    pub(super) root: Root,
    /// The definition comes from another chunk, because that of this one is damaged.
    pub borrowed: bool,
}

#[derive(Clone)]
pub(super) enum Root {
    /// An instance of a template: its values are the first of the decoder's.
    Instance(Arc<Program>, usize),
    /// XML without a template, at this stretch of the chunk.
    Inline(usize, usize),
}

impl Decoder {
    /// Another chunk begins.
    pub fn next_chunk(&mut self) {
        self.templates.next_chunk();
    }

    /// The event whose binary XML stands at `from..to` of the chunk.
    ///
    /// # Errors
    /// If it cannot be read.
    #[inline]
    pub fn event<'c>(&mut self, chunk: &'c [u8], from: usize, to: usize) -> Result<Event<'c>, Fault> {
        self.values.clear();
        // Nearly all records are a fragment header and an instance.
        let at = match chunk.get(from..to) {
            Some([token::FRAGMENT_HEADER, _, _, _, token::TEMPLATE_INSTANCE, ..]) => from + 5,
            Some([token::TEMPLATE_INSTANCE, ..]) => from + 1,
            Some(
                [token::EOF, ..]
                | []
                | [token::FRAGMENT_HEADER, _, _, _]
                | [token::FRAGMENT_HEADER, _, _, _, token::EOF, ..],
            )
            | None => {
                return Err(Fault::Empty);
            }
            Some(_) => return Ok(Event { chunk, root: Root::Inline(from, to), borrowed: false }),
        };
        let (instance, _) = tokens::instance(chunk, at, to).ok_or(Fault::Broken(Broken::Short(at)))?;
        let (program, borrowed) = self.templates.find(chunk, instance.id, instance.definition);
        let program = program.and_then(|number| self.templates.get(number)).ok_or(Fault::NoTemplate)?;
        let program = Arc::clone(program);
        let count = push_values(&mut self.values, &instance);
        Ok(Event { chunk, root: Root::Instance(program, count), borrowed })
    }

    /// Its system values.
    #[inline]
    pub fn system<'a>(&'a self, event: &'a Event<'_>) -> System<'a> {
        let mut system = System::default();
        match &event.root {
            Root::Instance(program, count) => {
                let values = self.values.get(..*count).unwrap_or(&[]);
                for (field, slot) in &program.plan.system {
                    let field = *field;
                    match slot {
                        Slot::None | Slot::Mixed(_) => {}
                        Slot::Literal(text) => system.set(field, Value::Utf8(text)),
                        Slot::Substitution(number) => {
                            if let Some(raw) = values.get(usize::from(*number))
                                && !raw.is_null()
                            {
                                if field.is_number() {
                                    system.set_number(field, raw.number(event.chunk));
                                } else {
                                    system.set(field, raw.value(event.chunk));
                                }
                            }
                        }
                    }
                }
            }
            Root::Inline(from, to) => {
                // What can be read of a broken record is read.
                let _ = inline_system(event.chunk, *from, *to, &mut system);
            }
        }
        system
    }

    /// Which template and nested template it has: what has the same number has the same fields, `None` if that cannot be told.
    pub fn program_of(&self, event: &Event<'_>) -> Option<*const Program> {
        match &event.root {
            Root::Instance(program, _) => Some(Arc::as_ptr(program)),
            Root::Inline(..) => None,
        }
    }

    /// Hands over all fields, in order.
    ///
    /// # Errors
    /// If the event cannot be read to its end; what stands before is handed over.
    #[inline]
    pub fn fields(
        &mut self,
        event: &Event<'_>,
        each: &mut impl FnMut(Name<'_>, Value<'_>),
    ) -> Result<(), Fault> {
        let mut unnamed = 0;
        match &event.root {
            Root::Instance(program, count) => {
                self.instance_fields(event.chunk, program, 0, *count, 0, &mut unnamed, each)
            }
            Root::Inline(from, to) => self.inline_fields(event.chunk, *from, *to, 0, &mut unnamed, each),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one step of a recursion")]
    fn instance_fields(
        &mut self,
        chunk: &[u8],
        program: &Program,
        first: usize,
        count: usize,
        depth: usize,
        unnamed: &mut u32,
        each: &mut impl FnMut(Name<'_>, Value<'_>),
    ) -> Result<(), Fault> {
        let mut result = Ok(());
        for item in &program.plan.items {
            match item {
                Item::Nested(number) => {
                    let raw = self.values.get(first..first + count).and_then(|v| v.get(usize::from(*number)));
                    let Some(raw) = raw.copied() else { continue };
                    match raw.document() {
                        Some((from, to)) => {
                            let nested = self.document_fields(chunk, from, to, depth + 1, unnamed, each);
                            result = result.and(nested);
                        }
                        None => {
                            let value = raw.value(chunk);
                            if !value.is_empty() {
                                unnamed_field(value, unnamed, each);
                            }
                        }
                    }
                }
                Item::Field(name, slot, depends) => {
                    let values = self.values.get(first..first + count).unwrap_or(&[]);
                    let absent = |number: &u16| values.get(usize::from(*number)).is_some_and(Raw::is_null);
                    if depends.as_ref().is_some_and(absent) {
                        continue;
                    }
                    let get = |number: u16| {
                        values.get(usize::from(number)).map_or(Value::Null, |raw| raw.value(chunk))
                    };
                    let value = match slot {
                        Slot::Substitution(number) => get(*number),
                        Slot::None => Value::Null,
                        Slot::Literal(text) => Value::Utf8(text),
                        Slot::Mixed(atoms) => {
                            self.scratch.clear();
                            for atom in atoms {
                                match atom {
                                    super::plan::Atom::Text(text) => self.scratch.push_str(text),
                                    super::plan::Atom::Substitution(number) => {
                                        get(*number).push_text(&mut self.scratch)
                                    }
                                }
                            }
                            Value::Utf8(&self.scratch)
                        }
                    };
                    match name {
                        Some(name) => each(Name::Named(name), value),
                        None => unnamed_field(value, unnamed, each),
                    }
                }
            }
        }
        result
    }

    /// Fields of binary XML within a value.
    fn document_fields(
        &mut self,
        chunk: &[u8],
        from: usize,
        to: usize,
        depth: usize,
        unnamed: &mut u32,
        each: &mut impl FnMut(Name<'_>, Value<'_>),
    ) -> Result<(), Fault> {
        if depth > MOST_DEPTH {
            return Err(Fault::Broken(Broken::Deep));
        }
        let at = match chunk.get(from..to) {
            Some([token::FRAGMENT_HEADER, _, _, _, token::TEMPLATE_INSTANCE, ..]) => from + 5,
            // The fragment header may be missing.
            Some([token::TEMPLATE_INSTANCE, ..]) => from + 1,
            _ => return self.inline_fields(chunk, from, to, depth, unnamed, each),
        };
        let (instance, end) = tokens::instance(chunk, at, to).ok_or(Fault::Broken(Broken::Short(at)))?;
        self.nested_instance(chunk, &instance, depth, unnamed, each)?;
        // A forwarded event has its texts behind the instance.
        match chunk.get(end..to) {
            None | Some([] | [token::EOF, ..]) => Ok(()),
            Some(_) => self.inline_fields(chunk, end, to, depth, unnamed, each),
        }
    }

    fn nested_instance(
        &mut self,
        chunk: &[u8],
        instance: &Instance<'_>,
        depth: usize,
        unnamed: &mut u32,
        each: &mut impl FnMut(Name<'_>, Value<'_>),
    ) -> Result<(), Fault> {
        let (program, _) = self.templates.find(chunk, instance.id, instance.definition);
        let first = self.values.len();
        let count = push_values(&mut self.values, instance);
        let result = match program.and_then(|number| self.templates.get(number)).map(Arc::clone) {
            Some(program) => self.instance_fields(chunk, &program, first, count, depth, unnamed, each),
            None => {
                for raw in self.values.get(first..).unwrap_or(&[]) {
                    unnamed_field(raw.value(chunk), unnamed, each);
                }
                Err(Fault::NoTemplate)
            }
        };
        self.values.truncate(first);
        result
    }

    fn inline_fields<'c>(
        &mut self,
        chunk: &'c [u8],
        from: usize,
        to: usize,
        depth: usize,
        unnamed: &mut u32,
        each: &mut impl FnMut(Name<'_>, Value<'_>),
    ) -> Result<(), Fault> {
        if depth == 0 && self.plain_fields(chunk, from, to, unnamed, each) {
            return Ok(());
        }
        let mut found: Vec<(Target, Vec<Literal<'c>>)> = Vec::new();
        let mut collect = |target: Target, pieces: &[Literal<'c>]| {
            if !matches!(target, Target::System(_)) {
                found.push((target, pieces.to_vec()));
            }
        };
        let mut instances = Vec::new();
        let result = inline(chunk, from, to, &mut collect, &mut |instance| instances.push(instance));
        for (target, pieces) in found {
            let mut text = String::new();
            let value = match pieces.as_slice() {
                [] => Value::Null,
                [Literal(value)] => *value,
                many => {
                    many.iter().for_each(|piece| piece.0.push_text(&mut text));
                    Value::Utf8(&text)
                }
            };
            match target {
                Target::Named(name) => each(Name::Named(&name.into()), value),
                Target::Unnamed => unnamed_field(value, unnamed, each),
                Target::Container | Target::System(_) => {}
            }
        }
        for instance in instances {
            if depth > MOST_DEPTH {
                return Err(Fault::Broken(Broken::Deep));
            }
            self.nested_instance(chunk, &instance, depth + 1, unnamed, each)?;
        }
        result.map_err(Fault::Broken)
    }

    /// Fields of XML without a template that has nothing but `System` and `EventData` with `Data` elements, as nearly all of it;
    /// false, and nothing handed over, if it is anything else.
    fn plain_fields(
        &mut self,
        chunk: &[u8],
        from: usize,
        to: usize,
        unnamed: &mut u32,
        each: &mut impl FnMut(Name<'_>, Value<'_>),
    ) -> bool {
        let Some(fields) = plain(chunk, from, to) else { return false };
        // Two of one name are told apart elsewhere.
        let mut names: Vec<&[u8]> = fields.iter().filter_map(|(name, _)| *name).collect();
        names.sort_unstable();
        if names.windows(2).any(|w| matches!(w, [a, b] if a == b)) {
            return false;
        }
        for (name, value) in fields {
            match name {
                Some(name) => {
                    let name = self.templates.name(name);
                    each(Name::Named(&name), value);
                }
                None => unnamed_field(value, unnamed, each),
            }
        }
        true
    }

    /// Bytes and chunk of an event, for other readers of it.
    pub(super) fn parts<'c>(event: &Event<'c>) -> &'c [u8] {
        event.chunk
    }
}

/// A field without a name: each item of an array is one.
#[inline]
fn unnamed_field(value: Value<'_>, unnamed: &mut u32, each: &mut impl FnMut(Name<'_>, Value<'_>)) {
    let mut one = |value: Value<'_>| {
        *unnamed = unnamed.saturating_add(1);
        each(Name::Nth(*unnamed), value);
    };
    match value {
        Value::Array(kind, bytes) if !bytes.is_empty() => Items::of(kind, bytes).for_each(one),
        value => one(value),
    }
}

/// Appends where the values of an instance are.
#[inline]
pub(super) fn push_values(values: &mut Vec<Raw>, instance: &Instance<'_>) -> usize {
    let mut at = instance.values;
    values.extend(instance.descriptors.iter().map(|[low, high, kind, _]| {
        let size = u16::from_le_bytes([*low, *high]);
        // Chunks have 64 KiB.
        let raw = Raw { at: at as u32, size, kind: *kind };
        at += usize::from(size);
        raw
    }));
    instance.descriptors.len()
}

/// A value that stands in XML.
#[derive(Clone, Debug)]
struct Literal<'c>(Value<'c>);

impl Piece for Literal<'_> {
    fn literal(&self) -> Option<String> {
        let mut text = String::new();
        self.0.push_text(&mut text);
        Some(text)
    }
}

/// The system values of XML without a template: those of `System`, whatever stands elsewhere.
fn inline_system<'c>(chunk: &'c [u8], from: usize, to: usize, system: &mut System<'c>) -> Result<(), Broken> {
    let mut tokens = Tokens::new(chunk, from, to, false);
    // Event, System, and the element within.
    let (mut depth, mut in_system) = (0usize, false);
    let (mut element, mut attribute): (&[u8], Option<&[u8]>) = (&[], None);
    while let Some(token) = tokens.next()? {
        match token {
            Token::Open(name, ..) => {
                depth += 1;
                attribute = None;
                let name = name.raw.get(4..).unwrap_or(&[]);
                match depth {
                    2 => in_system = is(name, "System"),
                    3 => element = name,
                    _ => {}
                }
            }
            Token::Attribute(name) => attribute = Some(name.raw.get(4..).unwrap_or(&[])),
            Token::CloseStart => attribute = None,
            Token::CloseEmpty | Token::End => {
                if depth == 2 && in_system {
                    return Ok(());
                }
                depth = depth.saturating_sub(1);
                attribute = None;
            }
            Token::Value(kind, bytes) if in_system && depth == 3 => {
                let field = SystemField::NAMES.iter().find(|(_, own, own_attribute)| {
                    is(element, own)
                        && match (attribute, own_attribute) {
                            (None, None) => true,
                            (Some(name), Some(own)) => is(name, own),
                            _ => false,
                        }
                });
                if let Some((field, ..)) = field {
                    system.set(*field, Value::of(kind, bytes));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Names and values of plain `EventData`; see [`Decoder::plain_fields`].
#[expect(clippy::type_complexity, reason = "used once")]
fn plain(chunk: &[u8], from: usize, to: usize) -> Option<Vec<(Option<&[u8]>, Value<'_>)>> {
    let mut tokens = Tokens::new(chunk, from, to, false);
    let mut fields = Vec::new();
    let mut depth = 0usize;
    let (mut attribute, mut name, mut value) = (false, None, None);
    while let Some(token) = tokens.next().ok()? {
        match token {
            Token::Open(element, ..) => {
                depth += 1;
                let text = element.raw.get(4..)?;
                match depth {
                    1 if is(text, "Event") => {}
                    2 if is(text, "System") => {
                        if !tokens.skip_element(&element) {
                            return None;
                        }
                        depth -= 1;
                    }
                    2 if is(text, "EventData") => {}
                    3 if is(text, "Data") => (name, value) = (None, None),
                    _ => return None,
                }
                attribute = false;
            }
            Token::Attribute(of) => {
                let text = of.raw.get(4..)?;
                match depth {
                    1 | 2 if is(text, "xmlns") => {}
                    3 if is(text, "Name") && name.is_none() => {}
                    _ => return None,
                }
                attribute = true;
            }
            Token::CloseStart => attribute = false,
            Token::Value(ty::STRING, bytes)
                if attribute && depth == 3 && name.is_none() && !bytes.is_empty() =>
            {
                name = Some(bytes);
            }
            Token::Value(..) if attribute && depth < 3 => {}
            Token::Value(kind, bytes) if !attribute && depth == 3 && value.is_none() => {
                value = Some(Value::of(kind, bytes))
            }
            Token::CloseEmpty | Token::End => {
                if depth == 3 {
                    fields.push((name.take(), value.take().unwrap_or(Value::Null)));
                }
                depth = depth.checked_sub(1)?;
                attribute = false;
            }
            _ => return None,
        }
    }
    (depth == 0).then_some(fields)
}

/// True if the UTF-16 text is this ASCII text.
fn is(utf16: &[u8], text: &str) -> bool {
    utf16.len() == text.len() * 2
        && utf16.as_chunks::<2>().0.iter().zip(text.bytes()).all(|(unit, byte)| *unit == [byte, 0])
}

/// Follows XML without a template.
fn inline<'c>(
    chunk: &'c [u8],
    from: usize,
    to: usize,
    found: &mut impl FnMut(Target, &[Literal<'c>]),
    instance: &mut impl FnMut(Instance<'c>),
) -> Result<(), Broken> {
    let mut tokens = Tokens::new(chunk, from, to, false);
    let mut finder = Finder::new();
    let mut depth = 0usize;
    while let Some(token) = tokens.next()? {
        match token {
            Token::Open(name, ..) => {
                depth += 1;
                if depth > MOST_DEPTH {
                    return Err(Broken::Deep);
                }
                finder.open(&name.text(), found);
            }
            Token::Attribute(name) => finder.attribute(&name.text(), found),
            Token::CloseStart => finder.content(found),
            Token::CloseEmpty | Token::End => {
                depth = depth.saturating_sub(1);
                finder.end(found);
            }
            Token::Value(kind, bytes) => finder.piece(Literal(Value::of(kind, bytes))),
            Token::CData(bytes) => finder.piece(Literal(Value::Utf16(bytes))),
            Token::Instance(inner) => instance(inner),
            Token::EntityRef(name) => finder.piece(Literal(Value::Utf8(predefined(&entity(&name.text()))))),
            Token::CharRef(unit) => finder.piece(Literal(Value::Utf8(ascii(unit)))),
            Token::PiTarget(_) | Token::PiData(_) | Token::Substitution(..) => {}
        }
    }
    Ok(())
}

/// A character by its number, as far as it is ASCII; no log was seen with others.
fn ascii(unit: u16) -> &'static str {
    const ALL: &str = "\t\n\r !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
    let c = char::from_u32(u32::from(unit)).unwrap_or('\0');
    ALL.find(c).and_then(|at| ALL.get(at..at + 1)).unwrap_or("\u{FFFD}")
}

/// The text of a predefined entity; no log was seen that defines one of its own.
fn predefined(text: &str) -> &'static str {
    match text {
        "<" => "<",
        ">" => ">",
        "&" => "&",
        "\"" => "\"",
        "'" => "'",
        _ => "\u{FFFD}",
    }
}
