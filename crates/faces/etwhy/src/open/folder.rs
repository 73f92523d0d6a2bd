//! An extract in place of a trace: the same tables, read back.

use super::{Analysed, TraceArgs};
use crate::catalog::{self, specs};
use anyhow::{Result, bail};
use etwhy_analysis::derive;
use etwhy_export::extract::{self, Folder, Limits};
use etwhy_input::InputOptions;
use etwhy_table::{Database, Memory, Rows, Strings, Table, TableBuilder, TableError, TableLoader};
use etwhy_trace::catalog::{kernel_class::KernelClassRow, ledger::LedgerRow};
use std::collections::{BTreeMap, BTreeSet};

impl TraceArgs {
    /// The extract that was given in place of traces, if one was.
    pub(super) fn extract(&self) -> Result<Option<Folder>> {
        let Some(path) = self.traces.iter().find(|path| extract::is_extract(path)) else { return Ok(None) };
        if self.traces.len() > 1 || self.demo {
            bail!(
                "{} is an extract, and an extract is read alone; to read traces as one, give the traces themselves",
                path.display()
            );
        }
        let given = [
            ("--symbols", self.symbols.symbols.is_empty()),
            ("--images", self.symbols.images.is_empty()),
            ("--manifests", self.manifests.is_empty()),
            ("--tmf", self.tmf.is_empty()),
            ("--loggers", self.loggers.is_empty()),
        ];
        for (option, _) in given.iter().filter(|(_, empty)| !empty) {
            say!("etwhy: {option} says nothing about an extract: it was used, or not, when that was made");
        }
        Ok(Some(Folder::open(path, limits(&self.input_options()))?))
    }
}

fn limits(options: &InputOptions) -> Limits {
    Limits {
        bytes: options.max_unpacked_bytes,
        ratio: options.max_ratio,
        free_bytes: InputOptions::RATIO_FREE_BYTES,
        options: [InputOptions::MAX_UNPACKED_OPTION, InputOptions::MAX_RATIO_OPTION],
    }
}

/// How much an extract may unpack to where the user says nothing.
pub fn folder_limits() -> Limits {
    limits(&InputOptions::default())
}

/// Stacks and their frames.
const STACKS: [&str; 3] = ["stack", "stack_frame", "frame"];

/// Whether the trace of an extract had kernel events of other classes than these.
pub(super) fn holds_other_classes(extract: &mut Folder, but: &[&str], memory: &Memory) -> Result<bool> {
    let Some(spec) = specs().find(|spec| spec.name == "kernel_class" && extract.has(&spec.name)) else {
        return Ok(true);
    };
    let mut strings = Strings::new();
    let loader = extract.load(spec, &mut strings, memory)?;
    let table = loader.finish(&strings.freeze().map_err(TableError::texts)?)?;
    Ok(table.read::<KernelClassRow>()?.iter().any(|row| !but.contains(&row.class())))
}

/// What is wanted of an extract.
pub(super) struct Wanted<'a> {
    /// Tables; `None`: all that are not on demand.
    pub tables: Option<BTreeSet<String>>,
    /// The columns that are read of a table; of one that is not named all.
    pub columns: &'a BTreeMap<String, BTreeSet<String>>,
}

/// Tables that are read by more than the query that names them.
const ALWAYS_WHOLE: [&str; 3] = ["ledger", "process", "trace"];

/// Reads the tables from an extract. Derived tables that are not in it are made.
pub(super) fn load(
    extract: &mut Folder,
    wanted: Wanted<'_>,
    stretches: &[etwhy_trace::catalog::critical_path::Stretch],
    memory: Memory,
    retag: bool,
) -> Result<Analysed> {
    if !stretches.is_empty() {
        bail!(
            "{}: the critical path of a stretch can only be told from the trace itself; an extract has those of \
             window delays (`etwhy path` without --process and --thread)",
            extract.path().display()
        );
    }
    let Wanted { tables, columns } = wanted;
    let mut wanted = tables.unwrap_or_else(|| {
        specs().filter(|s| !catalog::is_on_demand(&s.name)).map(|s| s.name.to_string()).collect()
    });
    // Readers of stacks ask for one of these tables and read all, since they are made together.
    if STACKS.iter().any(|name| wanted.contains(*name)) {
        wanted.extend(STACKS.iter().map(|name| (*name).to_owned()));
    }
    let (present, made) = plan(extract, &wanted)?;
    let mut strings = Strings::new();
    if present.contains("process") {
        labels(extract, &mut strings, &memory)?;
    }
    let mut loaders: Vec<TableLoader> = Vec::new();
    // What is made of tables reads them as it likes.
    let derived = etwhy_analysis::derived::ALL
        .iter()
        .filter(|d| d.tables.iter().any(|t| made.contains(t.name.as_ref())));
    let sources: BTreeSet<String> =
        derived.flat_map(|d| (d.reads)()).map(|read| read.name.to_string()).collect();
    for spec in specs().filter(|spec| present.contains(spec.name.as_ref())) {
        let name = spec.name.as_ref();
        let whole = sources.contains(name) || ALWAYS_WHOLE.contains(&name) || STACKS.contains(&name);
        let of_table = columns.get(name).filter(|_| !whole);
        let is_read = |column: &str| of_table.is_none_or(|columns| columns.contains(column));
        loaders.push(extract.load_columns(spec, &is_read, &mut strings, &memory)?);
    }
    let texts = strings.freeze().map_err(TableError::texts)?;
    let mut db = Database::new();
    for loader in loaders {
        db.insert(loader.finish(&texts)?);
    }
    if present.contains("ledger") {
        let ledger = of_tables(&db.read()?, extract, &wanted, &memory)?;
        db.insert(ledger);
    }
    if retag && let Some(stacks) = etwhy_analysis::operators::stacks::retag(&db, &memory)? {
        db.insert(stacks);
    }
    derive(&mut db, Some(&made), &memory, 1)?;
    Ok(Analysed::of(db, memory, extract.manifest().end.newer_than_known.clone()))
}

