use super::*;
use crate::parse;
use crate::policies::effective;

const DAY: i64 = 86_400_000_000_000;

fn row(label: &str, switch: &str, success: bool, records: i64, bytes: i64) -> Measured {
    let guid = |head: &str| Some(format!("0CCE{head}-69AE-11D9-BED3-505054503030"));
    Measured { guid: guid(label), switch: guid(switch), success: Some(success), records, bytes }
}

/// 10 MB in two days: connections 6 MB (5 allowed, 1 blocked), closed handles under File System 2 MB, logons 1.5, logoffs 0.5.
fn log() -> LogCost {
    LogCost {
        name: "SRV1".to_owned(),
        bytes: 10_000_000,
        records: 10_000,
        span_ns: 2 * DAY,
        size_bytes: 20_000_000,
        wrapped: false,
        rows: vec![
            row("9226", "9226", true, 5000, 5_000_000),
            row("9226", "9226", false, 1000, 1_000_000),
            row("921D", "9223", true, 2000, 2_000_000),
            row("9215", "9215", true, 1500, 1_500_000),
            row("9216", "9216", true, 500, 500_000),
        ],
    }
}

fn policy(lines: &[(&str, u32)]) -> Vec<Effective> {
    let mut text = String::new();
    for (guid, value) in lines {
        text.push_str(&format!("W,System,x,{{0CCE{guid}-69AE-11D9-BED3-505054503030}},,,{value}\n"));
    }
    effective(&[("p.csv".to_owned(), parse(text.as_bytes()))])
}

fn short(advised: &Advised) -> Vec<(&str, bool, Tier, i64)> {
    advised.proposals.iter().map(|p| (p.subcategory.name, p.success, p.tier, p.bytes)).collect()
}

#[test]
fn a_log_alone() {
    let advised = advise(&[], Some(&log()), Role::Server);
    assert_eq!(
        short(&advised),
        [
            // General Success is No on its page; "IF" stands in its stronger column, which the reasons say.
            ("Filtering Platform Connection", true, Tier::Safe, 5_000_000),
            ("Handle Manipulation", true, Tier::Safe, 2_000_000),
            ("Logon", true, Tier::Decide, 1_500_000),
            ("Filtering Platform Connection", false, Tier::Decide, 1_000_000),
        ]
    );
    // Logoff is 5 % and in the baseline: not spoken of. Failures of connections: the page recommends them.
    assert!(advised.proposals.iter().all(|p| p.subcategory.name != "Logoff"));
    let handle = advised.proposals.iter().find(|p| p.subcategory.name == "Handle Manipulation").unwrap();
    assert_eq!(
        handle.command(),
        "auditpol /set /subcategory:{0CCE9223-69AE-11D9-BED3-505054503030} /success:disable"
    );
    assert!(handle.reasons.iter().any(|reason| reason.contains("4658")));
    let wfp = &advised.proposals[0];
    assert!(wfp.reasons.iter().any(|reason| reason.contains("a scenario asks for it")), "{:?}", wfp.reasons);
    let logon = advised.proposals.iter().find(|p| p.subcategory.name == "Logon").unwrap();
    assert!(logon.reasons.iter().any(|reason| reason.contains("goes below the baseline")));
    assert_eq!(advised.lines[0].subcategory.name, "Filtering Platform Connection");
    assert_eq!(advised.lines[0].evident(), Setting::Both);
    // The label is File System's, the switch Handle Manipulation's.
    let files = advised.lines.iter().find(|l| l.subcategory.name == "File System").unwrap();
    assert_eq!(
        (files.bytes(), files.outcomes[0].switch_bytes, files.evident()),
        (2_000_000, 0, Setting::None)
    );
}

