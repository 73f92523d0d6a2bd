//! Disk, hard faults, file system operations, filter callbacks.

use super::{Cx, Head, Kind, Site, events, name_of, one_of_names};
use crate::engine::Source;
use crate::error::Result;
use crate::model::{DiskIo, FileIo, HardFault, InnerCallback, Minifilter, OneOrMany};
use crate::value::{Dist, Draw};
use crate::world::World;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events as kernel;
use etwhy_etl::write::RecordBuf;
use std::collections::VecDeque;
use std::io;

/// Number of an I/O request's packet: an address that is reused after a while, as in reality.
pub(super) fn irp(n: u64, salt: u64) -> u64 {
    0xFFFF_9D01_0000_0000 + salt % 0x1000 * 0x10_0000 + n % 256 * 0x400
}

/// File keys of a table's names.
pub(super) fn files(list: &Option<OneOrMany>, default: &str, w: &mut World) -> Vec<usize> {
    let names = list.clone().map_or_else(|| vec![default.to_string()], |l| l.0);
    names.iter().map(|n| w.files.intern(&w.facts.nt_path(n))).collect()
}

const DISK_OPS: [(&str, KernelEvent); 3] = [
    ("read", kernel::DiskIo::Read),
    ("write", kernel::DiskIo::Write),
    ("flush", kernel::DiskIo::FlushBuffers),
];

/// What the record of a finished transfer says.
pub(super) struct Transfer {
    pub(super) op: KernelEvent,
    pub(super) disk: u32,
    pub(super) flags: u32,
    pub(super) size: u32,
    pub(super) offset: u64,
    pub(super) file: u64,
    pub(super) irp: u64,
    pub(super) tid: u32,
}

impl Transfer {
    /// The event of its beginning.
    pub(super) fn init(&self) -> KernelEvent {
        match self.op {
            kernel::DiskIo::Read => kernel::DiskIo::ReadInit,
            kernel::DiskIo::Write => kernel::DiskIo::WriteInit,
            _ => kernel::DiskIo::FlushInit,
        }
    }

    /// The payload of its end, `took` ticks later.
    pub(super) fn done<'r>(&self, r: &'r mut RecordBuf, took: i64) -> &'r mut RecordBuf {
        let Transfer { op, disk, flags, size, offset, file, irp, tid } = *self;
        if op == kernel::DiskIo::FlushBuffers {
            return r.u32(disk).u32(flags).i64(took).ptr(irp).u32(tid);
        }
        r.u32(disk).u32(flags).u32(size).u32(0).u64(offset).ptr(file).ptr(irp).i64(took).u32(tid)
    }

    /// What it counts for the truth.
    pub(super) fn figures(&self, took_ns: i64) -> (&'static str, Vec<(&'static str, i64)>) {
        let mut figures = vec![("count", 1), ("total_ns", took_ns)];
        if self.op != kernel::DiskIo::FlushBuffers {
            figures.push(("bytes", self.size.into()));
        }
        (name_of(&DISK_OPS, self.op), figures)
    }
}

struct Disk {
    op: KernelEvent,
    disk: u32,
    /// The table says how long a transfer takes; else its disk does.
    timed: bool,
    size: Dist,
    offset: Option<Dist>,
    files: Vec<usize>,
    flags: u32,
    init: bool,
    salt: u64,
}

pub(crate) fn disk_io(t: &DiskIo, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let op = one_of_names("op", t.op.as_deref().unwrap_or("read"), &DISK_OPS).map_err(|e| site.fail(w, e))?;
    let kind = Disk {
        op,
        disk: t.disk.unwrap_or(0),
        timed: t.duration.is_some() || site.common.total.is_some(),
        size: t.size.clone().unwrap_or(Dist::constant(65536.0)),
        offset: t.offset.clone(),
        files: files(&t.file, "C:\\data.bin", w),
        flags: t.flags.unwrap_or(0x0006_0043),
        init: t.init.unwrap_or(true),
        salt: site.seed,
    };
    let duration = t.duration.clone().or_else(|| Some(Dist::constant(2e-3)));
    events(site, w, duration, Box::new(kind))
}

