//! Where the system values of a template's instances stand.
//!
//! Nearly all instances of a template describe their values alike: same types, same sizes. Then the places of the system values are
//! those of the instance before, and reading them is a few loads.

use super::fields::SystemField as S;
use super::plan::{Plan, Slot};
use super::raw::Raw;
use super::system::System;
use super::tokens::{Instance, sum_of_sizes};
use super::value::Value;
use crate::abi::value as ty;
use crate::bytes::same;
use etwhy_base::Bytes as _;

/// System values that are numbers or times.
const NUMBERS: [S; 11] = [
    S::EventId,
    S::Qualifiers,
    S::Version,
    S::Level,
    S::Task,
    S::Opcode,
    S::Keywords,
    S::Time,
    S::RecordId,
    S::Process,
    S::Thread,
];
/// The others.
const TEXTS: [S; 7] =
    [S::Provider, S::ProviderGuid, S::Channel, S::Computer, S::Activity, S::RelatedActivity, S::User];
/// Those of [`TEXTS`] that nearly all records of a template share.
const NAMES: usize = 4;

/// A number: eight bytes at a place, of which some count, or a constant.
#[derive(Clone, Copy, Debug, Default)]
struct Number {
    at: u32,
    present: bool,
    mask: u64,
    constant: u64,
}

/// A text, GUID or SID.
#[derive(Clone, Copy, Debug, Default)]
enum Text {
    #[default]
    None,
    /// That of this entry of [`Plan::system`].
    Literal(usize),
    /// A value: place, size, type.
    Raw(u32, u16, u8),
}

/// Where the system values of instances with the same descriptors stand.
#[derive(Debug)]
pub struct Shape {
    /// The descriptors, up to the last that a system value needs.
    head: Box<[[u8; 4]]>,
    /// Bytes of the values that they describe.
    pub size: usize,
    numbers: [Number; NUMBERS.len()],
    texts: [Text; TEXTS.len()],
    /// Some value is of a type that is read the long way.
    odd: bool,
    /// All numbers stand within 512 bytes.
    near: bool,
    /// Places and sizes of provider, GUID, channel and computer, as far as they are values.
    name_places: Vec<(u32, u16)>,
    /// Their bytes in the instance that was asked for last.
    names: Vec<u8>,
    /// A number that no other names had; 0 if none was asked for.
    identity: u64,
}

/// The descriptors that a shape looks at.
#[inline]
fn head<'i>(instance: &Instance<'i>, plan: &Plan) -> &'i [[u8; 4]] {
    let all = instance.descriptors;
    all.get(..plan.system_values.min(all.len())).unwrap_or(all)
}

fn size_of(descriptor: &[u8; 4]) -> u16 {
    u16::from_le_bytes([descriptor[0], descriptor[1]])
}

impl Shape {
    /// The shape of an instance.
    pub fn from_instance(plan: &Plan, instance: &Instance<'_>) -> Shape {
        let head = head(instance, plan);
        let mut shape = Shape {
            head: head.into(),
            size: head.iter().map(|d| usize::from(size_of(d))).sum(),
            numbers: Default::default(),
            texts: Default::default(),
            odd: false,
            near: false,
            name_places: Vec::new(),
            names: Vec::new(),
            identity: 0,
        };
        for (n, (field, slot)) in plan.system.iter().enumerate() {
            match slot {
                Slot::None | Slot::Mixed(_) => {}
                Slot::Literal(text) => shape.literal(*field, n, text),
                Slot::Substitution(number) => {
                    let at = usize::from(*number);
                    let Some([.., kind, _]) = head.get(at).filter(|[.., kind, _]| *kind != ty::NULL) else {
                        continue;
                    };
                    let before: u32 = head.iter().take(at).map(|d| u32::from(size_of(d))).sum();
                    let size = head.get(at).map_or(0, size_of);
                    shape.value(*field, before, size, *kind);
                }
            }
        }
        shape.near = shape.numbers.iter().all(|number| number.at < 512);
        shape.name_places = shape
            .texts
            .iter()
            .take(NAMES)
            .filter_map(|text| match text {
                Text::Raw(at, size, _) => Some((*at, *size)),
                Text::None | Text::Literal(_) => None,
            })
            .collect();
        shape
    }

