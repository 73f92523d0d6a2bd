//! Files of all forms, made after what documents and other programs show; no real capture was available.

use super::*;
use crate::policy::{Doubt, Form};
use etwhy_base::rng::Rng;

fn of(policy: &Policy, name: &str) -> Option<Setting> {
    let guid = etwhy_knowledge::audit_subcategories().iter().find(|s| s.name == name).unwrap().guid;
    policy.settings().get(guid).copied()
}

/// Six columns behind two empty lines: what third-party parsers of `auditpol /get /category:* /r` expect.
const REPORT: &str = "\r\n\r\nMachine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting\r\n\
    \r\nSRV1,System,Logon,{0CCE9215-69AE-11D9-BED3-505054503030},Success and Failure,\r\n\
    SRV1,System,Filtering Platform Connection,{0CCE9226-69AE-11D9-BED3-505054503030},Success,\r\n\
    SRV1,System,Process Termination,{0CCE922C-69AE-11D9-BED3-505054503030},No Auditing,\r\n";

#[test]
fn reports() {
    let policy = parse(REPORT.as_bytes());
    assert_eq!((policy.form, policy.separator, policy.encoding), (Form::Report, Some(','), "ASCII"));
    assert_eq!((policy.machine.as_deref(), policy.language), (Some("SRV1"), Some("en")));
    assert_eq!((policy.entries.len(), policy.unknown_count), (3, 0));
    assert_eq!(policy.entries[0].line, 5);
    assert_eq!(of(&policy, "Logon"), Some(Setting::Both));
    assert_eq!(of(&policy, "Filtering Platform Connection"), Some(Setting::Success));
    assert_eq!(of(&policy, "Process Termination"), Some(Setting::None));
    assert_eq!(of(&policy, "Logoff"), None);
    for separator in [";", "\t"] {
        let other = parse(REPORT.replace(',', separator).as_bytes());
        assert_eq!(other.entries, policy.entries, "{separator:?}");
    }
    for (bytes, encoding) in [
        ([b"\xEF\xBB\xBF".to_vec(), REPORT.as_bytes().to_vec()].concat(), "UTF-8"),
        ([vec![0xFF, 0xFE], REPORT.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat(), "UTF-16LE"),
        (REPORT.encode_utf16().flat_map(u16::to_be_bytes).collect(), "UTF-16BE"),
    ] {
        let other = parse(&bytes);
        assert_eq!((other.entries.as_slice(), other.encoding), (policy.entries.as_slice(), encoding));
    }
}

/// `auditpol /backup`: options and accounts (AuditPolicyDsc's tests show options, MS-GPAC 2.2.1.3.2 the numbers of accounts).
#[test]
fn backups() {
    let policy = parse(
        b"Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\r\n\
          W1,System,Security State Change,{0cce9210-69ae-11d9-bed3-505054503030},Success,,1\r\n\
          W1,System,Logon,{0cce9215-69ae-11d9-bed3-505054503030},No Auditing,,0\r\n\
          W1,S-1-5-21-1-2-3-1001,Logon,{0cce9215-69ae-11d9-bed3-505054503030},Success,Failure,9\r\n\
          W1,,Option:CrashOnAuditFail,,Disabled,,0\r\n\
          W1,,RegistryGlobalSacl,,,,\r\n",
    );
    assert_eq!((policy.form, policy.entries.len(), policy.unknown_count), (Form::Backup, 5, 0));
    assert_eq!(of(&policy, "Security State Change"), Some(Setting::Success));
    assert_eq!(of(&policy, "Logon"), Some(Setting::None), "the account's line does not count for the system");
    let user = &policy.entries[2];
    assert_eq!(user.account.as_deref(), Some("S-1-5-21-1-2-3-1001"));
    let per_user = user.per_user.unwrap();
    assert_eq!((per_user.include, per_user.exclude), (Setting::Success, Setting::Failure));
    assert_eq!(policy.option("crashonauditfail").map(|e| e.inclusion.as_str()), Some("Disabled"));
    assert!(matches!(&policy.entries[4].subject, Subject::GlobalSacl(name) if name == "RegistryGlobalSacl"));
}

/// Group Policy's file as the German console writes it: header and words by the project SAMADCON, which measured them.
#[test]
fn group_policy() {
    let policy = parse(
        "Computername,Richtlinienziel,Unterkategorie,Unterkategorie-GUID,Aufnahmeeinstellung,Ausschlusseinstellung,Einstellungswert\r\n\
         ,System,Anmelden überwachen,{0cce9215-69ae-11d9-bed3-505054503030},Erfolg und Fehler,,3\r\n\
         ,System,Abmelden überwachen,{0cce9216-69ae-11d9-bed3-505054503030},Nicht konfiguriert,,0\r\n\
         ,System,Dateisystem überwachen,{0cce921d-69ae-11d9-bed3-505054503030},Keine Überwachung,,0\r\n\
         ,System,Neues überwachen,{0cce92ff-69ae-11d9-bed3-505054503030},Erfolgreich,,1\r\n"
            .as_bytes(),
    );
    assert_eq!((policy.form, policy.encoding, policy.language), (Form::Gpo, "UTF-8", Some("de")));
    assert_eq!(of(&policy, "Logon"), Some(Setting::Both));
    assert_eq!(of(&policy, "Logoff"), Some(Setting::Unspecified));
    assert_eq!(of(&policy, "File System"), Some(Setting::None));
    let later = policy.entries.last().unwrap();
    assert_eq!(later.subject, Subject::Guid("0CCE92FF-69AE-11D9-BED3-505054503030".to_owned()));
    assert_eq!(later.setting, Setting::Success);
}

/// What scripts write into audit.csv: names without a GUID, in the wrong columns (seen in public repositories).
#[test]
fn scripts() {
    let policy = parse(
        b"Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\n\
          ,File Share,,,Success and Failure,,3\n,,Audit Logon,{0cce9215-69ae-11d9-bed3-505054503030},3,,3\n",
    );
    assert_eq!(policy.form, Form::Gpo);
    assert_eq!(of(&policy, "File Share"), Some(Setting::Both));
    assert_eq!(of(&policy, "Logon"), Some(Setting::Both));
}

/// Russian words without a number (a public test of another parser has this header).
#[test]
fn words_of_other_languages() {
    let policy = parse(
        "Имя компьютера,Целевой объект политики,Подкатегория,GUID подкатегории,Параметр включения,Параметр исключения\r\n\
         HOST,Система,Вход в систему,{0CCE9215-69AE-11D9-BED3-505054503030},Успех и Отказ,\r\n\
         HOST,Система,Выход из системы,{0CCE9216-69AE-11D9-BED3-505054503030},Какое-то слово,\r\n"
            .as_bytes(),
    );
    assert_eq!((of(&policy, "Logon"), policy.unknown_count), (Some(Setting::Both), 0));
    // A word that is not known may mean anything, also where it is the only one.
    assert_eq!(of(&policy, "Logoff"), Some(Setting::Unknown));
    assert_eq!(policy.entries.iter().map(|e| e.doubt).collect::<Vec<_>>(), [None, Some(Doubt::Word)]);
    let two = parse(
        "H,System,a,{0CCE9215-69AE-11D9-BED3-505054503030},Success,\nH,System,b,{0CCE9216-69AE-11D9-BED3-505054503030},uno,\n\
         H,System,c,{0CCE9217-69AE-11D9-BED3-505054503030},due,\n"
            .as_bytes(),
    );
    assert_eq!((two.unknown_settings, of(&two, "Logoff")), (2, Some(Setting::Unknown)));
}

/// As people read it: title, header, categories at the margin, subcategories behind two blanks.
#[test]
fn texts() {
    let english = "System audit policy\r\n\r\nCategory/Subcategory                      Setting\r\nSystem\r\n\
        \x20 Security System Extension               No Auditing\r\n  IPsec Driver                            No Auditing\r\n\
        Logon/Logoff\r\n  Logon                                   Success and Failure\r\n\
        \x20 Other Logon/Logoff Events               Failure\r\nDS Access\r\n\
        \x20 Detailed Directory Service Replication  Success\r\n";
    let policy = parse(english.as_bytes());
    assert_eq!((policy.form, policy.separator, policy.language), (Form::Text, None, Some("en")));
    assert_eq!((policy.entries.len(), policy.unknown_count), (5, 0));
    assert_eq!(of(&policy, "Logon"), Some(Setting::Both));
    assert_eq!(of(&policy, "Other Logon/Logoff Events"), Some(Setting::Failure));
    assert_eq!(of(&policy, "Detailed Directory Service Replication"), Some(Setting::Success));
    let german = "Systemüberwachungsrichtlinie\nKategorie/Unterkategorie                  Einstellung\nObjektzugriff\n\
        \x20 Filterplattformverbindung               Fehler\n  Filterplattform: Verworfene Pakete      Keine Überwachung\n\
        \x20 Detaillierte VerzeichnisdienstreplikationErfolg\n  Eine neue Unterkategorie                Erfolg\n";
    let policy = parse(german.as_bytes());
    assert_eq!((policy.entries.len(), policy.language), (3, Some("de")));
    assert_eq!(of(&policy, "Filtering Platform Connection"), Some(Setting::Failure));
    assert_eq!(of(&policy, "Filtering Platform Packet Drop"), Some(Setting::None));
    assert_eq!(of(&policy, "Detailed Directory Service Replication"), Some(Setting::Success));
    assert_eq!((policy.unknown_count, policy.unknown[0].line), (1, 7));
    let spanish = "  Inicio de sesión    Aciertos y errores\n  Registro   Sin auditoría\n";
    let policy = parse(spanish.as_bytes());
    assert_eq!((of(&policy, "Logon"), of(&policy, "Registry")), (Some(Setting::Both), Some(Setting::None)));
}

#[test]
fn damage_costs_the_lines_that_it_hits() {
    let damaged = REPORT.replace("SRV1,System,Filtering", "SRV1,\"System,Filtering");
    let policy = parse(damaged.as_bytes());
    assert_eq!((policy.entries.len(), of(&policy, "Process Termination")), (3, Some(Setting::None)));
    let cut = &REPORT.as_bytes()[..REPORT.len() - 45];
    let policy = parse(cut);
    assert_eq!((policy.entries.len(), policy.unknown_count), (2, 1));
    assert_eq!(policy.unknown[0].reason, "neither a subcategory's GUID nor an option");
    // A number that says something else than the words: the number is what Windows applies (MS-GPAC 2.2.1.3.1).
    let policy = parse(b",System,Test,{0CCE9215-69AE-11D9-BED3-505054503030},Success,,0\n,System,L,{0CCE9216-69AE-11D9-BED3-505054503030},Failure,,7");
    assert_eq!((policy.with_doubt(Doubt::Disagree), of(&policy, "Logon")), (1, Some(Setting::None)));
    assert_eq!((of(&policy, "Logoff"), policy.unknown_settings), (Some(Setting::Unknown), 1));
    let twice = format!("{REPORT}SRV1,System,Logon,{{0CCE9215-69AE-11D9-BED3-505054503030}},Failure,\r\n");
    let policy = parse(twice.as_bytes());
    assert_eq!((policy.repeated.as_slice(), of(&policy, "Logon")), (&["Logon"][..], Some(Setting::Failure)));
}

#[test]
fn what_is_no_policy_is_empty() {
    for bytes in
        [&b""[..], b"\0\0\0\0\0\0\0\0", b"hello\n  world    again\n", b"a,b,c,d,e,f,g\n1,2,3,4,5,6,7\n"]
    {
        let policy = parse(bytes);
        assert!(policy.is_empty(), "{bytes:?}");
    }
}

/// Any bytes end in a result whose size is bounded by theirs.
#[test]
fn hostile_bytes() {
    let seeds: Vec<Vec<u8>> = vec![
        REPORT.as_bytes().to_vec(),
        REPORT.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "Systemüberwachungsrichtlinie\n  Anmelden     Erfolg\n".as_bytes().to_vec(),
        b"W1,S-1-5-21-1,Logon,{0cce9215-69ae-11d9-bed3-505054503030},Success,Failure,9\r\n".to_vec(),
    ];
    let mut rng = Rng::new(1);
    let mut next = |below: usize| rng.index(below);
    for round in 0..3000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=next(8) {
            let at = next(bytes.len());
            match next(5) {
                0 => bytes[at] = u8::try_from(next(256)).unwrap(),
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, b"\",;\t{}\r\n\0\xFF"[next(10)]),
                3 => bytes.extend_from_within(at..),
                _ => drop(bytes.drain(at..(at + next(9)).min(bytes.len()))),
            }
            if bytes.is_empty() {
                bytes.push(b',');
            }
        }
        let policy = parse(&bytes);
        assert!(policy.entries.len() + policy.unknown.len() <= bytes.len());
        assert!(policy.entries.iter().all(|e| e.name.chars().count() <= 300));
    }
}
