//! Makes tables of what was collected.

use crate::collect::{Collected, Counter, Machine};
use crate::error::CountersError;
use crate::notes::Notes;
use crate::path::CounterPath;
use crate::tables::{
    CounterMachineRow, CounterNoteRow, CounterRow, CounterSampleRow, CounterSliceRow, CounterWantedRow,
};
use crate::wanted::WANTED;
use etwhy_table::{Memory, Strings, Table, TableBuilder, TableError};

/// All tables.
pub(crate) fn tables(
    mut all: Collected,
    notes: Notes,
    samples: TableBuilder<CounterSampleRow>,
    zero: i64,
    memory: &Memory,
) -> Result<Vec<Table>, CountersError> {
    let mut strings = Strings::new();
    let mut slices = TableBuilder::<CounterSliceRow>::new(memory);
    let grid = all.grid;
    let width = grid.width();
    for (number, counter) in all.counters.iter_mut().enumerate() {
        let range = all.machines.get(counter.machine).and_then(|machine| machine.range);
        for slice in counter.slices.finish(&grid) {
            // Nothing is known of the time before the first sample of the machine, and after the last.
            let begin = slice.number.saturating_mul(width);
            let (first, last) = range.unwrap_or((begin, begin.saturating_add(width)));
            let utc_ns = begin.clamp(first, last);
            let end = begin.saturating_add(width).clamp(first, last);
            slices.push(CounterSliceRow {
                counter: number as i32,
                ts_ns: utc_ns.saturating_sub(zero),
                utc_ns,
                dur_ns: end.saturating_sub(utc_ns),
                samples: slice.count.into(),
                mean_value: slice.sum / f64::from(slice.count.max(1)),
                min_value: slice.min,
                max_value: slice.max,
            });
        }
    }
    let mut counters = TableBuilder::<CounterRow>::new(memory);
    for (number, counter) in all.counters.iter().enumerate() {
        counters.push(counter_row(number as i32, counter, &all, &mut strings));
    }
    let mut machines = TableBuilder::<CounterMachineRow>::new(memory);
    let mut wanted = TableBuilder::<CounterWantedRow>::new(memory);
    let mut by_machine: Vec<Vec<&Counter>> = vec![Vec::new(); all.machines.len()];
    for counter in &all.counters {
        if let Some(of_machine) = by_machine.get_mut(counter.machine) {
            of_machine.push(counter);
        }
    }
    for (machine, counters) in all.machines.iter().zip(&by_machine) {
        if let Some(row) = machine_row(machine, counters, &all, zero, &mut strings) {
            machines.push(row);
            for row in wanted_rows(machine, counters, &mut strings) {
                wanted.push(row);
            }
        }
    }
    let mut noted = TableBuilder::<CounterNoteRow>::new(memory);
    for (kind, count, first) in notes.all() {
        noted.push(CounterNoteRow {
            name: strings.intern(kind.name),
            severity: strings.intern(kind.severity),
            count: *count,
            meaning: strings.intern(kind.meaning),
            first: strings.intern(first),
        });
    }
    let texts = strings.freeze().map_err(TableError::texts)?;
    Ok(vec![
        counters.finish(&texts)?,
        machines.finish(&texts)?,
        noted.finish(&texts)?,
        samples.finish(&texts)?,
        slices.finish(&texts)?,
        wanted.finish(&texts)?,
    ])
}

fn counter_row(number: i32, counter: &Counter, all: &Collected, strings: &mut Strings) -> CounterRow {
    let [p50_value, p95_value, p99_value] = counter.spread.at([0.5, 0.95, 0.99]);
    let path = &counter.path;
    let machine = all.machines.get(counter.machine).map_or("", |m| m.name.as_str());
    let longest = counter.above.and_then(|above| above.longest);
    CounterRow {
        counter: number,
        machine: strings.intern(machine),
        object: strings.intern(&path.object),
        parent: path.parent.as_deref().map(|text| strings.intern(text)),
        instance: path.instance.as_deref().map(|text| strings.intern(text)),
        nth: path.nth,
        name: strings.intern(&path.name),
        object_en: counter.object.map(|text| strings.intern(text)),
        name_en: counter.name.map(|text| strings.intern(text)),
        unit: strings.intern(counter.unit),
        is_total: counter.is_total(),
        cpu: counter.cpu(),
        path: strings.intern(&counter.text),
        samples: counter.samples,
        missing: counter.missing,
        min_value: counter.range.map(|r| r.0),
        mean_value: counter.mean(),
        p50_value,
        p95_value,
        p99_value,
        max_value: counter.range.map(|r| r.1),
        first_value: counter.first.map(|f| f.1),
        last_value: counter.last.map(|l| l.1),
        first_utc_ns: counter.first.map(|f| f.0),
        last_utc_ns: counter.last.map(|l| l.0),
        above_90_samples: counter.above.map(|above| above.samples),
        above_90_ns: counter.above.map(|_| longest.map_or(0, |(ns, _)| ns)),
        above_90_utc_ns: longest.map(|(_, since)| since),
    }
}

