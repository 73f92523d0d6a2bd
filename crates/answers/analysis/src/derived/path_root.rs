//! The root of each critical path: the process that most of it leads to, and what it did there.
//!
//! # How it is computed
//!
//! From `critical_path`. Pieces are added up by process; time in the queue for a processor is charged to the process that had the
//! processor meanwhile (to nobody, if that is not known or nobody had it), and time in the queue of a disk to the processes whose transfers were served meanwhile; what DPCs and ISRs took of
//! a run is charged to the driver whose routine took most of it; of a framework's, to the driver that had more than half of the framework's samples in the time
//! ranges and on the processors in question (`interrupt_sample`). The process with the largest sum is the root, and its largest group of
//! pieces (running, waiting for one class of things, keeping the processor or the disk) the cause. Running is explained by the samples of
//! the thread in that time, waiting by the stack with which
//! the thread came back: `function` is the innermost function that is neither Windows' nor a library of it, `callee` the one that it had
//! called. What a wait for a file or page was for, file operations, hard faults and disk transfers of the same thread and time tell.
//! `did` says *mostly* where the cause has less than 90 % of the root's time, and *among other things* below half.
//!
//! Where the root is the System process, the driver whose routine ran there is named instead (`system_work` says how it is told). Where Windows
//! had asked a filter about calls of these processes (a minifilter, a callback of the registry or of process starts, a hook of system calls), its
//! part is taken off theirs, and the filter is the root if it has most: by the samples of runs, at least ten, or by the stack of a sleep: a wait
//! for anything else is nobody's. Where only several together have half of what a process did, `did` names them. What System writes for the cache
//! is charged to the program that wrote more than half of what programs wrote to that file, and to nobody (`unknown_ns`) where none is known.
//!
//! # What fools it
//!
//! Where stacks do not tell for which driver a framework's DPCs and ISRs ran, whether a driver had queued the work of a thread of System, or whether a
//! driver in which a thread was did the program's own work or that of a filter, the root is a driver that is not known. So it is where they have no names,
//! and of a sleep without a stack: a filter may sleep in the program's calls.
//!
//! A path leads to whoever ended each wait (see `critical_path`). A root with a small `share` is one of many: then nobody is the cause. Pieces
//! before the trace or over missing buffers are unknown, and belong to nobody (`unknown_ns`).

mod disk;
mod evidence;
mod root;
mod share;

use super::interrupt_driver::{Behind, Insides, InsidesRows, Range};
use crate::derive::DerivedSpec;
use crate::fold::{Facts, FactsRows, Stacks, StacksRows, Whose, freeze, id};
use crate::operators::add;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::{
    critical_path::CriticalPathRow, file_io::FileUsageRow, process::ProcessRow, thread::ThreadRow,
};
use evidence::{Evidence, EvidenceRows};
use foldhash::{HashMap, HashSet};
pub use share::{PATH_SHARE, PathShareRow};
use std::collections::BTreeMap;

define_table! {
    /// Roots of critical paths: who the time range was really spent on.
    pub table PATH_ROOT: PathRootRow = "path_root" {
        version: 4,
        /// Path (table `critical_path`).
        path_id: i32 [None, Id],
        /// Why the path was looked at, as in `critical_path`.
        origin: Sym [None, Kind],
        /// Process whose time range it is.
        victim_upid: Option<i32> [None, Other],
        /// Thread whose time range it is.
        victim_utid: Option<i32> [None, Thread],
        /// Process of the thread that ended the last wait: whom the victim waited for, whoever that one waited for.
        via_upid: Option<i32> [None, Other],
        /// Start of the time range.
        start_ns: i64 [Ns, Time],
        /// Its length.
        dur_ns: i64 [Ns, Duration],
        /// Part of it that nothing explains.
        unknown_ns: i64 [Ns, Duration],
        /// Process that most of the rest leads to.
        root_upid: Option<i32> [None, Process],
        /// Its name; with its services for a host of services. For work that a driver queued to the System process, or did in DPCs and ISRs: the
        /// driver; where that is not known, what is: `a driver behind ndis.sys`, `app.exe or flt.sys`.
        root: Sym [None, Name],
        /// Driver whose work the System process did there, or whose DPCs and ISRs ran there; for these the process is System too. `[unknown]` where no
        /// stacks tell whether it was a driver, or which.
        root_driver: Option<Sym> [None, Name],
        /// It is the process whose time range it is.
        own: bool [None, Flag],
        /// Time that leads to it.
        root_ns: i64 [Ns, Duration],
        /// Part of the time range that leads to it, 0 to 1.
        share: f64 [None, Other],
        /// What it mostly did there: work, processor (it had the processor that the path waited for), interrupt (its DPCs and ISRs had it),
        /// disk (the disk served its transfers meanwhile), or the class of its waits as in `wait_chain`.
        cause: Sym [None, Kind],
        /// Time of that.
        cause_ns: i64 [Ns, Duration],
        /// Thread that did it.
        root_utid: Option<i32> [None, Thread],
        /// Function of its own code in which it did it.
        function: Option<Sym> [None, Name],
        /// Function that this one had called.
        callee: Option<Sym> [None, Name],
        /// File that it waited for.
        path: Option<Sym> [None, Path],
        /// All of it in words: `slept in svc.exe!Start`.
        did: Sym [None, Message],
        /// Processes from the victim to the root, in the order in which they waited for each other; behind the System process the driver.
        chain: Sym [None, Name],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&PATH_ROOT, &PATH_SHARE],
    reads: reads::<(
        CriticalPathRow,
        ThreadRow,
        ProcessRow,
        InsidesRows,
        StacksRows,
        FactsRows,
        EvidenceRows,
        FileUsageRow,
    )>,
    on_demand: false,
    make,
};

