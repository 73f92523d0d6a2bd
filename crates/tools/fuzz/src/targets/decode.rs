//! Targets of the sources of meaning. What a source makes of its input is applied to payloads at once.

use super::target::accepted;
use crate::seeds::{self, Seed};
use etwhy_base::{Bytes, Guid};
use etwhy_decode::format::to_json;
use etwhy_decode::kernel::{KernelLayouts, Slots, fitting_pointer_size, measure, raw_field};
use etwhy_decode::manifest::ChunkCollector;
use etwhy_decode::message::render_message;
use etwhy_decode::read::{Decoded, read};
use etwhy_decode::schema::EventSchema;
use etwhy_decode::{FieldPlan, tmf::TmfSet};
use etwhy_etl::{HeaderKind, Ledger, Record};
use std::path::Path;
use std::sync::Arc;

/// Shows a decoded event in every form.
pub fn show(decoded: Option<(Arc<EventSchema>, Decoded<'_>)>) {
    let Some((schema, decoded)) = decoded else { return };
    let mut text = String::new();
    to_json(&mut text, &schema, &decoded);
    text.clear();
    render_message(&mut text, &schema, &decoded.values);
    for name in ["Id", "nothing"] {
        let _ = decoded.get(&schema, name);
    }
}

/// Payloads that schemas are tried on.
fn payloads() -> [Vec<u8>; 4] {
    let numbers: Vec<u8> = (0..600u16).flat_map(u16::to_le_bytes).collect();
    [Vec::new(), vec![0xFF; 300], vec![1; 4000], numbers]
}

/// Reads payloads with a schema, with both pointer sizes.
pub fn apply(schema: EventSchema) {
    let schema = Arc::new(schema);
    let names: Vec<&str> = schema.fields.iter().take(4).map(|f| &*f.name).collect();
    let plan = FieldPlan::new(&schema, &names);
    for payload in payloads() {
        for pointer_size in [4, 8] {
            let decoded = read(&schema, &payload, pointer_size);
            assert!(decoded.rest.len() <= payload.len());
            show(Some((Arc::clone(&schema), decoded)));
            for index in 0..names.len() {
                let _ = plan.u64(index, &payload, pointer_size);
                let _ = plan.value(index, &payload, pointer_size);
            }
        }
    }
}

/// `TRACE_EVENT_INFO` and `EVENT_MAP_INFO`.
pub fn metadata(data: &[u8]) {
    if let Some(info) = etwhy_decode::metadata::event_info(data) {
        accepted();
        apply(info.schema);
    }
    if let Some((_, map)) = etwhy_decode::metadata::map_info(data) {
        accepted();
        assert!(map.entries.len() <= data.len());
    }
}

/// Descriptions with all their parts.
pub fn metadata_seeds(_: &Path, _: usize) -> Vec<Seed> {
    vec![
        Seed { name: "event".into(), data: seeds::event_info() },
        Seed { name: "map".into(), data: seeds::map_info() },
    ]
}

/// A TraceLogging item; the first byte says how much of the rest are the provider's traits.
pub fn tracelogging(data: &[u8]) {
    let Some((&traits, rest)) = data.split_first() else { return };
    let (traits, item) = rest.split_at(usize::from(traits).min(rest.len()));
    let _ = etwhy_decode::tracelogging::provider_traits(traits);
    let _ = etwhy_decode::tracelogging::event_name(item);
    if let Some(schema) = etwhy_decode::tracelogging::schema(Guid::ZERO, item, Some(traits), 0) {
        accepted();
        apply(schema);
    }
}

/// Items with numbers, texts, arrays and a struct.
pub fn tracelogging_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let (item, traits) = seeds::tracelogging();
    let with = |item: &[u8]| {
        let mut data = vec![traits.len() as u8];
        data.extend(&traits);
        data.extend(item);
        data
    };
    let mut nested = vec![0, 0, 0];
    nested.extend(b"Nested\0S\0");
    // A struct of two members that is a variable array, then binary with a length.
    nested.extend([24 | 0x80 | 0x40, 2]);
    nested.extend(b"x\0\x08y\0\x81\x05z\0\x0eb\0\x2f\x03\x00");
    let size = (nested.len() as u16).to_le_bytes();
    nested[..2].copy_from_slice(&size);
    vec![Seed { name: "flat".into(), data: with(&item) }, Seed { name: "nested".into(), data: with(&nested) }]
}

/// Manifest XML.
pub fn manifest(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(providers) = etwhy_decode::manifest::parse(&text) else { return };
    for event in providers.into_iter().flat_map(|p| p.events).take(50) {
        accepted();
        apply((*event.schema).clone());
    }
}

/// The manifest with every part, and pieces of it.
pub fn manifest_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let whole = seeds::MANIFEST;
    let from = whole.find("<provider").unwrap_or(0);
    let to = whole.find("</events></inst").unwrap_or(whole.len());
    let bare = whole.get(from..to).unwrap_or(whole);
    [("manifest", whole), ("provider", bare)]
        .map(|(name, text)| Seed { name: name.into(), data: text.as_bytes().to_vec() })
        .into()
}

