//! A recording: profiles put together, with the session and the buffers to use.

use crate::profile::{Profile, Provider, profile, profiles};
use crate::vocabulary::{self, Keyword, Stack};
use etwhy_base::units::thousands;

/// Name of the user session, and of the file that the recording is merged into.
const NAME: &str = "etwhy";
/// Logical processors that need no larger buffers.
const USUAL_PROCESSORS: u32 = 64;
/// Memory of a machine of which nothing is said, GiB: a small one of today.
const USUAL_MEMORY_GIB: u32 = 8;
/// Part of the memory that buffers of the kernel session take at most. They are not paged: what they take, nobody else has.
const KERNEL_SHARE: u32 = 32;
/// The same of the user session.
const USER_SHARE: u32 = 128;
/// Fewest mebibytes that a session can work with.
const LEAST_MIB: u32 = 16;
/// Most mebibytes of the kernel session of a machine with up to 64 processors: 8 buffers for each.
const MOST_MIB: u32 = 512;

/// Profiles that cannot be combined.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A name that no profile has.
    #[error("no profile is called `{0}`; there are {1}")]
    NoSuchProfile(String, String),
    /// No name at all.
    #[error("name a profile; there are {0}")]
    NoProfile(String),
    /// What the user asks for and the recorder cannot.
    #[error("{0}")]
    Cannot(String),
}

/// The kernel session that takes the kernel's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Session {
    /// `NT Kernel Logger`: there is one, and any administrator can take it over.
    #[default]
    NtKernelLogger,
    /// `Circular Kernel Context Logger`: the second reserved kernel session, for when the first is taken.
    Circular,
    /// A session of its own with `EVENT_TRACE_SYSTEM_LOGGER_MODE`: up to eight kernel sessions at once, the two reserved
    /// ones included (Windows 8 and later).
    System,
}

impl Session {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Session::NtKernelLogger => "NT Kernel Logger",
            Session::Circular => "Circular Kernel Context Logger",
            Session::System => "etwhy kernel",
        }
    }
}

/// The machine that is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// Up to 64 logical processors, 8 GiB of memory.
    #[default]
    Usual,
    /// Up to 64 logical processors, and this much memory.
    Memory {
        /// Memory in GiB.
        gib: u32,
    },
    /// More than that.
    Large {
        /// Logical processors.
        processors: u32,
    },
    /// A machine of which both are known: this one.
    Machine {
        /// Logical processors.
        processors: u32,
        /// Memory in MiB.
        memory_mib: u32,
    },
}

/// How much of its memory a 64-bit Windows 7 may use as non-paged pool, from which buffers come; later ones may use more (Microsoft,
/// *Memory Limits for Windows and Windows Server Releases*).
const POOL_PERCENT: u32 = 75;

/// Buffers of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Size of one buffer in KiB.
    pub size_kib: u32,
    /// Buffers that are there from the start.
    pub min: u32,
    /// Buffers that there may be.
    pub max: u32,
}

impl Buffers {
    /// Mebibytes of memory that is not paged: from the start, and at most.
    pub fn mebibytes(self) -> [u32; 2] {
        [self.min, self.max].map(|count| count.saturating_mul(self.size_kib) / 1024)
    }

    /// Number, size and memory: `128 to 256 buffers of 1,024 KiB, 128 to 256 MiB of memory that is not paged`.
    pub fn described(self) -> String {
        let range = |[from, to]: [u32; 2]| match from == to {
            true => thousands(to.into()),
            false => format!("{} to {}", thousands(from.into()), thousands(to.into())),
        };
        format!(
            "{} buffers of {} KiB, {} MiB of memory that is not paged",
            range([self.min, self.max]),
            thousands(self.size_kib.into()),
            range(self.mebibytes())
        )
    }

    /// What these and `other` take together at most, as shares of this much memory and of the pool that they come from.
    pub fn share(self, other: Buffers, memory_mib: u32) -> String {
        let [_, own] = self.mebibytes();
        let [_, others] = other.mebibytes();
        let both = own.saturating_add(others);
        let percent = f64::from(both) * 100.0 / f64::from(memory_mib.max(1));
        format!(
            "at most {} MiB together: {percent:.1} % of {} MiB of memory, {:.1} % of what non-paged pool may take ({POOL_PERCENT} % of \
             memory on Windows 7, more on later ones)",
            thousands(both.into()),
            thousands(memory_mib.into()),
            percent * 100.0 / f64::from(POOL_PERCENT)
        )
    }

