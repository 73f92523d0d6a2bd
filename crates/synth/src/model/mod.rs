//! The text form of a scenario: one struct per table. `docs/scenarios.md` explains every field.

mod events;
mod machine;
mod truth;
mod who;

pub(crate) use events::*;
pub(crate) use machine::*;
pub(crate) use truth::*;
pub(crate) use who::*;

use crate::error::{Place, Result};
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
}

/// Reads the text.
pub(crate) fn parse(place: &Place) -> Result<Text> {
    toml::from_str(&place.text).map_err(|e| place.error(e.span(), e.message().trim()))
}
