//! DPCs and ISRs of a part: by driver and routine, in classes of durations, by processor, and who is on their stacks.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::{Kind, Part};
use crate::reply::Reply;
use crate::trace::Trace;
use crate::who;
use etwhy_analysis::interrupts::{
    BORDERS_NS, Class, CpuLoad, Driver, LIMIT_SOURCE, OnStack, interrupts, on_stacks, on_stacks_where,
};
use etwhy_table::TableSpec;
use serde::Serialize;
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "interrupts",
    about: "body: part. JSON: all (by class), drivers with routines and bins, cpus, stacks (stacks_whole: of the whole trace), limits, borders, sql, unused",
    work: Work::Panel,
    answer,
};

#[derive(Serialize, TS)]
pub(crate) struct Interrupts {
    range: [i64; 2],
    processors: i64,
    limits: Limits,
    /// Upper borders of classes of durations.
    borders: Vec<i64>,
    /// All DPCs, all ISRs: no module.
    all: Vec<Driver>,
    /// The costliest first.
    drivers: Vec<KnownDriver>,
    cpus: Vec<CpuLoad>,
    stacks: Vec<OnStack>,
    /// They are of the whole trace, whatever was asked: its samples are not there.
    stacks_whole: bool,
    sql: Vec<String>,
    unused: Vec<&'static str>,
}

/// How long one should take at most, ns, and who says so.
#[derive(Serialize, TS)]
#[ts(rename = "InterruptLimits")]
struct Limits {
    dpc: i64,
    isr: i64,
    source: &'static str,
}

/// A driver, and what is known of it.
#[derive(Serialize, TS)]
struct KnownDriver {
    #[serde(flatten)]
    driver: Driver,
    vendor: Option<&'static str>,
    category: Option<&'static str>,
    security: bool,
}

impl KnownDriver {
    fn of(driver: Driver) -> KnownDriver {
        let known = driver.module.as_deref().and_then(|module| etwhy_knowledge::category_of(module, ""));
        KnownDriver {
            vendor: known.map(|known| known.vendor),
            category: known.map(|known| known.category),
            security: known.is_some_and(|known| etwhy_knowledge::is_security(known.category)),
            driver,
        }
    }
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let trace = call.trace()?;
    // DPCs and ISRs are nobody's: the process and thread of a row were interrupted by chance, and to count only those would name the
    // wrong driver.
    let asked = Part::parse(call)?;
    let mut part = asked.clone();
    part.filters.retain(|filter| !matches!(filter.kind, Kind::Process | Kind::Thread));
    let extent = trace.extent();
    let conditions = |spec: &TableSpec| part.conditions(spec).0;
    let found = interrupts(&trace.db, &conditions, || !call.cancel.is_set())?;
    call.cancel.check()?;
    let (stacks, stacks_whole) = stacks(&trace, &part)?;
    let range = part.range.unwrap_or([extent.first_ns, extent.last_ns.saturating_add(1)]);
    Reply::json(&Interrupts {
        range,
        processors: extent.cpus,
        limits: Limits { dpc: Class::Dpc.limit_ns(), isr: Class::Isr.limit_ns(), source: LIMIT_SOURCE },
        borders: BORDERS_NS.to_vec(),
        all: found.all,
        drivers: found.drivers.into_iter().map(KnownDriver::of).collect(),
        cpus: found.cpus,
        stacks,
        stacks_whole,
        sql: found.sql,
        unused: who::unused(&asked, &[Kind::Cpu, Kind::Module]),
    })
}

/// Who is on the stacks of the part, and whether that is of the whole trace instead. The module of a filter is that of a DPC's routine; who is
/// on its stack is asked here, so that filter does not count.
fn stacks(trace: &Trace, part: &Part) -> Result<(Vec<OnStack>, bool), Fault> {
    let mut part = part.clone();
    part.filters.retain(|filter| filter.kind == Kind::Cpu);
    let whole = part.range.is_none() && part.filters.is_empty();
    let Some(table) = trace.db.get("sample").filter(|table| !whole && table.rows() > 0) else {
        return Ok((on_stacks(&trace.db), !whole));
    };
    let conditions = part.conditions(table.spec()).0;
    let kept = trace.cached(&format!("on stacks {conditions:?}"), || {
        let found = on_stacks_where(&trace.db, &conditions)?;
        let bytes = found.len().saturating_mul(size_of::<OnStack>() + 200);
        Ok((found, bytes))
    })?;
    Ok(((*kept).clone(), false))
}
