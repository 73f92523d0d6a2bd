//! DPCs and ISRs with their samples: DPCs one after the other on each processor, interrupted by ISRs.

use super::stack::Owner;
use super::{Arrivals, Durations, Engine, Source, Style};
use crate::error::{Result, one_of};
use crate::model::{Frames, Interrupt};
use crate::value::Dist;
use crate::world::{StackSet, World};
use etwhy_base::rng::Xoshiro;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events::PerfInfo;
use std::collections::VecDeque;
use std::io;

/// A DPC or ISR that runs or will run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    start: i64,
    pub(super) end: i64,
    /// Without the ISRs that interrupt it.
    own: i64,
    pub(crate) isr: bool,
    pub(crate) stack: Option<usize>,
    pub(crate) style: Style,
    /// Stack index whose innermost frame is the routine.
    routine: usize,
    what: What,
}

/// What stands in the record besides times and routine.
#[derive(Clone, Copy, Debug)]
struct What {
    event: KernelEvent,
    vector: u16,
    message: u32,
    claimed: bool,
}

/// DPCs and ISRs of one processor. DPCs run one after the other, ISRs too; an ISR interrupts a DPC.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    dpcs: VecDeque<Pending>,
    isrs: VecDeque<Pending>,
    /// When they will be looked at next.
    wake: Option<i64>,
}

/// Pause between two interrupts.
const GAP: i64 = 200;

impl Interrupts {
    /// When one that comes now can start.
    fn start(&self, isr: bool, now: i64) -> i64 {
        let list = if isr { &self.isrs } else { &self.dpcs };
        let mut start = list.back().map_or(now, |p| p.end + GAP).max(now);
        if !isr {
            for i in &self.isrs {
                if i.start <= start && start < i.end + GAP {
                    start = i.end + GAP;
                }
            }
        }
        start
    }

    /// Adds one and gives its end. A DPC takes longer by the ISRs that interrupt it.
    fn push(&mut self, mut p: Pending) -> i64 {
        if p.isr {
            let took = p.end - p.start;
            for d in self.dpcs.iter_mut().filter(|d| d.end > p.start) {
                let waits = d.start >= p.start;
                let shift = took + if waits { GAP } else { 0 };
                d.start += if waits { shift } else { 0 };
                d.end += shift;
            }
            self.isrs.push_back(p);
        } else {
            for i in &self.isrs {
                p.end += if i.start >= p.start && i.start < p.end { i.end - i.start } else { 0 };
            }
            self.dpcs.push_back(p);
        }
        p.end
    }

    /// The one that runs at a moment.
    pub(super) fn at(&self, ns: i64) -> Option<Pending> {
        self.isrs.iter().chain(&self.dpcs).find(|p| p.start <= ns && ns < p.end).copied()
    }

    /// Takes out the first one that is over.
    fn over(&mut self, ns: i64) -> Option<Pending> {
        let due = |list: &VecDeque<Pending>| list.front().is_some_and(|p| p.end <= ns);
        if due(&self.isrs) {
            return self.isrs.pop_front();
        }
        if due(&self.dpcs) { self.dpcs.pop_front() } else { None }
    }

    /// When the next one is over.
    fn next_end(&self) -> Option<i64> {
        self.isrs.front().into_iter().chain(self.dpcs.front()).map(|p| p.end).min()
    }
}

/// Work that waits longer than this is dropped: the scenario asks for more than a processor has.
const LONGEST_BACKLOG: i64 = 200_000_000;

/// A DPC that other tables have run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dpc {
    routine: usize,
    stack: usize,
    style: Style,
}

impl Dpc {
    /// The DPC with this routine, below what calls DPCs.
    pub(crate) fn new(routine: &str, style: Style, w: &mut World) -> std::result::Result<Dpc, String> {
        let (images, processes) = (&mut w.images, &mut w.processes);
        let stack = w.stacks.intern(&below_dispatcher(false, routine), 1, images, processes)?;
        let routine = w.stacks.intern(&start_of(routine), 1, images, processes)?;
        Ok(Dpc { routine, stack, style })
    }
}

/// The stack of a routine that Windows calls as a DPC or ISR.
fn below_dispatcher(isr: bool, routine: &str) -> Frames {
    let outer = if isr {
        ["ntoskrnl.exe!KiInterruptDispatch", "ntoskrnl.exe!KiCallInterruptServiceRoutine"]
    } else {
        ["ntoskrnl.exe!KiRetireDpcList", "ntoskrnl.exe!KiExecuteAllDpcs"]
    };
    Frames(outer.iter().map(|f| f.to_string()).chain([routine.to_owned()]).collect())
}

/// The event names the routine's start, not a call site in it.
fn start_of(routine: &str) -> Frames {
    let placed = routine.contains('+') || routine.starts_with("0x");
    Frames(vec![if placed { routine.to_owned() } else { format!("{routine}+0x0") }])
}

