//! Reports made by hand are judged as they deserve.

use etwhy_truth::cause::{Limit, Planted, Target};
use etwhy_truth::kinds;
use etwhy_truth::machine::Cause;
use etwhy_truth::report::Report;
use etwhy_truth::score::{Score, Verdict, judge};
use etwhy_truth::table::Table;

/// A registry storm of one of two w3wp.exe, at this multiple of its limit.
fn storm(multiple: f64) -> Cause {
    let target = Target {
        own: vec!["w3wp.exe (3000)".into(), "w3wp.exe (Shop)".into()],
        shared: Some("w3wp.exe".into()),
        twin: vec!["w3wp.exe (3100)".into(), "w3wp.exe (Blog)".into()],
    };
    let planted = Planted::by(target).needs(multiple, Limit::Fixed(1.0)).costs_s(0.5);
    Cause { kind: kinds::find("registry-storm").unwrap(), planted, multiple }
}

fn finding(id: &str, answer: &str, hits: &[(&str, &str, f64)]) -> String {
    let hits: Vec<String> = hits
        .iter()
        .map(|(culprit, severity, cost)| {
            format!(
                r#"{{"culprit": "w3wp.exe", "severity": "{severity}", "headline": "it", "values": {{"culprit": "{culprit}", "cost_ns": {cost}}}}}"#
            )
        })
        .collect();
    format!(
        r#"{{"id": "{id}", "answer": "{answer}", "reasons": [{{"text": "no events"}}], "hits": [{}]}}"#,
        hits.join(",")
    )
}

fn judged(cause: Cause, findings: &[String]) -> Score {
    let report =
        Report::read(&format!(r#"{{"sentence": "", "findings": [{}]}}"#, findings.join(","))).unwrap();
    judge(&[cause], &report, false)
}

fn verdict(score: &Score) -> Verdict {
    score.causes[0].verdict
}

#[test]
fn who_is_named() {
    for (culprit, expected, accused) in [
        ("w3wp.exe (Shop)", Verdict::First, 0),
        ("w3wp.exe (3000)", Verdict::First, 0),
        ("w3wp.exe", Verdict::Unsaid, 0),
        ("w3wp.exe (Blog)", Verdict::Wrong, 1),
        ("other.exe", Verdict::Wrong, 1),
    ] {
        let score = judged(storm(4.0), &[finding("registry.storm", "found", &[(culprit, "warning", 5e8)])]);
        assert_eq!((verdict(&score), score.accused.len()), (expected, accused), "{culprit}");
    }
}

#[test]
fn what_comes_before_it() {
    let storm_found = finding("registry.storm", "found", &[("w3wp.exe (Shop)", "notice", 5e8)]);
    let info = finding("cpu.dominant", "found", &[("build.exe", "info", 1e9)]);
    let innocent = finding("net.dns-slow", "found", &[("mail.exe", "warning", 1e9)]);
    assert_eq!(verdict(&judged(storm(4.0), &[info, storm_found.clone()])), Verdict::First);
    let score = judged(storm(4.0), &[innocent, storm_found]);
    assert_eq!(verdict(&score), Verdict::Named);
    assert_eq!(
        score.accused.iter().map(|(id, culprit, _)| (id.as_str(), culprit.as_str())).collect::<Vec<_>>(),
        [("net.dns-slow", "mail.exe")]
    );
}

#[test]
fn what_is_not_named() {
    assert_eq!(
        verdict(&judged(storm(4.0), &[finding("registry.storm", "cannot_tell", &[])])),
        Verdict::CannotTell
    );
    assert_eq!(verdict(&judged(storm(4.0), &[finding("registry.storm", "not_found", &[])])), Verdict::Missed);
    assert_eq!(verdict(&judged(storm(4.0), &[])), Verdict::Missed);
}

#[test]
fn what_is_too_small_to_be_named() {
    let named = || finding("registry.storm", "found", &[("w3wp.exe (Shop)", "notice", 5e8)]);
    let quiet = judged(storm(0.5), &[finding("registry.storm", "not_found", &[])]);
    assert_eq!((verdict(&quiet), quiet.accused.len()), (Verdict::Silent, 0));
    let loud = judged(storm(0.5), &[named()]);
    assert_eq!((verdict(&loud), loud.accused.len()), (Verdict::Silent, 1));
    let near = judged(storm(1.0), &[named()]);
    assert_eq!((verdict(&near), near.accused.len()), (Verdict::Either, 0));
}

#[test]
fn costs_and_sums() {
    let score =
        judged(storm(4.0), &[finding("registry.storm", "found", &[("w3wp.exe (Shop)", "notice", 4.5e8)])]);
    assert!((score.causes[0].cost_error.unwrap() - 0.1).abs() < 1e-9);
    let mut table = Table::default();
    table.add(7, &[storm(4.0)], &score);
    let missed = judged(storm(4.0), &[]);
    table.add(8, &[storm(4.0)], &missed);
    let text = table.markdown("2 machines:");
    assert!(text.contains("| registry-storm | 2 | 2 | 1 | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 10.0 % |"), "{text}");
    assert!(text.contains("| culprit first, one cause | 50.0 % (1 of 2) | ≥ 99 % |"), "{text}");
    assert_eq!(table.lines["registry-storm"].seeds, [8]);
}
