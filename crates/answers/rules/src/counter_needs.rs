//! Counters that a finding needs: without them a log cannot show what is asked, so *not found* would say too much.

use super::rule::Rule;
use etwhy_base::units::{counted, thousands};
use etwhy_counters::tables::{CounterMachineRow, CounterWantedRow};
use etwhy_table::{Database, RowOf};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Samples below which a log shows nothing, for findings that say no number themselves.
const LEAST_SAMPLES: i64 = 3;

/// Which instances of a counter are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instances {
    /// The object has none.
    None,
    /// Single ones: `(*)`.
    Each,
    /// Their sum: `(_Total)`.
    Sum,
}

/// A counter that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterNeed<'r> {
    /// English name of the object.
    pub object: &'r str,
    /// English name of the counter.
    pub name: &'r str,
    instances: Instances,
}

/// Reads `\Processor(*)\% DPC Time`, `\Processor(_Total)\% DPC Time`, `\Memory\Pages/sec`. `None` if it is no such path.
pub fn parse(path: &str) -> Option<CounterNeed<'_>> {
    let (object, name) = path.strip_prefix('\\')?.split_once('\\')?;
    let (object, instances) = match object.split_once('(') {
        Some((object, "*)")) => (object, Instances::Each),
        Some((object, "_Total)")) => (object, Instances::Sum),
        Some(_) => return None,
        None => (object, Instances::None),
    };
    (!object.is_empty() && !name.is_empty()).then_some(CounterNeed { object, name, instances })
}

/// Machines that are named of those that lack the same.
const MOST_NAMED: usize = 3;

/// Why a counter log cannot show what the finding asks: the counters and instances that it lacks, and which machines lack them.
pub fn lacking(db: &Database, rule: &Rule) -> Vec<String> {
    let wanted = db.read_or_empty::<CounterWantedRow>();
    if wanted.is_empty() || rule.counters.is_empty() {
        return Vec::new();
    }
    let languages = unknown_languages(db);
    let least = rule.thresholds.get("least_samples").map_or(LEAST_SAMPLES, |least| least.value as i64);
    let needs: Vec<CounterNeed<'_>> = rule.counters.iter().filter_map(|path| parse(path)).collect();
    // In the order in which they come; a log may be of a hundred thousand machines.
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut seen = HashSet::new();
    for row in &wanted {
        let is = |need: &&CounterNeed<'_>| row.object_en() == need.object && row.name_en() == need.name;
        let machine = row.machine();
        for need in needs.iter().filter(is) {
            let language = languages.get(machine).and_then(Option::as_deref);
            let Some(reason) = reason(row, need, least, language) else { continue };
            let at = *known.entry(reason).or_insert_with_key(|reason| {
                reasons.push((reason.clone(), Vec::new()));
                reasons.len() - 1
            });
            if let Some((_, machines)) = reasons.get_mut(at)
                && seen.insert((at, machine))
            {
                machines.push(machine);
            }
        }
    }
    let several = languages.len() > 1;
    reasons
        .into_iter()
        .map(|(reason, machines)| if several { of(&machines, &reason) } else { reason })
        .collect()
}

/// The reason with the machines that it holds for.
fn of(machines: &[&str], reason: &str) -> String {
    let named = machines.get(..MOST_NAMED.min(machines.len())).unwrap_or(machines).join(", ");
    match machines.len().saturating_sub(MOST_NAMED) {
        0 => format!("{named}: {reason}"),
        more => format!("{named} and {} more machines: {reason}", thousands(more as i128)),
    }
}

/// Machines, with a counter of those whose language is not known.
fn unknown_languages(db: &Database) -> BTreeMap<String, Option<String>> {
    let machines = db.read_or_empty::<CounterMachineRow>();
    machines.iter().map(|row| (row.machine().to_owned(), row.unknown_language().map(str::to_owned))).collect()
}

fn reason(
    wanted: RowOf<'_, '_, CounterWantedRow>,
    need: &CounterNeed<'_>,
    least: i64,
    language: Option<&str>,
) -> Option<String> {
    let (all, totals, samples) = (wanted.counters(), wanted.totals(), wanted.samples());
    let (path, command) = (wanted.path(), wanted.command());
    let there = match need.instances {
        Instances::None => all,
        Instances::Each => all - totals,
        Instances::Sum => totals,
    };
    if there > 0 {
        return (samples > 0 && samples < least).then(|| too_few(path, samples, least));
    }
    Some(match (need.instances, language) {
        (Instances::Each, _) if totals > 0 => format!(
            "only the sum over all instances (_Total) of {path} was logged, which hides single ones; log it with: {command}"
        ),
        (Instances::Sum, _) if all > 0 => {
            format!("the sum over all instances (_Total) of {path} was not logged; log it with: {command}")
        }
        _ if wanted.without_value() > 0 => format!("the counter {path} was logged, but has no value"),
        (_, Some(example)) => format!(
            "the log has counters in a language that is not known, such as {example}; put their English names into its \
             first line"
        ),
        (_, None) => format!("the counter {path} was not logged; log it with: {command}"),
    })
}

fn too_few(path: &str, samples: i64, least: i64) -> String {
    format!("{path} has only {}, and at least {least} are needed", counted(samples, "sample", "samples"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Subject, builtin};

    #[test]
    fn paths() {
        let need = parse(r"\Processor(*)\% DPC Time").unwrap();
        assert_eq!((need.object, need.name, need.instances), ("Processor", "% DPC Time", Instances::Each));
        assert_eq!(parse(r"\Processor(_Total)\% DPC Time").unwrap().instances, Instances::Sum);
        assert_eq!(parse(r"\Memory\Pages/sec").unwrap().instances, Instances::None);
        for wrong in ["", "Memory", r"\Memory", r"\(*)\x", r"\Processor(0)\x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn one_sample_is_one() {
        let path = r"\Memory\Pages/sec";
        assert_eq!(too_few(path, 1, 3), r"\Memory\Pages/sec has only 1 sample, and at least 3 are needed");
        assert_eq!(too_few(path, 2, 3), r"\Memory\Pages/sec has only 2 samples, and at least 3 are needed");
    }

    #[test]
    fn machines_that_lack_the_same_share_a_reason() {
        let reason = "the counter was not logged";
        assert_eq!(of(&["A"], reason), "A: the counter was not logged");
        assert_eq!(of(&["A", "B", "C"], reason), "A, B, C: the counter was not logged");
        let many: Vec<String> = (0..95_000).map(|n| format!("M{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(of(&many, reason), "M0, M1, M2 and 94,997 more machines: the counter was not logged");
    }

    /// Each finding over counter logs says which counters it needs; those are all that its query names, but for those that say the same.
    #[test]
    fn findings_of_counters_say_what_they_need() {
        let rules: Vec<Rule> =
            builtin().unwrap().into_iter().filter(|rule| rule.over == Subject::Counters).collect();
        assert!(rules.len() >= 11, "{}", rules.len());
        for rule in rules {
            let needs: Vec<CounterNeed<'_>> = rule
                .counters
                .iter()
                .map(|path| parse(path).unwrap_or_else(|| panic!("{}: {path}", rule.id)))
                .collect();
            assert!(!needs.is_empty(), "{} does not say which counters it needs", rule.id);
            // The sum is what a query reads that asks for `is_total`.
            let reads_sum = rule.sql.contains("is_total") && !rule.sql.contains("NOT c.is_total");
            let needs_sum = needs.iter().any(|need| need.instances == Instances::Sum);
            assert_eq!(reads_sum, needs_sum, "{}", rule.id);
        }
    }
}
