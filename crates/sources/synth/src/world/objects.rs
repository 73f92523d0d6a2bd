//! Locks, queues and disks: what threads wait for, and what such a wait looks like.

use super::Switch;
use crate::error::{Result, SourceText, one_of};
use crate::model::Text;
use crate::value::Dist;

/// How a kind of object is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    name: &'static str,
    /// `KWAIT_REASON`.
    reason: &'static str,
    /// 1 user mode, 0 kernel mode.
    mode: u8,
    /// Below the caller's frames while it waits.
    pub(crate) waits: &'static str,
    /// Below the caller's frames while it wakes a waiter.
    pub(crate) wakes: &'static str,
}

impl Wait {
    /// How the thread leaves its processor.
    pub(crate) fn switch(&self) -> Switch {
        let reason = Switch::reason(self.reason).unwrap_or(Switch::WAITING.reason);
        Switch { state: Switch::WAITING.state, reason, mode: self.mode }
    }
}

/// Stacks as the public symbols of Windows 10 and 11 name them.
const LOCKS: [Wait; 6] = [
    Wait {
        name: "critical_section",
        reason: "WrAlertByThreadId",
        mode: 1,
        waits: "ntdll!RtlEnterCriticalSection;ntdll!RtlpEnterCriticalSectionContended;ntdll!RtlpWaitOnCriticalSection;ntdll!NtWaitForAlertByThreadId;nt!NtWaitForAlertByThreadId;nt!KeWaitForAlertByThreadId",
        wakes: "ntdll!RtlLeaveCriticalSection;ntdll!NtAlertThreadByThreadId;nt!NtAlertThreadByThreadId;nt!KeAlertThreadByThreadId",
    },
    Wait {
        name: "srw",
        reason: "WrAlertByThreadId",
        mode: 1,
        waits: "ntdll!RtlAcquireSRWLockExclusive;ntdll!NtWaitForAlertByThreadId;nt!NtWaitForAlertByThreadId;nt!KeWaitForAlertByThreadId",
        wakes: "ntdll!RtlReleaseSRWLockExclusive;ntdll!NtAlertThreadByThreadId;nt!NtAlertThreadByThreadId;nt!KeAlertThreadByThreadId",
    },
    Wait {
        name: "mutex",
        reason: "UserRequest",
        mode: 1,
        waits: "KernelBase.dll!WaitForSingleObjectEx;ntdll!NtWaitForSingleObject;nt!NtWaitForSingleObject;nt!ObWaitForSingleObject;nt!KeWaitForSingleObject",
        wakes: "KernelBase.dll!ReleaseMutex;ntdll!NtReleaseMutant;nt!NtReleaseMutant;nt!KeReleaseMutant",
    },
    Wait {
        name: "monitor",
        reason: "UserRequest",
        mode: 1,
        waits: "coreclr.dll!JITutil_MonEnterWorker;coreclr.dll!AwareLock::EnterEpilog;ntdll!NtWaitForMultipleObjects;nt!NtWaitForMultipleObjects;nt!KeWaitForMultipleObjects",
        wakes: "coreclr.dll!JITutil_MonExitWorker;coreclr.dll!AwareLock::Leave;KernelBase.dll!SetEvent;ntdll!NtSetEvent;nt!NtSetEvent;nt!KeSetEvent",
    },
    Wait {
        name: "resource",
        reason: "WrResource",
        mode: 0,
        waits: "nt!ExAcquireResourceExclusiveLite;nt!ExpWaitForResource;nt!KeWaitForSingleObject",
        wakes: "nt!ExReleaseResourceLite;nt!KeSetEvent",
    },
    Wait {
        name: "push_lock",
        reason: "WrPushLock",
        mode: 0,
        waits: "nt!ExfAcquirePushLockExclusiveEx;nt!KeWaitForSingleObject",
        wakes: "nt!ExfReleasePushLock;nt!ExfWakePushLock;nt!KeSetEvent",
    },
];

