//! Why threads leave their processors.

/// Why a thread leaves a processor: `OldThreadState`, `OldThreadWaitReason`, `OldThreadWaitMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) state: u8,
    pub(crate) reason: u8,
    pub(crate) mode: u8,
}

impl Switch {
    /// It waits (UserRequest, user mode).
    pub(crate) const WAITING: Switch = Switch { state: 5, reason: 6, mode: 1 };
    /// It was preempted and stays ready (WrPreempted).
    pub(crate) const PREEMPTED: Switch = Switch { state: 1, reason: 32, mode: 0 };

    /// `KWAIT_REASON` by its name.
    pub(crate) fn reason(name: &str) -> Result<u8, String> {
        const NAMES: [&str; 43] = [
            "Executive",
            "FreePage",
            "PageIn",
            "PoolAllocation",
            "DelayExecution",
            "Suspended",
            "UserRequest",
            "WrExecutive",
            "WrFreePage",
            "WrPageIn",
            "WrPoolAllocation",
            "WrDelayExecution",
            "WrSuspended",
            "WrUserRequest",
            "WrEventPair",
            "WrQueue",
            "WrLpcReceive",
            "WrLpcReply",
            "WrVirtualMemory",
            "WrPageOut",
            "WrRendezvous",
            "WrKeyedEvent",
            "WrTerminated",
            "WrProcessInSwap",
            "WrCpuRateControl",
            "WrCalloutStack",
            "WrKernel",
            "WrResource",
            "WrPushLock",
            "WrMutex",
            "WrQuantumEnd",
            "WrDispatchInt",
            "WrPreempted",
            "WrYieldExecution",
            "WrFastMutex",
            "WrGuardedMutex",
            "WrRundown",
            "WrAlertByThreadId",
            "WrDeferredPreempt",
            "WrPhysicalFault",
            "WrIoRing",
            "WrMdlCache",
            "WrRcu",
        ];
        let found = NAMES.iter().position(|n| n.eq_ignore_ascii_case(name));
        found
            .map(|i| i as u8)
            .ok_or_else(|| format!("wait_reason = {name:?}: allowed are {}", NAMES.join(", ")))
    }
}
