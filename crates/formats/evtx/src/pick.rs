//! Picks records: the one way from a filter to a decision, for all that reads records.

use crate::binxml::{Decoder, Event, Fault, Name, System, Value, time};
use crate::filter::{Filter, searchable, time_of};
use crate::read::RecordRef;
use crate::render::Renderer;
use etwhy_messages::winmeta;

/// Decides about records, one for each thread. Lines, JSON, XML, CSV, counts and tables all ask it, so that they have the same records.
///
/// A record that cannot be read is never asked about: it is in none of them, and the ledger counts it.
pub struct Picker<'f> {
    filter: &'f Filter,
    all: bool,
    /// Renders messages that are searched.
    renderer: Option<Renderer<'f>>,
    text: String,
    message: String,
}

impl<'f> Picker<'f> {
    /// Picks what the filter wants.
    pub fn new(filter: &'f Filter) -> Picker<'f> {
        let searched = filter.messages.as_deref().filter(|_| filter.grep.is_some());
        Picker {
            filter,
            all: filter.is_empty(),
            renderer: searched.map(Renderer::new),
            text: String::new(),
            message: String::new(),
        }
    }

    /// True if all records are wanted.
    #[inline]
    pub fn takes_all(&self) -> bool {
        self.all
    }

    /// True if the record is wanted.
    ///
    /// # Errors
    /// If a condition or a text asks for what cannot be read; then the record is not wanted.
    #[inline]
    pub fn takes(
        &mut self,
        decoder: &mut Decoder,
        event: &Event<'_>,
        record: &RecordRef,
    ) -> Result<bool, Fault> {
        if self.all {
            return Ok(true);
        }
        Ok(self.filter.wants(&decoder.system(event), record)
            && self.filter.conditions_hold(decoder, event)?
            && self.has_text(decoder, event, record)?)
    }

    /// True if the text that is looked for is in the record.
    fn has_text(
        &mut self,
        decoder: &mut Decoder,
        event: &Event<'_>,
        record: &RecordRef,
    ) -> Result<bool, Fault> {
        let Some(wanted) = &self.filter.grep else { return Ok(true) };
        self.text.clear();
        head(&mut self.text, &decoder.system(event), record);
        if let Some(renderer) = &mut self.renderer {
            self.message.clear();
            if renderer.message(decoder, event, &mut self.message)? {
                self.text.push_str(&self.message);
            }
        }
        let text = &mut self.text;
        decoder.fields(event, &mut |name: Name<'_>, value: Value<'_>| {
            text.push(' ');
            name.push(text);
            text.push('=');
            value.push_text(text);
        })?;
        Ok(searchable(&self.text).contains(wanted.as_str()))
    }
}

/// Time, level, provider, event id, channel, computer and user.
fn head(text: &mut String, system: &System<'_>, record: &RecordRef) {
    time::push_file_time(text, time_of(system, record));
    text.push(' ');
    text.push_str(winmeta::level(system.level).unwrap_or(""));
    for value in
        [system.provider, Value::UInt(system.event_id.into()), system.channel, system.computer, system.user]
    {
        text.push(' ');
        value.push_text(text);
    }
    text.push(' ');
}
