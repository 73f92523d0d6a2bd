//! Every record and every value of the corpus, against the crate `evtx`, which shares no code with ours.
#![allow(clippy::type_complexity)]

use crate::common;
use etwhy_evtx::binxml::{Name, Value};
use etwhy_evtx::read::anomalies;
use evtx::{EvtxParser, ParserSettings};
use std::collections::BTreeMap;

/// Name, attributes by name, children.
#[derive(Debug, PartialEq)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    children: Vec<Element>,
    text: String,
}

fn tree(node: roxmltree::Node<'_, '_>) -> Element {
    let mut attributes: BTreeMap<String, String> =
        node.attributes().map(|a| (a.name().to_owned(), a.value().to_owned())).collect();
    if let Some(namespace) = node.tag_name().namespace() {
        attributes.insert("xmlns".to_owned(), namespace.to_owned());
    }
    Element {
        name: node.tag_name().name().to_owned(),
        attributes,
        children: node.children().filter(roxmltree::Node::is_element).map(tree).collect(),
        text: node.children().filter(roxmltree::Node::is_text).filter_map(|n| n.text()).collect(),
    }
}

fn parsed(xml: &str) -> Result<Element, String> {
    let options = roxmltree::ParsingOptions { nodes_limit: 1_000_000, ..Default::default() };
    let document =
        roxmltree::Document::parse_with_options(xml, options).map_err(|e| format!("{e}: {xml}"))?;
    Ok(tree(document.root_element()))
}

/// Fields of an event, worked out from its XML.
fn fields_of(event: &Element) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut unnamed = 0;
    for container in &event.children {
        match container.name.as_str() {
            "EventData" | "DebugData" | "ProcessingErrorData" | "BinaryEventData" => {
                for child in &container.children {
                    match child.attributes.get("Name") {
                        Some(name) => fields.push((name.clone(), child.text.clone())),
                        None if child.name == "Data" => {
                            unnamed += 1;
                            fields.push((format!("Data{unnamed}"), child.text.clone()));
                        }
                        None => fields.push((child.name.clone(), child.text.clone())),
                    }
                }
            }
            _ => {}
        }
    }
    fields
}

/// Logs of which the other reader reads less, and how many records.
const MORE_HERE: [(&str, usize); 1] = [("System2.evtx", 89)];

