//! Energy of CPU time.

use crate::bill::energy::{Model, ModelRows};
use crate::operators::stacks::{Metric, Source};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::{cswitch::CSwitchRow, sample::SampleRow};

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "energy",
    about: "energy of CPU time, estimated",
    manual: "CPU time of threads, DPCs and ISRs times the watts that one more busy logical processor draws: the model of the bill \
             (table bill), whose bounds hold here too: eight machines of ten are within them. Idle power is not in it. It is \
             an estimate from published results of servers, and the same watts for all code; it compares code on one machine, and says \
             no more than cpu does about which code is worse. Without samples the time is that of run, with its stacks.",
    unit: Unit::MicroJoules,
    source: Source::Code(reads::<(SampleRow, CSwitchRow, ModelRows)>, |db, give| {
        let sampled = !db.read_or_empty::<SampleRow>().is_empty();
        let Some(model) = Model::read(db, sampled) else { return };
        // Joules per second are nanojoules per nanosecond.
        let watts = model.joules(1_000_000_000).mid;
        let mut priced = |mut weight: crate::operators::stacks::WeightedStack| {
            weight.weight = (weight.weight as f64 * watts / 1e3).round() as i64;
            give(weight);
        };
        let rows = if sampled { super::busy::ROWS } else { super::run::ROWS };
        rows.each(db, &mut priced);
    }),
};
