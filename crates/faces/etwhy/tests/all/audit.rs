//! `etwhy audit`: policies against recommendations and logs.

use etwhy_testkit::{Json as _, Program, Str as _};
use std::path::Path;

/// The program.
const ETWHY: Program = crate::ETWHY.wide("80");

/// A report of six columns (the form that MS-GPAC and parsers of `auditpol /r` describe), with these settings.
fn report(machine: &str, settings: &[(&str, &str)]) -> String {
    let mut text =
        "\r\nMachine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting\r\n"
            .to_owned();
    for subcategory in etwhy_knowledge::audit_subcategories() {
        let setting = settings
            .iter()
            .find(|(name, _)| *name == subcategory.name)
            .map_or("No Auditing", |(_, setting)| *setting);
        text.push_str(&format!(
            "{machine},System,{},{{{}}},{setting},\r\n",
            subcategory.name, subcategory.guid
        ));
    }
    text
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.str().to_owned()
}

#[test]
fn a_policy_alone() {
    let folder = tempfile::tempdir().unwrap();
    let all = [
        ("Filtering Platform Connection", "Success and Failure"),
        ("Logon", "Success and Failure"),
        ("Process Creation", "Success"),
    ];
    let policy = write(folder.path(), "policy.csv", &report("SRV1", &all));
    let gpo = write(
        folder.path(),
        "audit.csv",
        "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\r\n\
         ,System,Audit Logon,{0cce9215-69ae-11d9-bed3-505054503030},Failure,,2\r\n",
    );
    let restore = folder.path().join("restore.csv");
    let (code, out, err) = ETWHY.ran(&["audit", &policy, &gpo, "--propose", restore.str()]);
    assert_eq!(code, 0, "{err}");
    assert!(out.lines().all(|line| line.chars().count() <= 86), "commands apart, lines fit: {out}");
    for part in [
        "Audit policy of SRV1",
        "auditpol /set /subcategory:{0CCE9226-69AE-11D9-BED3-505054503030} /success:disable",
        "Where the files differ (1)",
        "Below the baseline of Audit Policy Recommendations",
        "Proposed policy",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(
        !out.contains("9226-69AE-11D9-BED3-505054503030} /failure"),
        "its page recommends failures: {out}"
    );
    assert!(err.contains("with 1 setting changed (1 safe proposal)"), "{err}");
    let restored = std::fs::read_to_string(restore).unwrap();
    assert!(restored.contains(
        "SRV1,System,Filtering Platform Connection,{0CCE9226-69AE-11D9-BED3-505054503030},Failure,,2\r\n"
    ));
    assert_eq!(restored.lines().count(), 61);
    let (_, md, _) = ETWHY.ran(&["audit", &policy, "--md"]);
    assert!(
        md.contains("| Filtering Platform Connection | SF |") && md.contains("```bat\nauditpol /set"),
        "{md}"
    );
}

/// Settings as people, other programs and other languages write them, into a policy whose other lines are sound.
const NOT_UNDERSTOOD: [&str; 12] = [
    "Both",
    "Enabled",
    "Success and Faliure",
    "Success, Faliure",
    "None",
    "1",
    "Sukces",
    "Êxito e falha",
    "成功および失敗です",
    "On",
    "Succ",
    "success|failure",
];

/// What could be restored holds nothing that was guessed: for every subcategory and every word that no list has, alone or in all lines,
/// the proposal is refused with file and line, and no report says that it is off.
#[test]
fn no_word_that_is_not_understood_becomes_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let restore = folder.path().join("restore.csv");
    let restore = restore.str();
    for (at, word) in NOT_UNDERSTOOD.iter().enumerate() {
        // `1` is the number for Success: that is no guess.
        let is_number = *word == "1";
        let others = ["Logon", "Credential Validation"].map(|name| (name, *word));
        let one = &others[..1 + at % 2];
        let mut settings = one.to_vec();
        settings.push(("Process Creation", "Success"));
        let text = report("FS01", &settings)
            .replace("No Auditing", if at % 3 == 0 { "Failure" } else { "No Auditing" });
        let policy = write(folder.path(), "policy.csv", &text);
        let (code, out, err) = ETWHY.ran(&["audit", &policy, "--propose", restore]);
        if is_number {
            assert_eq!(code, 0, "{err}");
            std::fs::remove_file(restore).unwrap();
            continue;
        }
        let line = 1 + text.lines().position(|line| line.contains(word)).unwrap();
        assert_eq!((code, out.as_str()), (2, ""), "{word}: {err}");
        assert!(
            err.contains(&format!("policy.csv, line {line}: unknown setting: `{word}` for ")),
            "{word}: {err}"
        );
        assert!(!Path::new(restore).exists(), "{word}");
        let (code, out, err) = ETWHY.ran(&["audit", &policy, "--json"]);
        assert_eq!(code, 1, "{word}: {err}");
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        let subcategories = json["machines"][0]["subcategories"].list();
        for (name, _) in one {
            let found = subcategories.iter().find(|s| s["subcategory"] == *name).unwrap();
            assert_eq!(found["setting"], "unknown");
            assert!(found["outcomes"].list().iter().all(|o| o["on"].is_null()), "{word}: {found}");
        }
        let (_, out, _) = ETWHY.ran(&["audit", &policy]);
        assert!(
            out.contains("Cannot be determined, because the setting was not understood"),
            "{word}: {out}"
        );
        // Nothing at all was understood: that is not a policy that audits nothing.
        let all: Vec<(&str, &str)> =
            etwhy_knowledge::audit_subcategories().iter().map(|s| (s.name, *word)).collect();
        let policy = write(folder.path(), "all.csv", &report("FS01", &all));
        let (code, out, err) = ETWHY.ran(&["audit", &policy]);
        assert_eq!((code, out.as_str()), (2, ""), "{word}: {err}");
        assert!(err.contains("none of the settings") && err.contains("line 3"), "{word}: {err}");
    }
}

