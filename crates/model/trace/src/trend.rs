//! How a count grows over time: the straight line that fits it best.
//!
//! The count is a step function. The line minimises the integral of the squared distance over the whole interval, so
//! it depends on how long each count held and not on how many events there were: a burst of a thousand opens and
//! closes leaves no trace in the slope if nothing stays open.

use crate::event::Context;
use crate::finish::Finish;
use crate::row_ends::How;

/// Seconds of a nanosecond.
const SECONDS: f64 = 1e-9;

/// A count over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trend {
    start_ns: i64,
    at_ns: i64,
    /// The count now.
    pub(crate) count: i64,
    /// The largest count so far.
    pub(crate) peak: i64,
    /// Integrals of the count, of time times count, of the squared count; time in seconds since the start.
    area: f64,
    moment: f64,
    square: f64,
}

/// A fitted line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    /// Growth per second.
    pub(crate) slope: f64,
    /// Share of the variation that the line explains (coefficient of determination), 0 to 1; 0 if nothing varies.
    pub(crate) r2: f64,
}

impl Trend {
    /// A count of 0 from `start_ns` on.
    pub(crate) fn new(start_ns: i64) -> Trend {
        Trend { start_ns, at_ns: start_ns, count: 0, peak: 0, area: 0.0, moment: 0.0, square: 0.0 }
    }

    /// The count changes by `by` at `ns`.
    pub(crate) fn add(&mut self, ns: i64, by: i64) {
        self.advance(ns);
        self.count = self.count.saturating_add(by);
        self.peak = self.peak.max(self.count);
    }

    /// The count was larger by `by` from the start: something that was there already became known now.
    pub(crate) fn add_from_start(&mut self, by: i64) {
        let (seconds, by_f) = (self.seconds(self.at_ns), by as f64);
        self.square += 2.0 * by_f * self.area + by_f * by_f * seconds;
        self.area += by_f * seconds;
        self.moment += by_f * seconds * seconds / 2.0;
        self.count = self.count.saturating_add(by);
        self.peak = self.peak.saturating_add(by);
    }

    fn seconds(&self, ns: i64) -> f64 {
        ns.saturating_sub(self.start_ns).max(0) as f64 * SECONDS
    }

    fn advance(&mut self, ns: i64) {
        let ns = ns.max(self.at_ns);
        let (from, to, count) = (self.seconds(self.at_ns), self.seconds(ns), self.count as f64);
        self.area += count * (to - from);
        self.moment += count * (to * to - from * from) / 2.0;
        self.square += count * count * (to - from);
        self.at_ns = ns;
    }

    /// The line from the start to `end_ns`; `None` for no time at all.
    pub(crate) fn line(mut self, end_ns: i64) -> Option<Line> {
        self.advance(end_ns);
        let span = self.seconds(self.at_ns);
        if span <= 0.0 {
            return None;
        }
        // Of time around its mean, of count around its mean, and of both.
        let times = span.powi(3) / 12.0;
        let counts = self.square - self.area * self.area / span;
        let both = self.moment - self.area * span / 2.0;
        let slope = both / times;
        let varies = counts > 1e-9 * self.square.max(f64::MIN_POSITIVE);
        let r2 = if varies { (both * both / (times * counts)).clamp(0.0, 1.0) } else { 0.0 };
        Some(Line { slope: if varies { slope } else { 0.0 }, r2 })
    }
}

/// Handles of a process and type: how many, and whether they grow.
pub(crate) struct Leak {
    pub(crate) trend: Trend,
    pub(crate) open_at_start: i64,
    pub(crate) creates: i64,
    pub(crate) closes: i64,
    pub(crate) closed_by_exit: i64,
    /// Of those opened in the trace.
    pub(crate) outstanding: i64,
}

impl Leak {
    /// Nothing yet, from the start of the process or of the trace.
    pub(crate) fn of_process(cx: &Context<'_>, upid: u32) -> Leak {
        let start = cx.model.processes.get(upid).and_then(|p| p.start_ns).unwrap_or(0);
        Leak {
            trend: Trend::new(start),
            open_at_start: 0,
            creates: 0,
            closes: 0,
            closed_by_exit: 0,
            outstanding: 0,
        }
    }