    /// Within both numbers of mebibytes, half of it from the start: buffers so small that each processor has four, if that is
    /// possible with 64 KiB.
    fn for_machine(share_mib: u32, wanted_mib: u32, processors: u32) -> Buffers {
        let kib = share_mib.min(wanted_mib).max(4) * 1024;
        let fits = |size: &u32| kib / size >= processors * 4;
        let size_kib = [1024, 512, 256, 128].into_iter().find(fits).unwrap_or(64);
        let max = kib / size_kib;
        Buffers { size_kib, min: max / 2, max }
    }

    /// Buffers of a session in memory: all of them from the start.
    pub fn ring(mebibytes: u32) -> Buffers {
        let count = mebibytes.max(4);
        Buffers { size_kib: 1024, min: count, max: count }
    }

    /// Within so many mebibytes; half of it from the start.
    fn within(mebibytes: u32) -> Buffers {
        // Small buffers where memory is small: each processor needs two.
        let size_kib = if mebibytes < 2 * USUAL_PROCESSORS { 256 } else { 1024 };
        let max = mebibytes * 1024 / size_kib;
        Buffers { size_kib, min: max / 2, max }
    }
}

impl Size {
    /// Whether it has more than 64 logical processors.
    pub fn is_large(self) -> bool {
        matches!(self, Size::Large { .. } | Size::Machine { processors: 65.., .. })
    }

    /// Memory in GiB that buffers are bound by; absent for large machines, whose processors decide.
    pub fn memory_gib(self) -> Option<u32> {
        match self {
            Size::Usual => Some(USUAL_MEMORY_GIB),
            Size::Memory { gib } => Some(gib.clamp(1, 4096)),
            Size::Large { .. } | Size::Machine { .. } => None,
        }
    }

    /// Logical processors that buffers are counted for.
    pub fn processors(self) -> u32 {
        match self {
            Size::Usual | Size::Memory { .. } => USUAL_PROCESSORS,
            // The bound is beyond any machine; it keeps the numbers of buffers sane.
            Size::Large { processors } | Size::Machine { processors, .. } => processors.clamp(1, 4096),
        }
    }

    /// Buffers of the kernel session.
    ///
    /// An event goes into the buffer of its processor, so that every processor holds one that it fills and, while that
    /// one is written, needs another: two per processor are the least (`EVENT_TRACE_PROPERTIES`, `MinimumBuffers`).
    /// Four from the start and eight at most leave room for disks that pause. 1 MiB is the largest buffer before
    /// Windows 8, the size that Microsoft's own profiles use, and large enough that a processor that writes 20 MB/s
    /// fills one in 50 ms. Where the processors are not many, a share of the memory bounds them.
    pub fn kernel_buffers(self) -> Buffers {
        if let Some(gib) = self.memory_gib() {
            return Buffers::within((gib * 1024 / KERNEL_SHARE).clamp(LEAST_MIB, MOST_MIB));
        }
        let processors = self.processors();
        if let Size::Machine { memory_mib, .. } = self {
            return Buffers::for_machine(
                memory_mib / KERNEL_SHARE,
                (processors * 8).max(MOST_MIB),
                processors,
            );
        }
        Buffers { size_kib: 1024, min: (processors * 4).max(256), max: (processors * 8).max(512) }
    }

    /// Buffers of the user session: the same rule, but few providers write much.
    pub fn user_buffers(self) -> Buffers {
        if let Some(gib) = self.memory_gib() {
            return Buffers::within((gib * 1024 / USER_SHARE).clamp(LEAST_MIB, MOST_MIB / 4));
        }
        let processors = self.processors();
        if let Size::Machine { memory_mib, .. } = self {
            return Buffers::for_machine(
                memory_mib / USER_SHARE,
                (processors * 2).max(MOST_MIB / 4),
                processors,
            );
        }
        Buffers { size_kib: 1024, min: processors.max(64), max: (processors * 2).max(128) }
    }

    /// Most of the memory that buffers of the kernel session may take in a `.wprp` file, in per cent; nothing where processors decide.
    pub fn percent(self) -> Option<[&'static str; 2]> {
        // 1/32 and 1/128.
        self.memory_gib().map(|_| ["3", "1"])
    }

