//! The real DLLs against another reader: `tests/python/message_resources.py`, with `pefile`, which shares no code with
//! ours. Every text, every filled-in text, every event, field, task, keyword and channel is compared.

use crate::common;
use etwhy_messages::{EventText, pe};
use etwhy_testkit::{script, told};
use serde_json::{Value, json};

#[test]
fn another_reader_says_the_same() {
    let Some(folder) = common::samples() else { return };
    let values: Vec<String> = (1..=99).map(|n| format!("v{n}")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let (mut texts, mut events) = (0, 0);
    for name in ["adtschema.dll", "lsasrv.dll", "services.exe", "wevtsvc.dll", "scesrv.dll"] {
        let file = folder.join(name);
        let Some(mut script) = script("message_resources.py") else { return };
        let theirs: Value = serde_json::from_str(&told(script.arg(&file))).unwrap();
        let image = pe::read(std::fs::read(&file).unwrap().as_slice()).unwrap();
        assert_eq!(image.damage, Vec::<String>::new(), "{name}");
        let ours: Vec<Value> = image
            .messages
            .iter()
            .map(|m| {
                let mut out = String::new();
                EventText::parse(&m.text).render(values.as_slice(), &mut out);
                json!([m.id, m.language, m.text, out])
            })
            .collect();
        for (ours, theirs) in ours.iter().zip(theirs["messages"].as_array().unwrap()) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!(ours.len(), theirs["messages"].as_array().unwrap().len(), "{name}");
        texts += ours.len();
        let named = |list: &[etwhy_messages::wevt::Named]| -> Value {
            let pairs = list.iter().map(|n| {
                (
                    n.value.to_string(),
                    json!([n.name.clone().unwrap_or_default(), n.message.unwrap_or(u32::MAX)]),
                )
            });
            Value::Object(pairs.collect())
        };
        let ours: Vec<Value> = image
            .manifest
            .providers
            .iter()
            .map(|p| {
                let list: Vec<Value> = p
                    .events
                    .iter()
                    .map(|e| {
                        let template = p.templates.iter().find(|t| t.offset == e.template);
                        let fields: Vec<Value> = template
                            .map(|t| {
                                t.fields.iter().map(|f| json!([f.name, f.in_type.0, f.out_type.0])).collect()
                            })
                            .unwrap_or_default();
                        assert_eq!(template.is_some(), e.template != 0);
                        let message = e.message.unwrap_or(u32::MAX);
                        json!([
                            e.id, e.version, e.channel, e.level, e.opcode, e.task, e.keywords, message,
                            fields
                        ])
                    })
                    .collect();
                events += list.len();
                json!({ "guid": p.guid.unwrap().braced(), "events": list, "tasks": named(&p.tasks),
                        "keywords": named(&p.keywords), "channels": named(&p.channels) })
            })
            .collect();
        assert_eq!(Value::Array(ours), theirs["providers"], "{name}");
    }
    // What these builds hold, so that nothing is compared with nothing.
    assert_eq!((texts, events), (544, 488 + 69 + 2 + 31 + 2 + 15 + 2 + 43 + 44));
}
