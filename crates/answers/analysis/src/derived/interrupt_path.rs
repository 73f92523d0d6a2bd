//! Which drivers run inside of DPCs and ISRs, and behind which.
//!
//! # How it is computed
//!
//! From samples in DPCs and ISRs, the part of the stack inside of the kernel's dispatcher. `host` is the outermost module there
//! that is not the kernel itself: whose routine was called, mostly a framework (`ndis.sys`, `storport.sys`). `device_driver` is the
//! outermost driver that is not Windows, the one that belongs to the device; where a network adapter's driver of Windows had handed it the packets
//! (`NdisMIndicateReceiveNetBufferLists`), that one. `driver` is the one that `driver_cost` charges: the innermost,
//! unless it merely handed the work to the next layer. Where both differ, `driver` is a filter, a team or another guest in the path of the device.
//!
//! # What fools it
//!
//! Samples without a stack have none of the three. Without symbols of the kernel the dispatcher cannot be seen, and the
//! drivers of the thread that was interrupted may appear. A device driver that is made of two files looks like a guest; `direct` tells that the
//! one calls the other without another layer between them.

use crate::derive::DerivedSpec;
use crate::fold::{Class, Facts, Fold, FoldRows, NONE, freeze_plain, interrupts, text};
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
        /// Outermost driver that is not Windows itself, or Windows' driver of the network adapter that called it; null if there is none.
        device_driver: Option<Sym> [None, Name],
        /// Driver that is charged: the innermost that is not Windows itself; null if there is none, or if it handed the work on.
        driver: Option<Sym> [None, Name],
        /// `driver` is another one than `device_driver`, which itself called it, without a layer between them. Null in extracts of before it was known.
        direct: Option<bool> [None, Flag],
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
    let mut sums: BTreeMap<(Class, [u32; 3], bool), (i64, i64)> = BTreeMap::new();
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
            let (device, driver) = (device_driver(facts, part.kernel), fold.owner(&part));
            let modules = part.kernel.iter().map(|&frame| facts.module_of(frame));
            let callers = modules.clone().skip(1);
            let mut calls = modules.zip(callers);
            let is_guest = driver != NONE && driver != device;
            let direct = is_guest && calls.any(|(callee, caller)| callee == driver && caller == device);
            let sum = sums.entry((group.class, [host, device, driver], direct)).or_default();
            *sum = (sum.0.saturating_add(row.weight), sum.1.saturating_add(row.samples));
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    for ((class, [host, device, driver], direct), (cost_ns, samples)) in sums {
        let charged = facts.module(driver).cloned().unwrap_or_default();
        rows.push(InterruptPathRow {
            class: strings.intern(class.name()),
            host: facts.module(host).and_then(|m| text(&mut strings, &m.name)),
            device_driver: facts.module(device).and_then(|m| text(&mut strings, &m.name)),
            driver: text(&mut strings, &charged.name),
            direct: Some(direct),
            vendor: text(&mut strings, &charged.vendor),
            product: text(&mut strings, &charged.product),
            category: text(&mut strings, &charged.category),
            cost_ns,
            samples,
        });
    }
    rows.finish(&freeze_plain(strings)?)
}

/// Number of the driver that belongs to the device, or [`NONE`]: the outermost that is not Windows, unless Windows' own driver of a network adapter
/// had handed it the packets.
pub(super) fn device_driver(facts: &Facts, kernel: &[u32]) -> u32 {
    let module = |at: usize| kernel.get(at).map_or(NONE, |&frame| facts.module_of(frame));
    let Some(at) = kernel.iter().rposition(|&frame| facts.is_driver(facts.module_of(frame))) else {
        return NONE;
    };
    let is_packets = |frame: u32| {
        let function = facts.functions.get(facts.function_of(frame) as usize);
        function.is_some_and(|(label, _)| {
            let begin = label.get(..INDICATES.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(INDICATES))
        })
    };
    let mut outside = (at.saturating_add(1)..kernel.len()).rev();
    let handed = outside.find(|&at| kernel.get(at).is_some_and(|&frame| is_packets(frame)));
    let Some(handed) = handed else { return module(at) };
    let of_ndis = module(handed);
    let adapter = (handed..kernel.len()).map(module).find(|&m| m != of_ndis).unwrap_or(NONE);
    let known = facts.module(adapter).is_some_and(|m| !is_kernel(&m.name));
    if known { adapter } else { module(at) }
}

/// What a driver of a network adapter calls with packets that it received.
const INDICATES: &str = "ndis.sys!NdisMIndicateReceive";

/// The kernel itself, or nobody who is known.
pub(crate) fn is_kernel(module: &str) -> bool {
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

    #[test]
    fn behind_windows_own_adapter_every_other_driver_is_a_guest() {
        let dispatch = "ntoskrnl.exe!KiExecuteAllDpcs ntoskrnl.exe!KiRetireDpcList";
        let handed = "ndis.sys!NdisMIndicateReceiveNetBufferLists";
        let stacks = [
            format!("ids.sys!Match {handed} netvsc63.sys!Receive vmbkmcl.sys!Isr {dispatch}"),
            // The adapter's maker sells a filter, too: NDIS calls it. A second file of a driver is called by the first.
            format!("prio.sys!Classify {handed} nic.sys!Receive ndis.sys!ndisInterruptDpc {dispatch}"),
            format!("nichal.sys!Read nic.sys!Receive ndis.sys!ndisInterruptDpc {dispatch}"),
        ];
        let db = sampled(&[("dpc", 1, 6, &stacks[0]), ("dpc", 1, 3, &stacks[1]), ("dpc", 1, 1, &stacks[2])]);
        let made = make(&db, &Memory::default()).unwrap();
        let path = |row| {
            let names = ["host", "device_driver", "driver"].map(|c| made[0].text(row, c).unwrap_or("-"));
            format!("{} {:?}", names.join(" "), made[0].value(row, "direct"))
        };
        [path(0), path(1), path(2)].are(&[
            "vmbkmcl.sys netvsc63.sys ids.sys Bool(false)",
            "ndis.sys nic.sys prio.sys Bool(false)",
            "ndis.sys nic.sys nichal.sys Bool(true)",
        ]);
    }
}