    /// The numbers explained, one sentence a line.
    pub fn explained(self) -> Vec<String> {
        let (kernel, user) = (self.kernel_buffers(), self.user_buffers());
        let both = format!(
            "Buffers of the kernel session: {}; of the session of providers, if any: {}",
            kernel.described(),
            user.described()
        );
        if let Some(gib) = self.memory_gib() {
            return vec![
                format!("{both}; {}.", kernel.share(user, gib.saturating_mul(1024))),
                format!(
                    "For a machine with {gib} GiB and up to {USUAL_PROCESSORS} processors. The options `memory` and `large` of etwhy \
                     record fit others."
                ),
            ];
        }
        if let Size::Machine { memory_mib, .. } = self {
            return vec![format!(
                "{both}; {}: never more than 1/{KERNEL_SHARE} and 1/{USER_SHARE} of memory.",
                kernel.share(user, memory_mib)
            )];
        }
        vec![
            format!("{} processors: {both}. 4 to 8 buffers per processor.", self.processors()),
            "Each processor fills a buffer of its own while others are written; with fewer than 2 per processor events \
             are lost."
                .to_owned(),
            "Record to a disk that is not measured, from a processor node that does not take the interrupts."
                .to_owned(),
        ]
    }
}

/// Profiles put together.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Names of the profiles that were asked for.
    pub names: Vec<&'static str>,
    /// All profiles that take part, the base included.
    pub profiles: Vec<&'static Profile>,
    /// Kernel keywords, in the order of the schema.
    pub keywords: Vec<&'static Keyword>,
    /// Kernel events with stacks, in the order of the schema.
    pub stacks: Vec<&'static Stack>,
    /// Providers, each once.
    pub providers: Vec<Provider>,
    /// The kernel session.
    pub session: Session,
    /// The machine.
    pub size: Size,
}

