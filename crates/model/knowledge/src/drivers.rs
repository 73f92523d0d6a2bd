//! Kernel drivers: who makes them and what they do.

use std::sync::LazyLock;

use crate::Confidence;
use crate::table::{find, rows};

/// What kind of module a driver fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverKind {
    /// A file-system minifilter with one or more altitudes.
    Minifilter,
    /// The kernel itself. Its altitudes are those of its own callbacks.
    Kernel,
    /// Any other kernel module.
    Driver,
    /// A library that runs in processes.
    UserModeDll,
}

impl DriverKind {
    /// In a sentence.
    pub fn words(self) -> &'static str {
        match self {
            DriverKind::Minifilter => "minifilter driver",
            DriverKind::Kernel => "kernel of Windows",
            DriverKind::Driver => "driver",
            DriverKind::UserModeDll => "library that runs in processes",
        }
    }
}

/// One driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverFact {
    /// File name in lower case.
    pub file: &'static str,
    /// Who makes it; empty if unknown.
    pub vendor: &'static str,
    /// What it belongs to; empty if unknown.
    pub product: &'static str,
    /// What it is for, e.g. `antivirus`, `EDR`, `backup`.
    pub category: &'static str,
    /// What the category rests on: `load-order-group` (what the vendor asked Microsoft for, not
    /// necessarily what the product is), `vendor`, `curated`, `LOLDrivers`, `ETWAnalyzer`, `user`.
    pub category_basis: &'static str,
    /// What kind of module it is.
    pub kind: DriverKind,
    /// Altitudes separated by `;`, as registered; several mean several instances or registrations.
    pub(crate) altitudes: &'static str,
    /// Load-order groups separated by `;`, as registered (`FSFilter Anti-Virus`): where the vendor asked to stand.
    pub load_order_groups: &'static str,
    /// How sure this is.
    pub confidence: Confidence,
    /// Keys of the sources separated by `;`, explained in `data/README.md`.
    pub sources: &'static str,
}

impl DriverFact {
    /// The minifilter altitudes as registered, e.g. `328010` or `402120.5`.
    pub fn altitudes(&self) -> impl Iterator<Item = &'static str> {
        self.altitudes.split(';').map(str::trim).filter(|a| !a.is_empty())
    }

    /// True if the only source is a list of abusable drivers. Such a driver is an ordinary utility that
    /// had a vulnerable build; never present it as malware.
    pub fn is_only_listed_as_vulnerable(&self) -> bool {
        self.sources == "LOLDRIVERS"
    }
}

static DRIVERS: LazyLock<Vec<DriverFact>> = LazyLock::new(|| {
    rows(include_str!("../data/drivers.tsv"))
        .map(
            |[
                file,
                vendor,
                product,
                category,
                category_basis,
                kind,
                altitudes,
                groups,
                confidence,
                sources,
            ]| {
                DriverFact {
                    file,
                    vendor,
                    product,
                    category,
                    category_basis,
                    kind: match kind {
                        "minifilter" => DriverKind::Minifilter,
                        "kernel" => DriverKind::Kernel,
                        "user-mode-dll" => DriverKind::UserModeDll,
                        _ => DriverKind::Driver,
                    },
                    altitudes,
                    load_order_groups: groups,
                    confidence: Confidence::parse(confidence),
                    sources,
                }
            },
        )
        .collect()
});

/// All drivers, sorted by file name.
pub fn drivers() -> &'static [DriverFact] {
    &DRIVERS
}

/// The driver of this name in the table that ships; [`driver`](crate::driver) asks the user first.
pub(crate) fn built_in(name: &str) -> Option<&'static DriverFact> {
    find(drivers(), |d| d.file, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver;

    #[test]
    fn the_table_is_whole_and_sorted() {
        assert_eq!(drivers().len(), 2630);
        assert!(drivers().is_sorted_by(|a, b| a.file < b.file));
        assert!(drivers().iter().all(|d| d.file.is_ascii() && d.file == d.file.to_ascii_lowercase()));
        assert!(drivers().iter().all(|d| driver(d.file) == Some(d)));
        assert!(drivers().iter().all(|d| !d.category.is_empty() && !d.sources.is_empty()));
        assert_eq!(drivers().iter().filter(|d| d.confidence == Confidence::High).count(), 2006);
        assert_eq!(drivers().iter().filter(|d| d.altitudes().next().is_some()).count(), 1991);
        // A minifilter is a driver file, with an altitude unless only its name is known.
        assert!(
            drivers().iter().filter(|d| d.kind == DriverKind::Minifilter).all(|d| d.file.ends_with(".sys"))
        );
        // Microsoft's list gives an altitude to each group and a group to each altitude.
        assert!(drivers().iter().all(|d| d.altitudes.is_empty() || !d.load_order_groups.is_empty()));
    }

    #[test]
    fn vendors_come_from_the_registration() {
        let cortex = driver("TEDRDRV.sys").unwrap();
        assert_eq!((cortex.vendor, cortex.category), ("Palo Alto Networks", "EDR"));
        assert_eq!(cortex.confidence, Confidence::High);
        assert_eq!(cortex.altitudes().collect::<Vec<_>>(), ["380430"]);
        assert_eq!(cortex.load_order_groups, "FSFilter Activity Monitor");
        let defender = driver(r"\SystemRoot\system32\drivers\wd\WdFilter.sys").unwrap();
        assert_eq!((defender.vendor, defender.category), ("Microsoft", "antivirus"));
        assert_eq!(driver("nosuchdriver.sys"), None);
        assert_eq!(driver(""), None);
    }

    #[test]
    fn a_vulnerable_build_is_no_verdict() {
        let listed = drivers().iter().filter(|d| d.is_only_listed_as_vulnerable());
        assert_eq!(listed.clone().count(), 304);
        assert!(listed.clone().all(|d| d.category == "third-party-utility"));
    }
}
