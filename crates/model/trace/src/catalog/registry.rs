//! Registry operations: key, value, duration and status.
//!
//! # How it is computed
//! Windows logs a registry operation when it ends, with the time at which it began (version 2; the unit of
//! `ElapsedTime` in versions 0 and 1, before Vista, is not documented, and their durations stay unknown). The path is
//! that of the key control block with what the operation adds: creates and opens name a path relative to an open key,
//! operations on values name the value. Paths come from the records about key control blocks, also from the rundown
//! at the end of the trace. `\REGISTRY\MACHINE` is shown as `HKLM`, `\REGISTRY\USER` as `HKU`; `HKCU` is
//! `HKU\<SID of the user>`, and `HKCR` is `HKLM\SOFTWARE\Classes` merged with `HKU\<SID>_Classes`.
//!
//! The thread is the header's; if it names none, the one that context switches show on the processor.
//!
//! # What fools it
//! The duration is that of the operation in the configuration manager. It has in it waiting for locks of hives,
//! page faults on them, and registry callbacks of drivers (security products see every operation before and after);
//! it has not in it the way into the kernel and out, nor what the caller does with the value.
//!
//! **Tracing the registry is itself costly**: an event with a path and a stack for operations that take
//! microseconds. A busy caller was seen to become up to 40 % slower. Counts are right; times hold the tracing.
//!
//! No real trace with these events was at hand: layouts follow Microsoft's class definitions.

mod stacks;
mod usage;

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, OPERATION_BEFORE_NS, Select};
use crate::finish::process_later;
use crate::owner::Owner;
use etwhy_decode::kernel::events;
use etwhy_knowledge::ntstatus_name;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
pub use stacks::RegistryStackRow;
use stacks::{ByStack, REGISTRY_STACK};
pub use usage::RegistryUsageRow;
use usage::{REGISTRY_USAGE, Usage};

define_table! {
    /// Registry operations.
    ///
    /// Durations hold what tracing each operation costs, which is much. Paths begin with `HKLM` and `HKU` for
    /// the native `\REGISTRY\MACHINE` and `\REGISTRY\USER`.
    pub table REGISTRY: RegistryRow = "registry" {
        sorted_by: "ts_ns", version: 1,
        /// When the operation began; none in traces of before Vista.
        start_ns: Option<i64> [Ns, Time],
        /// When it ended.
        ts_ns: i64 [Ns, Time],
        /// From begin to end.
        dur_ns: Option<i64> [Ns, Duration],
        /// Create, Open, Delete, Query, SetValue, DeleteValue, QueryValue, EnumerateKey, EnumerateValueKey,
        /// QueryMultipleValue, SetInformation, Flush, Virtualize, Close, SetSecurity or QuerySecurity.
        op: Sym [None, Kind],
        /// Key. `[unknown]` stands for a part that nobody named.
        key: Option<Sym> [None, Path],
        /// Name of the value, for operations on values; empty for the key's default value.
        value: Option<Sym> [None, Name],
        /// NTSTATUS of the operation.
        status: Option<i32> [Hex32, Status],
        /// Name of the status.
        status_name: Option<Sym> [None, Name],
        /// Which subkey or value, for enumerations.
        index: Option<i32> [None, Other],
        /// Address of the key control block that the operation started from; 0 for a whole path.
        kcb: i64 [Address, Address],
        /// Process of the thread.
        upid: Option<i32> [None, Process],
        /// Thread that asked.
        utid: Option<i32> [None, Thread],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// Processor.
        cpu: i32 [None, Cpu],
    }
}

const SET_VALUE: u8 = events::Registry::SetValue.opcode;
const QUERY_VALUE: u8 = events::Registry::QueryValue.opcode;
const ENUMERATE_KEY: u8 = events::Registry::EnumerateKey.opcode;
const ENUMERATE_VALUE_KEY: u8 = events::Registry::EnumerateValueKey.opcode;
const QUERY_MULTIPLE_VALUE: u8 = events::Registry::QueryMultipleValue.opcode;
const FIELDS: &[&str] = &["Status", "KeyHandle", "Index", "InitialTime", "ElapsedTime"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&REGISTRY, &REGISTRY_USAGE, &REGISTRY_STACK],
    selects: &[
        Select::kernel(events::Registry::Create, FIELDS),
        Select::kernel(events::Registry::Open, FIELDS),
        Select::kernel(events::Registry::Delete, FIELDS),
        Select::kernel(events::Registry::Query, FIELDS),
        Select::kernel(events::Registry::SetValue, FIELDS),
        Select::kernel(events::Registry::DeleteValue, FIELDS),
        Select::kernel(events::Registry::QueryValue, FIELDS),
        Select::kernel(events::Registry::EnumerateKey, FIELDS),
        Select::kernel(events::Registry::EnumerateValueKey, FIELDS),
        Select::kernel(events::Registry::QueryMultipleValue, FIELDS),
        Select::kernel(events::Registry::SetInformation, FIELDS),
        Select::kernel(events::Registry::Flush, FIELDS),
        Select::kernel(events::Registry::Virtualize, FIELDS),
        Select::kernel(events::Registry::Close, FIELDS),
        Select::kernel(events::Registry::SetSecurity, FIELDS),
        Select::kernel(events::Registry::QuerySecurity, FIELDS),
    ],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(Registry {
            rows: TableBuilder::if_wanted(memory),
            usage: Usage::new(memory),
            stacks: ByStack::new(memory),
            statuses: HashMap::default(),
        })
    },
};