    fn literal(&mut self, field: S, n: usize, text: &str) {
        let mut system = System::default();
        system.set(field, Value::Utf8(text));
        let constant = match field {
            S::Time => system.time,
            _ => Value::Utf8(text).number(),
        };
        self.set(
            field,
            Number { at: 0, present: constant.is_some(), mask: 0, constant: constant.unwrap_or(0) },
            Text::Literal(n),
        );
    }

    fn value(&mut self, field: S, at: u32, size: u16, kind: u8) {
        let mask = match (kind, size) {
            (ty::FILE_TIME, 8..) => u64::MAX,
            _ if field == S::Time => 0,
            (ty::UINT8, 1..) => 0xFF,
            (ty::UINT16, 2..) => 0xFFFF,
            (ty::UINT32, 4..) => 0xFFFF_FFFF,
            (ty::UINT64 | ty::HEX_INT64, 8..) => u64::MAX,
            _ => 0,
        };
        self.odd |= mask == 0 && NUMBERS.contains(&field);
        self.set(field, Number { at, present: true, mask, constant: 0 }, Text::Raw(at, size, kind));
    }

    fn set(&mut self, field: S, number: Number, text: Text) {
        for (own, place) in NUMBERS.iter().zip(&mut self.numbers) {
            if *own == field {
                *place = number;
            }
        }
        for (own, place) in TEXTS.iter().zip(&mut self.texts) {
            if *own == field {
                *place = text;
            }
        }
    }

    /// True if the instance describes its values as this shape does.
    #[inline]
    pub fn fits(&self, plan: &Plan, instance: &Instance<'_>) -> bool {
        same(head(instance, plan).as_flattened(), self.head.as_flattened())
    }

    /// Bytes of all values of an instance of this shape.
    #[inline]
    pub fn whole(&self, instance: &Instance<'_>) -> usize {
        let rest = instance.descriptors.get(self.head.len()..).unwrap_or(&[]);
        self.size + sum_of_sizes(rest)
    }

    /// Value `n` of an instance of this shape.
    #[inline]
    pub fn raw(&self, instance: &Instance<'_>, n: usize) -> Option<Raw> {
        let mut at = instance.values;
        let from = if n >= self.head.len() {
            at += self.size;
            self.head.len()
        } else {
            0
        };
        let before = instance.descriptors.get(from..n)?;
        at += sum_of_sizes(before);
        let descriptor = instance.descriptors.get(n)?;
        Some(Raw::new(at, size_of(descriptor), descriptor[2]))
    }

    /// A number for provider, GUID, channel and computer: the same as for the instance before, if those are the same.
    #[inline]
    pub fn identity(&mut self, chunk: &[u8], instance: &Instance<'_>, next: &mut u64) -> u64 {
        let mut rest = self.names.as_slice();
        for (at, size) in &self.name_places {
            let bytes = chunk.sub(instance.values + *at as usize, usize::from(*size)).unwrap_or(&[]);
            match rest.split_at_checked(bytes.len()) {
                Some((own, behind)) if same(own, bytes) => rest = behind,
                _ => return self.other_identity(chunk, instance, next),
            }
        }
        if self.identity == 0 { self.other_identity(chunk, instance, next) } else { self.identity }
    }

    #[cold]
    fn other_identity(&mut self, chunk: &[u8], instance: &Instance<'_>, next: &mut u64) -> u64 {
        self.names.clear();
        for (at, size) in &self.name_places {
            let bytes = chunk.sub(instance.values + *at as usize, usize::from(*size)).unwrap_or(&[]);
            self.names.extend_from_slice(bytes);
        }
        *next += 1;
        self.identity = *next;
        self.identity
    }

