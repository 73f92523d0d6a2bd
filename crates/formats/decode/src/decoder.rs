//! All sources of meaning behind one door.

use crate::anomalies::{MANIFEST_TOO_LARGE, METADATA_BROKEN};
use crate::builtin;
use crate::event_key::EventKey;
use crate::event_types::EventTypes;
use crate::kernel::KernelLayouts;
use crate::manifest::{ChunkCollector, Manifests, is_chunk};
use crate::metadata::{self, EventInfo, Identity};
use crate::read::{Decoded, read};
use crate::schema::{Count, DecodedBy, EventSchema, Field, InType, ValueMap, field_count};
use crate::tmf::TmfSet;
use crate::tracelogging;
use etwhy_base::Guid;
use etwhy_etl::abi::guids::{EVENT_METADATA, PERF_TRACK_METADATA};
use etwhy_etl::abi::header::MANIFEST_EVENT_ID;
use etwhy_etl::{Ledger, Record};
use foldhash::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Most event descriptions, and most maps, that are kept from a trace.
const MAX_METADATA: usize = 200_000;
/// Most fields and map entries that are kept from a trace, for each source.
const MAX_FIELDS: usize = 2_000_000;

/// Where to look for meaning besides the trace itself.
#[derive(Clone, Debug, Default)]
pub struct DecoderOptions {
    /// Folders (or files) with manifests.
    pub manifests: Vec<PathBuf>,
    /// Folders (or files) with TMF files.
    pub tmf: Vec<PathBuf>,
}

/// Finds the schema of any record.
///
/// Order of the sources: kernel layouts for kernel records and their classic twins; for user events
/// metadata embedded in the trace, the record's own TraceLogging item, EventSource manifests of the
/// trace, classic classes, the user's manifests, the manifests that ship; TMF files for WPP.
#[derive(Clone)]
pub struct Decoder {
    info: HashMap<Identity, EventInfo>,
    /// Descriptions of MOF classes by class, opcode and version.
    classes: HashMap<(Guid, u8, u8), Identity>,
    info_fields: usize,
    map_entries: usize,
    /// Fields of the TraceLogging events that were described.
    item_fields: usize,
    providers: HashMap<Guid, Arc<str>>,
    maps: HashMap<(Guid, Arc<str>), Arc<ValueMap>>,
    chunks: ChunkCollector,
    embedded: Manifests,
    user: Manifests,
    tmf: TmfSet,
    /// Own numbering of event types, to find schemas again.
    types: EventTypes,
    cache: Vec<Slot>,
    /// Grows whenever a source learns something.
    generation: u32,
}

/// A schema that was looked up.
#[derive(Clone, Default)]
struct Slot {
    /// The generation it was looked up in; 0 for never, `u32::MAX` when nothing learnt can change it.
    generation: u32,
    schema: Option<Arc<EventSchema>>,
}

impl Decoder {
    /// Loads what the options name. Files that cannot be read are counted in the ledger.
    pub fn new(options: &DecoderOptions, ledger: &mut Ledger) -> Decoder {
        let mut user = Manifests::new();
        for path in &options.manifests {
            user.extend(Manifests::load_dir(path, ledger));
        }
        let mut tmf = TmfSet::default();
        for path in &options.tmf {
            tmf.extend(TmfSet::load_dir(path, ledger));
        }
        Decoder {
            info: HashMap::default(),
            classes: HashMap::default(),
            info_fields: 0,
            map_entries: 0,
            item_fields: 0,
            providers: HashMap::default(),
            maps: HashMap::default(),
            chunks: ChunkCollector::default(),
            embedded: Manifests::new(),
            user,
            tmf,
            types: EventTypes::new(),
            cache: Vec::new(),
            generation: 1,
        }
    }

    /// True for records that [`Decoder::observe`] learns from. Cheap.
    #[inline]
    pub fn wants(record: &Record<'_>) -> bool {
        if record.kind.is_event() {
            return is_chunk(record);
        }
        record.kind.is_classic()
            && matches!(record.opcode(), metadata::OP_EVENT_INFO | metadata::OP_MAP_INFO)
            && record.guid().is_some_and(|g| g == EVENT_METADATA || g == PERF_TRACK_METADATA)
    }

