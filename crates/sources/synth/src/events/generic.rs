//! `[[event]]`: any kernel event, laid out by the project's own kernel layouts.

use super::user::hex;
use super::{Cx, Head, Kind, Site, events, one_of_names};
use crate::engine::Source;
use crate::error::Result;
use crate::model::{Frames, Generic, OneOrMany};
use crate::value::{Dist, Draw, Exact, parse_number};
use crate::world::World;
use etwhy_base::rng::Xoshiro;
use etwhy_decode::kernel::{KernelLayouts, KernelValue, encode};
use etwhy_decode::schema::{EventSchema, InType};
use std::io;
use std::sync::Arc;
use toml::Value;

/// Where a field's value comes from.
enum Content {
    Number(Dist),
    Fixed(KernelValue),
    /// Timestamp so many nanoseconds from the event (negative: before).
    Ticks(Dist),
    /// Ids of the event's own thread.
    Tid,
    Pid,
    /// Innermost address of a stack.
    Frame(usize),
}

struct Any {
    schema: Option<Arc<EventSchema>>,
    raw: Vec<u8>,
    fields: Vec<(String, Content)>,
    hook: u16,
    version: u8,
    head: Head,
}

pub(crate) fn generic(t: &Generic, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let layouts = KernelLayouts::builtin();
    let (group, op) = match (&t.r#type, t.group, t.op) {
        (Some(name), ..) => find(layouts, name).ok_or_else(|| {
            let group = name.split('/').next().unwrap_or("").to_lowercase();
            let mut near: Vec<&str> = layouts.all().map(|s| s.name.as_ref()).collect();
            near.retain(|n| n.to_lowercase().starts_with(&group));
            near.sort_unstable();
            near.dedup();
            near.truncate(60);
            let hint =
                if near.is_empty() { String::new() } else { format!("; known here: {}", near.join(", ")) };
            site.fail(w, format!("unknown kernel event {name:?}{hint}; or give group, op and payload"))
        })?,
        (None, Some(group), Some(op)) => (group, op),
        _ => return Err(site.fail(w, "it needs type = \"Group/Name\", or group and op")),
    };
    // The highest version with a layout of its own; where there is but one layout, what records usually say.
    let newest = (1..=8u8).rev().find(|v| own_layout(layouts, group, op, (*v).into()));
    let version = t.version.or(newest).unwrap_or(if group == 0x04 { 3 } else { 2 });
    let schema = layouts.schema(group, op, version.into()).cloned();
    let raw = t.payload.as_deref().map(hex).transpose().map_err(|e| site.fail(w, e))?;
    let mut fields = Vec::new();
    if raw.is_none() {
        let Some(schema) = &schema else {
            return Err(site
                .fail(w, format!("no layout for group {group} op {op} v{version}; give payload = \"hex\"")));
        };
        for (name, value) in &t.fields {
            let Some(field) = schema.fields.iter().find(|f| f.name.as_ref() == name) else {
                let known = crate::error::one_of(schema.fields.iter().map(|f| f.name.as_ref()));
                return Err(site.fail(w, format!("{} has no field {name}; it has {known}", schema.name)));
            };
            let content = content(value, field.in_type, site, w)?;
            fields.push((name.clone(), content));
        }
    }
    let heads = [("perfinfo", Head::Perf), ("system", Head::System), ("compact", Head::Compact)];
    let head = match &t.header {
        Some(name) => one_of_names("header", name, &heads).map_err(|e| site.fail(w, e))?,
        None => usual_head(group, op),
    };
    let hook = u16::from(group) << 8 | u16::from(op);
    if let Some(schema) = schema.as_ref().filter(|_| raw.is_none()) {
        trial(schema, &fields, w.facts.pointer_size).map_err(|e| site.fail(w, e))?;
    }
    let kind = Any {
        schema: schema.filter(|_| raw.is_none()),
        raw: raw.unwrap_or_default(),
        fields,
        hook,
        version,
        head,
    };
    events(site, w, None, Box::new(kind))
}

/// Lays the first event out, to find values that do not fit their fields while the line is known.
fn trial(schema: &EventSchema, fields: &[(String, Content)], pointer: u8) -> Result<(), String> {
    let mut rng = Xoshiro::seeded(1);
    let mut values: Vec<(&str, KernelValue)> = Vec::new();
    for (name, content) in fields {
        let value = match content {
            Content::Number(dist) => number(dist.draw(&mut Draw { rng: &mut rng, n: 0, x: 0.0 })),
            Content::Fixed(value) => value.clone(),
            Content::Ticks(_) | Content::Tid | Content::Pid | Content::Frame(_) => KernelValue::U64(0),
        };
        values.push((name, narrow(schema, name, value, pointer)));
    }
    encode(schema, pointer.into(), &values).map(|_| ())
}

