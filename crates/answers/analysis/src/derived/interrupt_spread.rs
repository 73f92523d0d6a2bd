//! On how many processors the DPCs and ISRs of a module run.
//!
//! # How it is computed
//!
//! From `interrupt_cost`, level `routine_cpu`. A processor is *hot* for a module if it has at least half as much of its time
//! as the busiest one. `hot_share` is the part of the module's time on hot processors.
//!
//! # What fools it
//!
//! One busy network card with one queue is hot on one processor, which may be right for what it has to do: only when
//! that processor is busy does the spread matter.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use crate::operators::add;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::{cpu_time::CpuRow, interrupt_cost::InterruptCostRow};
use std::collections::{BTreeMap, BTreeSet};

define_table! {
    /// Spread of DPCs and ISRs over processors, by module.
    pub table INTERRUPT_SPREAD: InterruptSpreadRow = "interrupt_spread" {
        version: 1,
        /// dpc or isr.
        class: Sym [None, Kind],
        /// Module of the routines; null where it is not known.
        module: Option<Sym> [None, Name],
        /// Processors on which any of them ran.
        cpus: i32 [Count, Count],
        /// Processors with at least half as much time as the busiest.
        hot_cpus: i32 [Count, Count],
        /// Their numbers, in order.
        hot_processors: Sym [None, Message],
        /// NUMA nodes that they belong to, as far as recorded.
        hot_nodes: i32 [Count, Count],
        /// Time of all of them, without what interrupted them.
        total_ns: i64 [Ns, Duration],
        /// Of this on hot processors.
        hot_ns: i64 [Ns, Duration],
        /// Of this on the busiest processor.
        busiest_ns: i64 [Ns, Duration],
        /// How many ran.
        count: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&INTERRUPT_SPREAD],
    reads: reads::<(InterruptCostRow, CpuRow)>,
    on_demand: false,
    make,
};

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut nodes: BTreeMap<i64, i64> = BTreeMap::new();
    nodes.extend(db.read_or_empty::<CpuRow>().iter().filter_map(|row| Some((row.cpu(), row.numa_node()?))));
    let mut sums: BTreeMap<(String, String), BTreeMap<i64, (i64, i64)>> = BTreeMap::new();
    for row in db.read_or_empty::<InterruptCostRow>().iter().filter(|&row| row.level() == "routine_cpu") {
        let key = (row.class().to_owned(), row.module().unwrap_or("").to_owned());
        let Some(cpu) = row.cpu() else { continue };
        let sum = sums.entry(key).or_default().entry(cpu).or_default();
        add(&mut sum.0, row.exclusive_ns());
        add(&mut sum.1, row.count());
    }
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<InterruptSpreadRow>::new(memory);
    for ((class, module), cpus) in sums {
        let busiest = cpus.values().map(|sum| sum.0).max().unwrap_or(0);
        let hot = || cpus.iter().filter(|(_, sum)| sum.0 > 0 && sum.0 >= busiest / 2);
        let numbers: Vec<String> = hot().map(|(cpu, _)| cpu.to_string()).collect();
        let on: BTreeSet<i64> = hot().filter_map(|(cpu, _)| nodes.get(cpu).copied()).collect();
        let total =
            |which: &dyn Fn(&(i64, i64)) -> i64| cpus.values().map(which).fold(0i64, i64::saturating_add);
        rows.push(InterruptSpreadRow {
            class: strings.intern(&class),
            module: (!module.is_empty()).then(|| strings.intern(&module)),
            cpus: cpus.len() as i32,
            hot_cpus: numbers.len() as i32,
            hot_processors: strings.intern(&numbers.join(", ")),
            hot_nodes: on.len() as i32,
            total_ns: total(&|sum| sum.0),
            hot_ns: hot().map(|(_, sum)| sum.0).fold(0i64, i64::saturating_add),
            busiest_ns: busiest,
            count: total(&|sum| sum.1),
        });
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use etwhy_table::Value;

    #[test]
    fn hot_processors_are_those_near_the_busiest() {
        let mut db = Database::new();
        let cpu = |cpu, node| vec![Value::I64(cpu), Value::I64(node)];
        db.insert(table("cpu", "cpu numa_node", &[cpu(0, 0), cpu(2, 0), cpu(5, 1)]));
        let row = |level: &'static str, cpu, ns| {
            let text = [Value::Text(level), Value::Text("dpc"), Value::Text("ndis.sys")];
            [text.as_slice(), &[Value::I64(cpu), Value::I64(ns), Value::I64(10)]].concat()
        };
        let columns = "level class module cpu exclusive_ns count";
        let rows = [
            row("routine_cpu", 0, 60),
            row("routine_cpu", 0, 40),
            row("routine_cpu", 2, 50),
            row("routine_cpu", 5, 49),
            row("cpu", 5, 900),
        ];
        db.insert(table("interrupt_cost", columns, &rows));
        let made = make(&db, &Memory::default()).unwrap();
        let number = |column| made[0].i64(0, column).unwrap();
        assert_eq!(made[0].rows(), 1);
        assert_eq!(made[0].text(0, "hot_processors"), Some("0, 2"));
        let all = ["cpus", "hot_cpus", "hot_nodes", "total_ns", "hot_ns", "busiest_ns", "count"].map(number);
        assert_eq!(all, [3, 2, 1, 199, 150, 100, 40]);
    }
}