/// Names of processes with their ids, which `dump` shows beside numbers: a pass over a trace has them among its texts.
fn labels(extract: &mut Folder, strings: &mut Strings, memory: &Memory) -> Result<()> {
    let Some(spec) = specs().find(|spec| spec.name == "process") else { return Ok(()) };
    let mut own = Strings::new();
    let loader = extract.load(spec, &mut own, memory)?;
    let mut db = Database::new();
    db.insert(loader.finish(&own.freeze().map_err(TableError::texts)?)?);
    for (name, pid) in etwhy_analysis::operators::process_names(&db) {
        strings.intern(&format!("{name} ({pid})"));
    }
    Ok(())
}

/// All tables that an extract holds or that can be made from those.
pub(super) fn all_there(extract: &Folder) -> BTreeSet<String> {
    let names = specs().map(|spec| spec.name.to_string());
    names.filter(|name| plan(extract, &BTreeSet::from([name.clone()])).is_ok()).collect()
}

/// Tables that a message names at most.
const SHOWN: usize = 6;

/// Which tables are read and which are made from others.
fn plan(extract: &Folder, wanted: &BTreeSet<String>) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
    let (mut present, mut made, mut missing) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<String> = wanted.iter().cloned().collect();
    while let Some(name) = open.pop() {
        if extract.has(&name) {
            present.insert(name);
            continue;
        }
        let derived = etwhy_analysis::derived::ALL.iter().find(|d| d.tables.iter().any(|t| t.name == name));
        let Some(derived) = derived else {
            // Some commands ask for tables that no version of the program has.
            if specs().any(|spec| spec.name == name) {
                missing.insert(name);
            }
            continue;
        };
        if made.insert(name) {
            open.extend((derived.reads)().iter().map(|read| read.name.to_string()));
        }
    }
    if missing.is_empty() {
        return Ok((present, made));
    }
    let (manifest, folder) = (extract.manifest(), extract.path().display());
    let shown = Vec::from_iter(missing.iter().take(SHOWN).map(String::as_str)).join(", ");
    let list = match missing.len().saturating_sub(SHOWN) {
        0 => shown,
        others => format!("{shown} and {others} others"),
    };
    if missing.iter().all(|name| manifest.left_out.contains(name)) {
        bail!(
            "{folder}: has no table {list}: left out when it was made; extract the trace with it, or ask the trace"
        );
    }
    bail!("{folder}: has no table {list}, which {} did not write; extract the trace again", manifest.program)
}

/// The ledger without what was counted for tables that nobody asks for: what a pass for these tables would have
/// counted.
fn of_tables(
    ledger: &Rows<'_, LedgerRow>,
    extract: &Folder,
    wanted: &BTreeSet<String>,
    memory: &Memory,
) -> Result<Table> {
    let mut others: BTreeMap<&str, u64> = BTreeMap::new();
    let all = etwhy_analysis::closure(wanted);
    for part in &extract.manifest().end.anomalies {
        if !part.tables.iter().any(|table| all.contains(table)) {
            for (name, count) in &part.counts {
                let sum = others.entry(name).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }
    let (mut rows, mut strings) = (TableBuilder::<LedgerRow>::new(memory), Strings::new());
    for row in ledger {
        let less = others.get(row.name()).map(|less| i64::try_from(*less).unwrap_or(i64::MAX));
        let count = row.count().saturating_sub(less.unwrap_or(0));
        if less.is_some() && count <= 0 {
            continue;
        }
        rows.push(LedgerRow {
            name: strings.intern(row.name()),
            severity: strings.intern(row.severity()),
            stage: strings.intern(row.stage()),
            count,
            meaning: strings.intern(row.meaning()),
            first: row.first().map(|first| strings.intern(first)),
        });
    }
    Ok(rows.finish(&strings.freeze().map_err(TableError::texts)?)?)
}
