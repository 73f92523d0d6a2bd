//! The .NET runtime: garbage collections, exceptions, contention, compiled methods.
//!
//! Ids, opcodes, keywords and payloads after `ClrEtwAll.man` of dotnet/runtime (MIT).

use super::{Cx, Kind, Site, events};
use crate::engine::Source;
use crate::error::Result;
use crate::model::{Contention, Exception, Frames, Gc, Jit};
use crate::value::Dist;
use crate::world::World;
use etwhy_base::Guid;
use etwhy_etl::write::{EventHead, RecordBuf};
use std::io;

/// Microsoft-Windows-DotNETRuntime.
pub(crate) const RUNTIME: Guid = Guid::from_text("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
/// Microsoft-Windows-DotNETRuntimeRundown.
pub(crate) const RUNDOWN: Guid = Guid::from_text("a669021c-c450-4609-a035-5af59af4df18");
/// `ClrInstanceID` of all events.
pub(crate) const CLR_INSTANCE: u16 = 8;

/// An event of the runtime.
fn runtime(
    cx: &mut Cx,
    after: i64,
    (id, version, opcode, task, keyword): (u16, u8, u8, u16, u64),
    build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
) -> io::Result<()> {
    let head = EventHead {
        provider: RUNTIME,
        id,
        version,
        level: 4,
        opcode,
        task,
        keyword,
        pid: cx.pid,
        tid: cx.tid,
        ..EventHead::default()
    };
    cx.user(after, |r, pointer, ticks| {
        r.event(pointer, ticks, &head);
        build(r);
        r
    })
}

struct Collect {
    generation: Option<Dist>,
    heap: Option<Dist>,
    promoted: Option<Dist>,
    reason: u32,
    background: bool,
}

pub(crate) fn gc(t: &Gc, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let kind = Collect {
        generation: t.generation.clone(),
        heap: t.heap.clone(),
        promoted: t.promoted.clone(),
        reason: t.reason.unwrap_or(0),
        background: t.background,
    };
    let pause = t.pause.clone().or_else(|| Some(Dist::constant(5e-3)));
    events(site, w, pause, Box::new(kind))
}

impl Kind for Collect {
    /// Suspend, start, end, heap statistics, restart: the pause is from the first to the last.
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let count = cx.n as u32 + 1;
        let depth = cx.whole(&self.generation, if count.is_multiple_of(10) { 2 } else { 0 }).min(3) as u32;
        let heap = cx.whole(&self.heap, 64 << 20);
        let promoted = cx.whole(&self.promoted, heap / 20);
        let (reason, kind) = (self.reason, u32::from(self.background));
        let pause = cx.duration.max(40_000);
        let edge = (pause / 20).clamp(2_000, 100_000);
        runtime(cx, 0, (9, 1, 10, 1, 1), |r| r.u32(1).u32(count).u16(CLR_INSTANCE))?;
        runtime(cx, edge, (8, 1, 137, 1, 1), |r| r.u16(CLR_INSTANCE))?;
        runtime(cx, edge + 1000, (1, 2, 1, 1, 1), |r| {
            r.u32(count).u32(depth).u32(reason).u32(kind).u16(CLR_INSTANCE).u64(0)
        })?;
        cx.stack(edge + 1000)?;
        runtime(cx, pause - edge, (2, 1, 2, 1, 1), |r| r.u32(count).u32(depth).u16(CLR_INSTANCE))?;
        runtime(cx, pause - edge + 1000, (4, 1, 133, 1, 1), |r| {
            for generation in 0..4u64 {
                r.u64(heap >> generation).u64(promoted >> generation);
            }
            r.u64(0).u64(0).u32(0).u32(4).u32(64).u16(CLR_INSTANCE)
        })?;
        runtime(cx, pause - edge + 2000, (7, 1, 136, 1, 1), |r| r.u16(CLR_INSTANCE))?;
        runtime(cx, pause, (3, 1, 132, 1, 1), |r| r.u16(CLR_INSTANCE))
    }
}

struct Throw {
    kinds: Vec<String>,
    messages: Vec<String>,
    hresult: u32,
}

pub(crate) fn exception(t: &Exception, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let kinds =
        if t.kind.0.is_empty() { vec!["System.InvalidOperationException".into()] } else { t.kind.0.clone() };
    let messages = t.message.clone().map_or_else(|| vec!["Operation is not valid.".to_string()], |m| m.0);
    let kind = Throw { kinds, messages, hresult: t.hresult.unwrap_or(0x8013_1509) };
    events(site, w, None, Box::new(kind))
}