    /// Learns from a record that describes events; others are ignored.
    pub fn observe(&mut self, record: &Record<'_>, ledger: &mut Ledger) {
        if !Decoder::wants(record) {
            return;
        }
        if is_chunk(record) {
            if let Some(provider) = self.chunks.add(record, ledger) {
                if self.embedded.field_total() > MAX_FIELDS {
                    ledger.note(&MANIFEST_TOO_LARGE, 1, || "all manifests of the trace together".to_owned());
                    return;
                }
                self.embedded.add(provider);
                self.generation += 1;
            }
            return;
        }
        let learnt = match record.opcode() {
            metadata::OP_EVENT_INFO => self.learn_event(record.payload()),
            _ => self.learn_map(record.payload()),
        };
        if learnt.is_none() {
            ledger.count(&METADATA_BROKEN, 1);
        }
    }

    fn learn_event(&mut self, payload: &[u8]) -> Option<()> {
        let info = metadata::event_info(payload)?;
        if !info.schema.provider.is_empty() {
            self.providers.entry(info.identity.guid).or_insert_with(|| Arc::clone(&info.schema.provider));
        }
        let room = self.info.len() < MAX_METADATA && self.info_fields < MAX_FIELDS;
        if room && !self.info.contains_key(&info.identity) {
            let of = info.identity;
            if of.classic {
                self.classes.insert((of.guid, of.opcode, of.version), of);
            }
            self.info_fields += info.schema.fields.len() + info.maps.len();
            self.info.insert(of, info);
            self.generation += 1;
        }
        Some(())
    }

    fn learn_map(&mut self, payload: &[u8]) -> Option<()> {
        let (provider, map) = metadata::map_info(payload)?;
        if self.maps.len() < MAX_METADATA && self.map_entries < MAX_FIELDS {
            self.map_entries += map.entries.len();
            self.maps.insert((provider, Arc::clone(&map.name)), Arc::new(map));
            self.generation += 1;
        }
        Some(())
    }

    /// The schema of a record; `None` when nothing describes it.
    #[inline]
    pub fn schema(&mut self, record: &Record<'_>) -> Option<Arc<EventSchema>> {
        self.schema_ref(record).cloned()
    }

    /// As [`Decoder::schema`], for a look at one record: counting users of an `Arc` costs more than the search.
    #[inline]
    pub fn schema_ref(&mut self, record: &Record<'_>) -> Option<&Arc<EventSchema>> {
        let index = self.types.find(record) as usize;
        let known = self.cache.get(index).map_or(0, |slot| slot.generation);
        if known != self.generation && known != u32::MAX {
            self.remember(index);
        }
        self.cache.get(index)?.schema.as_ref()
    }

    #[cold]
    fn remember(&mut self, index: usize) {
        let Some(ty) = self.types.all().get(index) else { return };
        let mut schema = self.schema_of(&ty.key);
        if matches!(ty.key, EventKey::TraceLogging { .. }) {
            // Each description is small, but a hostile trace has many.
            let fields = schema.as_ref().map_or(0, |s| field_count(&s.fields));
            self.item_fields = self.item_fields.saturating_add(fields);
            if self.item_fields > MAX_FIELDS {
                schema = None;
            }
        }
        let fixed = matches!(
            ty.key,
            EventKey::Kernel { .. } | EventKey::TraceLogging { .. } | EventKey::Wpp { .. } | EventKey::Other
        );
        let generation = if fixed { u32::MAX } else { self.generation };
        if self.cache.len() <= index {
            self.cache.resize(index + 1, Slot::default());
        }
        if let Some(slot) = self.cache.get_mut(index) {
            *slot = Slot { generation, schema };
        }
    }

