//! A run: what is new is read, N traces at a time, and committed in batches.

use crate::contents::Content;
use crate::error::{Result, io};
use crate::ids::extract_id;
use crate::inbox::{Found, is_archive, text};
use crate::known::{Known, Line};
use crate::memory::Memory;
use crate::plan::{Item, Plan, Unit, plan};
use crate::runner::{END, End, EndOfRecording, Ended, How, Limits, supervise};
use crate::store::{Store, read_json};
use crate::tables::{InputRow, RunRow};
use etwhy_etl::read::joint_trace_id;
use etwhy_scratch::Scratch;
use etwhy_table::{Strings, Table, TableBuilder, TableError};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Files that one process looks at.
const LOOKS_AT: usize = 64;
/// A batch is committed when it is this old, even if it is small, so that a run that is killed loses little.
const OLDEST_BATCH: Duration = Duration::from_secs(120);
/// Why a trace of an archive is not read that has the name of another one.
const TWIN: &str = "the store has a trace of its size and samples with another content: unpack it";
/// Characters of a reason that are kept.
const MOST_REASON: usize = 1_000;

/// How a run reads.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Version of the program.
    pub program: String,
    /// See [`crate::ids::settings_id`].
    pub settings_id: String,
    /// Processes at a time.
    pub jobs: usize,
    /// What each may use.
    pub limits: Limits,
    /// Traces of a batch.
    pub batch: usize,
}

/// Starts the processes: this program's own commands.
pub trait Host: Sync {
    /// Reads files as the recording of this name, or an archive (no name) as what is in it, and leaves rows in a folder.
    fn extract(&self, files: &[&Path], trace_id: Option<&str>, folder: &Path) -> Command;
    /// Prints what files say of their recordings.
    fn identify(&self, files: &[&Path]) -> Command;
}

/// What happens, for whoever watches.
#[derive(Clone, Debug)]
pub enum Event {
    /// Files are looked at.
    Planned {
        /// Traces that will be read.
        traces: usize,
        /// Bytes of these.
        bytes: u64,
    },
    /// One was read.
    Read {
        /// Bytes of its files.
        bytes: u64,
        /// How it went: `outcome` of the ledger.
        outcome: &'static str,
        /// Its first file.
        path: String,
        /// Why it was not read, or not wholly.
        reason: Option<String>,
    },
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Files that were given.
    pub files: usize,
    /// Files that this machine could not read now; the next run tries them again.
    pub again: Vec<Found>,
    /// Files that were known.
    pub known: usize,
    /// Rows of the ledger, by outcome.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// CPU time of all processes.
    pub cpu_ns: u64,
    /// Bytes that were read.
    pub bytes: u64,
}

type Pairs<'p> = Vec<&'p (usize, usize)>;

