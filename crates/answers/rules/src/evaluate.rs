//! Findings asked of tables.

use super::advice::Surroundings;
use super::counter_needs;
use super::facts::{Facts, Reason};
use super::instance::Instance;
use super::loss::Loss;
use super::patience::{Patience, Turn};
use super::rule::{CostOf, Need, Rule, Severity, Subject, Threshold};
use super::shipped;
use etwhy_base::parallel;
use etwhy_base::units::thousands;
pub use etwhy_sql::Cell;
use etwhy_sql::{Engine, SqlError};
use etwhy_table::{Database, Table};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What is said about a question.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes.
    Found,
    /// No, although it would have shown.
    NotFound,
    /// This trace does not tell.
    CannotTell,
}

impl Answer {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Answer::Found => "found",
            Answer::NotFound => "not_found",
            Answer::CannotTell => "cannot_tell",
        }
    }
}

/// One culprit of a finding.
#[derive(Clone, Debug, Serialize)]
pub struct Hit {
    /// Who: the name of a process, a driver, a file, a processor.
    pub culprit: String,
    /// What that is: process, driver, session, file, …
    pub culprit_kind: String,
    /// Which process is meant, if the query says (`culprit_upid`): its texts name it so that no other one is meant.
    #[serde(skip)]
    pub instance: Option<Instance>,
    /// How much this one matters.
    pub severity: Severity,
    /// One sentence with numbers.
    pub headline: String,
    /// What it did, for the verdict's first sentence.
    pub effect: Option<String>,
    /// Why it is slow.
    pub explanation: String,
    /// What to do.
    pub fix: String,
    /// Time that it cost, if the query says (`cost_ns`).
    pub cost_ns: Option<i64>,
    /// Part of the whole that it is, 0 to 1, if the query says (`share`).
    pub share: Option<f64>,
    /// high, medium or low, if the query says.
    pub confidence: Option<String>,
    /// All columns of the row.
    pub values: BTreeMap<String, Cell>,
}

/// The answer to a finding's question.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The finding.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it is about.
    pub topic: String,
    /// What it is asked of.
    #[serde(skip)]
    pub over: Subject,
    /// How much it matters: that of the worst culprit. None where nothing was found.
    pub severity: Option<Severity>,
    /// The answer.
    pub answer: Answer,
    /// Why it cannot be determined.
    pub reasons: Vec<Reason>,
    /// What makes the numbers uncertain.
    pub caveats: Vec<String>,
    /// The culprits, the worst first.
    pub hits: Vec<Hit>,
    /// What would disprove it, of the first culprit.
    pub disproof: String,
    /// The query that anyone can run, thresholds filled in.
    pub sql: String,
    /// Thresholds with their sources.
    pub thresholds: BTreeMap<String, Threshold>,
}

/// The most culprits that a finding names.
const MOST_HITS: usize = 100;

/// Findings for which a further thread saves more than its connection takes: SQLite needs about 1 ms to understand one, however small the tables are.
const FINDINGS_PER_THREAD: usize = 16;

