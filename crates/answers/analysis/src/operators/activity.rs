//! What a trace without kernel events shows: operations, rates, errors, and what could not be decoded.

use super::{add, process_names};
use crate::derived::interval_cost::IntervalCostRow;
use etwhy_base::units::thousands;
use etwhy_table::{Database, RowOf, Rows};
use etwhy_trace::catalog::{
    event_rate::EventRateRow, interval::IntervalRow, kernel_class::KernelClassRow, thread::ThreadRow,
    undecoded::UndecodedRow,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Tables that it is read from, beside those that every verdict reads.
pub const TABLES: [&str; 4] = ["interval", "interval_cost", "event_rate", "undecoded"];

/// Classes of kernel events that say who is who, and nothing of what was done.
pub const WHO_IS_WHO: [&str; 3] = ["PROCESS", "THREAD", "LOADER"];

/// What the trace shows, and what it cannot.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Activity {
    /// What cannot be answered, and why.
    pub cannot: String,
    /// From the first to the last event.
    pub duration_ns: i64,
    /// Events.
    pub events: i64,
    /// Those that tell what there was when sessions started, ended or were merged.
    pub rundown: i64,
    /// Providers whose events tell what happened.
    pub providers: i64,
    /// Intervals from a start to a stop event, whatever their state.
    pub intervals: i64,
    /// Those with both ends.
    pub complete: i64,
    /// Without an end.
    pub unfinished: i64,
    /// Without a start.
    pub no_start: i64,
    /// With both ends, between which buffers are missing.
    pub doubtful: i64,
    /// The longest complete ones.
    pub longest: Vec<LongInterval>,
    /// Operations by the time of their complete intervals.
    pub by_total: Vec<Operation>,
    /// Operations by their number.
    pub by_count: Vec<Operation>,
    /// The most frequent kinds of events, without rundowns.
    pub rates: Vec<Rate>,
    /// Providers with errors or warnings, most errors first.
    pub problems: Vec<Problems>,
    /// Events that could not be decoded.
    pub undecoded_events: i64,
    /// Whose they are, and what would decode them, most events first.
    pub undecoded: Vec<Undecoded>,
}

/// One interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LongInterval {
    /// Provider.
    pub provider: String,
    /// Operation.
    pub name: String,
    /// Process.
    pub process: Option<String>,
    /// Thread id of the start.
    pub tid: Option<i64>,
    /// When it began.
    pub start_ns: i64,
    /// How long it took.
    pub dur_ns: i64,
    /// Its activity, if its events have one.
    pub activity: Option<String>,
}

/// Intervals of one provider, name and process: a row of `interval_cost`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Operation {
    /// Provider.
    pub provider: String,
    /// Operation.
    pub name: String,
    /// Process.
    pub process: Option<String>,
    /// Intervals, whatever their state.
    pub count: i64,
    /// With both ends: what the times are of.
    pub complete: i64,
    /// Without an end.
    pub unfinished: i64,
    /// With both ends, between which buffers are missing.
    pub doubtful: i64,
    /// Starts per second.
    pub per_second: Option<f64>,
    /// Their time, summed.
    pub total_ns: i64,
    /// Half took no longer.
    pub median_ns: Option<i64>,
    /// 95 % took no longer.
    pub p95_ns: Option<i64>,
    /// The longest.
    pub longest_ns: Option<i64>,
}

/// How often a kind of event came: a row of `event_rate`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rate {
    /// Provider.
    pub provider: String,
    /// Event.
    pub name: String,
    /// Events.
    pub count: i64,
    /// Share of the events that are no rundowns.
    pub share_percent: Option<f64>,
    /// Events per second of the recording.
    pub per_second: Option<f64>,
    /// Most events in one second.
    pub peak: i64,
    /// Begin of that second.
    pub peak_ns: i64,
}

/// Errors and warnings of a provider.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Problems {
    /// Provider.
    pub provider: String,
    /// Events of level 1 or 2.
    pub errors: i64,
    /// Events of level 3.
    pub warnings: i64,
    /// Its event with most errors, else with most warnings.
    pub most: String,
}

