//! A table for each event id, with a column for each of its fields.

use super::in_time::{Rows, in_time};
use super::options::{MakeError, Options};
use crate::binxml::Value;
use crate::codes::Codes;
use crate::columns::{Batch, ColumnKind, Columns, Sink};
use crate::counts::Counts;
use crate::read::{Damage, LogFile};
use crate::scan::{ScanOptions, scan};
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Evidence, Memory, Role, Table, TableSpec, Unit, Value as Cell,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Columns that every table begins with.
const SYSTEM: [(&str, ColumnType, Unit, Role, &str); 15] = [
    ("ts_ns", ColumnType::I64, Unit::Ns, Role::Time, "When it was written."),
    ("utc_ns", ColumnType::I64, Unit::Ns, Role::Other, "The same since 1970 (UTC)."),
    ("log", ColumnType::I32, Unit::None, Role::Id, "The log, as in `log_file`."),
    ("record_id", ColumnType::I64, Unit::None, Role::Other, "`EventRecordID`."),
    ("channel", ColumnType::Text, Unit::None, Role::Name, "Channel."),
    ("provider", ColumnType::Text, Unit::None, Role::Name, "Provider."),
    ("version", ColumnType::I32, Unit::None, Role::Other, "Version of the event."),
    ("level", ColumnType::I32, Unit::None, Role::Other, "Level."),
    ("task", ColumnType::I32, Unit::None, Role::Other, "Task."),
    ("opcode", ColumnType::I32, Unit::None, Role::Other, "Opcode."),
    ("keywords", ColumnType::I64, Unit::Hex64, Role::Flag, "Keywords, as a bit mask."),
    ("computer", ColumnType::Text, Unit::None, Role::Name, "Computer."),
    ("user_sid", ColumnType::Text, Unit::None, Role::Name, "Security identifier of the user."),
    ("pid", ColumnType::I32, Unit::None, Role::Pid, "Process that wrote it."),
    ("tid", ColumnType::I32, Unit::None, Role::Tid, "Thread that wrote it."),
];

/// A batch with what its numbers stand for.
struct Kept {
    batch: Batch,
    /// Channels, computers and users.
    texts: BTreeMap<u32, String>,
}

/// Keeps batches.
#[derive(Default)]
struct Keep(Vec<Kept>);

impl Sink for Keep {
    type Output = ChunkRows;

    fn take(&mut self, batch: &Batch, codes: &Codes) {
        let system = &batch.system;
        let used: BTreeSet<u32> =
            [&system.channel, &system.computer, &system.user].into_iter().flatten().copied().collect();
        let texts = used.into_iter().map(|code| (code, codes.text(code).to_owned())).collect();
        self.0.push(Kept { batch: batch.rows_alone(), texts });
    }

    fn finish(&mut self) -> ChunkRows {
        let mut kept = std::mem::take(&mut self.0);
        // Whatever this thread has read before.
        kept.sort_by_key(|k| (k.batch.system.record_id.first().copied(), k.batch.event_id));
        let rows = kept.iter().enumerate().flat_map(|(n, k)| (0..k.batch.rows()).map(move |row| (n, row)));
        let rows = rows.collect();
        ChunkRows { kept, rows }
    }
}

/// What chunks that were read together gave.
struct ChunkRows {
    kept: Vec<Kept>,
    /// Batch and row.
    rows: Vec<(usize, usize)>,
}

/// Makes a table `event_<id>` for each event id that is asked for, and says what was wrong with each log. Fields of all providers and
/// versions stand side by side; a field that is a number in one and a text in another is a text.
///
/// # Errors
/// The system's, and those of the table builder.
pub(super) fn wide(
    logs: &[LogFile],
    counts: &[Counts],
    zero: i64,
    options: &Options,
) -> Result<(Vec<Table>, Vec<Damage>), MakeError> {
    // Which columns there are is known when all records have been looked at; then they are read once more.
    let ids: BTreeSet<u16> = options.ids.iter().copied().collect();
    let wanted = |_: &Value<'_>, id| ids.contains(&id);
    let mut fields: BTreeMap<u16, Fields> = BTreeMap::new();
    for log in logs {
        let scanning = ScanOptions { threads: options.threads, in_order: true };
        let make = || Columns::new(&wanted, &options.filter, Names::default());
        scan(log, &scanning, make, |found: Vec<Named>| {
            for (_, id, name, kind, hex) in found {
                fields.entry(id).or_default().add(name, kind, hex);
            }
            true
        })?;
    }
    let tables = options.ids.iter().map(|id| {
        let fields = fields.remove(id).unwrap_or_default();
        (*id, Wide::new(*id, fields.list, &options.memory))
    });
    let mut tables =
        Tables { tables: tables.collect(), memory: options.memory.clone(), zero, scratch: Vec::new() };
    let make = || Columns::new(&wanted, &options.filter, Keep::default());
    let damage = in_time(logs, counts, options.threads, make, &mut tables)?;
    let order = options.ids.iter().filter_map(|id| tables.tables.remove(id));
    let tables: Result<Vec<Table>, MakeError> = order.map(|wide| Ok(wide.builder.finish()?)).collect();
    Ok((tables?, damage))
}

