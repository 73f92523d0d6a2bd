//! The third tier: messages, as Event Viewer would show them.

use crate::abi::value as ty;
use crate::binxml::text::push_utf16_bytes;
use crate::binxml::{Cells, Decoder, Event, Fault, Name, System, Value, push_decimal};
use crate::codes::Codes;
use etwhy_messages::{Appended, EventKey, EventText, Inserts, Messages, ProviderNames};
use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The values of an event as texts, one behind the other.
#[derive(Default)]
struct Values {
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
    numbers: Vec<Option<u64>>,
    names: String,
    name_ends: Vec<usize>,
    /// A text that came with the event, as forwarded ones have it.
    own: Option<(usize, usize)>,
}

impl Values {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.numbers.clear();
        self.names.clear();
        self.name_ends.clear();
        self.own = None;
    }

    #[inline]
    fn push(&mut self, name: Name<'_>, value: &Value<'_>) {
        if let Name::Named(name) = name
            && name.starts_with("RenderingInfo.")
        {
            if &**name == "RenderingInfo.Message" {
                // It stands behind the values.
                let begin = self.text.len();
                value.push_text(&mut self.text);
                self.own = Some((begin, self.text.len()));
            }
            return;
        }
        value.push_text(&mut self.text);
        self.ends.push(self.text.len());
        self.numbers.push(number(value));
    }

    fn part<'t>(text: &'t str, ends: &[usize], n: usize) -> Option<&'t str> {
        let from = n.checked_sub(1).and_then(|n| ends.get(n)).copied().unwrap_or(0);
        text.get(from..*ends.get(n)?)
    }
}

impl Inserts for Values {
    fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    fn write(&self, n: usize, out: &mut String) -> bool {
        let text = Values::part(&self.text, &self.ends, n);
        text.map(|text| out.push_str(text)).is_some()
    }

    #[inline]
    fn number(&self, n: usize) -> Option<u64> {
        self.numbers.get(n).copied().flatten()
    }

    fn name(&self, n: usize, out: &mut String) -> bool {
        match Values::part(&self.names, &self.name_ends, n) {
            Some(name) if !name.is_empty() => {
                out.push_str(name);
                true
            }
            _ => false,
        }
    }
}

/// Texts of values that come again and again and take long to write: SIDs, GUIDs, hexadecimal numbers.
struct Texts(Vec<(u8, Vec<u8>, String)>);

/// So many are kept, by some of their bits.
const TEXTS: u32 = 256;

impl Texts {
    /// Appends the text of a value of this type.
    #[inline]
    fn push(&mut self, kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
        let ends = [bytes.first_chunk::<4>(), bytes.last_chunk::<4>()];
        let bits = ends.map(|end| end.map_or(0, |end| u32::from_le_bytes(*end)));
        let at = (bits[0] ^ bits[1].rotate_left(16)).wrapping_mul(0x9E37_79B1) >> 24;
        let Some((known, key, text)) = self.0.get_mut((at % TEXTS) as usize) else { return };
        if *known != kind || key != bytes {
            *known = kind;
            key.clear();
            key.extend_from_slice(bytes);
            text.clear();
            Value::parse(kind, bytes).push_text(text);
        }
        out.extend_from_slice(text.as_bytes());
    }
}

/// The values of an event where they stand.
struct Places<'a>(Cells<'a>, RefCell<&'a mut Texts>);

impl Inserts for Places<'_> {
    fn len(&self) -> usize {
        self.0.fields.len()
    }

    fn write(&self, n: usize, out: &mut String) -> bool {
        let cell = self.0.fields.get(n);
        cell.map(|cell| self.0.value(cell).push_text(out)).is_some()
    }

    #[inline]
    fn append(&self, n: usize, out: &mut Vec<u8>) -> Appended {
        let Some(cell) = self.0.fields.get(n) else { return Appended::Nothing };
        let (kind, size, tail) = self.0.raw(cell);
        let bytes = || tail.get(..size).unwrap_or(&[]);
        match kind {
            ty::STRING => {
                if push_utf16_bytes::<true>(out, tail, size) {
                    return Appended::Percent;
                }
            }
            ty::SID | ty::GUID | ty::HEX_INT32 | ty::HEX_INT64 if size <= 68 => {
                self.1.borrow_mut().push(kind, bytes(), out);
            }
            _ => match Value::parse(kind, bytes()) {
                Value::UInt(number) => push_decimal(out, number),
                other => {
                    let mut text = String::new();
                    other.push_text(&mut text);
                    out.extend_from_slice(text.as_bytes());
                    if text.contains('%') {
                        return Appended::Percent;
                    }
                }
            },
        }
        Appended::Plain
    }

    #[inline]
    fn number(&self, n: usize) -> Option<u64> {
        number(&self.0.value(self.0.fields.get(n)?))
    }
}

/// The value as maps and formats need it.
fn number(value: &Value<'_>) -> Option<u64> {
    match *value {
        Value::UInt(n) | Value::Hex(n) => Some(n),
        Value::Int(n) => Some(n as u64),
        Value::Bool(b) => Some(u64::from(b)),
        _ => None,
    }
}

/// Provider, its GUID and channel as numbers, event id, qualifiers, version.
type Kind = (u32, u32, u32, u16, Option<u16>, u8);

/// What is known of a kind of event.
struct KindTexts {
    text: Option<Arc<EventText>>,
    names: Arc<ProviderNames>,
}

/// Kinds that are found without hashing.
const RECENT: usize = 256;
/// Kinds that are remembered; a log has some hundred.
const MOST: usize = 1 << 16;