/// A `[[dpc]]` or `[[isr]]` table.
struct Table {
    arrivals: Arrivals,
    cpus: Vec<u16>,
    durations: Durations,
    /// Time given to each processor so far.
    given: Vec<i64>,
    /// Stack index whose innermost frame is the routine.
    routine: usize,
    stacks: StackSet,
    style: Style,
    isr: bool,
    what: What,
    rng: Xoshiro,
}

/// Makes the source of a table.
pub(crate) fn interrupts(
    table: &toml::Spanned<Interrupt>,
    isr: bool,
    w: &mut World,
    seed: u64,
) -> Result<Box<dyn Source>> {
    let (i, span) = (table.get_ref(), table.span());
    let mut c = i.common();
    let place = w.place.clone();
    let fail = |e: String| place.error(Some(span.clone()), e);
    let kinds: &[(&str, KernelEvent)] = if isr {
        &[("isr", PerfInfo::ISR), ("msi", PerfInfo::ISR_MSI), ("passive", PerfInfo::ISR_PASS)]
    } else {
        &[
            ("dpc", PerfInfo::DPC),
            ("timer", PerfInfo::TimerDPC),
            ("threaded", PerfInfo::ThreadedDPC),
            ("io_timer", PerfInfo::IOTimer),
        ]
    };
    let kind = i.kind.as_deref().unwrap_or(if isr { "isr" } else { "dpc" });
    let event = kinds.iter().find(|k| k.0 == kind).map(|k| k.1);
    let event = event
        .ok_or_else(|| fail(format!("kind = {kind:?}: allowed are {}", one_of(kinds.iter().map(|k| k.0)))))?;
    let innermost =
        c.stack.as_ref().or(c.stacks.first().map(|s| &s.frames)).and_then(|f| f.0.last().cloned());
    let routine = i.routine.clone().or(innermost);
    let routine = routine.ok_or_else(|| fail("it needs routine = \"driver.sys!Function\"".into()))?;
    if c.stack.is_none() && c.stacks.is_empty() {
        c.stack = Some(below_dispatcher(isr, &routine));
    }
    // Devices know nothing of the sampling interrupt: evenly spaced DPCs would beat with it.
    c.arrival = c.arrival.or(Some("poisson".into()));
    let mut rng = Xoshiro::seeded(seed);
    let stacks = w.stack_set(&c, 1, span.clone())?;
    let start = start_of(&routine);
    let (images, processes) = (&mut w.images, &mut w.processes);
    let routine = w.stacks.intern(&start, 1, images, processes).map_err(fail)?;
    let cpus = c.cpus.clone().map_or_else(|| (0..w.facts.cpus).collect(), |l| l.0);
    if let Some(wrong) = cpus.iter().find(|c| **c >= w.facts.cpus) {
        return Err(fail(format!("cpu {wrong}: the machine has {}", w.facts.cpus)));
    }
    let style = c.stack_style.as_ref().map_or(Ok(w.facts.style), |t| Style::parse(Some(t))).map_err(fail)?;
    let factors = (w.facts.stretch, w.facts.counts);
    let arrivals = Arrivals::new(&c, w.facts.duration, factors, &mut rng).map_err(fail)?;
    let duration = i.duration.clone().unwrap_or(Dist::constant(if isr { 5e-6 } else { 20e-6 }));
    let total = c.total.map(|t| t.0 * w.facts.counts);
    let durations = Durations::new(duration, total, arrivals.count(), seed).map_err(fail)?;
    Ok(Box::new(Table {
        arrivals,
        given: vec![0; cpus.len()],
        cpus,
        durations,
        routine,
        stacks,
        style,
        isr,
        what: What {
            event,
            vector: i.vector.unwrap_or(0x91),
            message: i.message.unwrap_or(0),
            claimed: i.claimed.unwrap_or(true),
        },
        rng,
    }))
}

impl Table {
    /// Where the next one runs. Prescribed sums are shared out evenly: chance would overload one processor.
    fn place(&mut self) -> usize {
        if self.durations.is_fitted() {
            let least = self.given.iter().enumerate().min_by_key(|(_, given)| **given);
            return least.map_or(0, |(at, _)| at);
        }
        self.rng.below(self.cpus.len() as u64) as usize
    }
}

impl Source for Table {
    fn next(&self) -> Option<i64> {
        self.arrivals.next()
    }

    fn fire(&mut self, engine: &mut Engine) -> io::Result<()> {
        let (n, x) = self.arrivals.place();
        self.arrivals.advance(&mut self.rng);
        let place = self.place();
        let cpu = self.cpus.get(place).copied().unwrap_or(0);
        let own = self.durations.next(&mut self.rng, n, x);
        if let Some(given) = self.given.get_mut(place) {
            *given += own + GAP;
        }
        let (now, style) = (engine.now, self.style);
        let stack = self.stacks.pick(&mut self.rng);
        let Some(queue) = engine.cpus.interrupts(cpu) else { return Ok(()) };
        let start = queue.start(self.isr, now);
        if start - now > LONGEST_BACKLOG {
            engine.truth.dropped += 1;
            return Ok(());
        }
        let end = start + own;
        let (isr, routine, what) = (self.isr, self.routine, self.what);
        let end = queue.push(Pending { start, end, own, isr, stack, style, routine, what });
        engine.wake_interrupts(end, cpu);
        Ok(())
    }
}

