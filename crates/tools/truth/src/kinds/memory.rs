//! Memory and handles that nobody gives back.

use crate::cause::{Kind, Limit, Planted, SILENT, Target};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind { id: "commit-leak", answers: &["memory.commit-leak"], most: 100.0, alone: false, plant: commit },
    Kind { id: "handle-leak", answers: &["memory.handle-leak"], most: 20.0, alone: false, plant: handles },
    Kind { id: "gdi-leak", answers: &["memory.gdi-user-leak"], most: 20.0, alone: false, plant: gdi },
    Kind { id: "pool-leak", answers: &["memory.pool-leak"], most: 100.0, alone: false, plant: pool },
    Kind { id: "memory-low", answers: &["memory.low"], most: 20.0, alone: false, plant: low },
    Kind { id: "top-down", answers: &["growth.top-down-alloc"], most: 30.0, alone: false, plant: top_down },
    Kind { id: "thread-leak", answers: &["memory.thread-leak"], most: 4.0, alone: false, plant: threads },
    Kind { id: "demand-zero", answers: &["memory.demand-zero"], most: 2.4, alone: false, plant: demand_zero },
];

const MIB: f64 = 1_048_576.0;

fn commit(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    // A 32-bit process has 2 GiB of addresses.
    let multiple = if plan.small { multiple.min(15.0) } else { multiple };
    let count = 80.0;
    let size = (multiple * 64.0 * MIB / count / 4096.0).round() * 4096.0;
    plan.table(
        "virtual_alloc",
        &format!("process = \"{}\"\nthread = \"main\"\ncount = {count}\nsize = {size}\nflags = [\"reserve\", \"commit\"]\nstack = \"ntdll!RtlUserThreadStart;{n}!main;{n}!Insert;KernelBase.dll!VirtualAlloc;ntdll!NtAllocateVirtualMemory;nt!NtAllocateVirtualMemory\"", actor.pid, n = actor.name),
    );
    let total = count * size;
    Planted::by(Target::process(&actor))
        .needs(total, Limit::Fixed(64.0 * MIB))
        .costs("outstanding_bytes", total)
}

fn handles(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let count = (multiple * 500.0).round();
    plan.table(
        "handle",
        &format!("process = \"{}\"\nthread = \"main\"\nobject_type = \"Key\"\ncount = {count}\nstack = \"ntdll!RtlUserThreadStart;{n}!main;{n}!Poll;KernelBase.dll!RegOpenKeyExW;ntdll!NtOpenKeyEx;nt!NtOpenKeyEx\"", actor.pid, n = actor.name),
    );
    Planted::by(Target::process(&actor)).needs(count, Limit::Fixed(500.0)).costs("outstanding", count)
}

fn gdi(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let count = (multiple * 300.0).round();
    // The writer's pointers have 8 bytes.
    let pointer = if plan.small { "u32" } else { "u64" };
    plan.table(
        "manifest_event",
        &format!("process = \"{p}\"\nprovider = \"8c416c79-d49b-4f01-a467-e56d3aa8234c\"\nid = 455\ncount = {count}\nkeyword = \"0x10000000000\"\nfields = [{{ type = \"{pointer}\", value = {{ counter = [0x50000, 4] }} }}, {{ type = \"u32\", value = 5 }}, {{ type = \"u32\", value = 1 }}, {{ type = \"u32\", value = {p} }}]", p = actor.pid),
    );
    Planted::by(Target::process(&actor)).needs(count, Limit::Fixed(300.0)).costs("outstanding", count)
}

fn pool(plan: &mut Plan, multiple: f64) -> Planted {
    let driver = plan.driver();
    let tag = plan.word().get(..4).unwrap_or("Leak").to_owned();
    let count = (multiple * 256.0).clamp(120.0, 3000.0).round();
    let size = (multiple * MIB / count / 16.0).round() * 16.0;
    plan.table(
        "pool",
        &format!("process = \"System\"\ntag = \"{tag}\"\npaged = false\ncount = {count}\nsize = {size}\nstack = \"nt!PspSystemThreadStartup;{driver}!Worker;nt!ExAllocatePoolWithTag\""),
    );
    Planted::by(Target::thing(&driver))
        .needs(count * size, Limit::Fixed(MIB))
        .costs("outstanding_bytes", count * size)
}

