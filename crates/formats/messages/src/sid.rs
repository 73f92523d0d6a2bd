//! Accounts and groups that have the same SID on every machine.
//!
//! [Security identifiers](https://learn.microsoft.com/windows-server/identity/ad-ds/manage/understand-security-identifiers)
//! and \[MS-DTYP\] 2.4.2.4. Names are those that Event Viewer shows on an English Windows: without `NT AUTHORITY\`.

/// SID and name, sorted by SID.
const WELL_KNOWN: [(&str, &str); 73] = [
    ("S-1-0-0", "NULL SID"),
    ("S-1-1-0", "Everyone"),
    ("S-1-15-2-1", "ALL APPLICATION PACKAGES"),
    ("S-1-15-2-2", "ALL RESTRICTED APPLICATION PACKAGES"),
    ("S-1-16-0", "Mandatory Label\\Untrusted Mandatory Level"),
    ("S-1-16-12288", "Mandatory Label\\High Mandatory Level"),
    ("S-1-16-16384", "Mandatory Label\\System Mandatory Level"),
    ("S-1-16-20480", "Mandatory Label\\Protected Process Mandatory Level"),
    ("S-1-16-28672", "Mandatory Label\\Secure Process Mandatory Level"),
    ("S-1-16-4096", "Mandatory Label\\Low Mandatory Level"),
    ("S-1-16-8192", "Mandatory Label\\Medium Mandatory Level"),
    ("S-1-16-8448", "Mandatory Label\\Medium Plus Mandatory Level"),
    ("S-1-18-1", "Authentication authority asserted identity"),
    ("S-1-18-2", "Service asserted identity"),
    ("S-1-18-3", "Fresh public key identity"),
    ("S-1-18-4", "Key trust identity"),
    ("S-1-18-5", "MFA key property"),
    ("S-1-18-6", "Attested key property"),
    ("S-1-2-0", "LOCAL"),
    ("S-1-2-1", "CONSOLE LOGON"),
    ("S-1-3-0", "CREATOR OWNER"),
    ("S-1-3-1", "CREATOR GROUP"),
    ("S-1-3-2", "CREATOR OWNER SERVER"),
    ("S-1-3-3", "CREATOR GROUP SERVER"),
    ("S-1-3-4", "OWNER RIGHTS"),
    ("S-1-5-1", "DIALUP"),
    ("S-1-5-10", "SELF"),
    ("S-1-5-11", "Authenticated Users"),
    ("S-1-5-12", "RESTRICTED"),
    ("S-1-5-13", "TERMINAL SERVER USER"),
    ("S-1-5-14", "REMOTE INTERACTIVE LOGON"),
    ("S-1-5-15", "This Organization"),
    ("S-1-5-17", "IUSR"),
    ("S-1-5-18", "SYSTEM"),
    ("S-1-5-19", "LOCAL SERVICE"),
    ("S-1-5-2", "NETWORK"),
    ("S-1-5-20", "NETWORK SERVICE"),
    ("S-1-5-3", "BATCH"),
    ("S-1-5-32-544", "BUILTIN\\Administrators"),
    ("S-1-5-32-545", "BUILTIN\\Users"),
    ("S-1-5-32-546", "BUILTIN\\Guests"),
    ("S-1-5-32-547", "BUILTIN\\Power Users"),
    ("S-1-5-32-548", "BUILTIN\\Account Operators"),
    ("S-1-5-32-549", "BUILTIN\\Server Operators"),
    ("S-1-5-32-550", "BUILTIN\\Print Operators"),
    ("S-1-5-32-551", "BUILTIN\\Backup Operators"),
    ("S-1-5-32-552", "BUILTIN\\Replicator"),
    ("S-1-5-32-554", "BUILTIN\\Pre-Windows 2000 Compatible Access"),
    ("S-1-5-32-555", "BUILTIN\\Remote Desktop Users"),
    ("S-1-5-32-556", "BUILTIN\\Network Configuration Operators"),
    ("S-1-5-32-557", "BUILTIN\\Incoming Forest Trust Builders"),
    ("S-1-5-32-558", "BUILTIN\\Performance Monitor Users"),
    ("S-1-5-32-559", "BUILTIN\\Performance Log Users"),
    ("S-1-5-32-560", "BUILTIN\\Windows Authorization Access Group"),
    ("S-1-5-32-561", "BUILTIN\\Terminal Server License Servers"),
    ("S-1-5-32-562", "BUILTIN\\Distributed COM Users"),
    ("S-1-5-32-568", "BUILTIN\\IIS_IUSRS"),
    ("S-1-5-32-569", "BUILTIN\\Cryptographic Operators"),
    ("S-1-5-32-573", "BUILTIN\\Event Log Readers"),
    ("S-1-5-32-574", "BUILTIN\\Certificate Service DCOM Access"),
    ("S-1-5-32-578", "BUILTIN\\Hyper-V Administrators"),
    ("S-1-5-32-579", "BUILTIN\\Access Control Assistance Operators"),
    ("S-1-5-32-580", "BUILTIN\\Remote Management Users"),
    ("S-1-5-33", "WRITE RESTRICTED"),
    ("S-1-5-4", "INTERACTIVE"),
    ("S-1-5-6", "SERVICE"),
    ("S-1-5-64-10", "NTLM Authentication"),
    ("S-1-5-64-14", "SChannel Authentication"),
    ("S-1-5-64-21", "Digest Authentication"),
    ("S-1-5-7", "ANONYMOUS LOGON"),
    ("S-1-5-8", "PROXY"),
    ("S-1-5-80-0", "NT SERVICE\\ALL SERVICES"),
    ("S-1-5-9", "ENTERPRISE DOMAIN CONTROLLERS"),
];

/// The name of a SID that is the same everywhere; nothing for accounts and groups of a machine or domain.
#[must_use]
pub fn well_known(sid: &str) -> Option<&'static str> {
    let at = WELL_KNOWN.binary_search_by_key(&sid, |entry| entry.0).ok()?;
    WELL_KNOWN.get(at).map(|entry| entry.1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sorted_and_found() {
        assert!(super::WELL_KNOWN.is_sorted_by_key(|entry| entry.0));
        assert_eq!(super::well_known("S-1-5-18"), Some("SYSTEM"));
        assert_eq!(super::well_known("S-1-5-32-544"), Some("BUILTIN\\Administrators"));
        assert_eq!(super::well_known("S-1-5-21-1-2-3-500"), None);
    }
}