/// Reads what is new among the files.
///
/// # Errors
/// If the store cannot be written. What is wrong with a trace is a row of the ledger.
pub fn run(
    store: &Store,
    files: Vec<Found>,
    memory: &mut Memory,
    settings: &Settings,
    host: &dyn Host,
    watch: &mut dyn FnMut(&Event),
) -> Result<Summary> {
    let mut summary = Summary { files: files.len(), ..Summary::default() };
    let items = look_at(files, memory, settings, host);
    let plan = plan(&items);
    summary.known = items.iter().filter(|item| item.noted && item.done).count();
    let bytes = plan.units.iter().map(|unit| unit.bytes).fold(0, u64::saturating_add);
    watch(&Event::Planned { traces: plan.units.len(), bytes });
    let mut batch = Batch::new(store, settings, std::mem::take(&mut memory.readings))?;
    let scratch = Scratch::beside(&store.path().join("parts")).map_err(io(store.path()))?;
    let (next, queue) = (AtomicUsize::new(0), &plan.units);
    let (send, receive) = mpsc::channel();
    let (items, next, scratch_path) = (&items, &next, scratch.path());
    let done: Result<()> = thread::scope(|scope| {
        for _ in 0..settings.jobs.min(queue.len()) {
            let send = send.clone();
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(unit) = queue.get(number) else { break };
                    let folder = scratch_path.join(format!("{number}"));
                    let read = read(unit, items, &folder, &settings.limits, host);
                    // Nobody waits any more if the store could not be written.
                    if send.send((number, folder, read)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let result = receive.iter().try_for_each(|(number, folder, read)| {
            let Some(unit) = queue.get(number) else { return Ok(()) };
            batch.add(unit, items, &folder, read, watch);
            batch.commit_if(settings.batch)
        });
        if result.is_err() {
            next.store(queue.len(), Ordering::Relaxed);
        }
        result
    });
    done?;
    // The beginning of a file of which nothing could be read is all that there is of it.
    let is_there =
        |(_, of): &&(usize, usize)| batch.filled.contains(of) || items.get(*of).is_some_and(|item| item.done);
    let (cut, left): (Pairs<'_>, Pairs<'_>) = plan.cut.iter().partition(is_there);
    for (n, _) in left {
        let unit = Unit { files: vec![*n], bytes: items.get(*n).map_or(0, |item| item.found.bytes) };
        let folder = scratch_path.join(format!("cut{n}"));
        let read = read(&unit, items, &folder, &settings.limits, host);
        batch.add(&unit, items, &folder, read, watch);
        batch.commit_if(settings.batch)?;
    }
    // Behind what they are copies of: were they committed first, a run that is killed would take the content for read.
    let name = |n: usize| items.get(n).map_or_else(String::new, |item| text(&item.found.path));
    let copies = plan.copies.iter().map(|(copy, of)| match of {
        Some(of) => (copy, format!("the same content as {}", name(*of))),
        None => (copy, "its content was read before, under another name".to_owned()),
    });
    let cut = cut.into_iter();
    let cut = cut.map(|(cut, of)| (cut, format!("the beginning of {}: a copy that was cut", name(*of))));
    for (copy, reason) in copies.chain(cut) {
        if let Some(item) = items.get(*copy) {
            batch.copy(item, reason);
        }
    }
    batch.commit()?;
    summary.outcomes = std::mem::take(&mut batch.outcomes);
    memory.readings = std::mem::take(&mut batch.readings);
    (summary.cpu_ns, summary.bytes) = (batch.cpu_ns, batch.bytes);
    for (n, item) in items.iter().enumerate() {
        if batch.again.contains(&n) {
            summary.again.push(item.found.clone());
            continue;
        }
        let sha256 = batch.hashes.get(&n).or(item.sha256.as_ref()).map(String::as_str);
        memory.learn(&item.found, &item.content_id, sha256, item.identity.clone(), &settings.settings_id);
    }
    Ok(summary)
}

/// What a run into an empty store would read.
pub fn planned(files: Vec<Found>, settings: &Settings, host: &dyn Host) -> (Vec<Item>, Plan) {
    let items = look_at(files, &mut Memory::default(), settings, host);
    let plan = plan(&items);
    (items, plan)
}

/// What is known of each file; new ones are looked at.
fn look_at(files: Vec<Found>, memory: &mut Memory, settings: &Settings, host: &dyn Host) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::with_capacity(files.len());
    let mut new = Vec::new();
    for found in files {
        let known = memory.file(&found).cloned();
        let noted = known.is_some();
        let (content, identity) = match known {
            Some((id, identity)) => (Content { id, sha256: None }, identity),
            None => (memory.contents.of(&found), None),
        };
        let Content { id: content_id, sha256 } = content;
        let done = memory.is_done(&content_id, &settings.settings_id);
        let archive = !done && identity.is_none() && is_archive(&found.path).unwrap_or(false);
        if !done && identity.is_none() && !archive {
            new.push(items.len());
        }
        items.push(Item { found, content_id, sha256, archive, identity, done, noted, cut_of: None });
    }
    let paths: Vec<&Path> =
        new.iter().filter_map(|&n| items.get(n)).map(|item| item.found.path.as_path()).collect();
    let identities = identify(&paths, settings, host);
    for (n, identity) in new.into_iter().zip(identities) {
        if let Some(item) = items.get_mut(n) {
            item.identity = identity;
        }
    }
    crate::cut::find(&mut items);
    items
}

/// What files say of themselves, asked of processes, some files each. If one ends otherwise than well, its files are asked one by one.
fn identify(paths: &[&Path], settings: &Settings, host: &dyn Host) -> Vec<Option<Known>> {
    let answers: Mutex<Vec<Option<Known>>> = Mutex::new(vec![None; paths.len()]);
    let next = AtomicUsize::new(0);
    let ask = |from: usize, paths: &[&Path]| -> bool {
        let ended = supervise(&mut host.identify(paths), &settings.limits, true);
        let Ok(Ended { how: How::Exited(_), printed, .. }) = ended else { return false };
        let text = String::from_utf8_lossy(&printed).into_owned();
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            if let Some(answer) = answers.get_mut(from.saturating_add(line.file)) {
                *answer = line.identity;
            }
        }
        true
    };
    thread::scope(|scope| {
        for _ in 0..settings.jobs.min(paths.len().div_ceil(LOOKS_AT)) {
            scope.spawn(|| {
                loop {
                    let chunk = next.fetch_add(1, Ordering::Relaxed);
                    let from = chunk.saturating_mul(LOOKS_AT);
                    let Some(some) = paths.chunks(LOOKS_AT).nth(chunk) else { break };
                    if !ask(from, some) {
                        for (n, path) in some.iter().enumerate() {
                            ask(from.saturating_add(n), &[path]);
                        }
                    }
                }
            });
        }
    });
    answers.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What came of a unit.
struct Read {
    ended: std::io::Result<Ended>,
    end: Option<End>,
}

fn read(unit: &Unit, items: &[Item], folder: &Path, limits: &Limits, host: &dyn Host) -> Read {
    let files: Vec<&Item> = unit.files.iter().filter_map(|&n| items.get(n)).collect();
    let paths: Vec<&Path> = files.iter().map(|item| item.found.path.as_path()).collect();
    let trace_id = (!files.iter().any(|item| item.archive)).then(|| name_of(&files));
    let made = std::fs::create_dir_all(folder);
    let ended =
        made.and_then(|()| supervise(&mut host.extract(&paths, trace_id.as_deref(), folder), limits, false));
    let whole = matches!(ended, Ok(Ended { how: How::Exited(_), .. }));
    let end = if whole { read_json(&folder.join(END)).ok() } else { None };
    Read { ended, end }
}

/// Name of the trace that these files are.
fn name_of(files: &[&Item]) -> String {
    let contents: Vec<String> = files.iter().map(|item| item.content_id.clone()).collect();
    joint_trace_id(&contents)
}

/// Rows that are gathered until they are committed.
struct Batch<'a> {
    store: &'a Store,
    settings: &'a Settings,
    number: i64,
    since: Instant,
    strings: Strings,
    runs: TableBuilder<RunRow>,
    inputs: TableBuilder<InputRow>,
    parts: Vec<PathBuf>,
    /// Folders of processes that can go when the batch is committed.
    folders: Vec<PathBuf>,
    /// Readings that the store has or gets, so that a trace that also lies in an archive is there once.
    readings: HashMap<String, Option<String>>,
    /// Hashes of files, by their numbers.
    hashes: HashMap<usize, String>,
    /// Files of which the store gets rows, by their numbers.
    filled: HashSet<usize>,
    /// Files that the next run looks at again, by their numbers: that they were not read was not their fault.
    again: HashSet<usize>,
    outcomes: BTreeMap<&'static str, usize>,
    cpu_ns: u64,
    bytes: u64,
}

