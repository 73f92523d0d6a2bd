//! What a trace cannot answer, and which recording would.

use etwhy_decode::kernel::KernelLayouts;
use etwhy_decode::kernel::events::{Process, StackWalk, Thread};
use etwhy_etl::read::anomalies::COMPACT_CSWITCH;
use etwhy_report::Missing;
use etwhy_table::{Database, RowOf, Rows};
use etwhy_trace::catalog::{event_type::EventTypeRow, ledger::LedgerRow};
use etwhy_trace::event::What;

/// A question that needs events.
struct Question {
    /// The question in the user's words.
    question: &'static str,
    /// Kernel events that answer it, as in `event_type`; with their group where other groups have such a name too.
    kernel: &'static [&'static str],
    /// Providers that answer it too, by a table that reads them.
    providers: &'static [&'static str],
    /// The table that would hold the answer.
    table: &'static str,
}

/// Questions in the order of how often they are asked.
const QUESTIONS: &[Question] = &[
    Question {
        question: "which code used the CPU",
        kernel: &["SampledProfile"],
        providers: &[],
        table: "sample",
    },
    Question {
        question: "who called that code (stacks)",
        kernel: &["Stack", "StackKeyKernel", "StackKeyUser"],
        providers: &[],
        table: "stack",
    },
    Question {
        question: "what threads waited for, and how long",
        kernel: &["CSwitch"],
        providers: &[],
        table: "cswitch",
    },
    Question {
        question: "how long threads that could run stood in the queue of a processor, and who woke them",
        kernel: &["ReadyThread"],
        providers: &[],
        table: "critical_path",
    },
    Question {
        question: "how long drivers held a processor in DPCs and interrupts",
        kernel: &["DPC", "ThreadedDPC", "TimerDPC", "ISR", "ISR-MSI"],
        providers: &[],
        table: "dpc",
    },
    Question {
        question: "which system calls were made and how long they took",
        kernel: &["SysClEnter"],
        providers: &[],
        table: "syscall",
    },
    Question {
        question: "what the disks did",
        kernel: &["DiskIo/Read", "DiskIo/Write", "DiskIo/ReadInit", "DiskIo/WriteInit"],
        providers: &[],
        table: "disk_io",
    },
    Question {
        question: "which files were opened, read and written, and what filter drivers cost",
        kernel: &["FileIo/Create", "FileIo/OperationEnd", "FileIo/PreOpCompletion"],
        providers: &[],
        table: "file_io",
    },
    Question {
        question: "which registry keys were read and by whom",
        kernel: &["Registry/QueryValue", "Registry/KCBCreate", "Registry/KCBRundownEnd"],
        providers: &[],
        table: "registry",
    },
    Question {
        question: "who allocated memory",
        kernel: &["VirtualAlloc", "DemandZeroFault"],
        providers: &[],
        table: "virtual_alloc",
    },
    Question { question: "which handles leak", kernel: &["CreateHandle"], providers: &[], table: "handle" },
    Question {
        question: "when windows did not react",
        kernel: &[],
        providers: &["Microsoft-Windows-Win32k"],
        table: "ui_delay",
    },
];

/// The command that prints the recording that fills a table.
pub fn recording_for(table: &str) -> String {
    let profile = etwhy_record::profile_of_table(table).map_or("all", |profile| profile.name);
    format!("etwhy record --print {profile}")
}

/// Why a table has no rows: its events are not in the trace (and which recording has them), or they are and gave none.
/// Needs table `event_type`.
pub fn why_empty(db: &Database, table: &str) -> Option<String> {
    let holds = |spec: &&&etwhy_trace::AnalysisSpec| spec.tables.iter().any(|t| t.name == table);
    let spec = etwhy_trace::catalog::ALL.iter().find(holds)?;
    let types = db.read::<EventTypeRow>().ok()?;
    // An empty ledger is good news, and so is nothing that could not be decoded.
    if matches!(table, "ledger" | "event" | "undecoded") {
        return None;
    }
    // The ranges come from what is missing, not from events.
    if table == "unobserved" {
        return Some(
            "table unobserved is empty: no buffers are missing; `etwhy dump bill` says why time has no samples"
                .to_owned(),
        );
    }
    let recorded = is_recorded(&types, spec);
    // Everything that reads context switches lacks them.
    let switches = |select: &etwhy_trace::event::Select| select.what == What::Kernel(Thread::CSwitch);
    if !recorded && spec.selects.iter().any(switches) && compact(db) {
        return Some(format!("table {table} is empty: {COMPACT}"));
    }
    Some(match (recorded, etwhy_record::profile_of_table(table)) {
        (true, _) => format!(
            "table {table} is empty, although this trace has events that it is made from; `etwhy dump {table} \
             --help-table` says what makes a row"
        ),
        (false, Some(_)) => format!(
            "table {table} is empty: none of its events were recorded; record: {}",
            recording_for(table)
        ),
        (false, None) => format!("table {table} is empty: none of its events were recorded"),
    })
}