/// The same in one piece and in several, in order and out of it.
pub fn chunk_seeds(corpus: &Path, limit: usize) -> Vec<Seed> {
    let with = |seed: Seed, head: [u8; 2]| {
        let name = format!("{} {head:?}", seed.name);
        Seed { name, data: [&head[..], &seed.data].concat() }
    };
    let all = manifest_seeds(corpus, limit);
    all.into_iter().flat_map(|seed| [[0, 0], [3, 0], [3, 1]].map(|head| with(seed.clone(), head))).collect()
}

/// The input as an EventSource manifest in pieces: as many as its first byte says, of threads and in an order
/// that its second byte says.
pub fn chunks(data: &[u8]) {
    let Some((head, body)) = data.split_first_chunk::<2>() else { return };
    let total = usize::from(head[0] % 8) + 1;
    let size = body.len().div_ceil(total).max(1);
    let mut collector = ChunkCollector::default();
    let mut ledger = Ledger::new();
    for (number, piece) in body.chunks(size).enumerate() {
        let number = if head[1] & 1 != 0 { number ^ 1 } else { number };
        let mut bytes = vec![0u8; 80];
        bytes[2..4].copy_from_slice(&[19, 0xC0]);
        bytes[8] = head[1] >> 6;
        bytes[0x28..0x2A].copy_from_slice(&0xFFFEu16.to_le_bytes());
        bytes[0x2D] = 0xFE;
        bytes.extend([1, 1, 0, 0x5B]);
        bytes.extend((total as u16).to_le_bytes());
        bytes.extend((number as u16).to_le_bytes());
        bytes.extend(piece);
        let record =
            Record { bytes: &bytes, kind: HeaderKind::Event64, ticks: 0, cpu: 0, logger_id: 0, file: 0 };
        if let Some(provider) = collector.add(&record, &mut ledger) {
            accepted();
            assert!(provider.events.len() <= 1 << 20);
        }
    }
}

/// A TMF file.
pub fn tmf(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut set = TmfSet::default();
    set.add(&text);
    // The numbers of messages start at 10.
    let guids: Vec<Guid> = text.split_whitespace().filter_map(|w| w.parse().ok()).take(8).collect();
    for guid in guids {
        for number in 10..20 {
            if let Some(schema) = set.schema(guid, number) {
                accepted();
                apply((**schema).clone());
            }
        }
    }
}

/// TMF files of the corpus, cut, and one with every kind of argument.
pub fn tmf_seeds(corpus: &Path, _: usize) -> Vec<Seed> {
    let own = "0c0ffee0-1111-2222-3333-444444444444 comp // SRC=a.c MJ= MN=\n\
               #typev a_c10 10 \"%0%!FUNC! got %10!d!, %11!s! and %12!s! %13!x!\" //   LEVEL=INFO FLAGS=X FUNC=f\n{\n\
               n, ItemLong -- 10\ns, ItemString -- 11\ne, ItemListLong(a,b=5,c) -- 12\nb, ItemSetLong(x,y) -- 13\n}\n\
               #typev a_c11 11 \"%0status %10!s! %11!s! %12!s!\"\n{\n\
               st, ItemNTSTATUS -- 10\ng, ItemGuid -- 11\nw, ItemPWString -- 12\n}\n";
    let mut seeds = vec![Seed { name: "own".into(), data: own.into() }];
    for path in seeds::files(corpus, &[".tmf"]).into_iter().take(4) {
        if let Ok(mut data) = std::fs::read(&path) {
            data.truncate(8000);
            seeds.push(Seed { name: path.display().to_string(), data });
        }
    }
    seeds
}

/// The first three bytes choose a kernel layout, the rest is the payload.
pub fn kernel(data: &[u8]) {
    let Some((head, payload)) = data.split_first_chunk::<4>() else { return };
    let layouts = KernelLayouts::builtin();
    let Some(schema) = layouts.schema(head[0], head[1], u16::from(head[2])) else { return };
    accepted();
    for pointer_size in [4, 8] {
        let decoded = read(schema, payload, pointer_size);
        assert!(decoded.rest.len() <= payload.len());
        show(Some((Arc::clone(schema), decoded)));
        let _ = measure(schema, pointer_size, payload);
        let _ = fitting_pointer_size(schema, pointer_size, payload);
        let slots = Slots::for_schema(schema, pointer_size);
        for field in &schema.fields {
            if let Some(slot) = slots.slot(&field.name) {
                let _ = (slot.u64(payload), slot.u32(payload), slot.i64(payload));
            }
            let _ = raw_field(schema, pointer_size, payload, &field.name);
        }
    }
}

/// A payload for every layout.
pub fn kernel_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let mut seeds = Vec::new();
    let mut body: Vec<u8> = (0..64u32).flat_map(|i| (i * 3).to_le_bytes()).collect();
    body.extend("C:\\file\0".encode_utf16().flat_map(u16::to_le_bytes));
    for hook in 0..0x2000u16 {
        for version in 0..6u8 {
            let [group, ty] = hook.to_be_bytes();
            if KernelLayouts::builtin().schema(group, ty, version.into()).is_some() {
                let mut data = vec![group, ty, version, 0];
                data.extend(&body);
                seeds.push(Seed { name: format!("{group:02x}/{ty}v{version}"), data });
            }
        }
    }
    // Few seeds are tried as they are; those with texts and SIDs first.
    seeds.sort_by_key(|s| s.data.u8_at(0) != Some(3));
    seeds
}
