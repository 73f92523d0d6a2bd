//! The lists of where PerfView's names, formats and counts differ from ours, each line with its reason:
//! `names.txt`, `fields.txt`, `counts.txt`.

use std::path::Path;

/// One line of `fields.txt`: `<event> | <field> | <rule> | <reason>`; `*` stands for any text in the first two.
pub struct Rule {
    pub event: String,
    pub field: String,
    pub what: Vec<String>,
    pub line: String,
}

/// One line of `counts.txt`: `<trace> | <event> | <PerfView's count> | <our count> | <reason>`.
pub struct CountRule {
    pub trace: String,
    pub event: String,
    pub perfview: String,
    pub ours: String,
    pub line: String,
}

/// Cells of all lines of a list; the last cell is the reason and must not be empty.
fn lines<const N: usize>(file: &str) -> Vec<([String; N], String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/perfview").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let cells = |line: &str| {
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let cells: [String; N] = cells.try_into().unwrap_or_else(|_| panic!("{file}: {line}"));
        assert!(!cells[N - 1].is_empty(), "{file}: no reason: {line}");
        (cells, line.to_owned())
    };
    lines.map(cells).collect()
}

/// (PerfView's provider/event, ours).
pub fn names() -> Vec<(String, String)> {
    lines("names.txt").into_iter().map(|([perfview, ours, _], _)| (perfview, ours)).collect()
}

pub fn rules() -> Vec<Rule> {
    let of = |([event, field, what, _], line): ([String; 4], String)| {
        let what = what.split_whitespace().map(str::to_owned).collect();
        Rule { event, field, what, line }
    };
    lines("fields.txt").into_iter().map(of).collect()
}

pub fn counts() -> Vec<CountRule> {
    let of = |([trace, event, perfview, ours, _], line): ([String; 5], String)| CountRule {
        trace,
        event,
        perfview,
        ours,
        line,
    };
    lines("counts.txt").into_iter().map(of).collect()
}

/// Names with `*` for any text.
pub fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            tail.is_empty() || (0..=rest.len()).any(|i| rest.is_char_boundary(i) && like(tail, &rest[i..]))
        }),
    }
}
