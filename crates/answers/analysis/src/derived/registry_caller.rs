//! Registry operations by the code that asked for them.
//!
//! # How it is computed
//!
//! Rows of `registry_stack`. The caller is the innermost function outside of the libraries of Windows that programs
//! call, the API the outermost function of these libraries that it called; where a stack holds such libraries only,
//! there is no caller. For operations that the kernel did on its own the caller is the innermost
//! driver.
//!
//! `whose` is who made the operation. A driver on the kernel part of the stack made it itself, unless the thread was in a system call for the
//! registry and the driver did not call the kernel's registry function (`ZwQueryValueKey`): a hook hands on what the program asked for. Without a
//! driver there, it is the program's.
//!
//! # What fools it
//!
//! Where the stack has no names, a driver on it may be a hook: then `whose` is unknown, as without a stack.
//! Stacks of registry events must be recorded. A program's own wrapper around the registry is the caller; who calls the
//! wrapper stands on the stack (`stack_id`, the most frequent one of the row).

use crate::derive::DerivedSpec;
use crate::fold::{Facts, FactsRows, NONE, Stack, Stacks, StacksRows, freeze, id, text};
use crate::operators::{ProcessRow, add};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::registry::RegistryStackRow;
use std::collections::BTreeMap;

define_table! {
    /// Registry operations by process, caller and operation, the most frequent first.
    pub table REGISTRY_CALLER: RegistryCallerRow = "registry_caller" {
        version: 2,
        /// Process.
        upid: Option<i32> [None, Process],
        /// Who made the operation: program, driver, or unknown if the stack does not tell. Null in extracts of before it was known.
        whose: Option<Sym> [None, Kind],
        /// The driver that made it itself; null if that is not known.
        driver: Option<Sym> [None, Name],
        /// Function that called the API, `module!function`; null if the stack does not tell.
        caller: Option<Sym> [None, Name],
        /// Function of the system's libraries that it called.
        api: Option<Sym> [None, Name],
        /// Operation, as in `registry`.
        op: Sym [None, Kind],
        /// Operations.
        count: i64 [Count, Count],
        /// Operations that ended with an error.
        failed: i64 [Count, Count],
        /// Time of all with a known duration.
        total_ns: i64 [Ns, Duration],
        /// The most frequent of their stacks (table `stack`).
        stack_id: Option<i32> [None, Stack],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&REGISTRY_CALLER],
    reads: reads::<(ProcessRow, RegistryStackRow, FactsRows, StacksRows)>,
    on_demand: true,
    make,
};

/// Who made an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Program,
    Driver,
    Unknown,
}

impl Whose {
    fn name(self) -> &'static str {
        match self {
            Whose::Program => "program",
            Whose::Driver => "driver",
            Whose::Unknown => "unknown",
        }
    }
}

/// Who made an operation with this stack, and the number of the driver that did. `of_system`: in a thread of the System process.
fn whose(facts: &Facts, stack: &Stack<'_>, of_system: bool) -> (Whose, u32) {
    let named = |frame: &u32| {
        let label = facts.functions.get(facts.function_of(*frame) as usize).map_or("", |f| f.0.as_str());
        label.split_once('!').map_or("", |(_, function)| function).to_ascii_lowercase()
    };
    let stub = stack.user.first().filter(|frame| facts.is_stub(**frame)).map(named);
    let of_registry = stub.map(|stub| stub.contains("key"));
    let Some(at) = stack.kernel.iter().position(|frame| facts.is_driver(facts.module_of(*frame))) else {
        let is_asked = !stack.user.is_empty() && (!stack.kernel.is_empty() || of_registry == Some(true));
        return (if is_asked { Whose::Program } else { Whose::Unknown }, NONE);
    };
    let driver = stack.kernel.get(at).map_or(NONE, |&frame| facts.module_of(frame));
    let called = at.checked_sub(1).and_then(|inner| stack.kernel.get(inner)).map(named);
    let calls_registry = called.is_some_and(|name| name.starts_with("zw") && name.contains("key"));
    match of_registry {
        _ if calls_registry || of_system => (Whose::Driver, driver),
        Some(false) => (Whose::Driver, driver),
        Some(true) => (Whose::Program, NONE),
        None => (Whose::Unknown, NONE),
    }
}

/// Process, who made the operations with the number of the driver, functions of caller and API, operation.
type Key = (i64, (Whose, u32), (u32, u32), Sym);

