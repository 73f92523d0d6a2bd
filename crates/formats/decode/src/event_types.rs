//! The event types of a trace, numbered densely in the order of their first record.

use crate::anomalies::EVENT_TYPES_FULL;
use crate::event_key::{EventKey, Packed, TraceLoggingItems, packed, trace_logging, unpacked};
use etwhy_base::Guid;
use etwhy_etl::{Ledger, Record};
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;
use std::sync::Arc;

type Hasher = foldhash::fast::FixedState;

/// Most event types that are kept apart.
const MAX_TYPES: usize = 1 << 20;
/// Most bytes of TraceLogging items that are kept.
const MAX_ITEM_BYTES: usize = 256 * 1024 * 1024;
/// Versions of a hook that have a place in the table; higher ones are searched for.
const VERSIONS: usize = 8;
/// Places for keys that were found lately, so that few records need the hash table.
const RECENT: usize = 256;
/// "Not seen yet".
const NONE: u32 = u32::MAX;

/// One event type: its key, what its first record's descriptor said, and counts.
#[derive(Clone, Debug)]
pub struct EventType {
    /// Identity.
    pub key: EventKey,
    /// Level of the first record.
    pub level: u8,
    /// Channel of the first record.
    pub channel: u8,
    /// Task number of the first record.
    pub task: u16,
    /// Keywords of the first record.
    pub keyword: u64,
    /// Records.
    pub count: u64,
    /// Bytes of the records, headers included.
    pub bytes: u64,
}

/// Gives every record the dense index of its event type, and counts.
#[derive(Clone, Debug)]
pub struct EventTypes {
    types: Vec<EventType>,
    /// hook id → index into `versions`.
    hooks: Vec<u32>,
    versions: Vec<[u32; VERSIONS]>,
    high_versions: HashMap<(u16, u8), u32, Hasher>,
    packed: HashMap<Packed, u32, Hasher>,
    recent: Vec<(Packed, u32)>,
    items: HashTable<u32>,
    item_bytes: usize,
    other: Option<u32>,
    hasher: Hasher,
}

impl Default for EventTypes {
    fn default() -> EventTypes {
        EventTypes::new()
    }
}

impl EventTypes {
    /// No types yet.
    pub fn new() -> EventTypes {
        EventTypes {
            types: Vec::new(),
            hooks: vec![NONE; 1 << 16],
            versions: Vec::new(),
            high_versions: HashMap::with_hasher(Hasher::default()),
            packed: HashMap::with_hasher(Hasher::default()),
            recent: vec![(([0; 16], 0), NONE); RECENT],
            items: HashTable::new(),
            item_bytes: 0,
            other: None,
            hasher: Hasher::default(),
        }
    }

    /// The index of a record's type; counts the record.
    #[inline]
    pub fn index(&mut self, record: &Record<'_>) -> u32 {
        let index = self.find(record);
        if let Some(known) = self.types.get_mut(index as usize) {
            known.count += 1;
            known.bytes += record.bytes.len() as u64;
        }
        index
    }

    /// The index of a record's type without counting it.
    #[inline]
    pub fn find(&mut self, record: &Record<'_>) -> u32 {
        if record.kind.is_system() {
            let hook = record.hook();
            let version = record.version() as u8;
            let slot = self.hooks.get(usize::from(hook)).copied().unwrap_or(NONE);
            let known = self.versions.get(slot as usize).and_then(|v| v.get(usize::from(version)));
            return match known {
                Some(&index) if index != NONE => index,
                _ => self.new_kernel(record, hook, version),
            };
        }
        if let Some(items) = trace_logging(record) {
            return self.find_item(record, &items);
        }
        let key = packed(record);
        let place = place_of(&key);
        match self.recent.get(place) {
            Some((known, index)) if *known == key && *index != NONE => *index,
            _ => self.find_packed(key, place, record),
        }
    }

