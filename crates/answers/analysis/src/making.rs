//! Which derived tables are made, and in which order.

use crate::derive::DerivedSpec;
use crate::derived::ALL;
use etwhy_base::parallel;
use etwhy_table::{Database, Memory};
use std::collections::BTreeSet;
use std::time::Instant;

/// All tables that must be there so that `wanted` can be made: these themselves and what they are made from.
pub fn closure(wanted: &BTreeSet<String>) -> BTreeSet<String> {
    let mut all = wanted.clone();
    loop {
        let before = all.len();
        for spec in ALL {
            if spec.tables.iter().any(|t| all.contains(t.name.as_ref())) {
                all.extend((spec.reads)().iter().map(|table| table.name.to_string()));
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// Makes the derived tables of `wanted` (`None`: all of traces that are not on demand) that are not there yet, each after
/// those it reads. Tables that do not read each other are made by up to `threads` threads at the same time.
///
/// # Errors
/// Those of the table builder.
pub fn derive(
    db: &mut Database,
    wanted: Option<&BTreeSet<String>>,
    memory: &Memory,
    threads: usize,
) -> etwhy_table::Result<()> {
    let chosen = |spec: &&&DerivedSpec| match wanted {
        Some(names) => spec.tables.iter().any(|t| names.contains(t.name.as_ref())),
        None => !spec.on_demand && !spec.is_beside_traces(),
    };
    let mut open: Vec<&DerivedSpec> = ALL.iter().filter(chosen).copied().collect();
    open.retain(|spec| spec.tables.iter().any(|t| db.get(&t.name).is_none()));
    while !open.is_empty() {
        let waits = |spec: &DerivedSpec| {
            open.iter().any(|other| {
                !std::ptr::eq::<DerivedSpec>(*other, spec)
                    && (spec.reads)().iter().any(|read| other.makes(&read.name))
            })
        };
        let (mut waiting, mut ready): (Vec<_>, Vec<_>) = open.iter().copied().partition(|spec| waits(spec));
        if ready.is_empty() {
            // `the_order_exists` makes sure that this is never so.
            ready.extend(waiting.pop());
        }
        let make = |(): &mut (), spec: &DerivedSpec| {
            let begin = Instant::now();
            let made = (spec.make)(&db.limited_to(&(spec.reads)()), memory);
            let seconds = begin.elapsed().as_secs_f64();
            for table in made.iter().flatten() {
                tracing::debug!("derived table {}: {} rows, {seconds:.3} s", table.name(), table.rows());
            }
            made
        };
        let made = parallel::map(threads, ready, || (), make);
        for tables in made {
            for table in tables? {
                db.insert(table);
            }
        }
        open = waiting;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_exists() {
        let mut made: BTreeSet<&str> = BTreeSet::new();
        let derived: BTreeSet<&str> =
            ALL.iter().flat_map(|s| s.tables.iter()).map(|t| t.name.as_ref()).collect();
        for _ in ALL {
            for spec in ALL {
                let there = |name: &str| made.contains(name) || !derived.contains(name);
                if (spec.reads)().iter().all(|read| there(&read.name)) {
                    made.extend(spec.tables.iter().map(|t| t.name.as_ref()));
                }
            }
        }
        assert_eq!(made, derived, "tables that need each other");
    }

    #[test]
    fn they_can_be_made_from_nothing() {
        let mut db = Database::new();
        let all: BTreeSet<String> =
            ALL.iter().flat_map(|s| s.tables.iter()).map(|t| t.name.to_string()).collect();
        derive(&mut db, Some(&all), &Memory::default(), 2).unwrap();
        for spec in ALL {
            for table in spec.tables {
                assert_eq!(db.get(&table.name).unwrap().spec().columns, table.columns, "{}", table.name);
            }
        }
    }
}