/// A row of the ledger before it has its ids.
#[derive(Default)]
struct Said {
    outcome: &'static str,
    exit: Option<i32>,
    reason: Option<String>,
    path: String,
    files: usize,
    bytes: u64,
    cpu_ns: Option<u64>,
    wall_ns: Option<u64>,
    memory: Option<u64>,
    sha256: Option<String>,
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl<'a> Batch<'a> {
    fn new(
        store: &'a Store,
        settings: &'a Settings,
        readings: HashMap<String, Option<String>>,
    ) -> Result<Batch<'a>> {
        let memory = etwhy_table::Memory::default();
        Ok(Batch {
            store,
            settings,
            number: store.next_batch()?,
            since: Instant::now(),
            strings: Strings::new(),
            runs: TableBuilder::new(&memory),
            inputs: TableBuilder::new(&memory),
            parts: Vec::new(),
            folders: Vec::new(),
            readings,
            hashes: HashMap::new(),
            filled: HashSet::new(),
            again: HashSet::new(),
            outcomes: BTreeMap::new(),
            cpu_ns: 0,
            bytes: 0,
        })
    }

    fn copy(&mut self, item: &Item, reason: String) {
        let said = Said {
            outcome: "copy",
            reason: Some(reason),
            path: text(&item.found.path),
            files: 1,
            bytes: item.found.bytes,
            ..Said::default()
        };
        let extract = extract_id(&item.content_id, &self.settings.settings_id);
        self.run(&item.content_id, None, &extract, said);
        self.input(item, item.sha256.as_deref(), &item.content_id, None, &extract);
    }