    /// The system values of an instance of this shape; `texts`: also provider, channel and computer.
    #[inline(always)]
    pub fn system<'a>(
        &self,
        plan: &'a Plan,
        chunk: &'a [u8],
        instance: &Instance<'_>,
        texts: bool,
    ) -> System<'a> {
        if self.odd {
            return self.system_long(plan, chunk, instance);
        }
        let base = instance.values;
        // Nearly all records have so much behind the first of their values that one look at the chunk's end is enough.
        let window = chunk.get(base..).and_then(<[u8]>::first_chunk::<WINDOW>).filter(|_| self.near);
        match window {
            Some(window) => {
                let number = |place: &Number| u64_within(window, place.at) & place.mask | place.constant;
                self.system_by(plan, chunk, base, texts, number)
            }
            None => self.system_far(plan, chunk, base, texts),
        }
    }

    /// The same, if the values reach far or to the chunk's end.
    #[cold]
    fn system_far<'a>(&self, plan: &'a Plan, chunk: &'a [u8], base: usize, texts: bool) -> System<'a> {
        let number = |place: &Number| {
            let at = base + place.at as usize;
            chunk.u64_at(at).unwrap_or_else(|| last_bytes(chunk, at)) & place.mask | place.constant
        };
        self.system_by(plan, chunk, base, texts, number)
    }

    #[inline(always)]
    fn system_by<'a>(
        &self,
        plan: &'a Plan,
        chunk: &'a [u8],
        base: usize,
        texts: bool,
        number: impl Fn(&Number) -> u64,
    ) -> System<'a> {
        let number = |n: usize| number(&self.numbers[n]);
        let present = |n: usize| self.numbers[n].present.then(|| number(n));
        let text = |n: usize| match self.texts[n] {
            _ if !texts && n < NAMES => Value::Null,
            Text::None => Value::Null,
            Text::Literal(n) => match plan.system.get(n) {
                Some((_, Slot::Literal(text))) => Value::Utf8(text),
                _ => Value::Null,
            },
            Text::Raw(at, size, kind) => Raw::new(base + at as usize, size, kind).value(chunk),
        };
        System {
            provider: text(0),
            provider_guid: text(1),
            channel: text(2),
            computer: text(3),
            activity: text(4),
            related_activity: text(5),
            user: text(6),
            event_id: number(0) as u16,
            qualifiers: present(1).map(|n| n as u16),
            version: number(2) as u8,
            level: number(3) as u8,
            task: number(4) as u16,
            opcode: number(5) as u8,
            keywords: number(6),
            time: present(7),
            record_id: present(8),
            process: present(9).map(|n| n as u32),
            thread: present(10).map(|n| n as u32),
        }
    }

    /// The same whatever the types of the values.
    #[cold]
    fn system_long<'a>(&self, plan: &'a Plan, chunk: &'a [u8], instance: &Instance<'_>) -> System<'a> {
        let mut system = System::default();
        for (field, slot) in &plan.system {
            match slot {
                Slot::None | Slot::Mixed(_) => {}
                Slot::Literal(text) => system.set(*field, Value::Utf8(text)),
                Slot::Substitution(number) => {
                    if let Some(raw) = self.raw(instance, usize::from(*number))
                        && !raw.is_null()
                    {
                        system.set(*field, raw.value(chunk));
                    }
                }
            }
        }
        system
    }
}

/// Bytes of system values that are looked at together.
const WINDOW: usize = 512 + 8;

/// The eight bytes at a place below 512.
#[inline(always)]
fn u64_within(window: &[u8; WINDOW], at: u32) -> u64 {
    // The compiler sees that the place is within the window.
    let at = (at & 511) as usize;
    window[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// What stands at the very end of a chunk; behind it is nothing.
#[cold]
fn last_bytes(chunk: &[u8], at: usize) -> u64 {
    let mut bytes = [0u8; 8];
    for (to, byte) in bytes.iter_mut().zip(chunk.get(at..).unwrap_or(&[])) {
        *to = *byte;
    }
    u64::from_le_bytes(bytes)
}