/// A field.
struct Field {
    name: String,
    kind: ColumnKind,
    /// All its numbers are written in hexadecimal: logon ids, status codes, process ids.
    hex: bool,
}

/// Fields in order of first use, with their common type.
#[derive(Default)]
struct Fields {
    list: Vec<Field>,
    known: HashMap<String, usize>,
}

impl Fields {
    fn add(&mut self, name: String, new: ColumnKind, hexadecimal: bool) {
        let at = match self.known.get(&name) {
            Some(at) => *at,
            None => {
                self.list.push(Field { name: name.clone(), kind: ColumnKind::Null, hex: true });
                self.known.insert(name, self.list.len() - 1);
                self.list.len() - 1
            }
        };
        if let Some(Field { kind, hex, .. }) = self.list.get_mut(at) {
            *hex &= new == ColumnKind::Null || hexadecimal;
            *kind = match (*kind, new) {
                (ColumnKind::Null, new) => new,
                (old, ColumnKind::Null) => old,
                (old, new) if old == new => old,
                _ => ColumnKind::Text,
            };
        }
    }
}

/// A field of a batch: first record and place in it, event id, name, kind, whether its numbers are hexadecimal.
type Named = ((u64, usize), u16, String, ColumnKind, bool);

/// Notes names and kinds of fields.
#[derive(Default)]
struct Names {
    found: Vec<Named>,
    known: HashSet<(u16, String, ColumnKind, bool)>,
}

impl Sink for Names {
    type Output = Vec<Named>;

    fn take(&mut self, batch: &Batch, _: &Codes) {
        let first = batch.system.record_id.first().copied().unwrap_or(0);
        for (n, column) in batch.columns.iter().enumerate() {
            let key = (batch.event_id, column.shown.clone(), column.kind, column.is_hex());
            if self.known.insert(key.clone()) {
                let (id, name, kind, hex) = key;
                self.found.push(((first, n), id, name, kind, hex));
            }
        }
    }

    fn finish(&mut self) -> Vec<Named> {
        self.known.clear();
        let mut found = std::mem::take(&mut self.found);
        // Whatever this thread has read before.
        found.sort_by_key(|(place, id, ..)| (*place, *id));
        found
    }
}

/// A table that grows.
struct Wide {
    spec: TableSpec,
    fields: Vec<Field>,
    builder: AdHocBuilder,
}

impl Wide {
    fn new(id: u16, fields: Vec<Field>, memory: &Memory) -> Wide {
        let mut specs: Vec<ColumnSpec> = SYSTEM
            .iter()
            .map(|(name, ty, unit, role, doc)| spec((*name).into(), *ty, *unit, *role, (*doc).into()))
            .collect();
        for Field { name, kind, hex } in &fields {
            // A field may be called as a system value, or differ from another in case alone.
            let mut unique = name.clone();
            while specs.iter().any(|c| c.name.eq_ignore_ascii_case(&unique)) {
                unique.push('_');
            }
            let (ty, unit) = match kind {
                ColumnKind::Int if *hex => (ColumnType::I64, Unit::Hex64),
                ColumnKind::Int => (ColumnType::I64, Unit::None),
                ColumnKind::Time => (ColumnType::I64, Unit::Ns),
                ColumnKind::Real => (ColumnType::F64, Unit::None),
                ColumnKind::Text | ColumnKind::Null => (ColumnType::Text, Unit::None),
            };
            let doc = match kind {
                ColumnKind::Time => format!("Field `{name}` of the event, since 1970 (UTC)."),
                _ => format!("Field `{name}` of the event."),
            };
            specs.push(spec(unique.into(), ty, unit, Role::Other, doc.into()));
        }
        let spec = TableSpec {
            name: format!("event_{id}").into(),
            title: format!("Events {id} with their fields as columns").into(),
            doc: Cow::Borrowed("One row per event of this id, whatever its provider and version."),
            columns: specs.into(),
            sorted_by: Some("ts_ns".into()),
            version: 1,
            evidence: Evidence::Verified("the crate `evtx`, field by field"),
        };
        Wide { builder: AdHocBuilder::new(spec.clone(), memory), spec, fields }
    }
}

