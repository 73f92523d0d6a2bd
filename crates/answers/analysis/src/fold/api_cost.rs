//! CPU time by the function through which programs entered the system.
//!
//! # How it is computed
//!
//! From samples of threads. `api` is the outermost of the system's libraries at the inner end of the user part of the
//! stack: the function that the program itself called, such as `KernelBase.dll!SleepEx`. `syscall_stub` is the system call
//! that it led to. Where the kernel writes the event of a system call (`PerfInfoLogSysCallEntry`, `PerfInfoLogSysCallExit`),
//! `tracing` is `syscall`; other logging of events is `event`. What tracing of system calls makes an API slower is thus the sum
//! where `tracing = 'syscall'`, divided by the rest of the same API. Samples of a program's own code are
//! the rows without an API.
//!
//! # What fools it
//!
//! A library of the system that is not in the list of `crates/model/knowledge` counts as the program. Without symbols, functions
//! are `module!?` and tracing cannot be determined: both are null or `?`, which is not zero.

use super::{Class, Fold, Group, NONE, Seen, freeze, id, text};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table};
use std::collections::BTreeMap;

define_table! {
    /// CPU time of threads by the API through which the program entered the system, from samples.
    pub table API_COST: ApiCostRow = "api_cost" {
        version: 1,
        /// Process that was running.
        upid: Option<i32> [None, Process],
        /// Function of the system's libraries that the program called, `module!function`; null in the program's own code.
        api: Option<Sym> [None, Name],
        /// System call of `ntdll.dll` or `win32u.dll` that the thread was in.
        syscall_stub: Option<Sym> [None, Name],
        /// `syscall`: the kernel was writing the event of a system call; `event`: it, or the program, was writing another
        /// event; else null.
        tracing: Option<Sym> [None, Kind],
        /// Category of the innermost stack tag.
        tag: Option<Sym> [None, Kind],
        /// Driver that the samples are charged to (table `driver_cost`).
        owner: Option<Sym> [None, Name],
        /// The thread was in the kernel.
        in_kernel: bool [None, Flag],
        /// Time.
        cost_ns: i64 [Ns, Weight],
        /// Samples.
        samples: i64 [Count, Count],
    }
}

/// What samples are told apart by, as dense numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    api: u32,
    stub: u32,
    tracing: Option<Tracing>,
    tag: u32,
    owner: u32,
    in_kernel: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tracing {
    Syscall,
    Event,
}

fn key(fold: &Fold, seen: &Seen<'_>) -> Key {
    let (facts, part) = (&fold.facts, &seen.part);
    let inner = part.user.iter().take_while(|f| facts.is_system_library(**f)).count();
    let mut system = part.user.get(..inner).unwrap_or(&[]);
    while let Some((&last, rest)) = system.split_last()
        && facts.is_thread_start(last)
    {
        system = rest;
    }
    let function = |frame: Option<&u32>| frame.map_or(NONE, |&f| facts.function_of(f));
    let below = || part.kernel.iter().chain(system).copied();
    let category = |frame: u32| facts.stack_tag(facts.tag_of(frame)).map(|tag| tag.category);
    let tracing = if part.kernel.iter().any(|&f| facts.is_syscall_event(f)) {
        Some(Tracing::Syscall)
    } else {
        below().any(|f| category(f) == Some("etw")).then_some(Tracing::Event)
    };
    let innermost = part.user.first().filter(|f| facts.is_stub(**f));
    Key {
        api: function(system.last()),
        stub: function(innermost),
        tracing,
        tag: part.frames().find_map(category).map_or(NONE, |name| {
            // Tags of one category are one.
            facts.tags.iter().position(|tag| tag.category == name).map_or(NONE, |n| n as u32)
        }),
        owner: seen.owner,
        in_kernel: !part.kernel.is_empty(),
    }
}

/// Sums on the way to the table.
pub(crate) struct ApiCosts {
    rows: TableBuilder<ApiCostRow>,
    strings: Strings,
    /// Time and samples.
    sums: BTreeMap<Key, (i64, i64)>,
}

impl ApiCosts {
    /// Nothing yet.
    pub fn new(memory: &Memory) -> ApiCosts {
        ApiCosts { rows: TableBuilder::new(memory), strings: Strings::new(), sums: BTreeMap::new() }
    }

    /// Adds a stack.
    pub fn stack(&mut self, fold: &Fold, seen: &Seen<'_>) {
        if seen.class == Class::Thread {
            let sum = self.sums.entry(key(fold, seen)).or_default();
            *sum = (sum.0.saturating_add(seen.row.weight), sum.1.saturating_add(seen.row.samples));
        }
    }

    /// Writes the rows of a group.
    pub fn flush(&mut self, fold: &Fold, group: &Group) {
        let mut sums: Vec<_> = std::mem::take(&mut self.sums).into_iter().collect();
        sums.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
        for (key, (cost_ns, samples)) in sums {
            let function =
                |number: u32| fold.facts.functions.get(number as usize).map_or("", |f| f.0.as_str());
            let tracing = key.tracing.map(|tracing| match tracing {
                Tracing::Syscall => "syscall",
                Tracing::Event => "event",
            });
            self.rows.push(ApiCostRow {
                upid: id(group.upid),
                api: text(&mut self.strings, function(key.api)),
                syscall_stub: text(&mut self.strings, function(key.stub)),
                tracing: tracing.map(|name| self.strings.intern(name)),
                tag: fold.facts.stack_tag(key.tag).map(|tag| self.strings.intern(tag.category)),
                owner: fold.facts.module(key.owner).and_then(|m| text(&mut self.strings, &m.name)),
                in_kernel: key.in_kernel,
                cost_ns,
                samples,
            });
        }
    }

    /// The table.
    pub fn finish(self, db: &Database) -> etwhy_table::Result<Table> {
        self.rows.finish(&freeze(self.strings, db)?)
    }
}
