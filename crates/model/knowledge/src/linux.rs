//! Programs of security products on Linux.

use std::sync::LazyLock;

use crate::table::rows;

/// One program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinuxProcessFact {
    /// Name of the program, in its own case.
    pub process: &'static str,
    /// Who makes it.
    pub vendor: &'static str,
    /// What it belongs to.
    pub product: &'static str,
    /// What it is for, e.g. `antivirus`, `EDR`.
    pub category: &'static str,
    /// Debian package that it comes in; empty if unknown.
    pub package: &'static str,
    /// Keys of the sources separated by `;`, explained in `data/README.md`.
    pub sources: &'static str,
}

static PROCESSES: LazyLock<Vec<LinuxProcessFact>> = LazyLock::new(|| {
    rows(include_str!("../data/linux_processes.tsv"))
        .map(|[process, vendor, product, category, package, sources]| LinuxProcessFact {
            process,
            vendor,
            product,
            category,
            package,
            sources,
        })
        .collect()
});

/// The program of this name, which is compared exactly. Linux cuts names of processes (`comm`) at 15 characters: a name of
/// that length also stands for a longer one that begins so.
pub fn linux_process(name: &str) -> Option<&'static LinuxProcessFact> {
    const CUT: usize = 15;
    PROCESSES
        .iter()
        .find(|fact| fact.process == name || (name.len() == CUT && fact.process.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_sorted() {
        let text = include_str!("../data/linux_processes.tsv");
        assert_eq!(PROCESSES.len(), text.lines().filter(|line| !line.starts_with('#')).count());
        assert!(PROCESSES.is_sorted_by_key(|fact| fact.process));
        assert!(PROCESSES.iter().all(|fact| !fact.category.is_empty() && !fact.sources.is_empty()));
    }

    #[test]
    fn names_may_be_cut() {
        assert_eq!(linux_process("clamonacc").map(|fact| fact.package), Some("clamav-daemon"));
        assert_eq!(linux_process("sentinelone-age").map(|fact| fact.vendor), Some("SentinelOne"));
        assert_eq!(linux_process("sentinelone-agen"), None);
        assert_eq!(linux_process("bash"), None);
    }
}
