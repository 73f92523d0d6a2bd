//! Who traces: debuggers, kernel tracing, programs of eBPF, filters of system calls.

use super::processes;
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of eBPF programs that see, or decide on, what programs do (include/uapi/linux/bpf.h, `enum bpf_prog_type`).
const KINDS: &[(u32, &str)] = &[
    (2, "kprobe"),
    (5, "tracepoint"),
    (7, "perf event"),
    (17, "raw tracepoint"),
    (24, "raw tracepoint"),
    (26, "tracing"),
    (29, "LSM"),
];

/// Somebody who holds eBPF programs.
#[derive(Clone, Debug, Default)]
pub struct Holder {
    /// Name of its program.
    pub name: String,
    /// Kinds of those that see what programs do.
    pub kinds: BTreeSet<&'static str>,
    /// Files that were counted.
    files: BTreeSet<i32>,
}

/// What was seen of tracing.
#[derive(Debug, Default)]
pub struct Tracers {
    /// Tracers of this process (ptrace), with their names.
    pub ptrace: BTreeMap<u32, String>,
    /// Filters of system calls on this thread.
    pub seccomp_filters: u64,
    /// Events of kernel tracing that are on: instance and events.
    pub events: BTreeMap<String, Vec<String>>,
    /// Holders of eBPF programs.
    pub ebpf: BTreeMap<u32, Holder>,
    /// Whether events of kernel tracing could be looked at.
    pub sees_events: bool,
}

impl Tracers {
    /// Looks once more.
    pub fn look(&mut self) {
        let status = super::files::small("/proc/self/status").unwrap_or_default();
        let field = |name: &str| -> Option<u64> {
            status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
        };
        if let Some(pid) = field("TracerPid").and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0)
        {
            let comm = super::files::small(format!("/proc/{pid}/comm")).unwrap_or_default();
            self.ptrace.insert(pid, processes::name(pid, comm.trim_end()));
        }
        self.seccomp_filters = self.seccomp_filters.max(field("Seccomp_filters").unwrap_or(0));
        for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            if self.events_of(root, root) {
                let instances = std::fs::read_dir(format!("{root}/instances"));
                for entry in instances.into_iter().flatten().flatten().take(64) {
                    let path = entry.path().display().to_string();
                    self.events_of(&path, &path);
                }
                break;
            }
        }
    }

    fn events_of(&mut self, folder: &str, name: &str) -> bool {
        let Some(events) = super::files::small(format!("{folder}/set_event")) else { return false };
        self.sees_events = true;
        let is_on =
            super::files::small(format!("{folder}/tracing_on")).is_some_and(|text| text.trim() == "1");
        let events: Vec<String> = events.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect();
        if is_on && !events.is_empty() {
            self.events.insert(name.to_owned(), events);
        }
        true
    }

    /// A file of an eBPF program or link.
    pub fn ebpf(&mut self, pid: u32, fd: i32) {
        let Some(text) = super::files::small(format!("/proc/{pid}/fdinfo/{fd}")) else { return };
        let Some(kind) = kind(&text) else { return };
        let holder = self.ebpf.entry(pid).or_insert_with(|| {
            let comm = super::files::small(format!("/proc/{pid}/comm")).unwrap_or_default();
            Holder { name: processes::name(pid, comm.trim_end()), ..Holder::default() }
        });
        if holder.files.insert(fd) {
            holder.kinds.insert(kind);
        }
    }
}

/// The kind of a program that sees what programs do, from its fdinfo (kernel/bpf/syscall.c, `bpf_prog_show_fdinfo`).
pub fn kind(text: &str) -> Option<&'static str> {
    let number: u32 = text.lines().find_map(|line| line.strip_prefix("prog_type:")?.trim().parse().ok())?;
    KINDS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}
