//! Whose work a thread of the System process does.

use super::{Facts, Stack};

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    /// A driver's: the module that has the routine, and the routine.
    Driver {
        /// Number of the module.
        module: u32,
        /// Number of the routine's function.
        routine: u32,
        /// Queued to a worker thread; else the thread is the driver's own.
        queued: bool,
    },
    /// Windows' own.
    Windows {
        /// Number of the routine's function.
        routine: u32,
    },
    /// No stack, or one that does not reach to the thread's begin, or whose functions have no names.
    Unknown,
}

/// Whose work a thread of the System process does with this stack, and whether a driver only hands it on to another layer.
///
/// Only the routine counts that the thread was started with, or that the worker took from its queue. Drivers further in merely
/// take part: a filter below the cache's lazy writer has queued nothing.
pub(crate) fn whose_work(facts: &Facts, stack: &Stack<'_>) -> (Whose, bool) {
    let host = |frame: &u32| facts.starts_work(*frame) || facts.runs_queued_work(*frame);
    let hosts = stack.kernel.iter().rev().take_while(|frame| host(frame)).count();
    let own = stack.kernel.len().saturating_sub(hosts);
    let Some(&routine) = own.checked_sub(1).and_then(|at| stack.kernel.get(at)) else {
        return (Whose::Unknown, false);
    };
    if hosts == 0 {
        return (Whose::Unknown, false);
    }
    let module = facts.module_of(routine);
    if !facts.is_driver(module) {
        let named = facts.is_named(routine);
        let windows = Whose::Windows { routine: facts.function_of(routine) };
        return (if named { windows } else { Whose::Unknown }, false);
    }
    let queued = stack.kernel.iter().skip(own).any(|&frame| facts.runs_queued_work(frame));
    let inner = stack.kernel.iter().position(|&frame| facts.module_of(frame) == module);
    let callee = inner.and_then(|at| at.checked_sub(1)).and_then(|at| stack.kernel.get(at));
    let passed_on = callee.is_some_and(|&callee| facts.hands_on(callee, None));
    (Whose::Driver { module, routine: facts.function_of(routine), queued }, passed_on)
}
