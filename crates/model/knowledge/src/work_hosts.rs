//! Who called the routine of a thread of the System process: how such threads begin, and by which functions they run work that was queued.
//!
//! What stands below these functions, and nothing else, says whose work a worker thread does. A routine of Windows there (the
//! cache's lazy writer, the memory manager) is its own, whatever drivers it meets further in.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::stack_tags::canonical_module;
use crate::table::rows;

/// What a function at the outer end of a system thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkHost {
    /// Begins the thread.
    Start,
    /// Takes work from the queue of the worker threads.
    Queue,
    /// Calls the routine of a work item.
    Item,
}

static HOSTS: LazyLock<HashMap<(String, &'static str), WorkHost>> = LazyLock::new(|| {
    rows(include_str!("../data/work_hosts.tsv"))
        .map(|[module, function, what, _source]| {
            let what = match what {
                "start" => WorkHost::Start,
                "queue" => WorkHost::Queue,
                _ => WorkHost::Item,
            };
            ((canonical_module(module), function), what)
        })
        .collect()
});

/// What this function of the kernel does at the outer end of a system thread; none for all others. The module may have a path and may
/// lack its extension, the function is matched with case.
pub fn work_host(module: &str, function: &str) -> Option<WorkHost> {
    HOSTS.get(&(canonical_module(module), function)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_ends_of_system_threads() {
        assert_eq!(work_host("ntoskrnl.exe", "PspSystemThreadStartup"), Some(WorkHost::Start));
        assert_eq!(work_host(r"\SystemRoot\system32\NTOSKRNL.EXE", "ExpWorkerThread"), Some(WorkHost::Queue));
        assert_eq!(work_host("Wdf01000.sys", "FxWorkItem::WorkItemThunk"), Some(WorkHost::Item));
        assert_eq!(work_host("ntoskrnl.exe", "CcWorkerThread"), None);
        assert_eq!(work_host("ntoskrnl.exe", ""), None);
    }

    #[test]
    fn every_row_has_a_role_and_a_source() {
        for [module, function, what, source] in rows(include_str!("../data/work_hosts.tsv")) {
            assert!(["start", "queue", "item"].contains(&what), "{module}!{function}: {what}");
            assert!(source.starts_with("https://learn.microsoft.com/"), "{module}!{function}: {source}");
        }
    }
}
