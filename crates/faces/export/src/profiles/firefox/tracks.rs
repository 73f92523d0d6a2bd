//! Processes and threads of the profile, made when something stands on them.

use super::libs::Libs;
use super::timestamp;
use crate::profile::{People, Profile, Stacks};
use crate::sanitize;
use foldhash::HashMap;
use fxprof_processed_profile as fx;

/// Where something stands.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Track {
    /// The machine.
    Machine,
    /// What interrupts a processor.
    Interrupts(u32),
    /// A process as a whole.
    Process(u32),
    /// A thread.
    Thread(u32),
}

/// What the innermost code of a sample is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum CodeKind {
    /// A thread: by frame.
    Thread,
    /// A DPC.
    Dpc,
    /// An ISR.
    Isr,
}

/// Categories of the profile.
#[derive(Clone, Copy)]
pub(super) struct Categories {
    kernel: fx::CategoryHandle,
    user: fx::CategoryHandle,
    managed: fx::CategoryHandle,
    dpc: fx::CategoryHandle,
    isr: fx::CategoryHandle,
}

/// All tracks.
pub(super) struct Tracks<'p> {
    pub people: &'p People,
    stacks: Stacks<'p>,
    libs: Libs,
    pub categories: Categories,
    processes: HashMap<Option<u32>, fx::ProcessHandle>,
    interrupts: Option<fx::ProcessHandle>,
    threads: HashMap<Track, fx::ThreadHandle>,
    known: HashMap<(fx::ThreadHandle, u32, CodeKind), Option<fx::StackHandle>>,
}

fn id(id: i64) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX)
}

impl<'p> Tracks<'p> {
    /// No tracks yet.
    pub fn new(profile: &Profile<'p>, people: &'p People, made: &mut fx::Profile) -> Tracks<'p> {
        let stacks = Stacks::read(profile.db);
        let libs = Libs::collect(profile, &stacks, made);
        let categories = Categories {
            kernel: made.add_category("Kernel", fx::CategoryColor::Orange),
            user: made.add_category("User", fx::CategoryColor::Yellow),
            managed: made.add_category("Managed", fx::CategoryColor::Blue),
            dpc: made.add_category("DPC", fx::CategoryColor::Red),
            isr: made.add_category("ISR", fx::CategoryColor::Magenta),
        };
        let (processes, threads, known) = (HashMap::default(), HashMap::default(), HashMap::default());
        Tracks { people, stacks, libs, categories, processes, interrupts: None, threads, known }
    }

    /// The process of `upid`; without one, that of the machine.
    pub fn process(&mut self, upid: Option<u32>, made: &mut fx::Profile) -> fx::ProcessHandle {
        let people = self.people;
        let upid = upid.filter(|upid| people.process(Some(*upid)).is_some());
        *self.processes.entry(upid).or_insert_with(|| match people.process(upid) {
            Some(process) => {
                let start = timestamp(process.start_ns.unwrap_or(0));
                let handle = made.add_process(&process.name, id(process.pid), start);
                if let Some(end) = process.end_ns {
                    made.set_process_end_time(handle, timestamp(end));
                }
                handle
            }
            // An id that Windows gives nobody.
            None => made.add_process("Machine", u32::MAX, timestamp(0)),
        })
    }

    /// The thread that stands for a track.
    pub fn thread(&mut self, track: Track, made: &mut fx::Profile) -> fx::ThreadHandle {
        if let Some(handle) = self.threads.get(&track) {
            return *handle;
        }
        let people = self.people;
        let handle = match track {
            Track::Thread(utid) => {
                let thread = people.thread(Some(utid));
                let process = self.process(thread.and_then(|thread| thread.upid), made);
                let start = timestamp(thread.and_then(|thread| thread.start_ns).unwrap_or(0));
                let handle = made.add_thread(process, id(thread.map_or(-1, |t| t.tid)), start, false);
                made.set_thread_name(handle, thread.map_or("[unknown thread]", |t| &t.name));
                if let Some(end) = thread.and_then(|thread| thread.end_ns) {
                    made.set_thread_end_time(handle, timestamp(end));
                }
                handle
            }
            Track::Interrupts(cpu) => {
                let process = *self
                    .interrupts
                    .get_or_insert_with(|| made.add_process("DPC and ISR", u32::MAX - 1, timestamp(0)));
                // Ids of Windows' threads are multiples of four.
                let handle = made.add_thread(process, u32::MAX - 4 * cpu.min(4096) - 1, timestamp(0), false);
                made.set_thread_name(handle, &format!("CPU {cpu}"));
                handle
            }
            Track::Process(_) | Track::Machine => {
                let upid = if let Track::Process(upid) = track { Some(upid) } else { None };
                let process = self.process(upid, made);
                let tid = people.process(upid).map_or(u32::MAX, |process| id(process.pid));
                // The main thread has the name of its process, and is shown first.
                made.add_thread(process, tid, timestamp(0), true)
            }
        };
        self.threads.insert(track, handle);
        handle
    }

    /// A stack on a thread of the profile.
    pub fn stack(
        &mut self,
        thread: fx::ThreadHandle,
        stack: Option<u32>,
        place: CodeKind,
        made: &mut fx::Profile,
    ) -> Option<fx::StackHandle> {
        let stack = stack?;
        if let Some(known) = self.known.get(&(thread, stack, place)) {
            return *known;
        }
        let frames = self.stacks.frames_of(Some(stack));
        let innermost = frames.len().saturating_sub(1);
        let frames: Vec<fx::FrameInfo> = frames
            .iter()
            .rev()
            .enumerate()
            .map(|(depth, &frame)| self.frame(frame, depth == innermost, place, made))
            .collect();
        let handle = made.intern_stack_frames(thread, frames.into_iter());
        self.known.insert((thread, stack, place), handle);
        handle
    }

    fn frame(&self, frame: u32, innermost: bool, place: CodeKind, made: &mut fx::Profile) -> fx::FrameInfo {
        let frame = self.stacks.frame(frame);
        let category = match (place, frame.kind) {
            (CodeKind::Dpc, _) => self.categories.dpc,
            (CodeKind::Isr, _) => self.categories.isr,
            (_, "kernel") => self.categories.kernel,
            (_, "user") => self.categories.user,
            (_, "managed") => self.categories.managed,
            _ => fx::CategoryHandle::OTHER,
        };
        let lib = frame.image.and_then(|image| self.libs.get(image));
        let place = match lib.zip(frame.rva.and_then(|rva| u32::try_from(rva).ok())) {
            Some((lib, rva)) if innermost => fx::Frame::RelativeAddressFromInstructionPointer(lib, rva),
            Some((lib, rva)) => fx::Frame::RelativeAddressFromReturnAddress(lib, rva),
            None => fx::Frame::Label(made.intern_string(&sanitize(frame.label))),
        };
        fx::FrameInfo { frame: place, category_pair: category.into(), flags: fx::FrameFlags::empty() }
    }
}

impl Categories {
    /// Of a kind of marker.
    pub fn of_table(&self, table: &str) -> fx::CategoryHandle {
        match table {
            "dpc" => self.dpc,
            "isr" => self.isr,
            "clr_gc" | "clr_exception" | "clr_contention" => self.managed,
            "disk_io" | "file_io" | "hard_fault" => self.kernel,
            _ => fx::CategoryHandle::OTHER,
        }
    }
}
