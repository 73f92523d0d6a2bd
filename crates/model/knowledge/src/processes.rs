//! Processes: what a program of a name probably is.

use std::sync::LazyLock;

use crate::Confidence;
use crate::table::{find, rows};

/// One program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFact {
    /// Image name in lower case; a few have no extension, such as `system`.
    pub process: &'static str,
    /// Who makes it.
    pub vendor: &'static str,
    /// What it belongs to.
    pub product: &'static str,
    /// What it is for, e.g. `antivirus`, `EDR`, `backup`.
    pub category: &'static str,
    /// How sure this is.
    pub confidence: Confidence,
    /// Other programs have the same name: without a path or a company this is a guess.
    pub ambiguous: bool,
    /// Keys of the sources separated by `;`, explained in `data/README.md`.
    pub sources: &'static str,
}

static PROCESSES: LazyLock<Vec<ProcessFact>> = LazyLock::new(|| {
    rows(include_str!("../data/processes.tsv"))
        .map(|[process, vendor, product, category, confidence, ambiguous, sources]| ProcessFact {
            process,
            vendor,
            product,
            category,
            confidence: Confidence::parse(confidence),
            ambiguous: ambiguous == "yes",
            sources,
        })
        .collect()
});

/// All programs, sorted by name.
pub fn processes() -> &'static [ProcessFact] {
    &PROCESSES
}

/// The program of this name in the table that ships; [`process`](crate::process) asks the user first.
pub(crate) fn built_in(name: &str) -> Option<&'static ProcessFact> {
    find(processes(), |p| p.process, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn the_table_is_whole_and_sorted() {
        assert_eq!(processes().len(), 534);
        assert!(processes().is_sorted_by(|a, b| a.process < b.process));
        assert!(processes().iter().all(|p| process(p.process) == Some(p)));
        assert!(processes().iter().all(|p| !p.vendor.is_empty() && !p.category.is_empty()));
        assert_eq!(processes().iter().filter(|p| p.confidence == Confidence::High).count(), 84);
    }

    #[test]
    fn defender_and_its_path() {
        let defender =
            process(r"C:\ProgramData\Microsoft\Windows Defender\Platform\4.18\MsMpEng.exe").unwrap();
        assert_eq!((defender.vendor, defender.category), ("Microsoft", "antivirus"));
        assert!(defender.product.contains("Defender") && !defender.ambiguous);
        assert_eq!(process("notepad-of-mine.exe"), None);
    }

    #[test]
    fn ambiguous_names_are_flagged() {
        let names: Vec<_> = processes().iter().filter(|p| p.ambiguous).map(|p| p.process).collect();
        assert_eq!(names, ["box.exe", "cb.exe", "dsa.exe", "mms.exe", "sfc.exe", "smc.exe"]);
    }
}
