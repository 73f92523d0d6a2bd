//! What a `[[task]]` says, with all names resolved.

use crate::engine::{Engine, Style, Switch};
use crate::events::file::files;
use crate::model::{Frames, OneOrMany, Step};
use crate::value::{Dist, Draw};
use crate::world::{FAULT, FLUSH, Objects, READ, SLEEP, WRITE, Wait, World};
use etwhy_base::rng::Xoshiro;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events as kernel;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What a step does.
pub(super) enum What {
    Run(Dist),
    Sleep(Dist),
    Acquire(usize),
    Release(usize),
    Put(usize, Option<Dist>),
    Take(usize),
    Transfer(Box<Request>),
}

/// A transfer that the thread waits for.
pub(super) struct Request {
    pub(super) op: KernelEvent,
    /// The file operation around it; a fault has none.
    pub(super) file_op: Option<KernelEvent>,
    pub(super) files: Vec<usize>,
    pub(super) size: Option<Dist>,
    pub(super) offset: Option<Dist>,
    pub(super) service: Option<Dist>,
    pub(super) disk: u32,
}

/// Stacks of a step in one process.
#[derive(Clone, Copy, Default)]
pub(super) struct Look {
    /// While it runs.
    pub(super) runs: Option<usize>,
    /// While it waits.
    pub(super) waits: Option<usize>,
    /// While it wakes others.
    pub(super) wakes: Option<usize>,
}

pub(super) struct Part {
    pub(super) what: What,
    pub(super) switch: Switch,
    pub(super) looks: HashMap<usize, Look>,
}

/// What all threads of a table share.
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    /// Between two rounds.
    pub(super) between: HashMap<usize, Look>,
    pub(super) ready: Dist,
    pub(super) cpus: Rc<[u16]>,
    /// Round after round, without pause.
    pub(super) repeats: bool,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) style: Style,
    pub(super) salt: u64,
    pub(super) rng: RefCell<Xoshiro>,
    pub(super) rounds: Cell<u64>,
    pub(super) working: RefCell<HashSet<usize>>,
}

/// A thread on its way through the steps.
#[derive(Clone, Copy)]
pub(super) struct Actor {
    pub(super) thread: usize,
    pub(super) cpu: u16,
    pub(super) part: usize,
    pub(super) round: u64,
}

/// What a step does and how it is waited for.
pub(super) fn what(step: &Step, w: &mut World) -> std::result::Result<(What, Option<Wait>), String> {
    let said = [
        step.run.is_some(),
        step.sleep.is_some(),
        step.acquire.is_some(),
        step.release.is_some(),
        step.put.is_some(),
        step.take.is_some(),
        step.read.is_some(),
        step.write.is_some(),
        step.flush.is_some(),
        step.fault.is_some(),
    ];
    if said.iter().filter(|said| **said).count() != 1 {
        let all = "run, sleep, acquire, release, put, take, read, write, flush and fault";
        return Err(format!("it is one of {all}"));
    }
    let lock = |w: &World, name: &str| {
        Objects::find(&w.objects.locks, "lock", name).map(|at| (at, w.objects.locks.get(at).map(|o| o.wait)))
    };
    let queue = |w: &World, name: &str| {
        Objects::find(&w.objects.queues, "queue", name)
            .map(|at| (at, w.objects.queues.get(at).map(|o| o.wait)))
    };
    Ok(match step {
        Step { run: Some(time), .. } => (What::Run(time.clone()), None),
        Step { sleep: Some(time), .. } => (What::Sleep(time.clone()), Some(SLEEP)),
        Step { acquire: Some(name), .. } => lock(w, name).map(|(at, wait)| (What::Acquire(at), wait))?,
        Step { release: Some(name), .. } => lock(w, name).map(|(at, wait)| (What::Release(at), wait))?,
        Step { put: Some(name), .. } => {
            queue(w, name).map(|(at, wait)| (What::Put(at, step.items.clone()), wait))?
        }
        Step { take: Some(name), .. } => queue(w, name).map(|(at, wait)| (What::Take(at), wait))?,
        _ => {
            let [disk, file] = [&kernel::DiskIo::Read, &kernel::FileIo::Read];
            let (op, file_op, wait, names) = if step.write.is_some() {
                (kernel::DiskIo::Write, Some(kernel::FileIo::Write), WRITE, &step.write)
            } else if step.flush.is_some() {
                (kernel::DiskIo::FlushBuffers, Some(kernel::FileIo::Flush), FLUSH, &step.flush)
            } else if step.fault.is_some() {
                (*disk, None, FAULT, &step.fault)
            } else {
                (*disk, Some(*file), READ, &step.read)
            };
            let request = Request {
                op,
                file_op,
                files: files(&names.as_ref().map(|l| OneOrMany(l.0.clone())), "C:\\data.bin", w),
                size: step.size.clone(),
                offset: step.offset.clone(),
                service: step.service.clone(),
                disk: step.disk.unwrap_or(0),
            };
            (What::Transfer(Box::new(request)), Some(wait))
        }
    })
}

/// The stacks of a step, for each process that does it.
pub(super) fn looks(
    frames: &Frames,
    wait: Option<&Wait>,
    owners: &[usize],
    w: &mut World,
) -> std::result::Result<HashMap<usize, Look>, String> {
    let mut all = HashMap::new();
    for &owner in owners {
        let mut below = |tail: &str| {
            let tail = tail.split(';').filter(|f| !f.is_empty()).map(str::to_owned);
            let frames = Frames(frames.0.iter().cloned().chain(tail).collect());
            let is_empty = frames.0.is_empty();
            let stack = w.stacks.intern(&frames, owner, &mut w.images, &mut w.processes)?;
            Ok::<_, String>((!is_empty).then_some(stack))
        };
        let runs = below("")?;
        let waits = wait.map_or(Ok(None), |wait| below(wait.waits))?;
        let wakes = wait.map_or(Ok(None), |wait| below(wait.wakes))?;
        all.insert(owner, Look { runs, waits, wakes });
    }
    Ok(all)
}

impl Plan {
    pub(super) fn draw(&self, dist: &Dist, round: u64, now: i64) -> i64 {
        let x = (now - self.from) as f64 / (self.to - self.from).max(1) as f64;
        dist.ns(&mut Draw { rng: &mut self.rng.borrow_mut(), n: round, x: x.clamp(0.0, 1.0) })
    }

    pub(super) fn whole(&self, dist: &Option<Dist>, round: u64, default: u64) -> u64 {
        let rng = &mut self.rng.borrow_mut();
        dist.as_ref().map_or(default, |d| d.whole(&mut Draw { rng, n: round, x: 0.0 }))
    }

    pub(super) fn look(&self, e: &Engine, a: Actor) -> Look {
        let owner = e.world.processes.thread(a.thread).process;
        let looks = self.parts.get(a.part).map_or(&self.between, |part| &part.looks);
        looks.get(&owner).copied().unwrap_or_default()
    }

    pub(super) fn next_round(&self) -> u64 {
        let round = self.rounds.get();
        self.rounds.set(round + 1);
        round
    }
}
