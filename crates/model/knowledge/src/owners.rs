//! Whose something is, as far as advice goes: nobody is told to stop or remove a part of Windows.

use std::sync::LazyLock;

use crate::table::{compare_lower, file_name, rows};
use crate::{category_of, driver, is_host, is_os_driver, is_system_library, process};

/// Who is responsible for a program, driver or library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It is part of Windows.
    Windows,
    /// Somebody else's product.
    Maker,
    /// Nobody knows: perhaps the user's own.
    Unknown,
}

/// Programs that come with Windows and do its work, in order.
static PROGRAMS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    rows(include_str!("../data/inbox_programs.tsv")).map(|[program, _source]| program).collect()
});

/// Whose a program is, by its name (with or without a path) and the company of its version resource (empty if unknown).
///
/// Shells and hosts of scripts (`cmd.exe`, `powershell.exe`, `w3wp.exe`) do what somebody gave them: they are not listed.
pub fn owner_of_program(name: &str, company: &str) -> Owner {
    let name = file_name(name);
    if PROGRAMS.binary_search_by(|row| compare_lower(row, name)).is_ok() {
        return Owner::Windows;
    }
    let known = process(name).is_some() || category_of(name, company).is_some();
    if known || !company.trim().is_empty() { Owner::Maker } else { Owner::Unknown }
}

/// Whose a driver is, or a library. What Microsoft makes counts as Windows: Defender's filter as well as its drivers for devices.
pub fn owner_of_module(name: &str, company: &str) -> Owner {
    let name = file_name(name);
    let microsoft = |maker: &str| maker.trim().get(..9).is_some_and(|m| m.eq_ignore_ascii_case("microsoft"));
    let fact = driver(name).map(|fact| fact.vendor);
    if is_host(name)
        || is_os_driver(name, company)
        || is_system_library(name)
        || microsoft(fact.unwrap_or(company))
    {
        return Owner::Windows;
    }
    if fact.is_some() || !company.trim().is_empty() { Owner::Maker } else { Owner::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(PROGRAMS.len() > 100 && PROGRAMS.is_sorted(), "{}", PROGRAMS.len());
        assert!(PROGRAMS.iter().all(|name| *name == name.to_ascii_lowercase()));
    }

    #[test]
    fn windows_makers_and_nobody() {
        for name in ["System", "svchost.exe", r"C:\Windows\System32\LSASS.EXE", "explorer.exe", "MsMpEng.exe"]
        {
            assert_eq!(owner_of_program(name, ""), Owner::Windows, "{name}");
        }
        assert_eq!(owner_of_program("acronis_mms.exe", ""), Owner::Maker);
        assert_eq!(owner_of_program("x.exe", "Contoso"), Owner::Maker);
        assert_eq!(owner_of_program("x.exe", ""), Owner::Unknown);
        for name in ["ntoskrnl.exe", "ndis.sys", "stornvme.sys", "WdFilter.sys", "hal.dll", "kernel32.dll"] {
            assert_eq!(owner_of_module(name, ""), Owner::Windows, "{name}");
        }
        assert_eq!(owner_of_module("tedrdrv.sys", ""), Owner::Maker);
        assert_eq!(owner_of_module("x.sys", ""), Owner::Unknown);
    }
}