impl Kind for Disk {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let irp = irp(cx.n, self.salt);
        let mut transfer = Transfer {
            op: self.op,
            disk: self.disk,
            flags: self.flags,
            size: 0,
            offset: 0,
            file: 0,
            irp,
            tid: cx.tid,
        };
        if self.init {
            // It carries the stack.
            cx.kernel(Head::System, transfer.init(), 3, 0, |r| r.ptr(irp).u32(transfer.tid))?;
            cx.stack(0)?;
        }
        let (world, states) = (cx.engine.world, &mut cx.engine.objects);
        let own = if self.timed { cx.duration } else { states.service(world, self.disk, None) };
        cx.duration = states.transfer(world, self.disk, cx.now, own);
        let (took, after) = (cx.engine.out.span(cx.now, cx.now + cx.duration), cx.duration);
        if self.op != kernel::DiskIo::FlushBuffers {
            transfer.size = self.size.whole(&mut cx.draw()).clamp(512, u64::from(u32::MAX)) as u32;
            transfer.offset = match &self.offset {
                Some(dist) => dist.whole(&mut cx.draw()),
                None => cx.rng.below(1 << 28) * 4096,
            };
            transfer.file = cx.turn(&self.files).map_or(0, |f| cx.engine.world.files.address(*f));
        }
        cx.kernel(Head::Perf, self.op, 3, after, |r| transfer.done(r, took))?;
        let (name, figures) = transfer.figures(after);
        cx.count("disk_io", name, &figures);
        if self.init { Ok(()) } else { cx.stack(after) }
    }
}

struct Fault {
    files: Vec<usize>,
    size: Dist,
    offset: Option<Dist>,
}

pub(crate) fn hard_fault(t: &HardFault, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let size = t.size.clone().unwrap_or(Dist::constant(32768.0));
    let kind = Fault { files: files(&t.file, "C:\\pagefile.sys", w), size, offset: t.offset.clone() };
    let duration = t.duration.clone().or_else(|| Some(Dist::constant(3e-3)));
    events(site, w, duration, Box::new(kind))
}

impl Kind for Fault {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let size = self.size.whole(&mut cx.draw()) as u32;
        let offset = cx.whole(&self.offset, cx.n.wrapping_mul(65536));
        let file = cx.turn(&self.files).map_or(0, |f| cx.engine.world.files.address(*f));
        let (initial, tid) = (cx.ticks(0), cx.tid);
        let address = 0x7FF6_4000_0000 + cx.rng.below(1 << 20) * 4096;
        let after = cx.duration;
        cx.kernel(Head::Perf, kernel::PageFault::HardFault, 2, after, |r| {
            r.i64(initial).u64(offset).ptr(address).ptr(file).u32(tid).u32(size)
        })?;
        cx.count("hard_fault", "", &[("count", 1), ("bytes", size.into()), ("total_ns", after)]);
        cx.stack(after)
    }
}

struct File {
    ops: Vec<KernelEvent>,
    files: Vec<usize>,
    /// Instead of listed files: a path with `{n}` in it, numbered.
    pattern: Option<String>,
    size: Option<Dist>,
    offset: Option<Dist>,
    status: Option<Dist>,
    options: u32,
    info_class: u32,
    salt: u64,
}

const FILE_OPS: [(&str, KernelEvent); 14] = [
    ("create", kernel::FileIo::Create),
    ("open", kernel::FileIo::Create),
    ("cleanup", kernel::FileIo::Cleanup),
    ("close", kernel::FileIo::Close),
    ("read", kernel::FileIo::Read),
    ("write", kernel::FileIo::Write),
    ("set_info", kernel::FileIo::SetInfo),
    ("delete", kernel::FileIo::Delete),
    ("rename", kernel::FileIo::Rename),
    ("dir_enum", kernel::FileIo::DirEnum),
    ("flush", kernel::FileIo::Flush),
    ("query_info", kernel::FileIo::QueryInfo),
    ("fs_control", kernel::FileIo::FSControl),
    ("dir_notify", kernel::FileIo::DirNotify),
];

pub(crate) fn file_io(t: &FileIo, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let names = t.op.clone().map_or_else(|| vec!["read".to_string()], |l| l.0);
    let ops = names.iter().map(|n| one_of_names("op", n, &FILE_OPS)).collect::<Result<Vec<_>, _>>();
    let kind = File {
        ops: ops.map_err(|e| site.fail(w, e))?,
        files: files(&t.file, "C:\\data.bin", w),
        pattern: t.pattern.as_ref().map(|p| w.facts.nt_path(p)),
        size: t.size.clone(),
        offset: t.offset.clone(),
        status: t.status.clone(),
        options: t.options.unwrap_or(0x0100_0020),
        info_class: t.info_class.unwrap_or(5),
        salt: site.seed,
    };
    let duration = t.duration.clone().or_else(|| Some(Dist::constant(30e-6)));
    events(site, w, duration, Box::new(kind))
}

impl Kind for File {
    fn parts(&self) -> u64 {
        self.ops.len() as u64
    }