    /// One is opened.
    pub(crate) fn begin(&mut self, ns: i64) {
        self.creates += 1;
        self.outstanding += 1;
        self.trend.add(ns, 1);
    }

    /// One was open from the start, as is seen now.
    pub(crate) fn was_there(&mut self) {
        self.open_at_start += 1;
        self.trend.add_from_start(1);
    }

    /// One ends; `ours` if it was opened in the trace. What ends with the process ends its growth, too.
    pub(crate) fn end(&mut self, ns: i64, how: How, ours: bool) {
        self.outstanding -= i64::from(ours);
        if how == How::Exit {
            self.closed_by_exit += 1;
        } else {
            self.closes += i64::from(how == How::Call);
            self.trend.add(ns, -1);
        }
    }

    /// The line over the life of the process within the trace.
    pub(crate) fn line(&self, end: &Finish<'_>, upid: u32) -> Option<Line> {
        let ended = end.model.processes.get(upid).and_then(|p| p.end_ns);
        self.trend.line(ended.unwrap_or(end.kernel_end_ns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    /// The same by sums over many equal slices.
    fn by_slices(changes: &[(i64, i64)], end: i64) -> Line {
        let n = 100_000;
        let points = (0..n).map(|i| {
            let t = (i as f64 + 0.5) / n as f64 * end as f64;
            let c: i64 = changes.iter().filter(|c| c.0 as f64 <= t).map(|c| c.1).sum();
            (t * 1e-9, c as f64)
        });
        let points: Vec<(f64, f64)> = points.collect();
        let mean = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n as f64;
        let (mt, mc) = (mean(&|p| p.0), mean(&|p| p.1));
        let (tt, cc) = (mean(&|p| (p.0 - mt).powi(2)), mean(&|p| (p.1 - mc).powi(2)));
        let tc = mean(&|p| (p.0 - mt) * (p.1 - mc));
        Line { slope: tc / tt, r2: tc * tc / (tt * cc) }
    }

    #[test]
    fn a_steady_leak_has_its_slope() {
        let mut trend = Trend::new(0);
        for i in 0..1000 {
            trend.add(i * S / 100, 1);
        }
        let line = trend.line(10 * S).unwrap();
        assert!((line.slope - 100.0).abs() < 0.1 && line.r2 > 0.999, "{line:?}");
        assert_eq!((trend.count, trend.peak), (1000, 1000));
    }

    #[test]
    fn what_is_closed_again_is_no_leak() {
        let mut trend = Trend::new(0);
        for i in 0..1000 {
            trend.add(i * S / 100, 1);
            trend.add(i * S / 100 + S / 1000, -1);
        }
        let line = trend.line(10 * S).unwrap();
        assert!(line.slope.abs() < 0.01 && line.r2 < 0.01, "{line:?}");
        assert_eq!((trend.count, trend.peak), (0, 1));
    }

    #[test]
    fn it_is_the_least_squares_line() {
        let changes = [(S, 5), (2 * S, -2), (5 * S, 4), (8 * S, -6), (9 * S, 1)];
        let mut trend = Trend::new(0);
        for (ns, by) in changes {
            trend.add(ns, by);
        }
        let (line, slices) = (trend.line(10 * S).unwrap(), by_slices(&changes, 10 * S));
        assert!((line.slope - slices.slope).abs() < 1e-4 && (line.r2 - slices.r2).abs() < 1e-4);
    }

    #[test]
    fn what_was_there_from_the_start_changes_no_slope() {
        let (mut late, mut early) = (Trend::new(0), Trend::new(0));
        early.add(0, 7);
        for trend in [&mut late, &mut early] {
            trend.add(S, 3);
            trend.add(4 * S, 2);
        }
        late.add_from_start(7);
        let (late, early) = (late.line(9 * S).unwrap(), early.line(9 * S).unwrap());
        assert!(near(late.slope, early.slope) && near(late.r2, early.r2), "{late:?} {early:?}");
        assert_eq!(Trend::new(5).line(5), None);
        let constant = Trend::new(0).line(S).unwrap();
        assert_eq!((constant.slope, constant.r2), (0.0, 0.0));
    }
}
