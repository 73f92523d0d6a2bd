//! Fields that `--where` names and no record has.

use crate::catalog::meant;
use etwhy_evtx::binxml::{Decoder, Event, Fault, Name, Value};
use etwhy_evtx::filter::Condition;
use etwhy_evtx::read::{LogFile, RecordRef};
use etwhy_evtx::scan::{Reader, ScanOptions, scan};
use std::collections::BTreeSet;

/// Names of fields that are remembered: logs have some thousands, unless somebody made them for this.
const MOST_NAMES: usize = 100_000;

/// Collects the names of fields.
#[derive(Default)]
struct Names {
    all: BTreeSet<String>,
    name: String,
}

impl Reader for Names {
    type Output = BTreeSet<String>;

    fn record(
        &mut self,
        decoder: &mut Decoder,
        _: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        let Ok(event) = event else { return Ok(()) };
        let Names { all, name } = self;
        decoder.fields(&event, &mut |field: Name<'_>, _: Value<'_>| {
            name.clear();
            field.push(name);
            if all.len() < MOST_NAMES && !all.contains(name.as_str()) {
                all.insert(name.clone());
            }
        })
    }

    fn finish(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.all)
    }
}

/// Says on standard error which of these conditions are about a field that no record of the logs has. Only those whose field was not
/// seen have the logs read again: other filters may have left out the records that have it. Of logs that cannot be read to their end
/// nothing is said.
pub fn say_unknown(conditions: &[Condition], logs: &[LogFile], threads: usize) {
    if conditions.iter().all(Condition::is_seen) {
        return;
    }
    let mut all = BTreeSet::new();
    for log in logs {
        let read = scan(log, &ScanOptions { threads, in_order: false }, Names::default, |names| {
            all.extend(names);
            true
        });
        if read.is_err() {
            return;
        }
    }
    for condition in conditions.iter().filter(|condition| !condition.is_seen()) {
        let name = condition.name();
        if !all.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            let meant = meant(name, all.iter().map(String::as_str));
            say!("etwhy: --where: no record has a field `{name}`{meant}");
        }
    }
}
