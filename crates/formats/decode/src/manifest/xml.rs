//! Manifest XML (`EventManifest.xsd`) to schemas.
//!
//! The elements are found by their local names wherever they stand, because wrappers differ:
//! `instrumentationManifest/instrumentation/events`, `assembly/instrumentation/events`, or bare.

use super::complexity::too_complex;
use super::types::{in_type, number, out_type, standard_opcode};
use super::{ManifestEvent, ProviderManifest};
use crate::metadata::clr_stack;
use crate::names::event_name;
use crate::read::MAX_DEPTH;
use crate::schema::{Count, DecodedBy, EventSchema, Field, InType, Length, ValueMap, field_count};
use etwhy_base::Guid;
use foldhash::HashMap;
use roxmltree::{Document, Node, ParsingOptions};
use std::sync::Arc;

/// Most nodes of a document.
const MAX_NODES: u32 = 4_000_000;
/// Most fields of one template.
const MAX_FIELDS: usize = 4096;
/// Most fields of all events of a document: every event has its own copy of its template's.
const MAX_ALL_FIELDS: usize = 500_000;
/// Longest name of a task or an opcode, for the same reason.
const MAX_NAME: usize = 200;

/// Why a manifest could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// No well-formed XML.
    #[error("not readable as XML: {0}")]
    Xml(#[from] roxmltree::Error),
    /// XML that would take long to read and is no manifest.
    #[error("no manifest: its XML has too many attributes, namespaces or levels")]
    TooComplex,
    /// XML without any provider.
    #[error("no <provider> with a guid in it")]
    NoProvider,
}

/// Reads all providers of a manifest.
pub fn parse(text: &str) -> Result<Vec<ProviderManifest>, ManifestError> {
    if too_complex(text) {
        return Err(ManifestError::TooComplex);
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text.trim_start_matches('\u{feff}'), options)?;
    let strings = strings(&document);
    let mut providers = Vec::new();
    for node in document.descendants().filter(|n| is(*n, "provider")) {
        let Some(guid) = node.attribute("guid").and_then(|g| g.parse().ok()) else { continue };
        providers.push(Provider::new(node, guid, &strings).build(node));
    }
    if providers.is_empty() { Err(ManifestError::NoProvider) } else { Ok(providers) }
}

/// The string table; the first of several languages wins.
fn strings<'d>(document: &'d Document<'_>) -> HashMap<&'d str, Arc<str>> {
    let mut strings = HashMap::default();
    for table in document.descendants().filter(|n| is(*n, "stringTable")) {
        for node in children(table, "string") {
            if let (Some(id), Some(value)) = (node.attribute("id"), node.attribute("value")) {
                strings.entry(id).or_insert_with(|| value.trim_end().into());
            }
        }
    }
    strings
}

fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

fn children<'a, 'i: 'a>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |n| is(*n, name))
}

/// Elements `item` in the children `list` of a node, e.g. `tasks/task`.
fn listed<'a, 'i: 'a>(
    node: Node<'a, 'i>,
    list: &'static str,
    item: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    children(node, list).flat_map(move |n| children(n, item))
}

struct Named {
    value: u64,
    shown: String,
}

struct Provider<'d> {
    guid: Guid,
    name: Arc<str>,
    strings: &'d HashMap<&'d str, Arc<str>>,
    tasks: HashMap<String, Named>,
    opcodes: HashMap<String, Named>,
    maps: HashMap<String, Arc<ValueMap>>,
    templates: HashMap<String, Vec<Field>>,
}

