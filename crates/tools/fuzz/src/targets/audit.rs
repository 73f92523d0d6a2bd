//! Audit policies.

use super::target::accepted;
use crate::seeds::Seed;
use etwhy_audit::advise::advise;
use etwhy_audit::policies::{differences, effective};
use etwhy_audit::{parse, write};
use etwhy_knowledge::Role;
use std::path::Path;

/// Reads a policy, compares it with itself and with recommendations, writes it and reads that again.
pub fn policy(data: &[u8]) {
    let policy = parse(data);
    assert!(policy.entries.len() + policy.unknown.len() <= data.len());
    if !policy.entries.is_empty() {
        accepted();
    }
    let policies = vec![("mutant.csv".to_owned(), policy)];
    let all = effective(&policies);
    let advised = advise(&all, None, Role::Server);
    assert!(differences(&policies).is_empty(), "one file differs from itself");
    let Some((_, policy)) = policies.first() else { return };
    if let Ok(written) = write::proposed(policy, &[]) {
        assert!(policy.uncertain().is_empty() && written.changed() == 0, "something was guessed");
        let again = parse(written.text.as_bytes());
        for (guid, setting) in again.settings() {
            assert_eq!(policy.settings().get(guid), Some(&setting), "{guid} is another after writing");
        }
    }
    let _ = write::proposed(policy, &advised.proposals);
    let memory = etwhy_table::Memory::unlimited();
    if let Ok(table) = etwhy_audit::table::table(&policies, &memory) {
        assert!(table.rows() <= data.len());
    }
}

/// A policy in each of its forms.
pub fn policy_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let backup = "\r\nMachine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\r\n\
        W1,System,Logon,{0cce9215-69ae-11d9-bed3-505054503030},Success and Failure,,3\r\n\
        W1,S-1-5-21-1,Logon,{0cce9215-69ae-11d9-bed3-505054503030},Success,Failure,9\r\nW1,,Option:CrashOnAuditFail,,Disabled,,0\r\n";
    let text = "Systemüberwachungsrichtlinie\r\nKategorie/Unterkategorie                  Einstellung\r\nObjektzugriff\r\n\
        \x20 Filterplattformverbindung               Fehler\r\n  Handleänderung                          Keine Überwachung\r\n";
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        Seed { name: "backup".into(), data: backup.into() },
        Seed { name: "text".into(), data: text.into() },
        Seed { name: "utf-16".into(), data: utf16(text) },
        Seed { name: "semicolons".into(), data: backup.replace(',', ";").into() },
    ]
}
