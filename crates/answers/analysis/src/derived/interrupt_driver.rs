//! The driver for whom a framework runs its DPCs and ISRs.
//!
//! # How it is computed
//!
//! From `interrupt_path`. Frameworks (`ndis.sys`, `storport.sys`) register the routine and call the driver from it. Where one driver is charged
//! with more than half of the sampled time of a framework's DPCs (or ISRs), with at least 20 samples, they are that driver's.
//!
//! # What fools it
//!
//! Without samples, or without their stacks, there is no row, and the framework stands in for the driver. One framework may serve several
//! drivers: where none has more than half, nobody is named.

use super::interrupt_path::InterruptPathRow;
use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use crate::operators::add;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// Frameworks whose DPCs or ISRs are mostly another driver's.
    pub table INTERRUPT_DRIVER: InterruptDriverRow = "interrupt_driver" {
        version: 1,
        /// dpc or isr.
        class: Sym [None, Kind],
        /// Module whose routine was called.
        host: Sym [None, Name],
        /// Driver that has more than half of their sampled time.
        driver: Sym [None, Name],
        /// Time.
        cost_ns: i64 [Ns, Weight],
        /// Part of the sampled time of the host's routines, 0 to 1.
        share: f64 [None, Other],
        /// Samples.
        samples: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec =
    DerivedSpec { tables: &[&INTERRUPT_DRIVER], reads: reads::<InterruptPathRow>, on_demand: false, make };

/// Class and host in small letters.
type Host<'a> = (&'a str, String);

/// Time and samples, by driver.
type Drivers<'a> = BTreeMap<&'a str, (i64, i64)>;

/// Samples below which a share is chance.
const LEAST_SAMPLES: i64 = 20;

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let paths = db.read_or_empty::<InterruptPathRow>();
    let mut hosts: BTreeMap<Host<'_>, (&str, i64)> = BTreeMap::new();
    let mut drivers: BTreeMap<Host<'_>, Drivers<'_>> = BTreeMap::new();
    for row in &paths {
        let Some(host) = row.host() else { continue };
        let key = (row.class(), host.to_ascii_lowercase());
        add(&mut hosts.entry(key.clone()).or_insert((host, 0)).1, row.cost_ns());
        let Some(driver) = row.driver().filter(|driver| !driver.eq_ignore_ascii_case(host)) else { continue };
        let sum = drivers.entry(key).or_default().entry(driver).or_default();
        add(&mut sum.0, row.cost_ns());
        add(&mut sum.1, row.samples());
    }
    let mut rows = TableBuilder::<InterruptDriverRow>::new(memory);
    let mut strings = Strings::new();
    for (key, drivers) in &drivers {
        let Some(&(host, all_ns)) = hosts.get(key) else { continue };
        for (driver, &(cost_ns, samples)) in drivers {
            if cost_ns.saturating_mul(2) > all_ns && samples >= LEAST_SAMPLES {
                rows.push(InterruptDriverRow {
                    class: strings.intern(key.0),
                    host: strings.intern(host),
                    driver: strings.intern(driver),
                    cost_ns,
                    share: cost_ns as f64 / all_ns.max(1) as f64,
                    samples,
                });
            }
        }
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

/// Frameworks, in small letters, with the driver for whom they mostly run DPCs, else ISRs.
pub(crate) fn behind(db: &Database) -> HashMap<String, String> {
    let mut behind = HashMap::default();
    for class in ["dpc", "isr"] {
        for row in db.read_or_empty::<InterruptDriverRow>().iter().filter(|row| row.class() == class) {
            behind.entry(row.host().to_ascii_lowercase()).or_insert_with(|| row.driver().to_owned());
        }
    }
    behind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_framework_is_its_driver_s_if_that_has_more_than_half() {
        let (memory, mut strings) = (Memory::default(), Strings::new());
        let mut paths = TableBuilder::<InterruptPathRow>::new(&memory);
        for (class, host, driver, samples) in [
            ("dpc", "NDIS.SYS", Some("flt.sys"), 30),
            ("dpc", "ndis.sys", Some("nic.sys"), 20),
            ("dpc", "ndis.sys", None, 9),
            // Half is not more than half.
            ("isr", "ndis.sys", Some("nic.sys"), 40),
            ("isr", "ndis.sys", Some("ndis.sys"), 40),
            // Too few.
            ("dpc", "storport.sys", Some("raid.sys"), 19),
        ] {
            let mut text = |text: &str| strings.intern(text);
            paths.push(InterruptPathRow {
                class: text(class),
                host: Some(text(host)),
                device_driver: None,
                driver: driver.map(&mut text),
                vendor: None,
                product: None,
                category: None,
                cost_ns: samples * 1_000_000,
                samples,
            });
        }
        let mut db = Database::new();
        db.insert(paths.finish(&freeze_plain(strings).unwrap()).unwrap());
        let made = make(&db, &memory).unwrap();
        let first = ["class", "host", "driver"].map(|column| made[0].text(0, column).unwrap());
        assert_eq!((made[0].rows(), first), (1, ["dpc", "NDIS.SYS", "flt.sys"]));
    }
}