    /// The operations of a list follow each other on the same file (open, read, cleanup, close); the
    /// duration is that of each.
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let file = cx.turn(&self.files).copied().unwrap_or(0);
        let numbered = self.pattern.as_ref().map(|p| p.replace("{n}", &cx.n.to_string()));
        let path = numbered.unwrap_or_else(|| cx.engine.world.files.name(file).to_string());
        let key = match self.pattern {
            Some(_) => 0xFFFF_C00C_0000_0000 + cx.n % (1 << 20) * 0x140,
            None => cx.engine.world.files.address(file),
        };
        let object = 0xFFFF_9D02_0000_0000 + (self.salt % 64 * 1024 + cx.n % 1024) * 0x180;
        let (tid, count) = (cx.tid, self.ops.len() as i64);
        let ops = self.ops.clone();
        for (i, op) in ops.into_iter().enumerate() {
            let after = (cx.duration + 2000) * i as i64;
            let irp = irp(cx.n * count as u64 + i as u64, self.salt ^ 0x77);
            let size = cx.whole(&self.size, 4096) as u32;
            let offset = cx.whole(&self.offset, u64::from(size) * cx.n);
            let (options, class) = (self.options, self.info_class);
            let name = path.rsplit('\\').next().unwrap_or("*");
            cx.kernel(Head::Perf, op, 3, after, |r| {
                match op {
                    kernel::FileIo::Create => {
                        r.ptr(irp).ptr(object).u32(tid).u32(options).u32(0x80).u32(7).utf16z(&path)
                    }
                    kernel::FileIo::Cleanup | kernel::FileIo::Close | kernel::FileIo::Flush => {
                        r.ptr(irp).ptr(object).ptr(key).u32(tid)
                    }
                    kernel::FileIo::Read | kernel::FileIo::Write => {
                        r.u64(offset).ptr(irp).ptr(object).ptr(key).u32(tid).u32(size).u32(0x0006_0900)
                    }
                    kernel::FileIo::DirEnum | kernel::FileIo::DirNotify => {
                        r.ptr(irp).ptr(object).ptr(key).u32(tid).u32(size).u32(class).u32(0).utf16z(name)
                    }
                    _ => r.ptr(irp).ptr(object).ptr(key).ptr(0).u32(tid).u32(class),
                };
                r
            })?;
            cx.stack(after)?;
            let status = cx.whole(&self.status, 0) as u32;
            let extra =
                if matches!(op, kernel::FileIo::Read | kernel::FileIo::Write) { u64::from(size) } else { 1 };
            cx.kernel(Head::Perf, kernel::FileIo::OperationEnd, 3, after + cx.duration, |r| {
                r.ptr(irp).ptr(extra).u32(status)
            })?;
            let mut figures = vec![("count", 1), ("total_ns", cx.duration)];
            if matches!(op, kernel::FileIo::Read | kernel::FileIo::Write) {
                figures.push(("bytes", size.into()));
            }
            if status >> 31 == 1 {
                figures.push(("failed", 1));
            }
            cx.count("file_io", name_of(&FILE_OPS, op), &figures);
        }
        Ok(())
    }
}

/// A callback, and those that run inside it because it opens or reads files itself.
struct Callback {
    routine: usize,
    major: u32,
    post: bool,
    duration: Dist,
    inside: Vec<Callback>,
    /// What this event takes without those inside.
    own: i64,
}

/// A callback begins or is over.
struct Step<'c> {
    callback: &'c Callback,
    /// Which one of its event.
    number: u64,
    begin: i64,
    /// Of the callback that is over.
    end: Option<i64>,
}

impl Callback {
    fn new(t: &InnerCallback, site: &Site, w: &mut World) -> Result<Callback> {
        let Some(routine) = t.routine.clone() else {
            return Err(site.fail(w, "it needs routine = \"driver.sys!Callback\""));
        };
        let frames =
            crate::model::Frames(vec![if routine.contains('+') { routine } else { routine + "+0x0" }]);
        let routine = w.stacks.intern(&frames, 1, &mut w.images, &mut w.processes);
        Ok(Callback {
            routine: routine.map_err(|e| site.fail(w, e))?,
            major: t.major.unwrap_or(0),
            post: t.post,
            duration: t.duration.clone().unwrap_or(Dist::constant(50e-6)),
            inside: t.inside.iter().map(|inner| Callback::new(inner, site, w)).collect::<Result<_>>()?,
            own: 0,
        })
    }

    /// Draws how long those inside take, and adds it up.
    fn draw_inside(&mut self, draw: &mut Draw<'_>) -> i64 {
        let one = |inner: &mut Callback| {
            inner.own = inner.duration.ns(draw);
            inner.own + inner.draw_inside(draw)
        };
        self.inside.iter_mut().map(one).sum()
    }

    /// With those inside.
    fn whole(&self) -> i64 {
        self.own + self.inside.iter().map(Callback::whole).sum::<i64>()
    }

    /// Begins and ends in their order. Those inside come one after the other, in the middle.
    fn steps<'c>(&'c self, begin: i64, steps: &mut Vec<Step<'c>>) {
        let number = steps.len() as u64;
        steps.push(Step { callback: self, number, begin, end: None });
        let mut now = begin + self.own / 2;
        for inner in &self.inside {
            inner.steps(now, steps);
            now += inner.whole();
        }
        steps.push(Step { callback: self, number, begin, end: Some(begin + self.whole()) });
    }

    fn all_steps(&self) -> Vec<Step<'_>> {
        let mut steps = Vec::new();
        self.steps(0, &mut steps);
        steps
    }
}