/// What a piece is charged to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause<'d> {
    Work,
    Processor,
    Disk,
    /// DPCs and ISRs, most of them of this module.
    Interrupt(&'d str),
    Wait(&'d str),
}

impl Cause<'_> {
    fn name(&self) -> &str {
        match self {
            Cause::Work => "work",
            Cause::Processor => "processor",
            Cause::Disk => "disk",
            Cause::Interrupt(_) => "interrupt",
            Cause::Wait(class) => class,
        }
    }
}

/// A piece of a path.
#[derive(Clone, Copy)]
struct Piece<'d> {
    from: i64,
    to: i64,
    /// Wake-ups away from the victim.
    depth: usize,
    /// Process and thread that it is charged to.
    upid: i64,
    utid: i64,
    /// Thread of the path itself.
    on_path: i64,
    cause: Cause<'d>,
    /// A wait for somebody's answer that a timer ended.
    timed_out: bool,
    stack: i64,
}

impl Piece<'_> {
    fn length(&self) -> i64 {
        self.to.saturating_sub(self.from)
    }
}

/// A path, latest piece first.
struct Path<'d> {
    id: i64,
    origin: &'d str,
    utid: i64,
    /// Process that ended the last wait; -1 if it is not known.
    via: Option<i64>,
    from: i64,
    dur_ns: i64,
    unknown_ns: i64,
    pieces: Vec<Piece<'d>>,
    /// Where DPCs and ISRs took time, and the module that took most.
    interrupted: Vec<(&'d str, Range)>,
}

/// Whom a piece is charged to: a process, with a driver for whom a thread of System worked, or a module with its interrupts.
type Whom<'d> = (i64, i64, Option<Cause<'d>>);

/// A driver that a path leads to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Driver {
    /// Its name; [`UNKNOWN`] where no stacks tell which it is.
    name: String,
    /// What is known of it, for texts.
    label: String,
}

/// Stands for a driver that cannot be named.
const UNKNOWN: &str = "[unknown]";

impl Driver {
    fn named(name: String) -> Driver {
        Driver { label: name.clone(), name }
    }

    fn unknown(label: String) -> Driver {
        Driver { name: UNKNOWN.to_owned(), label }
    }
}

/// What the System process did in a path, by thread: the drivers for whom it worked; none where it was Windows' own work.
type Workers = HashMap<(i64, i64), Option<u32>>;

/// In place of a thread: threads of System, where nothing tells whether a driver had queued their work.
const UNTOLD: i64 = i64::MIN;