impl<'d> Provider<'d> {
    fn new(node: Node<'_, '_>, guid: Guid, strings: &'d HashMap<&'d str, Arc<str>>) -> Provider<'d> {
        let mut provider = Provider {
            guid,
            name: node.attribute("name").unwrap_or_default().into(),
            strings,
            tasks: HashMap::default(),
            opcodes: HashMap::default(),
            maps: HashMap::default(),
            templates: HashMap::default(),
        };
        for opcode in listed(node, "opcodes", "opcode") {
            let named = provider.named(opcode);
            provider.opcodes.extend(named);
        }
        for task in listed(node, "tasks", "task") {
            let named = provider.named(task);
            provider.tasks.extend(named);
            let task_name = task.attribute("name").unwrap_or_default();
            for opcode in listed(task, "opcodes", "opcode") {
                if let Some((name, named)) = provider.named(opcode) {
                    // Opcodes of a task count for this task only; a slash cannot stand in a name.
                    provider.opcodes.insert(format!("{task_name}/{name}"), named);
                }
            }
        }
        provider.read_maps(node);
        for template in listed(node, "templates", "template") {
            if let Some(id) = template.attribute("tid") {
                let fields = clr_stack(guid, provider.fields(template, 0));
                provider.templates.insert(id.to_owned(), fields);
            }
        }
        provider
    }

    /// Name, value and shown name of a task or an opcode.
    fn named(&self, node: Node<'_, '_>) -> Option<(String, Named)> {
        let name = node.attribute("name")?;
        let value = number(node.attribute("value")?)?;
        let message = node.attribute("message").map(|m| self.string(m)).unwrap_or_default();
        let shown = if message.is_empty() || message.len() > MAX_NAME || message.starts_with("$(") {
            name.rsplit(':').next().unwrap_or(name).chars().take(MAX_NAME).collect()
        } else {
            message.to_string()
        };
        Some((name.to_owned(), Named { value, shown }))
    }

    /// Looks up `$(string.ID)`; other text stays.
    fn string(&self, text: &str) -> Arc<str> {
        let id = text.strip_prefix("$(string.").and_then(|t| t.strip_suffix(')'));
        id.and_then(|id| self.strings.get(id)).cloned().unwrap_or_else(|| text.trim_end().into())
    }

    fn read_maps(&mut self, node: Node<'_, '_>) {
        for maps in children(node, "maps") {
            for map in maps.children().filter(|n| is(*n, "valueMap") || is(*n, "bitMap")) {
                let Some(name) = map.attribute("name") else { continue };
                let entries = children(map, "map")
                    .filter_map(|entry| {
                        let value = number(entry.attribute("value")?)? as u32;
                        Some((value, self.string(entry.attribute("message").unwrap_or_default())))
                    })
                    .collect();
                let bitmap = is(map, "bitMap");
                self.maps.insert(name.to_owned(), Arc::new(ValueMap { name: name.into(), bitmap, entries }));
            }
        }
    }

    /// Fields of a template or a struct.
    fn fields(&self, node: Node<'_, '_>, depth: usize) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        for child in node.children().filter(Node::is_element).take(MAX_FIELDS) {
            let name = child.attribute("name").unwrap_or_default();
            let reference = |word: &str| {
                let at = fields.iter().position(|f| &*f.name == word.trim())?;
                u16::try_from(at).ok()
            };
            let mut field = Field::plain(name, InType::Struct);
            if let Some(word) = child.attribute("count") {
                field.count = match number(word).and_then(|n| u32::try_from(n).ok()) {
                    Some(count) => Count::Fixed(count),
                    None => match reference(word) {
                        Some(at) => Count::Field(at),
                        None => break,
                    },
                };
            }
            match child.tag_name().name() {
                "struct" if depth < MAX_DEPTH => field.members = self.fields(child, depth + 1),
                "data" => {
                    // Behind a field of unknown type no offset is known.
                    let Some(kind) = child.attribute("inType").and_then(in_type) else { break };
                    field.in_type = kind;
                    field.out_type = child.attribute("outType").map_or(0, out_type);
                    if let Some(word) = child.attribute("length") {
                        field.length = match number(word).and_then(|n| u32::try_from(n).ok()) {
                            Some(length) => Length::Fixed(length),
                            None => match reference(word) {
                                Some(at) => Length::Field(at),
                                None => break,
                            },
                        };
                    }
                    field.map = child.attribute("map").and_then(|m| self.maps.get(m)).cloned();
                }
                _ => continue,
            }
            fields.push(field);
        }
        fields
    }

    fn build(self, node: Node<'_, '_>) -> ProviderManifest {
        let mut left = MAX_ALL_FIELDS;
        let mut events = Vec::new();
        for event in listed(node, "events", "event").filter_map(|event| self.event(event)) {
            let Some(rest) = left.checked_sub(field_count(&event.schema.fields)) else { break };
            left = rest;
            events.push(event);
        }
        ProviderManifest { guid: self.guid, name: self.name, events }
    }

    fn event(&self, node: Node<'_, '_>) -> Option<ManifestEvent> {
        let id = u16::try_from(number(node.attribute("value")?)?).ok()?;
        let version = node.attribute("version").and_then(number).unwrap_or(0) as u8;
        let task_word = node.attribute("task").unwrap_or_default();
        let task = self.tasks.get(task_word).map_or("", |t| &t.shown);
        let opcode_word = node.attribute("opcode").unwrap_or("win:Info");
        let (opcode, opcode_name) = match standard_opcode(opcode_word) {
            Some((value, name)) => (value, name),
            None => {
                let own = self.opcodes.get(&format!("{task_word}/{opcode_word}"));
                match own.or_else(|| self.opcodes.get(opcode_word)) {
                    Some(named) => (named.value as u8, named.shown.as_str()),
                    None => (0, opcode_word),
                }
            }
        };
        let symbol = node.attribute("symbol").unwrap_or_default();
        let fields = node.attribute("template").and_then(|t| self.templates.get(t)).cloned();
        let schema = EventSchema {
            guid: self.guid,
            provider: Arc::clone(&self.name),
            name: event_name(task, opcode_name, symbol, id),
            task: task.into(),
            opcode: opcode_name.into(),
            message: node.attribute("message").map(|m| self.string(m)).unwrap_or_default(),
            decoded_by: DecodedBy::Manifest,
            verified: false,
            fields: fields.unwrap_or_default(),
        };
        Some(ManifestEvent { id, version, opcode, schema: Arc::new(schema) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::read::read;

    const SAMPLE: &str = r#"<?xml version="1.0" encoding="UTF-16"?>
<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events">
  <events>
   <provider name="Sample-Provider" guid="{11111111-2222-3333-4444-555555555555}" symbol="S">
    <tasks><task name="T_Work" value="1" message="$(string.task.work)"><opcodes>
      <opcode name="Spin" value="40"/></opcodes></task></tasks>
    <opcodes><opcode name="Flush" value="0x20" message="$(string.op.flush)"/></opcodes>
    <maps><valueMap name="Mode"><map value="1" message="$(string.mode.fast)"/></valueMap>
      <bitMap name="Bits"><map value="0x1" message="$(string.bit.a)"/><map value="0x2" message="B"/></bitMap></maps>
    <templates><template tid="t1">
      <data name="Mode" inType="win:UInt8" map="Mode"/>
      <data name="N" inType="win:UInt16"/>
      <struct name="Pairs" count="N"><data name="K" inType="win:UInt16"/>
        <data name="V" inType="win:UnicodeString"/></struct>
      <data name="Bits" inType="win:UInt32" map="Bits"/>
      <data name="Blob" inType="win:Binary" length="N"/>
      <data name="Name" inType="win:AnsiString" length="4"/>
      <UserData><x xmlns="y"/></UserData>
    </template></templates>
    <events>
     <event value="7" version="2" task="T_Work" opcode="Flush" template="t1" symbol="WF" message="$(string.m)"/>
     <event value="8" task="T_Work" opcode="Spin"/>
     <event value="9" task="T_Work" opcode="win:Start"/>
    </events>
   </provider>
   <provider name="Second" guid="{21111111-2222-3333-4444-555555555555}"/>
  </events>
 </instrumentation>
 <localization><resources culture="en-US"><stringTable>
   <string id="task.work" value="Work "/><string id="op.flush" value="Flush"/><string id="mode.fast" value="fast "/>
   <string id="bit.a" value="A"/><string id="m" value="Mode %1"/>
 </stringTable></resources></localization>
</instrumentationManifest>"#;

    #[test]
    fn everything_in_one_manifest() {
        let providers = parse(SAMPLE).unwrap();
        assert_eq!(providers.len(), 2);
        assert_eq!(&*providers[0].name, "Sample-Provider");
        let names: Vec<_> = providers[0].events.iter().map(|e| (e.id, e.opcode, &*e.schema.name)).collect();
        assert_eq!(names, [(7, 0x20, "Work/Flush"), (8, 40, "Work/Spin"), (9, 1, "Work/Start")]);
        let schema = &providers[0].events[0].schema;
        let mut payload = vec![1u8, 2, 0];
        payload.extend([5, 0, b'x', 0, 0, 0, 6, 0, 0, 0, 3, 0, 0, 0, 0xaa, 0xbb]);
        payload.extend(b"ab\0c");
        let decoded = read(schema, &payload, 8);
        let pair = |k, v: &'static str| Value::Struct(vec![Value::U16(k), Value::Str(v.into())]);
        assert_eq!(decoded.values[2], Value::Array(vec![pair(5, "x"), pair(6, "")]));
        assert_eq!(decoded.values[4], Value::Bytes(&[0xaa, 0xbb]));
        assert_eq!(decoded.values[5], Value::Str("ab".into()));
        assert!(!decoded.truncated && decoded.rest.is_empty());
        let mut json = String::new();
        crate::format::to_json(&mut json, schema, &decoded);
        assert!(json.starts_with(r#"{"Mode":"fast","N":2,"Pairs":[{"K":5,"V":"x"}"#), "{json}");
        assert!(json.contains(r#""Bits":"A|B""#), "{json}");
        let mut message = String::new();
        crate::message::render_message(&mut message, schema, &decoded.values);
        assert_eq!(message, "Mode fast");
    }

    #[test]
    fn copies_of_a_large_template_are_bounded() {
        let mut xml = String::from(
            "<provider name='P' guid='{11111111-2222-3333-4444-555555555555}'><templates><template tid='t'>",
        );
        xml.push_str(&"<data name='a' inType='win:UInt8'/>".repeat(4000));
        xml.push_str("</template></templates><events>");
        xml.push_str(&"<event value='1' template='t'/>".repeat(1000));
        xml.push_str("</events></provider>");
        assert_eq!(parse(&xml).unwrap()[0].events.len(), MAX_ALL_FIELDS / 4000);
    }

    #[test]
    fn hostile_documents_are_refused() {
        assert!(matches!(parse("<a/>"), Err(ManifestError::NoProvider)));
        assert!(matches!(parse("<a>"), Err(ManifestError::Xml(_))));
        assert!(parse("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>").is_err());
        let deep = "<struct>".repeat(100_000);
        assert!(parse(&deep).is_err());
        for cut in (0..SAMPLE.len()).step_by(7) {
            let _ = parse(&SAMPLE[..cut]);
        }
    }
}