struct Registry {
    rows: TableBuilder<RegistryRow>,
    usage: Usage,
    stacks: ByStack,
    /// Names of statuses.
    statuses: HashMap<u32, Option<Sym>>,
}

/// Statuses whose names are kept; a hostile trace has as many as it likes.
const MOST_STATUSES: usize = 1 << 16;

/// What sums need of an operation.
#[derive(Clone, Copy)]
struct Operation {
    op: u8,
    /// When it ended.
    ns: i64,
    owner: Owner,
    /// Number of the key's path.
    key: u32,
    value: Option<Sym>,
    failed: bool,
    dur_ns: Option<i64>,
}

impl Analysis for Registry {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(status), Some(kcb)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        // A pointer before version 2.
        let status = status as u32;
        // The name is the last field: behind the key, the index or the elapsed time, as versions differ.
        let name = event.text_after(match event.record.version() {
            0 => 4,
            1 => 2,
            _ => 1,
        });
        let op = event.tag;
        let of_value = matches!(op, SET_VALUE..=QUERY_VALUE | ENUMERATE_VALUE_KEY | QUERY_MULTIPLE_VALUE);
        let (rest, value) = match cx.sym(&name) {
            name if of_value => (Sym::EMPTY, Some(name)),
            name => (name, None),
        };
        // Enumerations of values name the value only if they found one.
        let value = value.filter(|value| *value != Sym::EMPTY || matches!(op, SET_VALUE..=QUERY_VALUE));
        let key = cx.model.keys.path(kcb, rest);
        let initial = event.i64(3).filter(|&initial| initial > 0);
        let dur_ns = initial.and_then(|initial| cx.span_since(event, initial, OPERATION_BEFORE_NS));
        let running = cx.model.cpus.running(event.record.cpu, event.ns);
        let (tid, utid) = match event.tid_pid() {
            Some((tid, pid)) => (Some(tid), Some(cx.model.thread(tid, Some(pid), event.ns))),
            None => (running.map(|r| r.tid), running.map(|r| r.utid)),
        };
        let stack = cx.stack_ticket(event, tid, utid);
        let operation = Operation {
            op,
            ns: event.ns,
            owner: Owner::for_thread(cx.model, utid),
            key,
            value,
            failed: status >= FAILED,
            dur_ns,
        };
        self.usage.add(&operation);
        self.stacks.add(&operation, stack, &mut cx.model.stacks);
        if self.statuses.len() >= MOST_STATUSES {
            self.statuses.clear();
        }
        let strings = &mut *cx.strings;
        let status_name = *self
            .statuses
            .entry(status)
            .or_insert_with(|| ntstatus_name(status).map(|name| strings.intern(name)));
        let indexed = matches!(op, ENUMERATE_KEY | ENUMERATE_VALUE_KEY);
        self.rows.push(RegistryRow {
            start_ns: dur_ns.map(|dur| event.ns.saturating_sub(dur)),
            ts_ns: event.ns,
            dur_ns,
            op: cx.sym(events::Registry::name(op)),
            key: Some(Sym::provisional(key)),
            value,
            status: Some(status as i32),
            status_name,
            index: event.u64(2).filter(|_| indexed).map(|index| index as i32),
            kcb: kcb as i64,
            upid: utid.map(process_later),
            utid: utid.map(|u| u as i32),
            stack_id: Some(stack),
            cpu: i32::from(event.record.cpu),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.stacks_of(&mut self.rows, "stack_id")?;
        end.processes_of(&mut self.rows, "upid")?;
        end.keys_of(&mut self.rows, "key")?;
        let (usage, stacks) = (self.usage.finish(end), self.stacks.finish(end));
        Ok(vec![self.rows.into(), usage, stacks])
    }
}

/// NTSTATUS values from here on are errors (`NT_ERROR`). Warnings are none here: a buffer that is too small for
/// all of a value, the end of an enumeration.
const FAILED: u32 = 0xC000_0000;
