//! The second tier: typed columns for each kind of event.
//!
//! Fields keep the type that they have in the log: numbers, booleans and times are numbers, texts are UTF-8. Columns of a kind grow until
//! its batch is full and are handed over; then their memory is used again, so it does not depend on the size of the log.

use crate::binxml::{Cell, Decoder, Event, Fault, InOrder, Name, System, Value, time};
use crate::codes::Codes;
pub use crate::column::{Column, ColumnKind};
use crate::error::EvtxError;
use crate::filter::{Filter, time_of};
use crate::pick::Picker;
use crate::read::{Damage, LogFile, RecordRef};
use crate::scan::{Reader, ScanOptions, scan};
use crate::system_columns::Row;
pub use crate::system_columns::SystemColumns;
use etwhy_base::Guid;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows of a batch before it is handed over: what the kinds that come most hold together stays in the cache of a processor, which
/// makes reading a tenth faster than with 4,096.
const BATCH_ROWS: usize = 128;
/// Texts of a batch before it is handed over.
const BATCH_TEXT: usize = 1 << 20;
/// Rows after which texts are counted; a record has at most 64 KiB.
const TEXT_EVERY: usize = 64;
/// Columns of a kind; fields behind are counted in `dropped`.
const MOST_COLUMNS: usize = 2048;

/// Rows of one kind of event.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Provider.
    pub provider: String,
    /// Event id.
    pub event_id: u16,
    /// Qualifiers.
    pub qualifiers: Option<u16>,
    /// System values.
    pub system: SystemColumns,
    /// Fields, each as long as `system`.
    pub columns: Vec<Column>,
    /// Fields that were left out because there were too many.
    pub dropped: u64,
    /// Columns by their names, as far as they came one by one.
    index: HashMap<String, usize, RandomState>,
}