impl Engine<'_> {
    /// Runs a DPC on a processor from now on; if another one runs there, nothing happens but the time is given at which it could.
    pub(crate) fn run_dpc(&mut self, cpu: u16, dpc: Dpc, own: i64) -> Option<i64> {
        let now = self.now;
        let queue = self.cpus.interrupts(cpu)?;
        let start = queue.start(false, now);
        if start > now {
            return Some(start);
        }
        let what = What { event: PerfInfo::DPC, vector: 0, message: 0, claimed: false };
        let Dpc { routine, stack, style } = dpc;
        let end = queue.push(Pending {
            start,
            end: start + own,
            own,
            isr: false,
            stack: Some(stack),
            style,
            routine,
            what,
        });
        self.wake_interrupts(end, cpu);
        None
    }

    /// Records the interrupts of a processor that are over. One that was interrupted meanwhile ends later.
    pub(crate) fn end_interrupts(&mut self, cpu: u16) -> io::Result<()> {
        let now = self.now;
        match self.cpus.interrupts(cpu) {
            Some(i) if i.wake.is_some_and(|w| w <= now) => i.wake = None,
            _ => return Ok(()),
        }
        while let Some(p) = self.cpus.interrupts(cpu).and_then(|i| i.over(now)) {
            let routine = self.world.stacks.list.get(p.routine);
            let address = routine.and_then(|s| s.kernel.first().or(s.user.first())).copied().unwrap_or(0);
            let (pointer, initial) = (self.pointer(), self.out.ticks(p.start));
            let What { event, vector, message, claimed } = p.what;
            self.add(cpu, p.end, |r, t| {
                r.perfinfo(pointer, event.hook, 2, t).i64(initial).ptr(address);
                if p.isr {
                    r.u8(u8::from(claimed)).u16(vector).u8(0);
                    if event == PerfInfo::ISR_MSI {
                        r.u32(message);
                    }
                }
                r
            })?;
            self.truth.interrupt(p.isr, p.end - p.start);
            let table = if p.isr { "isr" } else { "dpc" };
            let names = routine.map(|s| self.world.frame_names(s.frames.last())).unwrap_or_default();
            let names = [names.0, names.1, format!("cpu {cpu}")];
            for name in names.iter().filter(|n| !n.is_empty()) {
                self.tally(
                    table,
                    name,
                    &[("count", 1), ("total_ns", p.end - p.start), ("exclusive_ns", p.own)],
                );
            }
        }
        self.settle_deferred(cpu)?;
        if let Some(end) = self.cpus.interrupts(cpu).and_then(|i| i.next_end()) {
            self.wake_interrupts(end.max(now + 1), cpu);
        }
        Ok(())
    }

    /// The interrupts of a processor want to be looked at then.
    fn wake_interrupts(&mut self, ns: i64, cpu: u16) {
        if let Some(i) = self.cpus.interrupts(cpu)
            && i.wake.is_none_or(|w| ns < w)
        {
            i.wake = Some(ns);
            self.agenda.wake_interrupts(ns, cpu);
        }
    }

    /// When the DPC or ISR that runs on a processor ends, as far as is known now.
    pub(crate) fn interrupted_until(&self, cpu: u16) -> Option<i64> {
        self.cpus.interrupt_end(cpu, self.now)
    }

    /// The DPC or ISR that runs on a processor at a moment.
    pub(crate) fn interrupt_at(&mut self, cpu: u16, ns: i64) -> Option<Pending> {
        self.cpus.interrupts(cpu)?.at(ns)
    }

    /// True while a thread exists.
    pub(crate) fn alive(&self, thread: usize, ns: i64) -> bool {
        let t = self.world.processes.thread(thread);
        t.start.is_none_or(|s| s <= ns) && t.end.is_none_or(|e| ns < e)
    }

    /// True when the thread holds the processor as a task.
    pub(crate) fn is_task(&self, cpu: u16, thread: usize) -> bool {
        !self.cpus.is_free(cpu) && self.cpus.running(cpu).is_some_and(|r| r.thread == thread)
    }

    /// A stack for the event that just happened on a processor.
    pub(crate) fn stack_now(
        &mut self,
        cpu: u16,
        thread: usize,
        stack: Option<usize>,
        style: Style,
    ) -> io::Result<()> {
        match stack {
            Some(stack) => self.stack(&Owner { ns: self.now, cpu, thread }, stack, style, None),
            None => Ok(()),
        }
    }
}