impl Kind for Throw {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let kind = cx.turn(&self.kinds).cloned().unwrap_or_default();
        let message = cx.turn(&self.messages).cloned().unwrap_or_default();
        let hresult = self.hresult;
        runtime(cx, 0, (80, 1, 1, 7, 0x8000), |r| {
            r.utf16z(&kind).utf16z(&message).ptr(0x7FF8_1000_1000).u32(hresult).u16(0x10).u16(CLR_INSTANCE)
        })?;
        cx.stack(0)
    }
}

struct Contend;

pub(crate) fn contention(t: &Contention, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let duration = t.duration.clone().or_else(|| Some(Dist::constant(1e-3)));
    events(site, w, duration, Box::new(Contend))
}

impl Kind for Contend {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        runtime(cx, 0, (81, 1, 1, 8, 0x4000), |r| r.u8(0).u16(CLR_INSTANCE))?;
        cx.stack(0)?;
        let duration = cx.duration;
        runtime(cx, duration, (91, 1, 2, 8, 0x4000), |r| r.u8(0).u16(CLR_INSTANCE).f64(duration as f64))
    }
}

struct Compile {
    /// Stacks whose only frame is the method.
    methods: Vec<usize>,
    /// MethodJittingStarted comes too.
    started: bool,
}

pub(crate) fn jit(t: &Jit, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let threads = w.processes.select(
        site.common.process.as_ref(),
        site.common.thread.as_ref(),
        &w.place.clone(),
        &site.span,
    )?;
    let Some(process) = threads.first().map(|t| w.processes.thread(*t).process) else {
        return Err(site.fail(w, "it needs a process"));
    };
    let mut methods = Vec::new();
    for method in &t.methods.0 {
        let frames = Frames(vec![format!("jit!{method}+0x0")]);
        let stack = w.stacks.intern(&frames, process, &mut w.images, &mut w.processes);
        methods.push(stack.map_err(|e| site.fail(w, e))?);
    }
    if methods.is_empty() {
        return Err(site.fail(w, "it needs methods = [\"Name.Space.Class.Method\", ...]"));
    }
    let mut site = Site { common: site.common.clone(), span: site.span.clone(), seed: site.seed };
    let c = &mut site.common;
    if c.count.is_none() && c.rate.is_none() && c.at.is_none() && c.every.is_none() {
        // Each method once; a count would be stretched, a list of moments is not multiplied.
        let (from, to) = (c.from.map_or(0.0, |t| t.0), c.to.map_or(w.facts.duration as f64 / 1e9, |t| t.0));
        let step = (to - from) / methods.len() as f64;
        c.at = Some((0..methods.len()).map(|i| crate::value::Time(from + step * (i as f64 + 0.5))).collect());
    }
    events(&site, w, t.duration.clone(), Box::new(Compile { methods, started: t.started }))
}

impl Kind for Compile {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        use crate::world::Stack;
        let stack: Option<&Stack> = cx.turn(&self.methods).and_then(|m| cx.engine.world.stacks.list.get(*m));
        let Some(crate::world::Frame::Function(module, function, _)) =
            stack.and_then(|s| s.frames.first()).copied()
        else {
            return Ok(());
        };
        let Some(m) = cx.engine.world.images.modules.get(module) else { return Ok(()) };
        let Some(f) = m.functions.get(function) else { return Ok(()) };
        let (start, size, name) = (m.base + u64::from(f.rva), f.size, f.name.clone());
        if self.started {
            let (class, method) = name.rsplit_once('.').unwrap_or(("", &name));
            runtime(cx, 0, (145, 1, 42, 9, 0x10), |r| {
                r.u64(start ^ 0x1_0000_0000).u64(0x7FF8_0001_0000).u32(0x0600_0001).u32(size / 3);
                r.utf16z(class).utf16z(method).utf16z("void  ()").u16(CLR_INSTANCE)
            })?;
        }
        runtime(cx, cx.duration, (143, 1, 37, 9, 0x30), |r| method(r, start, size, &name))?;
        cx.stack(cx.duration)
    }
}

/// Payload of `MethodLoadVerbose_V1` and its rundown twin.
pub(crate) fn method<'r>(r: &'r mut RecordBuf, start: u64, size: u32, name: &str) -> &'r mut RecordBuf {
    let (class, method) = name.rsplit_once('.').unwrap_or(("", name));
    r.u64(start ^ 0x1_0000_0000).u64(0x7FF8_0001_0000).u64(start).u32(size).u32(0x0600_0001).u32(1);
    r.utf16z(class).utf16z(method).utf16z("void  ()").u16(CLR_INSTANCE)
}
