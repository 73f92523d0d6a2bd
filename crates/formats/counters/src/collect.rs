//! What is kept of counters while logs are read.

use crate::names;
use crate::path::CounterPath;
use crate::slices::{Grid, Slices};
use crate::spread::Spread;
use crate::unit::unit_of;
use std::collections::{BTreeSet, HashMap};

/// The most counters.
pub const MOST_COUNTERS: usize = 100_000;

/// A counter above 90 for a while.
#[derive(Clone, Copy, Debug, Default)]
pub struct Above {
    /// Samples above.
    pub samples: i64,
    /// The longest while, and when it began.
    pub longest: Option<(i64, i64)>,
    /// When the present one began.
    since: Option<i64>,
}

/// What is known of one counter.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Its parts.
    pub path: CounterPath,
    /// As the log has it.
    pub text: String,
    /// English name of the object.
    pub object: Option<&'static str>,
    /// English name of the counter.
    pub name: Option<&'static str>,
    /// Unit.
    pub unit: &'static str,
    /// Number of the machine.
    pub machine: usize,
    /// Values.
    pub samples: i64,
    /// Samples without one.
    pub missing: i64,
    sum: f64,
    /// What the sum lost by rounding (Neumaier).
    lost: f64,
    /// Smallest and largest.
    pub range: Option<(f64, f64)>,
    /// First value with its time.
    pub first: Option<(i64, f64)>,
    /// Last value with its time.
    pub last: Option<(i64, f64)>,
    /// The file that had the last one.
    pub file: usize,
    /// Time above 90, for percentages.
    pub above: Option<Above>,
    /// Percentiles.
    pub spread: Spread,
    /// Over time.
    pub slices: Slices,
}

impl Counter {
    fn new(path: CounterPath, text: &str, machine: usize) -> Counter {
        let object = names::object(&path.object);
        let name = object.and_then(|object| names::counter(object, &path.name));
        let unit = unit_of(name.unwrap_or(&path.name));
        Counter {
            text: text.to_owned(),
            object,
            name,
            unit,
            machine,
            samples: 0,
            missing: 0,
            sum: 0.0,
            lost: 0.0,
            range: None,
            first: None,
            last: None,
            file: 0,
            above: (unit == "percent").then(Above::default),
            spread: Spread::default(),
            slices: Slices::default(),
            path,
        }
    }

    /// Adds a value. `slice`: its slice of the grid. `reach_ns`: how far back the value speaks of the time before it; if the sample before
    /// is further away, nothing is known of the time between them.
    #[inline]
    pub fn add(&mut self, grid: &Grid, slice: i64, utc_ns: i64, value: f64, reach_ns: i64) {
        self.samples += 1;
        let sum = self.sum + value;
        self.lost +=
            if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
        self.range = Some(match self.range {
            Some((min, max)) => (min.min(value), max.max(value)),
            None => (value, value),
        });
        if let Some(above) = &mut self.above {
            if value > 90.0 {
                above.samples += 1;
                let before =
                    self.last.map(|(time, _)| time).filter(|time| utc_ns.saturating_sub(*time) <= reach_ns);
                // A value speaks of the time since the sample before.
                let since = match (above.since, before) {
                    (Some(since), Some(_)) => since,
                    (None, Some(before)) => before,
                    (_, None) => utc_ns,
                };
                above.since = Some(since);
                let length = utc_ns.saturating_sub(since);
                if above.longest.is_none_or(|(longest, _)| length > longest) {
                    above.longest = Some((length, since));
                }
            } else {
                above.since = None;
            }
        }
        self.first.get_or_insert((utc_ns, value));
        self.last = Some((utc_ns, value));
        self.spread.add(value);
        self.slices.add(grid, slice, value);
    }

    /// Mean of the values.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| (self.sum + self.lost) / self.samples as f64)
    }

    /// True for `_Total`.
    pub fn is_total(&self) -> bool {
        self.path.instance.as_deref().is_some_and(names::is_total)
    }

    /// The processor that it is of.
    pub fn cpu(&self) -> Option<i32> {
        let instance = self.path.instance.as_deref()?;
        match self.object {
            Some("Processor") => instance.parse().ok(),
            // Node and number within it: on the first node both ways of counting agree.
            Some("Processor Information") => instance.strip_prefix("0,")?.parse().ok(),
            _ => None,
        }
        .filter(|cpu| *cpu >= 0)
    }
}

/// What is known of a machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Files that have it.
    pub files: Vec<usize>,
    /// Its time zone.
    pub zone: Option<(String, i32)>,
    /// First and last sample.
    pub range: Option<(i64, i64)>,
    /// Usual time between samples.
    pub interval_ns: Option<i64>,
    /// Gaps between samples: how many, and their length together.
    pub gaps: (i64, i64),
}