fn machine_row(
    machine: &Machine,
    of_machine: &[&Counter],
    all: &Collected,
    zero: i64,
    strings: &mut Strings,
) -> Option<CounterMachineRow> {
    let (first_utc_ns, last_utc_ns) = machine.range?;
    let counters = of_machine.iter().copied();
    let unknown = unknown_language(counters.clone());
    Some(CounterMachineRow {
        machine: strings.intern(&machine.name),
        files: machine.files.len() as i64,
        counters: counters.clone().count() as i64,
        unknown_counters: counters.filter(|c| c.name.is_none()).count() as i64,
        unknown_language: unknown.map(|counter| strings.intern(&counter.text)),
        cpus: all.cpus(machine, of_machine),
        gaps: machine.gaps.0,
        gap_ns: machine.gaps.1,
        first_utc_ns,
        last_utc_ns,
        zero_utc_ns: zero,
        interval_ns: machine.interval_ns,
        zone: machine.zone.as_ref().map(|(zone, _)| strings.intern(zone)),
        bias_min: machine.zone.as_ref().map(|(_, bias)| *bias),
    })
}

/// A counter of a log whose language seems not to be known: its object has a name that is not, and letters that English has not, or none of
/// the objects that findings read has a name that is, and most of its names are not English: a log of a database alone is.
fn unknown_language<'c>(counters: impl Iterator<Item = &'c Counter> + Clone) -> Option<&'c Counter> {
    let is_read = |c: &Counter| c.object.is_some_and(|object| WANTED.iter().any(|w| w.is_object(object)));
    let is_foreign = |c: &&Counter| !c.path.object.is_ascii() || !c.path.name.is_ascii();
    let mut unknown = counters.clone().filter(|c| c.name.is_none());
    match unknown.clone().find(is_foreign) {
        Some(counter) => Some(counter),
        None if counters.clone().any(is_read) => None,
        None => {
            let english = unknown.clone().filter(|counter| is_english(&counter.path)).count();
            if english > unknown.clone().count() / 2 { None } else { unknown.next() }
        }
    }
}

/// Words in English names of counters that the names of no other language have.
const ENGLISH: [&str; 19] = [
    "average", "avg", "count", "current", "errors", "hits", "length", "life", "number", "of", "reads",
    "received", "requests", "sent", "size", "switches", "time", "used", "writes",
];

/// The object or the counter has a name of English words.
fn is_english(path: &CounterPath) -> bool {
    let mut words =
        [&path.object, &path.name].into_iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    words.any(|word| ENGLISH.iter().any(|english| word.eq_ignore_ascii_case(english)))
}

fn wanted_rows(machine: &Machine, of_machine: &[&Counter], strings: &mut Strings) -> Vec<CounterWantedRow> {
    WANTED
        .iter()
        .map(|wanted| {
            let logged = of_machine
                .iter()
                .filter(|c| c.object.zip(c.name).is_some_and(|(object, name)| wanted.is(object, name)));
            CounterWantedRow {
                machine: strings.intern(&machine.name),
                object_en: strings.intern(wanted.object),
                name_en: strings.intern(wanted.name),
                path: strings.intern(&wanted.path()),
                counters: logged.clone().filter(|c| c.samples > 0).count() as i64,
                totals: logged.clone().filter(|c| c.samples > 0 && c.is_total()).count() as i64,
                without_value: logged.clone().filter(|c| c.samples == 0).count() as i64,
                samples: logged.map(|c| c.samples).max().unwrap_or(0),
                command: strings.intern(&wanted.command()),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_databases_and_web_servers_are_english() {
        let is = |path: &str| is_english(&CounterPath::parse(path).unwrap());
        assert!(is(r"\\S\SQLServer:Buffer Manager\Page life expectancy"));
        assert!(is(r"\\S\.NET CLR Memory(w3wp)\% Time in GC"));
        assert!(is(r"\\S\Web Service(_Total)\Current Connections"));
        // Dutch, Danish and Polish.
        assert!(!is(r"\\S\Processor(_Total)\% Processortijd"));
        assert!(!is(r"\\S\Hukommelse\Sider/sek"));
        assert!(!is(r"\\S\Procesor(0)\Czas procesora (%)"));
    }
}