/// Asks all findings about what was read, on up to `threads` threads, and puts them in order.
///
/// # Errors
/// If SQLite refuses a table.
pub fn evaluate_all(db: &Database, rules: &[Rule], threads: usize) -> Result<Vec<Outcome>, SqlError> {
    let facts = Facts::of(db);
    let read: Vec<&Rule> = rules.iter().filter(|rule| db.get(rule.over.table()).is_some()).collect();
    let patience = Mutex::new(Patience::with(db));
    let patience = || patience.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = |engine: &mut Result<Engine, SqlError>, rule: &Rule| {
        let engine = engine.as_ref().map_err(|error| SqlError::Sql(error.to_string()))?;
        let begin = Instant::now();
        let turn = patience().turn();
        let outcome = ask(engine, rule, &facts, &turn);
        patience().is_spent_by(&turn);
        tracing::debug!("finding {}: {:?}, {:.3} s", rule.id, outcome.answer, begin.elapsed().as_secs_f64());
        // What was not found has no severity, but its finding has one.
        Ok((outcome.severity.unwrap_or(rule.severity), outcome))
    };
    let threads = threads.min(read.len() / FINDINGS_PER_THREAD + 1);
    let mut outcomes: Vec<(Severity, Outcome)> = parallel::map(threads, read, || Engine::new(db), asked)
        .into_iter()
        .collect::<Result<_, SqlError>>()?;
    withdraw_all_clear(rules, &mut outcomes);
    sort(rules, &mut outcomes);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Found before untold before not found, worst first. Of equally severe ones first those that are sure who it is, then the costliest.
fn sort(rules: &[Rule], outcomes: &mut [(Severity, Outcome)]) {
    let answer = |o: &Outcome| match o.answer {
        Answer::Found => 0,
        Answer::CannotTell => 1,
        Answer::NotFound => 2,
    };
    let nobody = |id: &str| rules.iter().any(|rule| rule.blames_nobody && rule.id == id);
    let unsure = |o: &Outcome| {
        let low = |hit: &Hit| hit.confidence.as_deref() == Some("low");
        o.hits.first().is_some_and(low) || nobody(&o.id)
    };
    let cost = |o: &Outcome| o.hits.iter().filter_map(|h| h.cost_ns).max().unwrap_or(0);
    outcomes.sort_by_cached_key(|(severity, outcome)| {
        (answer(outcome), Reverse(*severity), unsure(outcome), Reverse(cost(outcome)), outcome.id.clone())
    });
}

/// An all-clear never stands beside a finding above info.
fn withdraw_all_clear(rules: &[Rule], outcomes: &mut [(Severity, Outcome)]) {
    let matters = |o: &Outcome| o.over == Subject::Trace && o.severity > Some(Severity::Info);
    if !outcomes.iter().any(|(_, outcome)| matters(outcome)) {
        return;
    }
    let all_clear = |id: &str| rules.iter().any(|rule| rule.all_clear && rule.id == id);
    for (_, outcome) in outcomes.iter_mut().filter(|(_, outcome)| all_clear(&outcome.id)) {
        if outcome.answer == Answer::Found {
            outcome.answer = Answer::NotFound;
            outcome.severity = None;
            outcome.hits.clear();
            outcome.caveats.clear();
        }
    }
}

/// Asks one finding.
pub fn evaluate(engine: &Engine, rule: &Rule) -> Outcome {
    ask(engine, rule, &Facts::of(engine.database()), &Turn::alone())
}

/// What a shipped finding says where its limits are easier by `factor`: the thresholds named `least…` lower, those named `most…` higher. `None` if
/// there is no such finding, or its tables cannot be asked.
pub fn evaluate_below(db: &Database, id: &str, factor: f64) -> Option<Outcome> {
    let file = shipped::FILES.iter().find(|file| file.name == id)?;
    let mut rule = Rule::parse(file.name, file.head).ok()?;
    for (name, threshold) in &mut rule.thresholds {
        if name.starts_with("least") {
            threshold.value /= factor;
        } else if name.starts_with("most") {
            threshold.value *= factor;
        }
    }
    Some(evaluate(&Engine::new(db).ok()?, &rule))
}

fn ask(engine: &Engine, rule: &Rule, facts: &Facts, turn: &Turn) -> Outcome {
    let mut outcome = Outcome {
        id: rule.id.clone(),
        title: rule.title.clone(),
        topic: rule.topic.clone(),
        over: rule.over,
        severity: None,
        answer: Answer::CannotTell,
        reasons: Vec::new(),
        caveats: Vec::new(),
        hits: Vec::new(),
        disproof: rule.fill(&rule.disproof, None),
        sql: rule.query(),
        thresholds: rule.thresholds.clone(),
    };
    let lacking: Vec<&Need> = rule.needs.iter().filter(|need| !facts.has(need)).collect();
    let always = lacking.iter().filter(|need| need.to_rule_out.is_none());
    outcome.reasons.extend(always.map(|need| Facts::lacking(need)));
    if !outcome.reasons.is_empty() {
        return outcome;
    }
    let answered = answer(engine, rule, &mut outcome, turn)
        .and_then(|()| cannot_rule_out(engine, rule, &lacking, &mut outcome, turn));
    match answered {
        Ok(()) => {}
        Err(error) => {
            let text = turn.is_over().unwrap_or_else(|| format!("its query failed: {error}"));
            outcome.answer = Answer::CannotTell;
            outcome.reasons.push(Reason { text, record: None });
        }
    }
    let could_hide = facts.could_hide(rule).filter(|_| rule.over == Subject::Trace);
    match (outcome.answer, could_hide) {
        (Answer::NotFound, Some(why)) => outcome.is_hidden_by(why),
        (Answer::Found, Some(why)) if rule.all_clear => outcome.is_hidden_by(why),
        (Answer::Found, _) => outcome.caveats.extend(facts.caveats(rule)),
        _ => {}
    }
    if rule.over == Subject::Trace && !facts.stacks {
        outcome.hits.iter_mut().for_each(Hit::is_for_whom_unknown);
        outcome.severity = outcome.hits.iter().map(|hit| hit.severity).max();
    }
    if let Some(loss) = facts.loss.filter(|_| rule.cost_of == Some(CostOf::Samples)) {
        outcome.hits.iter_mut().for_each(|hit| hit.is_missing_samples(&loss));
    }
    outcome
}

impl Hit {
    /// What tells its culprit from others of that name in any recording; a process id does not.
    pub fn role(&self) -> Option<&str> {
        self.instance.as_ref().filter(|i| i.label.starts_with(&self.culprit))?.role.as_deref()
    }

    /// The System process works for drivers and for parts of Windows: only stacks tell for which, and itself it is not to blame.
    fn is_for_whom_unknown(&mut self) {
        if self.culprit == "System" && self.culprit_kind == "process" && self.severity > Severity::Info {
            self.severity = Severity::Info;
            self.headline.push_str("; for which driver or part of Windows cannot be determined, because stacks were not recorded");
        }
    }

    /// Its cost is a sum over samples, of which some are missing.
    fn is_missing_samples(&mut self, loss: &Loss) {
        let Some(cost) = self.cost_ns else { return };
        self.explanation = format!("{} {}", self.explanation, loss.says(cost));
        if let Some((low, high)) = loss.range_of(cost) {
            self.values.insert("cost_low_ns".to_owned(), Cell::I64(low));
            self.values.insert("cost_high_ns".to_owned(), Cell::I64(high));
        }
    }
}

impl Outcome {
    /// What is missing could hold what was not seen.
    fn is_hidden_by(&mut self, why: Reason) {
        self.answer = Answer::CannotTell;
        self.severity = None;
        self.hits.clear();
        self.reasons.push(why);
    }
}

/// A finding may come from anybody: its queries have limits wherever it is asked.
fn rows_of(engine: &Engine, rule: &Rule, sql: &str, turn: &Turn) -> Result<Table, SqlError> {
    engine.keep_views(sql, &turn.limits())?;
    Ok(engine.query_within(&rule.id, sql, usize::MAX, &turn.limits())?.0)
}

fn answer(engine: &Engine, rule: &Rule, outcome: &mut Outcome, turn: &Turn) -> Result<(), SqlError> {
    if let Some(query) = &rule.cannot_tell {
        let rows = rows_of(engine, rule, &rule.with_thresholds(query), turn)?;
        for row in 0..rows.rows() as u32 {
            let record = rows.text(row, "record").map(|profile| format!("etwhy record --print {profile}"));
            let reason = rows.text(row, "reason").unwrap_or("");
            outcome.reasons.push(Reason { text: rule.fill(reason, Some(&values(&rows, row))), record });
        }
        if !outcome.reasons.is_empty() {
            return Ok(());
        }
    }
    let rows = rows_of(engine, rule, &outcome.sql, turn)?;
    let around = Surroundings::read(engine.database());
    let hits = 0..rows.rows().min(MOST_HITS) as u32;
    outcome.hits = hits.map(|row| hit(rule, &rows, row, &around)).collect();
    if let Some(first) = outcome.hits.first() {
        if let Some(name) = rule.unknown(&first.values) {
            let text =
                format!("its texts name `{name}`, which is neither a column of its query nor a threshold");
            outcome.reasons.push(Reason { text, record: None });
            outcome.hits.clear();
            return Ok(());
        }
        outcome.disproof = rule.fill(&rule.disproof, Some(&first.values));
    }
    if rows.rows() > MOST_HITS {
        let all = thousands(rows.rows() as i128);
        outcome
            .caveats
            .push(format!("there are {all}; the first {MOST_HITS} are named, the query gives all"));
    }
    let lacking = counter_needs::lacking(engine.database(), rule);
    outcome.answer = match (outcome.hits.is_empty(), lacking.is_empty()) {
        (false, _) => Answer::Found,
        (true, true) => Answer::NotFound,
        (true, false) => Answer::CannotTell,
    };
    match outcome.answer {
        Answer::Found => outcome.caveats.extend(lacking),
        _ => outcome.reasons.extend(lacking.into_iter().map(|text| Reason { text, record: None })),
    }
    outcome.severity = outcome.hits.iter().map(|hit| hit.severity).max();
    Ok(())
}

/// What was not found may be there all the same, in events that are missing.
fn cannot_rule_out(
    engine: &Engine,
    rule: &Rule,
    lacking: &[&Need],
    outcome: &mut Outcome,
    turn: &Turn,
) -> Result<(), SqlError> {
    if outcome.answer != Answer::NotFound {
        return Ok(());
    }
    for need in lacking {
        let Some(query) = &need.to_rule_out else { continue };
        if rows_of(engine, rule, &rule.with_thresholds(query), turn)?.rows() > 0 {
            outcome.is_hidden_by(Facts::lacking(need));
        }
    }
    Ok(())
}

/// What to do where the name of the culprit is missing.
const UNNAMED: &str = "Who that is was not recorded: record again with the rundown of processes and images \
                       (`etwhy record --print base`).";

/// All columns of a row.
fn values(rows: &Table, row: u32) -> BTreeMap<String, Cell> {
    let columns = rows.spec().columns.iter().enumerate();
    columns.map(|(at, column)| (column.name.to_string(), Cell::from_value(rows.cell(row, at)))).collect()
}

fn hit(rule: &Rule, rows: &Table, row: u32, around: &Surroundings<'_>) -> Hit {
    let mut values = values(rows, row);
    let culprit = values.get("culprit").and_then(Cell::text).unwrap_or_default().to_owned();
    // Whoever is named beside a number of a process (`culprit_upid`, `victim_upid`) is told from others of that name.
    let numbered: Vec<String> =
        values.keys().filter_map(|key| key.strip_suffix("_upid")).map(str::to_owned).collect();
    let mut instance = None;
    for who in numbered {
        let upid = values.remove(&format!("{who}_upid")).and_then(|upid| upid.number());
        let Some(found) = upid.and_then(|upid| around.instance(upid as i64)) else { continue };
        let name = values.get(&who).and_then(Cell::text);
        if name.is_some_and(|name| found.label.starts_with(name)) {
            values.insert(who.clone(), found.label.as_str().into());
        }
        if who == "culprit" {
            instance = Some(found);
        }
    }
    rule.fill_spread(&mut values);
    let text = |name: &str| values.get(name).and_then(Cell::text).map(str::to_owned);
    // A query may choose the words itself.
    let sentence =
        |name: &str, fallback: &str| rule.fill(text(name).as_deref().unwrap_or(fallback), Some(&values));
    let class = |column: &str| {
        let kind = if column == "culprit" { text("culprit_kind") } else { None };
        around.class(&text(column)?, kind.as_deref().unwrap_or_default())
    };
    let fix = if culprit.starts_with("[unknown]") && text("fix").is_none() {
        // Nobody can restart or update what has no name.
        UNNAMED.to_owned()
    } else {
        let value = |name: &str| rule.value(name, Some(&values));
        rule.fix.render(text("fix").as_deref(), &value, &class, around.build)
    };
    Hit {
        culprit,
        instance,
        culprit_kind: text("culprit_kind").unwrap_or_default(),
        severity: text("severity").and_then(|s| Severity::from_name(&s)).unwrap_or(rule.severity),
        headline: sentence("headline", &rule.headline),
        effect: rule.effect.as_deref().and_then(|effect| rule.fill_known(effect, &values)),
        explanation: sentence("explanation", &rule.explanation),
        fix,
        cost_ns: values.get("cost_ns").and_then(Cell::number).map(|n| n as i64),
        share: values.get("share").and_then(Cell::number),
        confidence: text("confidence"),
        values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    fn found(rules: &[Rule], id: &str, severity: Severity) -> (Severity, Outcome) {
        let db = Database::new();
        let engine = Engine::new(&db).unwrap();
        let mut outcome = evaluate(&engine, rules.iter().find(|rule| rule.id == id).unwrap());
        (outcome.answer, outcome.severity) = (Answer::Found, Some(severity));
        (severity, outcome)
    }

    #[test]
    fn who_it_is_comes_before_where_it_is_done() {
        let rules = builtin().unwrap();
        let outcome = |id, severity, cost_ns, confidence: Option<&str>| {
            let (severity, mut outcome) = found(&rules, id, severity);
            outcome.hits.push(Hit {
                culprit: "x.sys".to_owned(),
                instance: None,
                culprit_kind: "driver".to_owned(),
                severity,
                headline: String::new(),
                effect: None,
                explanation: String::new(),
                fix: String::new(),
                cost_ns: Some(cost_ns),
                share: None,
                confidence: confidence.map(str::to_owned),
                values: BTreeMap::new(),
            });
            (severity, outcome)
        };
        let mut outcomes = [
            outcome("dpc.cpu-imbalance", Severity::Warning, 900, None),
            outcome("cpu.dominant", Severity::Info, 9000, Some("high")),
            outcome("cpu.starvation", Severity::Warning, 800, Some("low")),
            outcome("dpc.filter-in-path", Severity::Warning, 500, Some("high")),
            outcome("dpc.over-limit", Severity::Warning, 600, None),
        ];
        sort(&rules, &mut outcomes);
        let order: Vec<&str> = outcomes.iter().map(|(_, outcome)| outcome.id.as_str()).collect();
        let expected =
            ["dpc.over-limit", "dpc.filter-in-path", "dpc.cpu-imbalance", "cpu.starvation", "cpu.dominant"];
        assert_eq!(order, expected);
    }

    /// The answer of the all-clear beside a finding of this severity.
    fn all_clear_beside(severity: Severity) -> Answer {
        let rules = builtin().unwrap();
        let mut outcomes =
            [found(&rules, "trace.nothing-slow", Severity::Info), found(&rules, "cpu.dominant", severity)];
        withdraw_all_clear(&rules, &mut outcomes);
        assert_eq!(outcomes[1].1.answer, Answer::Found);
        outcomes[0].1.answer
    }

    #[test]
    fn an_all_clear_never_stands_beside_a_finding_that_matters() {
        assert_eq!(all_clear_beside(Severity::Info), Answer::Found);
        for severity in [Severity::Notice, Severity::Warning, Severity::Critical] {
            assert_eq!(all_clear_beside(severity), Answer::NotFound);
        }
    }
}