    /// Schema and values of a record in one step.
    pub fn decode<'a>(&mut self, record: &Record<'a>) -> Option<(Arc<EventSchema>, Decoded<'a>)> {
        let schema = self.schema(record)?;
        let decoded = read(&schema, record.payload(), record.pointer_size());
        Some((schema, decoded))
    }

    /// The schema of an event type. Not cached: ask once per type.
    pub fn schema_of(&self, key: &EventKey) -> Option<Arc<EventSchema>> {
        match key {
            EventKey::Kernel { group, ty, version } => {
                KernelLayouts::builtin().schema(*group, *ty, u16::from(*version)).cloned()
            }
            EventKey::Classic { guid, opcode, version } => self.classic(*guid, *opcode, *version),
            EventKey::Event { provider, id, version, opcode, string_only } => {
                self.event(*provider, *id, *version, *opcode, *string_only)
            }
            EventKey::TraceLogging { provider, opcode, item, traits } => {
                let mut schema = tracelogging::schema(*provider, item, traits.as_deref(), *opcode)?;
                if schema.provider.is_empty() {
                    schema.provider = self.provider_name(*provider).unwrap_or_default();
                }
                Some(Arc::new(schema))
            }
            EventKey::Wpp { guid, number } => self.tmf.schema(*guid, *number).cloned(),
            EventKey::WppComponent { .. } | EventKey::Unknown { .. } | EventKey::Other => None,
        }
    }

    fn classic(&self, guid: Guid, opcode: u8, version: u16) -> Option<Arc<EventSchema>> {
        if let Some(schema) = KernelLayouts::builtin().class_schema(&guid, opcode, version) {
            return Some(Arc::clone(schema));
        }
        let version = u8::try_from(version).ok()?;
        let info = self.info.get(self.classes.get(&(guid, opcode, version))?)?;
        Some(Arc::new(EventSchema { decoded_by: DecodedBy::Mof, ..self.finished(info) }))
    }

    fn event(
        &self,
        provider: Guid,
        id: u16,
        version: u8,
        opcode: u8,
        string_only: bool,
    ) -> Option<Arc<EventSchema>> {
        if string_only {
            return Some(Arc::new(self.fixed(provider, "EventWriteString", string_fields())));
        }
        if id == MANIFEST_EVENT_ID && opcode == 0xFE {
            return Some(Arc::new(self.fixed(provider, "ManifestData", manifest_fields())));
        }
        let shipped = builtin::manifests().schema(provider, id, version, opcode);
        if let Some(info) = self.info.get(&Identity { guid: provider, id, version, opcode, classic: false }) {
            let mut schema = self.finished(info);
            // One name for one event, whether the trace was merged or not.
            if let Some(shipped) = shipped {
                schema.name = Arc::clone(&shipped.name);
                schema.task = Arc::clone(&shipped.task);
                schema.opcode = Arc::clone(&shipped.opcode);
            }
            return Some(Arc::new(schema));
        }
        if let Some(schema) = self.embedded.schema(provider, id, version, opcode) {
            return Some(Arc::clone(schema));
        }
        // Classic providers may log through EVENT_HEADER records; the GUID is the class then.
        if id == 0
            && let Some(schema) = self.classic(provider, opcode, u16::from(version))
        {
            return Some(schema);
        }
        let given = self.user.schema(provider, id, version, opcode);
        given.or(shipped).cloned()
    }

    /// Metadata with the maps that are known by now.
    fn finished(&self, info: &EventInfo) -> EventSchema {
        let mut schema = info.schema.clone();
        for (path, name) in &info.maps {
            if let Some(map) = self.maps.get(&(schema.guid, name.as_str().into())) {
                metadata::attach(&mut schema.fields, path, map);
            }
        }
        schema
    }

    fn fixed(&self, provider: Guid, name: &str, fields: Vec<Field>) -> EventSchema {
        EventSchema {
            guid: provider,
            provider: self.provider_name(provider).unwrap_or_default(),
            name: name.into(),
            task: name.into(),
            opcode: "".into(),
            message: "".into(),
            decoded_by: DecodedBy::Manifest,
            verified: true,
            fields,
        }
    }

    /// The name of a provider, from whichever source knows it.
    pub fn provider_name(&self, provider: Guid) -> Option<Arc<str>> {
        let known = self.providers.get(&provider);
        known
            .or_else(|| self.embedded.provider_name(provider))
            .or_else(|| self.user.provider_name(provider))
            .or_else(|| builtin::manifests().provider_name(provider))
            .or_else(|| builtin::provider_name(provider))
            .cloned()
    }

    /// Manifests found in the trace so far.
    pub fn embedded_manifests(&self) -> &Manifests {
        &self.embedded
    }

    /// Number of event descriptions that merging put into the trace, as far as seen.
    pub fn metadata_len(&self) -> usize {
        self.info.len()
    }
}

/// Fields of an event written with `EventWriteString`.
fn string_fields() -> Vec<Field> {
    vec![Field::plain("Message", InType::UnicodeString)]
}

