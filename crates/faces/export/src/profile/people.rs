//! Processes and threads, with the names that people see.

use super::INTERRUPTS;
use crate::sanitize;
use etwhy_table::Database;
use etwhy_trace::catalog::{process::ProcessRow, thread::ThreadRow};

/// A process instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Process {
    /// Process id, which Windows reuses.
    pub pid: i64,
    /// Image name.
    pub name: String,
    /// `name (pid)`, with its services.
    pub label: String,
    /// Parent's `upid`.
    pub parent: Option<u32>,
    /// Command line.
    pub command_line: Option<String>,
    /// Start within the trace.
    pub start_ns: Option<i64>,
    /// End within the trace.
    pub end_ns: Option<i64>,
}

/// A thread instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thread {
    /// Thread id, which Windows reuses.
    pub tid: i64,
    /// Process instance.
    pub upid: Option<u32>,
    /// Its description, else its service, else its start routine; never empty.
    pub name: String,
    /// `name (tid)`.
    pub label: String,
    /// Start within the trace.
    pub start_ns: Option<i64>,
    /// End within the trace.
    pub end_ns: Option<i64>,
}

/// Everybody. Names are sanitised.
#[derive(Debug, Default)]
pub(crate) struct People {
    /// By `upid`.
    pub processes: Vec<Process>,
    /// By `utid`.
    pub threads: Vec<Thread>,
}

fn number(id: Option<i64>) -> Option<u32> {
    id.and_then(|id| u32::try_from(id).ok())
}

impl People {
    /// Those of tables `process` and `thread`.
    pub fn read(db: &Database) -> People {
        let mut out = People::default();
        for row in &db.read_or_empty::<ProcessRow>() {
            let pid = row.pid();
            let name = sanitize(row.name()).into_owned();
            let label = match row.services().filter(|services| !services.is_empty()) {
                Some(services) => format!("{name} ({pid}) [{}]", sanitize(services)),
                None => format!("{name} ({pid})"),
            };
            let command_line = row.command_line().map(|text| sanitize(text).into_owned());
            let (start_ns, end_ns) = (row.start_ns(), row.end_ns());
            let parent = number(row.parent_upid());
            out.processes.push(Process { pid, name, label, parent, command_line, start_ns, end_ns });
        }
        for row in &db.read_or_empty::<ThreadRow>() {
            let tid = row.tid();
            let given = [row.name(), row.service(), row.start_function()];
            let name = given.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("thread");
            let name = sanitize(if tid == 0 { "Idle" } else { name }).into_owned();
            let label = format!("{name} ({tid})");
            let (start_ns, end_ns) = (row.start_ns(), row.end_ns());
            out.threads.push(Thread { tid, upid: number(row.upid()), name, label, start_ns, end_ns });
        }
        out
    }

    /// A process.
    pub fn process(&self, upid: Option<u32>) -> Option<&Process> {
        self.processes.get(upid? as usize)
    }

    /// A thread.
    pub fn thread(&self, utid: Option<u32>) -> Option<&Thread> {
        self.threads.get(utid? as usize)
    }

    /// What to call a process that may not be known.
    pub fn process_label(&self, upid: Option<u32>) -> &str {
        match upid {
            Some(INTERRUPTS) => "[DPC and ISR]",
            upid => self.process(upid).map_or("[unknown process]", |process| &process.label),
        }
    }

    /// Whether it is the process of the idle threads.
    pub fn is_idle(&self, upid: Option<u32>) -> bool {
        self.process(upid).is_some_and(|process| process.pid == 0)
    }
}
