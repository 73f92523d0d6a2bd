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
    /// How sure it is.
    pub confidence: Confidence,
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
/// A name that several programs share counts only if the company agrees.
pub fn category_of(image: &str, company: &str) -> Option<Classification> {
    let name = file_name(image);
    if let Some(fact) = driver(name) {
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
        confidence: fact.confidence,
    }
}

fn of_process(fact: &'static ProcessFact) -> Classification {
    Classification {
        category: fact.category,
        vendor: fact.vendor,
        product: fact.product,
        basis: Basis::Process,
        confidence: if fact.ambiguous { Confidence::Low } else { fact.confidence },
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
        confidence: Confidence::Low,
    })
}

/// Nothing known of the company contradicts nothing, but a guess stays a guess; see [`of_process`].
fn agrees(company: &str, vendor: &str) -> bool {
    let company = company.trim();
    company.is_empty() || starts_with_word(company, &vendor.to_ascii_lowercase())
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
        let cortex = category_of(r"C:\Windows\System32\drivers\tedrdrv.sys", "Some Other Company").unwrap();
        assert_eq!((cortex.vendor, cortex.basis), ("Palo Alto Networks", Basis::Driver));
        let defender = category_of("MsMpEng.exe", "").unwrap();
        assert_eq!((defender.category, defender.basis), ("antivirus", Basis::Process));
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
    fn companies_are_lower_case_and_distinct() {
        assert!(COMPANIES.len() > 40);
        for company in COMPANIES.iter() {
            assert_eq!(company.prefix, company.prefix.to_lowercase());
            assert_eq!(COMPANIES.iter().filter(|c| c.prefix == company.prefix).count(), 1);
        }
    }
}