impl Step<'_> {
    /// After the begin of the event.
    fn after(&self) -> i64 {
        self.end.unwrap_or(self.begin)
    }
}

/// A thread that waited is back this long before its callback ends, so that the record is of its time on the processor.
const BACK: i64 = 1_000;

struct Filter {
    outer: Callback,
    /// Of the outer one, if it fails the operation.
    status: Option<u32>,
    files: Vec<usize>,
    salt: u64,
}

pub(crate) fn minifilter(t: &Minifilter, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let outer = InnerCallback {
        routine: t.routine.clone(),
        major: t.major,
        post: t.post,
        duration: t.duration.clone(),
        inside: t.inside.clone(),
    };
    let kind = Filter {
        outer: Callback::new(&outer, site, w)?,
        status: t.status,
        files: files(&t.file, "C:\\data.bin", w),
        salt: site.seed,
    };
    let duration = Some(kind.outer.duration.clone());
    events(site, w, duration, Box::new(kind))
}

impl Kind for Filter {
    fn holds(&self) -> bool {
        true
    }

    fn inside(&mut self, draw: &mut Draw<'_>) -> i64 {
        self.outer.draw_inside(draw)
    }

    fn moments(&self, _duration: i64) -> VecDeque<i64> {
        self.outer.all_steps().iter().skip(1).map(|step| step.after() - BACK).collect()
    }

    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let inside: i64 = self.outer.inside.iter().map(Callback::whole).sum();
        self.outer.own = cx.duration - inside;
        let file = cx.turn(&self.files).map_or(0, |f| cx.engine.world.files.address(*f));
        for step in self.outer.all_steps() {
            let (callback, after) = (step.callback, step.after());
            let stack = cx.engine.world.stacks.list.get(callback.routine);
            let routine = stack.and_then(|s| s.kernel.first().or(s.user.first())).copied().unwrap_or(0);
            let irp = irp(cx.n, self.salt ^ 0xF1 ^ step.number << 4);
            let (initial, major) = (cx.ticks(step.begin), callback.major);
            let status = self.status.filter(|_| step.number == 0 && step.end.is_some());
            let event = match (step.end, status, callback.post) {
                (None, _, false) => kernel::FileIo::PreOpInit,
                (None, _, true) => kernel::FileIo::PostOpInit,
                (Some(_), None, false) => kernel::FileIo::PreOpCompletion,
                (Some(_), None, true) => kernel::FileIo::PostOpCompletion,
                (Some(_), Some(_), false) => kernel::FileIo::PreOpFailure,
                (Some(_), Some(_), true) => kernel::FileIo::PostOpFailure,
            };
            let completes = step.end.is_some() && status.is_none();
            cx.kernel(Head::Perf, event, 3, after, |r| {
                // Completions have the time of the start.
                if completes {
                    r.i64(initial);
                }
                r.ptr(routine).ptr(file + 0x40).ptr(file).ptr(irp).ptr(irp + 0x80).u32(major);
                if let Some(status) = status {
                    r.u32(status);
                }
                r
            })?;
            if step.end.is_none() {
                continue;
            }
            let name = cx.engine.world.frame_names(stack.and_then(|s| s.frames.last())).1;
            let took = after - step.begin;
            cx.engine.tally("minifilter", &name, &[("count", 1), ("total_ns", took)]);
            if step.number == 0 {
                cx.stack(after)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback(routine: usize, own: i64, inside: Vec<Callback>) -> Callback {
        let duration = Dist::constant(own as f64 / 1e9);
        Callback { routine, major: 0, post: false, duration, inside, own: 0 }
    }

    #[test]
    fn callbacks_lie_inside_each_other() {
        let below = callback(3, 6, Vec::new());
        let mut outer = callback(1, 100, vec![callback(2, 10, vec![below]), callback(4, 4, Vec::new())]);
        let mut rng = etwhy_base::rng::Xoshiro::seeded(1);
        assert_eq!(outer.draw_inside(&mut Draw { rng: &mut rng, n: 0, x: 0.0 }), 20);
        outer.own = 100;
        let steps = outer.all_steps();
        let seen: Vec<_> = steps.iter().map(|s| (s.callback.routine, s.after(), s.end.is_some())).collect();
        assert_eq!(
            seen,
            [
                (1, 0, false),
                (2, 50, false),
                (3, 55, false),
                (3, 61, true),
                (2, 66, true),
                (4, 66, false),
                (4, 70, true),
                (1, 120, true),
            ]
        );
    }
}
