//! Modules that run other modules' code.

use crate::table::file_name;

/// Frameworks and stacks that host filters, miniports and class drivers. Time seen in them belongs to the
/// module they call or were called by: look one module further before blaming anybody.
pub const HOSTS_NEVER_CULPRITS: &[&str] =
    &["fltmgr", "ndis", "storport", "wdf01000", "tcpip", "netio", "fwpkclnt", "portcls", "usbxhci"];

/// True for [`HOSTS_NEVER_CULPRITS`], in any case, with or without a path and `.sys`.
pub fn is_host(name: &str) -> bool {
    let name = file_name(name);
    let stem = match name.len().checked_sub(4).and_then(|at| name.split_at_checked(at)) {
        Some((stem, end)) if end.eq_ignore_ascii_case(".sys") => stem,
        _ => name,
    };
    HOSTS_NEVER_CULPRITS.iter().any(|host| host.eq_ignore_ascii_case(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_in_any_form() {
        for name in ["fltmgr", "FLTMGR.SYS", r"\SystemRoot\System32\drivers\ndis.sys", "Wdf01000.sys"] {
            assert!(is_host(name), "{name}");
        }
        for name in ["wdfilter.sys", "fltmgr.dll", "", "ndis.sys.sys"] {
            assert!(!is_host(name), "{name}");
        }
    }

    #[test]
    fn every_host_is_a_known_driver() {
        for host in HOSTS_NEVER_CULPRITS {
            assert_eq!(crate::driver(&format!("{host}.sys")).unwrap().vendor, "Microsoft");
        }
    }
}
