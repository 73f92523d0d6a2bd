//! One answer to "what is this?" from a file name and a company.

use crate::table::{file_name, rows};
use crate::{Confidence, DriverFact, ProcessFact, driver, process};

use std::sync::LazyLock;

/// What a classification rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The name is in the table of drivers.
    Driver,
    /// The name is in the table of processes.
    Process,
    /// Only the company is known, and nearly all of its programs are of one category.
    Company,
}

/// What a module or program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// What it is for.
    pub category: &'static str,
    /// Who makes it.
    pub vendor: &'static str,
    /// What it belongs to; empty if unknown.
    pub product: &'static str,
    /// What this rests on.
    pub basis: Basis,
    /// What the category rests on, in a word: that of the table of drivers, `process-name`, `company` or `user`.
    pub category_basis: &'static str,
    /// How sure it is.
    pub confidence: Confidence,
    /// Keys of the sources separated by `;`, explained in `data/README.md`.
    pub sources: &'static str,
}

impl Classification {
    /// The category as one may say it: a guess says that it is one.
    pub fn said(&self) -> String {
        match self.confidence {
            Confidence::Low => format!("probably {}", self.category),
            _ => self.category.to_owned(),
        }
    }
}

/// Categories of products that watch, scan or restrict others for security's sake. Those that only say in which
/// load-order group a filter registered (`activity-monitor`, `content-screener`) are not among them: backup,
/// auditing and quotas register there too.
const SECURITY: &[&str] = &[
    "antivirus",
    "application-control",
    "dlp",
    "edr",
    "firewall",
    "integrity",
    "intrusion-prevention",
    "management/edr",
    "privilege-management",
    "security",
    "security-enhancer",
    "security-monitor",
    "security-ui",
    "vulnerability-scanner",
    "ztna",
    "ztna/dlp",
];

/// True if a category, in any case, is that of security products.
pub fn is_security(category: &str) -> bool {
    SECURITY.iter().any(|security| security.eq_ignore_ascii_case(category))
}

/// A company whose programs are nearly all of one category.
struct Company {
    /// Lower-case start of the company's name as version resources write it.
    prefix: &'static str,
    vendor: &'static str,
    category: &'static str,
}

static COMPANIES: LazyLock<Vec<Company>> = LazyLock::new(|| {
    rows(include_str!("../data/companies.tsv"))
        .map(|[prefix, vendor, category]| Company { prefix, vendor, category })
        .collect()
});

/// What an image (driver, library or program) is, by its name (with or without a path) and the company
/// of its version resource (empty if unknown).
///
/// A name that several programs share counts only if the company agrees, that of a security product's driver only if the company
/// does not disagree.
pub fn category_of(image: &str, company: &str) -> Option<Classification> {
    let name = file_name(image);
    if let Some(fact) = driver(name)
        && !disagrees(company, fact)
    {
        return Some(of_driver(fact));
    }
    if let Some(fact) = process(name)
        && (!fact.ambiguous || agrees(company, fact.vendor))
    {
        return Some(of_process(fact));
    }
    of_company(company)
}

fn of_driver(fact: &'static DriverFact) -> Classification {
    Classification {
        category: fact.category,
        vendor: fact.vendor,
        product: fact.product,
        basis: Basis::Driver,
        category_basis: fact.category_basis,
        confidence: fact.confidence,
        sources: fact.sources,
    }
}

fn of_process(fact: &'static ProcessFact) -> Classification {
    Classification {
        category: fact.category,
        vendor: fact.vendor,
        product: fact.product,
        basis: Basis::Process,
        category_basis: if fact.sources.starts_with(crate::extend::USER) { "user" } else { "process-name" },
        confidence: if fact.ambiguous { Confidence::Low } else { fact.confidence },
        sources: fact.sources,
    }
}

fn of_company(company: &str) -> Option<Classification> {
    let company = company.trim();
    let found = COMPANIES.iter().find(|c| starts_with_word(company, c.prefix))?;
    Some(Classification {
        category: found.category,
        vendor: found.vendor,
        product: "",
        basis: Basis::Company,
        category_basis: "company",
        confidence: Confidence::Low,
        sources: "CURATED",
    })
}

/// Nothing known of the company contradicts nothing, but a guess stays a guess; see [`of_process`].
fn agrees(company: &str, vendor: &str) -> bool {
    let company = company.trim();
    company.is_empty() || starts_with_word(company, &vendor.to_ascii_lowercase())
}

/// Words of many companies' names, which say nothing about who it is.
const COMMON: &[&str] = &[
    "ag",
    "and",
    "antivirus",
    "as",
    "co",
    "company",
    "computer",
    "corp",
    "corporation",
    "cyber",
    "data",
    "digital",
    "driver",
    "file",
    "filter",
    "for",
    "gmbh",
    "group",
    "inc",
    "information",
    "international",
    "kg",
    "labs",
    "limited",
    "llc",
    "ltd",
    "network",
    "networks",
    "of",
    "sa",
    "security",
    "software",
    "solutions",
    "system",
    "systems",
    "technologies",
    "technology",
    "the",
];

