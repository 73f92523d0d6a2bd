//! Processes, threads and images that come and go, and the records that name them.

use crate::engine::{Engine, Source};
use crate::world::{Module, Process, World};
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events as kernel;
use etwhy_etl::abi::guids::IMAGE_ID;
use etwhy_etl::write::{ClassicHead, RecordBuf};
use std::io;

/// What happens to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Life {
    ProcessStart(usize),
    ThreadStart(usize),
    /// Process, module.
    ImageLoad(usize, usize),
    ImageUnload(usize, usize),
    ThreadEnd(usize),
    ProcessEnd(usize),
}

/// All comings and goings within the trace, in time order.
pub(crate) struct Lifecycle {
    list: Vec<(i64, Life)>,
    next: usize,
}

impl Lifecycle {
    pub(crate) fn new(w: &World) -> Lifecycle {
        let mut list = Vec::new();
        let inside = |ns: &i64| (0..w.facts.duration).contains(ns);
        for (at, p) in w.processes.list.iter().enumerate() {
            let step = |n: usize| 10_000 * (n as i64 + 1);
            list.extend(p.start.filter(inside).map(|t| (t, Life::ProcessStart(at))));
            for (n, (module, load, unload)) in p.images.iter().enumerate() {
                let load = load.map(|t| if Some(t) == p.start { t + step(n) } else { t });
                let unload = unload.map(|t| if Some(t) == p.end { t - step(p.images.len() - n) } else { t });
                list.extend(load.filter(inside).map(|t| (t, Life::ImageLoad(at, *module))));
                list.extend(unload.filter(inside).map(|t| (t, Life::ImageUnload(at, *module))));
            }
            for &thread in &p.threads {
                let t = w.processes.thread(thread);
                list.extend(t.start.filter(inside).map(|ns| (ns, Life::ThreadStart(thread))));
                list.extend(t.end.filter(inside).map(|ns| (ns - 2_000, Life::ThreadEnd(thread))));
            }
            list.extend(p.end.filter(inside).map(|t| (t, Life::ProcessEnd(at))));
        }
        list.sort_unstable();
        Lifecycle { list, next: 0 }
    }
}

impl Source for Lifecycle {
    fn next(&self) -> Option<i64> {
        self.list.get(self.next).map(|l| l.0)
    }

    fn fire(&mut self, engine: &mut Engine) -> io::Result<()> {
        let Some(&(ns, life)) = self.list.get(self.next) else { return Ok(()) };
        self.next += 1;
        let w = engine.world;
        let cpu = match life {
            Life::ThreadStart(i) | Life::ThreadEnd(i) => i,
            Life::ProcessStart(i) | Life::ProcessEnd(i) | Life::ImageLoad(i, _) | Life::ImageUnload(i, _) => {
                i
            }
        };
        let cpu = (cpu % usize::from(w.facts.cpus)) as u16;
        match life {
            Life::ProcessStart(i) => {
                let name = w.processes.list.get(i).map_or("", |p| p.name.as_str());
                engine.tally("process", name, &[("count", 1)]);
                process(engine, cpu, ns, i, kernel::Process::Start)
            }
            Life::ProcessEnd(i) => process(engine, cpu, ns, i, kernel::Process::End),
            Life::ThreadStart(i) => thread(engine, cpu, ns, i, kernel::Thread::Start),
            Life::ThreadEnd(i) => thread(engine, cpu, ns, i, kernel::Thread::End),
            Life::ImageLoad(p, m) => image(engine, cpu, ns, p, m, kernel::Image::Load),
            Life::ImageUnload(p, m) => image(engine, cpu, ns, p, m, kernel::Image::UnLoad),
        }
    }
}

/// `Process_V4_TypeGroup1`. A start stands in the parent's context.
pub(crate) fn process(
    engine: &mut Engine,
    cpu: u16,
    ns: i64,
    at: usize,
    event: KernelEvent,
) -> io::Result<()> {
    let w = engine.world;
    let Some(p) = w.processes.list.get(at) else { return Ok(()) };
    let pointer = engine.pointer();
    let tid = p.threads.first().map_or(0, |t| w.processes.thread(*t).tid);
    engine.add(cpu, ns, |r, t| {
        match event {
            kernel::Process::Start => r.system(pointer, event.hook, 4, t, p.ppid, 0, (1, 1)),
            kernel::Process::End => r.system(pointer, event.hook, 4, t, p.pid, tid, (1, 1)),
            _ => r.perfinfo(pointer, event.hook, 4, t),
        };
        let ended = match event {
            kernel::Process::End => true,
            kernel::Process::DCEnd => p.end.is_some(),
            _ => false,
        };
        let exit = if ended { p.exit_code } else { 259 };
        r.ptr(p.key()).u32(p.pid).u32(p.ppid).u32(p.session).u32(exit as u32);
        r.ptr(0x1_0000_0000 + u64::from(p.pid) * 0x1000).u32(process_flags(p, pointer));
        user_sid(r, &p.sid);
        // The short name: no path, cut after 14 characters as EPROCESS.ImageFileName is.
        r.text_z(p.name.get(..14).unwrap_or(&p.name))
            .utf16z(&p.command_line)
            .utf16z(&p.package)
            .utf16z(&p.app_id)
    })
}