/// All counters and machines.
#[derive(Debug, Default)]
pub struct Collected {
    /// Counters.
    pub counters: Vec<Counter>,
    /// Machines.
    pub machines: Vec<Machine>,
    by_path: HashMap<(String, u32), usize>,
    by_machine: HashMap<String, usize>,
    /// Kinds of counters that are not wanted, at most [`MOST_COUNTERS`]: object, with `(*)` if it has instances, and counter.
    kinds: BTreeSet<String>,
    /// Processors of which a counter is not wanted, as many: machine in small letters, object, instance.
    processors: BTreeSet<(String, &'static str, String)>,
    /// Slices of time.
    pub grid: Grid,
}

impl Collected {
    /// The counter of this path, the `nth` of this name in its header; a new one if there is none. `None` if there are too many.
    pub fn counter(&mut self, text: &str, path: CounterPath, nth: u32) -> Option<usize> {
        let key = (text.to_lowercase(), nth);
        if let Some(at) = self.by_path.get(&key) {
            return Some(*at);
        }
        if self.counters.len() >= MOST_COUNTERS {
            return None;
        }
        let machine = match self.by_machine.get(&path.machine.to_lowercase()) {
            Some(at) => *at,
            None => {
                let at = self.machines.len();
                self.by_machine.insert(path.machine.to_lowercase(), at);
                self.machines.push(Machine { name: path.machine.clone(), ..Machine::default() });
                at
            }
        };
        let at = self.counters.len();
        self.counters.push(Counter::new(path, text, machine));
        self.by_path.insert(key, at);
        Some(at)
    }

    /// Notes a counter that is not wanted: what there would be, and of which processor of the machine.
    pub fn leave_out(&mut self, path: &CounterPath) {
        let instances = if path.instance.is_some() { "(*)" } else { "" };
        if self.kinds.len() < MOST_COUNTERS {
            self.kinds.insert(format!("{}{instances}\\{}", path.object, path.name));
        }
        if self.processors.len() < MOST_COUNTERS
            && let Some(object @ ("Processor" | "Processor Information")) = names::object(&path.object)
            && let Some(instance) = path.instance.as_ref().filter(|instance| !names::is_total(instance))
        {
            self.processors.insert((path.machine.to_lowercase(), object, instance.clone()));
        }
    }

    /// The kinds of counters that are not wanted, as [`CounterPath`] reads them but for the instance.
    pub fn kinds_left_out(self) -> Vec<String> {
        self.kinds.into_iter().collect()
    }

    /// Logical processors of a machine: the most instances that one counter of processors has, also one that is not wanted.
    pub fn cpus(&self, machine: &Machine, of_machine: &[&Counter]) -> Option<i32> {
        let mut by_object: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for counter in of_machine.iter().filter(|c| !c.is_total() && c.samples + c.missing > 0) {
            if let (Some(object @ ("Processor" | "Processor Information")), Some(instance)) =
                (counter.object, &counter.path.instance)
            {
                by_object.entry(object).or_default().insert(instance);
            }
        }
        let name = machine.name.to_lowercase();
        let others = self.processors.range((name.clone(), "", String::new())..);
        for (_, object, instance) in others.take_while(|(of, ..)| *of == name) {
            by_object.entry(object).or_default().insert(instance);
        }
        by_object.values().map(|set| set.len()).max().and_then(|n| i32::try_from(n).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_above_ninety() {
        let mut all = Collected::default();
        let text = r"\\S\Processor(3)\% DPC Time";
        let at = all.counter(text, CounterPath::parse(text).unwrap(), 0).unwrap();
        for (second, value) in
            [(0, 95.0), (10, 91.0), (20, 50.0), (30, 99.0), (40, 99.0), (50, 92.0), (60, 90.0)]
        {
            let time = second * 1_000_000_000;
            let slice = all.grid.slice(time);
            let grid = all.grid;
            all.counters[at].add(&grid, slice, time, value, i64::MAX);
        }
        let counter = &all.counters[at];
        let above = counter.above.unwrap();
        assert_eq!((above.samples, above.longest), (5, Some((30_000_000_000, 20_000_000_000))));
        assert_eq!(
            (counter.cpu(), counter.name, counter.range),
            (Some(3), Some("% DPC Time"), Some((50.0, 99.0)))
        );
        assert_eq!(counter.mean(), Some(616.0 / 7.0));
        let counters: Vec<&Counter> = all.counters.iter().collect();
        assert_eq!(all.cpus(&all.machines[0], &counters), Some(1));
    }

    #[test]
    fn one_counter_whatever_the_case() {
        let mut all = Collected::default();
        let mut of = |text: &str, nth| all.counter(text, CounterPath::parse(text).unwrap(), nth).unwrap();
        assert_eq!(of(r"\\SRV\Memory\Pages/sec", 0), of(r"\\srv\memory\pages/sec", 0));
        assert_ne!(of(r"\\SRV\Memory\Pages/sec", 0), of(r"\\SRV\Memory\Pages/sec", 1));
        assert_eq!(all.machines.len(), 1);
    }
}
