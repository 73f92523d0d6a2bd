//! Which drivers run inside of DPCs and ISRs, and behind which.
//!
//! # How it is computed
//!
//! From samples in DPCs and ISRs, the part of the stack inside of the kernel's dispatcher. `host` is the outermost module there
//! that is not the kernel itself: whose routine was called, mostly a framework (`ndis.sys`, `storport.sys`). `device_driver` is the
//! outermost driver that is not Windows, the one that belongs to the device. `driver` is the one that `driver_cost` charges: the innermost,
//! unless it merely handed the work to the next layer. Where both differ, `driver` is a filter, a team or another guest in the path of the device.
//!
//! # What fools it
//!
//! Samples without a stack have none of the three. Without symbols of the kernel the dispatcher cannot be seen, and the
//! drivers of the thread that was interrupted may appear. A device driver that is made of two files looks like a guest.

use crate::derive::DerivedSpec;
use crate::fold::{Class, Fold, FoldRows, NONE, freeze_plain, interrupts, text};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use std::collections::BTreeMap;

define_table! {
    /// Sampled time in DPCs and ISRs by the module that was called and the drivers inside, each sample once.
    pub table INTERRUPT_PATH: InterruptPathRow = "interrupt_path" {
        version: 1,
        /// dpc or isr.
        class: Sym [None, Kind],
        /// Module whose routine was called; null without a stack.
        host: Option<Sym> [None, Name],
        /// Outermost driver that is not Windows itself; null if there is none.
        device_driver: Option<Sym> [None, Name],
        /// Driver that is charged: the innermost that is not Windows itself; null if there is none, or if it handed the work on.
        driver: Option<Sym> [None, Name],
        /// Who makes `driver`.
        vendor: Option<Sym> [None, Name],
        /// What `driver` belongs to.
        product: Option<Sym> [None, Name],
        /// What `driver` is for.
        category: Option<Sym> [None, Kind],
        /// Time.
        cost_ns: i64 [Ns, Weight],
        /// Samples.
        samples: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec =
    DerivedSpec { tables: &[&INTERRUPT_PATH], reads: reads::<FoldRows>, on_demand: false, make };

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    Ok(vec![paths(&Fold::read(db, false), memory)?])
}

/// The table of those samples for which `wanted` is true: as if nothing else had been recorded.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn of_samples(db: &Database, wanted: &[bool]) -> etwhy_table::Result<Table> {
    paths(&Fold::of(db, interrupts(db, wanted), false), &Memory::default())
}

fn paths(fold: &Fold, memory: &Memory) -> etwhy_table::Result<Table> {
    let facts = &fold.facts;
    let mut rows = TableBuilder::<InterruptPathRow>::new(memory);
    let mut strings = Strings::new();
    let mut sums: BTreeMap<(Class, [u32; 3]), (i64, i64)> = BTreeMap::new();
    for group in fold.groups.iter().filter(|group| group.class != Class::Thread) {
        for row in &group.rows {
            let part = fold.part(group.class, row.stack);
            let outermost = |wanted: &dyn Fn(u32) -> bool| {
                let modules = part.kernel.iter().rev().map(|&frame| facts.module_of(frame));
                modules.into_iter().find(|&m| wanted(m)).unwrap_or(NONE)
            };
            let host = outermost(&|m| facts.module(m).is_some_and(|m| !is_kernel(&m.name)));
            // A routine of the kernel itself, such as that of a timer.
            let host = if host == NONE { outermost(&|m| facts.module(m).is_some()) } else { host };
            let key = [host, outermost(&|m| facts.is_driver(m)), fold.owner(&part)];
            let sum = sums.entry((group.class, key)).or_default();
            *sum = (sum.0.saturating_add(row.weight), sum.1.saturating_add(row.samples));
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    for ((class, [host, device, driver]), (cost_ns, samples)) in sums {
        let charged = facts.module(driver).cloned().unwrap_or_default();
        rows.push(InterruptPathRow {
            class: strings.intern(class.name()),
            host: facts.module(host).and_then(|m| text(&mut strings, &m.name)),
            device_driver: facts.module(device).and_then(|m| text(&mut strings, &m.name)),
            driver: text(&mut strings, &charged.name),
            vendor: text(&mut strings, &charged.vendor),
            product: text(&mut strings, &charged.product),
            category: text(&mut strings, &charged.category),
            cost_ns,
            samples,
        });
    }
    rows.finish(&freeze_plain(strings)?)
}

fn is_kernel(module: &str) -> bool {
    ["ntoskrnl.exe", "hal.dll", "[unknown]"].iter().any(|name| module.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::sampled;
    use etwhy_testkit::Are as _;

    #[test]
    fn a_guest_in_the_path_is_told_from_the_device_driver() {
        let dispatch = "ntoskrnl.exe!KiExecuteAllDpcs ntoskrnl.exe!KiRetireDpcList";
        let stacks = [
            format!("ids.sys!Match ndis.sys!Indicate nic.sys!Receive ndis.sys!ndisInterruptDpc {dispatch}"),
            format!("ndis.sys!Free nic.sys!Receive ndis.sys!ndisInterruptDpc {dispatch} other.sys!Thread"),
            format!("ntoskrnl.exe!KiTimer {dispatch}"),
        ];
        let db = sampled(&[
            ("dpc", 1, 6, &stacks[0]),
            ("dpc", 1, 3, &stacks[1]),
            ("dpc", 1, 1, &stacks[2]),
            ("thread", 1, 9, &stacks[0]),
        ]);
        let made = make(&db, &Memory::default()).unwrap();
        let path = |row| {
            ["host", "device_driver", "driver"]
                .map(|c| made[0].text(row, c).unwrap_or("-").to_owned())
                .join(" ")
        };
        assert_eq!(made[0].rows(), 3);
        [path(0), path(1), path(2)].are(&[
            "ndis.sys nic.sys ids.sys",
            "ndis.sys nic.sys nic.sys",
            "ntoskrnl.exe - -",
        ]);
        assert_eq!((0..3).map(|row| made[0].i64(row, "cost_ns").unwrap()).sum::<i64>(), 10_000_000);
    }
}
