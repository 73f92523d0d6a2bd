//! The columns of every log of the corpus hold what the fields of its records hold.
#![allow(clippy::type_complexity)]

use crate::common;
use etwhy_evtx::Codes;
use etwhy_evtx::binxml::{Name, Value, time};
use etwhy_evtx::columns::{Batch, ColumnKind, columns};
use etwhy_evtx::filter::Filter;
use etwhy_evtx::read::LogFile;
use etwhy_evtx::scan::ScanOptions;
use std::collections::HashMap;
use std::sync::Mutex;

/// A value as a column shows it.
fn shown(value: &Value<'_>) -> Option<String> {
    Some(match *value {
        Value::Null => return None,
        Value::UInt(n) | Value::Hex(n) => (n as i64).to_string(),
        Value::Bool(b) => i64::from(b).to_string(),
        Value::FileTime(ticks) => time::utc_ns(ticks).to_string(),
        Value::Real32(x) => f64::from(x).to_string(),
        _ => {
            let mut text = String::new();
            value.push_text(&mut text);
            text
        }
    })
}

#[test]
fn columns_hold_what_fields_hold() {
    let mut cells = 0u64;
    for path in common::logs() {
        // By record and name; a number that two records share tells nothing.
        let mut fields: HashMap<(u64, String), Option<String>> = HashMap::new();
        let mut ids: HashMap<u64, u32> = HashMap::new();
        common::each(&path, |decoder, record, event| {
            let Ok(event) = event else { return };
            let id = decoder.system(&event).record_id.unwrap_or(record.id);
            *ids.entry(id).or_default() += 1;
            let mut each = |name: Name<'_>, value: Value<'_>| {
                let mut text = String::new();
                name.push(&mut text);
                fields.entry((id, text)).or_insert_with(|| shown(&value));
            };
            // Broken ones are compared as far as they go.
            let _ = decoder.fields(&event, &mut each);
        });
        for threads in [1, 2] {
            let log = LogFile::open(&path, &path).unwrap();
            let found: Mutex<Vec<(u64, String, Option<String>, ColumnKind)>> = Mutex::default();
            let take = |batch: &Batch, _: &Codes| {
                let mut found = found.lock().unwrap();
                for column in &batch.columns {
                    for (row, id) in batch.system.record_id.iter().enumerate() {
                        let null = column.nulls[row];
                        let number = column.numbers[row];
                        let text = match column.kind {
                            _ if null => None,
                            ColumnKind::Text => Some(column.text_at(row).unwrap().to_owned()),
                            ColumnKind::Real => Some(f64::from_bits(number as u64).to_string()),
                            _ => Some(number.to_string()),
                        };
                        found.push((*id, column.shown.clone(), text, column.kind));
                    }
                }
            };
            let options = ScanOptions { threads, in_order: true };
            columns(&log, &options, &|_, _| true, &Filter::default(), &take).unwrap();
            for (id, name, text, kind) in found.into_inner().unwrap() {
                if ids.get(&id) != Some(&1) {
                    continue;
                }
                let expected = fields.get(&(id, name.clone())).cloned().flatten();
                if kind == ColumnKind::Text && expected != text {
                    // A column that has times and texts shows times as texts.
                    let ns = expected.as_deref().and_then(|e| e.parse::<i64>().ok());
                    let stamp = ns.map(|ns| {
                        let mut stamp = String::new();
                        time::push_utc_ns(&mut stamp, ns);
                        stamp
                    });
                    assert_eq!(stamp, text, "{}: record {id}, {name}", path.display());
                } else {
                    assert_eq!(expected, text, "{}: record {id}, {name}", path.display());
                }
                cells += 1;
            }
        }
    }
    assert!(cells > 10_000 || common::logs().is_empty(), "{cells} cells compared");
}