/// What would be restored is shown line by line, in every output.
#[test]
fn a_proposal_shows_each_line_before_and_after() {
    let folder = tempfile::tempdir().unwrap();
    let policy = write(
        folder.path(),
        "p.csv",
        &report("S", &[("Filtering Platform Connection", "Success and Failure")]),
    );
    let restore = folder.path().join("restore.csv");
    let restore = restore.str();
    let (code, out, err) = ETWHY.ran(&["audit", &policy, "--propose", restore, "--json"]);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rows = json["proposed"]["rows"].list();
    assert_eq!((rows.len(), json["proposed"]["changed"].as_u64()), (60, Some(1)), "{rows:?}");
    let text = std::fs::read_to_string(restore).unwrap();
    for row in rows {
        let line = format!("{{{}}},{},", row["guid"].str(), row["after"].str());
        assert!(text.contains(&line), "{line}");
        assert_eq!(row["changes"].as_bool(), Some(row["before"] != row["after"]));
    }
    let (_, out, _) = ETWHY.ran(&["audit", &policy, "--propose", restore]);
    let shown = out.lines().find(|line| line.ends_with("changed")).unwrap();
    assert_eq!(
        shown.split_whitespace().collect::<Vec<_>>().join(" "),
        "Filtering Platform Connection Success and Failure Failure changed"
    );
    // Numbers and words that disagree, a target that is no system and no account, a line named twice.
    for line in [
        "S,System,Logon,{0CCE9215-69AE-11D9-BED3-505054503030},Success,,0",
        "S,bob,Logon,{0CCE9215-69AE-11D9-BED3-505054503030},Success,",
    ] {
        let policy =
            write(folder.path(), "q.csv", &format!("{}{line}\r\n", report("S", &[("Logon", "Success")])));
        let (code, _, err) = ETWHY.ran(&["audit", &policy, "--propose", restore]);
        assert!(code == 2 && err.contains("q.csv, line 63"), "{line}: {err}");
    }
}