const QUEUES: [Wait; 5] = [
    Wait {
        name: "completion_port",
        reason: "WrQueue",
        mode: 1,
        waits: "KernelBase.dll!GetQueuedCompletionStatus;ntdll!NtRemoveIoCompletion;nt!NtRemoveIoCompletion;nt!IoRemoveIoCompletion;nt!KeRemoveQueueEx",
        wakes: "KernelBase.dll!PostQueuedCompletionStatus;ntdll!NtSetIoCompletion;nt!NtSetIoCompletion;nt!IoSetIoCompletionEx;nt!KeInsertQueue",
    },
    Wait {
        name: "thread_pool",
        reason: "WrQueue",
        mode: 1,
        waits: "ntdll!TppWorkerThread;ntdll!NtWaitForWorkViaWorkerFactory;nt!NtWaitForWorkViaWorkerFactory;nt!IoRemoveIoCompletion;nt!KeRemoveQueueEx",
        wakes: "ntdll!TpPostWork;ntdll!TppWorkPost;ntdll!NtReleaseWorkerFactoryWorker;nt!NtReleaseWorkerFactoryWorker;nt!KeInsertQueue",
    },
    Wait {
        name: "dotnet_pool",
        reason: "WrQueue",
        mode: 1,
        waits: "coreclr.dll!ThreadNative::KickOffThread;System.Private.CoreLib.dll!System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart;System.Private.CoreLib.dll!System.Threading.LowLevelLifoSemaphore.WaitForSignal;KernelBase.dll!GetQueuedCompletionStatus;ntdll!NtRemoveIoCompletion;nt!NtRemoveIoCompletion;nt!IoRemoveIoCompletion;nt!KeRemoveQueueEx",
        wakes: "System.Private.CoreLib.dll!System.Threading.ThreadPoolWorkQueue.EnsureThreadRequested;System.Private.CoreLib.dll!System.Threading.LowLevelLifoSemaphore.ReleaseCore;KernelBase.dll!PostQueuedCompletionStatus;ntdll!NtSetIoCompletion;nt!NtSetIoCompletion;nt!IoSetIoCompletionEx;nt!KeInsertQueue",
    },
    Wait {
        name: "condition",
        reason: "WrAlertByThreadId",
        mode: 1,
        waits: "KernelBase.dll!SleepConditionVariableSRW;ntdll!RtlSleepConditionVariableSRW;ntdll!NtWaitForAlertByThreadId;nt!NtWaitForAlertByThreadId;nt!KeWaitForAlertByThreadId",
        wakes: "ntdll!RtlWakeConditionVariable;ntdll!NtAlertThreadByThreadId;nt!NtAlertThreadByThreadId;nt!KeAlertThreadByThreadId",
    },
    Wait {
        name: "event",
        reason: "UserRequest",
        mode: 1,
        waits: "KernelBase.dll!WaitForSingleObjectEx;ntdll!NtWaitForSingleObject;nt!NtWaitForSingleObject;nt!ObWaitForSingleObject;nt!KeWaitForSingleObject",
        wakes: "KernelBase.dll!SetEvent;ntdll!NtSetEvent;nt!NtSetEvent;nt!KeSetEvent",
    },
];

