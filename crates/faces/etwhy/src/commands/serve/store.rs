//! The page of a store: its questions, answered by the views that `etwhy fleet` asks, for the traces that a filter leaves.

use crate::command::PROGRAM;
use crate::report::table_json::table_json;
use anyhow::Context as _;
use etwhy_base::units::thousands;
use etwhy_fleet::batch::Batch;
use etwhy_fleet::files::Files;
use etwhy_fleet::{Fleet, FleetError, Store};
use etwhy_hud::Many;
use etwhy_hud::fault::Fault;
use etwhy_table::Table;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Answers of views that are kept.
const KEPT: usize = 24;

/// A store as its page knows it.
pub struct OfStore {
    store: Store,
    folders: Vec<PathBuf>,
    opened: Mutex<Option<Arc<Opened>>>,
}

/// What was in the store when it was last looked at.
struct Opened {
    /// Its batches then.
    batches: Vec<Batch>,
    fleet: Fleet,
    traces: Vec<Facts>,
    /// Version, trace and machine of each file by its name in lower case.
    builds: HashMap<String, Vec<Build>>,
    files: Files,
    kept: Mutex<Vec<Kept>>,
}

/// A trace: what filters ask of it, and all that the view says.
struct Facts {
    trace_id: String,
    machine_id: String,
    computer: String,
    model: String,
    os: String,
    day: String,
    row: Value,
}

struct Build {
    version: String,
    trace_id: String,
    machine_id: String,
}

/// The answer of a view for a filter.
struct Kept {
    filter: Filter,
    view: &'static str,
    table: Arc<Table>,
}

/// Which traces are looked at. What is empty filters nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Filter {
    model: String,
    os: String,
    /// First and last day, UTC: 2026-11-24.
    from: String,
    to: String,
    /// A file, and its version.
    file: String,
    version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Question {
    filter: Filter,
    /// driver, process, product, category or finding.
    what: String,
    /// Name of one of them.
    name: String,
    machine_id: String,
    trace_id: String,
}

/// The store that was given, if one was.
///
/// # Errors
/// If it is damaged, or something else was given with it.
pub fn given(paths: &[PathBuf], folders: &[PathBuf]) -> anyhow::Result<Option<OfStore>> {
    let is_store = |path: &&PathBuf| path.join(etwhy_fleet::store::CONTRACT).is_file();
    let Some(path) = paths.iter().find(is_store) else { return Ok(None) };
    if paths.len() > 1 {
        anyhow::bail!("{} is a store of many traces: serve it alone", path.display());
    }
    crate::knowledge::load(&[])?;
    let of = OfStore { store: Store::open(path)?, folders: folders.to_vec(), opened: Mutex::default() };
    of.opened().with_context(|| format!("{}", path.display()))?;
    Ok(Some(of))
}

impl OfStore {
    /// What is in it, read again if batches came.
    fn opened(&self) -> Result<Arc<Opened>, FleetError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = self.store.batches()?;
        if let Some(known) = opened.as_ref().filter(|known| known.batches == batches) {
            return Ok(Arc::clone(known));
        }
        let fleet = Fleet::new(self.store.clone())?;
        let traces = table_json(&fleet.ask("traces")?).into_iter().map(Facts::of).collect();
        let table = fleet.ask("builds")?;
        let mut builds: HashMap<String, Vec<Build>> = HashMap::new();
        for row in 0..u32::try_from(table.rows()).unwrap_or(u32::MAX) {
            let own = |column: &str| table.text(row, column).unwrap_or_default().to_owned();
            let build = Build {
                version: own("file_version"),
                trace_id: own("trace_id"),
                machine_id: own("machine_id"),
            };
            builds.entry(own("name").to_lowercase()).or_default().push(build);
        }
        let files = Files::of(&self.store, &self.folders)?;
        let new = Arc::new(Opened { batches, fleet, traces, builds, files, kept: Mutex::default() });
        *opened = Some(Arc::clone(&new));
        Ok(new)
    }
}

