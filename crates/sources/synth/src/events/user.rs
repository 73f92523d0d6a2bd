//! TraceLogging events and events of manifest providers.

use super::{Cx, Kind, Site, events};
use crate::engine::Source;
use crate::error::Result;
use crate::hash_text;
use crate::model::{ManifestEvent, TraceLogging};
use crate::value::{Dist, Draw, Exact};
use crate::world::World;
use etwhy_base::Guid;
use etwhy_etl::abi::ext;
use etwhy_etl::abi::header::CHANNEL_TRACELOGGING;
use etwhy_etl::write::{EventHead, TlField, tracelogging_schema, tracelogging_traits};
use std::io;
use toml::Value;

/// A field whose bytes are known or drawn.
#[derive(Clone, Debug)]
enum Data {
    Utf16(String),
    Utf8(String),
    Bool(u32),
    /// Width in bytes and the number.
    Whole(usize, Dist),
    /// Width in bytes and the number, with all its bits.
    Exact(usize, u64),
    F64(Dist),
    F32(Dist),
    Bytes(Vec<u8>),
}

impl Data {
    fn put(&self, out: &mut Vec<u8>, draw: &mut Draw) {
        match self {
            Data::Utf16(text) => {
                text.replace("{n}", &draw.n.to_string())
                    .encode_utf16()
                    .for_each(|u| out.extend(u.to_le_bytes()));
                out.extend([0, 0]);
            }
            Data::Utf8(text) => {
                out.extend(text.replace("{n}", &draw.n.to_string()).bytes());
                out.push(0);
            }
            Data::Bool(value) => out.extend(value.to_le_bytes()),
            Data::Whole(width, dist) => {
                let value = dist.draw(draw).round() as i64;
                out.extend(value.to_le_bytes().iter().take(*width));
            }
            Data::Exact(width, value) => out.extend(value.to_le_bytes().iter().take(*width)),
            Data::F64(dist) => out.extend(dist.draw(draw).to_le_bytes()),
            Data::F32(dist) => out.extend((dist.draw(draw) as f32).to_le_bytes()),
            Data::Bytes(bytes) => out.extend(bytes),
        }
    }

    /// `TlgIn*` and `TlgOut*`.
    fn tracelogging_types(&self) -> (u8, u8) {
        match self {
            Data::Utf16(_) => (1, 0),
            Data::Utf8(_) => (2, 35),
            Data::Bool(_) => (13, 0),
            Data::Whole(1, _) | Data::Exact(1, _) => (4, 0),
            Data::Whole(2, _) | Data::Exact(2, _) => (6, 0),
            Data::Whole(4, _) | Data::Exact(4, _) => (8, 0),
            Data::Whole(..) | Data::Exact(..) => (10, 0),
            Data::F32(_) => (11, 0),
            Data::F64(_) => (12, 0),
            Data::Bytes(bytes) if bytes.len() == 16 => (15, 0),
            Data::Bytes(_) => (14, 0),
        }
    }
}

/// A value: text is UTF-16, a whole number u64, a fraction f64, a boolean bool32; a table with `type` and
/// `value` says exactly. Pointers are as wide as those of the machine.
fn data(value: &Value, pointer: usize) -> Result<Data, String> {
    let Value::Table(table) = value else {
        return match value {
            Value::String(text) => Ok(Data::Utf16(text.clone())),
            Value::Boolean(b) => Ok(Data::Bool(u32::from(*b))),
            Value::Float(_) => Dist::from_value(value).map(Data::F64),
            _ => whole(8, value),
        };
    };
    let Some(kind) = table.get("type") else {
        return Dist::from_value(value).map(|d| Data::Whole(8, d));
    };
    let inner = table.get("value").cloned().unwrap_or(Value::Integer(0));
    let number = || Dist::from_value(&inner);
    let whole = |width| whole(width, &inner);
    let text =
        || inner.as_str().map(String::from).ok_or_else(|| "this type needs value = \"text\"".to_string());
    Ok(match kind.as_str().unwrap_or("") {
        "utf16" | "string" => Data::Utf16(text()?),
        "utf8" | "ansi" => Data::Utf8(text()?),
        "bool" => Data::Bool(u32::from(inner.as_bool().unwrap_or(false))),
        "u8" | "i8" => whole(1)?,
        "u16" | "i16" => whole(2)?,
        "u32" | "i32" | "pid" | "tid" => whole(4)?,
        "pointer" => whole(pointer)?,
        "u64" | "i64" | "filetime" => whole(8)?,
        "f32" => Data::F32(number()?),
        "f64" => Data::F64(number()?),
        "guid" => {
            Data::Bytes(text()?.parse::<Guid>().map_err(|()| "value is no GUID".to_string())?.0.to_vec())
        }
        "hex" => Data::Bytes(hex(&text()?)?),
        "sid" => Data::Bytes(crate::world::parse_sid(&text()?).ok_or_else(|| "value is no SID".to_string())?),
        other => {
            return Err(format!(
                "type = {other:?}: allowed are utf16, utf8, bool, u8 to u64, i8 to i64, f32, f64, pointer, \
                 filetime, guid, sid and hex"
            ));
        }
    })
}

