//! The end of the pass: what analyses see when all is known, and the numbers in their columns that they exchange for it.

use crate::anomalies::{KEY_PATHS_SHORTENED, REGISTRY_KEYS_UNNAMED};
use crate::inputs::Inputs;
use crate::model::Model;
use crate::model::file_name::FileRef;
use crate::model::place::PlaceId;
use crate::resolve::Resolved;
use etwhy_decode::{Decoder, EventTypes};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, Timeline, WalkStats};
use etwhy_table::{Row, Strings, Sym, TableBuilder};
use foldhash::HashMap;

/// For a process column that will have the process of this thread ([`Finish::processes_of`]), which may be named only after
/// the event.
pub(crate) fn process_later(utid: u32) -> i32 {
    utid as i32
}

/// What analyses see at the end of the pass.
pub struct Finish<'a> {
    /// The trackers, complete.
    pub model: &'a Model,
    /// Text pool.
    pub strings: &'a mut Strings,
    /// Times.
    pub timeline: &'a Timeline,
    /// Anomalies that this analysis counts.
    pub ledger: &'a mut Ledger,
    /// Those that were counted before.
    pub counted: &'a Ledger,
    /// The files.
    pub files: &'a [EtlFile],
    /// Event types with their counts.
    pub types: &'a EventTypes,
    /// Schemas.
    pub decoder: &'a Decoder,
    /// Stacks, frames and functions.
    pub resolved: &'a Resolved,
    /// What the walk saw.
    pub stats: &'a WalkStats,
    /// First and last event, ns; equal when there is none.
    pub span_ns: (i64, i64),
    /// What the user gave for the analyses.
    pub inputs: &'a Inputs,
    /// For each event type whether payloads were met that do not fit its layout.
    pub unfit: &'a [bool],
}

impl Finish<'_> {
    /// Until when the kernel's events tell what goes on: the end of the trace, unless their session was stopped or taken before.
    pub fn kernel_end_ns(&self) -> i64 {
        self.kernel_span_ns().1
    }

    /// From when to when the kernel's events tell it.
    pub fn kernel_span_ns(&self) -> (i64, i64) {
        self.model.cpus.observed(self.span_ns)
    }

    /// Exchanges the tickets in a stack column for stack numbers.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn stacks_of<R: Row>(&self, rows: &mut TableBuilder<R>, column: &str) -> etwhy_table::Result<()> {
        rows.remap_i32(column, |ticket| self.resolved.stack_of_ticket(ticket?))
    }

    /// Exchanges the numbers of places in a frame column for those of frames.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn frames_of<R: Row>(&self, rows: &mut TableBuilder<R>, column: &str) -> etwhy_table::Result<()> {
        rows.remap_i32(column, |place| {
            Some(self.resolved.frame_of_place(PlaceId::of_cell(place? as u32))?.0 as i32)
        })
    }

    /// Exchanges the numbers of places in a text column for their `module!function`.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn routines_of<R: Row>(&self, rows: &mut TableBuilder<R>, column: &str) -> etwhy_table::Result<()> {
        rows.remap_text(column, |place| Some(self.resolved.frame_of_place(PlaceId::of_cell(place?))?.1.label))
    }

    /// Exchanges the numbers of places in a text column for the names of their modules.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn modules_of<R: Row>(&self, rows: &mut TableBuilder<R>, column: &str) -> etwhy_table::Result<()> {
        rows.remap_text(column, |place| {
            Some(self.resolved.frame_of_place(PlaceId::of_cell(place?))?.1.module)
        })
    }

    /// Exchanges the threads in a process column (`process_later`) for their processes.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn processes_of<R: Row>(&self, rows: &mut TableBuilder<R>, column: &str) -> etwhy_table::Result<()> {
        let threads = &self.model.threads;
        rows.remap_i32(column, |utid| threads.get(u32::try_from(utid?).ok()?)?.upid.map(|u| u as i32))
    }

    /// Exchanges the tickets in `stack` for stack numbers, and the thread numbers in `upid` for their processes;
    /// where there is no thread, the process is that of the stack.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn stacks_and_processes_of<R: Row>(
        &self,
        rows: &mut TableBuilder<R>,
        stack: &str,
        upid: &str,
    ) -> etwhy_table::Result<()> {
        let mut owners: Vec<u32> = Vec::new();
        rows.remap_i32(stack, |ticket| {
            let stack = self.resolved.stack_of_ticket(ticket?);
            let found = stack.and_then(|s| self.resolved.stacks.get(s as usize)).and_then(|s| s.upid);
            owners.push(found.unwrap_or(u32::MAX));
            stack
        })?;
        let mut owners = owners.into_iter();
        rows.remap_i32(upid, |utid| {
            let owner = owners.next().filter(|&u| u != u32::MAX);
            let of_thread = utid.and_then(|u| self.model.threads.get(u32::try_from(u).ok()?)?.upid);
            of_thread.or(owner).map(|u| u as i32)
        })
    }

    /// Exchanges the files in an `i32` column for their numbers.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn files_of<R: Row>(&self, rows: &mut TableBuilder<R>, column: &str) -> etwhy_table::Result<()> {
        let files = &self.model.files;
        rows.remap_i32(column, |file| files.number(FileRef(file?)).map(|f| f as i32))
    }

    /// Exchanges the files in a text column for their paths, with drive letters.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn paths_of<R: Row>(&mut self, rows: &mut TableBuilder<R>, column: &str) -> etwhy_table::Result<()> {
        let (files, volumes, strings) = (&self.model.files, &self.model.volumes, &mut *self.strings);
        let mut known: HashMap<Sym, Sym> = HashMap::default();
        rows.remap_text(column, |file| {
            let path = files.path(FileRef(file? as i32))?;
            Some(*known.entry(path).or_insert_with(|| {
                let path = volumes.drive_path(strings.get(path));
                strings.intern(&path)
            }))
        })
    }

    /// Exchanges the paths of keys in a text column for their texts.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn keys_of<R: Row>(&mut self, rows: &mut TableBuilder<R>, column: &str) -> etwhy_table::Result<()> {
        self.ledger.count(&REGISTRY_KEYS_UNNAMED, self.model.keys.unnamed());
        let (keys, strings) = (&self.model.keys, &mut *self.strings);
        self.ledger.count(&KEY_PATHS_SHORTENED, keys.shortened(strings));
        let mut known: Vec<Option<Option<Sym>>> = vec![None; keys.paths.len()];
        rows.remap_text(column, |path| {
            let path = path?;
            let slot = known.get_mut(path as usize)?;
            *slot.get_or_insert_with(|| keys.text(path, strings).map(|text| strings.intern(&text)))
        })
    }
}