impl Many for OfStore {
    fn ask(&self, question: &str, body: Value) -> Result<Value, Fault> {
        let opened = self.opened().map_err(Fault::wrong)?;
        let asked: Question = serde_json::from_value(body).map_err(Fault::wrong)?;
        match question {
            "facts" => Ok(opened.facts(&self.store)),
            "rank" => opened.rank(&asked),
            "machines" => opened.machines(&asked),
            "traces" => opened.of_machine(&asked),
            "trace" => opened.trace(&asked),
            _ => Err(Fault::Missing(format!("a store is not asked `{question}`"))),
        }
    }

    fn file(&self, trace_id: &str) -> Result<PathBuf, Fault> {
        let opened = self.opened().map_err(Fault::wrong)?;
        opened.facts_of(trace_id)?;
        one(opened.files.of_trace(trace_id)).map_err(Fault::Missing)
    }
}

impl Facts {
    fn of(row: Value) -> Facts {
        let own = |column: &str| text(&row, column).to_owned();
        let (trace_id, machine_id) = (own("trace_id"), own("machine_id"));
        let day = own("captured_utc").chars().take(10).collect();
        Facts {
            trace_id,
            machine_id,
            computer: own("computer"),
            model: own("model"),
            os: own("os"),
            day,
            row,
        }
    }
}

fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row.get(column).and_then(Value::as_str).unwrap_or_default()
}

impl Opened {
    /// What can be filtered by, and how much there is.
    fn facts(&self, store: &Store) -> Value {
        let several = |of: fn(&Facts) -> &str| -> Vec<Value> {
            let mut machines: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
            for facts in self.traces.iter().filter(|facts| !of(facts).is_empty()) {
                machines.entry(of(facts)).or_default().insert(&facts.machine_id);
            }
            machines.iter().map(|(name, of)| json!({ "name": name, "machines": of.len() })).collect()
        };
        let days: BTreeSet<&str> = self.traces.iter().map(|facts| facts.day.as_str()).collect();
        let machines: HashSet<&str> = self.traces.iter().map(|facts| facts.machine_id.as_str()).collect();
        json!({
            "program": PROGRAM, "store": store.path().display().to_string(), "traces": self.traces.len(),
            "machines": machines.len(), "models": several(|facts| &facts.model), "systems": several(|facts| &facts.os),
            "first_day": days.first(), "last_day": days.last(),
        })
    }

    /// Traces that a filter leaves.
    fn left(&self, filter: &Filter) -> HashSet<&str> {
        let with_version: Option<HashSet<&str>> = (!filter.version.is_empty()).then(|| {
            let builds = self.builds.get(&filter.file.to_lowercase()).map_or(&[] as &[Build], Vec::as_slice);
            let same = builds.iter().filter(|build| build.version == filter.version);
            same.map(|build| build.trace_id.as_str()).collect()
        });
        let is = |wanted: &str, value: &str| wanted.is_empty() || wanted == value;
        let fits = |facts: &&Facts| {
            is(&filter.model, &facts.model)
                && is(&filter.os, &facts.os)
                && (filter.from.is_empty() || facts.day >= filter.from)
                && (filter.to.is_empty() || facts.day <= filter.to)
                && with_version.as_ref().is_none_or(|with| with.contains(facts.trace_id.as_str()))
        };
        self.traces.iter().filter(fits).map(|facts| facts.trace_id.as_str()).collect()
    }

