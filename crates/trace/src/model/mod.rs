//! Trackers: who is who at each moment of the trace. One file each, updated in the order below before any
//! analysis sees an event.

pub mod address_space;
pub mod clr;
pub mod cpu;
pub mod file_name;
pub mod il_map;
pub mod image;
pub mod place;
pub mod process;
pub mod registry_key;
pub mod service;
pub mod stack;
pub mod switch;
pub mod system;
pub mod thread;
pub mod volume;

use crate::event::{Context, Event, Select};

/// All trackers.
#[derive(Debug, Default)]
pub struct Model {
    /// Processes by instance.
    pub processes: process::Processes,
    /// Threads by instance.
    pub threads: thread::Threads,
    /// Images per process, and drivers.
    pub images: image::Images,
    /// Addresses of routines.
    pub places: place::Places,
    /// Stacks and their keys.
    pub stacks: stack::Stacks,
    /// Names of files by key.
    pub files: file_name::FileNames,
    /// Names of registry keys.
    pub keys: registry_key::RegistryKeys,
    /// Drive letters of devices.
    pub volumes: volume::Volumes,
    /// .NET methods by address.
    pub clr: clr::Methods,
    /// Which IL their code comes from.
    pub il_maps: il_map::IlMaps,
    /// Who runs on each processor.
    pub cpus: cpu::Cpus,
    /// What threads did before they ran.
    pub switches: switch::Switches,
    /// Services.
    pub services: service::Services,
    /// Machine facts.
    pub system: system::SystemFacts,
    /// Who asks for stacks and places now is a table that is only made on demand: those that it alone has are
    /// numbered behind all others, so that the numbers in other tables do not depend on it.
    pub(crate) for_large_table: bool,
}

/// A tracker: the events that it needs and what it does with them.
pub(crate) struct Tracker {
    pub(crate) selects: &'static [Select],
    pub(crate) event: fn(&Event<'_>, &mut Context<'_>),
    /// Only needed by tables that hold stacks.
    pub(crate) for_stacks: bool,
}

/// The trackers in their order.
pub(crate) const TRACKERS: &[Tracker] = &[
    Tracker { selects: process::SELECTS, event: process::event, for_stacks: false },
    Tracker { selects: thread::SELECTS, event: thread::event, for_stacks: false },
    Tracker { selects: image::SELECTS, event: image::event, for_stacks: false },
    Tracker { selects: volume::SELECTS, event: volume::event, for_stacks: false },
    Tracker { selects: system::SELECTS, event: system::event, for_stacks: false },
    Tracker { selects: service::SELECTS, event: service::event, for_stacks: false },
    Tracker { selects: file_name::SELECTS, event: file_name::event, for_stacks: false },
    Tracker { selects: registry_key::SELECTS, event: registry_key::event, for_stacks: false },
    Tracker { selects: clr::SELECTS, event: clr::event, for_stacks: false },
    Tracker { selects: il_map::SELECTS, event: il_map::event, for_stacks: true },
    Tracker { selects: cpu::SELECTS, event: cpu::event, for_stacks: false },
    Tracker { selects: switch::SELECTS, event: switch::event, for_stacks: false },
    Tracker { selects: stack::SELECTS, event: stack::event, for_stacks: true },
];

impl Model {
    /// The thread instance for `tid` at `ns`; `pid` if the event knows it.
    #[inline]
    pub fn thread(&mut self, tid: u32, pid: Option<u32>, ns: i64) -> u32 {
        self.threads.at(tid, pid, ns, &mut self.processes)
    }

    /// The process of a thread instance, if anybody has named it so far.
    #[inline]
    pub fn upid_of(&self, utid: u32) -> Option<u32> {
        self.threads.get(utid).and_then(|t| t.upid)
    }

    /// Closes the tickets of stacks that have waited long enough at `ns`.
    #[inline]
    pub(crate) fn close_stacks(&mut self, ns: i64) {
        self.stacks.close(ns.saturating_sub(stack::WINDOW_NS), &self.threads, &self.images);
    }
}
