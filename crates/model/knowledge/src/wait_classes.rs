//! What a thread waited for, from the functions on its stack, or from the wait reason where these do not say.
//!
//! `KWAIT_REASON` alone does not: critical sections, slim locks and condition variables all wait with `WrAlertByThreadId`, and a
//! Monitor of .NET, an idle worker and a program that waits for another one all with `UserRequest`.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::stack_tags::{canonical_module, glob, is_kernel};
use crate::table::rows;

/// What a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitClass {
    /// A lock that another thread held.
    Lock,
    /// A condition variable, an address or a barrier: until another thread has something for it.
    Condition,
    /// Work: a completion port, a thread pool, window messages, requests to a server.
    Queue,
    /// Time to pass.
    Sleep,
    /// The answer of another process or thread.
    Call,
    /// A page of memory that is read from a disk.
    PageFault,
    /// A file, a device or the network.
    Io,
    /// A limit on processor time.
    Throttled,
    /// Being resumed.
    Suspended,
    /// A lock or a condition variable: only the stack could tell which.
    LockOrCondition,
    /// A kernel object (event, process, semaphore; a mutex, where nothing tells that it is one): only the program knows what it stands for.
    Object,
    /// Something else, or unknown.
    Other,
}

impl WaitClass {
    /// All of them.
    pub const ALL: [WaitClass; 12] = [
        WaitClass::Lock,
        WaitClass::Condition,
        WaitClass::Queue,
        WaitClass::Sleep,
        WaitClass::Call,
        WaitClass::PageFault,
        WaitClass::Io,
        WaitClass::Throttled,
        WaitClass::Suspended,
        WaitClass::LockOrCondition,
        WaitClass::Object,
        WaitClass::Other,
    ];

    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            WaitClass::Lock => "lock",
            WaitClass::Condition => "condition",
            WaitClass::Queue => "queue",
            WaitClass::Sleep => "sleep",
            WaitClass::Call => "call",
            WaitClass::PageFault => "page_fault",
            WaitClass::Io => "io",
            WaitClass::Throttled => "throttled",
            WaitClass::Suspended => "suspended",
            WaitClass::LockOrCondition => "lock_or_condition",
            WaitClass::Object => "object",
            WaitClass::Other => "other",
        }
    }

    fn from_name(name: &str) -> Option<WaitClass> {
        WaitClass::ALL.into_iter().find(|class| class.name() == name)
    }

    /// What the wait reason alone says (`KWAIT_REASON`, by name).
    /// <https://learn.microsoft.com/windows/win32/cimwin32prov/win32-thread> documents the first 20.
    pub fn of_reason(reason: &str) -> WaitClass {
        match reason {
            "WrResource" | "WrPushLock" | "WrFastMutex" | "WrGuardedMutex" | "WrMutex" | "WrRundown" => {
                WaitClass::Lock
            }
            "WrAlertByThreadId" | "WrKeyedEvent" => WaitClass::LockOrCondition,
            "WrQueue" | "WrLpcReceive" => WaitClass::Queue,
            "WrLpcReply" => WaitClass::Call,
            "DelayExecution" | "WrDelayExecution" => WaitClass::Sleep,
            "PageIn" | "WrPageIn" | "FreePage" | "WrFreePage" | "WrVirtualMemory" | "WrPhysicalFault" => {
                WaitClass::PageFault
            }
            "WrIoRing" => WaitClass::Io,
            "WrCpuRateControl" => WaitClass::Throttled,
            "Suspended" | "WrSuspended" => WaitClass::Suspended,
            "UserRequest" | "WrUserRequest" => WaitClass::Object,
            _ => WaitClass::Other,
        }
    }

    /// True where the stack may say more than the wait reason.
    pub fn is_open(self) -> bool {
        matches!(self, WaitClass::LockOrCondition | WaitClass::Object | WaitClass::Other)
    }
}

/// Functions in which threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitFunction {
    /// What it waits for.
    pub class: WaitClass,
    /// File name of the module.
    pub module: &'static str,
    /// Function; `*` stands for any text. Matched with case.
    pub function: &'static str,
    /// What it waits for, in words.
    pub what: &'static str,
    /// Page that documents the function.
    pub source: &'static str,
}

static FUNCTIONS: LazyLock<Vec<WaitFunction>> = LazyLock::new(|| {
    rows(include_str!("../data/wait_classes.tsv"))
        .filter_map(|[class, module, function, what, source]| {
            WaitClass::from_name(class).map(|class| WaitFunction { class, module, function, what, source })
        })
        .collect()
});