/// A thread that sleeps; a timer wakes it.
pub(crate) const SLEEP: Wait = Wait {
    name: "sleep",
    reason: "DelayExecution",
    mode: 1,
    waits: "KernelBase.dll!SleepEx;ntdll!NtDelayExecution;nt!NtDelayExecution;nt!KeDelayExecutionThread",
    wakes: "",
};
/// Reads, writes and flushes that wait for the disk.
pub(crate) const READ: Wait = io(
    "read",
    "KernelBase.dll!ReadFile;ntdll!NtReadFile;nt!NtReadFile;nt!IopSynchronousServiceTail;nt!IofCallDriver;Ntfs.sys!NtfsFsdRead;Ntfs.sys!NtfsNonCachedIo;Ntfs.sys!NtfsWaitSync;nt!KeWaitForSingleObject",
);
/// See [`READ`].
pub(crate) const WRITE: Wait = io(
    "write",
    "KernelBase.dll!WriteFile;ntdll!NtWriteFile;nt!NtWriteFile;nt!IopSynchronousServiceTail;nt!IofCallDriver;Ntfs.sys!NtfsFsdWrite;Ntfs.sys!NtfsNonCachedIo;Ntfs.sys!NtfsWaitSync;nt!KeWaitForSingleObject",
);
/// See [`READ`].
pub(crate) const FLUSH: Wait = io(
    "flush",
    "KernelBase.dll!FlushFileBuffers;ntdll!NtFlushBuffersFile;nt!NtFlushBuffersFileEx;nt!IopSynchronousServiceTail;nt!IofCallDriver;Ntfs.sys!NtfsFsdFlushBuffers;nt!KeWaitForSingleObject",
);
/// A page that comes from the disk.
pub(crate) const FAULT: Wait = Wait {
    name: "fault",
    reason: "WrPageIn",
    mode: 0,
    waits: "nt!KiPageFault;nt!MmAccessFault;nt!MiDispatchFault;nt!MiIssueHardFault;nt!MiWaitForInPageComplete;nt!KeWaitForSingleObject",
    wakes: "",
};

const fn io(name: &'static str, waits: &'static str) -> Wait {
    Wait { name, reason: "Executive", mode: 0, waits, wakes: "" }
}

/// A lock or a queue.
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) wait: Wait,
    /// At the start.
    pub(crate) items: u64,
}

/// A disk that serves so many transfers at a time.
pub(crate) struct Disk {
    pub(crate) number: u32,
    pub(crate) service: Option<Dist>,
    pub(crate) depth: u32,
}

/// All of a scenario.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) locks: Vec<Object>,
    pub(crate) queues: Vec<Object>,
    pub(crate) disks: Vec<Disk>,
}

impl Objects {
    pub(crate) fn new(text: &Text, place: &SourceText) -> Result<Objects> {
        let mut objects = Objects::default();
        for table in &text.lock {
            let t = table.get_ref();
            let object = object(&t.name, t.kind.as_deref(), 0, &LOCKS, &objects.locks);
            objects.locks.push(object.map_err(|e| place.error(Some(table.span()), e))?);
        }
        for table in &text.queue {
            let t = table.get_ref();
            let object = object(&t.name, t.kind.as_deref(), t.items, &QUEUES, &objects.queues);
            objects.queues.push(object.map_err(|e| place.error(Some(table.span()), e))?);
        }
        for table in &text.disk {
            let t = table.get_ref();
            let depth = t.depth.unwrap_or(1);
            if objects.disks.iter().any(|d| d.number == t.number) || !(1..=1024).contains(&depth) {
                let message = format!("disk {}: each has one [[disk]], with depth 1 to 1024", t.number);
                return Err(place.error(Some(table.span()), message));
            }
            objects.disks.push(Disk { number: t.number, service: t.service.clone(), depth });
        }
        Ok(objects)
    }

    /// The place of a lock or queue in its list.
    pub(crate) fn find(list: &[Object], what: &str, name: &str) -> std::result::Result<usize, String> {
        let names = || one_of(list.iter().map(|o| o.name.as_str()));
        let found = list.iter().position(|o| o.name == name);
        found.ok_or_else(|| format!("there is no [[{what}]] with the name {name:?}; known: {}", names()))
    }
}

fn object(
    name: &str,
    kind: Option<&str>,
    items: u64,
    kinds: &[Wait],
    others: &[Object],
) -> std::result::Result<Object, String> {
    if name.is_empty() || others.iter().any(|o| o.name == name) {
        return Err(format!("name = {name:?}: each needs a name of its own"));
    }
    let wait = match kind {
        None => kinds.first(),
        Some(kind) => kinds.iter().find(|w| w.name == kind),
    };
    let allowed = || one_of(kinds.iter().map(|w| w.name));
    let wait = wait.ok_or_else(|| format!("kind = {:?}: allowed are {}", kind.unwrap_or(""), allowed()))?;
    Ok(Object { name: name.into(), wait: *wait, items })
}
