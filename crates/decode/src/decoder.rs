//! All sources of meaning behind one door.

use crate::anomalies::METADATA_BROKEN;
use crate::builtin;
use crate::event_key::EventKey;
use crate::event_types::EventTypes;
use crate::kernel::KernelLayouts;
use crate::manifest::{ChunkCollector, Manifests, is_chunk};
use crate::metadata::{self, EventInfo, Identity};
use crate::read::{Decoded, read};
use crate::schema::{Count, DecodedBy, EventSchema, Field, InType, ValueMap};
use crate::tmf::TmfSet;
use crate::tracelogging;
use etwhy_etl::abi::guids::{EVENT_METADATA, PERF_TRACK_METADATA};
use etwhy_etl::abi::header::MANIFEST_EVENT_ID;
use etwhy_etl::{Guid, Ledger, Record};
use foldhash::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Most event descriptions that are kept from a trace.
const MAX_METADATA: usize = 200_000;

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
pub struct Decoder {
    info: HashMap<Identity, EventInfo>,
    providers: HashMap<Guid, Arc<str>>,
    maps: HashMap<(Guid, Arc<str>), Arc<ValueMap>>,
    chunks: ChunkCollector,
    embedded: Manifests,
    user: Manifests,
    tmf: TmfSet,
    /// Own numbering of event types, to find schemas again.
    types: EventTypes,
    cache: Vec<Option<Option<Arc<EventSchema>>>>,
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
            providers: HashMap::default(),
            maps: HashMap::default(),
            chunks: ChunkCollector::default(),
            embedded: Manifests::new(),
            user,
            tmf,
            types: EventTypes::new(),
            cache: Vec::new(),
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
                self.embedded.add(provider);
                self.cache.clear();
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
        if self.info.len() < MAX_METADATA && !self.info.contains_key(&info.identity) {
            self.info.insert(info.identity, info);
            self.cache.clear();
        }
        Some(())
    }

    fn learn_map(&mut self, payload: &[u8]) -> Option<()> {
        let (provider, map) = metadata::map_info(payload)?;
        if self.maps.len() < MAX_METADATA {
            self.maps.insert((provider, Arc::clone(&map.name)), Arc::new(map));
            self.cache.clear();
        }
        Some(())
    }

    /// The schema of a record; `None` when nothing describes it.
    #[inline]
    pub fn schema(&mut self, record: &Record<'_>) -> Option<Arc<EventSchema>> {
        let index = self.types.find(record) as usize;
        if let Some(Some(known)) = self.cache.get(index) {
            return known.clone();
        }
        self.remember(index)
    }

    #[cold]
    fn remember(&mut self, index: usize) -> Option<Arc<EventSchema>> {
        let schema = self.types.all().get(index).and_then(|ty| self.schema_of(&ty.key));
        if self.cache.len() <= index {
            self.cache.resize(index + 1, None);
        }
        if let Some(place) = self.cache.get_mut(index) {
            *place = Some(schema.clone());
        }
        schema
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
        let mut found = self.info.values().filter(|info| {
            let of = info.identity;
            of.classic && of.guid == guid && of.opcode == opcode && of.version == version
        });
        found.next().map(|info| {
            let schema = EventSchema { decoded_by: DecodedBy::Mof, ..self.finished(info) };
            Arc::new(schema)
        })
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
        if let Some(info) = self.info.get(&Identity { guid: provider, id, version, opcode, classic: false }) {
            return Some(Arc::new(self.finished(info)));
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
        given.or_else(|| builtin::manifests().schema(provider, id, version, opcode)).cloned()
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
