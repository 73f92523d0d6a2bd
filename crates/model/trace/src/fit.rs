//! Whether payloads fit the layouts by which they are read.
//!
//! A payload that is longer or shorter than its layout is read wrongly, or in part. Records with pointers of another size than their
//! header says are told by the one size that uses up the payload to the byte, if the layout is one that shows it. Fitting costs as much as reading, so of each
//! type the first records are looked at and then every 64th; once one does not fit, all are.

use crate::anomalies::{IDENTITIES_UNREADABLE, PAYLOAD_LEFTOVER, PAYLOAD_SHORTFALL, POINTERS_OF_OTHER_SIZE};
use etwhy_decode::read::Reader;
use etwhy_decode::schema::{DecodedBy, EventSchema, Field, InType};
use etwhy_etl::{Ledger, Record};

/// Records of each type that are looked at before it is every 64th.
const FIRST: u32 = 256;
/// A mask of the records in between.
const BETWEEN: u32 = 63;

/// What is known of the payloads of one type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fit {
    seen: u32,
    /// One did fit, with pointers of the size that its header says.
    fitted: bool,
    /// One did not fit: its layout is not what the payloads have.
    pub(crate) unfit: bool,
}

/// How a payload is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// With pointers of that many bytes.
    Pointers(usize),
    /// Not at all: it would name processes, threads or images that do not exist.
    Never,
}

/// How long a payload is beside its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Exact,
    Longer,
    /// It ends within the field of that number, or before it.
    Shorter(usize),
}

/// Measures payloads.
#[derive(Debug, Default)]
pub(crate) struct Fitting {
    reader: Reader,
}

fn is_text(field: &Field) -> bool {
    matches!(field.in_type, InType::UnicodeString | InType::AnsiString | InType::Binary)
}

/// Whether a payload that fits with pointers of another size has them. A SID has a form that is not met by chance. A text at the end
/// takes whatever is there, also what the fields before it have left by mistake. Numbers alone may be a record that was cut off,
/// where others of its type have the size that they should have.
fn shows_its_size(fields: &[Field], fitted: bool) -> bool {
    fields.iter().any(|f| f.in_type == InType::WbemSid) || !(fitted || fields.iter().any(is_text))
}

/// Only texts at the end are missing, behind a SID, whose form is not met by chance: the numbers are what they seem.
fn lacks_texts_only(fields: &[Field], read: usize) -> bool {
    let Some((there, missing)) = fields.split_at_checked(read) else { return false };
    !missing.is_empty() && missing.iter().all(is_text) && there.iter().any(|f| f.in_type == InType::WbemSid)
}

impl Fitting {
    /// How the payload of a record is to be read. `identity`: it tells of a process, a thread or an image.
    #[inline]
    pub(crate) fn verdict(
        &mut self,
        fit: &mut Fit,
        record: &Record<'_>,
        schema: &EventSchema,
        identity: bool,
        ledger: &mut Ledger,
    ) -> Verdict {
        fit.seen = fit.seen.wrapping_add(1);
        if !(fit.unfit || identity || fit.seen <= FIRST || fit.seen & BETWEEN == 0) {
            return Verdict::Pointers(record.pointer_size());
        }
        self.measure(fit, record, schema, identity, ledger)
    }

    fn measure(
        &mut self,
        fit: &mut Fit,
        record: &Record<'_>,
        schema: &EventSchema,
        identity: bool,
        ledger: &mut Ledger,
    ) -> Verdict {
        let stated = record.pointer_size();
        let length = self.length(record, schema, stated);
        if length == Length::Exact {
            fit.fitted = true;
            return Verdict::Pointers(stated);
        }
        let place = || format!("{} {} version {}", schema.provider, schema.name, record.version());
        let other = if stated == 4 { 8 } else { 4 };
        if schema.decoded_by == DecodedBy::Kernel
            && shows_its_size(&schema.fields, fit.fitted)
            && self.length(record, schema, other) == Length::Exact
        {
            ledger.note(&POINTERS_OF_OTHER_SIZE, 1, place);
            return Verdict::Pointers(other);
        }
        fit.unfit = true;
        let anomaly = if length == Length::Longer { &PAYLOAD_LEFTOVER } else { &PAYLOAD_SHORTFALL };
        ledger.note(anomaly, 1, place);
        // What newer systems append leaves what stands before as it is. 32-bit systems have not grown for long.
        let misread = match length {
            Length::Shorter(read) => !lacks_texts_only(&schema.fields, read),
            _ => stated == 4,
        };
        if identity && misread {
            ledger.note(&IDENTITIES_UNREADABLE, 1, place);
            return Verdict::Never;
        }
        Verdict::Pointers(stated)
    }

    fn length(&mut self, record: &Record<'_>, schema: &EventSchema, pointer_size: usize) -> Length {
        let decoded = self.reader.read(schema, record.payload(), pointer_size);
        let length = match (decoded.truncated, decoded.rest.is_empty()) {
            (true, _) => Length::Shorter(decoded.values.len()),
            (_, false) => Length::Longer,
            _ => Length::Exact,
        };
        self.reader.reuse(decoded);
        length
    }
}
