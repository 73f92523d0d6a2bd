//! Address space, soft faults, pool, handles: things that are taken and given back.

use super::{Cx, Head, Kind, Site, events, one_of_names};
use crate::engine::Source;
use crate::error::Result;
use crate::model::{Handle, PageFault, Pool, VirtualAlloc};
use crate::value::Dist;
use crate::world::World;
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
        (cx.rng.unit() >= self.leak).then_some(after)
    }
}

struct Soft {
    op: u16,
    address: Option<Dist>,
}

pub(crate) fn page_fault(t: &PageFault, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let ops = [
        ("transition", 10),
        ("demand_zero", 11),
        ("copy_on_write", 12),
        ("guard_page", 13),
        ("hard", 14),
        ("access_violation", 15),
    ];
    let op =
        one_of_names("op", t.op.as_deref().unwrap_or("demand_zero"), &ops).map_err(|e| site.fail(w, e))?;
    events(site, w, None, Box::new(Soft { op, address: t.address.clone() }))
}

impl Kind for Soft {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let address = cx.whole(&self.address, 0x0200_0000_0000 + cx.n * 4096);
        let counter = cx.engine.world.images.modules.first().map_or(0, |m| m.base + 0x1040);
        cx.kernel(Head::Perf, 0x0200 | self.op, 2, 0, |r| {
            r.ptr(address).ptr(counter);
        })?;
        cx.stack(0)
    }
}

struct Virtual {
    size: Dist,
    flags: u32,
    back: GiveBack,
    address: Option<Dist>,
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
        // Tables of one process must not give out each other's addresses.
        next: 0x0100_0000_0000 + (site.seed % 1024) * 0x10_0000_0000,
    };
    events(site, w, None, Box::new(kind))
}

impl Kind for Virtual {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let size = self.size.whole(&mut cx.draw()).next_multiple_of(4096).max(4096);
        let base = cx.whole(&self.address, self.next);
        self.next += size.next_multiple_of(0x1_0000);
        let (pid, flags) = (cx.pid, self.flags);
        cx.kernel(Head::Perf, 0x0262, 2, 0, |r| {
            r.ptr(base).ptr(size).u32(pid).u32(flags);
        })?;
        cx.stack(0)?;
        let end = cx.engine.world.facts.duration;
        match self.back.draw(cx) {
            Some(after) if cx.now + after < end => cx.kernel(Head::Perf, 0x0263, 2, after, |r| {
                r.ptr(base).ptr(size).u32(pid).u32(0x8000);
            }),
            _ => Ok(()),
        }
    }
}

struct PoolUse {
    tag: u32,
    size: Dist,
    paged: bool,
    back: GiveBack,
    next: u64,
}

pub(crate) fn pool(t: &Pool, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let text = t.tag.as_deref().unwrap_or("Synt");
    let tag: [u8; 4] = match text.as_bytes() {
        &[a, b, c, d] => [a, b, c, d],
        _ => return Err(site.fail(w, format!("tag = {text:?}: a tag has four characters"))),
    };
    let kind = PoolUse {
        tag: u32::from_le_bytes(tag),
        size: t.size.clone().unwrap_or(Dist::constant(256.0)),
        paged: t.paged,
        back: GiveBack { after: t.free_after.clone(), leak: t.leak.unwrap_or(0.0) },
        next: 0xFFFF_B400_0000_0000 + (site.seed % 4096) * 0x1_0000_0000,
    };
    events(site, w, None, Box::new(kind))
}

impl Kind for PoolUse {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let size = self.size.whole(&mut cx.draw()).max(16);
        let entry = self.next;
        self.next += size.next_multiple_of(16) + 16;
        // POOL_TYPE: 1 paged, 512 non-paged without execution.
        let (tag, kind) = (self.tag, if self.paged { 1 } else { 512 });
        cx.kernel(Head::Perf, 0x0E20, 2, 0, |r| {
            r.u32(kind).u32(tag).ptr(size).ptr(entry);
        })?;
        cx.stack(0)?;
        let end = cx.engine.world.facts.duration;
        match self.back.draw(cx) {
            Some(after) if cx.now + after < end => cx.kernel(Head::Perf, 0x0E22, 2, after, |r| {
                r.u32(kind).u32(tag).ptr(size).ptr(entry);
            }),
            _ => Ok(()),
        }
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
        cx.kernel(Head::System, 0x1120, 2, 0, |r| {
            r.ptr(object).u32(handle).u16(kind);
        })?;
        cx.stack(0)?;
        let end = cx.engine.world.facts.duration;
        match self.back.draw(cx) {
            Some(after) if cx.now + after < end => cx.kernel(Head::System, 0x1121, 2, after, |r| {
                r.ptr(object).u32(handle).u16(kind);
            }),
            _ => Ok(()),
        }
    }
}