/// The tables by their event ids.
struct Tables {
    tables: BTreeMap<u16, Wide>,
    memory: Memory,
    zero: i64,
    scratch: Vec<String>,
}

impl Rows<ChunkRows> for Tables {
    fn begin(&mut self) {
        for wide in self.tables.values_mut() {
            wide.builder = AdHocBuilder::new(wide.spec.clone(), &self.memory);
        }
    }

    fn keys(&self, _: i32, part: &ChunkRows) -> impl Iterator<Item = (i64, u64)> {
        let key = |(n, row): &(usize, usize)| {
            let system = part.kept.get(*n).map(|kept| &kept.batch.system)?;
            Some((*system.utc_ns.get(*row)?, *system.record_id.get(*row)?))
        };
        part.rows.iter().map(move |at| key(at).unwrap_or_default())
    }

    fn write(&mut self, log: i32, part: &mut ChunkRows, at: usize) -> Result<(), MakeError> {
        let Some((n, row)) = part.rows.get(at).copied() else { return Ok(()) };
        let Some(kept) = part.kept.get(n) else { return Ok(()) };
        let Some(wide) = self.tables.get_mut(&kept.batch.event_id) else { return Ok(()) };
        let columns = &kept.batch.columns;
        // Fields of a kind come in the same order as those of the table, for most kinds.
        let column = |n: usize, name: &str| match columns.get(n) {
            Some(column) if column.shown == name => Some(column),
            _ => columns.iter().find(|column| column.shown == name),
        };
        self.scratch.resize(self.scratch.len().max(wide.fields.len()), String::new());
        for ((n, Field { name, kind, .. }), text) in wide.fields.iter().enumerate().zip(&mut self.scratch) {
            text.clear();
            if *kind == ColumnKind::Text
                && let Some(column) = column(n, name)
                && column.kind != ColumnKind::Text
                && let Some(number) = column.numbers.get(row)
            {
                column.push_number(*number, text);
            }
        }
        let mut cells = system_cells(kept, log, row, self.zero);
        for ((n, Field { name, kind, .. }), text) in wide.fields.iter().enumerate().zip(&self.scratch) {
            let column = column(n, name);
            let null = column.is_none_or(|c| c.nulls.get(row).copied().unwrap_or(true));
            let number = column.and_then(|c| c.numbers.get(row)).copied().unwrap_or(0);
            cells.push(match (column, kind) {
                (Some(_), _) if null => Cell::Null,
                (Some(column), ColumnKind::Text) if column.kind == ColumnKind::Text => {
                    column.text_at(row).map_or(Cell::Null, Cell::Text)
                }
                (Some(_), ColumnKind::Text) => Cell::Text(text),
                // Of another kind than when it was looked at first: somebody writes the log.
                (Some(column), kind) if column.kind != *kind => Cell::Null,
                (Some(_), ColumnKind::Real) => Cell::F64(f64::from_bits(number as u64)),
                (Some(_), ColumnKind::Int | ColumnKind::Time) => Cell::I64(number),
                _ => Cell::Null,
            });
        }
        Ok(wide.builder.push(&cells)?)
    }
}

fn system_cells(kept: &Kept, log: i32, row: usize, zero: i64) -> Vec<Cell<'_>> {
    let system = &kept.batch.system;
    let utc_ns = system.utc_ns.get(row).copied().unwrap_or(0);
    let text = |codes: &[u32]| {
        let text = codes.get(row).and_then(|code| kept.texts.get(code)).map_or("", String::as_str);
        if text.is_empty() { Cell::Null } else { Cell::Text(text) }
    };
    let number = |n: Option<u64>| n.map_or(Cell::Null, |n| Cell::I64(n as i64));
    let some =
        |n: Option<&u32>| n.filter(|n| **n > 0).map_or(Cell::Null, |n| Cell::I64(i64::from(*n as i32)));
    vec![
        Cell::I64(utc_ns.saturating_sub(zero)),
        Cell::I64(utc_ns),
        Cell::I64(i64::from(log)),
        number(system.record_id.get(row).copied()),
        text(&system.channel),
        Cell::Text(&kept.batch.provider),
        number(system.version.get(row).copied().map(u64::from)),
        number(system.level.get(row).copied().map(u64::from)),
        number(system.task.get(row).copied().map(u64::from)),
        number(system.opcode.get(row).copied().map(u64::from)),
        number(system.keywords.get(row).copied()),
        text(&system.computer),
        text(&system.user),
        some(system.process.get(row)),
        some(system.thread.get(row)),
    ]
}

fn spec(
    name: Cow<'static, str>,
    ty: ColumnType,
    unit: Unit,
    role: Role,
    doc: Cow<'static, str>,
) -> ColumnSpec {
    ColumnSpec { name, ty, unit, role, doc, nullable: true }
}
