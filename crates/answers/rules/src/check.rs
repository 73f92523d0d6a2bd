//! The tests that a finding's file holds: rows in, verdict out.

use super::evaluate::{Answer, Outcome, evaluate};
use super::rule::{Rule, RuleTest};
use super::text::unfilled;
use etwhy_sql::{Engine, subset};
use etwhy_table::{AdHocBuilder, ColumnSpec, ColumnType, Database, Memory, TableSpec, Unit, Value};

/// What in a finding's queries is outside of the SQL that all databases share (`docs/sql.md`), and counts that they join to texts.
pub fn check_sql(rule: &Rule, specs: &[&TableSpec]) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, query) in rule.queries() {
        let found = subset::faults(&rule.with_thresholds(query), &|name| is_flag(specs, name));
        let joined = subset::joined_counts(query, &|name| is_count(specs, name)).into_iter().map(|count| {
            format!("`{count}` is joined to a text: select it and write {{{count}}} in the text, which parts thousands")
        });
        faults.extend(found.into_iter().chain(joined).map(|fault| format!("{}: {name}: {fault}", rule.id)));
    }
    faults
}

/// True if every table that has a column of this name has a flag in it.
pub fn is_flag(specs: &[&TableSpec], name: &str) -> bool {
    let mut columns = specs.iter().filter_map(|spec| spec.column(name)).peekable();
    columns.peek().is_some() && columns.all(|column| column.ty == ColumnType::Bool)
}

/// True if every table that has a column of this name counts something in it.
fn is_count(specs: &[&TableSpec], name: &str) -> bool {
    let mut columns = specs.iter().filter_map(|spec| spec.column(name)).peekable();
    let is_number = |ty| matches!(ty, ColumnType::I64 | ColumnType::I32 | ColumnType::F64);
    columns.peek().is_some() && columns.all(|column| column.unit == Unit::Count && is_number(column.ty))
}

/// Runs a finding's tests over tables of the contract. `specs`: all tables.
///
/// # Errors
/// What each failing test expected and got.
pub fn check(rule: &Rule, specs: &[&TableSpec]) -> Result<(), Vec<String>> {
    let mut faults = Vec::new();
    for test in &rule.tests {
        match run(rule, test, specs) {
            Ok(outcome) => faults.extend(compare(rule, test, &outcome)),
            Err(fault) => faults.push(fault),
        }
    }
    let faults: Vec<String> = faults.into_iter().map(|fault| format!("{}: {fault}", rule.id)).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn run(rule: &Rule, test: &RuleTest, specs: &[&TableSpec]) -> Result<Outcome, String> {
    let db = database(rule, test, specs)?;
    let engine = Engine::new(&db).map_err(|e| e.to_string())?;
    Ok(evaluate(&engine, rule))
}

/// The tables that a finding's test describes, those that it does not name without rows. `specs`: all tables.
///
/// # Errors
/// What the test names and no table has.
pub fn database(rule: &Rule, test: &RuleTest, specs: &[&TableSpec]) -> Result<Database, String> {
    let mut db = Database::new();
    for spec in specs {
        let mut rows = test.tables.get(spec.name.as_ref()).cloned().unwrap_or_default();
        if spec.name == "event_type" {
            rows.extend(recorded(rule, test));
        }
        if spec.name == "machine" {
            // Nothing is missing unless the test says so.
            for row in &mut rows {
                if let Some(all) =
                    row.get("duration_ns").filter(|_| !row.contains_key("observed_ns")).cloned()
                {
                    row.insert("observed_ns".to_owned(), all);
                }
            }
        }
        let mut builder = AdHocBuilder::new((*spec).clone(), &Memory::default());
        for row in &rows {
            let unknown = row.keys().find(|name| spec.column(name).is_none());
            if let Some(name) = unknown {
                return Err(format!("{}: table {} has no column {name}", test.name, spec.name));
            }
            let cells: Vec<Value<'_>> = spec.columns.iter().map(|c| cell(c, row)).collect();
            builder.push(&cells).map_err(|e| e.to_string())?;
        }
        db.insert(builder.finish().map_err(|e| e.to_string())?);
    }
    if let Some(name) = test.tables.keys().find(|name| !specs.iter().any(|s| s.name == name.as_str())) {
        return Err(format!("{}: there is no table {name}", test.name));
    }
    Ok(db)
}

/// A rundown of processes, which every recording of the kernel has.
const PROCESSES: &str = "Process/DCStart";

/// Rows of `event_type` that make the finding's needs met.
fn recorded(rule: &Rule, test: &RuleTest) -> Vec<toml::Table> {
    let kernel = |event: &str| {
        toml::Table::from_iter([
            ("provider".to_owned(), "Windows Kernel".into()),
            ("name".to_owned(), event.into()),
        ])
    };
    let mut rows = Vec::new();
    if !test.without.iter().any(|event| event == PROCESSES) {
        rows.push(kernel(PROCESSES));
    }
    for need in &rule.needs {
        for event in need.events.iter().filter(|e| !test.without.contains(e)) {
            rows.push(kernel(event));
        }
        for provider in need.providers.iter().filter(|p| !test.without.contains(p)) {
            rows.push(toml::Table::from_iter([("provider".to_owned(), provider.as_str().into())]));
        }
    }
    rows
}

fn cell<'a>(column: &ColumnSpec, row: &'a toml::Table) -> Value<'a> {
    match row.get(column.name.as_ref()) {
        Some(toml::Value::Integer(n)) => Value::I64(*n),
        Some(toml::Value::Float(n)) => Value::F64(*n),
        Some(toml::Value::Boolean(b)) => Value::Bool(*b),
        Some(toml::Value::String(text)) => Value::Text(text),
        _ if column.nullable => Value::Null,
        _ if column.ty.is_text() => Value::Text(""),
        _ => Value::I64(0),
    }
}

