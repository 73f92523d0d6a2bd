//! Extended items of events, and counters of kernel records, as JSON.

use etwhy_base::{Bytes, Guid};
use etwhy_decode::format::{hex_bytes, sid};
use etwhy_decode::json_keys::json_string;
use etwhy_etl::abi::ext;
use etwhy_etl::{ExtItem, Record};
use std::fmt::Write;

/// The activity that the event names as its origin.
pub(crate) fn related_activity(record: &Record<'_>) -> Option<Guid> {
    record.ext_items().find(|item| item.kind == ext::RELATED_ACTIVITYID)?.data.guid_at(0)
}

/// All items that have no column of their own; `None` if there is none.
pub(crate) fn items(record: &Record<'_>) -> Option<String> {
    let mut out = String::new();
    for item in record.ext_items() {
        let own_place = matches!(
            item.kind,
            ext::RELATED_ACTIVITYID
                | ext::STACK_TRACE32
                | ext::STACK_TRACE64
                | ext::STACK_KEY32
                | ext::STACK_KEY64
                | ext::EVENT_SCHEMA_TL
        );
        if !own_place {
            let name = ext::name(item.kind).map_or_else(|| format!("Item{}", item.kind), str::to_owned);
            member(&mut out, &name, &value(&item));
        }
    }
    let counters: Vec<String> = record.pmc_counters().map(|c| c.to_string()).collect();
    if !counters.is_empty() {
        member(&mut out, "PmcCounters", &format!("[{}]", counters.join(",")));
    }
    if out.is_empty() {
        return None;
    }
    out.push('}');
    Some(out)
}

fn member(out: &mut String, name: &str, value: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    json_string(out, name);
    out.push(':');
    out.push_str(value);
}

/// One item as a JSON value; what does not have the item's size is shown as bytes.
fn value(item: &ExtItem<'_>) -> String {
    let data = item.data;
    let mut text = String::new();
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    let known = match item.kind {
        ext::SID => {
            sid(&mut text, data);
            Some(quoted(&text)).filter(|_| !text.is_empty())
        }
        ext::TS_ID => number(data.u32_at(0).map(u64::from)),
        ext::PEBS_INDEX | ext::PSM_KEY | ext::EVENT_KEY | ext::PROCESS_START_KEY => number(data.u64_at(0)),
        ext::QPC_DELTA => data.i64_at(0).map(|n| n.to_string()),
        ext::CONTROL_GUID => data.guid_at(0).map(|g| quoted(&g.to_string())),
        ext::CONTAINER_ID => match data.len() {
            16 => data.guid_at(0).map(|g| quoted(&g.to_string())),
            _ => Some(quoted(&String::from_utf8_lossy(data))),
        },
        ext::PMC_COUNTERS => {
            let values: Vec<String> =
                data.chunks_exact(8).filter_map(|c| c.u64_at(0)).map(|c| c.to_string()).collect();
            Some(format!("[{}]", values.join(",")))
        }
        ext::INSTANCE_INFO => instance(data),
        ext::PROV_TRAITS => provider_name(data).map(|n| quoted(&n)),
        _ => None,
    };
    known.unwrap_or_else(|| {
        text.clear();
        hex_bytes(&mut text, data);
        quoted(&text)
    })
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    json_string(&mut out, text);
    out
}

fn instance(data: &[u8]) -> Option<String> {
    let mut out = String::new();
    let (id, parent, guid) = (data.u32_at(0)?, data.u32_at(4)?, data.guid_at(8)?);
    write!(out, "{{\"InstanceId\":{id},\"ParentInstanceId\":{parent},\"ParentGuid\":\"{guid}\"}}").ok()?;
    Some(out)
}

/// Provider traits: u16 size, then the name, nul-ended UTF-8.
fn provider_name(data: &[u8]) -> Option<String> {
    let name = data.get(2..)?;
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    Some(String::from_utf8_lossy(name.get(..end)?).into_owned())
}