/// Little memory is left; who has committed most is named.
fn low(plan: &mut Plan, multiple: f64) -> Planted {
    let memory = 16.0 * 1024.0 * MIB;
    let left = memory * 0.05 / multiple;
    let pages = (left / 4096.0).round();
    plan.table(
        "event",
        &format!("type = \"PageFault/MemInfo\"\nevery = \"250ms\"\nfields = {{ ZeroPageCount = 0, FreePageCount = {pages}, ModifiedPageCount = 4000, CommitPageCount = 2090000 }}"),
    );
    Planted::by(Target::unknown()).needs(multiple, Limit::Fixed(1.0)).costs("available_bytes", pages * 4096.0)
}

/// Each call takes longer for each one before it.
fn top_down(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let calls = 3000.0;
    // Reported from 0.05 s on, but a law takes 0.09 s of samples: between the two either answer is right, and nothing is planted.
    let limit = if multiple < SILENT { 0.05 } else { 0.09 };
    let cost = (plan.most(multiple, limit) * limit).min(plan.duration * 0.7);
    // n calls of c·k each are c·n²/2.
    let window = cost * 1.06;
    let each = cost * 2.0 / (calls * calls) * 1e9;
    let from = plan.random.between(0.0, plan.duration * 0.95 - window);
    let span = format!("from = \"{from:.4}s\"\nto = \"{:.4}s\"", from + window);
    let n = &actor.name;
    plan.table(
        "virtual_alloc",
        &format!("process = \"{}\"\nthread = \"main\"\ncount = {calls}\nevery = {{ poly = [0, \"{each:.3}ns\"] }}\n{span}\nsize = \"64KB\"\nflags = [\"reserve\", \"commit\", \"top_down\"]\nstack_style = \"keys\"\nstack = \"ntdll!RtlUserThreadStart;{n}!main;KernelBase.dll!VirtualAlloc;ntdll!NtAllocateVirtualMemory;nt!NtAllocateVirtualMemory\"", actor.pid),
    );
    let milliseconds = (cost * 1000.0).round();
    plan.busy += cost;
    plan.table(
        "samples",
        &format!("process = \"{}\"\nthread = \"main\"\ncpu_time = \"{milliseconds}ms\"\narrival = \"exact\"\n{span}\nstack = \"ntdll!RtlUserThreadStart;{n}!main;KernelBase.dll!VirtualAlloc;ntdll!NtAllocateVirtualMemory;nt!NtAllocateVirtualMemory;nt!MiReserveUserMemory;nt!MiFindEmptyAddressRangeDownTree\"", actor.pid),
    );
    // Excess over a first call that costs next to nothing.
    Planted::by(Target::process(&actor)).needs(cost, Limit::Fixed(limit)).also(&[
        "growth.super-linear",
        "growth.over-time",
        "memory.commit-leak",
    ])
}

/// A program takes and gives back the same memory all the time.
fn demand_zero(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let count = (multiple * (20_000.0 * plan.duration).max(50_000.0)).round();
    let n = &actor.name;
    plan.table(
        "page_fault",
        &format!("process = \"{}\"\nthread = \"main\"\nop = \"demand_zero\"\ncount = {count}\nstack_style = \"keys\"\nstack = \"ntdll!RtlUserThreadStart;{n}!main;ntdll!RtlAllocateHeap;nt!KiPageFault;nt!MmAccessFault;nt!MiResolveDemandZeroFault\"", actor.pid),
    );
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(50_000.0))
        .needs(count, Limit::OfTrace(20_000.0))
        .costs("faults", count)
        // The writer lets the thread run for each fault.
        .also(&["cpu.context-switch-storm"])
}

/// A program starts a thread for each request, and none ever returns.
fn threads(plan: &mut Plan, multiple: f64) -> Planted {
    let name = format!("{}.exe", plan.word());
    let count = (multiple * 100.0).round();
    let every = plan.duration * 0.97 / count * 1e6;
    let list: Vec<String> = (0..count as u32)
        .map(|n| {
            let start = (10_000.0 + every * f64::from(n)).round();
            format!("{{ name = \"t{n}\", start = \"{start}us\", start_address = \"{name}!Wait\" }}")
        })
        .collect();
    let actor = plan.process(&name, &format!("[\"main\", {}]", list.join(", ")), "");
    plan.cpu(&actor, "main", 0.05, &format!("ntdll!RtlUserThreadStart;{name}!main;{name}!Accept;KernelBase.dll!CreateThread;ntdll!NtCreateThreadEx;nt!NtCreateThreadEx"));
    Planted::by(Target::process(&actor)).needs(count, Limit::Fixed(100.0))
}
