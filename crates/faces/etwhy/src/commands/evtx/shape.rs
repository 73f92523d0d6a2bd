//! Records as text: lines for people, JSON, CSV, XML.

use etwhy_evtx::binxml::{Decoder, Event, Fault, Name, Value, time};
use etwhy_evtx::filter::Filter;
use etwhy_evtx::filter::time_of;
use etwhy_evtx::json::{Lines, push_fields};
use etwhy_evtx::pick::Picker;
use etwhy_evtx::read::RecordRef;
use etwhy_evtx::render::Renderer;
use etwhy_evtx::scan::Reader;
use etwhy_export::text::truncate_end;
use etwhy_export::{csv_lines, is_unsafe, sanitize};
use etwhy_messages::winmeta;
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line for each, cut to this many columns (0: not cut).
    Lines(usize),
    /// The whole text of each, on several lines.
    Full,
    /// A JSON object on each line.
    Json,
    /// Comma-separated values.
    Csv,
    /// Windows' XML, an event on each line.
    Xml,
}

/// First line of CSV.
pub const CSV_HEAD: &str = "time,record_id,channel,provider,event_id,qualifiers,version,level,task,opcode,keywords,computer,\
                            user_sid,pid,tid,activity_id,message,fields\n";

/// Memory of texts that were written, for those to come: new memory costs more than the text in it.
#[derive(Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Takes a text back that nobody needs any more.
    pub fn give(&self, mut text: Vec<u8>) {
        text.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// Records as text, one for each thread.
pub struct Writer<'w> {
    buffers: &'w Buffers,
    /// How they are written.
    pub shape: Shape,
    /// Which are wanted.
    picker: Picker<'w>,
    /// Renders messages, if they are wanted.
    pub renderer: Option<Renderer<'w>>,
    /// What was written since the last batch.
    pub part: ShapedBatch,
    json: Lines,
    /// A record as text for people, before it is put to the others.
    line: String,
    message: String,
    fields: Vec<u8>,
}

/// What a batch of records became.
#[derive(Default)]
pub struct ShapedBatch {
    /// Their text, in UTF-8.
    pub text: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<usize>,
    /// Largest record number.
    pub last: u64,
}