/// What could not be decoded: a row of `undecoded`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Undecoded {
    /// Provider; its GUID if no name is known.
    pub provider: String,
    /// GUID.
    pub guid: Option<String>,
    /// What should describe it: manifest, wpp, classic, kernel, tracelogging, unknown.
    pub kind: String,
    /// Events.
    pub count: i64,
    /// Share of all events.
    pub share_percent: Option<f64>,
    /// Why.
    pub reason: String,
    /// What would describe them.
    pub needs: Option<String>,
    /// Option that reads it.
    pub option: Option<String>,
    /// Command that writes it on Windows.
    pub command: Option<String>,
}

impl Activity {
    /// How many operations there are, and how many are whole; nothing of a trace in which none are told: most providers have no
    /// starts and stops that belong together, and what such events would be called means nothing to their users.
    pub fn tally(&self) -> Option<String> {
        if self.intervals == 0 {
            return None;
        }
        let parts = [
            (self.complete, "complete"),
            (self.unfinished, "without an end"),
            (self.no_start, "without a start"),
            (self.doubtful, "doubtful, since buffers are missing inside"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{} {what}", thousands((*n).into())))
            .collect();
        let operations = if self.intervals == 1 { "operation" } else { "operations" };
        Some(format!(
            "{} {operations} from a start to a stop event: {}",
            thousands(self.intervals.into()),
            parts.join(", ")
        ))
    }
}

/// Reads it from tables; lists keep the `top` first. `None` for a trace with kernel events that tell what was done, and where the
/// tables are missing.
pub fn activity(db: &Database, top: usize) -> Option<Activity> {
    let (rates, undecoded) = (db.read::<EventRateRow>().ok()?, db.read::<UndecodedRow>().ok()?);
    if !db.read::<KernelClassRow>().ok()?.iter().all(|row| WHO_IS_WHO.contains(&row.class())) {
        return None;
    }
    let mut out = Activity {
        cannot: "This trace cannot tell who used processors, disks or memory, nor what threads waited for: no kernel events about \
                 that were recorded."
            .to_owned(),
        duration_ns: crate::derived::interval_cost::recorded_ns(db),
        longest: longest(db, top),
        ..Activity::default()
    };
    read_rates(&rates, &mut out, top);
    operations(db, &mut out, top);
    undecoded.iter().for_each(|row| add(&mut out.undecoded_events, row.count()));
    out.undecoded = undecoded.iter().take(top).map(Undecoded::read).collect();
    Some(out)
}

impl Undecoded {
    fn read<'r, 'a: 'r>(row: RowOf<'r, 'a, UndecodedRow>) -> Undecoded {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Undecoded {
            provider: row.provider().to_owned(),
            guid: own(row.guid()),
            kind: row.kind().to_owned(),
            count: row.count(),
            share_percent: row.share_percent(),
            reason: row.reason().to_owned(),
            needs: own(row.needs()),
            option: own(row.option()),
            command: own(row.command()),
        }
    }
}

/// Counts, rates and problems.
fn read_rates(table: &Rows<'_, EventRateRow>, out: &mut Activity, top: usize) {
    let mut all = Vec::new();
    // Errors and warnings by provider, with the event that has most of them.
    /// Errors, warnings, and the kind with most of them.
    type Tally = (i64, i64, (i64, i64, String));
    let mut problems: BTreeMap<String, Tally> = BTreeMap::new();
    let mut providers = std::collections::BTreeSet::new();
    for row in table {
        let rate = Rate {
            provider: row.provider().to_owned(),
            name: row.name().to_owned(),
            count: row.count(),
            share_percent: None,
            per_second: row.per_second(),
            peak: row.peak(),
            peak_ns: row.peak_ns(),
        };
        add(&mut out.events, rate.count);
        let (errors, warnings) = (row.errors(), row.warnings());
        if errors + warnings > 0 {
            let of = problems.entry(rate.provider.clone()).or_default();
            add(&mut of.0, errors);
            add(&mut of.1, warnings);
            if (errors, warnings) > (of.2.0, of.2.1) {
                of.2 = (errors, warnings, rate.name.clone());
            }
        }
        if row.rundown() {
            add(&mut out.rundown, rate.count);
        } else {
            providers.insert(rate.provider.clone());
            all.push(rate);
        }
    }
    all.sort_by(|a, b| (b.count, &a.provider, &a.name).cmp(&(a.count, &b.provider, &b.name)));
    all.truncate(top);
    let happened = out.events.saturating_sub(out.rundown) as f64;
    for rate in &mut all {
        rate.share_percent = Some(rate.count as f64 * 100.0 / happened);
    }
    out.rates = all;
    out.providers = providers.len() as i64;
    let problem =
        |(provider, (errors, warnings, (_, _, most)))| Problems { provider, errors, warnings, most };
    out.problems = problems.into_iter().map(problem).collect();
    out.problems.sort_by_key(|p| std::cmp::Reverse((p.errors, p.warnings)));
    out.problems.truncate(top);
}

