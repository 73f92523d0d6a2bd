//! Texts with inserts: compiled once for a type of event, written for each record without allocating.

mod compile;
mod inserts;
mod maps;
mod parameters;
mod printf;

pub use inserts::{Appended, Inserts};
pub use maps::ValueMap;
pub use parameters::Parameters;

use crate::sid;
use crate::wevt::{InType, OutType};
pub(crate) use compile::TextPart;
use std::sync::Arc;

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

/// Bytes behind which a message is cut off. Records have 64 KB; a hostile text shows the longest of their values thousands of times.
const RENDERED_MAX: usize = 1 << 20;

/// The text of a type of event, ready to be filled in.
#[derive(Debug, Default)]
pub struct EventText {
    pub(crate) parts: Box<[TextPart]>,
    pub(crate) fields: Arc<[FieldInfo]>,
    pub(crate) has_maps: bool,
    pub(crate) parameters: Arc<Parameters>,
    pub(crate) name_sids: bool,
    pub(crate) origin: Origin,
}

impl EventText {
    /// Compiles a message as it stands in a message table, with inserts shown as they are and no parameters.
    #[must_use]
    pub fn parse(message: &str) -> Self {
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
        self.parts.iter().map(TextPart::highest).max().unwrap_or(0)
    }

    /// Appends the message of a record.
    ///
    /// Lines end with `\n`. An insert that the record does not have stays as `%5`, as `EvtFormatMessage` leaves it
    /// (`ERROR_EVT_UNRESOLVED_VALUE_INSERT`).
    pub fn render<I: Inserts + ?Sized>(&self, inserts: &I, out: &mut String) {
        let mut bytes = Vec::new();
        self.append(inserts, &mut bytes);
        match std::str::from_utf8(&bytes) {
            Ok(text) => out.push_str(text),
            Err(_) => out.push_str(&String::from_utf8_lossy(&bytes)),
        }
    }

    /// The same to bytes, which the caller checks once for many texts: they are UTF-8 if those are that `inserts` appends.
    pub fn append<I: Inserts + ?Sized>(&self, inserts: &I, out: &mut Vec<u8>) {
        let start = out.len();
        for part in &self.parts {
            if out.len() - start > RENDERED_MAX {
                return out.extend_from_slice("…".as_bytes());
            }
            match part {
                TextPart::Text(text) => out.extend_from_slice(text.as_bytes()),
                TextPart::Insert(n) => self.insert(usize::from(*n), inserts, out),
                TextPart::Formatted(n, spec) => {
                    let n = usize::from(*n);
                    let mut text = String::new();
                    if spec.write(n, inserts, &mut text) {
                        out.extend_from_slice(text.as_bytes());
                    } else {
                        unresolved(n, out);
                    }
                }
            }
        }
    }

    #[inline]
    fn insert<I: Inserts + ?Sized>(&self, n: usize, inserts: &I, out: &mut Vec<u8>) {
        if self.has_maps && self.mapped(n, inserts, out) {
            return;
        }
        let start = out.len();
        match inserts.append(n, out) {
            Appended::Nothing => unresolved(n, out),
            Appended::Percent => self.parameters.expand(start, self.name_sids, out),
            Appended::Plain if self.name_sids => name_sid(start, out),
            Appended::Plain => {}
        }
    }

    /// Appends the text that the manifest maps the value to, if there is one.
    fn mapped<I: Inserts + ?Sized>(&self, n: usize, inserts: &I, out: &mut Vec<u8>) -> bool {
        let map = self.fields.get(n).and_then(|field| field.map.as_ref());
        let Some((map, number)) = map.zip(inserts.number(n)) else { return false };
        let mut text = String::new();
        let is = map.write(number, &mut text);
        out.extend_from_slice(text.as_bytes());
        is
    }
}

/// Puts the name of a well-known SID in its place, if that is the value that begins at `start`.
fn name_sid(start: usize, out: &mut Vec<u8>) {
    let value = out.get(start..).unwrap_or(&[]);
    if value.starts_with(b"S-1-")
        && let Some(name) = std::str::from_utf8(value).ok().and_then(sid::well_known)
    {
        out.truncate(start);
        out.extend_from_slice(name.as_bytes());
    }
}

/// What stands for a value that is not there.
fn unresolved(n: usize, out: &mut Vec<u8>) {
    use std::io::Write as _;
    let _ = write!(out, "%{}", n.saturating_add(1));
}

#[cfg(test)]
mod tests;
