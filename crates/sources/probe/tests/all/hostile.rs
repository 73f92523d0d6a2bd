//! Files of results are input: whatever they say, nothing panics, and no name becomes more than a name.

use etwhy_base::rng::Rng;
use etwhy_doc::terminal::Terminal;
use etwhy_probe::compare::{self, tax};
use etwhy_probe::outcome::Outcome;
use etwhy_probe::show::{compared, page, results};
use etwhy_probe::tables;
use etwhy_table::Memory;

const NAME: &str = "</style><script>alert(1)</script>\u{1b}[31m\u{202e}\r\n| x |";

fn results(started: u64) -> String {
    let mut samples = Vec::new();
    for round in 0..6 {
        for n in 1..=12 {
            samples.push(format!(
                r#"{{"measure":"new file","n":{n},"round":{round},"start_ns":1,"operations":10,"value":{},"unit":"ns","wall_ns":{},"cpu_ns":9,"queue_ns":1,"blocked_ns":0,"waits":1,"p50_ns":{},"p95_ns":9,"p99_ns":9,"max_ns":9}}"#,
                n * 100 + round * 7 + started,
                n * 1000,
                n * 90 + round
            ));
        }
        for variant in [NAME, "second run"] {
            let variant = serde_json::to_string(variant).unwrap();
            samples.push(format!(
                r#"{{"measure":"open","variant":{variant},"round":{round},"start_ns":1,"operations":0,"value":0,"unit":"%","wall_ns":18446744073709551615,"cpu_ns":null}}"#
            ));
        }
    }
    let name = serde_json::to_string(NAME).unwrap();
    format!(
        r#"{{"schema":"etwhy.probe/1","version":"0.1.0","started_utc_s":{started},"took_ns":5,"machine":{{"facts":[{{"name":{name},"value":{name}}}]}},
        "products":[{{"name":{name},"kind":"process","evidence":{name}}}],
        "probes":[{{"probe":"name-search","state":"off","parameters":{{"files":"500"}},"samples":[{0}],"notes":[{name}],
        "ended":{name},"suspects":[{{"name":{name},"process":7,"kind":{name},"evidence":[{name}],"cpu_ns":18446744073709551615,"confidence":"proven"}}]}},
        {{"probe":"name-search","state":"on","parameters":{{}},"samples":[{0}],"notes":[],"suspects":[]}},
        {{"probe":{name},"parameters":{{}},"samples":[{0}],"notes":[],"suspects":[]}}]}}"#,
        samples.join(",")
    )
}

/// Everything that is done with results.
fn all(outcome: &Outcome) -> String {
    let mut shown = Terminal::plain(80).render(&results::document(outcome, Some(1e15), false));
    shown.push_str(&page::report(outcome, None));
    let labels = || [NAME.to_owned(), "on".to_owned()];
    let mut comparisons = Vec::new();
    comparisons.extend(compare::states(outcome, labels()));
    let mut other = outcome.clone();
    other.started_utc_s = other.started_utc_s.wrapping_add(1);
    comparisons.extend(compare::files(&[(NAME.into(), outcome.clone())], &[("b".into(), other)], labels()));
    for one in &comparisons {
        shown.push_str(&Terminal::plain(80).render(&compared::text(one, 1e15, true)));
        shown.push_str(&page::comparison(one, outcome, 10.0, false));
        shown.push_str(&tax::summary(one));
    }
    let files = [(NAME.to_owned(), outcome.clone())];
    let db = tables::database(&files, comparisons.first(), None, &Memory::unlimited()).unwrap();
    assert_eq!(
        db.get("probe_run").unwrap().rows(),
        outcome.probes.iter().map(|p| p.samples.len()).sum::<usize>()
    );
    shown
}

#[test]
fn names_stay_names() {
    let outcome = Outcome::parse(results(1).as_bytes()).unwrap();
    let text = Terminal::plain(80).render(&results::document(&outcome, None, false));
    for line in text.lines() {
        assert!(etwhy_doc::layout::width(line) <= 80, "{line}");
        assert!(!line.contains(['\u{1b}', '\u{202e}', '\r', '\n']), "{line:?}");
    }
    let page = page::report(&outcome, None);
    let compared = compare::states(&outcome, ["off".into(), NAME.into()]).unwrap();
    assert!(page.contains("class=\"whisker\""), "{page}");
    // Both states have the same values: their intervals have no width, and no whiskers.
    for page in [page, page::comparison(&compared, &outcome, 10.0, false)] {
        assert!(!page.contains("<script") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
        assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'"));
        for part in ["&lt;script&gt;", "<svg"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        for tag in ["svg", "table", "section", "div", "p", "ul", "dl", "h2"] {
            let opened =
                page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"), "no number became a word");
    }
}

#[test]
fn damaged_results_break_nothing() {
    let whole = results(1);
    let _ = all(&Outcome::parse(whole.as_bytes()).unwrap());
    let mut rng = Rng::new(5);
    let pieces: [&[u8]; 8] =
        [b"0", b"1e308", b"-1", b"18446744073709551615", b"null", b"\"\"", b"1e-320", b"99999"];
    let mut read = 0;
    for _ in 0..300 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=rng.index(4) {
            // A number becomes another one.
            let from = rng.index(bytes.len());
            let Some(start) = (from..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else { continue };
            let end = (start..bytes.len()).find(|at| !bytes[*at].is_ascii_digit()).unwrap_or(bytes.len());
            bytes.splice(start..end, pieces[rng.index(pieces.len())].iter().copied());
        }
        if let Ok(outcome) = Outcome::parse(&bytes) {
            read += 1;
            let _ = all(&outcome);
        }
    }
    assert!(read > 50, "{read} of 300 mutants were results");
}