    fn run(&mut self, trace: &str, machine: Option<&str>, extract: &str, said: Said) {
        let count = self.outcomes.entry(said.outcome).or_default();
        *count = count.saturating_add(1);
        let strings = &mut self.strings;
        let reason = said.reason.map(|reason| {
            let shown = etwhy_doc::sanitize(reason.trim());
            strings.intern(&shown.chars().take(MOST_REASON).collect::<String>())
        });
        self.runs.push(RunRow {
            trace_id: strings.intern(trace),
            machine_id: machine.map(|machine| strings.intern(machine)),
            extract_id: strings.intern(extract),
            batch: self.number,
            outcome: strings.intern(said.outcome),
            exit_code: said.exit,
            reason,
            path: strings.intern(&said.path),
            files: i32::try_from(said.files).unwrap_or(i32::MAX),
            size_bytes: number(said.bytes),
            cpu_ns: said.cpu_ns.map(number),
            wall_ns: said.wall_ns.map(number),
            peak_memory_bytes: said.memory.filter(|bytes| *bytes > 0).map(number),
            program: strings.intern(&self.settings.program),
            settings_id: strings.intern(&self.settings.settings_id),
            sha256: said.sha256.map(|sha256| strings.intern(&sha256)),
        });
    }

    fn input(
        &mut self,
        item: &Item,
        sha256: Option<&str>,
        trace: &str,
        machine: Option<&str>,
        extract: &str,
    ) {
        let strings = &mut self.strings;
        let identity = item.identity.as_ref().and_then(|identity| serde_json::to_string(identity).ok());
        self.inputs.push(InputRow {
            trace_id: strings.intern(trace),
            machine_id: machine.map(|machine| strings.intern(machine)),
            extract_id: strings.intern(extract),
            path: strings.intern(&text(&item.found.path)),
            size_bytes: number(item.found.bytes),
            modified_unix_ns: item.found.modified_ns,
            content_id: strings.intern(&item.content_id),
            identity: identity.map(|text| strings.intern(&text)),
            settings_id: strings.intern(&self.settings.settings_id),
            sha256: sha256.map(|sha256| strings.intern(sha256)),
        });
    }

    /// Takes over what the process of a unit left.
    fn add(&mut self, unit: &Unit, items: &[Item], folder: &Path, read: Read, watch: &mut dyn FnMut(&Event)) {
        let files: Vec<&Item> = unit.files.iter().filter_map(|&n| items.get(n)).collect();
        let trace = name_of(&files);
        let path = files.first().map_or_else(String::new, |item| text(&item.found.path));
        self.bytes = self.bytes.saturating_add(unit.bytes);
        let again = is_not_its_fault(&read);
        let end = read.end.unwrap_or_default();
        let usage = read.ended.as_ref().map(|ended| ended.usage).unwrap_or_default();
        let common = |said: Said| Said {
            cpu_ns: end.cpu_ns.or_else(|| (usage.cpu_ns > 0).then_some(usage.cpu_ns)),
            wall_ns: read.ended.as_ref().ok().and_then(|ended| u64::try_from(ended.took.as_nanos()).ok()),
            memory: Some(usage.memory_bytes.max(end.memory_bytes.unwrap_or(0))),
            ..said
        };
        self.cpu_ns = self.cpu_ns.saturating_add(common(Said::default()).cpu_ns.unwrap_or(0));
        let mut rows: Vec<(EndOfRecording, Said)> = Vec::new();
        for (n, recording) in end.recordings.iter().enumerate() {
            let said = Said {
                outcome: outcome_of(recording.exit, recording.part.is_some()),
                exit: Some(recording.exit),
                reason: recording.message.clone(),
                path: recording.file.clone(),
                files: recording.files,
                bytes: recording.size_bytes,
                sha256: recording.sha256.clone(),
                ..Said::default()
            };
            // What the process took stands in its first row alone, so that sums are right.
            rows.push((recording.clone(), if n == 0 { common(said) } else { said }));
        }
        if rows.is_empty() {
            let (outcome, exit, reason) = failure(&read.ended, &end, self.settings);
            let said = Said {
                outcome,
                exit,
                reason: Some(reason),
                path,
                files: files.len(),
                bytes: unit.bytes,
                ..Said::default()
            };
            let extract_id = extract_id(&trace, &self.settings.settings_id);
            rows.push((
                EndOfRecording { trace_id: trace.clone(), extract_id, ..EndOfRecording::default() },
                common(said),
            ));
        }
        if rows.iter().any(|(recording, _)| recording.part.is_some()) {
            self.filled.extend(&unit.files);
        }
        for (n, (mut recording, mut said)) in rows.into_iter().enumerate() {
            if let Some(part) =
                recording.part.as_deref().and_then(|name| Some(folder.join(Path::new(name).file_name()?)))
            {
                match self.readings.get(&recording.extract_id) {
                    None => {
                        self.readings.insert(recording.extract_id.clone(), recording.sha256.clone());
                        match Store::check_part(&part) {
                            Ok(()) => self.parts.push(part),
                            Err(error) => (said.outcome, said.reason) = ("failed", Some(error.to_string())),
                        }
                    }
                    // A reading without a hash is of before these were kept.
                    Some(Some(before)) if recording.sha256.as_ref().is_some_and(|now| now != before) => {
                        (said.outcome, said.reason) = ("failed", Some(TWIN.to_owned()));
                        let sha256 = recording.sha256.clone().unwrap_or_default();
                        recording.trace_id = joint_trace_id(&[recording.trace_id, sha256]);
                        recording.extract_id = extract_id(&recording.trace_id, &self.settings.settings_id);
                    }
                    Some(_) => {
                        said.outcome = "copy";
                        said.reason = Some("the store has this reading already".to_owned());
                    }
                }
            }
            let machine = Some(recording.machine_id.as_str()).filter(|id| !id.is_empty());
            watch(&Event::Read {
                bytes: if n == 0 { unit.bytes } else { 0 },
                outcome: said.outcome,
                path: said.path.clone(),
                reason: said.reason.clone(),
            });
            if n == 0 && !again {
                for (at, (&n, item)) in unit.files.iter().zip(&files).enumerate() {
                    let sha256 = end.sha256.get(at).cloned().flatten().or_else(|| item.sha256.clone());
                    self.input(item, sha256.as_deref(), &recording.trace_id, machine, &recording.extract_id);
                    self.hashes.extend(sha256.map(|sha256| (n, sha256)));
                }
            }
            self.run(&recording.trace_id, machine, &recording.extract_id, said);
        }
        if again {
            self.again.extend(&unit.files);
        }
        self.folders.push(folder.to_path_buf());
    }

