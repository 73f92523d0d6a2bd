//! Texts with inserts: compiled once for a type of event, written for each record without allocating.

mod compile;
mod maps;
mod parameters;
mod printf;

pub use maps::ValueMap;
pub use parameters::Parameters;

use crate::sid;
use crate::wevt::{InType, OutType};
pub(crate) use compile::Part;
use std::sync::Arc;

/// The values of a record, in the order of `%1`, `%2`.
pub trait Inserts {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends value `n`, counted from 0, as text; false, and nothing appended, if there is none.
    fn write(&self, n: usize, out: &mut String) -> bool;

    /// Value `n` as a number, if it is one; what `%1!08X!`, maps and bit masks need.
    fn number(&self, n: usize) -> Option<u64>;

    /// False if value `n` is no text, and so can neither name a parameter nor be anything but what it is; a SID is no text.
    fn is_text(&self, n: usize) -> bool {
        let _ = n;
        true
    }

    /// Appends the name of value `n`, if the record names it; for records without a known text.
    fn name(&self, n: usize, out: &mut String) -> bool {
        let _ = (n, out);
        false
    }
}

/// Texts as inserts, for tests and simple callers.
impl Inserts for [&str] {
    fn len(&self) -> usize {
        <[&str]>::len(self)
    }

    fn write(&self, n: usize, out: &mut String) -> bool {
        self.get(n).map(|text| out.push_str(text)).is_some()
    }

    fn number(&self, n: usize) -> Option<u64> {
        let text = self.get(n)?;
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok().or_else(|| text.parse::<i64>().ok().map(i64::cast_unsigned)),
        }
    }
}

/// A field of an event, as its manifest declares it.
#[derive(Debug, Clone)]
pub struct FieldInfo {
    /// Name.
    pub name: String,
    /// How it is stored.
    pub in_type: InType,
    /// How it is shown.
    pub out_type: OutType,
    /// Texts of its values, if the manifest maps them.
    pub map: Option<Arc<ValueMap>>,
}

/// Where a text comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Name of the file, such as `adtschema.dll`.
    pub file: String,
    /// Id of the message in it.
    pub message: u32,
    /// Its language (LCID).
    pub language: u16,
    /// Nothing names the file for this provider; it was taken because it is the only candidate.
    pub guessed: bool,
}

/// The text of a type of event, ready to be filled in.
#[derive(Debug, Default)]
pub struct EventText {
    pub(crate) parts: Box<[Part]>,
    pub(crate) fields: Arc<[FieldInfo]>,
    pub(crate) has_maps: bool,
    pub(crate) parameters: Arc<Parameters>,
    pub(crate) name_sids: bool,
    pub(crate) origin: Origin,
}

impl EventText {
    /// Compiles a message as it stands in a message table, with inserts shown as they are and no parameters.
    #[must_use]
    pub fn of(message: &str) -> Self {
        Self::compile(message, Arc::default(), Arc::from(Vec::new()), false, Origin::default())
    }

    /// Compiles a message.
    pub(crate) fn compile(
        message: &str,
        parameters: Arc<Parameters>,
        fields: Arc<[FieldInfo]>,
        name_sids: bool,
        origin: Origin,
    ) -> Self {
        let parts = compile::compile(message, &|id| parameters.get(id));
        Self {
            parts,
            has_maps: fields.iter().any(|f| f.map.is_some()),
            fields,
            parameters,
            name_sids,
            origin,
        }
    }

    /// The fields that the manifest declares, in the order of inserts; none for classic providers.
    #[must_use]
    pub fn fields(&self) -> &[FieldInfo] {
        &self.fields
    }

    /// Where the text comes from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The highest insert that the text shows, counted from 1; 0 if it shows none.
    #[must_use]
    pub fn inserts(&self) -> usize {
        self.parts.iter().map(Part::highest).max().unwrap_or(0)
    }

    /// Appends the message of a record.
    ///
    /// Lines end with `\n`. An insert that the record does not have stays as `%5`, as `EvtFormatMessage` leaves it
    /// (`ERROR_EVT_UNRESOLVED_VALUE_INSERT`).
    pub fn render<I: Inserts + ?Sized>(&self, inserts: &I, out: &mut String) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Insert(n) => self.insert(usize::from(*n), inserts, out),
                Part::Formatted(n, spec) => {
                    let n = usize::from(*n);
                    let start = out.len();
                    if !spec.write(n, inserts, out) {
                        out.truncate(start);
                        unresolved(n, out);
                    }
                }
            }
        }
    }

    fn insert<I: Inserts + ?Sized>(&self, n: usize, inserts: &I, out: &mut String) {
        if self.has_maps
            && let Some(map) = self.fields.get(n).and_then(|field| field.map.as_ref())
            && let Some(number) = inserts.number(n)
            && map.write(number, out)
        {
            return;
        }
        let start = out.len();
        if !inserts.write(n, out) {
            unresolved(n, out);
            return;
        }
        if !self.name_sids && !inserts.is_text(n) {
            return;
        }
        let Some(value) = out.get(start..) else { return };
        if value.as_bytes().contains(&b'%') {
            self.parameters.expand(start, self.name_sids, out);
        } else if self.name_sids
            && value.starts_with("S-1-")
            && let Some(name) = sid::well_known(value)
        {
            out.truncate(start);
            out.push_str(name);
        }
    }
}

/// What stands for a value that is not there.
fn unresolved(n: usize, out: &mut String) {
    use std::fmt::Write as _;
    let _ = write!(out, "%{}", n.saturating_add(1));
}

#[cfg(test)]
mod tests;
