//! Address space, soft faults, pool, handles: things that are taken and given back.

use super::{Cx, Head, Kind, Site, events, name_of, one_of_names};
use crate::engine::{Engine, Source, Style};
use crate::error::Result;
use crate::model::{Handle, PageFault, Pool, VirtualAlloc, WorkingSet};
use crate::value::Dist;
use crate::world::World;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events as kernel;
use std::io;

/// When something that was taken is given back, if ever.
struct GiveBack {
    after: Option<Dist>,
    /// Share that is never given back.
    leak: f64,
}

impl GiveBack {
    fn draw(&self, cx: &mut Cx) -> Option<i64> {
        let after = self.after.as_ref()?.ns(&mut cx.draw());
        (cx.rng.uniform() >= self.leak).then_some(after)
    }
}

const FAULTS: [(&str, KernelEvent); 6] = [
    ("transition", kernel::PageFault::TransitionFault),
    ("demand_zero", kernel::PageFault::DemandZeroFault),
    ("copy_on_write", kernel::PageFault::CopyOnWrite),
    ("guard_page", kernel::PageFault::GuardPageFault),
    ("hard", kernel::PageFault::HardPageFault),
    ("access_violation", kernel::PageFault::AccessViolation),
];

struct Soft {
    op: KernelEvent,
    address: Option<Dist>,
}

pub(crate) fn page_fault(t: &PageFault, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let op = one_of_names("op", t.op.as_deref().unwrap_or("demand_zero"), &FAULTS);
    let op = op.map_err(|e| site.fail(w, e))?;
    events(site, w, None, Box::new(Soft { op, address: t.address.clone() }))
}

impl Kind for Soft {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let address = cx.whole(&self.address, 0x0200_0000_0000 + cx.n * 4096);
        let counter = cx.engine.world.images.modules.first().map_or(0, |m| m.base + 0x1040);
        cx.kernel(Head::Perf, self.op, 2, 0, |r| r.ptr(address).ptr(counter))?;
        cx.count("page_fault", name_of(&FAULTS, self.op), &[("count", 1), ("bytes", 4096)]);
        cx.stack(0)
    }
}

/// Working sets of some processes, as the session's timer counts them.
struct WorkingSets {
    processes: Vec<usize>,
    bytes: Dist,
    private: Option<Dist>,
    commit: Option<Dist>,
}

pub(crate) fn working_set(t: &WorkingSet, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let threads = w.processes.select(site.common.process.as_ref(), None, &w.place, &site.span)?;
    let mut processes: Vec<usize> = threads.iter().map(|t| w.processes.thread(*t).process).collect();
    processes.dedup();
    if processes.is_empty() {
        return Err(site.fail(w, "it needs a process"));
    }
    let kind = WorkingSets {
        processes,
        bytes: t.bytes.clone().unwrap_or(Dist::constant(64e6)),
        private: t.private.clone(),
        commit: t.commit.clone(),
    };
    // Nobody of them counts: a thread of Windows does.
    let mut common = site.common.clone();
    (common.process, common.thread) = (None, None);
    events(&Site { common, span: site.span.clone(), seed: site.seed }, w, None, Box::new(kind))
}

impl Kind for WorkingSets {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        const PAGE: u64 = 4096;
        let list = &cx.engine.world.processes.list;
        let lives = |p: &crate::world::Process| {
            p.start.is_none_or(|s| s <= cx.now) && p.end.is_none_or(|e| cx.now < e)
        };
        let alive = self.processes.iter().filter_map(|p| list.get(*p)).filter(|p| lives(p));
        let alive: Vec<(u32, String)> = alive.map(|p| (p.pid, p.name.clone())).collect();
        let mut sets = Vec::new();
        for (pid, name) in alive {
            let bytes = self.bytes.bytes(&mut cx.draw());
            let private = cx.whole(&self.private, bytes);
            let commit = cx.whole(&self.commit, private);
            sets.push((pid, [bytes, commit, commit, private, 0, 0, 0, 0].map(|bytes| bytes / PAGE)));
            cx.engine.tally("working_set", &name, &[("count", 1), ("bytes", (bytes / PAGE * PAGE) as i64)]);
        }
        cx.kernel(Head::Perf, kernel::PageFault::MemInfoWS, 2, 0, |r| {
            r.u32(sets.len() as u32);
            for (pid, pages) in &sets {
                r.u32(*pid);
                pages.iter().for_each(|n| {
                    r.ptr(*n);
                });
            }
            r
        })
    }
}

struct Virtual {
    size: Dist,
    flags: u32,
    back: GiveBack,
    address: Option<Dist>,
    /// Given back by decommitting the second half and releasing the rest later.
    decommit: Option<Dist>,
    next: u64,
}

