//! Before the start, and the start.

use super::boot::small;
use super::explain::explain;
use super::journal::{Entry, Journal, Kind, Mode, Phase, State, is_of_etwhy, target};
use super::system::{Begin, Code, Live, Provided, Refused};
use super::{NT_KERNEL_LOGGER, RESERVE, Recorder, Trigger};
use crate::{Buffers, Plan, Recording, Session, Size};
use etwhy_base::units;
use std::path::PathBuf;

/// Most of the memory that a flight recorder may take, as a part.
const RING_SHARE: u32 = 8;
/// `EVENT_TRACE_FILE_MODE_SEQUENTIAL`, `EVENT_TRACE_BUFFERING_MODE`, `EVENT_TRACE_SYSTEM_LOGGER_MODE` (evntrace.h).
pub(super) const SEQUENTIAL: u32 = 0x1;
const BUFFERING: u32 = 0x400;
pub(super) const SYSTEM_LOGGER: u32 = 0x0200_0000;
/// Flags whose events name what is there when a session begins or ends: processes, threads, images, files (with the transfers that Windows wants
/// switched on for them), registry keys (`EVENT_TRACE_FLAG_PROCESS`, `_THREAD`, `_IMAGE_LOAD`, `_DISK_IO`, `_DISK_FILE_IO`, `_REGISTRY`).
const TELLS_NAMES: u32 = 0x1 | 0x2 | 0x4 | 0x100 | 0x200 | 0x2_0000;

/// Which session takes the kernel's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// `NT Kernel Logger` if it is free, else a private one.
    #[default]
    Auto,
    /// `NT Kernel Logger` or none.
    NtKernelLogger,
    /// A kernel session of our own name (Windows 8 and later).
    Private,
}

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Profiles.
    pub profiles: Vec<String>,
    /// Programs whose events providers record (names of files); all if there are none. The kernel's events are of all.
    pub programs: Vec<String>,
    /// Where the events go.
    pub mode: Mode,
    /// Milliseconds after which it ends.
    pub for_ms: Option<u64>,
    /// What ends it.
    pub stop_when: Vec<Trigger>,
    /// Which session takes the kernel's events.
    pub kernel: Choice,
    /// Folder of the files while it runs.
    pub folder: PathBuf,
    /// Where the result goes.
    pub output: Option<PathBuf>,
    /// What is there already is replaced.
    pub replace: bool,
    /// The files of the recording are left as they are, not merged.
    pub parts: bool,
    /// The next start of Windows is recorded, into files.
    pub boot: bool,
}

impl Options {
    /// All of these profiles, until it is ended, with its files left in the folder.
    pub fn new(profiles: Vec<String>, mode: Mode, folder: PathBuf) -> Options {
        Options {
            profiles,
            programs: Vec::new(),
            mode,
            for_ms: None,
            stop_when: Vec::new(),
            kernel: Choice::Auto,
            folder,
            output: None,
            replace: false,
            parts: false,
            boot: false,
        }
    }
}

/// The plan of a recording that is written down, for this machine.
pub(super) fn plan(
    profiles: &[String],
    programs: &[String],
    mode: Mode,
    (processors, memory_mib): (u32, u32),
) -> Result<Plan, Refused> {
    let names: Vec<&str> = profiles.iter().map(String::as_str).collect();
    let size = Size::Machine { processors, memory_mib };
    let recording =
        Recording::from_profiles(&names, Session::System, size).map_err(|e| Refused(e.to_string()))?;
    let plan = Plan::of(&recording).of_programs(programs);
    Ok(match mode {
        Mode::Ring { mebibytes } => plan.in_memory(mebibytes),
        Mode::File | Mode::Rotate { .. } => plan,
    })
}

/// The buffers of a recording, in sentences.
fn buffers(plan: &Plan, options: &Options, (_, memory_mib): (u32, u32)) -> Vec<String> {
    let of = |buffers: Buffers| if options.boot { small(buffers) } else { buffers };
    let (kernel, user) = (of(plan.kernel_buffers), of(plan.user_buffers));
    vec![
        format!("kernel session: {}", kernel.described()),
        format!("session of providers and marks: {}", user.described()),
        format!("buffers take {}", kernel.share(user, memory_mib)),
    ]
}

