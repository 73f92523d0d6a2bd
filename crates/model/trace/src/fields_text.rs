//! Payloads as JSON, with a limit on how much longer than the payloads all texts together may get.
//!
//! Names of values and fields come from schemas, which a trace may bring itself: a byte can be shown as 4,000
//! characters. One event stops at a megabyte; thousands of small ones would fill any memory.

use crate::event::Event;
use etwhy_decode::format::{hex_bytes, to_json_within};
use etwhy_decode::json_keys::JsonKeys;
use etwhy_decode::read::{Decoded, Reader};
use etwhy_decode::schema::EventSchema;

/// Bytes of text of one event as long as there is room.
const MOST_TEXT: usize = 1 << 20;
/// Room to begin with.
const FREE: usize = 8 << 20;
/// Room that comes with every event, and with every byte of its payload.
const PER_EVENT: usize = 2048;
const PER_BYTE: usize = 8;

/// Types of events whose names of fields are prepared, and bytes of these names for each: schemas come from the trace.
const MOST_PREPARED: usize = 1 << 14;
const MOST_KEYS: usize = 1 << 12;

/// Makes texts of payloads.
pub(crate) struct FieldsText {
    reader: Reader,
    /// By event type. A type that has a schema keeps it.
    keys: Vec<Option<Option<JsonKeys>>>,
    room: usize,
    /// Where texts are made: those that are kept have no room to spare.
    text: String,
}

impl Default for FieldsText {
    fn default() -> FieldsText {
        FieldsText { reader: Reader::default(), keys: Vec::new(), room: FREE, text: String::new() }
    }
}

impl FieldsText {
    /// The fields as a JSON object, and what `more` makes of them with at most that many bytes.
    pub(crate) fn json<T>(
        &mut self,
        event: &Event<'_>,
        more: impl FnOnce(&EventSchema, &Decoded<'_>, usize) -> Option<(T, usize)>,
    ) -> (Box<str>, Option<T>) {
        let payload = event.payload;
        let own = PER_EVENT.saturating_add(payload.len().saturating_mul(PER_BYTE));
        self.room = self.room.saturating_add(own);
        let limit = self.room.clamp(own, MOST_TEXT.max(own));
        let fields = &mut self.text;
        fields.clear();
        let mut made = None;
        match event.schema {
            Some(schema) => {
                let decoded = self.reader.read(schema, payload, event.pointer_size);
                let keys = keys_of(&mut self.keys, event.type_index as usize, schema);
                to_json_within(fields, schema, keys, &decoded, limit);
                made = more(schema, &decoded, limit);
                self.reader.reuse(decoded);
            }
            None => {
                fields.push_str("{\"raw\":\"");
                hex_bytes(fields, payload);
                fields.push_str("\"}");
            }
        }
        let used = made.as_ref().map_or(0, |(_, bytes)| *bytes).saturating_add(fields.len());
        self.room = self.room.saturating_sub(used);
        (self.text.as_str().into(), made.map(|(made, _)| made))
    }
}

fn keys_of<'k>(
    keys: &'k mut Vec<Option<Option<JsonKeys>>>,
    of: usize,
    schema: &EventSchema,
) -> Option<&'k JsonKeys> {
    if of < MOST_PREPARED && keys.len() <= of {
        keys.resize(of + 1, None);
    }
    keys.get_mut(of)?.get_or_insert_with(|| JsonKeys::prepare(schema, MOST_KEYS)).as_ref()
}