static BY_MODULE: LazyLock<HashMap<String, Vec<&'static WaitFunction>>> = LazyLock::new(|| {
    let mut by_module: HashMap<String, Vec<&'static WaitFunction>> = HashMap::new();
    for function in FUNCTIONS.iter() {
        by_module.entry(canonical_module(function.module)).or_default().push(function);
    }
    by_module
});

/// All of them, in the order of the table.
pub fn wait_functions() -> &'static [WaitFunction] {
    &FUNCTIONS
}

/// The row of the table that knows this function. The innermost frame that has one says what a stack waits for: a condition variable that
/// takes its lock again waits for the lock. The module may have a path and may lack its extension.
pub fn wait_function(module: &str, function: &str) -> Option<&'static WaitFunction> {
    let functions = BY_MODULE.get(&canonical_module(module))?;
    functions.iter().find(|row| glob(row.function, function, false)).copied()
}

/// Whether the kernel hands a mutex over to a thread that waits for it, by the functions of whoever ends the wait, innermost first: the
/// waiting thread's own stack looks the same for all objects. What runs in between, for somebody else, decides before.
pub fn releases_mutex<'a>(functions: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
    let found = functions.into_iter().find_map(|(module, function)| match function {
        "KeReleaseMutant" | "KeReleaseMutex" | "NtReleaseMutant" => Some((module, true)),
        "KiDeliverApc" | "MmAccessFault" | "KeSetEvent" | "KeReleaseSemaphore" => Some((module, false)),
        _ => None,
    });
    found.is_some_and(|(module, releases)| releases && is_kernel(module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(module: &str, function: &str) -> Option<WaitClass> {
        wait_function(module, function).map(|row| row.class)
    }

    #[test]
    fn functions_have_classes() {
        for (module, function, expected) in [
            ("ntdll.dll", "RtlAcquireSRWLockExclusive", WaitClass::Lock),
            (r"C:\Windows\System32\ntdll.dll", "RtlSleepConditionVariableSRW", WaitClass::Condition),
            ("KernelBase.dll", "SleepConditionVariableSRW", WaitClass::Condition),
            ("nt", "KeRemoveQueueEx", WaitClass::Queue),
            ("ntoskrnl.exe", "NtDelayExecution", WaitClass::Sleep),
            ("fltmgr.sys", "FltSendMessage", WaitClass::Call),
            ("ntoskrnl.exe", "MiIssueHardFault", WaitClass::PageFault),
        ] {
            assert_eq!(class(module, function), Some(expected), "{module}!{function}");
        }
        for (module, function) in [
            // Common to all waits.
            ("ntdll.dll", "NtWaitForAlertByThreadId"),
            ("ntoskrnl.exe", "KeWaitForSingleObject"),
            ("app.exe", "RtlAcquireSRWLockExclusive"),
            ("ntdll.dll", ""),
        ] {
            assert_eq!(class(module, function), None, "{module}!{function}");
        }
    }

    #[test]
    fn who_releases_a_mutex_ends_a_wait_for_a_lock() {
        let program = [("ntdll.dll", "NtReleaseMutant"), ("KernelBase.dll", "ReleaseMutex")];
        let kernel = [("ntoskrnl.exe", "KeReleaseMutant"), ("nt", "NtReleaseMutant")];
        assert!(releases_mutex(kernel.into_iter().chain(program)));
        assert!(!releases_mutex(program), "what the kernel does there is not known");
        let event = [("ntoskrnl.exe", "KeSetEvent"), ("ntoskrnl.exe", "NtSetEvent")];
        assert!(!releases_mutex(event) && !releases_mutex([]));
        // The end of a transfer came in between.
        let apc = [("ntoskrnl.exe", "KiUnwaitThread"), ("ntoskrnl.exe", "KiDeliverApc")];
        assert!(!releases_mutex(apc.into_iter().chain(kernel)));
    }

    #[test]
    fn every_row_is_read_and_has_a_source() {
        let lines = include_str!("../data/wait_classes.tsv").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(wait_functions().len(), lines.count());
        for row in wait_functions() {
            assert!(!row.what.is_empty() && !row.source.is_empty(), "{row:?}");
            let decided = !row.class.is_open();
            assert!(decided, "a function says more than the reason: {row:?}");
        }
    }

    #[test]
    fn reasons_alone() {
        assert_eq!(WaitClass::of_reason("WrPushLock"), WaitClass::Lock);
        assert!(WaitClass::of_reason("WrAlertByThreadId").is_open());
        assert!(WaitClass::of_reason("Executive").is_open());
        assert!(!WaitClass::of_reason("WrQueue").is_open());
    }
}
