//! Whether a query adds up what must not be added up: numbers such as `upid`, and rows of two traces that were joined.
//!
//! Everything in a store is of one trace, and its tables join within one trace only. What a query has grouped by other columns (machines, days,
//! culprits) is of no trace any more and may be joined as it likes. So:
//!
//! * of two tables of traces that are joined, or parts of the query that still have `trace_id`, the condition compares `trace_id`;
//! * a window over such rows is partitioned by `trace_id`;
//! * numbers that mean something within a trace are read only where `trace_id` is;
//! * times and bytes of many traces are added up as real numbers, and no number is a decimal.

use crate::contract;
use std::collections::HashSet;

/// Columns whose numbers mean something within one trace.
const WITHIN: [&str; 9] =
    ["upid", "utid", "stack_id", "frame_id", "growth_id", "logger_id", "pid", "cpu", "parent_upid"];

/// Words that end the list of what a `SELECT` reads.
const ENDS: [&str; 8] = ["where", "group", "having", "order", "limit", "union", "window", "qualify"];

/// What is wrong with a view, in words; nothing if it is right.
pub fn faults(sql: &str) -> Vec<String> {
    let tokens = tokens(sql);
    let mut faults = Vec::new();
    // Readings with damaged clocks have times that no sum of whole numbers holds, and SQLite ends with an error then.
    for sum in tokens.windows(4).filter(|four| four[0] == "sum" && four[3] == ")") {
        if sum[2].ends_with("_ns") || sum[2].ends_with("_bytes") {
            faults.push(format!("sum({}) may overflow: sum(1e0 * {})", sum[2], sum[2]));
        }
    }
    // To Spark `1.0` is a decimal, and what is divided by one is rounded to six places.
    let words = sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    for number in
        words.filter(|word| word.contains('.') && word.parse::<f64>().is_ok() && !word.contains('e'))
    {
        faults.push(format!("{number} is a decimal in Spark: write {}e0", number.trim_end_matches(".0")));
    }
    // Names that stand for rows of traces.
    let mut traced: HashSet<String> =
        contract::tables().iter().map(|table| table.spec.name.to_lowercase()).collect();
    for (name, body) in parts(&tokens) {
        for select in selects(&body) {
            check(&select, &traced, &name, &mut faults);
        }
        // A part that gives no `trace_id` away is of no trace any more.
        match body.iter().any(|token| token == "trace_id") && keeps_trace(&body) {
            true => drop(traced.insert(name)),
            false => drop(traced.remove(&name)),
        }
    }
    faults
}

/// `SELECT` lists `trace_id`, or everything of something that has it.
fn keeps_trace(body: &[String]) -> bool {
    let from = body.iter().position(|token| token == "from").unwrap_or(body.len());
    let list = body.get(..from).unwrap_or_default();
    let counts =
        |at: usize| at > 0 && list.get(at - 1).is_some_and(|before| before == "(" || before == "distinct");
    list.iter().enumerate().any(|(at, token)| token == "trace_id" && !counts(at))
        || list
            .iter()
            .enumerate()
            .any(|(at, token)| token == "*" && at > 0 && list.get(at - 1).is_some_and(|b| b == "."))
            && body.iter().any(|token| token == "trace_id")
}

fn check(select: &[String], traced: &HashSet<String>, name: &str, faults: &mut Vec<String>) {
    let Some(from) = select.iter().position(|token| token == "from") else { return };
    let end = select
        .iter()
        .enumerate()
        .skip(from)
        .find(|(_, token)| ENDS.contains(&token.as_str()))
        .map_or(select.len(), |(at, _)| at);
    let read = select.get(from + 1..end).unwrap_or_default();
    let mut sources = 0;
    for piece in read.split(|token| token == "join" || token == ",") {
        if !piece.first().is_some_and(|table| traced.contains(table)) {
            continue;
        }
        sources += 1;
        let compares = piece
            .windows(3)
            .any(|three| three[1] == "=" && three[0].ends_with("trace_id") && three[2].ends_with("trace_id"));
        if sources > 1 && !compares {
            faults.push(format!(
                "{name}: {} is joined without trace_id",
                piece.first().map_or("", String::as_str)
            ));
        }
    }
    if sources == 0 {
        return;
    }
    let has = |word: &str| select.iter().any(|token| token == word);
    for (at, _) in select.iter().enumerate().filter(|(_, token)| *token == "over") {
        let window: Vec<&String> = select.iter().skip(at).take_while(|token| *token != ")").collect();
        let text: Vec<&str> = window.iter().map(|token| token.as_str()).collect();
        if !text.iter().any(|token| token.ends_with("trace_id")) {
            faults.push(format!("{name}: a window over rows of traces is not partitioned by trace_id"));
        }
    }
    for column in WITHIN {
        let named = select.iter().any(|token| token == column || token.ends_with(&format!(".{column}")));
        if named && !(has("trace_id") || select.iter().any(|token| token.ends_with(".trace_id"))) {
            faults.push(format!("{name}: {column} means nothing without trace_id"));
        }
    }
}

