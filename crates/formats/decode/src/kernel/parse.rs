//! The text form of layouts. Its notation is explained at the head of every file under `layouts/`.

use super::lines::{head, logical_lines, type_list};
use super::names;
use crate::schema::{Count, Field, InType, Length};
use etwhy_base::Guid;

/// What a section of a file is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SectionKey {
    /// A kernel event group.
    Group(u8),
    /// Classic records of a class GUID.
    Class {
        /// Shown as their provider.
        provider: String,
    },
}

/// A `group` or `class` line and what follows it.
#[derive(Debug)]
pub(super) struct Section {
    pub key: SectionKey,
    pub name: String,
    pub guid: Option<Guid>,
    /// Hook ids outside of the group that mean a type of this group: (hook id, type).
    pub hooks: Vec<(u16, u8)>,
    pub events: Vec<EventLine>,
    /// Types that only have a name.
    pub names: Vec<(u8, String)>,
}

/// One event line.
#[derive(Debug)]
pub(super) struct EventLine {
    pub version: u16,
    pub fields: Vec<Field>,
    pub types: Vec<EventType>,
}

/// One type of an event line.
#[derive(Debug)]
pub(super) struct EventType {
    pub number: u8,
    pub opcode: String,
    /// Known by its opcode name alone.
    pub known_alone: bool,
    /// Compared with real payloads.
    pub verified: bool,
}

/// Parses one file. Returns its sections and a message for each line that was skipped.
pub(super) fn parse(text: &str) -> (Vec<Section>, Vec<String>) {
    let mut sections = Vec::new();
    let mut bad = Vec::new();
    for line in logical_lines(text) {
        if let Err(why) = parse_line(&line, &mut sections) {
            bad.push(format!("{why}: {line}"));
        }
    }
    (sections, bad)
}

fn parse_line(line: &str, sections: &mut Vec<Section>) -> Result<(), String> {
    let (word, rest) = line.split_once(' ').ok_or("one word only")?;
    match word {
        "group" | "class" => {
            sections.push(section(word, rest).ok_or("not a section")?);
            return Ok(());
        }
        _ => {}
    }
    let section = sections.last_mut().ok_or("in front of the first section")?;
    match word {
        "hook" => {
            let (hook, ty) = rest.split_once(' ').ok_or("not a hook")?;
            let hook = u16::from_str_radix(hook, 16).map_err(|_| "not a hook id")?;
            section.hooks.push((hook, ty.parse().map_err(|_| "not a type")?));
        }
        "name" => {
            let (ty, name) = rest.split_once(' ').ok_or("not a name")?;
            section.names.push((ty.parse().map_err(|_| "not a type")?, name.trim().to_string()));
        }
        types => section.events.push(event(types, rest)?),
    }
    Ok(())
}

fn section(word: &str, rest: &str) -> Option<Section> {
    let mut words = rest.split_whitespace();
    let (first, second, third) = (words.next()?, words.next()?, words.next()?);
    let (key, name, guid) = if word == "group" {
        (SectionKey::Group(u8::from_str_radix(first, 16).ok()?), second, third)
    } else {
        (SectionKey::Class { provider: rest.splitn(3, ' ').nth(2)?.to_string() }, second, first)
    };
    // The hypervisor's groups have no GUID that is known.
    let guid = if guid == "-" { None } else { Some(guid.parse::<Guid>().ok()?) };
    Some(Section {
        key,
        name: name.to_string(),
        guid,
        hooks: Vec::new(),
        events: Vec::new(),
        names: Vec::new(),
    })
}

fn event(types: &str, rest: &str) -> Result<EventLine, String> {
    let numbers: Vec<u8> = type_list(types)?;
    let (rest, verified) = match rest.ends_with(']') {
        true => take_verified(rest, &numbers)?,
        false => (rest, Vec::new()),
    };
    let mut parts = rest.splitn(3, '|').map(str::trim);
    let (start, class, layout) = match (parts.next(), parts.next(), parts.next()) {
        (Some(s), Some(c), Some(l)) => (s, c, l),
        _ => return Err("not: types version names | class | fields".into()),
    };
    if class.is_empty() || class.contains(' ') {
        return Err("class name missing".into());
    }
    let (numbers, version, opcodes) = head(types, start)?;
    let types = numbers
        .iter()
        .zip(opcodes)
        .map(|(&number, opcode)| EventType {
            number,
            opcode: opcode.trim_start_matches('*').to_string(),
            known_alone: opcode.starts_with('*'),
            verified: verified.contains(&number),
        })
        .collect();
    let fields = if layout == "-" { Vec::new() } else { fields(layout, 0)? };
    Ok(EventLine { version, fields, types })
}

