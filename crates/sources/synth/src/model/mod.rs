//! The text form of a scenario: one struct per table. `docs/scenarios.md` explains every field.

mod events;
mod machine;
mod task;
mod truth;
mod who;

pub(crate) use events::*;
pub(crate) use machine::*;
pub(crate) use task::*;
pub(crate) use truth::*;
pub(crate) use who::*;

use crate::error::{Result, SourceText};
use serde::Deserialize;
use toml::Spanned;

/// A list of tables with their places in the text.
pub(crate) type Tables<T> = Vec<Spanned<T>>;

/// The whole text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Text {
    pub(crate) machine: Option<Spanned<Machine>>,
    pub(crate) truth: TruthText,
    pub(crate) loggers: Option<Loggers>,
    pub(crate) image: Tables<Image>,
    pub(crate) process: Tables<Process>,
    pub(crate) samples: Tables<Samples>,
    pub(crate) thread_activity: Tables<ThreadActivity>,
    pub(crate) dpc: Tables<Interrupt>,
    pub(crate) isr: Tables<Interrupt>,
    pub(crate) syscall: Tables<Syscall>,
    pub(crate) alpc: Tables<Alpc>,
    pub(crate) disk_io: Tables<DiskIo>,
    pub(crate) hard_fault: Tables<HardFault>,
    pub(crate) page_fault: Tables<PageFault>,
    pub(crate) virtual_alloc: Tables<VirtualAlloc>,
    pub(crate) file_io: Tables<FileIo>,
    pub(crate) files: Tables<Files>,
    pub(crate) minifilter: Tables<Minifilter>,
    pub(crate) registry: Tables<Registry>,
    pub(crate) network: Tables<Network>,
    pub(crate) pool: Tables<Pool>,
    pub(crate) handle: Tables<Handle>,
    pub(crate) mark: Tables<Mark>,
    pub(crate) gc: Tables<Gc>,
    pub(crate) exception: Tables<Exception>,
    pub(crate) contention: Tables<Contention>,
    pub(crate) jit: Tables<Jit>,
    pub(crate) event: Tables<Generic>,
    pub(crate) tracelogging: Tables<TraceLogging>,
    pub(crate) manifest_event: Tables<ManifestEvent>,
    pub(crate) lock: Tables<Lock>,
    pub(crate) queue: Tables<Queue>,
    pub(crate) disk: Tables<DiskQueue>,
    pub(crate) task: Tables<Task>,
    pub(crate) working_set: Tables<WorkingSet>,
}

/// Hands the names of all lists of tables to a macro.
macro_rules! with_tables {
    ($then:ident) => {
        $then!(image process samples thread_activity dpc isr syscall alpc disk_io hard_fault page_fault virtual_alloc file_io
            files minifilter registry network pool handle mark gc exception contention jit event tracelogging manifest_event
            lock queue disk task working_set)
    };
}

/// Reads the text.
pub(crate) fn parse(place: &SourceText) -> Result<Text> {
    let text: Text = toml::from_str(&place.text).map_err(|e| place.error(e.span(), e.message().trim()))?;
    // A mistake in what the cause changes is one whether it is left out or not.
    choose(&text, place, true)?;
    Ok(text)
}

/// The scenario with its planted cause, or without it: tables that say `cause = true` are only in the one, those that
/// say `cause = false` only in the other, and so is what `[machine.cause]` changes.
pub(crate) fn choose(all: &Text, place: &SourceText, cause: bool) -> Result<Text> {
    let mut text = all.clone();
    let keep = |marked: Option<bool>| marked.is_none_or(|marked| marked == cause);
    macro_rules! retain {
        ($($field:ident)*) => { $(text.$field.retain(|t| keep(t.get_ref().cause));)* };
    }
    with_tables!(retain);
    text.loggers = text.loggers.filter(|l| keep(l.cause));
    if let Some(machine) = &mut text.machine
        && let Some(changes) = machine.get_ref().cause.clone()
        && cause
    {
        let span = machine.span();
        let whole: toml::Table =
            toml::from_str(&place.text).map_err(|e| place.error(e.span(), e.message().trim()))?;
        let mut merged = whole.get("machine").and_then(|m| m.as_table()).cloned().unwrap_or_default();
        merged.remove("cause");
        merged.extend(changes);
        let merged: Machine = merged
            .try_into()
            .map_err(|e: toml::de::Error| place.error(Some(span.clone()), e.message().trim()))?;
        *machine.get_mut() = merged;
    }
    Ok(text)
}

/// True if anything is marked as the planted cause.
pub(crate) fn has_cause(text: &Text) -> bool {
    let mut found = text.loggers.as_ref().is_some_and(|l| l.cause == Some(true));
    macro_rules! find {
        ($($field:ident)*) => { $(found |= text.$field.iter().any(|t| t.get_ref().cause == Some(true));)* };
    }
    with_tables!(find);
    found || text.machine.as_ref().is_some_and(|m| m.get_ref().cause.is_some())
}