/// The parts of a query in their order: each of `WITH`, and the last one without a name.
fn parts(tokens: &[String]) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    let mut at = usize::from(tokens.first().is_some_and(|token| token == "with"));
    while at > 0 {
        let (Some(name), Some(open)) = (tokens.get(at), tokens.get(at + 2)) else { break };
        if open != "(" {
            break;
        }
        let mut depth = 0usize;
        let close = tokens.iter().enumerate().skip(at + 2).find(|(_, token)| {
            match token.as_str() {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        let Some((close, _)) = close else { break };
        all.push((name.clone(), tokens.get(at + 3..close).unwrap_or_default().to_vec()));
        if tokens.get(close + 1).is_none_or(|token| token != ",") {
            at = close + 1;
            break;
        }
        at = close + 2;
    }
    all.push(("the last part".to_owned(), tokens.get(at..).unwrap_or_default().to_vec()));
    all
}

/// The selects of a part, those in brackets without what is around them.
fn selects(body: &[String]) -> Vec<Vec<String>> {
    body.split(|token| token == "union").map(<[String]>::to_vec).collect()
}

/// Words and signs in lower case, without comments and texts.
fn tokens(sql: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in sql.lines() {
        let line = line.split("--").next().unwrap_or_default().to_lowercase();
        let mut rest = line.as_str();
        while let Some(first) = rest.chars().next() {
            let word = |c: char| c.is_alphanumeric() || matches!(c, '_');
            let length = match first {
                '\'' => rest.get(1..).and_then(|text| text.find('\'')).map_or(rest.len(), |end| end + 2),
                c if word(c) => {
                    // `t.column` is one word.
                    rest.find(|c: char| !word(c) && c != '.').unwrap_or(rest.len())
                }
                c => c.len_utf8(),
            };
            let (token, after) = rest.split_at(length);
            match token.strip_suffix('.') {
                Some(table) if after.starts_with('*') => all.extend([table.to_owned(), ".".to_owned()]),
                _ if !token.trim().is_empty() && first != '\'' => all.push(token.to_owned()),
                _ => {}
            }
            rest = after;
        }
    }
    // `t.trace_id` names the same column as `trace_id` does.
    all.into_iter()
        .map(|token| {
            token.rsplit_once('.').filter(|(_, c)| !c.is_empty()).map_or(token.clone(), |(_, c)| c.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_view_mixes_traces() {
        let flags: Vec<&str> = contract::tables()
            .iter()
            .flat_map(|table| table.spec.columns.iter())
            .filter(|column| column.ty == etwhy_table::ColumnType::Bool)
            .map(|column| column.name.as_ref())
            .collect();
        for view in crate::views::all() {
            assert_eq!(faults(view.sql), Vec::<String>::new(), "{}", view.name);
            // What SQLite, DuckDB and Spark understand alike.
            let other = etwhy_sql::subset::faults(view.sql, &|name| flags.contains(&name));
            assert_eq!(other, Vec::<String>::new(), "{}", view.name);
        }
    }

    #[test]
    fn what_mixes_traces_is_found() {
        let wrong = [
            "SELECT b.culprit FROM bill AS b JOIN machine AS m ON m.machine_id = b.machine_id",
            "SELECT b.culprit FROM bill AS b, machine AS m WHERE m.trace_id = b.trace_id",
            "SELECT upid, sum(1e0 * total_cpu_ns) FROM bill GROUP BY upid",
            "SELECT trace_id, 1.0 * total_cpu_ns FROM bill",
            "SELECT culprit, sum(b.total_cpu_ns) FROM bill AS b GROUP BY culprit",
            "SELECT row_number() OVER (PARTITION BY culprit ORDER BY total_cpu_ns) FROM bill",
            "WITH a AS (SELECT trace_id, culprit FROM bill) SELECT a.culprit FROM a JOIN process AS p ON p.name = a.culprit",
            "WITH a AS (SELECT b.* FROM bill AS b WHERE b.trace_id <> '') SELECT a.culprit FROM a JOIN process AS p ON p.name = a.culprit",
        ];
        for sql in wrong {
            assert!(!faults(sql).is_empty(), "{sql}");
        }
        let right = [
            "SELECT b.culprit FROM bill AS b JOIN machine AS m ON m.trace_id = b.trace_id",
            "WITH a AS (SELECT culprit, count(DISTINCT trace_id) AS n FROM bill GROUP BY culprit) SELECT a.n FROM a JOIN knowledge AS k ON k.name = a.culprit",
            "WITH a AS (SELECT machine_id, max(model) AS model FROM trace GROUP BY machine_id), b AS (SELECT machine_id, culprit FROM bill GROUP BY machine_id, culprit) \
             SELECT b.culprit, row_number() OVER (PARTITION BY model ORDER BY culprit) FROM b JOIN a ON a.machine_id = b.machine_id",
        ];
        for sql in right {
            assert_eq!(faults(sql), Vec::<String>::new(), "{sql}");
        }
    }
}