/// Cuts `[verified]` or `[verified 1,2]` off the end.
fn take_verified<'a>(text: &'a str, all: &[u8]) -> Result<(&'a str, Vec<u8>), String> {
    let Some(at) = text.rfind("[verified") else { return Ok((text, Vec::new())) };
    let (rest, mark) = text.split_at(at);
    let list = mark.trim_start_matches("[verified").trim_end_matches(']').trim();
    let types = if list.is_empty() { all.to_vec() } else { type_list(list)? };
    if types.iter().any(|t| !all.contains(t)) {
        return Err("verified a type that is not on the line".into());
    }
    Ok((rest.trim_end(), types))
}

/// Fields of one level. Structures do not nest further than that.
fn fields(text: &str, depth: usize) -> Result<Vec<Field>, String> {
    let mut fields: Vec<Field> = Vec::new();
    for part in split_fields(text) {
        let field = field(part.trim(), &fields, depth)?;
        if fields.iter().any(|f| f.name == field.name) {
            return Err(format!("two fields {}", field.name));
        }
        fields.push(field);
    }
    Ok(fields)
}

/// Splits at semicolons outside of braces.
fn split_fields(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0u32, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or(""));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or(""));
    parts
}

fn field(text: &str, earlier: &[Field], depth: usize) -> Result<Field, String> {
    let (kind, name) = text.rsplit_once(' ').ok_or_else(|| format!("not a field: {text}"))?;
    let (name, map) = name.split_once(':').map_or((name, None), |(n, m)| (n, Some(m)));
    let optional = name.ends_with('?');
    let name = name.trim_end_matches('?');
    if name.is_empty() {
        return Err(format!("field without a name: {text}"));
    }
    let (kind, repeat) = match kind.strip_suffix(']').and_then(|k| k.rsplit_once('[')) {
        Some((kind, repeat)) => (kind.trim(), Some(repeat.trim())),
        None => (kind.trim(), None),
    };
    let mut field = Field::plain(name, InType::UInt32);
    field.optional = optional;
    if let Some(inner) = kind.strip_prefix('{').and_then(|k| k.strip_suffix('}')) {
        if depth > 0 {
            return Err("structures nest only once".into());
        }
        field.in_type = InType::Struct;
        field.members = fields(inner, depth + 1)?;
    } else {
        (field.in_type, field.out_type) = field_type(kind).ok_or_else(|| format!("no type {kind}"))?;
    }
    if let Some(map) = map {
        field.map = Some(names::value_map(map).ok_or_else(|| format!("no list {map}"))?.clone());
    }
    match repeat {
        Some(n) if matches!(kind, "char16" | "bytes") => {
            field.length = Length::Fixed(n.parse().map_err(|_| format!("not a length: {n}"))?);
        }
        Some(repeat) => field.count = count(repeat, earlier)?,
        None if matches!(kind, "char16" | "bytes") => return Err(format!("{kind} needs a length")),
        None => {}
    }
    Ok(field)
}

fn count(repeat: &str, earlier: &[Field]) -> Result<Count, String> {
    if repeat.is_empty() {
        return Ok(Count::Rest);
    }
    if let Ok(n) = repeat.parse() {
        return Ok(Count::Fixed(n));
    }
    let index = earlier.iter().position(|f| f.name.as_ref() == repeat);
    let index = index.and_then(|i| u16::try_from(i).ok()).ok_or_else(|| format!("no field {repeat}"))?;
    Ok(Count::Field(index))
}

/// TDH_OUTTYPE_BOOLEAN.
const OUT_BOOLEAN: u16 = 13;
/// TDH_OUTTYPE_PID.
const OUT_PID: u16 = 20;
/// TDH_OUTTYPE_TID.
const OUT_TID: u16 = 21;
/// TDH_OUTTYPE_NTSTATUS.
const OUT_NTSTATUS: u16 = 31;

