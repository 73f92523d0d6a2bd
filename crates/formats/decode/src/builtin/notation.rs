//! The text form of the manifests that ship, a line for each event; it resembles that of the kernel layouts.
//!
//! ```text
//! provider <guid> <name>
//! map <Name> <value>=<word> …        names of values        bits <Name> … names of bits
//! set <Name> | <fields>              fields that several events share, used as &Name
//! <id> v<version,…> <Task/Opcode> | <fields>     <Task/Opcode>#<n> when the opcode number n tells it apart
//! ```
//! `seen <id.version> …` behind a provider's events marks layouts that were compared with real traces.
//! A line that starts with white space continues the one before, `#` at the start of a line is a remark.
//! A line without `|` and one with `-` behind it is an event without fields, `?` says that only its name is known.
//! Fields are separated by `;`: `type Name`, `type[n] Name`, `type[Field] Name`, `type[] Name` (to the end),
//! `type Name:Map`, `{ fields }[Field] Name`. Types: u8…u64 i8…i64 x32 x64 (hex) f32 f64 bool (32 bits) p z
//! guid filetime sid wsz sz pid tid ip4 port ntstatus hresult bytes[n] bytes[Field], char16[n] and
//! char16[Field] (so many UTF-16 units).

use crate::manifest::{ManifestEvent, ProviderManifest};
use crate::names::event_name;
use crate::scalar::out;
use crate::schema::{Count, DecodedBy, EventSchema, Field, InType, Length, ValueMap};
use foldhash::HashMap;
use std::sync::Arc;

/// Parses one file; a message for each line that was skipped.
pub(super) fn parse(text: &str) -> (Vec<ProviderManifest>, Vec<String>) {
    let mut file = File::default();
    let mut bad = Vec::new();
    for line in logical_lines(text) {
        if let Err(why) = file.line(&line) {
            bad.push(format!("{why}: {line}"));
        }
    }
    (file.providers, bad)
}

fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')) {
        match lines.last_mut().filter(|_| line.starts_with(' ')) {
            Some(last) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            None => lines.push(line.trim().to_owned()),
        }
    }
    lines
}

#[derive(Default)]
struct File {
    providers: Vec<ProviderManifest>,
    maps: HashMap<String, Arc<ValueMap>>,
    sets: HashMap<String, Vec<Field>>,
}

impl File {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').ok_or("one word only")?;
        match word {
            "provider" => {
                let (guid, name) = rest.split_once(' ').ok_or("provider without a name")?;
                let guid = guid.parse().map_err(|()| "not a GUID")?;
                self.providers.push(ProviderManifest { guid, name: name.trim().into(), events: Vec::new() });
            }
            "map" | "bits" => {
                let (name, entries) = rest.split_once(' ').ok_or("empty map")?;
                let map = ValueMap {
                    name: name.into(),
                    bitmap: word == "bits",
                    entries: entries
                        .split_whitespace()
                        .map(entry)
                        .collect::<Option<_>>()
                        .ok_or("not value=name")?,
                };
                self.maps.insert(name.to_owned(), Arc::new(map));
            }
            "set" => {
                let (name, fields) = rest.split_once('|').ok_or("set without fields")?;
                let fields = self.fields(fields)?;
                self.sets.insert(name.trim().to_owned(), fields);
            }
            "seen" => self.seen(rest)?,
            _ => self.event(word, rest)?,
        }
        Ok(())
    }

    fn seen(&mut self, list: &str) -> Result<(), String> {
        let provider = self.providers.last_mut().ok_or("in front of the first provider")?;
        for word in list.split_whitespace() {
            let (id, version) = word.split_once('.').ok_or("not id.version")?;
            let event = provider
                .events
                .iter_mut()
                .find(|e| id.parse() == Ok(e.id) && version.parse() == Ok(e.version))
                .ok_or_else(|| format!("no event {word}"))?;
            Arc::make_mut(&mut event.schema).verified = true;
        }
        Ok(())
    }

    fn event(&mut self, id: &str, rest: &str) -> Result<(), String> {
        let id: u16 = id.parse().map_err(|_| "not an id")?;
        let (head, fields) = rest.split_once('|').unwrap_or((rest, ""));
        let (versions, name) = head.trim().split_once(' ').ok_or("event without a name")?;
        let versions = versions.strip_prefix('v').ok_or("no version")?;
        let (name, number) = match name.trim().split_once('#') {
            Some((name, number)) => (name, number.parse().map_err(|_| "not an opcode")?),
            None => (name.trim(), 0u8),
        };
        let (task, opcode) = name.split_once('/').unwrap_or((name, ""));
        let unknown = fields.trim() == "?";
        let fields = if unknown { Vec::new() } else { self.fields(fields)? };
        let provider = self.providers.last_mut().ok_or("event in front of the first provider")?;
        let schema = Arc::new(EventSchema {
            guid: provider.guid,
            provider: Arc::clone(&provider.name),
            name: event_name(task, opcode, "", id),
            task: task.into(),
            opcode: opcode.into(),
            message: "".into(),
            decoded_by: if unknown { DecodedBy::None } else { DecodedBy::Manifest },
            verified: false,
            fields,
        });
        for version in versions.split(',') {
            let version = version.parse().map_err(|_| "not a version")?;
            let schema = Arc::clone(&schema);
            provider.events.push(ManifestEvent { id, version, opcode: number, schema });
        }
        Ok(())
    }

    fn fields(&self, text: &str) -> Result<Vec<Field>, String> {
        let mut fields: Vec<Field> = Vec::new();
        for part in split_fields(text) {
            if part.is_empty() || part == "-" {
                continue;
            }
            if let Some(set) = part.strip_prefix('&') {
                fields.extend(self.sets.get(set).ok_or_else(|| format!("no set {set}"))?.iter().cloned());
            } else {
                let field = self.field(part, &fields)?;
                fields.push(field);
            }
        }
        Ok(fields)
    }

    fn field(&self, text: &str, earlier: &[Field]) -> Result<Field, String> {
        let (kind, name) = text.rsplit_once(' ').ok_or_else(|| format!("not a field: {text}"))?;
        let (name, map) = name.split_once(':').map_or((name, None), |(n, m)| (n, Some(m)));
        let kind = kind.trim();
        let (kind, repeat) = match kind.strip_suffix(']').and_then(|k| k.rsplit_once('[')) {
            Some((kind, repeat)) => (kind.trim(), Some(repeat)),
            None => (kind, None),
        };
        let mut field = Field::plain(name, InType::Struct);
        if let Some(inner) = kind.strip_prefix('{').and_then(|k| k.strip_suffix('}')) {
            field.members = self.fields(inner)?;
        } else {
            (field.in_type, field.out_type) = field_type(kind).ok_or_else(|| format!("no type {kind}"))?;
        }
        if let Some(map) = map {
            field.map = Some(Arc::clone(self.maps.get(map).ok_or_else(|| format!("no map {map}"))?));
        }
        let earlier_index = |word: &str| {
            let at = earlier.iter().position(|f| &*f.name == word);
            at.and_then(|at| u16::try_from(at).ok()).ok_or_else(|| format!("no field {word}"))
        };
        match repeat {
            None => {}
            Some("") => field.count = Count::Rest,
            Some(word) if kind == "bytes" || kind == "char16" => {
                field.length = match word.parse() {
                    Ok(n) => Length::Fixed(n),
                    Err(_) => Length::Field(earlier_index(word)?),
                };
            }
            Some(word) => {
                field.count = match word.parse() {
                    Ok(n) => Count::Fixed(n),
                    Err(_) => Count::Field(earlier_index(word)?),
                };
            }
        }
        Ok(field)
    }
}

