//! The first tier: what a log holds, counted by kind of event, without reading a field.

use crate::binxml::{Decoder, Event, Fault, System, time};
use crate::codes::Codes;
use crate::error::EvtxError;
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
    /// By computer, most first.
    pub computers: Vec<(String, u64)>,
    /// Records that could not be read; they count in `all`.
    pub unread: u64,
    /// What was wrong.
    pub damage: Damage,
}

/// Counts a log.
///
/// # Errors
/// The system's.
pub fn count(log: &LogFile, threads: usize) -> Result<Counts, EvtxError> {
    let mut counts = Counts::default();
    let mut types: HashMap<EventType, Amount> = HashMap::new();
    let mut computers: HashMap<String, u64> = HashMap::new();
    let options = ScanOptions { threads, in_order: false };
    let take = |part: Part| {
        counts.all.add(&part.all);
        counts.unread += part.unread;
        if let Some((low, high)) = part.ids {
            let (a, b) = counts.ids.unwrap_or((low, high));
            counts.ids = Some((a.min(low), b.max(high)));
        }
        for (kind, amount) in part.types {
            types.entry(kind).or_default().add(&amount);
        }
        for (computer, n) in part.computers {
            *computers.entry(computer).or_default() += n;
        }
        true
    };
    let damage = scan(log, &options, Counter::default, take)?;
    counts.damage = damage;
    counts.types = types.into_iter().collect();
    counts.types.sort_by(|a, b| a.0.cmp(&b.0));
    counts.computers = computers.into_iter().collect();
    counts.computers.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(counts)
}

/// What a batch holds.
#[derive(Default)]
struct Part {
    all: Amount,
    ids: Option<(u64, u64)>,
    types: Vec<(EventType, Amount)>,
    computers: Vec<(String, u64)>,
    unread: u64,
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

#[derive(Default)]
struct Counter {
    channels: Codes,
    providers: Codes,
    hosts: Codes,
    guids: Codes,
    types: HashMap<Key, Amount, RandomState>,
    computers: HashMap<u32, u64, RandomState>,
    /// The computer that came last and its records so far, which are not yet in `computers`.
    computer: (u32, u64),
    /// The kind that came last and its amount so far, which is not yet in `types`.
    last: (Key, Amount),
    part: Part,
}

impl Counter {
    fn flush(&mut self) {
        let (key, amount) = std::mem::take(&mut self.last);
        if amount.records > 0 {
            self.types.entry(key).or_default().add(&amount);
        }
    }
}

impl Counter {
    fn flush_computer(&mut self) {
        let (computer, n) = std::mem::take(&mut self.computer);
        if n > 0 {
            *self.computers.entry(computer).or_default() += n;
        }
    }
}

/// Time of an event: its `TimeCreated`, else that of its record.
pub fn time_of(system: &System<'_>, record: &RecordRef) -> u64 {
    system.time.unwrap_or(record.time)
}

impl Reader for Counter {
    type Output = Part;

    #[inline]
    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        let bytes = record.size as u64;
        let Ok(event) = event else {
            self.part.unread += 1;
            self.part.all.count(bytes, record.time);
            return Ok(());
        };
        let system = decoder.system(&event);
        let time = time_of(&system, record);
        self.part.all.count(bytes, time);
        let id = system.record_id.unwrap_or(record.id);
        let (low, high) = self.part.ids.unwrap_or((id, id));
        self.part.ids = Some((low.min(id), high.max(id)));
        let key = Key {
            channel: self.channels.of(&system.channel),
            provider: self.providers.of(&system.provider),
            guid: self.guids.of(&system.provider_guid),
            id: u64::from(system.event_id) | system.qualifiers.map_or(0, |q| 1 << 32 | u64::from(q) << 16),
            rest: u64::from(system.version)
                | u64::from(system.level) << 8
                | u64::from(system.opcode) << 16
                | u64::from(system.task) << 24,
            keywords: system.keywords,
        };
        let computer = self.hosts.of(&system.computer);
        if computer != self.computer.0 {
            self.flush_computer();
            self.computer.0 = computer;
        }
        self.computer.1 += 1;
        if key != self.last.0 {
            self.flush();
            self.last.0 = key;
        }
        self.last.1.count(bytes, time);
        Ok(())
    }

    fn finish(&mut self) -> Part {
        self.flush();
        self.flush_computer();
        let mut part = std::mem::take(&mut self.part);
        let (channels, providers, guids, hosts) = (&self.channels, &self.providers, &self.guids, &self.hosts);
        part.types = self
            .types
            .drain()
            .map(|(key, amount)| {
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
                (kind, amount)
            })
            .collect();
        part.computers = self.computers.drain().map(|(code, n)| (hosts.text(code).to_owned(), n)).collect();
        part
    }
}

/// Nanoseconds since 1970 of an amount's earliest and latest.
pub fn span_ns(amount: &Amount) -> (i64, i64) {
    (time::utc_ns(amount.first), time::utc_ns(amount.last))
}