impl Recorder<'_> {
    /// Checks that a recording can begin, and begins none. Gives what it would take, and sentences that the user should know.
    ///
    /// # Errors
    /// Why none can begin.
    pub fn try_out(&mut self, options: &Options) -> Result<Vec<String>, Refused> {
        let size = self.machine.size();
        let plan = plan(&options.profiles, &options.programs, options.mode, size)?;
        let (private, said) = self.preflight(options, size)?;
        let session = match (options.boot, private) {
            (true, _) => "the next start of Windows would be recorded",
            (false, true) => "a private kernel session would record",
            (false, false) => "the session `NT Kernel Logger` would record",
        };
        let first = format!("{session}: {}", options.profiles.join(","));
        Ok([first].into_iter().chain(said).chain(buffers(&plan, options, size)).collect())
    }

    /// Checks that a recording can begin, and begins it. Gives sentences that the user should know.
    ///
    /// # Errors
    /// Why it did not begin. Nothing of ours runs then, unless the sentence says so.
    pub fn start(&mut self, options: &Options) -> Result<Vec<String>, Refused> {
        let size = self.machine.size();
        let plan = plan(&options.profiles, &options.programs, options.mode, size)?;
        let (private, mut said) = self.preflight(options, size)?;
        let buffers = buffers(&plan, options, size);
        let now = self.machine.now_ms();
        let mut journal = Journal {
            version: Journal::VERSION,
            id: self.machine.token(),
            profiles: options.profiles.clone(),
            programs: options.programs.clone(),
            began_ms: now,
            until_ms: options.for_ms.map(|ms| now.saturating_add(ms)),
            stop_when: options.stop_when.iter().map(ToString::to_string).collect(),
            phase: if options.boot { Phase::Boot } else { Phase::Starting },
            mode: options.mode,
            size,
            folder: options.folder.clone(),
            output: options.output.clone(),
            replace: options.replace,
            parts: options.parts,
            sessions: Vec::new(),
            segment_ms: now,
            kept: Vec::new(),
            remarks: Vec::new(),
        };
        self.machine
            .make_folder(&options.folder)
            .map_err(|why| Refused(format!("{}: cannot be made: {why}", options.folder.display())))?;
        self.save(&journal)?;
        if options.boot {
            let said = self.arm(journal, &plan, said)?;
            return Ok([said, buffers].concat());
        }
        let begun = self
            .begin_kernel(&mut journal, &plan, private, options.kernel, &mut said)
            .and_then(|()| self.begin_user(&mut journal, &plan, &mut said))
            .and_then(|()| {
                journal.phase = Phase::Running;
                self.save(&journal)
            });
        if let Err(why) = begun {
            let left = self.stop_sessions(&mut journal);
            self.remove_files(&journal);
            return Err(match left {
                Ok(()) => {
                    let _ = self.machine.clear();
                    why
                }
                Err(left) => Refused(format!("{why}. And a session is still there: {left}")),
            });
        }
        let ms = self.machine.now_ms();
        said.iter().for_each(|text| journal.remark(ms, text));
        self.save(&journal)?;
        said.extend(buffers);
        Ok(said)
    }

    /// Whether a recording can begin, whether its kernel session must be a private one, and what the user should know.
    fn preflight(
        &mut self,
        options: &Options,
        (_, memory_mib): (u32, u32),
    ) -> Result<(bool, Vec<String>), Refused> {
        let refuse = |text: String| Err(Refused(text));
        if let Some(journal) = self.machine.load().map_err(Refused)? {
            return refuse(format!(
                "a recording of etwhy ({}) is there already: `etwhy record status` tells how it is, `etwhy record stop` ends it and keeps \
                 its files, `etwhy record cancel` deletes them",
                journal.profiles.join(",")
            ));
        }
        if let Some(output) = options.output.as_ref().filter(|_| !options.replace) {
            self.must_be_new(&[Kind::Kernel, Kind::User].map(|kind| target(kind, 1, output)))?;
        }
        if !self.machine.is_administrator() {
            return refuse(explain(Code(5)));
        }
        let mut said = Vec::new();
        match self.machine.free_bytes(&options.folder) {
            Some(free) if free < RESERVE => {
                return refuse(format!(
                    "{} has {} left, and the last {} are not used: make room, or name a folder on another disk with --folder",
                    options.folder.display(),
                    bytes(free),
                    bytes(RESERVE)
                ));
            }
            Some(free) => {
                if let Mode::Rotate { keep, .. } = options.mode
                    && keep > free - RESERVE
                {
                    said.push(format!(
                        "{} has {} left, less than the {} that are to be kept: recording ends when {} are left",
                        options.folder.display(),
                        bytes(free),
                        bytes(keep),
                        bytes(RESERVE)
                    ));
                }
            }
            None => said.push(format!("{}: free space cannot be determined", options.folder.display())),
        }
        let live = self.sessions.list().map_err(|code| Refused(format!("sessions: {}", explain(code))))?;
        if let Some(left) = live.iter().find(|live| is_of_etwhy(live)) {
            return refuse(format!(
                "the session `{}` is left over from a recording of etwhy whose journal is gone: `etwhy record cancel` ends it",
                left.name
            ));
        }
        if options.boot {
            // Whoever has `NT Kernel Logger` now has lost it when Windows starts.
            return self.is_not_armed().map(|()| (false, said));
        }
        let can_private = self.machine.has_private_kernel_sessions();
        let taken = live.iter().find(|live| live.name.eq_ignore_ascii_case(NT_KERNEL_LOGGER));
        let private = match (options.kernel, options.mode, taken) {
            (Choice::NtKernelLogger, _, Some(taken)) => {
                return refuse(format!("{}: it is left alone", describe_taken(taken)));
            }
            (Choice::NtKernelLogger, Mode::Ring { .. }, _) => {
                return refuse(
                    "a flight recorder needs a private kernel session: leave out --session".to_owned(),
                );
            }
            (Choice::Private, ..) | (Choice::Auto, Mode::Ring { .. }, _) => true,
            (Choice::Auto, _, Some(taken)) => {
                if can_private {
                    said.push(format!("{}: a private kernel session records instead", describe_taken(taken)));
                }
                true
            }
            _ => false,
        };
        if private && !can_private {
            return refuse(match taken {
                Some(taken) => format!(
                    "{}, and this Windows has no private kernel sessions (Windows 8 and later have): stop it there, or record providers \
                     with another tool",
                    describe_taken(taken)
                ),
                None => "private kernel sessions need Windows 8 or later".to_owned(),
            });
        }
        if let Mode::Ring { mebibytes } = options.mode
            && mebibytes > memory_mib / RING_SHARE
        {
            return refuse(format!(
                "a flight recorder of {mebibytes} MiB would take more than 1/{RING_SHARE} of the {memory_mib} MiB of this machine, as \
                 memory that is not paged: at most --ring {}MB",
                memory_mib / RING_SHARE
            ));
        }
        Ok((private, said))
    }

    /// Starts the kernel session; a private one if `NT Kernel Logger` was taken in the meantime and that is allowed.
    fn begin_kernel(
        &mut self,
        journal: &mut Journal,
        plan: &Plan,
        private: bool,
        choice: Choice,
        said: &mut Vec<String>,
    ) -> Result<(), Refused> {
        match self.begin(journal, plan, Kind::Kernel, private, said) {
            Err(Failure::Windows(Code::ALREADY_EXISTS)) if !private && choice == Choice::Auto => {
                if !self.machine.has_private_kernel_sessions() {
                    return Err(Refused(format!("`{NT_KERNEL_LOGGER}`: {}", explain(Code::ALREADY_EXISTS))));
                }
                said.push(format!(
                    "`{NT_KERNEL_LOGGER}` was taken at this moment: a private kernel session records instead"
                ));
                self.begin(journal, plan, Kind::Kernel, true, said).map_err(Failure::refused)
            }
            other => other.map_err(Failure::refused),
        }
    }

    /// Starts the session of providers and marks.
    fn begin_user(
        &mut self,
        journal: &mut Journal,
        plan: &Plan,
        said: &mut Vec<String>,
    ) -> Result<(), Refused> {
        self.begin(journal, plan, Kind::User, true, said).map_err(Failure::refused)
    }

    /// Starts a session: written down before, and what it records switched on afterwards. What of that fails is said.
    pub(super) fn begin(
        &mut self,
        journal: &mut Journal,
        plan: &Plan,
        kind: Kind,
        private: bool,
        said: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let entry = journal.next_entry(kind, private);
        let begin = begin_of(&entry, journal.size.0, plan);
        journal.sessions.push(entry);
        self.save(journal).map_err(Failure::Journal)?;
        let handle = match self.sessions.start(&begin) {
            Ok(handle) => handle,
            Err(code) => {
                journal.sessions.pop();
                self.save(journal).map_err(Failure::Journal)?;
                return Err(Failure::Windows(code));
            }
        };
        let mut fails = |what: String, done: Result<(), Code>| {
            if let Err(code) = done {
                said.push(format!("{what}: {}", explain(code)));
            }
        };
        if kind == Kind::Kernel {
            if plan.masks.iter().skip(1).any(|mask| *mask != 0) {
                let done = self.sessions.set_masks(handle, plan.masks);
                fails("kernel events beyond the documented flag word are missing".to_owned(), done);
            }
            if !plan.stacks.is_empty() {
                let done = self.sessions.set_stacks(handle, &plan.stacks);
                fails("stacks of kernel events are missing".to_owned(), done);
            }
        } else if kind == Kind::User {
            for provider in &plan.enabled() {
                let mut done = self.sessions.enable(handle, provider, Provided::Events);
                let filters = [
                    !provider.without.is_empty(),
                    !provider.stack_of.is_empty(),
                    !provider.programs.is_empty(),
                ];
                if done == Err(Code::INVALID_PARAMETER) && filters.contains(&true) {
                    // Filters need Windows 8.1; without them more is recorded.
                    let all = crate::Enabled {
                        without: Vec::new(),
                        stack_of: Vec::new(),
                        programs: String::new(),
                        ..provider.clone()
                    };
                    done = self.sessions.enable(handle, &all, Provided::Events);
                }
                fails(format!("{} is missing", provider.name), done);
            }
        }
        // Windows may add flags of its own: what it says now is what later changes are told from.
        let flags = self.sessions.query(&begin.name).map_or(begin.flags, |live| live.flags);
        if let Some(entry) = journal.sessions.last_mut() {
            entry.state = State::Running;
            entry.flags = flags;
        }
        self.save(journal).map_err(Failure::Journal)
    }

    pub(super) fn save(&mut self, journal: &Journal) -> Result<(), Refused> {
        self.machine.save(journal).map_err(|why| Refused(format!("the journal cannot be written: {why}")))
    }
}