    #[cold]
    fn find_packed(&mut self, key: Packed, place: usize, record: &Record<'_>) -> u32 {
        let index = match self.packed.get(&key) {
            Some(&index) => index,
            None => {
                let index = self.insert(unpacked(key, record), record);
                if self.packed.len() < MAX_TYPES {
                    self.packed.insert(key, index);
                }
                index
            }
        };
        if let Some(place) = self.recent.get_mut(place) {
            *place = (key, index);
        }
        index
    }

    #[cold]
    fn new_kernel(&mut self, record: &Record<'_>, hook: u16, version: u8) -> u32 {
        if usize::from(version) >= VERSIONS
            && let Some(&index) = self.high_versions.get(&(hook, version))
        {
            return index;
        }
        let key = EventKey::Kernel { group: (hook >> 8) as u8, ty: hook as u8, version };
        let index = self.insert(key, record);
        if usize::from(version) >= VERSIONS {
            self.high_versions.insert((hook, version), index);
            return index;
        }
        if let Some(slot) = self.hooks.get_mut(usize::from(hook)) {
            if *slot == NONE {
                *slot = self.versions.len() as u32;
                self.versions.push([NONE; VERSIONS]);
            }
            if let Some(place) =
                self.versions.get_mut(*slot as usize).and_then(|v| v.get_mut(usize::from(version)))
            {
                *place = index;
            }
        }
        index
    }

    fn find_item(&mut self, record: &Record<'_>, items: &TraceLoggingItems<'_>) -> u32 {
        let hash = item_hash(&self.hasher, items.provider, items.opcode, items.item);
        let types = &self.types;
        let same = |&index: &u32| match types.get(index as usize).map(|t| &t.key) {
            Some(EventKey::TraceLogging { provider, opcode, item, .. }) => {
                *provider == items.provider && *opcode == items.opcode && **item == *items.item
            }
            _ => false,
        };
        if let Some(&index) = self.items.find(hash, same) {
            return index;
        }
        let size = items.item.len() + items.traits.map_or(0, <[u8]>::len);
        if self.item_bytes + size > MAX_ITEM_BYTES || self.types.len() >= MAX_TYPES {
            return self.overflow();
        }
        self.item_bytes += size;
        let key = EventKey::TraceLogging {
            provider: items.provider,
            opcode: items.opcode,
            item: items.item.into(),
            traits: items.traits.map(Arc::from),
        };
        let index = self.insert(key, record);
        self.add_item(hash, index);
        index
    }

    fn add_item(&mut self, hash: u64, index: u32) {
        let (types, hasher) = (&self.types, &self.hasher);
        self.items.insert_unique(hash, index, |&index| match types.get(index as usize).map(|t| &t.key) {
            Some(EventKey::TraceLogging { provider, opcode, item, .. }) => {
                item_hash(hasher, *provider, *opcode, item)
            }
            _ => 0,
        });
    }

    fn insert(&mut self, key: EventKey, record: &Record<'_>) -> u32 {
        if self.types.len() >= MAX_TYPES {
            return self.overflow();
        }
        self.types.push(EventType {
            key,
            level: record.level(),
            channel: record.channel(),
            task: record.task(),
            keyword: record.keyword(),
            count: 0,
            bytes: 0,
        });
        (self.types.len() - 1) as u32
    }

    #[cold]
    fn overflow(&mut self) -> u32 {
        if let Some(index) = self.other {
            return index;
        }
        let index = self.types.len() as u32;
        self.other = Some(index);
        self.types.push(EventType {
            key: EventKey::Other,
            level: 0,
            channel: 0,
            task: 0,
            keyword: 0,
            count: 0,
            bytes: 0,
        });
        index
    }

    /// Notes in the ledger how many records were not told apart.
    pub fn report(&self, ledger: &mut Ledger) {
        if let Some(other) = self.other.and_then(|i| self.get(i)) {
            ledger.count(&EVENT_TYPES_FULL, other.count);
        }
    }

    /// The type with an index.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&EventType> {
        self.types.get(index as usize)
    }

    /// All types in the order of their indices.
    pub fn all(&self) -> &[EventType] {
        &self.types
    }

    /// Records that were counted.
    pub fn records(&self) -> u64 {
        self.types.iter().map(|ty| ty.count).fold(0, u64::saturating_add)
    }

    /// Number of types.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// True when no record was seen.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}