fn number(drawn: f64) -> KernelValue {
    let whole = drawn.round();
    if whole < 0.0 { KernelValue::I64(whole as i64) } else { KernelValue::U64(whole as u64) }
}

/// Addresses of a 32-bit machine have 32 bits.
fn narrow(schema: &EventSchema, name: &str, value: KernelValue, pointer: u8) -> KernelValue {
    let address = || schema.fields.iter().any(|f| &*f.name == name && f.in_type == InType::Pointer);
    match value {
        KernelValue::U64(wide) if pointer == 4 && address() => KernelValue::U64(wide & 0xFFFF_FFFF),
        other => other,
    }
}

/// Group and type of `Group/Name` or `Name`, whatever the case.
fn find(layouts: &KernelLayouts, name: &str) -> Option<(u8, u8)> {
    if let Some(found) = layouts.find(name) {
        return Some(found);
    }
    let same = |group: u8, ty: u8| {
        let full = layouts.event_name(group, ty).is_some_and(|n| n.eq_ignore_ascii_case(name));
        let parts = || {
            let (a, b) = name.split_once('/')?;
            let named = layouts.group_name(group)?.eq_ignore_ascii_case(a);
            Some(named && layouts.type_name(group, ty)?.eq_ignore_ascii_case(b))
        };
        full || parts() == Some(true)
    };
    (0..=0x40).flat_map(|group| (0..=u8::MAX).map(move |ty| (group, ty))).find(|(g, t)| same(*g, *t))
}

/// True when a version has another layout than the one below it.
fn own_layout(layouts: &KernelLayouts, group: u8, op: u8, version: u16) -> bool {
    let this = layouts.schema(group, op, version);
    let below = layouts.schema(group, op, version - 1);
    matches!((this, below), (Some(a), Some(b)) if !Arc::ptr_eq(a, b))
}

/// The header that records of a type have in real traces, as far as known.
fn usual_head(group: u8, op: u8) -> Head {
    match (group, op) {
        (0x00 | 0x0B | 0x11, _)
        | (0x05, 1..=4 | 69 | 72)
        | (0x01, 12 | 13 | 15)
        | (0x09, _)
        | (0x03, 1 | 2) => Head::System,
        _ => Head::Perf,
    }
}

/// Reads a field's value.
fn content(value: &Value, in_type: InType, site: &Site, w: &mut World) -> Result<Content> {
    let wants_text = matches!(
        in_type,
        InType::UnicodeString | InType::AnsiString | InType::NonNullTerminatedString | InType::UnicodeChar
    );
    match (value, Exact::from_value(value)) {
        (Value::Integer(n), _) if *n < 0 => return Ok(Content::Fixed(KernelValue::I64(*n))),
        (_, Some(Exact(number))) if !wants_text => return Ok(Content::Fixed(KernelValue::U64(number))),
        _ => (),
    }
    let text = match value {
        Value::String(text) => text,
        Value::Boolean(b) => return Ok(Content::Fixed(KernelValue::U64(u64::from(*b)))),
        Value::Array(items) if items.iter().all(Value::is_str) && !items.is_empty() => {
            let stack = Frames(items.iter().filter_map(Value::as_str).map(String::from).collect());
            let at = w.stacks.intern(&stack, 1, &mut w.images, &mut w.processes);
            return at.map(Content::Frame).map_err(|e| site.fail(w, e));
        }
        other => return Dist::from_value(other).map(Content::Number).map_err(|e| site.fail(w, e)),
    };
    if let Some(reference) = text.split_once(':').filter(|(kind, _)| kind.len() > 2)
        && let Some(content) = reference_to(reference, site, w)?
    {
        return Ok(content);
    }
    match text.as_str() {
        "tid" if !wants_text => return Ok(Content::Tid),
        "pid" if !wants_text => return Ok(Content::Pid),
        "now" if !wants_text => return Ok(Content::Ticks(Dist::constant(0.0))),
        _ => (),
    }
    if in_type == InType::Guid {
        let guid = text.parse().map_err(|()| site.fail(w, format!("{text:?} is no GUID")))?;
        return Ok(Content::Fixed(KernelValue::Guid(guid)));
    }
    if in_type == InType::WbemSid || in_type == InType::Sid {
        let sid = crate::world::parse_sid(text).ok_or_else(|| site.fail(w, format!("{text:?} is no SID")))?;
        return Ok(Content::Fixed(KernelValue::Bytes(sid)));
    }
    if in_type == InType::Binary {
        return hex(text).map(|b| Content::Fixed(KernelValue::Bytes(b))).map_err(|e| site.fail(w, e));
    }
    match parse_number(text) {
        Ok(number) if !wants_text && !matches!(in_type, InType::IPv4 | InType::IPv6) => {
            Ok(Content::Number(Dist::constant(number)))
        }
        _ => Ok(Content::Fixed(KernelValue::Text(text.clone()))),
    }
}