/// Splits at semicolons outside of braces.
fn split_fields(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ';' && depth == 0
    })
    .map(str::trim)
    .collect()
}

fn entry(text: &str) -> Option<(u32, Arc<str>)> {
    let (value, name) = text.split_once('=')?;
    let value = match value.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => value.parse().ok()?,
    };
    Some((value, name.into()))
}

fn field_type(word: &str) -> Option<(InType, u16)> {
    use InType::*;
    Some(match word {
        "u8" => (UInt8, 0),
        "u16" => (UInt16, 0),
        "u32" => (UInt32, 0),
        "u64" => (UInt64, 0),
        "i8" => (Int8, 0),
        "i16" => (Int16, 0),
        "i32" => (Int32, 0),
        "i64" => (Int64, 0),
        "x32" => (HexInt32, 0),
        "x64" => (HexInt64, 0),
        "f32" => (Float, 0),
        "f64" => (Double, 0),
        "bool" => (Boolean, 0),
        "p" => (Pointer, 0),
        "z" => (SizeT, 0),
        "guid" => (Guid, 0),
        "filetime" => (FileTime, 0),
        "sid" => (Sid, 0),
        "wsz" | "char16" => (UnicodeString, 0),
        "sz" => (AnsiString, 0),
        "bytes" => (Binary, 0),
        "sockaddr" => (Binary, out::SOCKADDR),
        "ip4" => (IPv4, 0),
        "ip6" => (IPv6, 0),
        "port" => (Port, 0),
        "pid" => (UInt32, 20),
        "tid" => (UInt32, 21),
        "ntstatus" => (UInt32, out::NTSTATUS),
        "hresult" => (UInt32, out::HRESULT),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation() {
        let text = "# remark\nprovider 11111111-2222-3333-4444-555555555555 A-B\nmap M 0=zero 0x10=six\n\
            set S | u32 n; { u16 a; wsz b }[n] s\n7 v0,2 T/Start | &S; u8 k:M;\n  bytes[n] d; p[] rest\n8 v1 Alone";
        let (providers, bad) = parse(text);
        assert!(bad.is_empty(), "{bad:?}");
        let events = &providers[0].events;
        let keys: Vec<_> = events.iter().map(|e| (e.id, e.version, &*e.schema.name)).collect();
        assert_eq!(keys, [(7, 0, "T/Start"), (7, 2, "T/Start"), (8, 1, "Alone")]);
        let fields = &events[0].schema.fields;
        assert_eq!(fields[1].count, Count::Field(0));
        assert_eq!(fields[1].members.len(), 2);
        assert_eq!(fields[2].map.as_ref().map(|m| m.entries.len()), Some(2));
        assert_eq!(fields[3].length, Length::Field(0));
        assert_eq!(fields[4].count, Count::Rest);
    }

    #[test]
    fn bad_lines_are_skipped() {
        let head = "provider 11111111-2222-3333-4444-555555555555 A\n";
        for line in
            ["x", "1 T", "1 vx T", "1 v1 T | u99 a", "1 v1 T | u8 a:No", "1 v1 T | u8[no] a", "map M x"]
        {
            let (providers, bad) = parse(&format!("{head}{line}"));
            assert_eq!((bad.len(), providers[0].events.len()), (1, 0), "{line}");
        }
    }
}