/// Why a session did not start.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    Windows(Code),
    Journal(Refused),
}

impl Failure {
    pub(super) fn refused(self) -> Refused {
        match self {
            Failure::Windows(code) => Refused(explain(code)),
            Failure::Journal(why) => why,
        }
    }
}

/// Buffers of a session that only tells names: two for each processor, which Windows wants, and room for one that writes all at once.
fn for_names(processors: u32) -> Buffers {
    let each = processors.clamp(1, 4096);
    Buffers { size_kib: 128, min: (each * 2).max(32), max: (each * 4).max(128) }
}

fn begin_of(entry: &Entry, processors: u32, plan: &Plan) -> Begin {
    let (buffers, flags) = match entry.kind {
        Kind::Kernel => (plan.kernel_buffers, plan.flags()),
        Kind::User => (plan.user_buffers, 0),
        Kind::Names => (for_names(processors), plan.flags() & TELLS_NAMES),
    };
    let place = if entry.files.is_empty() { BUFFERING } else { SEQUENTIAL };
    let kernel = if entry.kind != Kind::User && !entry.has_shared_name() { SYSTEM_LOGGER } else { 0 };
    Begin {
        name: entry.name.clone(),
        guid: entry.guid(),
        file: entry.files.last().cloned(),
        buffers,
        mode: place | kernel,
        flags,
    }
}

/// Who has the shared kernel session, in words.
pub(super) fn describe_taken(live: &Live) -> String {
    let file = if live.file.is_empty() { "no file".to_owned() } else { format!("the file {}", live.file) };
    let masks = [live.flags];
    let names: Vec<&str> = crate::keywords_of(&masks).iter().map(|k| k.xperf.unwrap_or(k.wpr)).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    format!("`{}` belongs to another program: {file}, flags {:#010x}{names}", live.name, live.flags)
}

pub(super) fn bytes(count: u64) -> String {
    units::bytes(i64::try_from(count).unwrap_or(i64::MAX))
}
