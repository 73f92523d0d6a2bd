//! Events of records.

use super::fields::{Finder, Name, Piece, SystemField, Target};
use super::pattern::Patterns;
use super::plan::{Atom, Item, Slot, entity};
use super::program::Program;
use super::raw::{Raw, push_values};
use super::system::System;
use super::templates::Templates;
use super::text::is;
use super::tokens::{self, Broken, Instance, MOST_DEPTH, Token, Tokens};
use super::value::{Items, Value};
use crate::abi::token;
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
    /// It has names that are none in XML; its XML is whole, with others in their place.
    OddNames,
}

/// Reads events; one for each thread. It remembers templates from chunk to chunk.
#[derive(Default)]
pub struct Decoder {
    pub(super) templates: Templates,
    pub(super) patterns: Patterns,
    /// Values of the present event, and behind them those of instances within it while they are read.
    pub(super) values: Vec<Raw>,
    /// Values of XML without a template that stands in a value of the present event.
    pub(super) inner: Vec<Raw>,
    /// Text of a value that is made of several.
    scratch: String,
    /// Bytes that the events of the present chunk have handed over.
    pub(super) spent: usize,
}

/// Bytes that the events of a chunk hand over, as fields or as XML. A chunk has 64 KiB, but definitions may name a value or a long name
/// many times, and values inside of values double with each level. What is read as cells is not counted: each layout is small there.
pub(super) const MOST_BYTES: usize = 32 << 20;
/// What a value costs besides its bytes.
const PER_VALUE: usize = 64;

/// An event. It is read as far as it was asked for, before the next one.
#[derive(Clone)]
pub struct Event<'c> {
    chunk: &'c [u8],
    pub(super) root: Root<'c>,
    /// The definition comes from another chunk, because that of this one is damaged.
    pub borrowed: bool,
}

#[derive(Clone)]
pub(super) enum Root<'c> {
    /// An instance of a template: numbers of the template and of the instance's shape.
    Instance(u32, u32, Instance<'c>),
    /// XML without a template that is as others were: the pattern, and the stretch of the chunk. Its values are the decoder's.
    Pattern(usize, usize, usize),
    /// XML without a template, at this stretch of the chunk.
    Inline(usize, usize),
}

impl Decoder {
    /// Another chunk begins.
    pub fn next_chunk(&mut self) {
        self.spent = 0;
        self.templates.next_chunk();
    }

    /// Chunks of this log follow, perhaps after those of another.
    pub fn next_log(&mut self, number: u32) {
        self.templates.next_log(number);
    }

