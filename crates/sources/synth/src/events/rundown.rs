//! What stands at the two ends of a session: configuration, what runs, what things are called.

use super::clr::{RUNDOWN, method};
use super::lifecycle::{image, process, thread};
use super::memory::OBJECT_TYPES;
use crate::engine::{Engine, stack_key};
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events as kernel;
use etwhy_etl::abi::guids::SYSTEM_CONFIG_EX;
use etwhy_etl::write::{ClassicHead, EventHead, RecordBuf};
use std::io;

/// Group masks 0 to 7 of the header extension: what the session recorded.
pub(crate) type Masks = [u32; 8];

/// All records of the start of the session, at time 0 on processor 0.
pub(crate) fn rundown_start(engine: &mut Engine, masks: &Masks) -> io::Result<()> {
    extension(engine, kernel::EventTrace::Extension, masks)?;
    configuration(engine)?;
    if engine.world.facts.samples {
        interval(engine, kernel::PerfInfo::CollectionStart)?;
    }
    if engine.world.facts.rundown_start {
        everybody(engine, true)?;
    }
    Ok(())
}

/// All records of the end.
pub(crate) fn rundown_end(engine: &mut Engine, masks: &Masks) -> io::Result<()> {
    if engine.world.facts.samples {
        interval(engine, kernel::PerfInfo::CollectionEnd)?;
    }
    if engine.world.facts.rundown_end {
        everybody(engine, false)?;
        names(engine)?;
        methods(engine)?;
    }
    stacks(engine)?;
    if engine.world.facts.merged {
        merged(engine)?;
    }
    extension(engine, kernel::EventTrace::EndExtension, masks)?;
    let pointer = engine.pointer();
    engine.add(0, engine.now, |r, t| r.perfinfo(pointer, kernel::EventTrace::RDComplete.hook, 2, t))
}

fn system(
    engine: &mut Engine,
    event: KernelEvent,
    version: u8,
    build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
) -> io::Result<()> {
    let pointer = engine.pointer();
    engine.add(0, engine.now, |r, t| {
        r.system(pointer, event.hook, version, t, 4, 8, (0, 0));
        build(r);
        r
    })
}

fn extension(engine: &mut Engine, event: KernelEvent, masks: &Masks) -> io::Result<()> {
    system(engine, event, 2, |r| {
        masks.iter().for_each(|m| {
            r.u32(*m);
        });
        r.u32(60)
    })
}

fn interval(engine: &mut Engine, event: KernelEvent) -> io::Result<()> {
    let units = (engine.world.facts.interval / 100) as u32;
    system(engine, event, 3, |r| r.u32(0).u32(units).u32(10_000).utf16z("Timer"))
}

/// SystemConfig: CPU, NUMA, groups, disk, volume, NIC, platform, services.
fn configuration(engine: &mut Engine) -> io::Result<()> {
    let f = &engine.world.facts;
    let pointer = f.pointer_size;
    let cpus = u32::from(f.cpus);
    system(engine, kernel::SystemConfig::CPU, 3, |r| {
        r.u32(f.setup.cpu_mhz).u32(cpus).u32((f.memory >> 20) as u32).u32(4096).u32(65536);
        r.utf16_fixed(&f.name, 256).utf16_fixed(&f.domain, 134);
        r.ptr(0).ptr(if pointer == 8 { 0x7FFF_FFFE_FFFF } else { 0x7FFE_FFFF });
        r.u16(if pointer == 8 { 9 } else { 0 }).u16(6).u16(0x9E0D).u8(1).u8(1).u32(3200)
    })?;
    let per_node = cpus.div_ceil(u32::from(f.numa_nodes));
    let per_group = cpus.div_ceil(u32::from(f.groups));
    let mask = |from: u32, count: u32| {
        let bits = if count >= 64 { u64::MAX } else { (1u64 << count) - 1 };
        bits.checked_shl(from).unwrap_or(0)
    };
    system(engine, kernel::SystemConfig::NumaNode, 2, |r| {
        r.u32(f.numa_nodes.into());
        for node in 0..u32::from(f.numa_nodes) {
            let first = node * per_node;
            let (group, inside) = (first / per_group, first % per_group);
            r.ptr(mask(inside, per_node.min(cpus.saturating_sub(first)))).u16(group as u16).zeros(6);
        }
        r
    })?;
    system(engine, kernel::SystemConfig::ProcessorGroup, 2, |r| {
        r.u32(f.groups.into());
        for group in 0..u32::from(f.groups) {
            r.ptr(mask(0, per_group.min(cpus.saturating_sub(group * per_group))));
        }
        r
    })?;
    system(engine, kernel::SystemConfig::ProcessorNumber, 2, |r| {
        r.u32(cpus);
        for cpu in 0..cpus {
            r.u16((cpu / per_group) as u16).u8((cpu % per_group) as u8).u8(0);
        }
        r
    })?;
    for cpu in 0..cpus {
        system(engine, kernel::SystemConfig::Processors, 2, |r| {
            r.u32(cpu).u32(0x3D1B_3FFF).u32(f.setup.cpu_mhz).utf16_fixed(&f.cpu_name, 64);
            r.utf16_fixed("GenuineIntel", 16).utf16_fixed("Intel64 Family 6 Model 158 Stepping 13", 128)
        })?;
    }
    for (at, nic) in f.nics.iter().enumerate() {
        let index = at as u32 + 1;
        system(engine, kernel::SystemConfig::NIC, 2, |r| {
            r.u64(0x0000_5E00_5300 + u64::from(index)).u32(6).u32(index).u32(index);
            r.utf16z(nic).utf16z("").utf16z("")
        })?;
    }
    if let Some([maker, model]) = &f.platform {
        system(engine, kernel::SystemConfig::Platform, 2, |r| {
            r.utf16z(maker).utf16z(model).utf16z("2026-01-01").utf16z("1.0")
        })?;
    }
    services(engine)
}