/// The file is of a company that has no word in common with the vendor and product that are known by the name of the file, and is no
/// security company: file names are not unique, and a printer's driver had been called an antivirus. What is no security product is
/// taken by its name, as before: makers of devices are bought and renamed all the time, and nobody is accused by that. Driver kits
/// put their own text where the company belongs.
fn disagrees(company: &str, fact: &DriverFact) -> bool {
    let company = company.trim().to_lowercase();
    let says_nothing = company.is_empty() || company.starts_with("windows (r)");
    if says_nothing || !is_security(fact.category) || fact.sources.starts_with(crate::extend::USER) {
        return false;
    }
    let expected = format!("{} {}", fact.vendor, fact.product).to_lowercase();
    let expected: Vec<&str> = words(&expected).collect();
    of_company(&company).is_none() && !words(&company).any(|word| expected.contains(&word))
}

/// The words of a lower-case name that say who it is.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1 && !COMMON.contains(word))
}

/// `text` starts with `prefix` (lower case) in any case, and a word ends there.
fn starts_with_word(text: &str, prefix: &str) -> bool {
    text.split_at_checked(prefix.len()).is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(prefix) && !rest.starts_with(|c: char| c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_companies() {
        let cortex = category_of(r"C:\Windows\System32\drivers\tedrdrv.sys", "Cyvera Ltd.").unwrap();
        assert_eq!((cortex.vendor, cortex.basis), ("Palo Alto Networks", Basis::Driver));
        let defender = category_of("MsMpEng.exe", "").unwrap();
        assert_eq!((defender.category, defender.basis), ("antivirus", Basis::Process));
    }

    #[test]
    fn a_security_driver_is_not_known_by_its_name_if_the_company_is_another() {
        assert_eq!(category_of("a2acc.sys", "Northwind Printers"), None);
        assert_eq!(category_of("tedrdrv.sys", "Northwind Networks Inc."), None);
        for company in ["", "Emsisoft Ltd", "Windows (R) Win 7 DDK provider", "Sophos Limited"] {
            assert_eq!(category_of("a2acc.sys", company).unwrap().vendor, "Emsisoft", "{company}");
        }
        // An adapter's driver is what its name says, whoever has bought its maker.
        assert!(category_of("e1d68x64.sys", "Northwind Networks Inc.").is_some());
    }

    #[test]
    fn an_ambiguous_name_needs_a_company() {
        assert_eq!(category_of("sfc.exe", "Microsoft Corporation"), None);
        let cisco = category_of("sfc.exe", "Cisco Systems, Inc.").unwrap();
        assert_eq!((cisco.vendor, cisco.category), ("Cisco", "EDR"));
        assert_eq!(category_of("sfc.exe", "").unwrap().confidence, Confidence::Low);
    }

    #[test]
    fn an_unknown_name_of_a_known_company() {
        let unknown = category_of("csnew.exe", "CrowdStrike, Inc.").unwrap();
        assert_eq!((unknown.category, unknown.vendor, unknown.basis), ("EDR", "CrowdStrike", Basis::Company));
        assert_eq!(unknown.confidence, Confidence::Low);
        assert_eq!(category_of("x.exe", "CrowdStrikers United"), None);
        assert_eq!(category_of("x.exe", ""), None);
        assert_eq!(category_of("x.exe", "Microsoft Corporation"), None);
    }

    #[test]
    fn what_is_sure_is_said_so() {
        assert_eq!(category_of("tedrdrv.sys", "").unwrap().said(), "EDR");
        assert_eq!(category_of("csnew.exe", "CrowdStrike, Inc.").unwrap().said(), "probably EDR");
        assert!(category_of("tedrdrv.sys", "").unwrap().sources.ends_with("MSDOCS"));
    }

    #[test]
    fn security_products() {
        for name in ["tedrdrv.sys", "WdFilter.sys", "MsMpEng.exe", "csagent.sys"] {
            assert!(is_security(category_of(name, "").unwrap().category), "{name}");
        }
        for name in ["ndis.sys", "1password.exe", "procmon24.sys"] {
            assert!(!is_security(category_of(name, "").unwrap().category), "{name}");
        }
        let categories = crate::drivers().iter().map(|d| d.category);
        let categories = categories.chain(crate::processes().iter().map(|p| p.category));
        let secure = categories.clone().filter(|c| is_security(c)).count();
        assert!(secure > 500 && secure < categories.count() / 2);
    }

    #[test]
    fn companies_are_lower_case_and_distinct() {
        assert!(COMPANIES.len() > 40);
        for company in COMPANIES.iter() {
            assert_eq!(company.prefix, company.prefix.to_lowercase());
            assert_eq!(COMPANIES.iter().filter(|c| c.prefix == company.prefix).count(), 1);
        }
    }
}