/// Whom pieces of a path are charged to. System's threads work for different drivers, or for Windows; those of which it is not known are one party.
/// What System transfers is its own.
fn charging<'p, 'd>(
    path: &'p Path<'d>,
    systems: &'p HashSet<i64>,
    workers: &'p Workers,
) -> impl Fn(&Piece<'d>) -> Whom<'d> + use<'p, 'd> {
    move |piece| {
        let worker = match piece.cause {
            _ if !systems.contains(&piece.upid) => -1,
            Cause::Disk => -1,
            _ => match workers.get(&(path.id, piece.utid)) {
                Some(Some(module)) => -2 - i64::from(*module),
                Some(None) => piece.utid,
                None => UNTOLD,
            },
        };
        (piece.upid, worker, Some(piece.cause).filter(|cause| matches!(cause, Cause::Interrupt(_))))
    }
}

/// The largest sum, and its key.
fn largest<K: Ord + Copy>(sums: impl Iterator<Item = (K, i64)>) -> Option<(K, i64)> {
    let mut all: BTreeMap<K, i64> = Default::default();
    sums.for_each(|(key, ns)| add(all.entry(key).or_default(), ns));
    all.into_iter().max_by_key(|(key, ns)| (*ns, std::cmp::Reverse(*key)))
}

impl Path<'_> {
    /// Processes from the victim to the longest piece for which `wanted` holds.
    fn chain(&self, wanted: impl Fn(&Piece<'_>) -> bool, process_of: impl Fn(i64) -> i64) -> Vec<i64> {
        let mut above: Vec<i64> = vec![self.utid];
        let mut best: Option<(i64, Vec<i64>)> = None;
        for piece in &self.pieces {
            above.truncate(piece.depth);
            above.resize(piece.depth, -1);
            above.push(piece.on_path);
            let length = piece.to.saturating_sub(piece.from);
            if wanted(piece) && best.as_ref().is_none_or(|(longest, _)| length > *longest) {
                let mut chain: Vec<i64> =
                    above.iter().filter(|utid| **utid >= 0).map(|utid| process_of(*utid)).collect();
                // A driver interrupts whoever runs, and System has no part in it.
                if piece.utid >= 0 {
                    chain.push(piece.upid);
                }
                chain.dedup();
                best = Some((length, chain));
            }
        }
        best.map(|(_, chain)| chain).unwrap_or_default()
    }
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<PathRootRow>::new(memory);
    let mut shares = TableBuilder::<PathShareRow>::new(memory);
    let mut strings = Strings::new();
    let links = db.read_or_empty::<CriticalPathRow>();
    if links.is_empty() {
        let strings = freeze(strings, db)?;
        return Ok(vec![rows.finish(&strings)?, shares.finish(&strings)?]);
    }
    let threads = db.read_or_empty::<ThreadRow>();
    let process_of = |utid: i64| threads.get(utid).and_then(|thread| thread.upid()).unwrap_or(-1);
    let systems = system_processes(db);
    let disks = disk::Disks::read(db, &systems);
    // Drivers have no process of their own.
    let system = systems.iter().copied().min().unwrap_or(NO_PROCESS);
    let mut paths: Vec<Path<'_>> = Vec::new();
    for row in &links {
        if paths.last().is_none_or(|path| path.id != row.path_id()) {
            paths.push(Path {
                id: row.path_id(),
                origin: row.origin(),
                utid: row.of_utid(),
                via: None,
                from: row.start_ns(),
                dur_ns: 0,
                unknown_ns: 0,
                pieces: Vec::new(),
                interrupted: Vec::new(),
            });
        }
        let Some(path) = paths.last_mut() else { continue };
        path.from = path.from.min(row.start_ns());
        add(&mut path.dur_ns, row.dur_ns());
        if row.depth() == 1 && path.via.is_none() {
            path.via = Some(process_of(row.utid()));
        }
        let cause = match row.kind() {
            "run" => Cause::Work,
            "ready" => Cause::Processor,
            "wait" => Cause::Wait(row.wait_class().unwrap_or("other")),
            _ => {
                add(&mut path.unknown_ns, row.dur_ns());
                continue;
            }
        };
        let (from, to) = (row.start_ns(), row.start_ns().saturating_add(row.dur_ns()));
        if let (Some(module), Some(cpu)) = (row.interrupted_by(), row.cpu()) {
            path.interrupted.push((module, (cpu, from, to)));
        }
        let nobody = cause == Cause::Processor && row.displaced_by_utid().is_none();
        let charged = row.displaced_by_utid().unwrap_or_else(|| row.utid());
        let mut piece = |from: i64, to: i64, (upid, utid): (i64, i64), cause| {
            if nobody && cause == Cause::Processor || upid == disk::NOBODY_KNOWN {
                add(&mut path.unknown_ns, to.saturating_sub(from));
                return;
            }
            path.pieces.push(Piece {
                from,
                to,
                depth: usize::try_from(row.depth()).unwrap_or(0),
                upid,
                utid,
                on_path: row.utid(),
                cause,
                timed_out: cause == Cause::Wait("call") && row.readied_in_dpc() == Some(true),
                stack: row.stack_id().unwrap_or(-1),
            });
        };
        let whose = (process_of(charged), charged);
        match (cause, row.interrupted_by()) {
            // When in the run they came is not recorded, and does not matter for sums.
            (_, Some(module)) => {
                let own_end = to.saturating_sub(row.interrupted_ns());
                piece(own_end, to, (system, -1), Cause::Interrupt(module));
                piece(from, own_end, whose, cause);
            }
            // While its transfer stands in the queue of a disk, those have it that are served.
            (Cause::Wait("io" | "page_fault" | "other"), None) => {
                for (from, to, other) in disks.parts(row.utid(), whose.0, from, to).into_iter().rev() {
                    let cause = if other.is_some() { Cause::Disk } else { cause };
                    piece(from, to, other.unwrap_or(whose), cause);
                }
            }
            _ => piece(from, to, whose, cause),
        }
    }
    let names = names(db);
    let name = |upid: i64| names.get(&upid).map_or("[unknown]", String::as_str);
    let (facts, stacks) = (Facts::read(db, false), Stacks::read(db));
    let insides = Insides::read(db);
    let workers = workers(db, &paths, &systems, (&facts, &stacks));
    let mut evidence = Evidence::new(&facts, &stacks);
    let is_system = |upid: i64| systems.contains(&upid);
    let of_path = |path| share::parties(path, &charging(path, &systems, &workers), &is_system, &mut evidence);
    let parties: Vec<_> = paths.iter().map(of_path).collect();
    evidence.look(db);
    let module_name = |module: u32| facts.module(module).map(|module| module.name.clone());
    let of_interrupts = |path: &Path<'_>, module: &str| {
        let of_module = path.interrupted.iter().filter(|(by, _)| *by == module);
        let ranges: Vec<Range> = of_module.map(|(_, range)| *range).collect();
        match insides.behind(module, &ranges) {
            Behind::Driver(driver) => Driver::named(driver.to_owned()),
            Behind::Itself => Driver::named(module.to_owned()),
            Behind::Hidden => Driver::unknown(format!("a driver behind {module}")),
        }
    };
    let driver_of = |path: &Path<'_>, party: &share::Party<'_>| match party.whom {
        (_, _, Some(Cause::Interrupt(module))) => Some(of_interrupts(path, module)),
        (upid, UNTOLD, _) => Some(Driver::unknown(format!("{} or a driver", name(upid)))),
        (_, worker, _) if worker <= -2 => {
            u32::try_from(-2 - worker).ok().and_then(module_name).map(Driver::named)
        }
        (upid, ..) if party.sleeps_unseen() => {
            Some(Driver::unknown(format!("{} or a driver in its threads", name(upid))))
        }
        (upid, ..) => party.unasked(&evidence).and_then(module_name).map(|driver| {
            Driver::unknown(format!("{} or {driver} (no stack tells whose work it was)", name(upid)))
        }),
    };
    for (path, parties) in paths.iter().zip(&parties) {
        let parties: Vec<_> = parties.iter().map(|party| (party, party.calls.drivers(&evidence))).collect();
        let label = |upid: i64| name(upid).to_owned();
        let driver_of = |party: &share::Party<'_>| driver_of(path, party);
        share::write(&mut shares, &mut strings, path, &parties, &driver_of, &module_name, &label);
        let Some(mut root) = root::choose(path, &parties, &evidence) else { continue };
        let (upid, cause) = (root.party.whom.0, root.cause);
        let seen = &mut root.seen;
        // What the System process transfers is its own, whatever its threads did meanwhile.
        let for_others = systems.contains(&upid) && cause != Cause::Disk;
        if let Some(Whose::Windows { routine }) = seen.whose.filter(|_| for_others) {
            // Drivers further in take part in the work of Windows' own routine; it is not theirs.
            let label = facts.functions.get(routine as usize).map(|(label, _)| label.clone());
            (seen.function, seen.callee) = (label, None);
        }
        let mut did = root.did(&name, &module_name);
        let interrupting = match cause {
            Cause::Interrupt(module) => Some(module),
            _ => None,
        };
        let driver = match (&root.filter, root.seen.whose.filter(|_| for_others)) {
            (Some(filter), _) => module_name(filter.module).map(Driver::named),
            _ if interrupting.is_some() => driver_of(root.party),
            (None, Some(Whose::Driver { module, .. })) => module_name(module).map(Driver::named),
            (None, Some(Whose::Windows { .. })) => None,
            _ if for_others => {
                did.push_str(" (no stack tells whether a driver had queued the work)");
                driver_of(root.party)
            }
            (None, _) => driver_of(root.party),
        };
        let chain = match &root.filter {
            Some(filter) => path.chain(|piece| filter.has(piece, cause, &evidence), process_of),
            None => path.chain(|piece| piece.upid == upid && piece.cause == cause, process_of),
        };
        let is_unknown = driver.as_ref().is_some_and(|driver| driver.name == UNKNOWN);
        let label = driver.as_ref().map_or_else(|| name(upid), |driver| driver.label.as_str());
        let host = interrupting.filter(|module| label != *module);
        let behind = driver.as_ref().map(|driver| driver.label.as_str());
        let chain = chain.iter().map(|upid| name(*upid)).chain(host).chain(behind);
        let chain = chain.collect::<Vec<&str>>().join(" > ");
        let mut text = |text: &Option<String>| text.as_ref().map(|text| strings.intern(text));
        let (function, callee, file) =
            (text(&root.seen.function), text(&root.seen.callee), text(&root.seen.path));
        rows.push(PathRootRow {
            path_id: path.id as i32,
            origin: strings.intern(path.origin),
            victim_upid: id(process_of(path.utid)),
            victim_utid: id(path.utid),
            via_upid: path.via.and_then(id),
            start_ns: path.from,
            dur_ns: path.dur_ns,
            unknown_ns: path.unknown_ns,
            root_upid: id(upid),
            root: strings.intern(label),
            root_driver: driver.as_ref().map(|driver| strings.intern(&driver.name)),
            own: interrupting.is_none()
                && root.filter.is_none()
                && !is_unknown
                && upid == process_of(path.utid),
            root_ns: root.ns,
            share: root.ns as f64 / path.dur_ns.max(1) as f64,
            cause: strings.intern(cause.name()),
            cause_ns: root.utid_ns,
            root_utid: id(root.utid),
            function,
            callee,
            path: file,
            did: strings.intern(&did),
            chain: strings.intern(&chain),
        });
    }
    let strings = freeze(strings, db)?;
    Ok(vec![rows.finish(&strings)?, shares.finish(&strings)?])
}