    /// The event whose binary XML stands at `from..to` of the chunk.
    ///
    /// # Errors
    /// If it cannot be read.
    #[inline]
    pub fn event<'c>(&mut self, chunk: &'c [u8], from: usize, to: usize) -> Result<Event<'c>, Fault> {
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
            Some(_) => return Ok(self.inline_event(chunk, from, to)),
        };
        let short = Fault::Broken(Broken::Short(at));
        let instance = tokens::instance_head(chunk, at).ok_or(short)?;
        let (Some(number), borrowed) = self.templates.find(chunk, instance.id, instance.definition) else {
            return Err(tokens::instance(chunk, at, to).map_or(short, |_| Fault::NoTemplate));
        };
        let shape = self.templates.shape_of(number, &instance);
        let size = self.templates.shape(number, shape).map_or(usize::MAX, |(_, s)| s.whole(&instance));
        if instance.values.saturating_add(size) > to {
            return Err(short);
        }
        Ok(Event { chunk, root: Root::Instance(number, shape, instance), borrowed })
    }

    fn inline_event<'c>(&mut self, chunk: &'c [u8], from: usize, to: usize) -> Event<'c> {
        let number = self.templates.chunk();
        let mut name = |utf16: &[u8]| self.templates.name(utf16);
        let found = self.patterns.find(chunk, number, (from, to), 0, &mut self.values, &mut name);
        let root = found.map_or(Root::Inline(from, to), |at| Root::Pattern(at, from, to));
        Event { chunk, root, borrowed: false }
    }

    /// Its system values.
    #[inline]
    pub fn system<'a>(&'a self, event: &'a Event<'_>) -> System<'a> {
        match &event.root {
            Root::Instance(number, shape, instance) => match self.templates.shape(*number, *shape) {
                Some((program, shape)) => shape.system(&program.plan, event.chunk, instance, true),
                None => System::default(),
            },
            other => self.system_without_template(event.chunk, other),
        }
    }

    fn system_without_template<'a>(&'a self, chunk: &'a [u8], root: &Root<'_>) -> System<'a> {
        let mut system = System::default();
        match root {
            Root::Pattern(at, ..) => {
                let fields = self.patterns.get(*at).map_or(&[][..], |pattern| &pattern.system);
                for (field, value) in fields {
                    if let Some(raw) = self.values.get(usize::from(*value)) {
                        system.set(*field, raw.value(chunk));
                    }
                }
            }
            Root::Inline(from, to) => {
                // What can be read of a broken record is read.
                let _ = inline_system(chunk, *from, *to, &mut system);
            }
            Root::Instance(..) => {}
        }
        system
    }

    /// Its system values but provider, GUID, channel and computer, if [`Decoder::identity`] has a number for them.
    #[inline(always)]
    pub fn numbers<'a>(&'a self, event: &'a Event<'_>) -> System<'a> {
        match &event.root {
            Root::Instance(number, shape, instance) => match self.templates.shape(*number, *shape) {
                Some((program, shape)) => shape.system(&program.plan, event.chunk, instance, false),
                None => System::default(),
            },
            other => self.system_without_template(event.chunk, other),
        }
    }

    /// A number for provider, GUID, channel and computer: records with the same number have the same ones. `None` for records without
    /// a template.
    #[inline]
    pub fn identity(&mut self, event: &Event<'_>) -> Option<u64> {
        match &event.root {
            Root::Instance(number, shape, instance) => {
                self.templates.identity(*number, *shape, event.chunk, instance)
            }
            _ => None,
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
            Root::Instance(number, _, instance) => {
                let program = self.templates.get(*number).map(Arc::clone).ok_or(Fault::NoTemplate)?;
                let count = self.take_values(instance);
                self.instance_fields(event.chunk, &program, 0, count, 0, &mut unnamed, each)
            }
            Root::Pattern(at, ..) => {
                let cells = self.patterns.get(*at).map_or(&[][..], |pattern| &pattern.cells);
                for cell in cells {
                    let raw = self.values.get(usize::from(cell.value));
                    let bytes = match &cell.name {
                        Some(name) => name.len().saturating_add(raw.map_or(0, Raw::size)),
                        None => raw.map_or(0, unnamed_size),
                    };
                    spend(&mut self.spent, bytes)?;
                    let value = raw.map_or(Value::Null, |raw| raw.value(event.chunk));
                    match &cell.name {
                        Some(name) => each(Name::Named(name), value),
                        None => unnamed_field(value, &mut unnamed, each),
                    }
                }
                Ok(())
            }
            Root::Inline(from, to) => self.inline_fields(event.chunk, *from, *to, 0, &mut unnamed, each),
        }
    }

    /// Notes the values of an instance, and how many there are.
    pub(super) fn take_values(&mut self, instance: &Instance<'_>) -> usize {
        self.values.clear();
        push_values(&mut self.values, instance)
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
            let values = self.values.get(first..first + count).unwrap_or(&[]);
            spend(&mut self.spent, cost(item, values))?;
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
                                    Atom::Text(text) => self.scratch.push_str(text),
                                    Atom::Substitution(number) => get(*number).push_text(&mut self.scratch),
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
                let spent = &mut self.spent;
                let mut values = self.values.get(first..).unwrap_or(&[]).iter();
                let all = values.try_for_each(|raw| {
                    spend(spent, unnamed_size(raw))?;
                    unnamed_field(raw.value(chunk), unnamed, each);
                    Ok(())
                });
                all.and(Err(Fault::NoTemplate))
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
        let mut found: Vec<(Target, Vec<Literal<'c>>)> = Vec::new();
        let mut collect = |target: Target, pieces: &[Literal<'c>]| {
            if !matches!(target, Target::System(_)) {
                found.push((target, pieces.to_vec()));
            }
        };
        let mut instances = Vec::new();
        let result = inline(chunk, from, to, &mut collect, &mut |instance| instances.push(instance));
        for (target, pieces) in found {
            let name = if let Target::Named(name) = &target { name.len() } else { 0 };
            spend(&mut self.spent, name)?;
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

    /// Bytes and chunk of an event, for other readers of it.
    pub(super) fn parts<'c>(event: &Event<'c>) -> &'c [u8] {
        event.chunk
    }
}

