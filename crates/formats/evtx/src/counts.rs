//! The first tier: what a log holds, counted by kind of event, without reading a field.

use crate::binxml::{Decoder, Event, Fault, System, time};
use crate::codes::Codes;
use crate::error::EvtxError;
use crate::filter::{Filter, time_of};
use crate::pick::Picker;
use crate::read::{Damage, LogFile, RecordRef};
use crate::scan::{Reader, ScanOptions, scan};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// A kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventType {
    /// Channel.
    pub channel: String,
    /// Provider.
    pub provider: String,
    /// Its GUID; empty if records have none.
    pub provider_guid: String,
    /// Event id.
    pub event_id: u16,
    /// Upper half of a classic id.
    pub qualifiers: Option<u16>,
    /// Version.
    pub version: u8,
    /// Level.
    pub level: u8,
    /// Task.
    pub task: u16,
    /// Opcode.
    pub opcode: u8,
    /// Keywords.
    pub keywords: u64,
}

/// How much of it there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Records.
    pub records: u64,
    /// Their bytes in the file.
    pub bytes: u64,
    /// Earliest, FILETIME.
    pub first: u64,
    /// Latest, FILETIME.
    pub last: u64,
}

impl Amount {
    #[inline]
    fn count(&mut self, bytes: u64, time: u64) {
        if self.records == 0 {
            (self.first, self.last) = (time, time);
        }
        self.records += 1;
        self.bytes += bytes;
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    /// Adds another amount.
    pub fn add(&mut self, other: &Amount) {
        if self.records == 0 {
            *self = *other;
        } else if other.records > 0 {
            self.records += other.records;
            self.bytes += other.bytes;
            self.first = self.first.min(other.first);
            self.last = self.last.max(other.last);
        }
    }
}

/// What a log holds.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// All records.
    pub all: Amount,
    /// Smallest and largest `EventRecordID`.
    pub ids: Option<(u64, u64)>,
    /// By kind of event, in order.
    pub types: Vec<(EventType, Amount)>,
    /// The same of those records that the filter takes; `None` without a filter.
    taken: Option<Vec<(EventType, Amount)>>,
    /// By computer, most first.
    pub computers: Vec<(String, u64)>,
    /// Records that could not be read; they count in `all`.
    pub unread: u64,
    /// Earliest record of each chunk (FILETIME), [`u64::MAX`] for those without; in the order of [`LogFile::in_order`].
    pub starts: Vec<u64>,
    /// What was wrong.
    pub damage: Damage,
}

impl Counts {
    /// The kinds of event that the filter takes, and how much of each.
    pub fn wanted(&self) -> &[(EventType, Amount)] {
        self.taken.as_deref().unwrap_or(&self.types)
    }
}

/// Counts all records of a log.
///
/// # Errors
/// The system's.
pub fn count(log: &LogFile, threads: usize) -> Result<Counts, EvtxError> {
    count_wanted(log, threads, &Filter::default())
}

/// Counts a log, and which of its records the filter takes. Without a filter no field is read.
///
/// # Errors
/// The system's.
pub fn count_wanted(log: &LogFile, threads: usize, filter: &Filter) -> Result<Counts, EvtxError> {
    let mut counts = Counts::default();
    let mut types: HashMap<EventType, Amount> = HashMap::new();
    let mut taken: HashMap<EventType, Amount> = HashMap::new();
    let mut computers: HashMap<String, u64> = HashMap::new();
    let options = ScanOptions { threads, in_order: true };
    let take = |part: BatchCounts| {
        counts.all.add(&part.all);
        counts.unread += part.unread;
        counts.starts.extend(part.starts);
        if let Some((low, high)) = part.ids {
            let (a, b) = counts.ids.unwrap_or((low, high));
            counts.ids = Some((a.min(low), b.max(high)));
        }
        for (kind, all, wanted) in part.types {
            if wanted.records > 0 {
                taken.entry(kind.clone()).or_default().add(&wanted);
            }
            types.entry(kind).or_default().add(&all);
        }
        for (computer, n) in part.computers {
            *computers.entry(computer).or_default() += n;
        }
        true
    };
    let damage = scan(log, &options, || Counter::new(filter), take)?;
    counts.damage = damage;
    counts.types = in_order(types);
    counts.taken = (!filter.is_empty()).then(|| in_order(taken));
    counts.computers = computers.into_iter().collect();
    counts.computers.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(counts)
}

fn in_order(types: HashMap<EventType, Amount>) -> Vec<(EventType, Amount)> {
    let mut types: Vec<_> = types.into_iter().collect();
    types.sort_by(|a, b| a.0.cmp(&b.0));
    types
}

/// What a batch holds.
#[derive(Default)]
struct BatchCounts {
    all: Amount,
    ids: Option<(u64, u64)>,
    /// All records of a kind, and those that the filter takes.
    types: Vec<(EventType, Amount, Amount)>,
    computers: Vec<(String, u64)>,
    unread: u64,
    starts: Vec<u64>,
}

/// A kind of event by numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Key {
    channel: u32,
    provider: u32,
    guid: u32,
    /// Event id, qualifiers and whether there are any.
    id: u64,
    /// Version, level, opcode, task.
    rest: u64,
    keywords: u64,
}

/// A kind of event and how much of it there is.
#[derive(Clone, Copy, Default)]
struct Kind {
    key: Key,
    amount: Amount,
    taken: Amount,
}

/// Provider, GUID, channel and computer that came together, and their last kind.
#[derive(Clone, Copy, Default)]
struct Recent {
    /// What stands for them; 0 if nothing does.
    identity: u64,
    /// Codes of its channel, provider, GUID and computer.
    codes: [u32; 4],
    /// Index of its last kind.
    kind: usize,
}