/// Which of these tables are empty because nothing that they are made from was recorded, in a line. Needs table `event_type`.
pub fn not_recorded<'a>(db: &Database, tables: impl Iterator<Item = &'a str>) -> Option<String> {
    let (mut names, mut profiles) = (Vec::new(), Vec::new());
    let mut alone = None;
    for table in tables.filter(|table| db.get(table).is_none_or(|table| table.rows() == 0)) {
        let lacking = lacking(db, table);
        if lacking.is_empty() {
            continue;
        }
        let own = lacking == [table];
        alone = own.then_some(table);
        names.push(if own {
            table.to_owned()
        } else {
            format!("{table} (made from {})", lacking.join(", "))
        });
        for base in lacking {
            let profile = etwhy_record::profile_of_table(base).map(|profile| profile.name);
            profiles.extend(profile.filter(|name| !profiles.contains(name)));
        }
    }
    if let (Some(table), [_]) = (alone, names.as_slice()) {
        return why_empty(db, table);
    }
    let (tables, whose) = if names.len() == 1 {
        ("table", "is empty: none of its")
    } else {
        ("tables", "are empty: none of their")
    };
    let record = match profiles.as_slice() {
        [] => String::new(),
        list => format!("; record: etwhy record --print {}", list.join(",")),
    };
    (!names.is_empty()).then(|| format!("{tables} {} {whose} events were recorded{record}", names.join(", ")))
}

/// Tables that tell who is who and what the machine is: in most traces, and read beside what a derived table is made from.
const BESIDE: [&str; 10] =
    ["trace", "machine", "cpu", "process", "thread", "image", "stack", "stack_frame", "frame", "file"];

/// Tables of events that a table is made from, or it itself, of which no event was recorded.
fn lacking(db: &Database, table: &str) -> Vec<&'static str> {
    let mut lacking = Vec::new();
    let Ok(types) = db.read::<EventTypeRow>() else { return lacking };
    let mut open: Vec<&str> = vec![table];
    let mut at = 0;
    while let Some(name) = open.get(at).copied() {
        at += 1;
        // What is missing and what was lost are no events.
        if matches!(name, "ledger" | "event" | "undecoded" | "unobserved" | "event_type" | "kernel_class") {
            continue;
        }
        let analyses = etwhy_trace::catalog::ALL.iter();
        let mut made = analyses.flat_map(|spec| spec.tables.iter().map(move |table| (spec, &*table.name)));
        if let Some((spec, own)) = made.find(|(_, table)| *table == name) {
            let beside = name != table && BESIDE.contains(&name);
            let filled = db.get(name).is_some_and(|table| table.rows() > 0);
            if !beside && !filled && !spec.selects.is_empty() && !is_recorded(&types, spec) {
                lacking.push(own);
            }
        } else if let Some(derived) =
            etwhy_analysis::derived::ALL.iter().find(|derived| derived.tables.iter().any(|t| t.name == name))
        {
            for read in (derived.reads)() {
                if !open.contains(&&*read.name) {
                    open.push(&read.name);
                }
            }
        }
    }
    lacking
}

/// Whether events were recorded that an analysis makes its rows from.
fn is_recorded(types: &Rows<'_, EventTypeRow>, spec: &etwhy_trace::AnalysisSpec) -> bool {
    types.iter().any(|row| makes_rows(spec).any(|what| is_of(row, what)))
}

/// Why something cannot be determined that is made from a table: its events were not recorded, and which recording has them, or
/// they say nothing. Needs table `event_type`.
pub fn cannot_tell(db: &Database, table: &str) -> String {
    let empty = db.get(table).is_none_or(|table| table.rows() == 0);
    match why_empty(db, table).filter(|_| empty) {
        Some(why) => format!("cannot tell, because {why}"),
        None if empty => format!("cannot tell, because table {table} is empty"),
        None => format!(
            "cannot tell, because the rows of table {table} do not have it: none of that kind came, or it needs \
             events that were not recorded; record: {}",
            recording_for(table)
        ),
    }
}