#[test]
fn savings_and_rollover() {
    let log = log();
    let advised = advise(&[], Some(&log), Role::Server);
    assert_eq!(advised.saving(Tier::Safe), 7_000_000);
    // 5 MB a day into 20 MB: four days; with 3 of 10 MB left as long as 40/3 days.
    assert_eq!(log.per_day(log.bytes), Some(5_000_000.0));
    assert_eq!(log.rollover_days(), Some(4.0));
    let after = log.rollover_days_without(7_000_000).unwrap();
    assert!((after - 40.0 / 3.0).abs() < 1e-9, "{after}");
    // A log that overwrites reaches back as far as it does.
    let wrapped = LogCost { wrapped: true, ..log.clone() };
    assert_eq!(wrapped.rollover_days(), Some(2.0));
    assert_eq!(log.rollover_days_without(10_000_000), None, "nothing would be left");
    let short = LogCost { span_ns: 1, ..log };
    assert_eq!((short.rollover_days(), short.per_day(5)), (None, None));
}

#[test]
fn a_policy_alone() {
    // Connections both, token rights success, process creation success, logon failure only, process termination off.
    let policy = policy(&[("9226", 3), ("924A", 1), ("922B", 1), ("9215", 2), ("922C", 0)]);
    let advised = advise(&policy, None, Role::Client);
    assert_eq!(
        short(&advised),
        [
            ("Filtering Platform Connection", true, Tier::Safe, 0),
            // "IF" on its page.
            ("Token Right Adjusted Events", true, Tier::Decide, 0),
        ]
    );
    // The baseline wants successes of logons; what the file does not name is not known.
    let below: Vec<(&str, bool)> =
        advised.below_baseline().map(|(line, success)| (line.subcategory.name, success)).collect();
    assert_eq!(below, [("Logon", true)]);
}

#[test]
fn both() {
    let policy = policy(&[("9226", 2), ("9215", 3)]);
    let advised = advise(&policy, Some(&log()), Role::Server);
    let wfp = advised.lines.iter().find(|l| l.subcategory.name == "Filtering Platform Connection").unwrap();
    assert_eq!(
        (wfp.setting, wfp.outcomes[0].on, wfp.outcomes[0].disagrees),
        (Some(Setting::Failure), Some(false), true)
    );
    let proposal = advised
        .proposals
        .iter()
        .find(|p| p.subcategory.name == "Filtering Platform Connection" && p.success)
        .unwrap();
    assert!(proposal.reasons.iter().any(|reason| reason.contains("off already")));
    // Not in the file, but in the log: on.
    let logoff = advised.lines.iter().find(|l| l.subcategory.name == "Logoff").unwrap();
    assert_eq!((logoff.setting, logoff.outcomes[0].on, logoff.outcomes[1].on), (None, Some(true), None));
}

#[test]
fn domain_controllers_are_known_by_their_tickets() {
    assert_eq!(role_of(&log()), None);
    let mut dc = log();
    dc.rows.push(row("9242", "9242", true, 1, 1000));
    assert_eq!(role_of(&dc), Some(Role::Dc));
}

#[test]
fn what_is_safe_is_recommended_by_nobody() {
    for role in Role::ALL {
        for subcategory in audit_subcategories() {
            for success in [true, false] {
                let head = subcategory.guid.get(4..8).unwrap();
                let log = LogCost { rows: vec![row(head, head, success, 10, 10_000_000)], ..log() };
                for proposal in
                    advise(&[], Some(&log), role).proposals.iter().filter(|p| p.tier == Tier::Safe)
                {
                    let s = proposal.subcategory;
                    for pair in [s.baseline_of(role), s.stronger_of(role), s.page_of(role)] {
                        assert!(
                            !matches!(pair.for_outcome(success), Advice::Yes | Advice::If),
                            "{} {role:?}",
                            s.name
                        );
                    }
                    assert_ne!(s.page_stronger_of(role).for_outcome(success), Advice::Yes, "{}", s.name);
                    assert_ne!(s.page_of(role).for_outcome(success), Advice::Unread, "{}", s.name);
                }
            }
        }
    }
}

#[test]
fn three_documents_are_listed_as_people_do() {
    assert_eq!(listed(&["a"]), "a");
    assert_eq!(listed(&["a", "b"]), "a and b");
    assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
}