/// Takes a field of so many bytes from what a chunk may hand over.
fn spend(spent: &mut usize, bytes: usize) -> Result<(), Fault> {
    *spent = spent.saturating_add(bytes).saturating_add(PER_VALUE);
    if *spent > MOST_BYTES { Err(Fault::Broken(Broken::Large)) } else { Ok(()) }
}

/// Bytes of a value without a name: each item of an array is a field, and has at least one.
fn unnamed_size(raw: &Raw) -> usize {
    if raw.is_array() { raw.size().saturating_mul(PER_VALUE) } else { raw.size() }
}

/// Bytes of an item: its name and its values.
fn cost(item: &Item, values: &[Raw]) -> usize {
    let raw = |number: &u16| values.get(usize::from(*number));
    let of = |number: &u16| raw(number).map_or(0, Raw::size);
    let name = if let Item::Field(Some(name), ..) = item { name.len() } else { 0 };
    let bytes = match item {
        Item::Nested(number) | Item::Field(None, Slot::Substitution(number), _) => {
            raw(number).map_or(0, unnamed_size)
        }
        Item::Field(Some(_), Slot::Substitution(number), _) => of(number),
        Item::Field(_, Slot::None, _) => 0,
        Item::Field(_, Slot::Literal(text), _) => text.len(),
        Item::Field(_, Slot::Mixed(atoms), _) => {
            let size = |atom: &Atom| match atom {
                Atom::Text(text) => text.len(),
                Atom::Substitution(number) => of(number),
            };
            atoms.iter().map(size).fold(0, usize::saturating_add)
        }
    };
    bytes.saturating_add(name)
}

/// A field without a name: each item of an array is one.
#[inline]
fn unnamed_field(value: Value<'_>, unnamed: &mut u32, each: &mut impl FnMut(Name<'_>, Value<'_>)) {
    let mut one = |value: Value<'_>| {
        *unnamed = unnamed.saturating_add(1);
        each(Name::Nth(*unnamed), value);
    };
    match value {
        Value::Array(kind, bytes) if !bytes.is_empty() => Items::new(kind, bytes).for_each(one),
        value => one(value),
    }
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
                if let Some(field) = SystemField::in_utf16(element, attribute) {
                    system.set(field, Value::parse(kind, bytes));
                }
            }
            _ => {}
        }
    }
    Ok(())
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
            Token::Value(kind, bytes) => finder.piece(Literal(Value::parse(kind, bytes))),
            Token::CData(bytes) => finder.piece(Literal(Value::Utf16(bytes))),
            Token::Instance(inner) => instance(inner),
            Token::EntityRef(name) => finder.piece(Literal(Value::Utf8(predefined(&entity(&name.text()))))),
            Token::CharRef(unit) => finder.piece(Literal(Value::Utf8(ascii(unit)))),
            Token::PiTarget(_) | Token::PiData(_) | Token::Substitution(..) => {}
        }
    }
    // A document that ends within its elements was cut.
    if depth > 0 { Err(Broken::Short(to)) } else { Ok(()) }
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