fn field_type(word: &str) -> Option<(InType, u16)> {
    let plain = match word {
        "p" => InType::Pointer,
        "z" => InType::SizeT,
        "u8" => InType::UInt8,
        "u16" => InType::UInt16,
        "u32" => InType::UInt32,
        "u64" => InType::UInt64,
        "i8" => InType::Int8,
        "i16" => InType::Int16,
        "i32" => InType::Int32,
        "i64" => InType::Int64,
        "x32" => InType::HexInt32,
        "x64" => InType::HexInt64,
        "f32" => InType::Float,
        "f64" => InType::Double,
        "guid" => InType::Guid,
        "filetime" => InType::FileTime,
        "systemtime" => InType::SystemTime,
        "sid" => InType::WbemSid,
        "wsz" | "char16" => InType::UnicodeString,
        "sz" => InType::AnsiString,
        "bytes" => InType::Binary,
        "ip4" => InType::IPv4,
        "ip6" => InType::IPv6,
        "port" => InType::Port,
        "bool8" => return Some((InType::UInt8, OUT_BOOLEAN)),
        "pid" => return Some((InType::UInt32, OUT_PID)),
        "tid" => return Some((InType::UInt32, OUT_TID)),
        "ntstatus" => return Some((InType::UInt32, OUT_NTSTATUS)),
        _ => return None,
    };
    Some((plain, 0))
}

#[cfg(test)]
mod tests {
    use super::super::files::LAYOUT_FILES;
    use super::*;

    #[test]
    fn every_line_of_every_file_parses() {
        let mut events = 0;
        for file in LAYOUT_FILES {
            let (sections, bad) = parse(file.text);
            assert!(bad.is_empty(), "{}: {bad:#?}", file.name);
            assert!(!sections.is_empty(), "{}", file.name);
            events += sections.iter().map(|s| s.events.len()).sum::<usize>();
        }
        assert!(events > 300, "{events}");
    }

    #[test]
    fn types_and_versions_are_declared_once() {
        for file in LAYOUT_FILES {
            for section in parse(file.text).0 {
                let mut keys: Vec<(u8, u16)> = section
                    .events
                    .iter()
                    .flat_map(|e| e.types.iter().map(|t| (t.number, e.version)))
                    .collect();
                keys.sort_unstable();
                let mut unique = keys.clone();
                unique.dedup();
                assert_eq!(keys, unique, "{}", section.name);
            }
        }
    }

    #[test]
    fn optional_fields_stand_at_the_end() {
        for file in LAYOUT_FILES {
            for event in parse(file.text).0.iter().flat_map(|s| &s.events) {
                let first = event.fields.iter().position(|f| f.optional).unwrap_or(event.fields.len());
                assert!(event.fields.iter().skip(first).all(|f| f.optional));
            }
        }
    }

    #[test]
    fn notation() {
        let text = "# remark\ngroup 7F Test 68fdd900-4a3e-11d1-84f4-0000f80464e3\nhook 0102 1\n\
            1,2 v3 *One, Two | Both | u32 n; { p a; u8[4] b }[n] s; char16[8] c;\n  bytes[3] d; p[] rest? [verified 2]\n\
            name 9 Nine\n";
        let (sections, bad) = parse(text);
        assert!(bad.is_empty(), "{bad:?}");
        let section = &sections[0];
        assert_eq!((section.key.clone(), section.name.as_str()), (SectionKey::Group(0x7F), "Test"));
        assert_eq!(section.hooks, [(0x0102, 1)]);
        assert_eq!(section.names, [(9, "Nine".to_string())]);
        let event = &section.events[0];
        assert_eq!(event.version, 3);
        let types: Vec<_> =
            event.types.iter().map(|t| (t.number, t.opcode.as_str(), t.known_alone, t.verified)).collect();
        assert_eq!(types, [(1, "One", true, false), (2, "Two", false, true)]);
        assert_eq!(event.fields[1].count, Count::Field(0));
        assert_eq!(event.fields[1].members[1].count, Count::Fixed(4));
        assert_eq!(event.fields[2].length, Length::Fixed(8));
        assert_eq!((event.fields[4].count, event.fields[4].optional), (Count::Rest, true));
    }

    #[test]
    fn broken_lines_are_reported_and_skipped() {
        let head = "group 01 T 68fdd900-4a3e-11d1-84f4-0000f80464e3\n";
        for line in [
            "1 v1 A | C",
            "1 A | C | -",
            "1,2 v1 A | C | -",
            "1 v1 A | C | u33 x",
            "1 v1 A | C | u32",
            "1 v1 A | C | p[n] x",
            "1 v1 A | C | u32 x; u32 x",
            "1 v1 A | C | u32 x:NoSuchList",
            "1 v1 A | C | char16 x",
            "300 v1 A | C | -",
            "1 v1 A | C | - [verified 2]",
            "name 400 x",
            "hook zz 1",
        ] {
            let (sections, bad) = parse(&format!("{head}{line}\n"));
            assert_eq!((sections[0].events.len(), bad.len()), (0, 1), "{line}");
        }
        assert_eq!(parse("1 v1 A | C | -").1.len(), 1);
        assert_eq!(parse("group 01 T nonsense").1.len(), 1);
    }
}