impl Batch {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.system.utc_ns.len()
    }

    #[inline]
    fn field(&mut self, n: usize, name: Name<'_>, value: &Value<'_>) {
        let rows = self.rows();
        // Fields of a kind come in the same order, so the n-th field nearly always is the n-th column.
        if let Some(column) = self.columns.get_mut(n)
            && column.numbers.len() + 1 == rows
        {
            let same = match (&column.name, name) {
                (Some(own), Name::Named(name)) => Arc::ptr_eq(own, name) || **own == **name,
                (None, Name::Nth(nth)) => {
                    nth <= 9 && column.shown.as_bytes().get(4..) == Some(&[b'0' + nth as u8])
                }
                _ => false,
            };
            if same {
                column.push(value);
                return;
            }
        }
        self.other_field(name, value);
    }

    #[cold]
    fn other_field(&mut self, name: Name<'_>, value: &Value<'_>) {
        let rows = self.rows();
        let mut shown = String::new();
        name.push(&mut shown);
        let at = match self.index.get(&shown) {
            Some(at) => *at,
            None if self.columns.len() < MOST_COLUMNS => {
                self.columns.push(Column::new(name, rows - 1));
                self.index.insert(shown, self.columns.len() - 1);
                self.columns.len() - 1
            }
            None => {
                self.dropped += 1;
                return;
            }
        };
        if let Some(column) = self.columns.get_mut(at) {
            // A field that comes twice in a record counts once.
            if column.numbers.len() + 1 == rows {
                column.push(value);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// Gives all columns the last row, those without a value a null.
    #[inline]
    fn end_row(&mut self) {
        let rows = self.rows();
        for column in &mut self.columns {
            if column.numbers.len() < rows {
                column.push(&Value::Null);
            }
        }
    }

    /// Appends fields that are known to be the columns of the batch, in order.
    #[inline]
    fn cells(&mut self, cells: &InOrder<'_>) {
        match cells.straight() {
            Some(fields) => {
                for (column, (kind, size, tail)) in self.columns.iter_mut().zip(fields) {
                    column.push_raw(kind, size, tail);
                }
            }
            None => {
                for (column, (kind, size, tail)) in self.columns.iter_mut().zip(cells.scattered()) {
                    column.push_scattered(kind, size, tail);
                }
            }
        }
    }

    /// The same rows, without what is only remembered to read more of them.
    pub fn rows_alone(&self) -> Batch {
        Batch {
            provider: self.provider.clone(),
            event_id: self.event_id,
            qualifiers: self.qualifiers,
            system: self.system.clone(),
            columns: self.columns.iter().map(Column::cells_alone).collect(),
            dropped: self.dropped,
            index: HashMap::default(),
        }
    }

    /// True if it is to be handed over.
    #[inline]
    fn is_full(&self) -> bool {
        let rows = self.rows();
        rows >= BATCH_ROWS || rows.is_multiple_of(TEXT_EVERY) && self.text_bytes() >= BATCH_TEXT
    }

    fn text_bytes(&self) -> usize {
        self.columns.iter().map(|c| c.bytes.len()).sum()
    }
}

/// Takes batches. `texts` names channels, computers, users and activities.
pub type Take<'t> = dyn Fn(&Batch, &Codes) + Sync + 't;

/// Reads a log into batches of typed columns. `wanted` chooses kinds by provider and event id, `filter` records; `take` is called by all threads.
///
/// # Errors
/// The system's.
pub fn columns(
    log: &LogFile,
    options: &ScanOptions,
    wanted: &(dyn Fn(&Value<'_>, u16) -> bool + Sync),
    filter: &Filter,
    take: &Take<'_>,
) -> Result<Damage, EvtxError> {
    scan(log, options, || Columns::new(wanted, filter, Each(take)), |()| true)
}

/// What takes batches, one for each thread.
pub(crate) trait Sink {
    /// What chunks that are read together give.
    type Output: Send;

    /// Takes a batch; `texts` names channels, computers, users and activities.
    fn take(&mut self, batch: &Batch, texts: &Codes);

    /// The chunks end.
    fn finish(&mut self) -> Self::Output;
}

struct Each<'t>(&'t Take<'t>);

impl Sink for Each<'_> {
    type Output = ();

    fn take(&mut self, batch: &Batch, texts: &Codes) {
        (self.0)(batch, texts);
    }

    fn finish(&mut self) {}
}

/// Chooses kinds of events by provider and event id.
pub(crate) type Choice<'t> = dyn Fn(&Value<'_>, u16) -> bool + Sync + 't;

/// Codes of provider, channel and computer that come together.
#[derive(Clone, Copy, Default)]
struct Origin {
    /// What stands for them; 0 if nothing does.
    identity: u64,
    provider: u32,
    channel: u32,
    computer: u32,
}

/// What the rows of a batch have in common: layout of the fields, provider, event id, and qualifiers with a bit if there are any.
type Kind = (u64, u32, u16, u32);

/// Origins and kinds that are found without hashing.
const RECENT: usize = 256;
/// The layout of records whose fields are read one by one.
const LONG: u64 = u64::MAX;
/// No record is of this kind.
const NO_KIND: Kind = (LONG, u32::MAX, u16::MAX, u32::MAX);

/// Reads records into batches.
pub(crate) struct Columns<'t, S> {
    wanted: &'t Choice<'t>,
    picker: Picker<'t>,
    sink: S,
    texts: Codes,
    providers: Codes,
    origins: [Origin; RECENT],
    recent: [(Kind, usize); RECENT],
    index: HashMap<Kind, usize, RandomState>,
    batches: Vec<Batch>,
}

impl<'t, S: Sink> Columns<'t, S> {
    /// A reader of kinds that are wanted, and records that the filter takes.
    pub(crate) fn new(wanted: &'t Choice<'t>, filter: &'t Filter, sink: S) -> Columns<'t, S> {
        Columns {
            wanted,
            picker: Picker::new(filter),
            sink,
            texts: Codes::default(),
            providers: Codes::default(),
            origins: [Origin::default(); RECENT],
            recent: [(NO_KIND, 0); RECENT],
            index: HashMap::default(),
            batches: Vec::new(),
        }
    }

    fn hand_over(batch: &mut Batch, sink: &mut S, texts: &Codes) {
        if batch.rows() > 0 {
            batch.columns.iter_mut().for_each(Column::seal);
            sink.take(batch, texts);
            batch.system.clear();
            batch.columns.iter_mut().for_each(Column::clear);
        }
    }

    #[inline]
    fn origin(&mut self, decoder: &Decoder, event: &Event<'_>, identity: u64) -> Origin {
        let at = identity as usize % RECENT;
        let known = self.origins[at];
        if known.identity == identity {
            return known;
        }
        let origin = self.origin_of(&decoder.system(event), identity);
        self.origins[at] = origin;
        origin
    }

    fn origin_of(&mut self, system: &System<'_>, identity: u64) -> Origin {
        Origin {
            identity,
            provider: self.providers.code_of(&system.provider),
            channel: self.texts.code_of(&system.channel),
            computer: self.texts.code_of(&system.computer),
        }
    }

    /// The batch of a kind.
    #[inline]
    fn batch(&mut self, kind: Kind, cells: Option<&InOrder<'_>>) -> usize {
        let (layout, provider, id, _) = kind;
        let near = ((layout >> 32 ^ layout.wrapping_mul(31)) as usize)
            .wrapping_add(usize::from(id).wrapping_add(provider as usize))
            % RECENT;
        let (known, at) = self.recent[near];
        if known == kind {
            return at;
        }
        let at = *self.index.entry(kind).or_insert_with(|| {
            let names = cells.map_or(&[][..], InOrder::fields);
            let mut unnamed = 0;
            let column = |cell: &Cell| {
                unnamed += 1;
                Column::new(cell.name.as_ref().map_or(Name::Nth(unnamed), Name::Named), 0)
            };
            self.batches.push(Batch {
                provider: self.providers.text(provider).to_owned(),
                event_id: id,
                qualifiers: (kind.3 >> 16 != 0).then_some(kind.3 as u16),
                columns: names.iter().map(column).collect(),
                ..Batch::default()
            });
            self.batches.len() - 1
        });
        self.recent[near] = (kind, at);
        at
    }
}

impl<S: Sink> Reader for Columns<'_, S> {
    type Output = S::Output;

    #[inline]
    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        let Ok(event) = event else { return Ok(()) };
        if !self.picker.takes(decoder, &event, record)? {
            return Ok(());
        }
        let (origin, system) = match decoder.identity(&event) {
            Some(identity) => (self.origin(decoder, &event, identity), decoder.numbers(&event)),
            None => {
                let system = decoder.system(&event);
                (self.origin_of(&system, 0), system)
            }
        };
        if !(self.wanted)(&Value::Utf8(self.providers.text(origin.provider)), system.event_id) {
            return Ok(());
        }
        let row = Row {
            utc_ns: time::utc_ns(time_of(&system, record)),
            record_id: system.record_id.unwrap_or(record.id),
            level: system.level,
            task: system.task,
            opcode: system.opcode,
            version: system.version,
            keywords: system.keywords,
            process: system.process.unwrap_or(0),
            thread: system.thread.unwrap_or(0),
            channel: origin.channel,
            computer: origin.computer,
            user: self.texts.code_of(&system.user),
            activity: match system.activity {
                Value::Guid(guid) => guid,
                _ => Guid::ZERO,
            },
            bytes: record.size as u32,
        };
        let qualifiers = system.qualifiers.map_or(0, |q| 1 << 16 | u32::from(q));
        let id = system.event_id;
        if let Some(cells) = decoder.cells_in_order(&event) {
            let at = self.batch((cells.layout(), origin.provider, id, qualifiers), Some(&cells));
            if let Some(batch) = self.batches.get_mut(at) {
                batch.system.push(&row);
                batch.cells(&cells);
                if batch.is_full() {
                    Self::hand_over(batch, &mut self.sink, &self.texts);
                }
            }
            return Ok(());
        }
        let at = self.batch((LONG, origin.provider, id, qualifiers), None);
        let Some(batch) = self.batches.get_mut(at) else { return Ok(()) };
        batch.system.push(&row);
        let mut n = 0;
        let result = decoder.fields(&event, &mut |name, value| {
            batch.field(n, name, &value);
            n += 1;
        });
        batch.end_row();
        if batch.is_full() {
            Self::hand_over(batch, &mut self.sink, &self.texts);
        }
        result
    }

    fn finish(&mut self) -> S::Output {
        for batch in &mut self.batches {
            Self::hand_over(batch, &mut self.sink, &self.texts);
        }
        // Columns of fields that do not come any more are not kept for ever.
        if self.batches.len() > 512 {
            self.batches.clear();
            self.index.clear();
            self.recent = [(NO_KIND, 0); RECENT];
        }
        self.sink.finish()
    }
}
