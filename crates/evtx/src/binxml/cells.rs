//! Fields of events that stand side by side: names that are known before, and values as they are.

use super::event::{Decoder, Event, Raw, Root, push_values};
use super::plan::{Item, Plan, Slot};
use super::tokens;
use super::value::Value;
use crate::abi::{token, value as ty};
use std::sync::Arc;

/// A field: its name, and which value it has.
#[derive(Clone, Debug)]
pub struct Cell {
    /// `None` for the n-th of those without.
    pub name: Option<Arc<str>>,
    /// Number of the value, or [`Cell::NOTHING`].
    pub(super) value: u16,
    /// It is left out if its value is null.
    pub optional: bool,
    /// It belongs to the text that came with a forwarded event.
    pub forwarded: bool,
}

/// Fields of a layout; more are read the long way.
const MOST: usize = 2048;

impl Cell {
    /// It has no value.
    pub(super) const NOTHING: u16 = u16::MAX;

    pub(super) fn new(name: Option<Arc<str>>, value: u16, optional: bool) -> Cell {
        let forwarded = name.as_ref().is_some_and(|name| name.starts_with("RenderingInfo."));
        Cell { name, value, optional, forwarded }
    }

    /// True if these can be read as cells: all have names or none has.
    pub(super) fn are_simple(cells: &[Cell]) -> bool {
        let named = cells.iter().filter(|cell| cell.name.is_some()).count();
        cells.len() <= MOST && (named == 0 || named == cells.len())
    }

    /// The cells of a template, if it has nothing else.
    pub(super) fn of(plan: &Plan) -> Option<Box<[Cell]>> {
        let cell = |item: &Item| match item {
            Item::Field(name, slot, depends) => {
                let value = match slot {
                    Slot::None => Cell::NOTHING,
                    Slot::Substitution(number) => *number,
                    Slot::Literal(_) | Slot::Mixed(_) => return None,
                };
                let simple = depends.is_none_or(|number| number == value && name.is_some());
                simple.then(|| Cell::new(name.clone(), value, depends.is_some()))
            }
            Item::Nested(_) => None,
        };
        let cells: Option<Box<[Cell]>> = plan.items.iter().map(cell).collect();
        cells.filter(|cells| Cell::are_simple(cells))
    }
}

/// The fields of an event.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    /// What has the same number has the same fields.
    pub layout: u64,
    /// The fields.
    pub fields: &'a [Cell],
    chunk: &'a [u8],
    values: &'a [Raw],
}

impl<'a> Cells<'a> {
    /// Type and size of a field, and what stands in the chunk from there on.
    #[inline]
    pub fn raw(&self, cell: &Cell) -> (u8, usize, &'a [u8]) {
        self.values.get(usize::from(cell.value)).map_or((ty::NULL, 0, &[]), |raw| raw.tail(self.chunk))
    }

    /// A field.
    #[inline]
    pub fn value(&self, cell: &Cell) -> Value<'a> {
        let (kind, size, tail) = self.raw(cell);
        Value::of(kind, tail.get(..size).unwrap_or(&[]))
    }

    /// True if each field is an insert of the event's message, in order.
    #[inline]
    pub fn are_inserts(&self) -> bool {
        self.fields.iter().all(|cell| !(cell.forwarded || cell.optional && self.raw(cell).0 == ty::NULL))
    }
}

impl Decoder {
    /// The fields of an event as cells; `None` if it has others, or if they cannot be read: [`Decoder::fields`] reads those.
    #[inline]
    pub fn cells<'a>(&'a mut self, event: &Event<'a>) -> Option<Cells<'a>> {
        let chunk = Decoder::parts(event);
        match &event.root {
            Root::Pattern(at, ..) => {
                let pattern = self.patterns.get(*at).filter(|pattern| pattern.simple)?;
                let unnamed = pattern.cells.first().is_some_and(|cell| cell.name.is_none());
                if unnamed && self.values.iter().any(Raw::is_array) {
                    return None;
                }
                let layout = 1 << 63 | u64::from(pattern.number);
                Some(Cells { layout, fields: &pattern.cells, chunk, values: &self.values })
            }
            Root::Instance(number, shape, instance) => {
                let (program, shape) = self.templates.shape(*number, *shape)?;
                let nested = match program.plan.items.as_slice() {
                    [Item::Nested(number)] => Some(shape.raw(instance, usize::from(*number))?),
                    _ => None,
                };
                self.values.clear();
                let mut layout = u64::from(*number) << 32;
                let mut of = *number;
                match nested.map(|raw| (raw.document(), raw)) {
                    Some((Some((from, to)), _)) => {
                        let at = match chunk.get(from..to) {
                            Some([token::FRAGMENT_HEADER, _, _, _, token::TEMPLATE_INSTANCE, ..]) => from + 5,
                            Some([token::TEMPLATE_INSTANCE, ..]) => from + 1,
                            _ => return None,
                        };
                        let (instance, end) = tokens::instance(chunk, at, to)?;
                        if !matches!(chunk.get(end..to), None | Some([] | [token::EOF, ..])) {
                            return None;
                        }
                        of = self.templates.find(chunk, instance.id, instance.definition).0?;
                        layout |= u64::from(of.wrapping_add(1));
                        push_values(&mut self.values, &instance);
                    }
                    Some((None, raw)) => {
                        let none = raw.value(chunk).is_empty();
                        return none.then_some(Cells { layout, fields: &[], chunk, values: &[] });
                    }
                    None => {
                        push_values(&mut self.values, instance);
                    }
                }
                let fields = self.templates.get(of)?.plan.cells.as_deref()?;
                let unnamed = fields.first().is_some_and(|cell| cell.name.is_none());
                // Each item of an array without a name is a field.
                if unnamed && self.values.iter().any(Raw::is_array) {
                    return None;
                }
                Some(Cells { layout, fields, chunk, values: &self.values })
            }
            Root::Inline(..) => None,
        }
    }
}