    /// What a view says of them.
    fn view(&self, view: &'static str, filter: &Filter) -> Result<Arc<Table>, Fault> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().iter().find(|known| known.view == view && known.filter == *filter) {
            return Ok(Arc::clone(&known.table));
        }
        let left = self.left(filter);
        let table = Arc::new(self.fleet.only(|trace| left.contains(trace)).ask(view).map_err(Fault::wrong)?);
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(Kept { filter: filter.clone(), view, table: Arc::clone(&table) });
        Ok(table)
    }

    fn rank(&self, asked: &Question) -> Result<Value, Fault> {
        let left = self.left(&asked.filter);
        let machines: HashSet<&str> = self
            .traces
            .iter()
            .filter(|facts| left.contains(facts.trace_id.as_str()))
            .map(|facts| facts.machine_id.as_str())
            .collect();
        let is_finding = asked.what == "finding";
        let table = self.view(if is_finding { "rank_findings" } else { "rank" }, &asked.filter)?;
        let wanted = |row: &Value| match is_finding {
            true => row.get("found").and_then(Value::as_i64).unwrap_or(0) > 0,
            false => text(row, "kind") == asked.what,
        };
        let rows: Vec<Value> = table_json(&table).into_iter().filter(wanted).collect();
        Ok(json!({ "traces": left.len(), "machines": machines.len(), "rows": rows }))
    }

    /// Machines that have a culprit or a finding, the worst first.
    fn machines(&self, asked: &Question) -> Result<Value, Fault> {
        let mut rows = match asked.what.as_str() {
            "finding" => self.with_finding(asked)?,
            kind => {
                let table = self.view("machine_shares", &asked.filter)?;
                let wanted = |row: &Value| text(row, "kind") == kind && text(row, "culprit") == asked.name;
                table_json(&table).into_iter().filter(wanted).collect()
            }
        };
        let share = |row: &Value| row.get("share_percent").and_then(Value::as_f64).unwrap_or(0.0);
        rows.sort_by(|a, b| {
            share(b).total_cmp(&share(a)).then_with(|| text(a, "machine_id").cmp(text(b, "machine_id")))
        });
        let left = self.left(&asked.filter);
        let builds = self.builds.get(&asked.name.to_lowercase()).map_or(&[] as &[Build], Vec::as_slice);
        let (mut of_machine, mut versions) =
            (HashMap::<&str, BTreeSet<&str>>::new(), BTreeMap::<&str, HashSet<&str>>::new());
        for build in builds.iter().filter(|build| left.contains(build.trace_id.as_str())) {
            of_machine.entry(&build.machine_id).or_default().insert(&build.version);
            versions.entry(&build.version).or_default().insert(&build.machine_id);
        }
        for row in &mut rows {
            let own =
                of_machine.get(text(row, "machine_id")).map(|own| own.iter().copied().collect::<Vec<_>>());
            if let Value::Object(row) = row {
                row.insert("versions".to_owned(), json!(own.unwrap_or_default()));
            }
        }
        let versions: Vec<Value> =
            versions.iter().map(|(name, of)| json!({ "name": name, "machines": of.len() })).collect();
        Ok(json!({ "rows": rows, "versions": versions }))
    }

    /// Machines with a finding: in how many of their traces, with the worst of them.
    fn with_finding(&self, asked: &Question) -> Result<Vec<Value>, Fault> {
        let mut machines: BTreeMap<String, (HashSet<String>, Value)> = BTreeMap::new();
        for hit in table_json(&*self.view("hits", &asked.filter)?) {
            if text(&hit, "finding_id") != asked.name {
                continue;
            }
            let (machine, trace) = (text(&hit, "machine_id").to_owned(), text(&hit, "trace_id").to_owned());
            let of = machines.entry(machine).or_default();
            of.0.insert(trace);
            if of.1.is_null() || cost(&hit) > cost(&of.1) {
                of.1 = hit;
            }
        }
        let row = |(machine, (traces, worst)): (String, (HashSet<String>, Value))| {
            let facts = self.traces.iter().rev().find(|facts| facts.machine_id == machine);
            let own = |of: fn(&Facts) -> &str| facts.map(of).filter(|text| !text.is_empty());
            json!({
                "machine_id": machine, "computer": own(|f| &f.computer), "model": own(|f| &f.model), "os": own(|f| &f.os),
                "traces": traces.len(), "severity": worst.get("severity"), "culprit": worst.get("culprit"),
                "headline": worst.get("headline"), "cost_ns": worst.get("cost_ns"),
            })
        };
        let mut rows: Vec<Value> = machines.into_iter().map(row).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(cost(row)), text(row, "machine_id").to_owned()));
        Ok(rows)
    }

    /// Traces of a machine, the latest first, with what the culprit takes in each.
    fn of_machine(&self, asked: &Question) -> Result<Value, Fault> {
        let left = self.left(&asked.filter);
        let mut more: HashMap<String, Map<String, Value>> = HashMap::new();
        let (view, kind, name) = match asked.what.as_str() {
            "" => ("", "", ""),
            "finding" => ("hits", "", "finding_id"),
            kind => ("runs", kind, "culprit"),
        };
        if !view.is_empty() {
            for row in table_json(&*self.view(view, &asked.filter)?) {
                if text(&row, name) != asked.name || (!kind.is_empty() && text(&row, "kind") != kind) {
                    continue;
                }
                let of = more.entry(text(&row, "trace_id").to_owned()).or_default();
                // The worst culprit of a finding is its first.
                let is_first = row.get("number").and_then(Value::as_i64).unwrap_or(0) == 0;
                for column in ["share_percent", "headline", "severity"].iter().filter(|_| is_first) {
                    of.extend(row.get(*column).map(|value| ((*column).to_owned(), value.clone())));
                }
            }
        }
        let wanted =
            |facts: &&Facts| facts.machine_id == asked.machine_id && left.contains(facts.trace_id.as_str());
        let rows: Vec<Value> = self
            .traces
            .iter()
            .rev()
            .filter(wanted)
            .map(|facts| {
                let mut row = facts.row.clone();
                if let (Value::Object(row), Some(more)) = (&mut row, more.remove(&facts.trace_id)) {
                    row.insert("of".to_owned(), Value::Object(more));
                }
                row
            })
            .collect();
        if rows.is_empty() {
            return Err(Fault::Missing(format!("no trace of machine {} is left", asked.machine_id)));
        }
        Ok(json!({ "rows": rows }))
    }

    fn facts_of(&self, trace_id: &str) -> Result<&Facts, Fault> {
        let found = self.traces.iter().find(|facts| facts.trace_id == trace_id);
        found.ok_or_else(|| {
            let all = thousands(i128::try_from(self.traces.len()).unwrap_or(0));
            Fault::Missing(format!("none of the {all} traces of this store is {trace_id}"))
        })
    }

    /// A trace: what was found, what took the time, and whether its file can be opened.
    fn trace(&self, asked: &Question) -> Result<Value, Fault> {
        let facts = self.facts_of(&asked.trace_id)?;
        let own = |view: &'static str| -> Result<Vec<Value>, Fault> {
            let fleet = self.fleet.only(|trace| trace == asked.trace_id);
            Ok(table_json(&fleet.ask(view).map_err(Fault::wrong)?))
        };
        let rank =
            |severity: &str| ["critical", "warning", "notice", "info"].iter().position(|s| *s == severity);
        let mut hits = own("hits")?;
        hits.sort_by_key(|hit| (rank(text(hit, "severity")), std::cmp::Reverse(cost(hit))));
        let mut costs = own("runs")?;
        let share = |row: &Value| row.get("share_percent").and_then(Value::as_f64).unwrap_or(0.0);
        costs.sort_by(|a, b| share(b).total_cmp(&share(a)));
        let file = one(self.files.of_trace(&facts.trace_id));
        Ok(json!({
            "trace": facts.row, "hits": hits, "costs": costs, "file": file.as_ref().ok().map(|path| shown(path)),
            "why_not": file.err(),
        }))
    }
}

/// The page of traces opens one file at a time.
fn one(files: Result<Vec<PathBuf>, String>) -> Result<PathBuf, String> {
    let files = files?;
    match files.as_slice() {
        [file] => Ok(file.clone()),
        several => {
            let names: Vec<String> = several.iter().map(|file| shown(file)).collect();
            Err(format!(
                "its {} files open together: `etwhy serve --merge {}`",
                several.len(),
                names.join(" ")
            ))
        }
    }
}

fn cost(hit: &Value) -> i64 {
    hit.get("cost_ns").and_then(Value::as_i64).unwrap_or(0)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