/// The events that an analysis makes its rows from. Those of processes, threads and stacks, and context switches, are in every
/// trace of a kernel session and read by many analyses beside their own: they count where the first one is such an event too.
fn makes_rows(spec: &etwhy_trace::AnalysisSpec) -> impl Iterator<Item = What> {
    let helps = |what: What| match what {
        What::Kernel(event) => [Process::GROUP, Thread::GROUP, StackWalk::GROUP].contains(&event.group),
        What::Manifest(provider, _) | What::Provider(provider) => provider == KERNEL_PROCESS,
        _ => false,
    };
    let all = spec.selects.first().is_none_or(|first| helps(first.what));
    spec.selects.iter().map(|select| select.what).filter(move |what| all || !helps(*what))
}

/// Whether a row of `event_type` is of a kind of events.
fn is_of(row: RowOf<'_, '_, EventTypeRow>, what: What) -> bool {
    let guid = |wanted: etwhy_base::Guid| {
        row.guid().is_some_and(|guid| guid.eq_ignore_ascii_case(&wanted.to_string()))
    };
    match what {
        What::Kernel(event) => {
            let group = KernelLayouts::builtin().group_guid(event.group).is_some_and(guid);
            row.opcode() == i64::from(event.opcode) && group
        }
        What::Classic(class, ty) => guid(class) && row.opcode() == i64::from(ty),
        What::Manifest(provider, id) => guid(provider) && row.id() == i64::from(id),
        What::Provider(provider) => guid(provider),
        What::AnyUser => row.provider() != KERNEL,
        What::Any => true,
    }
}

/// Microsoft-Windows-Kernel-Process.
const KERNEL_PROCESS: etwhy_base::Guid = etwhy_base::Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");

/// Group (task) names of the kernel, so that `Read` of another provider is not taken for a disk's.
const KERNEL: &str = "Windows Kernel";

/// Why there are no context switches although they were recorded.
const COMPACT: &str = "context switches were recorded in compact form, whose layout is not public";

fn compact(db: &Database) -> bool {
    db.read_or_empty::<LedgerRow>().iter().any(|row| row.name() == COMPACT_CSWITCH.name)
}

/// The questions that this trace has no events for.
pub fn missing(db: &Database) -> Vec<Missing> {
    let mut kernel = std::collections::BTreeSet::new();
    let mut providers = std::collections::BTreeSet::new();
    for row in &db.read_or_empty::<EventTypeRow>() {
        if row.provider() == KERNEL {
            let name = row.name();
            // Short names suffice where no other group has them.
            kernel.insert(name.rsplit('/').next().unwrap_or(name).to_owned());
            kernel.insert(name.to_owned());
            kernel.extend(row.opcode_name().map(str::to_owned));
        } else {
            providers.insert(row.provider().to_owned());
        }
    }
    let compact = compact(db);
    QUESTIONS
        .iter()
        .filter(|q| !q.kernel.iter().any(|k| kernel.contains(*k)))
        .filter(|q| !q.providers.iter().any(|p| providers.contains(*p)))
        .map(|q| Missing {
            question: q.question.to_owned(),
            because: match (q.kernel.first(), q.providers.first()) {
                (Some(&"CSwitch"), _) if compact => COMPACT.to_owned(),
                (Some(event), _) => format!("no {event} events were recorded"),
                (None, Some(provider)) => format!("provider {provider} was not recorded"),
                (None, None) => String::new(),
            },
            record: recording_for(q.table),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_decode::kernel::events::{PageFault, PerfInfo};

    #[test]
    fn events_that_only_help_do_not_make_rows() {
        let of = |table: &str| {
            let spec = etwhy_trace::catalog::ALL.iter().find(|s| s.tables.iter().any(|t| t.name == table));
            makes_rows(spec.unwrap()).collect::<Vec<_>>()
        };
        // Stacks, context switches and ends of threads are in traces without system calls.
        assert_eq!(of("syscall"), [PerfInfo::SysClEnter, PerfInfo::SysClExit].map(What::Kernel));
        assert!(!of("virtual_alloc").contains(&What::Kernel(Process::End)));
        assert!(of("virtual_alloc").contains(&What::Kernel(PageFault::VirtualAlloc)));
        // Where they are the first, they are what the rows are made from.
        assert!(of("cswitch").contains(&What::Kernel(Thread::CSwitch)));
    }

    #[test]
    fn every_question_names_a_profile_of_its_own() {
        for question in QUESTIONS {
            let profile = etwhy_record::profile_of_table(question.table);
            assert!(profile.is_some(), "{}", question.table);
        }
        assert_eq!(recording_for("cswitch"), "etwhy record --print cpu");
        assert_eq!(recording_for("minifilter"), "etwhy record --print file");
    }
}
