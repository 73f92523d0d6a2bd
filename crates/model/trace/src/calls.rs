//! The system calls that a thread is inside of, and its time on and off the processors meanwhile.
//!
//! Calls nest: a driver's `Zw` call, or a call made in a callback from the kernel to user mode, lies inside
//! another one. Ends belong to the innermost call that is open.

use crate::model::place::PlaceId;

/// A call that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// When it began, ns.
    pub(crate) start_ns: i64,
    /// Processor on which it began.
    pub(crate) cpu: u16,
    /// Address of the service routine.
    pub(crate) address: u64,
    /// Number of the place.
    pub(crate) place: PlaceId,
    /// Stack ticket.
    pub(crate) ticket: i32,
    /// The routine returns no `NTSTATUS`.
    pub(crate) no_status: bool,
    /// Rows that the table had when it began.
    pub(crate) rows_before: u64,
}

/// Time on processors (without interrupts) and off them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) on_cpu_ns: i64,
    pub(crate) off_cpu_ns: i64,
}

/// A moment on a processor: which, when, and the time that interrupts had taken there by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) cpu: u16,
    pub(crate) ns: i64,
    pub(crate) interrupted_ns: i64,
}

/// Calls deeper than any honest thread makes: kernel stacks have room for some ten frames of system services.
pub(crate) const MOST_OPEN: usize = 64;

/// A thread with its open calls.
#[derive(Debug, Default)]
pub(crate) struct ThreadCalls {
    /// Outermost first, each with the times at which it began.
    open: Vec<(Call, Times)>,
    on: Option<Moment>,
    off_since_ns: Option<i64>,
    sum: Times,
    /// Since when `sum` grew without a hole.
    known_since_ns: i64,
    /// Its last event that was seen, ns.
    pub(crate) last_ns: i64,
    /// Calls that were given up, whose ends may still come.
    pub(crate) given_up: u32,
}

impl ThreadCalls {
    /// Number of calls that it is inside of.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// It is seen on a processor.
    pub(crate) fn here(&mut self, now: Moment) {
        match self.on {
            Some(on) if on.cpu == now.cpu && self.off_since_ns.is_none() && !self.open.is_empty() => {
                self.run(on, now);
            }
            _ => {
                self.known_since_ns = now.ns;
                self.off_since_ns = None;
            }
        }
        self.on = Some(now);
    }

    fn run(&mut self, from: Moment, to: Moment) {
        let span = to.ns.saturating_sub(from.ns);
        let interrupts = to.interrupted_ns.saturating_sub(from.interrupted_ns).clamp(0, span.max(0));
        self.sum.on_cpu_ns = self.sum.on_cpu_ns.saturating_add(span.saturating_sub(interrupts));
    }

    /// It is switched out. `known`: whoever ran on that processor before was known.
    pub(crate) fn switched_out(&mut self, now: Moment, known: bool) {
        if known {
            self.here(now);
        } else {
            self.known_since_ns = now.ns;
        }
        self.on = None;
        self.off_since_ns = Some(now.ns);
    }

    /// It is switched in.
    pub(crate) fn switched_in(&mut self, now: Moment) {
        match (self.on, self.off_since_ns) {
            (None, Some(since)) => {
                self.sum.off_cpu_ns = self.sum.off_cpu_ns.saturating_add(now.ns.saturating_sub(since));
            }
            _ => self.known_since_ns = now.ns,
        }
        self.off_since_ns = None;
        self.on = Some(now);
    }

    /// A call begins; [`ThreadCalls::here`] comes first. If there are too many the outermost is given back.
    pub(crate) fn begin(&mut self, call: Call) -> Option<Call> {
        let gone = (self.open.len() >= MOST_OPEN).then(|| self.open.remove(0).0);
        self.open.push((call, self.sum));
        gone
    }

    /// The innermost call ends; [`ThreadCalls::here`] comes first. With its times, if they are known.
    pub(crate) fn end(&mut self) -> Option<(Call, Option<Times>)> {
        let (call, began) = self.open.pop()?;
        let known = self.known_since_ns <= call.start_ns;
        let times = Times {
            on_cpu_ns: self.sum.on_cpu_ns.saturating_sub(began.on_cpu_ns),
            off_cpu_ns: self.sum.off_cpu_ns.saturating_sub(began.off_cpu_ns),
        };
        Some((call, known.then_some(times)))
    }

    /// Takes all open calls away, outermost first.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Call> + '_ {
        self.open.drain(..).map(|(call, _)| call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(start_ns: i64) -> Call {
        Call {
            start_ns,
            cpu: 0,
            address: 0,
            place: PlaceId::of_cell(0),
            ticket: -1,
            no_status: false,
            rows_before: 0,
        }
    }

    fn at(cpu: u16, ns: i64, interrupted_ns: i64) -> Moment {
        Moment { cpu, ns, interrupted_ns }
    }

    #[test]
    fn time_on_and_off_processors_adds_up() {
        let mut thread = ThreadCalls::default();
        thread.here(at(0, 100, 7));
        thread.begin(call(100));
        thread.switched_out(at(0, 130, 12), true);
        thread.switched_in(at(3, 500, 1_000));
        thread.here(at(3, 510, 1_000));
        thread.begin(call(510));
        thread.here(at(3, 515, 1_000));
        let times = Some(Times { on_cpu_ns: 5, off_cpu_ns: 0 });
        assert_eq!(thread.end(), Some((call(510), times)));
        thread.here(at(3, 540, 1_002));
        // 30 - 5 on the first processor, 40 - 2 on the second.
        let times = Some(Times { on_cpu_ns: 63, off_cpu_ns: 370 });
        assert_eq!(thread.end(), Some((call(100), times)));
        assert_eq!(thread.end(), None);
    }

    #[test]
    fn a_missed_switch_leaves_times_unknown_until_the_next_call() {
        let mut thread = ThreadCalls::default();
        thread.here(at(0, 100, 0));
        thread.begin(call(100));
        // It must have left processor 0 in between.
        thread.here(at(1, 200, 0));
        thread.begin(call(200));
        thread.here(at(1, 210, 0));
        assert_eq!(thread.end().and_then(|(_, t)| t), Some(Times { on_cpu_ns: 10, off_cpu_ns: 0 }));
        thread.here(at(1, 220, 0));
        assert_eq!(thread.end().map(|(_, t)| t), Some(None));

        thread.here(at(1, 300, 0));
        thread.begin(call(300));
        thread.switched_out(at(1, 310, 0), true);
        // Switched in unseen, out again by an event that names it.
        thread.switched_out(at(2, 350, 0), false);
        thread.switched_in(at(2, 360, 0));
        thread.here(at(2, 370, 0));
        assert_eq!(thread.end().map(|(_, t)| t), Some(None));
    }

    #[test]
    fn time_between_calls_belongs_to_none() {
        let mut thread = ThreadCalls::default();
        for start in [100, 1_000] {
            thread.here(at(0, start, 0));
            thread.begin(call(start));
            thread.here(at(0, start + 9, 0));
            assert_eq!(thread.end().and_then(|(_, t)| t).map(|t| t.on_cpu_ns), Some(9));
        }
    }

    #[test]
    fn depth_is_bounded_and_the_outermost_goes_first() {
        let mut thread = ThreadCalls::default();
        for n in 0..MOST_OPEN as i64 {
            assert_eq!(thread.begin(call(n)), None);
        }
        assert_eq!(thread.begin(call(99)), Some(call(0)));
        assert_eq!(thread.depth(), MOST_OPEN);
        assert_eq!(thread.take().next(), Some(call(1)));
    }
}
