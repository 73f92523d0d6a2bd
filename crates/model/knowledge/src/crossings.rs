//! Where a driver hands work to another layer of Windows.
//!
//! A filter that passes a packet up or an I/O request down is on the stack of everything that the layers beyond do with it. They would do
//! the same without the filter, so it is not charged with it. What it asks Windows for (memory, locks, names of files, requests of its
//! own) is another matter: that would vanish with it.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::stack_tags::{canonical_module, glob};
use crate::table::rows;

/// Functions by which a driver hands work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerCrossing {
    /// File name of the module.
    pub module: &'static str,
    /// Function; `*` stands for any text, also for a function without a name. Matched with case.
    pub function: &'static str,
    /// What is handed on, and to whom.
    pub passes: &'static str,
    /// Page that documents the function.
    pub source: &'static str,
}

static CROSSINGS: LazyLock<Vec<LayerCrossing>> = LazyLock::new(|| {
    rows(include_str!("../data/layer_crossings.tsv"))
        .map(|[module, function, passes, source]| LayerCrossing { module, function, passes, source })
        .collect()
});

static BY_MODULE: LazyLock<HashMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let mut by_module: HashMap<String, Vec<&'static str>> = HashMap::new();
    for crossing in layer_crossings() {
        by_module.entry(canonical_module(crossing.module)).or_default().push(crossing.function);
    }
    by_module
});

/// All of them, in the order of the table.
pub fn layer_crossings() -> &'static [LayerCrossing] {
    &CROSSINGS
}

/// True if a driver that calls this function directly hands work to another layer. `function` is empty where it has no name. The module
/// may have a path and may lack its extension.
pub fn is_layer_crossing(module: &str, function: &str) -> bool {
    let functions = BY_MODULE.get(&canonical_module(module));
    functions.is_some_and(|functions| functions.iter().any(|pattern| glob(pattern, function, false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_os_driver;

    #[test]
    fn what_is_handed_on_and_what_is_asked_for() {
        for (module, function) in [
            ("ntoskrnl.exe", "IofCallDriver"),
            ("nt", "IofCallDriver"),
            ("ndis.sys", "NdisFIndicateReceiveNetBufferLists"),
            ("NDIS", "NdisFSendNetBufferLists"),
            ("Ntfs.sys", "NtfsFsdRead"),
            (r"\SystemRoot\System32\drivers\tcpip.sys", ""),
        ] {
            assert!(is_layer_crossing(module, function), "{module}!{function}");
        }
        for (module, function) in [
            ("ntoskrnl.exe", "ExAllocatePoolWithTag"),
            ("ntoskrnl.exe", "ZwReadFile"),
            ("ntoskrnl.exe", ""),
            ("ndis.sys", "NdisAllocateNetBufferList"),
            ("ndis.sys", ""),
            ("fltmgr.sys", "FltCreateFileEx2"),
            ("filter.sys", "IofCallDriver"),
        ] {
            assert!(!is_layer_crossing(module, function), "{module}!{function}");
        }
    }

    #[test]
    fn only_windows_is_a_layer() {
        for crossing in layer_crossings() {
            let kernel = crossing.module == "ntoskrnl.exe";
            assert!(kernel || is_os_driver(crossing.module, ""), "{}", crossing.module);
            assert!(!crossing.passes.is_empty() && !crossing.source.is_empty(), "{crossing:?}");
        }
    }
}