/// 1 package or application id, 2 WOW64.
fn process_flags(p: &Process, pointer: u8) -> u32 {
    u32::from(!p.package.is_empty() || !p.app_id.is_empty()) | u32::from(p.narrow && pointer == 8) << 1
}

/// TOKEN_USER (two pointers), then the SID; four zero bytes for none.
fn user_sid(r: &mut RecordBuf, sid: &[u8]) {
    if sid.is_empty() {
        r.u32(0);
    } else {
        r.ptr(0xFFFF_A001_92DC_2050).ptr(0).bytes(sid);
    }
}

/// `Thread_V3_TypeGroup1`, with the name behind it as builds since 17763 write it.
pub(crate) fn thread(
    engine: &mut Engine,
    cpu: u16,
    ns: i64,
    at: usize,
    event: KernelEvent,
) -> io::Result<()> {
    let w = engine.world;
    let t = w.processes.thread(at);
    let pointer = engine.pointer();
    let process = w.processes.list.get(t.process);
    let start = t.start_address.as_ref().and_then(|f| w.images.address_of(f, t.narrow && pointer == 8));
    let main = process.and_then(|p| p.images.first()).and_then(|i| w.images.modules.get(i.0));
    let start = start.unwrap_or_else(|| main.map_or(0, |m| m.base + 0x1000));
    let kernel_stack = 0xFFFF_F880_0000_0000 + at as u64 * 0x8000;
    let user_stack = if t.process < 2 { 0 } else { 0x0080_0000 + at as u64 % 0x400 * 0x10_0000 };
    let teb = if t.process < 2 { 0 } else { 0x7FF0_0000 + at as u64 * 0x2000 };
    engine.add(cpu, ns, |r, ticks| {
        let (pid, tid) = match event {
            kernel::Thread::Start => (process.map_or(0, |p| p.ppid), 0),
            kernel::Thread::End => (t.pid, t.tid),
            _ => (0, 0),
        };
        r.system(pointer, event.hook, 3, ticks, pid, tid, (0, 0));
        r.u32(t.pid).u32(t.tid).ptr(kernel_stack + 0x6000).ptr(kernel_stack);
        r.ptr(user_stack + if user_stack == 0 { 0 } else { 0x10_0000 }).ptr(user_stack);
        r.ptr(0xFF).ptr(start).ptr(teb).u32(t.service_tag);
        r.u8(t.priority).u8(5).u8(2).u8(0).utf16z(&t.name)
    })
}

/// `Image_Load`.
pub(crate) fn image(
    engine: &mut Engine,
    cpu: u16,
    ns: i64,
    process: usize,
    module: usize,
    event: KernelEvent,
) -> io::Result<()> {
    let w = engine.world;
    let Some(m) = w.images.modules.get(module).filter(|m| m.jit.is_none()) else { return Ok(()) };
    let p = w.processes.list.get(process);
    // Kernel images belong to pid 0 in image events.
    let pid = if m.kernel { 0 } else { p.map_or(0, |p| p.pid) };
    let pointer = engine.pointer();
    if w.facts.merged {
        identity(engine, cpu, ns, m, pid)?;
    }
    let path = w.facts.nt_path(&m.path);
    let tid = p.and_then(|p| p.threads.first()).map_or(0, |t| w.processes.thread(*t).tid);
    engine.add(cpu, ns, |r, ticks| {
        match event {
            kernel::Image::Load | kernel::Image::UnLoad => {
                r.system(pointer, event.hook, 3, ticks, pid, tid, (0, 0))
            }
            _ => r.perfinfo(pointer, event.hook, 3, ticks),
        };
        r.ptr(m.base).ptr(m.size.into()).u32(pid).u32(m.checksum).u32(m.timestamp);
        r.u8(if m.company.starts_with("Microsoft") { 12 } else { 1 }).u8(1).u16(0);
        r.ptr(m.base).zeros(16).utf16z(&path)
    })
}

/// What merging adds in front of an image event: original name, PDB, version resource.
fn identity(engine: &mut Engine, cpu: u16, ns: i64, m: &Module, pid: u32) -> io::Result<()> {
    let pointer = engine.pointer();
    let head =
        |opcode, version| ClassicHead { guid: IMAGE_ID, opcode, version, level: 0, tid: u32::MAX, pid };
    engine.add(cpu, ns, |r, t| {
        r.full(pointer, t, &head(0, 2))
            .ptr(m.base)
            .ptr(m.size.into())
            .u32(pid)
            .u32(m.timestamp)
            .utf16z(&m.name)
    })?;
    engine.add(cpu, ns, |r, t| {
        r.full(pointer, t, &head(36, 2)).ptr(m.base).u32(pid).guid(m.guid).u32(m.age).text_z(&m.pdb)
    })?;
    engine.add(cpu, ns, |r, t| {
        r.full(pointer, t, &head(64, 0)).u32(m.size).u32(m.timestamp);
        let name = m.file_name();
        for text in [
            name,
            &m.description,
            &m.version,
            &m.version,
            "English (United States)",
            &m.product,
            &m.company,
            &m.version,
            "",
            "",
        ] {
            r.utf16z(text);
        }
        r
    })
}
