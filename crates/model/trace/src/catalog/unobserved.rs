//! Time ranges in which records of a processor may be missing.
//!
//! # How it is computed
//! From the buffers of the file: their sequence numbers, and the marks of buffers that lost events or follow a lost one. A sequence number
//! is given out over all processors, so a missing one makes a range on each processor whose neighbouring buffers enclose it. Ranges of a
//! processor that overlap are one. Pairs of events (begin and end, wait and switch-in) are not joined across such a range; a finding that
//! was not found becomes *cannot tell* if enough is missing.
//!
//! # What fools it
//! Single events that a full buffer refused leave no trace but the count in the header (`trace.events_lost`). What comes before
//! the first context switch because it is overwritten (circular recordings) or not yet recorded makes no range, and nor does what a circular
//! recording lacks of a processor from there to its first buffer: that was not lost, the recording begins later (`machine.observed_ns`). The share of a range that is really missing is not known: these are upper bounds.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_table::{TableBuilder, define_table};

define_table! {
    /// Time ranges in which records of a processor may be missing.
    pub table UNOBSERVED: UnobservedRow = "unobserved" {
        sorted_by: "start_ns", version: 1,
        /// Last record before the range, at least the start of the trace.
        start_ns: i64 [Ns, Time],
        /// Up to the first record behind it, at most the end of the trace.
        dur_ns: i64 [Ns, Duration],
        /// Logical processor.
        cpu: i32 [None, Cpu],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&UNOBSERVED],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Unobserved { rows: TableBuilder::new(memory) }),
};

struct Unobserved {
    rows: TableBuilder<UnobservedRow>,
}

impl Analysis for Unobserved {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let span_ns = (end.kernel_span_ns().0, end.span_ns.1);
        for (start_ns, to_ns, cpu) in ranges(end.model.cpus.unobserved(), span_ns) {
            let dur_ns = to_ns.saturating_sub(start_ns);
            self.rows.push(UnobservedRow { start_ns, dur_ns, cpu: i32::from(cpu) });
        }
        Ok(vec![self.rows.into()])
    }
}

/// Start, end and processor of each range within `span`, by start; those of a processor that overlap are one.
fn ranges(gaps: &[(u16, i64, i64)], span: (i64, i64)) -> Vec<(i64, i64, u16)> {
    let mut gaps: Vec<_> =
        gaps.iter().map(|&(cpu, from, to)| (cpu, from.max(span.0), to.min(span.1))).collect();
    gaps.retain(|(_, from, to)| from < to);
    gaps.sort_unstable();
    let mut ranges: Vec<(i64, i64, u16)> = Vec::new();
    for (cpu, from, to) in gaps {
        match ranges.last_mut() {
            Some(last) if last.2 == cpu && last.1 >= from => last.1 = last.1.max(to),
            _ => ranges.push((from, to, cpu)),
        }
    }
    ranges.sort_unstable();
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_in_the_trace_and_do_not_overlap() {
        let gaps =
            [(1, 10, 20), (0, 15, 30), (1, 18, 25), (0, i64::MIN, 5), (2, 90, i64::MAX), (2, 200, 300)];
        assert_eq!(ranges(&gaps, (0, 100)), [(0, 5, 0), (10, 25, 1), (15, 30, 0), (90, 100, 2)]);
    }
}