/// A whole number: exact where the text has one, else drawn.
fn whole(width: usize, value: &Value) -> Result<Data, String> {
    match Exact::from_value(value) {
        Some(Exact(number)) => Ok(Data::Exact(width, number)),
        None => Dist::from_value(value).map(|d| Data::Whole(width, d)),
    }
}

/// Bytes of hexadecimal digits; blanks do not count.
pub(super) fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{text:?} has other characters than hexadecimal digits"))?;
    Ok(digits.chunks(2).map(|p| p.iter().fold(0, |sum, d| sum * 16 + *d as u8)).collect())
}

struct User {
    head: EventHead,
    items: Vec<(u16, Vec<u8>)>,
    fields: Vec<Data>,
}

/// The GUID that is given, else one made from the name.
pub(crate) fn guid(text: &Option<String>, name: &str) -> Result<Guid, String> {
    match text {
        Some(text) => text.parse().map_err(|()| format!("{text:?} is no GUID")),
        None => {
            let mut bytes = [0; 16];
            let [a, b] = [hash_text(name), hash_text(&format!("{name}."))].map(u64::to_le_bytes);
            bytes.iter_mut().zip(a.into_iter().chain(b)).for_each(|(to, from)| *to = from);
            Ok(Guid(bytes))
        }
    }
}

fn keyword(given: &Option<Exact>) -> u64 {
    given.map_or(0, |k| k.0)
}

pub(crate) fn tracelogging(t: &TraceLogging, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let fail = |e: String| site.fail(w, e);
    if t.provider.is_empty() || t.name.is_empty() {
        return Err(fail("it needs provider = \"My.Provider\" and name = \"MyEvent\"".into()));
    }
    let pointer = usize::from(w.facts.pointer_size);
    let mut fields = Vec::new();
    let mut schema = Vec::new();
    for (name, value) in &t.fields {
        let field = data(value, pointer).map_err(|e| fail(format!("field {name}: {e}")))?;
        let (in_type, out_type) = field.tracelogging_types();
        if let (Data::Bytes(bytes), 14) = (&field, in_type) {
            // Binary data carries its length.
            let mut counted = (bytes.len() as u16).to_le_bytes().to_vec();
            counted.extend(bytes);
            fields.push(Data::Bytes(counted));
        } else {
            fields.push(field);
        }
        schema.push(TlField { name: name.clone(), in_type, out_type, count: 0 });
    }
    let head = EventHead {
        provider: guid(&t.guid, &t.provider).map_err(fail)?,
        channel: CHANNEL_TRACELOGGING,
        level: t.level.unwrap_or(5),
        opcode: t.opcode.unwrap_or(0),
        keyword: keyword(&t.keyword),
        activity: t.activity.as_ref().map_or(Ok(Guid::ZERO), |a| guid(&Some(a.clone()), "")).map_err(fail)?,
        ..EventHead::default()
    };
    let items = vec![
        (ext::PROV_TRAITS, tracelogging_traits(&t.provider)),
        (ext::EVENT_SCHEMA_TL, tracelogging_schema(&t.name, &schema)),
    ];
    events(site, w, None, Box::new(User { head, items, fields }))
}

pub(crate) fn manifest_event(t: &ManifestEvent, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let fail = |e: String| site.fail(w, e);
    let pointer = usize::from(w.facts.pointer_size);
    let fields =
        t.fields.iter().map(|value| data(value, pointer)).collect::<Result<Vec<_>, _>>().map_err(fail)?;
    let raw = t.payload.as_deref().map(hex).transpose().map_err(fail)?;
    let head = EventHead {
        provider: guid(&Some(t.provider.clone()), "").map_err(fail)?,
        id: t.id,
        version: t.version,
        channel: t.channel,
        level: t.level.unwrap_or(4),
        opcode: t.opcode,
        task: t.task,
        keyword: keyword(&t.keyword),
        activity: t.activity.as_ref().map_or(Ok(Guid::ZERO), |a| guid(&Some(a.clone()), "")).map_err(fail)?,
        ..EventHead::default()
    };
    let mut items = Vec::new();
    if let Some(related) = &t.related_activity {
        items.push((ext::RELATED_ACTIVITYID, guid(&Some(related.clone()), "").map_err(fail)?.0.to_vec()));
    }
    let fields = raw.map(Data::Bytes).into_iter().chain(fields).collect();
    events(site, w, None, Box::new(User { head, items, fields }))
}

impl Kind for User {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let head = EventHead { pid: cx.pid, tid: cx.tid, ..self.head };
        let mut payload = Vec::new();
        for field in &self.fields {
            field.put(&mut payload, &mut cx.draw());
        }
        let items = &self.items;
        cx.user(0, |r, pointer, ticks| {
            r.event(pointer, ticks, &head);
            for (kind, data) in items {
                r.ext(*kind, data);
            }
            r.bytes(&payload)
        })?;
        let name = format!("{}/{}", head.provider, head.id);
        cx.engine.tally("event", &name, &[("count", 1)]);
        cx.stack(0)
    }
}