pub(crate) fn virtual_alloc(t: &VirtualAlloc, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let names = [
        ("commit", 0x1000u32),
        ("reserve", 0x2000),
        ("decommit", 0x4000),
        ("release", 0x8000),
        ("top_down", 0x10_0000),
        ("large_pages", 0x2000_0000),
    ];
    let mut flags = 0;
    for name in t.flags.clone().map_or_else(|| vec!["commit".into(), "reserve".into()], |l| l.0) {
        flags |= match crate::value::parse_number(&name) {
            Ok(number) => number as u32,
            Err(_) => one_of_names("flags", &name, &names).map_err(|e| site.fail(w, e))?,
        };
    }
    let kind = Virtual {
        size: t.size.clone().unwrap_or(Dist::constant(65536.0)),
        flags,
        back: GiveBack { after: t.free_after.clone(), leak: t.leak.unwrap_or(0.0) },
        address: t.address.clone(),
        decommit: t.decommit.clone(),
        // Tables of one process must not give out each other's addresses.
        next: 0x0100_0000_0000 + (site.seed % 1024) * 0x10_0000_0000,
    };
    events(site, w, None, Box::new(kind))
}

impl Kind for Virtual {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let size = self.size.bytes(&mut cx.draw()).next_multiple_of(4096).max(4096);
        let base = cx.whole(&self.address, self.next);
        self.next = self.next.saturating_add(size.next_multiple_of(0x1_0000));
        let (pid, flags) = (cx.pid, self.flags);
        cx.kernel(Head::Perf, kernel::PageFault::VirtualAlloc, 2, 0, |r| {
            r.ptr(base).ptr(size).u32(pid).u32(flags)
        })?;
        cx.stack(0)?;
        let mut held = if flags & 0x1000 != 0 { size } else { 0 };
        let held_now = held;
        cx.count("virtual_alloc", "", &[("count", 1), ("bytes", size as i64)]);
        let end = cx.engine.world.facts.duration;
        if let Some(dist) = &self.decommit {
            let after = dist.ns(&mut cx.draw());
            let part = (size / 2).next_multiple_of(4096);
            if cx.now + after < end {
                cx.kernel(Head::Perf, kernel::PageFault::VirtualFree, 2, after, |r| {
                    r.ptr(base + size - part).ptr(part).u32(pid).u32(0x4000)
                })?;
                held = held.saturating_sub(part);
                cx.count("virtual_alloc", "", &[("decommitted_bytes", part as i64)]);
            }
        }
        match self.back.draw(cx) {
            Some(after) if cx.now + after < end => {
                cx.count("virtual_alloc", "", &[("freed", 1), ("freed_bytes", size as i64)]);
                cx.kernel(Head::Perf, kernel::PageFault::VirtualFree, 2, after, |r| {
                    r.ptr(base).ptr(size).u32(pid).u32(0x8000)
                })?;
            }
            _ if held_now > 0 => cx.count("virtual_alloc", "", &[("outstanding_commit_bytes", held as i64)]),
            _ => {}
        }
        Ok(())
    }
}

struct PoolUse {
    tag: u32,
    size: Dist,
    paged: bool,
    back: GiveBack,
    text: String,
    /// Who frees, and with which stack.
    free_by: Vec<usize>,
    free_stack: Option<usize>,
    style: Style,
    next: u64,
}

pub(crate) fn pool(t: &Pool, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let text = t.tag.as_deref().unwrap_or("Synt");
    let tag: [u8; 4] = match text.as_bytes() {
        &[a, b, c, d] => [a, b, c, d],
        _ => return Err(site.fail(w, format!("tag = {text:?}: a tag has four characters"))),
    };
    let place = w.place.clone();
    let free_by = w.processes.select(t.free_by.as_ref(), None, &place, &site.span)?;
    let owner = free_by.first().map_or(1, |t| w.processes.thread(*t).process);
    let free_stack =
        t.free_stack.as_ref().map(|f| w.stacks.intern(f, owner, &mut w.images, &mut w.processes));
    let kind = PoolUse {
        text: text.to_string(),
        free_by,
        free_stack: free_stack.transpose().map_err(|e| site.fail(w, e))?,
        style: w.facts.style,
        tag: u32::from_le_bytes(tag),
        size: t.size.clone().unwrap_or(Dist::constant(256.0)),
        paged: t.paged,
        back: GiveBack { after: t.free_after.clone(), leak: t.leak.unwrap_or(0.0) },
        // Each has room of its own, in 32 bits too: a block of one is not freed by another.
        next: match w.facts.pointer_size {
            4 => 0x8000_0000 + (site.seed % 40) * 0x300_0000,
            _ => 0xFFFF_B400_0000_0000 + (site.seed % 4096) * 0x1_0000_0000,
        },
    };
    events(site, w, None, Box::new(kind))
}