/// Renders messages; one for each thread. Texts of a kind of event are looked up once.
pub struct Renderer<'m> {
    messages: &'m Messages,
    codes: Codes,
    known: Vec<KindTexts>,
    index: HashMap<Kind, usize, RandomState>,
    /// What was rendered last, by some bits: identity, event id, version and qualifiers; and what is known of it.
    recent: Box<[((u64, u64), usize)]>,
    values: Values,
    texts: Texts,
    /// A message while it is written.
    bytes: Vec<u8>,
    /// Messages that had no text.
    pub missing: u64,
}

impl<'m> Renderer<'m> {
    /// Renders with these texts.
    pub fn new(messages: &'m Messages) -> Renderer<'m> {
        Renderer {
            messages,
            codes: Codes::default(),
            known: Vec::new(),
            index: HashMap::default(),
            recent: vec![((0, 0), 0); RECENT].into(),
            values: Values::default(),
            texts: Texts(vec![Default::default(); TEXTS as usize]),
            bytes: Vec::new(),
            missing: 0,
        }
    }

    fn key<'k>(system: &System<'_>, provider: &'k str, channel: &'k str) -> EventKey<'k> {
        let guid = match system.provider_guid {
            Value::Guid(guid) => Some(guid),
            Value::Null => None,
            other => {
                let mut text = String::new();
                other.push_text(&mut text);
                text.parse().ok()
            }
        };
        EventKey {
            provider,
            guid,
            event_id: system.event_id,
            qualifiers: system.qualifiers,
            version: system.version,
            channel,
        }
    }

    /// Index of what is known of a kind of event.
    fn known(&mut self, system: &System<'_>) -> usize {
        let (provider, channel) = (self.codes.code_of(&system.provider), self.codes.code_of(&system.channel));
        let guid = self.codes.code_of(&system.provider_guid);
        let key = (provider, guid, channel, system.event_id, system.qualifiers, system.version);
        if let Some(known) = self.index.get(&key) {
            return *known;
        }
        if self.known.len() >= MOST {
            self.known.clear();
            self.index.clear();
            self.recent.fill(((0, 0), 0));
        }
        let event = Self::key(system, self.codes.text(provider), self.codes.text(channel));
        self.known.push(KindTexts {
            text: self.messages.event(&event),
            names: self.messages.names(event.provider, event.guid),
        });
        self.index.insert(key, self.known.len() - 1);
        self.known.len() - 1
    }

    /// The same for an event; provider and channel are not looked at if they are those of a record before.
    #[inline]
    fn known_of(&mut self, decoder: &mut Decoder, event: &Event<'_>) -> usize {
        let Some(identity) = decoder.identity(event) else {
            return self.known(&decoder.system(event));
        };
        let numbers = decoder.numbers(event);
        let (id, version) = (u64::from(numbers.event_id), u64::from(numbers.version));
        let qualifiers = numbers.qualifiers.map_or(0, |q| 1 << 40 | u64::from(q) << 24);
        let key = (identity, id | version << 16 | qualifiers);
        let at = (identity as usize).wrapping_mul(31).wrapping_add(id as usize) % RECENT;
        match self.recent.get(at) {
            Some((known, at)) if *known == key => *at,
            _ => {
                let known = self.known(&decoder.system(event));
                if let Some(place) = self.recent.get_mut(at) {
                    *place = (key, known);
                }
                known
            }
        }
    }

    /// Names of levels, tasks, opcodes and keywords of the event's provider.
    pub fn names(&mut self, system: &System<'_>) -> Arc<ProviderNames> {
        let at = self.known(system);
        self.known.get(at).map(|known| Arc::clone(&known.names)).unwrap_or_default()
    }

    /// Appends the message of an event. Without its text: the text that came with it, else what Event Viewer says and the values.
    /// Gives false if there was no text.
    ///
    /// # Errors
    /// If the event cannot be read to its end; the message has what stands before.
    pub fn message(
        &mut self,
        decoder: &mut Decoder,
        event: &Event<'_>,
        out: &mut String,
    ) -> Result<bool, Fault> {
        let at = self.known_of(decoder, event);
        let text = self.known.get(at).and_then(|known| known.text.as_deref());
        if let Some(text) = text
            && let Some(cells) = decoder.cells(event)
            && cells.are_inserts()
        {
            self.bytes.clear();
            text.append(&Places(cells, RefCell::new(&mut self.texts)), &mut self.bytes);
            // Nothing but UTF-8 is appended; it is checked once for the whole message.
            match simdutf8::basic::from_utf8(&self.bytes) {
                Ok(text) => out.push_str(text),
                Err(_) => out.push_str(&String::from_utf8_lossy(&self.bytes)),
            }
            return Ok(true);
        }
        self.values.clear();
        let values = &mut self.values;
        let result = decoder.fields(event, &mut |name, value| values.push(name, &value));
        if let Some(text) = text {
            text.render(&self.values, out);
            return result.map(|()| true);
        }
        if let Some(text) = self.values.own.and_then(|(from, to)| self.values.text.get(from..to)) {
            out.push_str(text);
            return result.map(|()| true);
        }
        self.missing += 1;
        let values = &mut self.values;
        // The same fault again.
        let _ = decoder.fields(event, &mut |name, _| {
            if let Name::Named(name) = name
                && !name.starts_with("RenderingInfo.")
            {
                values.names.push_str(name);
            }
            values.name_ends.push(values.names.len());
        });
        let system = decoder.system(event);
        let (mut provider, mut channel) = (String::new(), String::new());
        system.provider.push_text(&mut provider);
        system.channel.push_text(&mut channel);
        self.messages.missing(&Self::key(&system, &provider, &channel), &self.values, out);
        result.map(|()| false)
    }
}