/// `thread:app.exe/worker`, `process:app.exe`, `frame:driver.sys!Routine`, `file:C:\x`, `key:HKLM\x`,
/// `ticks:-200us`, `text:anything`.
fn reference_to((kind, name): (&str, &str), site: &Site, w: &mut World) -> Result<Option<Content>> {
    let place = w.place.clone();
    let number = |n: u64| Ok(Some(Content::Fixed(KernelValue::U64(n))));
    match kind {
        "thread" | "tid" => {
            let list = Some(OneOrMany(vec![name.to_string()]));
            let found = if name.contains('/') {
                w.processes.select(None, list.as_ref(), &place, &site.span)?
            } else {
                w.processes.select(list.as_ref(), None, &place, &site.span)?
            };
            number(found.first().map_or(0, |t| w.processes.thread(*t).tid.into()))
        }
        "process" | "pid" => {
            let found =
                w.processes.select(Some(&OneOrMany(vec![name.to_string()])), None, &place, &site.span)?;
            number(found.first().map_or(0, |t| w.processes.thread(*t).pid.into()))
        }
        "frame" => {
            let start = if name.contains("+0x") { name.to_string() } else { format!("{name}+0x0") };
            let at = w.stacks.intern(&Frames(vec![start]), 1, &mut w.images, &mut w.processes);
            at.map(|a| Some(Content::Frame(a))).map_err(|e| site.fail(w, e))
        }
        "file" => {
            let path = w.facts.nt_path(name);
            let at = w.files.intern(&path);
            number(w.files.address(at))
        }
        "key" => {
            let at = w.keys.intern(name);
            number(w.keys.address(at))
        }
        "ticks" => {
            parse_number(name).map(|n| Some(Content::Ticks(Dist::constant(n)))).map_err(|e| site.fail(w, e))
        }
        "text" => Ok(Some(Content::Fixed(KernelValue::Text(name.to_string())))),
        _ => Ok(None),
    }
}

impl Kind for Any {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let mut values: Vec<(&str, KernelValue)> = Vec::new();
        for (name, content) in &self.fields {
            let value = match content {
                Content::Number(dist) => number(dist.draw(&mut cx.draw())),
                Content::Fixed(KernelValue::Text(text)) => {
                    KernelValue::Text(text.replace("{n}", &cx.n.to_string()))
                }
                Content::Fixed(value) => value.clone(),
                Content::Ticks(dist) => {
                    let ns = (dist.draw(&mut cx.draw()) * 1e9) as i64;
                    KernelValue::I64(cx.ticks(ns))
                }
                Content::Tid => KernelValue::U64(cx.tid.into()),
                Content::Pid => KernelValue::U64(cx.pid.into()),
                Content::Frame(stack) => {
                    let stack = cx.engine.world.stacks.list.get(*stack);
                    KernelValue::U64(
                        stack.and_then(|s| s.kernel.first().or(s.user.first())).copied().unwrap_or(0),
                    )
                }
            };
            let value = match &self.schema {
                Some(schema) => narrow(schema, name, value, cx.engine.pointer()),
                None => value,
            };
            values.push((name, value));
        }
        let payload = match &self.schema {
            Some(schema) => encode(schema, cx.engine.pointer().into(), &values)
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?,
            None => self.raw.clone(),
        };
        cx.kernel(self.head, self.hook, self.version, 0, |r| r.bytes(&payload))?;
        let name = format!("{}/{}", self.hook >> 8, self.hook & 0xFF);
        cx.engine.tally("kernel_event", &name, &[("count", 1)]);
        cx.stack(0)
    }
}