/// Place of a key among the recent ones: id, version and opcode spread by a multiplication.
#[inline]
fn place_of((guid, rest): &Packed) -> usize {
    let low = u64::from_le_bytes([guid[0], guid[1], guid[2], guid[3], guid[4], guid[5], guid[6], guid[7]]);
    // 2^64 divided by the golden ratio.
    ((low ^ rest).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}

fn item_hash(hasher: &Hasher, provider: Guid, opcode: u8, item: &[u8]) -> u64 {
    hasher.hash_one((provider, opcode, item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, kernel, message};
    use etwhy_etl::HeaderKind;

    const P: Guid = Guid::from_text("11111111-2222-3333-4444-555555555555");

    fn record(bytes: &[u8], kind: HeaderKind) -> Record<'_> {
        Record { bytes, kind, ticks: 0, cpu: 0, logger_id: 0, file: 0 }
    }

    #[test]
    fn every_kind_of_record_has_its_own_type() {
        let mut types = EventTypes::new();
        let mut index = |bytes: &[u8], kind| types.index(&record(bytes, kind));
        let a = index(&kernel(0x0524, 3, &[]), HeaderKind::System64);
        let b = index(&kernel(0x0524, 0x8003, &[0; 8]), HeaderKind::System64);
        assert_eq!(a, b, "flags of the version do not count");
        assert_ne!(a, index(&kernel(0x0524, 4, &[]), HeaderKind::System64));
        let high = index(&kernel(0x0524, 40, &[]), HeaderKind::System64);
        assert_eq!(high, index(&kernel(0x0524, 40, &[]), HeaderKind::System64));
        let e = index(&event(P, 7, 1, 0, &[], b""), HeaderKind::Event64);
        assert_eq!(e, index(&event(P, 7, 1, 0, &[], b"x"), HeaderKind::Event64));
        assert_ne!(e, index(&event(P, 7, 1, 1, &[], b""), HeaderKind::Event64));
        assert_ne!(e, index(&event(P, 7, 2, 0, &[], b""), HeaderKind::Event64));
        let one = index(&event(P, 0, 0, 0, &[(11, b"\x06\0\0A\0\x01")], b""), HeaderKind::Event64);
        let two = index(&event(P, 0, 0, 0, &[(11, b"\x06\0\0B\0\x01")], b""), HeaderKind::Event64);
        assert_ne!(one, two);
        assert_eq!(one, index(&event(P, 0, 0, 0, &[(11, b"\x06\0\0A\0\x01")], b""), HeaderKind::Event64));
        let w = index(&message(P, 10, b""), HeaderKind::Message);
        assert_ne!(w, index(&message(P, 11, b""), HeaderKind::Message));
        assert_eq!(types.len(), 10);
        assert_eq!((types.get(a).unwrap().count, types.get(e).unwrap().count), (2, 2));
        assert_eq!(types.get(w).unwrap().key, EventKey::Wpp { guid: P, number: 10 });
        assert_eq!(
            types.get(e).unwrap().key,
            EventKey::Event { provider: P, id: 7, version: 1, opcode: 0, string_only: false }
        );
        assert_eq!(types.all().iter().map(|t| t.count).sum::<u64>(), 14);
    }

    #[test]
    fn cut_records_do_no_harm() {
        let whole = event(P, 0, 0, 0, &[(12, b"\x04\0P\0"), (11, b"\x06\0\0A\0\x01")], b"abc");
        let mut types = EventTypes::new();
        for cut in 0..whole.len() {
            types.index(&record(&whole[..cut], HeaderKind::Event64));
            types.index(&record(&whole[..cut], HeaderKind::Message));
            types.index(&record(&whole[..cut], HeaderKind::Full32));
            types.index(&record(&whole[..cut], HeaderKind::PerfInfo64));
            types.index(&record(&whole[..cut], HeaderKind::Error));
        }
        assert_eq!(types.all().iter().map(|t| t.count).sum::<u64>(), 5 * whole.len() as u64);
    }
}
