//! Records as text: lines for people, JSON, CSV, XML.

use etwhy_evtx::binxml::{Decoder, Event, Fault, Name, System, Value, push_hex, time};
use etwhy_evtx::filter::Filter;
use etwhy_evtx::filter::time_of;
use etwhy_evtx::json::{key, number, push_fields, quoted};
use etwhy_evtx::pick::Picker;
use etwhy_evtx::read::RecordRef;
use etwhy_evtx::render::Renderer;
use etwhy_evtx::scan::Reader;
use etwhy_export::text::truncate_end;
use etwhy_export::{csv_lines, escape_json, is_unsafe, sanitize};
use etwhy_messages::winmeta;
use std::borrow::Cow;

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

/// Records as text, one for each thread.
pub struct Writer<'w> {
    /// How they are written.
    pub shape: Shape,
    /// Which are wanted.
    picker: Picker<'w>,
    /// Renders messages, if they are wanted.
    pub renderer: Option<Renderer<'w>>,
    /// What was written since the last batch.
    pub part: ShapedBatch,
    message: String,
}

/// What a batch of records became.
#[derive(Default)]
pub struct ShapedBatch {
    /// Their text.
    pub text: String,
    /// Where each ends.
    pub ends: Vec<usize>,
    /// Largest record number.
    pub last: u64,
}

impl<'w> Writer<'w> {
    /// Writes records so.
    pub fn new(shape: Shape, filter: &'w Filter, renderer: Option<Renderer<'w>>) -> Writer<'w> {
        let picker = Picker::new(filter);
        Writer { shape, picker, renderer, part: ShapedBatch::default(), message: String::new() }
    }

    fn write(&mut self, decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>) -> Result<(), Fault> {
        if !self.picker.takes(decoder, event, record)? {
            return Ok(());
        }
        let result = match self.shape {
            Shape::Xml => self.xml(decoder, event),
            Shape::Lines(columns) => self.line(decoder, record, event, columns),
            Shape::Full => self.full(decoder, record, event),
            Shape::Json => self.json(decoder, record, event),
            Shape::Csv => self.csv(decoder, record, event),
        };
        if self.shape == Shape::Xml {
            self.part.text.push('\n');
        }
        self.part.ends.push(self.part.text.len());
        result
    }

    /// Windows' XML, in which references stand for what acts on terminals: a carriage return that is none is a line end to parsers.
    fn xml(&mut self, decoder: &mut Decoder, event: &Event<'_>) -> Result<(), Fault> {
        let begin = self.part.text.len();
        let result = decoder.xml(event, &mut self.part.text);
        let acts = |c: char| is_unsafe(c) && !matches!(c, '\n' | '\t');
        if self.part.text.get(begin..).is_some_and(|text| text.contains(acts)) {
            let text = self.part.text.split_off(begin);
            for c in text.chars() {
                if acts(c) {
                    self.part.text.push_str(&format!("&#x{:x};", u32::from(c)));
                } else {
                    self.part.text.push(c);
                }
            }
        }
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
        let out = &mut self.part.text;
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
        let begin = self.part.text.len();
        self.head(decoder, record, event);
        let result = self.text(decoder, event, "  ");
        let out = &mut self.part.text;
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
        if columns > 0
            && let Some(line) = out.get(begin..).map(|line| truncate_end(line, columns))
        {
            out.truncate(begin);
            out.push_str(&line);
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
        let out = &mut self.part.text;
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
        let out = &mut self.part.text;
        for line in self.message.lines() {
            out.push_str("    ");
            out.push_str(&sanitize(&line.replace('\t', "    ")));
            out.push('\n');
        }
        result
    }

    fn json(&mut self, decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>) -> Result<(), Fault> {
        let out = &mut self.part.text;
        let line = out.len();
        out.push('{');
        {
            let system = decoder.system(event);
            key(out, "time");
            quoted(out, |out| time::push_file_time(out, time_of(&system, record)));
            number(out, "record_id", system.record_id.unwrap_or(record.id));
            for (name, value) in texts(&system) {
                if !matches!(value, Value::Null) {
                    key(out, name);
                    quoted(out, |out| value.push_text(out));
                }
            }
            number(out, "event_id", u64::from(system.event_id));
            for (name, n) in numbers(&system) {
                if let Some(n) = n {
                    number(out, name, n);
                }
            }
            key(out, "keywords");
            quoted(out, |out| push_hex(out, system.keywords));
        }
        let mut result = Ok(());
        if let Some(renderer) = &mut self.renderer {
            self.message.clear();
            let found = renderer.message(decoder, event, &mut self.message);
            if matches!(found, Ok(true)) {
                key(out, "message");
                quoted(out, |out| out.push_str(&self.message));
            }
            result = found.map(|_| ());
        }
        key(out, "fields");
        let begin = out.len();
        let fields = push_fields(decoder, event, out);
        if out.len() == begin {
            out.push_str("{}");
        }
        out.push_str("}\n");
        if let Some(json) = out.get(line..).and_then(escape_json) {
            out.truncate(line);
            out.push_str(&json);
        }
        result.and(fields)
    }

    fn csv(&mut self, decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>) -> Result<(), Fault> {
        let out = &mut self.part.text;
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
        let mut fields = String::new();
        let read = push_fields(decoder, event, &mut fields);
        cell(out, |out| out.push_str(&fields));
        out.push('\n');
        result.and(read)
    }
}

fn texts<'s>(system: &System<'s>) -> [(&'static str, Value<'s>); 7] {
    [
        ("channel", system.channel),
        ("provider", system.provider),
        ("provider_guid", system.provider_guid),
        ("computer", system.computer),
        ("user_sid", system.user),
        ("activity_id", system.activity),
        ("related_activity_id", system.related_activity),
    ]
}

fn numbers(system: &System<'_>) -> [(&'static str, Option<u64>); 7] {
    [
        ("qualifiers", system.qualifiers.map(u64::from)),
        ("version", Some(u64::from(system.version))),
        ("level", Some(u64::from(system.level))),
        ("task", Some(u64::from(system.task))),
        ("opcode", Some(u64::from(system.opcode))),
        ("pid", system.process.map(u64::from)),
        ("tid", system.thread.map(u64::from)),
    ]
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
        std::mem::take(&mut self.part)
    }
}
