//! Fields of events that stand side by side: names that are known before, and values as they are.

use super::cell::Cell;
use super::event::{Decoder, Event, Root};
use super::plan::Item;
use super::raw::{Raw, push_values};
use super::tokens::{self, Instance};
use super::value::Value;
use crate::abi::{token, value as ty};

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
        Value::parse(kind, tail.get(..size).unwrap_or(&[]))
    }

    /// True if each field is an insert of the event's message, in order.
    #[inline]
    pub fn are_inserts(&self) -> bool {
        self.fields.iter().all(|cell| !(cell.forwarded || cell.optional && self.raw(cell).0 == ty::NULL))
    }
}

/// The fields of an event, to be read one after the other.
#[derive(Clone, Copy)]
pub struct InOrder<'a> {
    cells: Cells<'a>,
    /// Types and sizes of the fields and where the first stands, if there are exactly as many as fields, one behind the other.
    straight: Option<(&'a [[u8; 4]], usize)>,
}

impl<'a> InOrder<'a> {
    /// What has the same number has the same fields.
    #[inline]
    pub const fn layout(&self) -> u64 {
        self.cells.layout
    }

    /// The fields.
    #[inline]
    pub const fn fields(&self) -> &'a [Cell] {
        self.cells.fields
    }

    /// Type and size of each field and what stands in the chunk from there on, if they stand one behind the other.
    #[inline(always)]
    pub fn straight(&self) -> Option<impl Iterator<Item = (u8, usize, &'a [u8])>> {
        let chunk = self.cells.chunk;
        let (descriptors, mut at) = self.straight?;
        Some(descriptors.iter().map(move |[low, high, kind, _]| {
            let size = usize::from(u16::from_le_bytes([*low, *high]));
            let tail = chunk.get(at..).unwrap_or(&[]);
            at += size;
            (*kind, size, tail)
        }))
    }

    /// True if the record says that a field has no value.
    #[inline]
    pub fn is_null(&self, cell: &Cell) -> bool {
        self.cells.values.get(usize::from(cell.value)).is_some_and(Raw::is_null)
    }

    /// The same wherever they stand.
    #[inline]
    pub fn scattered(&self) -> impl Iterator<Item = (u8, usize, &'a [u8])> {
        self.cells.fields.iter().map(|cell| self.cells.raw(cell))
    }
}

/// Where the fields of an instance are.
enum FieldsAt<'c> {
    /// There are none.
    None,
    /// The instance and its template.
    In(Instance<'c>, u32),
    /// XML without a template: its pattern.
    Pattern(usize),
}

impl Decoder {
    /// The fields of an event as cells; `None` if it has others, or if they cannot be read: [`Decoder::fields`] reads those.
    #[inline]
    pub fn cells<'a>(&'a mut self, event: &'a Event<'a>) -> Option<Cells<'a>> {
        let chunk = Decoder::parts(event);
        let (layout, of) = match &event.root {
            Root::Pattern(at, ..) => return self.pattern_cells(chunk, *at, false),
            Root::Instance(number, shape, instance) => match self.place(chunk, *number, *shape, instance)? {
                (layout, FieldsAt::None) => return Some(Cells { layout, fields: &[], chunk, values: &[] }),
                (layout, FieldsAt::In(instance, of)) => {
                    self.values.clear();
                    push_values(&mut self.values, &instance);
                    (layout, of)
                }
                (_, FieldsAt::Pattern(at)) => return self.pattern_cells(chunk, at, true),
            },
            Root::Inline(..) => return None,
        };
        let fields = self.templates.get(of)?.plan.cells.as_deref()?;
        let unnamed = fields.first().is_some_and(|cell| cell.name.is_none());
        // Each item of an array without a name is a field.
        if unnamed && self.values.iter().any(Raw::is_array) {
            return None;
        }
        Some(Cells { layout, fields, chunk, values: &self.values })
    }

    /// The same, to be read one after the other.
    #[inline]
    pub fn cells_in_order<'a>(&'a mut self, event: &'a Event<'a>) -> Option<InOrder<'a>> {
        let chunk = Decoder::parts(event);
        let Root::Instance(number, shape, instance) = &event.root else {
            return self.cells(event).map(|cells| InOrder { cells, straight: None });
        };
        let place = self.place(chunk, *number, *shape, instance)?;
        if let (_, FieldsAt::Pattern(at)) = place {
            return self.pattern_cells(chunk, at, true).map(|cells| InOrder { cells, straight: None });
        }
        if let (layout, FieldsAt::In(instance, of)) = place {
            let plan = &self.templates.get(of)?.plan;
            let fields = plan.cells.as_deref()?;
            // Each item of an array without a name is a field.
            let named = fields.first().is_some_and(|cell| cell.name.is_some());
            let single = named || instance.descriptors.iter().all(|[_, _, kind, _]| kind & ty::ARRAY == 0);
            if plan.straight && single && instance.descriptors.len() >= fields.len() {
                let fields = self.templates.get(of)?.plan.cells.as_deref()?;
                let cells = Cells { layout, fields, chunk, values: &[] };
                return Some(InOrder { cells, straight: Some((instance.descriptors, instance.values)) });
            }
        }
        self.cells(event).map(|cells| InOrder { cells, straight: None })
    }

    #[inline]
    fn pattern_cells<'a>(&'a self, chunk: &'a [u8], at: usize, inner: bool) -> Option<Cells<'a>> {
        let values = if inner { &self.inner } else { &self.values };
        let pattern = self.patterns.get(at).filter(|pattern| pattern.simple)?;
        let unnamed = pattern.cells.first().is_some_and(|cell| cell.name.is_none());
        if unnamed && values.iter().any(Raw::is_array) {
            return None;
        }
        let layout = 1 << 63 | u64::from(pattern.number);
        Some(Cells { layout, fields: &pattern.cells, chunk, values })
    }

    /// Layout of an instance and where its fields are: its own values, or those of the instance that is its only value with fields.
    #[inline]
    fn place<'c>(
        &mut self,
        chunk: &'c [u8],
        number: u32,
        shape: u32,
        instance: &Instance<'c>,
    ) -> Option<(u64, FieldsAt<'c>)> {
        let (program, shape) = self.templates.shape(number, shape)?;
        let layout = u64::from(number) << 32;
        let [Item::Nested(nested)] = program.plan.items.as_slice() else {
            return Some((layout, FieldsAt::In(*instance, number)));
        };
        let raw = shape.raw(instance, usize::from(*nested))?;
        let Some((from, to)) = raw.document() else {
            return raw.value(chunk).is_empty().then_some((layout, FieldsAt::None));
        };
        let at = match chunk.get(from..to) {
            Some([token::FRAGMENT_HEADER, _, _, _, token::TEMPLATE_INSTANCE, ..]) => from + 5,
            Some([token::TEMPLATE_INSTANCE, ..]) => from + 1,
            _ => {
                let chunk_number = self.templates.chunk();
                let mut name = |utf16: &[u8]| self.templates.name(utf16);
                let place = (from, to);
                let at =
                    self.patterns.find(chunk, chunk_number, place, number, &mut self.inner, &mut name)?;
                return Some((layout, FieldsAt::Pattern(at)));
            }
        };
        let (instance, end) = tokens::instance(chunk, at, to)?;
        if !matches!(chunk.get(end..to), None | Some([] | [token::EOF, ..])) {
            return None;
        }
        let of = self.templates.find(chunk, instance.id, instance.definition).0?;
        Some((layout | u64::from(of.wrapping_add(1)), FieldsAt::In(instance, of)))
    }
}
