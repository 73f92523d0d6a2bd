//! The text form of PerfView's baselines.
//!
//! `EVENT <ms>: <provider>/<event> PID=..; TID=..; PName=..; ProceNum=..; DataLen=..; <field>=<value>; ...`
//! and `COUNT <provider>/<event>:<n>`. Values longer than 20 UTF-16 units are cut there and end in `...`; times
//! are UTC. The test that wrote them is `GeneralParsing.cs` of microsoft/perfview.

/// One EVENT line.
#[derive(Debug)]
pub struct Line {
    pub number: usize,
    /// Milliseconds since the session's start, as written, without thousands separators.
    pub ms: String,
    /// Provider and event.
    pub event: String,
    /// PID, TID, PName, ProceNum, DataLen.
    pub head: [String; 5],
    /// Names and values in the order of the line.
    pub fields: Vec<(String, String)>,
}

pub struct Baseline {
    pub events: Vec<Line>,
    pub counts: Vec<(String, u64)>,
}

pub fn parse(text: &str) -> Baseline {
    let mut baseline = Baseline { events: Vec::new(), counts: Vec::new() };
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if let Some(rest) = line.strip_prefix("COUNT ") {
            let (event, count) = rest.rsplit_once(':').unwrap();
            baseline.counts.push((event.to_owned(), count.parse().unwrap()));
            continue;
        }
        let rest = line.strip_prefix("EVENT ").unwrap_or_else(|| panic!("line {}: {line}", index + 1));
        let (ms, rest) = rest.split_once(": ").unwrap();
        let (event, rest) = rest.split_once(" PID=").unwrap();
        let mut fields = pairs(&format!("PID={rest}"));
        assert!(fields.len() >= 5, "line {}: {line}", index + 1);
        let tail = fields.split_off(5);
        let head: Vec<String> = fields.into_iter().map(|(_, value)| value).collect();
        baseline.events.push(Line {
            number: index + 1,
            ms: ms.replace(',', ""),
            event: event.to_owned(),
            head: head.try_into().unwrap(),
            fields: tail,
        });
    }
    baseline
}

/// `a=1; b=x; y; ` with separators inside of values: a field begins behind `; ` with a name and `=`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for part in text.trim_end().trim_end_matches(';').split("; ") {
        match part.split_once('=') {
            Some((name, value)) if is_name(name) => out.push((name.to_owned(), value.to_owned())),
            _ => {
                let (_, value) = out.last_mut().unwrap_or_else(|| panic!("{text}"));
                value.push_str("; ");
                value.push_str(part);
            }
        }
    }
    out
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