fn labels(db: &Database) -> Vec<String> {
    process_names(db)
        .into_iter()
        .map(|(name, pid)| if pid < 0 { name } else { format!("{name} ({pid})") })
        .collect()
}

fn label(labels: &[String], upid: Option<i64>) -> Option<String> {
    labels.get(usize::try_from(upid?).ok()?).cloned()
}

/// Operations by time and by number, and sums over all of them.
fn operations(db: &Database, out: &mut Activity, top: usize) {
    let Ok(table) = db.read::<IntervalCostRow>() else { return };
    let names = labels(db);
    let mut all: Vec<Operation> = Vec::with_capacity(table.len());
    for row in &table {
        let one = Operation {
            provider: row.provider().to_owned(),
            name: row.name().to_owned(),
            process: label(&names, row.upid()),
            count: row.count(),
            complete: row.complete(),
            unfinished: row.unfinished(),
            doubtful: row.doubtful(),
            per_second: row.per_second(),
            total_ns: row.total_ns(),
            median_ns: row.median_ns(),
            p95_ns: row.p95_ns(),
            longest_ns: row.longest_ns(),
        };
        add(&mut out.intervals, one.count);
        add(&mut out.complete, one.complete);
        add(&mut out.unfinished, one.unfinished);
        add(&mut out.doubtful, one.doubtful);
        add(&mut out.no_start, row.no_start());
        all.push(one);
    }
    // Rows stand by time; sorting keeps that order among equals.
    out.by_total = all.iter().filter(|one| one.complete > 0).take(top).cloned().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.count));
    all.truncate(top);
    out.by_count = all;
}

/// The longest complete intervals; equal ones in the order of their starts.
fn longest(db: &Database, top: usize) -> Vec<LongInterval> {
    let names = labels(db);
    let mut list: Vec<(LongInterval, Option<i64>)> = Vec::new();
    // What is sorted away in pieces needs no room for all of it.
    let piece = top.saturating_mul(2).max(1024);
    let sort = |list: &mut Vec<(LongInterval, Option<i64>)>| {
        list.sort_by(|(a, _), (b, _)| {
            (b.dur_ns, a.start_ns, &a.provider, &a.name).cmp(&(a.dur_ns, b.start_ns, &b.provider, &b.name))
        });
        list.truncate(top);
    };
    // The shortest of those that are kept.
    let mut least = i64::MIN;
    for row in &db.read_or_empty::<IntervalRow>() {
        let Some(dur_ns) = row.dur_ns() else { continue };
        if dur_ns < least {
            continue;
        }
        let one = LongInterval {
            provider: row.provider().to_owned(),
            name: row.name().to_owned(),
            process: label(&names, row.upid()),
            tid: None,
            start_ns: row.start_ns().unwrap_or(0),
            dur_ns,
            activity: row.activity().map(str::to_owned),
        };
        list.push((one, row.utid()));
        if list.len() > piece {
            sort(&mut list);
            least = list.last().map_or(least, |(shortest, _)| shortest.dur_ns);
        }
    }
    sort(&mut list);
    let threads = db.read_or_empty::<ThreadRow>();
    let tid = |utid: Option<i64>| threads.get(utid?).map(|thread| thread.tid());
    list.into_iter().map(|(one, utid)| LongInterval { tid: tid(utid), ..one }).collect()
}

#[cfg(test)]
mod tests {
    use super::Activity;

    #[test]
    fn operations_are_counted_where_there_are_any() {
        let none = Activity { events: 10_343, ..Activity::default() };
        assert_eq!(none.tally(), None);
        let some = Activity { intervals: 3_012, complete: 3_011, unfinished: 1, ..none };
        let said = "3,012 operations from a start to a stop event: 3,011 complete, 1 without an end";
        assert_eq!(some.tally().as_deref(), Some(said));
    }
}
