//! JSON and XML of all records: what the short way writes is what a plain walk over fields and system values gives, for any number of
//! threads.

use crate::common;
use etwhy_evtx::binxml::{Decoder, Event, Fault, Items, Name, Value, push_hex, time};
use etwhy_evtx::filter::time_of;
use etwhy_evtx::json::Lines;
use etwhy_evtx::read::{LogFile, RecordRef};
use etwhy_evtx::scan::{Reader, ScanOptions, scan};

/// A text as JSON, character by character.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if etwhy_base::is_unsafe(c) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

fn text(value: &Value<'_>) -> String {
    let mut out = String::new();
    value.push_text(&mut out);
    out
}

fn json(value: &Value<'_>) -> String {
    match *value {
        Value::Null => "null".to_owned(),
        Value::Int(_) | Value::UInt(_) | Value::Bool(_) => text(value),
        Value::Real32(x) if x.is_finite() => text(value),
        Value::Real64(x) if x.is_finite() => text(value),
        Value::Array(kind, bytes) => {
            let items: Vec<String> = Items::new(kind, bytes).map(|item| json(&item)).collect();
            format!("[{}]", items.join(","))
        }
        _ => quoted(&text(value)),
    }
}

/// A record as a line of JSON, the plain way.
fn line(decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>) -> String {
    let mut parts = Vec::new();
    {
        let system = decoder.system(event);
        let mut stamp = String::new();
        time::push_file_time(&mut stamp, time_of(&system, record));
        parts.push(format!("\"time\":\"{stamp}\""));
        parts.push(format!("\"record_id\":{}", system.record_id.unwrap_or(record.id)));
        for (name, value) in [
            ("channel", system.channel),
            ("provider", system.provider),
            ("provider_guid", system.provider_guid),
            ("computer", system.computer),
            ("user_sid", system.user),
            ("activity_id", system.activity),
            ("related_activity_id", system.related_activity),
        ] {
            if !matches!(value, Value::Null) {
                parts.push(format!("\"{name}\":{}", quoted(&text(&value))));
            }
        }
        for (name, number) in [
            ("event_id", Some(u64::from(system.event_id))),
            ("qualifiers", system.qualifiers.map(u64::from)),
            ("version", Some(system.version.into())),
            ("level", Some(system.level.into())),
            ("task", Some(system.task.into())),
            ("opcode", Some(system.opcode.into())),
            ("pid", system.process.map(u64::from)),
            ("tid", system.thread.map(u64::from)),
        ] {
            if let Some(number) = number {
                parts.push(format!("\"{name}\":{number}"));
            }
        }
        let mut keywords = String::new();
        push_hex(&mut keywords, system.keywords);
        parts.push(format!("\"keywords\":\"{keywords}\""));
    }
    let mut fields = Vec::new();
    let _ = decoder.fields(event, &mut |name: Name<'_>, value: Value<'_>| {
        let mut own = String::new();
        name.push(&mut own);
        fields.push(format!("{}:{}", quoted(&own), json(&value)));
    });
    parts.push(format!("\"fields\":{{{}}}", fields.join(",")));
    format!("{{{}}}\n", parts.join(","))
}

#[test]
fn lines_of_json_are_those_of_a_plain_walk() {
    let mut lines = Lines::default();
    let mut out = Vec::new();
    let mut records = 0;
    for path in common::logs() {
        common::each(&path, |decoder, record, event| {
            let Ok(event) = event else { return };
            out.clear();
            let _ = lines.push(decoder, record, &event, None, &mut out);
            let expected = line(decoder, record, &event);
            assert_eq!(std::str::from_utf8(&out).unwrap(), expected, "{}: {}", path.display(), record.id);
            records += 1;
        });
    }
    assert!(records > 20_000 || common::logs().is_empty(), "{records}");
}

#[test]
fn references_stand_for_what_acts_on_terminals_and_nothing_else_changes() {
    for path in common::logs() {
        common::each(&path, |decoder, record, event| {
            let Ok(event) = event else { return };
            let (mut plain, mut safe) = (String::new(), Vec::new());
            let (a, b) = (decoder.xml(&event, &mut plain), decoder.push_xml::<true>(&event, &mut safe));
            assert_eq!(a, b);
            let mut expected = String::new();
            for c in plain.chars() {
                if etwhy_base::is_unsafe(c) && !matches!(c, '\n' | '\t') {
                    expected.push_str(&format!("&#x{:x};", u32::from(c)));
                } else {
                    expected.push(c);
                }
            }
            assert_eq!(String::from_utf8(safe).unwrap(), expected, "{}: {}", path.display(), record.id);
        });
    }
}

/// Both texts of all records.
#[derive(Default)]
struct Both(Lines, Vec<u8>);

impl Reader for Both {
    type Output = Vec<u8>;

    const CHUNKS: usize = 3;

    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        let event = event?;
        let json = self.0.push(decoder, record, &event, None, &mut self.1);
        json.and(decoder.push_xml::<true>(&event, &mut self.1))
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.1)
    }
}

#[test]
fn threads_change_nothing() {
    for path in common::logs() {
        let log = LogFile::open(&path, &path).unwrap();
        let [one, two, seven] = [1, 2, 7].map(|threads| {
            let mut all = Vec::new();
            let options = ScanOptions { threads, in_order: true };
            scan(&log, &options, Both::default, |part| {
                all.extend_from_slice(&part);
                true
            })
            .unwrap();
            all
        });
        assert!(one == two && one == seven, "{}", path.display());
    }
}