/// `SystemConfig/Services`, version 3: process id, state, tag and names.
fn services(engine: &mut Engine) -> io::Result<()> {
    let w = engine.world;
    let mut tag = 0;
    for p in &w.processes.list {
        for service in &p.services {
            tag += 1;
            system(engine, kernel::SystemConfig::Services, 3, |r| {
                r.u32(p.pid)
                    .u32(4)
                    .u32(tag)
                    .utf16z(service)
                    .utf16z(service)
                    .utf16z(&p.name)
                    .utf16z("")
                    .utf16z("")
            })?;
        }
    }
    Ok(())
}

/// Processes with their threads and images.
fn everybody(engine: &mut Engine, start: bool) -> io::Result<()> {
    let w = engine.world;
    let now = engine.now;
    let [of_process, of_thread, of_image] = match start {
        true => [kernel::Process::DCStart, kernel::Thread::DCStart, kernel::Image::DCStart],
        false => [kernel::Process::DCEnd, kernel::Thread::DCEnd, kernel::Image::DCEnd],
    };
    for (at, p) in w.processes.list.iter().enumerate() {
        let there = |from: Option<i64>, to: Option<i64>| {
            from.is_none_or(|f| !start && f <= now) && to.is_none_or(|t| start || t > now)
        };
        let wanted = if start { p.rundown.0 } else { p.rundown.1 };
        if !wanted || !there(p.start, p.end) {
            continue;
        }
        process(engine, 0, now, at, of_process)?;
        for &t in &p.threads {
            let thread_at = w.processes.thread(t);
            if there(thread_at.start, thread_at.end) {
                thread(engine, 0, now, t, of_thread)?;
            }
        }
        for (module, load, unload) in &p.images {
            if there(*load, *unload) {
                image(engine, 0, now, at, *module, of_image)?;
            }
        }
    }
    Ok(())
}

/// Names of files, keys and types of objects.
fn names(engine: &mut Engine) -> io::Result<()> {
    let w = engine.world;
    let pointer = engine.pointer();
    for (address, name) in w.files.all() {
        engine.add(0, engine.now, |r, t| {
            r.perfinfo(pointer, kernel::FileIo::FileRundown.hook, 2, t).ptr(address).utf16z(name)
        })?;
    }
    for (address, name) in w.keys.all() {
        system(engine, kernel::Registry::KCBRundownEnd, 2, |r| {
            r.i64(0).u32(0).u32(0).ptr(address).utf16z(name)
        })?;
    }
    if engine.truth.uses_handles {
        for (name, number) in OBJECT_TYPES {
            system(engine, kernel::Object::TypeDCEnd, 2, |r| r.u16(number).u16(0).utf16z(name))?;
        }
    }
    Ok(())
}

/// Compiled methods, as the runtime's rundown provider names them (`MethodDCEndVerbose_V1`).
fn methods(engine: &mut Engine) -> io::Result<()> {
    let w = engine.world;
    for m in &w.images.modules {
        let Some(p) = m.jit.and_then(|p| w.processes.list.get(p)) else { continue };
        let pointer = if m.narrow { 4 } else { engine.pointer() };
        let tid = p.threads.first().map_or(0, |t| w.processes.thread(*t).tid);
        for f in &m.functions {
            let head = EventHead {
                provider: RUNDOWN,
                id: 144,
                version: 1,
                level: 4,
                opcode: 40,
                task: 1,
                keyword: 0x30,
                pid: p.pid,
                tid,
                ..EventHead::default()
            };
            engine.add(0, engine.now, |r, t| {
                r.event(pointer, t, &head);
                method(r, m.base + u64::from(f.rva), f.size, &f.name)
            })?;
        }
    }
    Ok(())
}

/// The stacks behind the keys that were used.
fn stacks(engine: &mut Engine) -> io::Result<()> {
    let w = engine.world;
    let pointer = engine.pointer();
    for at in engine.truth.keys_used() {
        let Some(stack) = w.stacks.list.get(at) else { continue };
        for (frames, user) in [(&stack.kernel, false), (&stack.user, true)] {
            if frames.is_empty() {
                continue;
            }
            engine.add(0, engine.now, |r, t| {
                r.perfinfo(pointer, kernel::StackWalk::KeyRundown.hook, 2, t).ptr(stack_key(at, user));
                frames.iter().for_each(|f| {
                    r.ptr(*f);
                });
                r
            })?;
        }
    }
    Ok(())
}

/// What merging adds: build, system paths, volumes.
fn merged(engine: &mut Engine) -> io::Result<()> {
    let f = &engine.world.facts;
    let pointer = f.pointer_size;
    let mut config = |opcode: u8, build: &dyn Fn(&mut RecordBuf) -> &mut RecordBuf| {
        let head = ClassicHead { guid: SYSTEM_CONFIG_EX, opcode, ..ClassicHead::default() };
        engine.add(0, engine.now, |r, t| {
            r.full(pointer, t, &head);
            build(r);
            r
        })
    };
    config(32, &|r| r.i64(f.setup.boot_time - 864_000_000_000_000).utf16z(&f.build_lab).utf16z(&f.product))?;
    config(33, &|r| r.utf16z("C:\\Windows\\system32").utf16z("C:\\Windows\\"))?;
    for (nt, dos) in &f.volumes {
        if dos.is_empty() {
            config(34, &|r| r.utf16z(nt))?;
        } else {
            config(35, &|r| r.utf16z(nt).utf16z(dos))?;
        }
    }
    config(35, &|r| r.utf16z("\\??\\").utf16z(""))
}
