//! What a trace cannot answer, and which recording would.

use etwhy_table::Database;
use serde::Serialize;

/// A question that needs events.
struct Question {
    /// The question in the user's words.
    question: &'static str,
    /// Kernel events that answer it: task and opcode names as in `event_type`.
    kernel: &'static [&'static str],
    /// Providers that answer it too.
    providers: &'static [&'static str],
    /// Recordings that hold these events.
    record: &'static str,
}

/// Questions in the order of how often they are asked. Recording commands: Microsoft's documentation of `wpr`
/// (built-in profiles) and `xperf` (kernel flags).
const QUESTIONS: &[Question] = &[
    Question {
        question: "which code used the CPU",
        kernel: &["SampledProfile"],
        providers: &[],
        record: "wpr -start CPU  or  xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile",
    },
    Question {
        question: "who called that code (stacks)",
        kernel: &["Stack", "StackKeyKernel", "StackKeyUser"],
        providers: &[],
        record: "wpr -start CPU  or  xperf -on ... -stackwalk Profile+CSwitch+ReadyThread",
    },
    Question {
        question: "what threads waited for, and who woke them",
        kernel: &["CSwitch"],
        providers: &[],
        record: "wpr -start CPU  or  xperf -on ...+CSWITCH+DISPATCHER -stackwalk CSwitch+ReadyThread",
    },
    Question {
        question: "how long drivers held a processor in DPCs and interrupts",
        kernel: &["DPC", "ThreadedDPC", "TimerDPC", "ISR", "ISR-MSI"],
        providers: &[],
        record: "wpr -start CPU  or  xperf -on ...+DPC+INTERRUPT",
    },
    Question {
        question: "which system calls were made and how long they took",
        kernel: &["SysClEnter"],
        providers: &[],
        record: "xperf -on ...+SYSCALL -stackwalk SyscallEnter",
    },
    Question {
        question: "what the disks did",
        kernel: &["Read", "Write", "ReadInit", "WriteInit"],
        providers: &["Microsoft-Windows-Kernel-Disk"],
        record: "wpr -start DiskIO  or  xperf -on ...+DISK_IO+DISK_IO_INIT",
    },
    Question {
        question: "which files were opened, read and written, and what filter drivers cost",
        kernel: &["Create", "OperationEnd", "PreOpCompletion"],
        providers: &["Microsoft-Windows-Kernel-File"],
        record: "wpr -start FileIO -start Minifilter  or  xperf -on ...+FILE_IO+FILE_IO_INIT+FILENAME+FLT_IO",
    },
    Question {
        question: "which registry keys were read and by whom",
        kernel: &["QueryValue", "KCBCreate", "KCBRundownEnd"],
        providers: &["Microsoft-Windows-Kernel-Registry"],
        record: "wpr -start Registry  or  xperf -on ...+REGISTRY",
    },
    Question {
        question: "who allocated memory",
        kernel: &["VirtualAlloc", "DemandZeroFault"],
        providers: &[],
        record: "wpr -start VirtualAllocation  or  xperf -on ...+VIRT_ALLOC+ALL_FAULTS",
    },
    Question {
        question: "which handles leak",
        kernel: &["CreateHandle"],
        providers: &[],
        record: "wpr -start Handle  or  xperf -on ...+OB_HANDLE",
    },
    Question {
        question: "when windows did not react",
        kernel: &[],
        providers: &["Microsoft-Windows-Win32k"],
        record: "wpr -start DesktopComposition, or provider Microsoft-Windows-Win32k with keyword 0x42000",
    },
];

/// A question without an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    /// What cannot be told.
    pub question: &'static str,
    /// Why not.
    pub because: String,
    /// The recording that would tell.
    pub record: &'static str,
}

/// Group (task) names of the kernel, so that `Read` of another provider is not taken for a disk's.
const KERNEL: &str = "Windows Kernel";

/// The questions that this trace has no events for.
pub fn missing(db: &Database) -> Vec<Missing> {
    let mut kernel = std::collections::BTreeSet::new();
    let mut providers = std::collections::BTreeSet::new();
    if let Some(types) = db.get("event_type") {
        for row in 0..types.rows() as u32 {
            let provider = types.text(row, "provider").unwrap_or("");
            if provider == KERNEL {
                let name = types.text(row, "name").unwrap_or("");
                kernel.insert(name.rsplit('/').next().unwrap_or(name).to_owned());
                kernel.extend(types.text(row, "opcode_name").map(str::to_owned));
            } else {
                providers.insert(provider.to_owned());
            }
        }
    }
    QUESTIONS
        .iter()
        .filter(|q| !q.kernel.iter().any(|k| kernel.contains(*k)))
        .filter(|q| !q.providers.iter().any(|p| providers.contains(*p)))
        .map(|q| Missing {
            question: q.question,
            because: match (q.kernel.first(), q.providers.first()) {
                (Some(event), _) => format!("no {event} events were recorded"),
                (None, Some(provider)) => format!("provider {provider} was not recorded"),
                (None, None) => String::new(),
            },
            record: q.record,
        })
        .collect()
}