impl Recording {
    /// The recording of the named profiles.
    ///
    /// # Errors
    /// A name that no profile has, or none.
    pub fn from_profiles(names: &[&str], session: Session, size: Size) -> Result<Recording, RecordError> {
        let all = || profiles().iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
        let mut asked: Vec<&'static Profile> = Vec::new();
        for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
            let profile = profile(name).ok_or_else(|| RecordError::NoSuchProfile(name.to_owned(), all()))?;
            if !asked.contains(&profile) {
                asked.push(profile);
            }
        }
        if asked.is_empty() {
            return Err(RecordError::NoProfile(all()));
        }
        let mut parts: Vec<&'static Profile> = Vec::new();
        let inner = asked.iter().flat_map(|p| p.includes.iter().filter_map(|name| profile(name)));
        for part in profile("base").into_iter().chain(asked.iter().copied()).chain(inner) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        let wants = |list: fn(&Profile) -> &[String], name: &str| {
            parts.iter().any(|p| list(p).iter().any(|n| n == name))
        };
        let mut providers: Vec<Provider> = Vec::new();
        for provider in parts.iter().flat_map(|p| &p.providers) {
            if providers.iter().all(|other| other.guid != provider.guid) {
                providers.push(provider.clone());
            }
        }
        Ok(Recording {
            names: asked.iter().map(|p| p.name).collect(),
            keywords: vocabulary::keywords().iter().filter(|k| wants(|p| &p.keywords, k.wpr)).collect(),
            stacks: vocabulary::stacks().iter().filter(|s| wants(|p| &p.stacks, s.wpr)).collect(),
            profiles: parts,
            providers,
            session,
            size,
        })
    }

    /// Name of the combination: `cpu-registry`.
    pub fn name(&self) -> String {
        self.names.join("-")
    }

    /// Name of the user session and of the files.
    pub fn user_session(&self) -> &'static str {
        NAME
    }

    /// Name that its `.wprp` file is best given.
    pub fn file_name(&self) -> String {
        format!("{NAME}-{}.wprp", self.name())
    }

    /// What it makes visible.
    pub fn shows(&self) -> String {
        self.names.iter().filter_map(|n| profile(n)).map(|p| p.shows.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// What the user should know.
    pub fn notes(&self) -> Vec<&str> {
        self.profiles.iter().flat_map(|p| p.notes.iter().map(String::as_str)).collect()
    }

    /// What is not proven of a `.wprp` file of this recording: a sentence, if anything is.
    pub fn unproven(&self) -> Option<String> {
        vocabulary::unproven(self.keywords.iter().map(|k| k.wpr))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_hold_each_part_once() {
        let both =
            Recording::from_profiles(&["cpu", "registry", " cpu"], Session::default(), Size::default())
                .unwrap();
        assert_eq!(both.name(), "cpu-registry");
        assert_eq!(both.file_name(), "etwhy-cpu-registry.wprp");
        let names: Vec<&str> = both.keywords.iter().map(|k| k.wpr).collect();
        assert_eq!(
            names,
            [
                "CpuConfig",
                "CSwitch",
                "DPC",
                "Interrupt",
                "Loader",
                "ProcessThread",
                "ReadyThread",
                "Registry",
                "RegistryHive",
                "SampledProfile"
            ]
        );
        assert!(both.stacks.iter().any(|s| s.wpr == "RegistryQueryValue"));
        assert!(both.providers.is_empty());
    }

    #[test]
    fn everything_is_the_sum_of_its_parts() {
        let all = Recording::from_profiles(&["all"], Session::default(), Size::default()).unwrap();
        for p in profiles() {
            assert!(p.keywords.iter().all(|k| all.keywords.iter().any(|a| a.wpr == k)), "{}", p.name);
            assert!(p.stacks.iter().all(|k| all.stacks.iter().any(|a| a.wpr == k)), "{}", p.name);
            for provider in &p.providers {
                // Two profiles that ask for one provider in two ways would need to be merged.
                assert!(all.providers.contains(provider), "{}: {}", p.name, provider.name);
            }
        }
    }

    #[test]
    fn wrong_names_are_told_with_what_there_is() {
        let error =
            Recording::from_profiles(&["cpus"], Session::default(), Size::default()).unwrap_err().to_string();
        assert!(error.contains("`cpus`") && error.contains("cpu, dpc, syscall"), "{error}");
        assert!(Recording::from_profiles(&[" "], Session::default(), Size::default()).is_err());
    }

    #[test]
    fn buffers_grow_with_the_processors() {
        assert_eq!(Size::Usual.kernel_buffers(), Buffers { size_kib: 1024, min: 128, max: 256 });
        let large = Size::Large { processors: 256 };
        assert_eq!(large.kernel_buffers(), Buffers { size_kib: 1024, min: 1024, max: 2048 });
        assert_eq!(large.user_buffers(), Buffers { size_kib: 1024, min: 256, max: 512 });
        assert!(large.explained()[0].contains("1,024 to 2,048 buffers of 1,024 KiB, 1,024 to 2,048 MiB"));
        assert!(Size::Usual.explained()[0].contains("128 to 256 MiB"), "{:?}", Size::Usual.explained());
        let usual = Size::Usual.explained()[0].clone();
        assert!(
            usual.contains("320 MiB together: 3.9 % of 8,192 MiB of memory, 5.2 % of what non-paged pool"),
            "{usual}"
        );
        // A share of the memory, however small the machine, and never more than 512 MiB.
        for gib in [0, 1, 2, 4, 8, 16, 64, u32::MAX] {
            let size = Size::Memory { gib };
            let [_, kernel] = size.kernel_buffers().mebibytes();
            let [_, user] = size.user_buffers().mebibytes();
            let memory = u64::from(gib.clamp(1, 4096)) * 1024;
            assert!(
                u64::from(kernel + user) * 20 <= memory && kernel <= 512 && user <= 128,
                "{gib} GiB: {kernel} and {user} MiB"
            );
            assert!(size.kernel_buffers().max >= 64, "{gib} GiB: fewer than one for each processor");
        }
        // This machine: both shares hold, and each processor has two buffers from the start wherever 64 KiB let it.
        for processors in [0, 1, 8, 65, 256, u32::MAX] {
            for memory_mib in [0, 512, 2048, 8192, 65_536, 4 << 20, u32::MAX] {
                let size = Size::Machine { processors, memory_mib };
                let (kernel, user) = (size.kernel_buffers(), size.user_buffers());
                assert!(kernel.max * kernel.size_kib / 1024 <= (memory_mib / 32).max(4), "{size:?}");
                assert!(user.max * user.size_kib / 1024 <= (memory_mib / 128).max(4), "{size:?}");
                assert!(kernel.min >= 2 * size.processors() || kernel.size_kib == 64, "{size:?}: {kernel:?}");
                assert!(!size.explained().is_empty());
            }
        }
        for processors in [0, 1, 65, 4096, u32::MAX] {
            let buffers = Size::Large { processors }.kernel_buffers();
            assert!(buffers.min >= 2 * Size::Large { processors }.processors() && buffers.min <= buffers.max);
        }
    }
}
