//! Frameworks that run the DPCs and ISRs of other drivers, and the samples that tell for whom.

use super::{Insides, Told, is_long};
use crate::fold::{Class, freeze_plain};
use crate::operators::add;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table};
use etwhy_trace::catalog::interrupt_cost::InterruptCostRow;
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

define_table! {
    /// Frameworks that ran DPCs or ISRs of other drivers, and the samples that tell for whom.
    ///
    /// Modules of Windows whose routines call the drivers of several devices. Only stacks of samples say which of these ran: without any, or with few,
    /// a framework is not the one to name. The ISR of a USB controller is its driver's own.
    pub table INTERRUPT_HOST: InterruptHostRow = "interrupt_host" {
        version: 1,
        /// dpc or isr.
        class: Sym [None, Kind],
        /// The framework, in lower case.
        host: Sym [None, Name],
        /// Samples in its DPCs or ISRs whose stack tells for whom they ran.
        samples: i64 [Count, Count],
        /// Of these, samples in those above Microsoft's limit (100 µs for a DPC, 25 µs for an ISR).
        long_samples: i64 [Count, Count],
        /// Of these, samples in the one DPC or ISR with most of them.
        severe_samples: i64 [Count, Count],
        /// Why samples do not tell more, for texts.
        why_hidden: Sym [None, Message],
    }
}

/// Modules of Windows whose routines call the drivers of several devices, in lower case.
const FRAMEWORKS: [&str; 15] = [
    "ataport.sys",
    "fltmgr.sys",
    "fwpkclnt.sys",
    "hidclass.sys",
    "ks.sys",
    "ndis.sys",
    "netio.sys",
    "ntoskrnl.exe",
    "portcls.sys",
    "scsiport.sys",
    "storport.sys",
    "tcpip.sys",
    "usbport.sys",
    USB_CONTROLLER,
    "wdf01000.sys",
];

/// Its ISR serves the controller, its DPCs the devices.
const USB_CONTROLLER: &str = "usbxhci.sys";

/// Whether a module runs the DPCs of other drivers.
pub(super) fn is_framework(module: &str) -> bool {
    FRAMEWORKS.iter().any(|name| module.eq_ignore_ascii_case(name))
}

/// Samples of a framework.
#[derive(Default)]
struct Seen {
    told: i64,
    long: i64,
    severe: i64,
    no_routine: i64,
}

pub(super) fn table(db: &Database, insides: &Insides, memory: &Memory) -> etwhy_table::Result<Table> {
    let mut seen: HashMap<(Class, u32), Seen> = HashMap::default();
    let mut each: BTreeMap<(Class, u32, i64, i64), i64> = BTreeMap::new();
    for inside in &insides.all {
        let host = seen.entry((inside.class, inside.host)).or_default();
        match inside.told {
            Told::NoStack => {}
            Told::NoRoutine => add(&mut host.no_routine, 1),
            Told::All => {
                add(&mut host.told, 1);
                add(&mut host.long, i64::from(is_long(inside)));
                let one = each.entry((inside.class, inside.host, inside.cpu, inside.start_ns)).or_default();
                add(one, 1);
                host.severe = host.severe.max(*one);
            }
        }
    }
    let costs = db.read_or_empty::<InterruptCostRow>();
    let modules = costs.iter().filter(|row| row.level() == "module").filter_map(|row| {
        let (class, host) = (Class::named(row.class()), row.module()?.to_ascii_lowercase());
        (is_framework(&host) && (class, host.as_str()) != (Class::Isr, USB_CONTROLLER))
            .then_some((class, host))
    });
    let mut rows = TableBuilder::<InterruptHostRow>::new(memory);
    let mut strings = Strings::new();
    for (class, host) in modules.collect::<BTreeSet<(Class, String)>>() {
        let number = insides.names.numbers.get(&host);
        let none = Seen::default();
        let of = number.and_then(|number| seen.get(&(class, *number))).unwrap_or(&none);
        let why_hidden = match (of.told, of.no_routine) {
            (told, no_routine) if no_routine > told => "functions of the kernel have no names",
            (0, _) => "stacks of interrupts were not recorded",
            _ => "few samples lie in them",
        };
        rows.push(InterruptHostRow {
            class: strings.intern(class.name()),
            host: strings.intern(&host),
            samples: of.told,
            long_samples: of.long,
            severe_samples: of.severe,
            why_hidden: strings.intern(why_hidden),
        });
    }
    rows.finish(&freeze_plain(strings)?)
}

#[cfg(test)]
mod tests {
    use super::super::make;
    use crate::fold::tests::{sampled, shown, table};
    use etwhy_table::{Memory, Value};

    /// Samples as host, stack, and when their DPC of 0.25 ms began.
    #[test]
    fn stacks_that_tell_nothing_are_not_counted() {
        let dispatch = "ntoskrnl.exe!KiExecuteAllDpcs ntoskrnl.exe!KiRetireDpcList";
        let told = format!("nic.sys!Receive ndis.sys!ndisInterruptDpc {dispatch}");
        let mut db =
            sampled(&[("dpc", 1, 1, &told), ("dpc", 1, 1, "poll.sys!? ntoskrnl.exe!? ntoskrnl.exe!?")]);
        let samples = [
            ("NDIS.SYS", Some(0), 1),
            ("ndis.sys", Some(0), 1),
            ("ndis.sys", Some(0), 2),
            ("ndis.sys", None, 3),
        ];
        let samples = samples.into_iter().chain([("ntoskrnl.exe", Some(1), 4), ("storport.sys", None, 5)]);
        let row = |(at, (host, stack, begin)): (usize, (&'static str, Option<i64>, i64))| {
            vec![
                Value::Text("dpc"),
                Value::I64(at as i64),
                Value::I64(0),
                Value::Text(host),
                Value::I64(begin),
                Value::I64(250_000),
                stack.map_or(Value::Null, Value::I64),
                Value::I64(1_000_000),
            ]
        };
        let rows: Vec<Vec<Value<'_>>> = samples.enumerate().map(row).collect();
        let columns = "class ts_ns cpu module start_ns exclusive_ns stack_id weight_ns";
        db.insert(table("interrupt_sample", columns, &rows));
        let cost = |class, module| vec![Value::Text("module"), Value::Text(class), Value::Text(module)];
        let costs = [
            cost("dpc", "NDIS.sys"),
            cost("dpc", "nic.sys"),
            cost("dpc", "ntoskrnl.exe"),
            cost("dpc", "storport.sys"),
            cost("isr", "USBXHCI.SYS"),
        ];
        db.insert(table("interrupt_cost", "level class module", &costs));
        let made = make(&db, &Memory::default()).unwrap();
        assert_eq!(
            shown(&made[1], "class host samples long_samples severe_samples why_hidden", 1),
            [
                "dpc ndis.sys 3 3 2 few samples lie in them",
                "dpc ntoskrnl.exe 0 0 0 functions of the kernel have no names",
                "dpc storport.sys 0 0 0 stacks of interrupts were not recorded",
            ]
        );
    }
}
