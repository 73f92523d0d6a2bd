//! Where the probe's threads, and the children that it starts, wait.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Looks between two searches for new threads.
const THREADS_EVERY: u64 = 16;

/// Threads of one process that are looked at.
const MOST_THREADS: usize = 64;

/// What somebody waits for, by the kernel function that it waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum For {
    /// The answer of a fanotify listener (fs/notify/fanotify/fanotify.c).
    Listener,
    /// A tracer (kernel/signal.c, `ptrace_stop`).
    Tracer,
    /// Somebody who answers for a seccomp filter (kernel/seccomp.c).
    Supervisor,
    /// A file system in user space (fs/fuse/dev.c).
    Fuse,
    /// A server (NFS, SMB, 9P).
    Server,
    /// The audit daemon (kernel/audit.c: the backlog is full).
    Audit,
    /// A disk.
    Disk,
    /// Anything else.
    Other,
}

impl For {
    /// By the name of a kernel function.
    pub fn from_function(function: &str) -> For {
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| function.starts_with(prefix));
        if starts(&["fanotify_"]) {
            For::Listener
        } else if starts(&["ptrace_"]) {
            For::Tracer
        } else if starts(&["seccomp_"]) {
            For::Supervisor
        } else if starts(&["request_wait_answer", "fuse_", "__fuse_"]) {
            For::Fuse
        } else if starts(&["rpc_", "nfs", "wait_for_response", "cifs_", "smb2_", "p9_"]) {
            For::Server
        } else if starts(&["audit_", "wait_for_auditd"]) {
            For::Audit
        } else if starts(&[
            "folio_wait",
            "wait_on_page",
            "io_schedule",
            "blk_",
            "bit_wait_io",
            "jbd2_",
            "submit_bio",
            "__wait_on_buffer",
            "wbt_",
            "rq_qos_wait",
        ]) {
            For::Disk
        } else {
            For::Other
        }
    }

    /// In a sentence.
    pub fn words(self) -> &'static str {
        match self {
            For::Listener => "the answer of a fanotify listener",
            For::Tracer => "a tracer",
            For::Supervisor => "the supervisor of a seccomp filter",
            For::Fuse => "a file system in user space",
            For::Server => "a file server",
            For::Audit => "the audit daemon",
            For::Disk => "a disk",
            For::Other => "something else",
        }
    }
}

/// Waiting that was seen in one kernel function.
#[derive(Clone, Debug, Default)]
pub struct Wait {
    /// Looks that found it.
    pub looks: u64,
    /// Time that they stand for.
    pub ns: u64,
    /// An example of the kernel's stack, innermost first; root only.
    pub stack: Vec<String>,
}

/// Waiting that was seen.
#[derive(Debug, Default)]
pub struct Waits {
    looks: u64,
    /// The thread that the probe runs on.
    probe: i32,
    threads: HashMap<i32, Option<File>>,
    children: HashSet<i32>,
    /// Of all threads and children: only waits for somebody.
    pub by_function: BTreeMap<String, Wait>,
    /// Of the probe's own thread: everything.
    pub of_probe: BTreeMap<String, Wait>,
    /// Whether any function's name was told.
    pub told: bool,
}

impl Waits {
    /// How often was looked.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// Which thread's waiting is told whatever it waits for.
    pub fn only_notes_of(&mut self, thread: i32) {
        self.probe = thread;
    }

    /// Looks at all threads but `own`; what is found stands for the time since the last look.
    pub fn look(&mut self, own: i32, since: Duration) {
        if self.looks.is_multiple_of(THREADS_EVERY) {
            self.find_threads(own);
        }
        self.looks += 1;
        let ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let mut found = Vec::new();
        self.threads.retain(|thread, file| match wchan(file.as_ref(), *thread) {
            Ok(Some(function)) => {
                found.push((*thread, function));
                true
            }
            Ok(None) => true,
            Err(_) => false,
        });
        for child in std::mem::take(&mut self.children) {
            if let Ok(Some(function)) = wchan(None, child) {
                found.push((child, function));
            }
        }
        self.find_children();
        for (thread, function) in found {
            self.told = true;
            let of_somebody = !matches!(For::from_function(&function), For::Disk | For::Other);
            if of_somebody {
                add(&mut self.by_function, &function, ns, thread);
            }
            if thread == self.probe {
                add(&mut self.of_probe, &function, ns, thread);
            }
        }
    }

    fn find_threads(&mut self, own: i32) {
        for entry in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            if thread == own || self.threads.contains_key(&thread) || self.threads.len() >= MOST_THREADS {
                continue;
            }
            // Kept open: reading from its beginning asks anew.
            let file = File::open(format!("/proc/self/task/{thread}/wchan")).ok();
            self.threads.insert(thread, file);
        }
    }

    /// Processes that the probe's thread has started: they are looked at next time, when they have come to wait.
    fn find_children(&mut self) {
        let path = format!("/proc/self/task/{}/children", self.probe);
        let Some(text) = super::files::small(path) else { return };
        self.children =
            text.split_whitespace().filter_map(|word| word.parse().ok()).take(MOST_THREADS).collect();
    }

    /// All waiting for one thing.
    pub fn for_(&self, what: For) -> Wait {
        let mut sum = Wait::default();
        for wait in self
            .by_function
            .iter()
            .filter(|(function, _)| For::from_function(function) == what)
            .map(|(_, wait)| wait)
        {
            sum.looks += wait.looks;
            sum.ns = sum.ns.saturating_add(wait.ns);
            if sum.stack.is_empty() {
                sum.stack.clone_from(&wait.stack);
            }
        }
        sum
    }
}

/// Functions whose waits are kept apart; more would be a kernel that makes names up.
const MOST_FUNCTIONS: usize = 256;

fn add(to: &mut BTreeMap<String, Wait>, function: &str, ns: u64, thread: i32) {
    if !to.contains_key(function) && to.len() >= MOST_FUNCTIONS {
        return;
    }
    let wait = to.entry(function.to_owned()).or_default();
    wait.looks += 1;
    wait.ns = wait.ns.saturating_add(ns);
    // The wait may be over when the stack is read: some tries give one that shows it.
    if wait.stack.is_empty() && wait.looks < 50 {
        let stack = super::files::small(format!("/proc/{thread}/stack"))
            .map(|text| frames(&text))
            .unwrap_or_default();
        if stack.iter().any(|frame| frame == function) {
            wait.stack = stack;
        }
    }
}

/// Names of functions of `/proc/*/stack`: `[<0>] fanotify_handle_event+0x1c5/0x2a0`.
pub fn frames(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.split('+').next())
        .take(32)
        .map(str::to_owned)
        .collect()
}

/// The kernel function that a thread waits in; `None` if it runs, or if the system does not tell.
fn wchan(file: Option<&File>, thread: i32) -> io::Result<Option<String>> {
    let mut buffer = [0_u8; 128];
    let length = match file {
        Some(file) => file.read_at(&mut buffer, 0)?,
        None => File::open(format!("/proc/{thread}/wchan"))?.read_at(&mut buffer, 0)?,
    };
    let name = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).trim().to_owned();
    Ok((!name.is_empty() && name != "0").then_some(name))
}

/// Looks that found the probe waiting, below which it may have been for something else that was open for a moment.
pub const FEW_LOOKS: u64 = 3;