/// So many are remembered, by the lower bits of what stands for them.
const RECENT: usize = 256;

struct Counter<'f> {
    picker: Picker<'f>,
    channels: Codes,
    providers: Codes,
    hosts: Codes,
    guids: Codes,
    recent: [Recent; RECENT],
    kinds: Vec<Kind>,
    index: HashMap<Key, usize, RandomState>,
    /// Records by number of the computer.
    computers: Vec<u64>,
    ids: (u64, u64),
    unread: (u64, Amount),
    /// Earliest record of the present chunk, and of those before it.
    start: u64,
    starts: Vec<u64>,
}

impl<'f> Counter<'f> {
    fn new(filter: &'f Filter) -> Counter<'f> {
        Counter {
            picker: Picker::new(filter),
            channels: Codes::default(),
            providers: Codes::default(),
            hosts: Codes::default(),
            guids: Codes::default(),
            recent: [Recent::default(); RECENT],
            kinds: Vec::new(),
            index: HashMap::default(),
            computers: Vec::new(),
            ids: (u64::MAX, 0),
            unread: Default::default(),
            start: u64::MAX,
            starts: Vec::new(),
        }
    }

    fn codes(&mut self, system: &System<'_>) -> [u32; 4] {
        [
            self.channels.code_of(&system.channel),
            self.providers.code_of(&system.provider),
            self.guids.code_of(&system.provider_guid),
            self.hosts.code_of(&system.computer),
        ]
    }

    fn kind(&mut self, key: Key) -> usize {
        *self.index.entry(key).or_insert_with(|| {
            self.kinds.push(Kind { key, ..Kind::default() });
            self.kinds.len() - 1
        })
    }
}

impl Reader for Counter<'_> {
    type Output = BatchCounts;

    #[inline]
    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        let bytes = record.size as u64;
        let Ok(event) = event else {
            self.unread.0 += 1;
            self.unread.1.count(bytes, record.time);
            self.start = self.start.min(record.time);
            return Ok(());
        };
        let identity = decoder.identity(&event).unwrap_or(0);
        let system = decoder.numbers(&event);
        let id = system.record_id.unwrap_or(record.id);
        self.ids = (self.ids.0.min(id), self.ids.1.max(id));
        let at = identity as usize % RECENT;
        let known = self.recent[at].identity == identity && identity > 0;
        let codes = match identity {
            _ if known => self.recent[at].codes,
            // `numbers` is all that such a record has.
            0 => self.codes(&system),
            _ => self.codes(&decoder.system(&event)),
        };
        let [channel, provider, guid, computer] = codes;
        let key = Key {
            channel,
            provider,
            guid,
            id: u64::from(system.event_id) | system.qualifiers.map_or(0, |q| 1 << 32 | u64::from(q) << 16),
            rest: u64::from(system.version)
                | u64::from(system.level) << 8
                | u64::from(system.opcode) << 16
                | u64::from(system.task) << 24,
            keywords: system.keywords,
        };
        match self.computers.get_mut(computer as usize) {
            Some(records) => *records += 1,
            None => {
                self.computers.resize(computer as usize + 1, 0);
                if let Some(last) = self.computers.last_mut() {
                    *last = 1;
                }
            }
        }
        let recent = self.recent[at];
        let same = recent.identity == identity && self.kinds.get(recent.kind).is_some_and(|k| k.key == key);
        let kind = if same { recent.kind } else { self.kind(key) };
        self.recent[at] = Recent { identity, codes, kind };
        let time = time_of(&system, record);
        self.start = self.start.min(time);
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.amount.count(bytes, time);
        }
        if !self.picker.takes_all()
            && self.picker.takes(decoder, &event, record)?
            && let Some(kind) = self.kinds.get_mut(kind)
        {
            kind.taken.count(bytes, time);
        }
        Ok(())
    }

    fn chunk_ends(&mut self) {
        self.starts.push(std::mem::replace(&mut self.start, u64::MAX));
    }

    fn finish(&mut self) -> BatchCounts {
        let mut part = BatchCounts { unread: self.unread.0, all: self.unread.1, ..BatchCounts::default() };
        self.unread = Default::default();
        part.starts = std::mem::take(&mut self.starts);
        if self.ids.0 <= self.ids.1 {
            part.ids = Some(self.ids);
        }
        self.ids = (u64::MAX, 0);
        let (channels, providers, guids, hosts) = (&self.channels, &self.providers, &self.guids, &self.hosts);
        part.types = self
            .kinds
            .drain(..)
            .map(|Kind { key, amount, taken }| {
                part.all.add(&amount);
                let kind = EventType {
                    channel: channels.text(key.channel).to_owned(),
                    provider: providers.text(key.provider).to_owned(),
                    provider_guid: guids.text(key.guid).to_owned(),
                    event_id: key.id as u16,
                    qualifiers: (key.id >> 32 != 0).then_some((key.id >> 16) as u16),
                    version: key.rest as u8,
                    level: (key.rest >> 8) as u8,
                    opcode: (key.rest >> 16) as u8,
                    task: (key.rest >> 24) as u16,
                    keywords: key.keywords,
                };
                (kind, amount, taken)
            })
            .collect();
        self.index.clear();
        let computers = self.computers.iter_mut().enumerate().filter(|(_, records)| **records > 0);
        part.computers = computers
            .map(|(code, records)| (hosts.text(code as u32).to_owned(), std::mem::take(records)))
            .collect();
        part
    }
}

/// Nanoseconds since 1970 of an amount's earliest and latest.
pub fn span_ns(amount: &Amount) -> (i64, i64) {
    (time::utc_ns(amount.first), time::utc_ns(amount.last))
}
