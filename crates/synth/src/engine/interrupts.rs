//! DPCs and ISRs: one after the other on each processor, with their samples.

use super::stack::Owner;
use super::{Arrivals, Engine, Source, Style};
use crate::error::{Result, one_of};
use crate::model::{Frames, Interrupt};
use crate::rng::Rng;
use crate::value::{Dist, Draw};
use crate::world::{StackSet, World};
use std::io;

/// A DPC or ISR that runs or will run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    start: i64,
    end: i64,
    pub(crate) isr: bool,
    pub(crate) stack: Option<usize>,
    pub(crate) style: Style,
}

/// Work that waits longer than this is dropped: the scenario asks for more than a processor has.
const LONGEST_BACKLOG: i64 = 200_000_000;

/// A `[[dpc]]` or `[[isr]]` table.
struct Interrupts {
    arrivals: Arrivals,
    cpus: Vec<u16>,
    duration: Dist,
    /// Stack index whose innermost frame is the routine.
    routine: usize,
    stacks: StackSet,
    style: Style,
    isr: bool,
    hook: u16,
    vector: u16,
    message: u32,
    claimed: bool,
    rng: Rng,
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
    let kinds: &[(&str, u16)] = if isr {
        &[("isr", 0x0F43), ("msi", 0x0F32), ("passive", 0x0F5F)]
    } else {
        &[("dpc", 0x0F44), ("timer", 0x0F45), ("threaded", 0x0F42), ("io_timer", 0x0F46)]
    };
    let kind = i.kind.as_deref().unwrap_or(if isr { "isr" } else { "dpc" });
    let hook = kinds.iter().find(|k| k.0 == kind).map(|k| k.1);
    let hook = hook
        .ok_or_else(|| fail(format!("kind = {kind:?}: allowed are {}", one_of(kinds.iter().map(|k| k.0)))))?;
    let innermost =
        c.stack.as_ref().or(c.stacks.first().map(|s| &s.frames)).and_then(|f| f.0.last().cloned());
    let routine = i.routine.clone().or(innermost);
    let routine = routine.ok_or_else(|| fail("it needs routine = \"driver.sys!Function\"".into()))?;
    if c.stack.is_none() && c.stacks.is_empty() {
        let outer = if isr {
            ["ntoskrnl.exe!KiInterruptDispatch", "ntoskrnl.exe!KiCallInterruptServiceRoutine"]
        } else {
            ["ntoskrnl.exe!KiRetireDpcList", "ntoskrnl.exe!KiExecuteAllDpcs"]
        };
        c.stack = Some(Frames(outer.iter().map(|f| f.to_string()).chain([routine.clone()]).collect()));
    }
    // Devices know nothing of the sampling interrupt: evenly spaced DPCs would beat with it.
    c.arrival = c.arrival.or(Some("poisson".into()));
    let mut rng = Rng::new(seed);
    let stacks = w.stack_set(&c, 1, span.clone())?;
    // The event names the routine's start, not a call site in it.
    let start = Frames(vec![if routine.contains('+') || routine.starts_with("0x") {
        routine
    } else {
        routine + "+0x0"
    }]);
    let (images, processes) = (&mut w.images, &mut w.processes);
    let routine = w.stacks.intern(&start, 1, images, processes).map_err(fail)?;
    let cpus = c.cpus.clone().map_or_else(|| (0..w.facts.cpus).collect(), |l| l.0);
    if let Some(wrong) = cpus.iter().find(|c| **c >= w.facts.cpus) {
        return Err(fail(format!("cpu {wrong}: the machine has {}", w.facts.cpus)));
    }
    let style = c.stack_style.as_ref().map_or(Ok(w.facts.style), |t| Style::parse(Some(t))).map_err(fail)?;
    Ok(Box::new(Interrupts {
        arrivals: Arrivals::new(&c, w.facts.duration, w.facts.stretch, &mut rng).map_err(fail)?,
        cpus,
        duration: i.duration.clone().unwrap_or(Dist::constant(if isr { 5e-6 } else { 20e-6 })),
        routine,
        stacks,
        style,
        isr,
        hook,
        vector: i.vector.unwrap_or(0x91),
        message: i.message.unwrap_or(0),
        claimed: i.claimed.unwrap_or(true),
        rng,
    }))
}

impl Source for Interrupts {
    fn next(&self) -> Option<i64> {
        self.arrivals.next()
    }

    fn fire(&mut self, engine: &mut Engine) -> io::Result<()> {
        let (n, x) = self.arrivals.place();
        self.arrivals.advance(&mut self.rng);
        let cpu = self.cpus.get(self.rng.below(self.cpus.len() as u64) as usize).copied().unwrap_or(0);
        let duration = self.duration.ns(&mut Draw { rng: &mut self.rng, n, x });
        let (now, style) = (engine.now, self.style);
        let stack = self.stacks.pick(&mut self.rng);
        let Some(queue) = engine.cpus.interrupts(cpu) else { return Ok(()) };
        while queue.front().is_some_and(|p| p.end < now) {
            queue.pop_front();
        }
        let start = queue.back().map_or(now, |p| p.end + 200).max(now);
        if start - now > LONGEST_BACKLOG {
            engine.truth.dropped += 1;
            return Ok(());
        }
        let end = start + duration;
        queue.push_back(Pending { start, end, isr: self.isr, stack, style });
        let routine = engine.world.stacks.list.get(self.routine);
        let routine = routine.and_then(|s| s.kernel.first().or(s.user.first())).copied().unwrap_or(0);
        let pointer = engine.pointer();
        let initial = engine.out.ticks(start);
        let (hook, isr, vector, claimed, message) =
            (self.hook, self.isr, self.vector, self.claimed, self.message);
        engine.truth.interrupt(isr, duration);
        engine.add(cpu, end, |r, t| {
            r.perfinfo(pointer, hook, 2, t).i64(initial).ptr(routine);
            if isr {
                r.u8(u8::from(claimed)).u16(vector).u8(0);
                if hook == 0x0F32 {
                    r.u32(message);
                }
            }
        })
    }
}

impl Engine<'_> {
    /// The DPC or ISR that runs on a processor at a moment.
    pub(crate) fn interrupt_at(&mut self, cpu: u16, ns: i64) -> Option<Pending> {
        let queue = self.cpus.interrupts(cpu)?;
        while queue.front().is_some_and(|p| p.end <= ns) {
            queue.pop_front();
        }
        queue.iter().find(|p| p.start <= ns && ns < p.end).copied()
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