#[test]
fn a_policy_and_a_log() {
    let Some(log) = etwhy_testkit::corpus_file("evtx/omerbenamram+evtx/security.evtx") else { return };
    let log = log.str();
    let folder = tempfile::tempdir().unwrap();
    // The log has 47 logoffs and is of this machine.
    let all =
        [("Logon", "Success and Failure"), ("Special Logon", "Success"), ("Audit Policy Change", "Success")];
    let policy = write(folder.path(), "policy.csv", &report("WIN-03DLIIOFRRA", &all));
    let (code, out, err) = ETWHY.ran(&["audit", &policy, "--log", log, "--json"]);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let machine = &json["machines"][0];
    assert_eq!((machine["log"]["records"].as_u64(), machine["role"].as_str()), (Some(2261), Some("server")));
    let of = |name: &str| {
        let all = machine["subcategories"].list();
        all.iter().find(|s| s["subcategory"] == name).unwrap()["outcomes"][0].clone()
    };
    assert_eq!(
        (of("Logoff")["records"].as_u64(), of("Logoff")["disagrees_with_log"].as_bool()),
        (Some(47), Some(true))
    );
    assert_eq!((of("Logon")["records"].as_u64(), of("Logon")["on"].as_bool()), (Some(628), Some(true)));
    let sum: u64 = machine["subcategories"]
        .list()
        .iter()
        .flat_map(|s| s["outcomes"].list().iter().map(|o| o["records"].uint()))
        .sum();
    assert!(sum > 2200 && sum <= 2261, "{sum}");
    let other = write(folder.path(), "other.csv", &report("OTHER", &all));
    let (_, out, _) = ETWHY.ran(&["audit", &other, "--log", log]);
    assert!(out.contains("is of another machine"), "{out}");
    let (_, csv, _) = ETWHY.ran(&["audit", "--log", log, "--csv"]);
    assert_eq!(csv.lines().count(), 121, "a line per subcategory and outcome");
    let (_, out, _) = ETWHY.ran(&["audit", "--log", log]);
    assert!(out.contains("Needs a decision") && out.contains("goes below the baseline"), "{out}");
}

#[test]
fn what_is_no_policy_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.csv", "hello\n");
    let (code, out, err) = ETWHY.ran(&["audit", &file]);
    assert!(code != 0 && out.is_empty() && err.contains("no audit policy"), "{code} {err}");
    let file = write(
        folder.path(),
        "hostile.csv",
        "W\x1b[31m,System,\x1b]0;x\x07,{0cce9215-69ae-11d9-bed3-505054503030},Success,\n",
    );
    let (code, out, err) = ETWHY.ran(&["audit", &file]);
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains('\x1b') && !out.contains('\x07'), "{out:?}");
    let (code, _, _) = ETWHY.ran(&["audit"]);
    assert_eq!(code, 2);
}

#[test]
fn logs_come_in_archives_and_through_pipes_and_what_is_none_is_said() {
    let Some(log) = etwhy_testkit::corpus_file("evtx/omerbenamram+evtx/security.evtx") else { return };
    let plain = ETWHY.ran(&["audit", "--log", log.str(), "--csv"]);
    assert_eq!(plain.0, 0, "{}", plain.2);
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("security.evtx.zst");
    std::fs::write(&packed, zstd::encode_all(std::fs::File::open(&log).unwrap(), 1).unwrap()).unwrap();
    assert_eq!(ETWHY.ran(&["audit", "--log", packed.str(), "--csv", "--quiet"]).1, plain.1);
    let piped = std::process::Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(["audit", "--log", "-", "--csv", "--quiet"])
        .stdin(std::fs::File::open(&log).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), plain.1);
    let none = write(folder.path(), "none.evtx", "no log");
    for command in [&["audit", "--csv", "--log"][..], &["evtx", "--counts"][..]] {
        let mut arguments = command.to_vec();
        arguments.extend([log.str(), none.as_str()]);
        let (code, out, said) = ETWHY.ran(&arguments);
        assert_eq!(code, 1, "done in part: {said}");
        assert!(!out.is_empty() && said.contains("none.evtx") && said.contains("log_left_out"), "{said}");
    }
}