impl Kind for PoolUse {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let size = self.size.bytes(&mut cx.draw()).max(16);
        let entry = self.next;
        self.next += size.next_multiple_of(16) + 16;
        // POOL_TYPE: 1 paged, 512 non-paged without execution.
        let (tag, kind) = (self.tag, if self.paged { 1 } else { 512 });
        cx.kernel(Head::Perf, kernel::Pool::PoolAllocation, 2, 0, |r| {
            r.u32(kind).u32(tag).ptr(size).ptr(entry)
        })?;
        cx.stack(0)?;
        let name = self.text.clone();
        cx.engine.tally("pool", &name, &[("count", 1), ("bytes", size as i64)]);
        let end = cx.engine.world.facts.duration;
        let freed = Freed {
            record: (kind, tag, size, entry),
            thread: cx.turn(&self.free_by).copied().unwrap_or(cx.thread),
            stack: self.free_stack,
            style: self.style,
            name,
        };
        match self.back.draw(cx) {
            Some(after) if cx.now + after < end => cx.engine.at(cx.now + after, Box::new(|e| freed.free(e))),
            _ => {}
        }
        Ok(())
    }
}

/// Pool that will be freed, perhaps by somebody else.
struct Freed {
    record: (u32, u32, u64, u64),
    thread: usize,
    stack: Option<usize>,
    style: Style,
    name: String,
}

impl Freed {
    fn free(self, e: &mut Engine) -> io::Result<()> {
        if !e.alive(self.thread, e.now) {
            return Ok(());
        }
        if e.is_blocked(self.thread) {
            e.at(e.now + 50_000, Box::new(|e| self.free(e)));
            return Ok(());
        }
        let cpu = e.run_briefly(self.thread, &[], 0, 3000, self.stack)?;
        let (pointer, (kind, tag, size, entry)) = (e.pointer(), self.record);
        e.add(cpu, e.now, |r, t| {
            r.perfinfo(pointer, kernel::Pool::PoolFree.hook, 2, t).u32(kind).u32(tag).ptr(size).ptr(entry)
        })?;
        e.stack_now(cpu, self.thread, self.stack, self.style)?;
        e.tally("pool", &self.name, &[("freed", 1), ("freed_bytes", size as i64)]);
        let process = e.world.processes.thread(self.thread).process;
        let by = e.world.processes.list.get(process).map_or("", |p| p.name.as_str());
        e.tally("pool_free", by, &[("count", 1), ("bytes", size as i64)]);
        Ok(())
    }
}

/// Object types by number; the rundown names them (op 36 and 37).
pub(crate) const OBJECT_TYPES: [(&str, u16); 12] = [
    ("Directory", 3),
    ("Token", 5),
    ("Process", 7),
    ("Thread", 8),
    ("Event", 16),
    ("Mutant", 17),
    ("Semaphore", 19),
    ("Timer", 21),
    ("Section", 42),
    ("File", 37),
    ("Key", 44),
    ("ALPC Port", 46),
];

struct Handles {
    kind: u16,
    back: GiveBack,
    next: u32,
}

pub(crate) fn handle(t: &Handle, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let name = t.object_type.as_deref().unwrap_or("Event");
    let kind = one_of_names("object_type", name, &OBJECT_TYPES).map_err(|e| site.fail(w, e))?;
    let back = GiveBack { after: t.close_after.clone(), leak: t.leak.unwrap_or(0.0) };
    // Tables of one process must not give out each other's handles; bit 31 marks those of the kernel.
    let next = 0x100 + (site.seed % 0x7FFF) as u32 * 0x1_0000;
    events(site, w, None, Box::new(Handles { kind, back, next }))
}

impl Kind for Handles {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let (handle, kind) = (self.next, self.kind);
        self.next = self.next.wrapping_add(4);
        let object = 0xFFFF_9D03_0000_0000 + u64::from(handle) * 0x40;
        cx.kernel(Head::System, kernel::Object::CreateHandle, 2, 0, |r| r.ptr(object).u32(handle).u16(kind))?;
        cx.count("handle", name_of(&OBJECT_TYPES, kind), &[("count", 1)]);
        cx.stack(0)?;
        let end = cx.engine.world.facts.duration;
        match self.back.draw(cx) {
            Some(after) if cx.now + after < end => {
                cx.count("handle", name_of(&OBJECT_TYPES, kind), &[("closed", 1)]);
                cx.kernel(Head::System, kernel::Object::CloseHandle, 2, after, |r| {
                    r.ptr(object).u32(handle).u16(kind)
                })
            }
            _ => Ok(()),
        }
    }
}
