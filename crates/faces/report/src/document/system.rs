//! Interrupts, growth, .NET and disks.

use super::dash;
use crate::charts::{DurationHistogram, GrowthCurve};
use etwhy_analysis::clr::ClrProcess;
use etwhy_analysis::disk::{Disk, DiskCost};
use etwhy_base::units::{bytes, counted, duration_ns, thousands};
use etwhy_doc::{Column, Doc, Line, Table};

pub(super) fn interrupts(doc: &mut Doc, histograms: &[DurationHistogram]) {
    if histograms.is_empty() {
        return;
    }
    doc.heading("DPCs and interrupts");
    let figures = ["count", "time", "limit", "longer", "time of those"].map(Column::number);
    let mut table = Table::new([Column::word("class"), Column::name("driver")].into_iter().chain(figures));
    for one in histograms {
        table.row([
            one.class.to_uppercase().into(),
            one.module.as_ref().map_or("all".into(), Line::name),
            thousands(one.count.into()).into(),
            duration_ns(one.total_ns).into(),
            duration_ns(one.limit_ns).into(),
            thousands(one.over_limit.into()).into(),
            duration_ns(one.over_limit_ns).into(),
        ]);
    }
    doc.table(table);
}

pub(super) fn growth(doc: &mut Doc, curves: &[GrowthCurve]) {
    if curves.is_empty() {
        return;
    }
    doc.heading("Growth");
    let texts = [Column::name("operation"), Column::name("process"), Column::text("verdict")];
    let figures = ["exponent", "cost of all", "one call at 10 × n"].map(Column::number);
    let columns = texts.into_iter().chain([Column::word("law of one call")]).chain(figures);
    let mut table = Table::new(columns);
    for one in curves {
        let [exponent, low, high] = [one.exponent, one.exponent_low, one.exponent_high]
            .map(|n| n.map_or_else(dash, |n| format!("{n:.2}")));
        table.row([
            Line::name(&one.operation),
            Line::name(&one.name),
            (&one.why).into(),
            (&one.model).into(),
            format!("{exponent} ({low}–{high})").into(),
            duration_ns(one.total_ns).into(),
            one.cost_10x_ns.map_or_else(dash, |ns| duration_ns(ns as i64)).into(),
        ]);
    }
    doc.table(table);
}

pub(super) fn clr(doc: &mut Doc, processes: &[ClrProcess]) {
    if !processes.is_empty() {
        doc.heading(".NET");
    }
    for one in processes {
        doc.item(Line::name(format!("{} ({})", one.name, one.pid)), clr_facts(one));
    }
}

fn clr_facts(process: &ClrProcess) -> Vec<String> {
    let [g0, g1, g2] = process.gc_by_generation;
    let collections = g0.saturating_add(g1).saturating_add(g2);
    let mut facts = Vec::new();
    if collections > 0 {
        facts.push(format!(
            "{} ({g0} gen 0, {g1} gen 1, {g2} gen 2; {} induced), paused {} in all, {} at most, heap up to {}",
            counted(collections, "collection", "collections"),
            process.gc_induced,
            duration_ns(process.gc_pause_ns),
            duration_ns(process.gc_longest_pause_ns),
            bytes(process.gc_peak_heap_bytes)
        ));
    }
    if process.jit_methods > 0 {
        let methods = counted(process.jit_methods, "method", "methods");
        facts.push(format!("{methods} compiled in {}", duration_ns(process.jit_ns)));
    }
    if process.contentions > 0 {
        let waits = counted(process.contentions, "wait for a lock", "waits for locks");
        facts.push(format!("{waits}, {}", duration_ns(process.contention_ns)));
    }
    if process.exceptions > 0 {
        let types: Vec<String> =
            process.exception_types.iter().take(5).map(|(name, n)| format!("{n} x {name}")).collect();
        let exceptions = counted(process.exceptions, "exception", "exceptions");
        facts.push(format!("{exceptions}: {}", types.join(", ")));
    }
    facts
}

pub(super) fn disk(doc: &mut Doc, disk: &Disk) {
    let total = &disk.total;
    if total.reads.saturating_add(total.writes) == 0 {
        return;
    }
    doc.heading("Disk");
    doc.text(format!(
        "{} reads ({}), {} writes ({}), {} of service time, longest response {}.",
        thousands(total.reads.into()),
        bytes(total.read_bytes),
        thousands(total.writes.into()),
        bytes(total.write_bytes),
        duration_ns(total.service_ns),
        duration_ns(total.longest_ns)
    ));
    for (what, list) in [("process", &disk.processes), ("file", &disk.files)] {
        doc.subheading(format!("Disk, by {what}"));
        transfers(doc, what, list);
    }
}

fn transfers(doc: &mut Doc, what: &str, list: &[DiskCost]) {
    let figures =
        ["service time", "reads", "read", "writes", "written", "longest response"].map(Column::number);
    let mut table = Table::new(std::iter::once(Column::name(what).least(24)).chain(figures));
    for cost in list {
        table.row([
            Line::name(&cost.name),
            duration_ns(cost.service_ns).into(),
            thousands(cost.reads.into()).into(),
            bytes(cost.read_bytes).into(),
            thousands(cost.writes.into()).into(),
            bytes(cost.write_bytes).into(),
            duration_ns(cost.longest_ns).into(),
        ]);
    }
    doc.table(table);
}