    fn commit_if(&mut self, traces: usize) -> Result<()> {
        let rows = self.runs.rows();
        let full = rows >= traces as u64 || (rows > 0 && self.since.elapsed() > OLDEST_BATCH);
        if full { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<()> {
        self.since = Instant::now();
        if self.runs.rows() == 0 {
            return Ok(());
        }
        let memory = etwhy_table::Memory::default();
        let texts =
            std::mem::replace(&mut self.strings, Strings::new()).freeze().map_err(TableError::texts)?;
        let runs = std::mem::replace(&mut self.runs, TableBuilder::new(&memory)).finish(&texts)?;
        let inputs = std::mem::replace(&mut self.inputs, TableBuilder::new(&memory)).finish(&texts)?;
        let ledgers: [Table; 2] = [runs, inputs];
        self.store.commit(self.number, &ledgers, &self.parts)?;
        self.number = self.number.saturating_add(1);
        self.parts.clear();
        for folder in self.folders.drain(..) {
            // It goes with the scratch folder otherwise.
            let _ = std::fs::remove_dir_all(folder);
        }
        Ok(())
    }
}

/// True if this machine could not read it: its process could not be started, or could not write what it found. The ledger says so, and the next
/// run tries it again.
fn is_not_its_fault(read: &Read) -> bool {
    match (&read.ended, &read.end) {
        (Err(_), _) => true,
        (Ok(_), Some(end)) => end.again || end.recordings.iter().any(|recording| recording.again),
        // Whoever comes to an end by itself says how, if that can be written. A fault of ours has another code.
        (Ok(ended), None) => matches!(ended.how, How::Exited(1 | 2)),
    }
}

fn outcome_of(exit: i32, has_rows: bool) -> &'static str {
    match (exit, has_rows) {
        (0, true) => "read",
        (_, true) => "in_part",
        (3, false) => "not_a_trace",
        (4, false) => "too_new",
        (_, false) => "failed",
    }
}

fn failure(
    ended: &std::io::Result<Ended>,
    end: &End,
    settings: &Settings,
) -> (&'static str, Option<i32>, String) {
    let last = |said: &str| {
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join("; ")
    };
    match ended {
        Err(error) => ("failed", None, format!("its process could not be started: {error}")),
        Ok(ended) => match ended.how {
            How::Exited(code) => {
                let mut reason = end.message.clone().unwrap_or_else(|| last(&ended.said));
                if reason.is_empty() {
                    reason = "its process left no rows".to_owned();
                }
                (outcome_of(code, false), Some(code), reason)
            }
            How::Crashed => ("crashed", None, format!("its process crashed: {}", last(&ended.said))),
            How::TooLong => {
                let seconds = settings.limits.time.map_or(0, |time| time.as_secs());
                ("timeout", None, format!("not done within {seconds} s (--timeout)"))
            }
            How::TooLarge => {
                let most = settings.limits.memory.map_or(0, number);
                let most = etwhy_base::units::bytes(most);
                ("memory", None, format!("needed more than {most} of memory (--memory)"))
            }
        },
    }
}