fn compare(rule: &Rule, test: &RuleTest, outcome: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    let mut expect = |what: &str, wanted: String, got: String| {
        if wanted != got {
            faults.push(format!("{}: {what} should be {wanted}, is {got}", test.name));
        }
    };
    let reasons: Vec<&str> = outcome.reasons.iter().map(|r| r.text.as_str()).collect();
    let answer = outcome.answer.name();
    expect(
        "the answer",
        test.expect.clone(),
        if answer == test.expect { answer.to_owned() } else { format!("{answer} {reasons:?}") },
    );
    let first = outcome.hits.first();
    if let Some(culprit) = &test.culprit {
        expect("the culprit", culprit.clone(), first.map(|h| h.culprit.clone()).unwrap_or_default());
    }
    if let Some(severity) = &test.severity {
        expect(
            "the severity",
            severity.clone(),
            first.map(|h| h.severity.name().to_owned()).unwrap_or_default(),
        );
    }
    if let Some(hits) = test.hits {
        expect("the number of rows", hits.to_string(), outcome.hits.len().to_string());
    }
    for (name, wanted) in &test.values {
        let got = first.and_then(|h| h.values.get(name));
        let wanted_number = wanted.as_float().or_else(|| wanted.as_integer().map(|n| n as f64));
        let equal = match (wanted_number, got.and_then(|c| c.number())) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs().max(1.0),
            _ => wanted.as_str().is_some() && wanted.as_str() == got.and_then(|c| c.text()),
        };
        if !equal {
            expect(name, format!("{wanted:?}"), format!("{got:?}"));
        }
    }
    let said = outcome.hits.iter().flat_map(|h| [&h.headline, &h.explanation, &h.fix]);
    let said = said.chain(outcome.hits.iter().filter_map(|h| h.effect.as_ref()));
    for text in
        said.chain([&outcome.disproof]).chain(&outcome.caveats).chain(outcome.reasons.iter().map(|r| &r.text))
    {
        if let Some(name) = unfilled(text) {
            expect("the texts", "filled".to_owned(), format!("with {{{name}}}: {text}"));
        }
    }
    let all = match first {
        Some(hit) => format!("{}\n{}\n{}", hit.headline, hit.explanation, hit.fix),
        None => outcome.reasons.iter().map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("\n"),
    };
    for text in test.says.iter().filter(|text| !all.contains(text.as_str())) {
        expect("the text", format!("with `{text}`"), all.clone());
    }
    if let Some(hit) = first {
        if let Some(name) = rule.unknown(&hit.values) {
            expect("the texts", "free of unknown names".to_owned(), format!("with {{{name}}}"));
        }
        if outcome.answer == Answer::Found && (hit.culprit.is_empty() || hit.culprit_kind.is_empty()) {
            expect("the row", "with culprit and culprit_kind".to_owned(), format!("{:?}", hit.values));
        }
    }
    faults
}