#[derive(Default)]
struct Sum {
    count: i64,
    failed: i64,
    total: i64,
    stack: i64,
    most: i64,
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<RegistryCallerRow>::new(memory);
    let mut strings = Strings::new();
    if !db.read_or_empty::<RegistryStackRow>().is_empty() {
        let (facts, stacks) = (Facts::read(db, false), Stacks::read(db));
        let site = |stack: i64| {
            let part = stacks.get(stack);
            let number = |frame: Option<&u32>| frame.map_or(NONE, |&f| facts.function_of(f));
            if part.user.is_empty() {
                let driver = part.kernel.iter().find(|f| facts.is_driver(facts.module_of(**f)));
                return (number(driver), NONE);
            }
            let inner = part.user.iter().take_while(|f| facts.is_system_library(**f)).count();
            let api = inner.checked_sub(1).and_then(|at| part.user.get(at));
            let caller = part.user.get(inner).filter(|f| !facts.is_thread_start(**f));
            (number(caller), number(api.filter(|f| !facts.is_thread_start(**f))))
        };
        let processes = db.read_or_empty::<ProcessRow>();
        let system = processes.iter().find(|process| process.pid() == 4).map(|process| process.upid());
        let is_system = |upid: Option<i64>| upid.is_some() && upid == system;
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        for row in &db.read_or_empty::<RegistryStackRow>() {
            let stack = row.stack_id().unwrap_or(-1);
            let op = strings.intern(row.op());
            let sum = sums
                .entry((
                    row.upid().unwrap_or(-1),
                    whose(&facts, &stacks.get(stack), is_system(row.upid())),
                    site(stack),
                    op,
                ))
                .or_default();
            let count = row.count();
            add(&mut sum.count, count);
            add(&mut sum.failed, row.failed());
            add(&mut sum.total, row.total_ns());
            if count > sum.most {
                (sum.most, sum.stack) = (count, stack);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.count));
        for ((upid, (whose, driver), (caller, api), op), sum) in sums {
            let label = |n: u32| facts.functions.get(n as usize).map_or("", |f| f.0.as_str());
            rows.push(RegistryCallerRow {
                upid: id(upid),
                whose: Some(strings.intern(whose.name())),
                driver: facts.module(driver).and_then(|module| text(&mut strings, &module.name)),
                caller: text(&mut strings, label(caller)),
                api: text(&mut strings, label(api)),
                op,
                count: sum.count,
                failed: sum.failed,
                total_ns: sum.total,
                stack_id: id(sum.stack),
            });
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::Fold;
    use crate::fold::tests::sampled;

    #[test]
    fn a_driver_in_a_call_for_something_else_made_the_operation_itself() {
        let read = "ntoskrnl.exe!CmQueryValueKey ntoskrnl.exe!NtQueryValueKey";
        let own = format!("{read} ntoskrnl.exe!ZwQueryValueKey guard.sys!Read");
        let stacks = [
            format!(
                "{own} FLTMGR.SYS!FltpPerformPreCallbacks ntoskrnl.exe!NtCreateFile|ntdll.dll!NtCreateFile a.exe!Load"
            ),
            format!("{read}|ntdll.dll!NtQueryValueKey KernelBase.dll!RegQueryValueExW a.exe!Poll"),
            // A callback of the registry reads on its own; a hook hands on.
            format!(
                "{own} ntoskrnl.exe!CmpCallCallBacksEx ntoskrnl.exe!NtQueryValueKey|ntdll.dll!NtQueryValueKey a.exe!Poll"
            ),
            format!("{read} hook.sys!Query|ntdll.dll!NtQueryValueKey a.exe!Poll"),
            // The kernel alone in a process start; a thread of System; without names.
            format!("{read} ntoskrnl.exe!NtCreateUserProcess|ntdll.dll!NtCreateUserProcess a.exe!Run"),
            format!("{read} policy.sys!Loop ntoskrnl.exe!PspSystemThreadStartup"),
            "ntoskrnl.exe ntoskrnl.exe guard.sys ntoskrnl.exe|ntdll.dll a.exe".to_owned(),
            "|ntdll.dll!NtQueryValueKey a.exe!Poll".to_owned(),
            "|ntdll.dll!NtCreateFile a.exe!Load".to_owned(),
        ];
        let all: Vec<(&str, i64, i64, &str)> = stacks.iter().map(|s| ("thread", 1, 1, s.as_str())).collect();
        let fold = Fold::read(&sampled(&all), false);
        let of = |at: usize| {
            let (whose, driver) = whose(&fold.facts, &fold.stacks.get(at as i64), at == 5);
            let name = fold.facts.module(driver).map_or("", |module| module.name.as_str());
            format!("{} {name}", whose.name())
        };
        let told: Vec<String> = (0..stacks.len()).map(of).collect();
        assert_eq!(
            told,
            [
                "driver guard.sys",
                "program ",
                "driver guard.sys",
                "program ",
                "program ",
                "driver policy.sys",
                "unknown ",
                "program ",
                "unknown ",
            ]
        );
        assert_eq!(whose(&fold.facts, &Stack { kernel: &[], user: &[] }, false).0, Whose::Unknown);
    }
}