/// For whom the threads of System in these paths worked, as far as it is known.
fn workers(
    db: &Database,
    paths: &[Path<'_>],
    systems: &HashSet<i64>,
    (facts, stacks): (&Facts, &Stacks),
) -> Workers {
    let mut evidence = Evidence::new(facts, stacks);
    let mut asked: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for path in paths {
        let mut threads: BTreeMap<i64, Vec<&Piece<'_>>> = BTreeMap::new();
        let of_threads = |piece: &&Piece<'_>| {
            let apart = matches!(piece.cause, Cause::Disk | Cause::Interrupt(_));
            systems.contains(&piece.upid) && piece.utid >= 0 && !apart
        };
        for piece in path.pieces.iter().filter(of_threads) {
            threads.entry(piece.utid).or_default().push(piece);
        }
        for (utid, mut pieces) in threads {
            let Some((cause, _)) = largest(pieces.iter().map(|p| (p.cause, p.length()))) else { continue };
            pieces.retain(|piece| piece.cause == cause);
            asked.insert((path.id, utid), evidence.of(cause, utid, &pieces));
        }
    }
    if asked.is_empty() {
        return Workers::default();
    }
    evidence.look(db);
    let driver = |request| match evidence.seen_at(request).whose {
        Some(Whose::Driver { module, .. }) => Some(Some(module)),
        Some(Whose::Windows { .. }) => Some(None),
        _ => None,
    };
    asked.into_iter().filter_map(|(thread, request)| Some((thread, driver(request)?))).collect()
}

/// Process id of the System process.
const SYSTEM: i64 = 4;

/// In place of the System process, if the trace does not name it.
const NO_PROCESS: i64 = -2;

fn system_processes(db: &Database) -> HashSet<i64> {
    let processes = db.read_or_empty::<ProcessRow>();
    processes.iter().filter(|row| row.pid() == SYSTEM).map(|row| row.upid()).collect()
}

/// Longest list of services beside a name, in characters.
const MAX_SERVICES: usize = 40;

/// Names of processes; with their services where these are few.
fn names(db: &Database) -> HashMap<i64, String> {
    let mut names = HashMap::default();
    for row in &db.read_or_empty::<ProcessRow>() {
        let name = match row.services() {
            Some(services) if !services.is_empty() && services.chars().count() <= MAX_SERVICES => {
                format!("{} ({services})", row.name())
            }
            _ => row.name().to_owned(),
        };
        names.insert(row.upid(), name);
    }
    names
}
