//! Classes of system calls, as `strace -e trace=file` names them. Windows has no such classes: they follow from
//! the names of its native routines (Windows Driver Kit and phnt, the System Informer project's headers).

/// A class of system calls.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Its name behind `-e trace=`.
    pub name: &'static str,
    /// What is in it.
    pub meaning: &'static str,
    /// Patterns of names, without `Nt`; `*` stands for anything.
    patterns: &'static [&'static str],
    /// Tables whose events make a call one of this class, whatever its name.
    pub tables: &'static [&'static str],
}

/// All classes.
pub const CLASSES: &[Class] = &[
    Class {
        name: "file",
        meaning: "files and directories",
        patterns: &[
            "*File",
            "*FileEx",
            "*FileEx2",
            "ReadFileScatter",
            "WriteFileGather",
            "QueryInformationByName",
            "CopyFileChunk",
        ],
        tables: &["file_io"],
    },
    Class {
        name: "registry",
        meaning: "registry keys and values",
        patterns: &[
            "*Key",
            "*KeyEx",
            "*Key2",
            "*Key3",
            "*Keys",
            "*KeyTransacted",
            "*KeyTransactedEx",
            "*OpenSubKeys*",
            "*Registry",
        ],
        tables: &["registry"],
    },
    Class {
        name: "network",
        meaning: "sockets (requests to a device) and calls with network events",
        patterns: &["DeviceIoControlFile"],
        tables: &["network"],
    },
    Class {
        name: "process",
        meaning: "processes, threads, jobs",
        patterns: &[
            "*Process",
            "*ProcessEx",
            "*ProcessState*",
            "*Thread",
            "*ThreadEx",
            "*ThreadEx2",
            "*JobObject",
            "*JobSet",
        ],
        tables: &["process"],
    },
    Class {
        name: "memory",
        meaning: "address space and sections",
        patterns: &[
            "*VirtualMemory*",
            "*Section*",
            "*UserPhysicalPages*",
            "FlushInstructionCache",
            "*WriteWatch",
        ],
        tables: &["virtual_alloc"],
    },
    Class {
        name: "sync",
        meaning: "waiting, events, mutants, semaphores, timers, completion ports",
        patterns: &[
            "Wait*",
            "SignalAndWait*",
            "*Event",
            "*EventBoostPriority",
            "*EventPair",
            "*Mutant",
            "*Semaphore",
            "*Timer",
            "*TimerEx",
            "*Timer2",
            "*KeyedEvent",
            "DelayExecution",
            "YieldExecution",
            "*IoCompletion*",
            "*WorkerFactory*",
            "Alert*",
            "TestAlert",
        ],
        tables: &[],
    },
    Class {
        name: "ipc",
        meaning: "ALPC, LPC, named pipes, mailslots",
        patterns: &[
            "Alpc*",
            "*Port",
            "*PortEx",
            "ReplyWaitReceivePort*",
            "CreateNamedPipeFile",
            "CreateMailslotFile",
        ],
        tables: &["alpc"],
    },
    Class {
        name: "security",
        meaning: "tokens, access checks, security descriptors",
        patterns: &[
            "*Token*",
            "AccessCheck*",
            "Privilege*",
            "Impersonate*",
            "*SecurityObject",
            "*AuditAlarm",
        ],
        tables: &[],
    },
    Class {
        name: "object",
        meaning: "handles and the object namespace",
        patterns: &[
            "Close",
            "DuplicateObject",
            "QueryObject",
            "*InformationObject",
            "*DirectoryObject*",
            "*SymbolicLinkObject",
            "CompareObjects",
            "Make*Object",
        ],
        tables: &["handle"],
    },
    Class {
        name: "gui",
        meaning: "windows and graphics (win32k)",
        patterns: &["User*", "Gdi*", "DComposition*", "Dxgk*", "MIT*", "Visual*"],
        tables: &[],
    },
    Class {
        name: "system",
        meaning: "system information, time, power",
        patterns: &[
            "*SystemInformation*",
            "*SystemTime",
            "QueryPerformanceCounter",
            "*TimerResolution",
            "Power*",
            "*SystemPowerState",
            "*SystemEnvironmentValue*",
            "Trace*",
        ],
        tables: &[],
    },
];

/// The classes of a function by its bare name, as numbers in [`CLASSES`].
pub fn classes_of(name: &str) -> impl Iterator<Item = usize> + '_ {
    let name = name.strip_prefix("Nt").or_else(|| name.strip_prefix("Zw")).unwrap_or(name);
    let is = |class: &Class| class.patterns.iter().any(|pattern| matches(pattern, name));
    // Names of win32k say "Key" and "Event" where they mean the keyboard and messages.
    let gui = CLASSES.iter().position(|class| class.name == "gui" && is(class));
    let device = name == "DeviceIoControlFile";
    CLASSES
        .iter()
        .enumerate()
        .filter(move |(number, class)| match gui {
            Some(gui) => *number == gui,
            None => is(class) && !(device && class.name == "file"),
        })
        .map(|(number, _)| number)
}

/// `*` at the ends of a pattern stands for anything, also in its middle once.
fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => {
            pattern.get(1..pattern.len().max(2) - 1).is_some_and(|part| name.contains(part))
        }
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => match pattern.split_once('*') {
            Some((start, end)) => {
                name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
            }
            None => name == pattern,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(function: &str) -> Vec<&'static str> {
        classes_of(function).filter_map(|n| CLASSES.get(n)).map(|c| c.name).collect()
    }

    #[test]
    fn functions_have_the_classes_that_their_names_tell() {
        assert_eq!(names("NtReadFile"), ["file"]);
        assert_eq!(names("NtNotifyChangeDirectoryFileEx"), ["file"]);
        assert_eq!(names("NtDeviceIoControlFile"), ["network"]);
        assert_eq!(names("NtQueryValueKey"), ["registry"]);
        assert_eq!(names("NtOpenKeyEx"), ["registry"]);
        assert_eq!(names("NtWaitForKeyedEvent"), ["sync"]);
        assert_eq!(names("NtUserUnregisterHotKey"), ["gui"]);
        assert_eq!(names("NtCreateUserProcess"), ["process"]);
        assert_eq!(names("NtCreateThreadEx"), ["process"]);
        assert_eq!(names("NtAllocateVirtualMemoryEx"), ["memory"]);
        assert_eq!(names("NtMapViewOfSection"), ["memory"]);
        assert_eq!(names("NtAlpcSendWaitReceivePort"), ["ipc"]);
        assert_eq!(names("NtCreateNamedPipeFile"), ["file", "ipc"]);
        assert_eq!(names("NtClose"), ["object"]);
        assert_eq!(names("NtAlertMultipleThreadByThreadId"), ["sync"]);
        assert_eq!(names("NtFoo"), Vec::<&str>::new());
    }
}