/// Fields of a piece of an EventSource manifest.
fn manifest_fields() -> Vec<Field> {
    let mut data = Field::plain("Data", InType::Binary);
    data.count = Count::One;
    vec![
        Field::plain("Format", InType::UInt8),
        Field::plain("MajorVersion", InType::UInt8),
        Field::plain("MinorVersion", InType::UInt8),
        Field::plain("Magic", InType::UInt8),
        Field::plain("TotalChunks", InType::UInt16),
        Field::plain("ChunkNumber", InType::UInt16),
        data,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{classic, event, message};
    use etwhy_etl::HeaderKind;

    const P: Guid = Guid::from_text("11111111-2222-3333-4444-555555555555");

    fn record(bytes: &[u8], kind: HeaderKind) -> Record<'_> {
        Record { bytes, kind, ticks: 0, cpu: 0, logger_id: 0, file: 0 }
    }

    fn chunk(xml: &str) -> Vec<u8> {
        let mut payload = vec![1, 1, 0, 0x5B, 1, 0, 0, 0];
        payload.extend(xml.as_bytes());
        event(P, MANIFEST_EVENT_ID, 0, 0xFE, &[], &payload)
    }

    #[test]
    fn a_manifest_that_comes_late_still_serves() {
        let mut ledger = Ledger::new();
        let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
        let bytes = event(P, 7, 0, 0, &[], &[5, 0, 0, 0]);
        let seven = record(&bytes, HeaderKind::Event64);
        assert!(decoder.schema(&seven).is_none());
        let bytes = chunk(
            r#"<provider name="Late" guid="{11111111-2222-3333-4444-555555555555}"><events>
               <event value="7" template="t" task="Work"/></events><tasks><task name="Work" value="1"/></tasks>
               <templates><template tid="t"><data name="n" inType="win:Int32"/></template></templates></provider>"#,
        );
        let manifest = record(&bytes, HeaderKind::Event64);
        assert!(Decoder::wants(&manifest) && !Decoder::wants(&seven));
        decoder.observe(&manifest, &mut ledger);
        let (schema, decoded) = decoder.decode(&seven).unwrap();
        assert_eq!((&*schema.provider, &*schema.name), ("Late", "Work"));
        assert_eq!(decoded.values, [crate::Value::I32(5)]);
        assert_eq!(&*decoder.schema(&manifest).unwrap().name, "ManifestData");
        assert!(ledger.is_empty());
    }

    #[test]
    fn damaged_metadata_is_counted() {
        let mut ledger = Ledger::new();
        let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
        for opcode in [32, 33] {
            let bytes = classic(EVENT_METADATA, opcode, 0, b"short");
            decoder.observe(&record(&bytes, HeaderKind::Full64), &mut ledger);
        }
        assert_eq!(ledger.get(&METADATA_BROKEN), 2);
    }

    #[test]
    fn undecodable_events_are_described_by_their_numbers() {
        let mut ledger = Ledger::new();
        let decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
        let mut types = EventTypes::new();
        let mut describe = |bytes: &[u8], kind| {
            let index = types.index(&record(bytes, kind));
            let info = types.describe(index, &decoder).unwrap();
            (info.provider.to_string(), info.name.to_string(), info.decoded_by)
        };
        let guid = P.to_string();
        let none = DecodedBy::None;
        assert_eq!(
            describe(&event(P, 7, 0, 0, &[], b""), HeaderKind::Event64),
            (guid.clone(), "EventID(7)".into(), none)
        );
        assert_eq!(
            describe(&event(P, 0, 0, 2, &[], b""), HeaderKind::Event64),
            (guid.clone(), "Task(0)/Stop".into(), none)
        );
        assert_eq!(
            describe(&message(P, 10, b""), HeaderKind::Message),
            (guid.clone(), "Message(10)".into(), none)
        );
        assert_eq!(describe(&classic(P, 9, 1, b""), HeaderKind::Full64), (guid, "Opcode(9)".into(), none));
        let named = Guid::from_text("b675ec37-bdb6-4648-bc92-f3fdc74d3ca2");
        let (provider, name, by) = describe(&event(named, 18, 0, 24, &[], b""), HeaderKind::Event64);
        assert_eq!((&*provider, &*name, by), ("Microsoft-Windows-Kernel-EventTracing", "StackTrace", none));
        let item = b"\x0c\0\0Tick\0n\0\x08\0\0";
        let (provider, name, by) =
            describe(&event(P, 0, 0, 0, &[(12, b"\x06\0Pro\0"), (11, item)], b""), HeaderKind::Event64);
        assert_eq!((&*provider, &*name, by), ("Pro", "Tick", DecodedBy::TraceLogging));
    }

    #[test]
    fn string_events() {
        let mut ledger = Ledger::new();
        let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
        let mut bytes = event(P, 0, 0, 0, &[], b"h\0i\0");
        bytes[4] = 4;
        let (schema, decoded) = decoder.decode(&record(&bytes, HeaderKind::Event64)).unwrap();
        assert_eq!(&*schema.name, "EventWriteString");
        assert_eq!(decoded.values, [crate::Value::Str("hi".into())]);
    }
}
