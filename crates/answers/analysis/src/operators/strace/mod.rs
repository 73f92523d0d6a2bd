//! System calls as `strace` shows them: chosen by process, name, class and result, in the order in which they
//! began, with what other tables say about them as arguments.

mod arguments;
mod classes;
mod filter;
mod summary;

pub use arguments::{Argument, ArgumentRows, Arguments};
pub use classes::{CLASSES, Class, classes_of};
pub use filter::{Filter, Results};
pub use summary::{Sum, Summary, SummaryOrder, summary};

use etwhy_table::{Database, Rows, Sym};
use etwhy_trace::catalog::{process::ProcessRow, syscall::SyscallRow};
use foldhash::HashMap;

/// One row of table `syscall`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// Row number.
    pub row: u32,
    /// When it began, unless it began before the trace.
    pub start_ns: Option<i64>,
    /// When it returned, if that is known.
    pub end_ns: Option<i64>,
    /// From begin to return.
    pub dur_ns: Option<i64>,
    /// Time on processors.
    pub on_cpu_ns: Option<i64>,
    /// Time switched out.
    pub off_cpu_ns: Option<i64>,
    /// Process.
    pub upid: Option<i64>,
    /// Thread.
    pub utid: Option<i64>,
    /// Processor on which it began.
    pub cpu: Option<i64>,
    /// Address of the routine.
    pub address: Option<i64>,
    /// `module!function`.
    pub function: Option<&'a str>,
    /// What it returned.
    pub status: Option<u32>,
    /// Name of the status.
    pub status_name: Option<&'a str>,
    /// The status is an error.
    pub failed: Option<bool>,
    /// Calls that it lies inside of.
    pub depth: Option<i64>,
    /// How it ended, as in the table.
    pub outcome: &'a str,
}

impl<'a> Call<'a> {
    /// When it is shown: its begin, else its end.
    pub fn moment_ns(&self) -> i64 {
        self.start_ns.or(self.end_ns).unwrap_or(0)
    }

    /// The function without its module, where it has a name.
    pub fn name(&self) -> Option<&'a str> {
        self.function.and_then(bare_name)
    }
}

/// `NtReadFile` of `ntoskrnl.exe!NtReadFile`; `None` where there is no name.
pub fn bare_name(function: &str) -> Option<&str> {
    let (_, name) = function.split_once('!')?;
    Some(name).filter(|n| !n.starts_with('+') && !n.starts_with("0x"))
}

/// True for functions whose result is no `NTSTATUS`: those of win32k return handles and numbers.
fn returns_no_status(function: &str) -> bool {
    function.get(..6).is_some_and(|module| module.eq_ignore_ascii_case("win32k"))
}

/// Table `syscall`, ready to be read row by row.
pub struct Calls<'a>(Rows<'a, SyscallRow>);

impl<'a> Calls<'a> {
    /// The calls of the trace; `None` without the table.
    pub fn read(db: &'a Database) -> Option<Calls<'a>> {
        db.read().ok().map(Calls)
    }

    /// How many.
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// True if the trace has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A call; one without any facts if there is no such row.
    pub fn get(&self, row: u32) -> Call<'a> {
        let Some(of) = self.0.get(row) else { return Call { row, outcome: "unknown", ..Call::default() } };
        let is_status = !of.function().is_some_and(returns_no_status);
        Call {
            row,
            start_ns: of.start_ns(),
            end_ns: of.ts_ns(),
            dur_ns: of.dur_ns(),
            on_cpu_ns: of.on_cpu_ns(),
            off_cpu_ns: of.off_cpu_ns(),
            upid: of.upid(),
            utid: of.utid(),
            cpu: of.cpu(),
            address: of.address(),
            function: of.function(),
            status: of.status().map(|s| s as u32),
            status_name: of.status_name().filter(|_| is_status),
            failed: of.failed().filter(|_| is_status),
            depth: of.depth(),
            outcome: of.outcome(),
        }
    }

    /// The number of the function's text: equal for equal functions.
    fn function_key(&self, row: u32) -> Option<Sym> {
        self.0.get(row).and_then(|row| row.views.function.sym(row.at))
    }

    /// Time, in wall-clock time or on processors, and depth.
    fn cost(&self, row: u32, wall: bool) -> (Option<i64>, Option<i64>) {
        let cost =
            self.0.get(row).map(|row| (if wall { row.dur_ns() } else { row.on_cpu_ns() }, row.depth()));
        cost.unwrap_or_default()
    }

    /// When it is shown, and its process.
    fn moment_and_process(&self, row: u32) -> (i64, Option<i64>) {
        let found = self.0.get(row).map(|row| (row.start_ns().or(row.ts_ns()).unwrap_or(0), row.upid()));
        found.unwrap_or_default()
    }

    fn failed(&self, row: u32) -> bool {
        self.0
            .get(row)
            .is_some_and(|row| row.failed() == Some(true) && !row.function().is_some_and(returns_no_status))
    }
}

/// Which calls are wanted.
#[derive(Debug, Default)]
pub struct Choice {
    /// For each process whether it is; `None`: all, and those of nobody too.
    pub processes: Option<Vec<bool>>,
    /// By name and class.
    pub filter: Filter,
    /// By how they ended.
    pub results: Results,
    /// That begin at or after this time.
    pub from_ns: Option<i64>,
    /// That begin before this time.
    pub to_ns: Option<i64>,
}

impl Choice {
    /// Whether calls of a process are wanted.
    pub fn wants_process(&self, upid: Option<i64>) -> bool {
        let Some(wanted) = &self.processes else { return true };
        upid.and_then(|u| usize::try_from(u).ok()).and_then(|u| wanted.get(u).copied()).unwrap_or(false)
    }
}

/// Rows of the chosen calls in the order in which they began (those that began before the trace: ended).
pub fn choose(calls: &Calls<'_>, choice: &Choice, arguments: &Arguments<'_>) -> Vec<u32> {
    let mut by_name: HashMap<Option<Sym>, bool> = HashMap::default();
    let mut chosen: Vec<(i64, u32)> = Vec::new();
    for row in 0..calls.len() {
        let (at, upid) = calls.moment_and_process(row);
        if choice.from_ns.is_some_and(|from| at < from)
            || choice.to_ns.is_some_and(|to| at >= to)
            || !choice.wants_process(upid)
            || !(choice.results.all() || choice.results.wants(&calls.get(row)))
        {
            continue;
        }
        let function = || calls.get(row).function;
        let named = *by_name
            .entry(calls.function_key(row))
            .or_insert_with(|| choice.filter.wants_function(function()));
        if named
            || choice.filter.has_classes()
                && choice.filter.wants_classes(function(), || arguments.classes(row))
        {
            chosen.push((at, row));
        }
    }
    // Calls that begin in the same tick: the outer one, which ends later, first.
    chosen.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    chosen.into_iter().map(|(_, row)| row).collect()
}

/// Adds the processes that chosen ones started, directly or not.
pub fn with_children(db: &Database, wanted: &mut [bool]) {
    let processes = db.read_or_empty::<ProcessRow>();
    let mut children: HashMap<usize, Vec<usize>> = HashMap::default();
    for child in 0..wanted.len() {
        let parent = processes.get(child).and_then(|row| usize::try_from(row.parent_upid()?).ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(child);
        }
    }
    let mut queue: Vec<usize> = (0..wanted.len()).filter(|&p| wanted.get(p) == Some(&true)).collect();
    while let Some(parent) = queue.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if let Some(slot) = wanted.get_mut(child).filter(|slot| !**slot) {
                *slot = true;
                queue.push(child);
            }
        }
    }
}