#[test]
fn every_record_and_value_equals_the_other_reader() {
    let mut records = 0u64;
    let mut values = 0u64;
    let mut differences = Vec::new();
    for path in common::logs() {
        let shown = path.file_name().unwrap().to_string_lossy().into_owned();
        let settings = ParserSettings::new().num_threads(1).validate_checksums(false).indent(false);
        let mut parser = EvtxParser::from_path(&path).unwrap().with_configuration(settings);
        let theirs: Vec<(u64, String)> =
            parser.records().filter_map(Result::ok).map(|r| (r.event_record_id, r.data)).collect();
        let mut broken = Vec::new();
        let mut ours: Vec<(u64, String, Vec<(String, String)>, Vec<String>)> = Vec::new();
        common::each(&path, |decoder, record, event| {
            let mut xml = String::new();
            let event = match event.and_then(|event| decoder.xml(&event, &mut xml).map(|()| event)) {
                Ok(event) => event,
                Err(fault) => {
                    broken.push((record.id, fault));
                    return;
                }
            };
            let mut fields = Vec::new();
            let mut each = |name: Name<'_>, value: Value<'_>| {
                let (mut n, mut v) = (String::new(), String::new());
                name.push(&mut n);
                value.push_text(&mut v);
                fields.push((n, v));
            };
            decoder
                .fields(&event, &mut each)
                .unwrap_or_else(|fault| panic!("{shown}: {}: {fault:?}", record.id));
            let system = decoder.system(&event);
            let mut texts = vec![system.event_id.to_string(), format!("0x{:x}", system.keywords)];
            for value in [system.provider, system.channel, system.computer, system.user] {
                let mut text = String::new();
                value.push_text(&mut text);
                texts.push(text);
            }
            texts.push(system.record_id.map(|id| id.to_string()).unwrap_or_default());
            texts.push(system.process.map(|p| p.to_string()).unwrap_or_default());
            ours.push((record.id, xml, fields, texts));
        });
        let mut our_ids: Vec<u64> = ours.iter().map(|o| o.0).collect();
        let mut their_ids: Vec<u64> = theirs.iter().map(|t| t.0).collect();
        our_ids.sort_unstable();
        their_ids.sort_unstable();
        if our_ids != their_ids {
            let more: Vec<u64> = our_ids.iter().filter(|id| !their_ids.contains(id)).copied().collect();
            let less: Vec<u64> = their_ids.iter().filter(|id| !our_ids.contains(id)).copied().collect();
            // The other reader leaves a cut chunk out; what is read here is what the independent walk counts (the test below).
            if less.is_empty() && MORE_HERE.contains(&(shown.as_str(), more.len())) {
                println!("{shown}: {} records more than the other reader", more.len());
            } else {
                differences.push(format!(
                    "{shown}: only here {more:?}, only there {less:?}; {} and {}",
                    our_ids.len(),
                    their_ids.len()
                ));
            }
        }
        if !broken.is_empty() {
            println!("{shown}: broken in both readers: {broken:?}");
        }
        let theirs: BTreeMap<u64, &String> = theirs.iter().map(|(id, xml)| (*id, xml)).collect();
        for (id, xml, fields, texts) in &ours {
            let Some(their_xml) = theirs.get(id) else { continue };
            records += 1;
            // Half a surrogate pair is U+FFFD here; the other reader writes `_`.
            let xml = if shown == "issue_43.evtx" { &xml.replace('\u{FFFD}', "_") } else { xml };
            let (mine, other) = (parsed(xml), parsed(their_xml));
            match (&mine, &other) {
                (Ok(mine), Ok(other)) => {
                    if mine != other {
                        differences.push(format!("{shown}: record {id}:\n  {xml}\n  {their_xml}"));
                    }
                    let expected = fields_of(other);
                    let named: Vec<&(String, String)> = fields.iter().collect();
                    values += named.len() as u64;
                    let mut squeezed: Vec<(String, String)> = fields.clone();
                    squeezed.retain(|(name, _)| !name.starts_with("RenderingInfo."));
                    if !expected.is_empty() && !same_fields(&expected, &mut squeezed) {
                        differences.push(format!("{shown}: record {id}: {fields:?}\n  {expected:?}"));
                    }
                    let system = other.children.iter().find(|c| c.name == "System").unwrap();
                    let text = |name: &str| {
                        system
                            .children
                            .iter()
                            .find(|c| c.name == name)
                            .map(|c| c.text.clone())
                            .unwrap_or_default()
                    };
                    let attribute = |name: &str, attribute: &str| {
                        let element = system.children.iter().find(|c| c.name == name);
                        element.and_then(|c| c.attributes.get(attribute).cloned()).unwrap_or_default()
                    };
                    let their_texts = [
                        text("EventID"),
                        text("Keywords"),
                        attribute("Provider", "Name"),
                        text("Channel"),
                        text("Computer"),
                        attribute("Security", "UserID"),
                        text("EventRecordID"),
                        attribute("Execution", "ProcessID"),
                    ];
                    let mut texts = texts.clone();
                    // Records without keywords: none is no bit set.
                    if their_texts[1].is_empty() && texts[1] == "0x0" {
                        texts[1].clear();
                    }
                    if texts != their_texts {
                        differences.push(format!("{shown}: record {id}: {texts:?}\n  {their_texts:?}"));
                    }
                }
                (Err(a), Err(_)) => differences.push(format!("{shown}: record {id}: no XML in either: {a}")),
                (Err(e), _) | (_, Err(e)) => differences.push(format!("{shown}: record {id}: {e}")),
            }
        }
    }
    println!("{records} records, {values} fields compared, {} differences", differences.len());
    let shown: Vec<String> = differences.iter().take(12).map(|d| d.chars().take(3000).collect()).collect();
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), shown.join("\n"));
}

/// Two fields of one name are told apart by a number here.
fn same_fields(expected: &[(String, String)], ours: &mut [(String, String)]) -> bool {
    if expected.len() != ours.len() {
        return false;
    }
    expected.iter().zip(ours).all(|((name, text), (our_name, our_text))| {
        let base = our_name
            .rsplit_once('_')
            .map_or(our_name.as_str(), |(base, n)| if n.parse::<u32>().is_ok() { base } else { our_name });
        // XML has `_` for characters that it does not allow, and knows no carriage return.
        let clean = |t: &str| -> String {
            let t = t.replace("\r\n", "\n").replace('\r', "\n");
            t.chars()
                .map(|c| if (c < ' ' || c == '\u{FFFD}') && c != '\n' && c != '\t' { '_' } else { c })
                .collect()
        };
        (name == our_name || name == base) && (text == our_text || clean(text) == clean(our_text))
    })
}

#[test]
fn record_counts_are_those_of_an_independent_walk() {
    let counted = common::counted();
    for path in common::logs() {
        let mut records = 0u64;
        let damage = common::each(&path, |_, _, _| records += 1);
        let name: Vec<_> = path.iter().rev().take(2).map(|p| p.to_string_lossy().into_owned()).collect();
        let name = format!("{}/{}", name[1], name[0]);
        let row = counted.iter().find(|(file, _)| *file == name);
        let counted = row.unwrap().1;
        let skipped = damage.get(&anomalies::RECORD_MAGIC);
        if damage.get(&anomalies::CUT) > 0 {
            // The record that the end of the file cuts is counted as damage.
            assert_eq!(records + skipped, counted, "{name}");
        } else if skipped > 0 {
            // That walk ends at damage; the other reader goes on as we do.
            assert!(records >= counted, "{name}: {records} of {counted}");
        } else {
            assert_eq!(records, counted, "{name}");
        }
    }
}