impl<'w> Writer<'w> {
    /// Writes records so.
    pub fn new(
        shape: Shape,
        filter: &'w Filter,
        renderer: Option<Renderer<'w>>,
        buffers: &'w Buffers,
    ) -> Writer<'w> {
        let picker = Picker::new(filter);
        Writer {
            buffers,
            shape,
            picker,
            renderer,
            part: ShapedBatch::default(),
            json: Lines::default(),
            line: String::new(),
            message: String::new(),
            fields: Vec::new(),
        }
    }

    fn write(&mut self, decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>) -> Result<(), Fault> {
        if !self.picker.takes(decoder, event, record)? {
            return Ok(());
        }
        self.line.clear();
        let result = match self.shape {
            Shape::Xml => decoder.push_xml::<true>(event, &mut self.part.text),
            Shape::Lines(columns) => self.line(decoder, record, event, columns),
            Shape::Full => self.full(decoder, record, event),
            Shape::Json => self.json(decoder, record, event),
            Shape::Csv => self.csv(decoder, record, event),
        };
        self.part.text.extend_from_slice(self.line.as_bytes());
        if self.shape == Shape::Xml {
            self.part.text.push(b'\n');
        }
        self.part.ends.push(self.part.text.len());
        result
    }

    /// The message, or names and values where there is none.
    fn text(&mut self, decoder: &mut Decoder, event: &Event<'_>, separator: &str) -> Result<(), Fault> {
        self.message.clear();
        if let Some(renderer) = &mut self.renderer {
            let found = renderer.message(decoder, event, &mut self.message);
            // On one line the values say more than that there is no text.
            if found? || self.shape == Shape::Full {
                return Ok(());
            }
            self.message.clear();
        }
        let message = &mut self.message;
        decoder.fields(event, &mut |name: Name<'_>, value: Value<'_>| {
            if !message.is_empty() {
                message.push_str(separator);
            }
            name.push(message);
            message.push('=');
            value.push_text(message);
        })
    }

    fn head(&mut self, decoder: &Decoder, record: &RecordRef, event: &Event<'_>) {
        let system = decoder.system(event);
        let level = match &mut self.renderer {
            Some(renderer) => renderer.names(&system).level(system.level).map(str::to_owned),
            None => winmeta::level(system.level).map(str::to_owned),
        };
        let out = &mut self.line;
        let begin = out.len();
        time::push_file_time(out, time_of(&system, record));
        // Milliseconds are enough for people.
        out.truncate(begin + 23);
        out.push_str("Z  ");
        let level = level.unwrap_or_else(|| system.level.to_string());
        out.push_str(&format!("{:<11}  ", sanitize(&level)));
        let mut provider = String::new();
        system.provider.push_text(&mut provider);
        out.push_str(&sanitize(&provider));
        out.push_str(&format!("  {}  ", system.event_id));
    }

    fn line(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: &Event<'_>,
        columns: usize,
    ) -> Result<(), Fault> {
        self.head(decoder, record, event);
        let result = self.text(decoder, event, "  ");
        let out = &mut self.line;
        // Runs of blanks and line ends become one blank.
        let mut blank = false;
        for c in self.message.chars() {
            if c.is_whitespace() {
                blank = true;
                continue;
            }
            if blank && !out.ends_with(' ') {
                out.push(' ');
            }
            blank = false;
            out.push(if is_unsafe(c) { '\u{FFFD}' } else { c });
        }
        if columns > 0 {
            *out = truncate_end(out, columns);
        }
        out.push('\n');
        result
    }

    fn full(&mut self, decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>) -> Result<(), Fault> {
        self.head(decoder, record, event);
        let system = decoder.system(event);
        let task = match &mut self.renderer {
            Some(renderer) => renderer.names(&system).task(system.task).map(str::to_owned),
            None => None,
        };
        let out = &mut self.line;
        let (mut computer, mut channel) = (String::new(), String::new());
        system.computer.push_text(&mut computer);
        system.channel.push_text(&mut channel);
        let task = task.unwrap_or_else(|| system.task.to_string());
        let id = system.record_id.unwrap_or(record.id);
        out.push_str(&format!(
            "{} on {}, record {id}, task {}\n",
            sanitize(&channel),
            sanitize(&computer),
            sanitize(&task)
        ));
        let result = self.text(decoder, event, "\n");
        let out = &mut self.line;
        for line in self.message.lines() {
            out.push_str("    ");
            out.push_str(&sanitize(&line.replace('\t', "    ")));
            out.push('\n');
        }
        result
    }

    fn json(&mut self, decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>) -> Result<(), Fault> {
        let (result, has_message) = match &mut self.renderer {
            Some(renderer) => {
                self.message.clear();
                let found = renderer.message(decoder, event, &mut self.message);
                let has_message = matches!(found, Ok(true));
                (found.map(|_| ()), has_message)
            }
            None => (Ok(()), false),
        };
        let message = has_message.then_some(self.message.as_str());
        let written = self.json.push(decoder, record, event, message, &mut self.part.text);
        result.and(written)
    }

    fn csv(&mut self, decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>) -> Result<(), Fault> {
        let out = &mut self.line;
        {
            let system = decoder.system(event);
            time::push_file_time(out, time_of(&system, record));
            out.push_str(&format!(",{},", system.record_id.unwrap_or(record.id)));
            cell(out, |out| system.channel.push_text(out));
            out.push(',');
            cell(out, |out| system.provider.push_text(out));
            out.push_str(&format!(",{},", system.event_id));
            out.push_str(&system.qualifiers.map(|q| q.to_string()).unwrap_or_default());
            out.push_str(&format!(
                ",{},{},{},{},0x{:x},",
                system.version, system.level, system.task, system.opcode, system.keywords
            ));
            cell(out, |out| system.computer.push_text(out));
            out.push(',');
            cell(out, |out| system.user.push_text(out));
            for n in [system.process, system.thread] {
                out.push(',');
                out.push_str(&n.map(|n| n.to_string()).unwrap_or_default());
            }
            out.push(',');
            cell(out, |out| system.activity.push_text(out));
            out.push(',');
        }
        let mut result = Ok(());
        if let Some(renderer) = &mut self.renderer {
            self.message.clear();
            let found = renderer.message(decoder, event, &mut self.message);
            if matches!(found, Ok(true)) {
                cell(out, |out| out.push_str(&self.message));
            }
            result = found.map(|_| ());
        }
        out.push(',');
        self.fields.clear();
        let read = push_fields::<false>(decoder, event, &mut self.fields);
        cell(out, |out| out.push_str(std::str::from_utf8(&self.fields).unwrap_or_default()));
        out.push('\n');
        result.and(read)
    }
}

/// A cell of CSV: quoted where it must be, and nothing that a spreadsheet would run.
fn cell(out: &mut String, write: impl FnOnce(&mut String)) {
    let begin = out.len();
    write(out);
    if let Some(Cow::Owned(cell)) = out.get(begin..).map(csv_lines) {
        out.truncate(begin);
        out.push_str(&cell);
    }
}

impl Reader for Writer<'_> {
    type Output = ShapedBatch;

    /// The text of a MiB stays in the processor's cache until it is written.
    const CHUNKS: usize = 16;

    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        self.part.last = self.part.last.max(record.id);
        match event {
            Ok(event) => self.write(decoder, record, &event),
            // The scan counts it.
            Err(_) => Ok(()),
        }
    }

    fn finish(&mut self) -> ShapedBatch {
        let next = ShapedBatch { text: self.buffers.take(), ..ShapedBatch::default() };
        std::mem::replace(&mut self.part, next)
    }
}
