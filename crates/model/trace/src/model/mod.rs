//! Who is who at each moment of the trace: what the trackers know, one file each. `trackers.rs` says in which order they see events.

pub mod address_space;
pub mod clr;
pub mod cpu;
pub mod file_name;
mod halves;
pub mod il_map;
pub mod image;
mod living;
pub(crate) mod naming;
pub mod place;
pub mod process;
pub(crate) mod ran;
pub mod registry_key;
pub mod service;
pub mod stack;
pub mod switch;
pub mod system;
pub mod thread;
pub mod volume;

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
    /// Whom the payload of the event at hand names.
    pub(crate) named: naming::Named,
}

impl Model {
    /// What is known now, as the beginning of a part of the trace at `from_ns`: who runs counts from there, and stacks and places are
    /// those of the part.
    pub(crate) fn fork(&self, from_ns: i64) -> Model {
        let mut model = Model {
            processes: self.processes.clone(),
            threads: self.threads.clone(),
            images: self.images.clone(),
            places: place::Places::default(),
            stacks: stack::Stacks::default(),
            files: self.files.clone(),
            keys: self.keys.clone(),
            volumes: self.volumes.clone(),
            clr: self.clr.clone(),
            il_maps: self.il_maps.clone(),
            cpus: self.cpus.clone(),
            switches: self.switches.clone(),
            services: self.services.clone(),
            system: self.system.clone(),
            named: Default::default(),
        };
        model.cpus.begin_at(from_ns);
        model
    }

    /// The writer of a record, as its header says: whatever is asked, threads and processes are known from then on.
    #[inline]
    pub(crate) fn written_by(&mut self, record: &etwhy_etl::Record<'_>, ns: i64) {
        let Some((tid, pid)) = record.tid_pid().filter(|(_, pid)| *pid != u32::MAX) else { return };
        self.processes.at(pid, ns);
        if tid != u32::MAX {
            self.threads.at(tid, Some(pid), ns, &mut self.processes);
        }
    }

    /// From now on (not) an analysis is at work, which finds processes and threads and does not make any.
    #[inline]
    pub(crate) fn seal(&mut self, sealed: bool) {
        self.processes.sealed = sealed;
        self.threads.sealed = sealed;
    }

    /// Whether the thread `utid`, whose event on `cpu` is being looked at, may have been on a processor meanwhile whose records are
    /// missing: what it began at `from_ns` may have ended and begun again there.
    pub fn may_have_run_unseen(&self, cpu: u16, utid: u32, from_ns: i64, ns: i64) -> bool {
        let here = |r: cpu::Running| {
            r.utid == utid && (r.since_ns <= from_ns || self.switches.known_since(utid, from_ns))
        };
        self.cpus.doubtful(from_ns, ns) && !self.cpus.running(cpu, ns).is_some_and(here)
    }

    /// The thread instance for `tid` at `ns`; `pid` if the event knows it.
    #[inline]
    pub fn thread(&mut self, tid: u32, pid: Option<u32>, ns: i64) -> u32 {
        self.threads.at(tid, pid, ns, &mut self.processes)
    }

    /// The process of a thread instance, if anybody has named it so far.
    #[inline]
    pub fn upid_of(&self, utid: u32) -> Option<u32> {
        self.threads.upid_of(utid)
    }
}
