//! Begins that payloads name.

use super::fields::Event;
use crate::anomalies::BEGINS_IMPOSSIBLE;
use etwhy_etl::Ledger;
use etwhy_etl::read::Timeline;

/// How long before a trace an interrupt that ends in it may have begun.
pub const INTERRUPT_BEFORE_NS: i64 = 1_000_000_000;
/// How long before a trace an operation that ends in it may have begun.
pub const OPERATION_BEFORE_NS: i64 = 60_000_000_000;
/// Clocks of processors differ by less.
const SKEW_NS: i64 = 1_000_000;

/// Time from `initial`, the ticks at which the payload says that it began, to the event. `None`, and counted, if that is after the event, or longer
/// before the trace than `before_ns`.
#[inline]
pub fn since(
    event: &Event<'_>,
    initial: i64,
    before_ns: i64,
    timeline: &Timeline,
    ledger: &mut Ledger,
) -> Option<i64> {
    let span = uncounted(event, initial, before_ns, timeline);
    if span.is_none() {
        ledger.count(&BEGINS_IMPOSSIBLE, 1);
    }
    span
}

/// The same of events that another table counts.
#[inline]
pub fn uncounted(event: &Event<'_>, initial: i64, before_ns: i64, timeline: &Timeline) -> Option<i64> {
    let ticks = event.record.ticks.saturating_sub(initial);
    possible(timeline.span_ns(event.record.file, ticks), event.ns, before_ns)
}

/// `span`, the time from begin to an end at `end_ns`, unless that cannot be.
fn possible(span: i64, end_ns: i64, before_ns: i64) -> Option<i64> {
    let earliest = end_ns.min(0).saturating_sub(before_ns);
    (span >= -SKEW_NS && end_ns.saturating_sub(span) >= earliest).then(|| span.max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_after_its_end_or_long_before_the_trace() {
        let span = |span, end| possible(span, end, INTERRUPT_BEFORE_NS);
        assert_eq!(span(200, 1_000), Some(200));
        // Under way when the trace began, and clocks that differ a little.
        assert_eq!((span(500_000, 1_000), span(-100, 1_000)), (Some(500_000), Some(0)));
        assert_eq!((span(i64::MAX, 1_000), span(2_000_000_000, 1_000)), (None, None));
        assert_eq!((span(i64::MIN, 1_000), span(-2_000_000, 1_000)), (None, None));
        // Where the header's start is damaged all lies before the trace.
        assert_eq!((span(200, i64::MIN / 2), span(i64::MAX, i64::MIN / 2)), (Some(200), None));
    }
}
