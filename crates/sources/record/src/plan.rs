//! What a recording switches on, as data: the same plan is printed for other recorders and started by `etwhy record start`.

use crate::profile::Provider;
use crate::recording::{Buffers, Recording};
use crate::vocabulary::{EventClass, MASKS, masks_of};
use etwhy_base::Guid;

/// A provider to switch on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// Registered name, for people.
    pub name: String,
    /// Its GUID.
    pub guid: Guid,
    /// Highest level.
    pub level: u8,
    /// Keywords, any of which an event must have.
    pub keywords: u64,
    /// Record stacks.
    pub stack: bool,
    /// Stacks of these events only; all if it is empty.
    pub stack_of: Vec<u16>,
    /// Events that are left out.
    pub without: Vec<u16>,
    /// Programs whose events are recorded, separated by semicolons; all if it is empty. Drivers do not heed it.
    pub programs: String,
    /// Keywords of the state that it tells at the end.
    pub at_stop: Option<u64>,
    /// Only that state is wanted.
    pub only_at_stop: bool,
}

impl Enabled {
    /// The provider of marks.
    fn marks() -> Enabled {
        Enabled {
            name: "etwhy (marks)".to_owned(),
            guid: crate::MARKS,
            level: 5,
            keywords: u64::MAX,
            stack: false,
            stack_of: Vec::new(),
            without: Vec::new(),
            programs: String::new(),
            at_stop: None,
            only_at_stop: false,
        }
    }

    /// None if the profile's GUID is none, which a test of the profiles excludes.
    fn of(provider: &Provider) -> Option<Enabled> {
        Some(Enabled {
            name: provider.name.clone(),
            guid: provider.guid.parse().ok()?,
            level: provider.level,
            keywords: provider.keyword_bits(),
            stack: provider.stack,
            stack_of: provider.stack_of_events.clone(),
            without: provider.without_events.clone(),
            programs: String::new(),
            at_stop: provider.capture_bits(),
            only_at_stop: provider.capture_only,
        })
    }
}

/// The plan of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Group masks of the kernel session; the first is the flag word of `EVENT_TRACE_PROPERTIES`.
    pub masks: [u32; MASKS],
    /// Kernel events whose stacks are recorded, in order.
    pub stacks: Vec<EventClass>,
    /// Buffers of the kernel session.
    pub kernel_buffers: Buffers,
    /// Providers.
    pub providers: Vec<Enabled>,
    /// Buffers of the session of the providers.
    pub user_buffers: Buffers,
}

impl Plan {
    /// What the recording switches on.
    pub fn of(recording: &Recording) -> Plan {
        let mut stacks: Vec<EventClass> = recording.stacks.iter().filter_map(|s| s.event).collect();
        stacks.sort_unstable();
        Plan {
            masks: masks_of(recording.keywords.iter().copied()),
            stacks,
            kernel_buffers: recording.size.kernel_buffers(),
            providers: recording.providers.iter().filter_map(Enabled::of).collect(),
            user_buffers: recording.size.user_buffers(),
        }
    }

    /// The flag word.
    pub fn flags(&self) -> u32 {
        self.masks.first().copied().unwrap_or(0)
    }

    /// What is switched on from the start: providers, but those that only tell their state at the end, and that of marks.
    pub fn enabled(&self) -> Vec<Enabled> {
        let providers = self.providers.iter().filter(|provider| !provider.only_at_stop).cloned();
        providers.chain([Enabled::marks()]).collect()
    }

    /// The same of these programs alone, as far as providers can tell whose an event is.
    #[must_use]
    pub fn of_programs(mut self, programs: &[String]) -> Plan {
        let programs = programs.join(";");
        self.providers.iter_mut().for_each(|provider| provider.programs.clone_from(&programs));
        self
    }

    /// The same in memory: three quarters for the kernel's events, if there are providers.
    #[must_use]
    pub fn in_memory(self, mebibytes: u32) -> Plan {
        let user = if self.providers.is_empty() { 4 } else { mebibytes / 4 };
        Plan {
            kernel_buffers: Buffers::ring(mebibytes.saturating_sub(user)),
            user_buffers: Buffers::ring(user),
            ..self
        }
    }
}
