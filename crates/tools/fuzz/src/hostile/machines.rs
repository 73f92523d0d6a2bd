//! Traces for the machines that put events together: begins that never end, ends that never began, ids that are
//! all different or all alike, intervals that ask for every one before them to be looked at.

use super::Bomb;
use super::traces::{PROVIDER, START, Writer, event_info, finish, user_event, writer};
use crate::mutate::put;
use etwhy_base::Guid;
use etwhy_etl::abi::guids::EVENT_METADATA;
use etwhy_etl::write::{ClassicHead, EventHead, RecordBuf};
use std::io::Result;

/// All of them.
pub static MACHINES: &[Bomb] = &[
    Bomb::new("opens", "files, handles, keys, pool and heap blocks that are never closed", opens),
    Bomb::new("ends", "closes, frees, exits and ends of what never began", ends),
    Bomb::new("enters", "system calls that never return, of few threads and of ever new ones", enters),
    Bomb::new("holes", "every second page committed, then all of them over and over", holes),
    Bomb::new("decommits", "every second page of one large commit given back", decommits),
    Bomb::new("interrupts", "ISRs inside of ISRs, and DPCs from before time and from the future", interrupts),
    Bomb::new("switches", "context switches to ever new threads", switches),
    Bomb::new(
        "wakes",
        "threads that wake each other in a circle, and windows that wait for all of it",
        wakes,
    ),
    Bomb::new(
        "stuck-path",
        "a thread that leaves a processor twice, and a path that begins there",
        stuck_path,
    ),
    Bomb::new("processors", "65,536 processors with switches, over the longest of times", processors),
    Bomb::new(
        "topology",
        "records of nodes, groups and numbers of processors with the largest counts",
        topology,
    ),
    Bomb::new("alpc", "messages that all have one id, and waits for them", alpc),
    Bomb::new("intervals", "starts and stops with one activity, and with none", intervals),
    Bomb::new("wide-fields", "starts and stops whose small payloads make long texts", wide_fields),
    Bomb::new(
        "long-keys",
        "one key with a long name, from which thousands of short ones are opened",
        long_keys,
    ),
    Bomb::new("dns", "queries of one name that all wait, then end from the first on", dns),
    Bomb::new("dns-servers", "queries that were sent to servers with long names", dns_servers),
    Bomb::new(
        "connections",
        "more TCP connections than can be, of which one at a time is closed",
        connections,
    ),
    Bomb::new("owners", "handles, memory and blocks of ever new processes", owners),
    Bomb::new("long-delays", "windows that say that they did not look for weeks", long_delays),
    Bomb::new("argument-list", "one system call with all the events of a trace inside", argument_list),
];

/// Records with times of their own.
struct Out {
    writer: Writer,
    record: RecordBuf,
    ticks: i64,
}

impl Out {
    fn new() -> Result<Out> {
        Ok(Out { writer: writer(64 * 1024)?, record: RecordBuf::new(), ticks: START })
    }

    /// A record with thread and process.
    fn of(&mut self, hook: u16, version: u8, pid: u32, tid: u32) -> &mut RecordBuf {
        self.ticks += 1;
        self.record.compact(8, hook, version, self.ticks, pid, tid)
    }

    /// A record without.
    fn bare(&mut self, hook: u16, version: u8) -> &mut RecordBuf {
        self.ticks += 1;
        self.record.perfinfo(8, hook, version, self.ticks)
    }

    fn event(&mut self, head: &EventHead) -> &mut RecordBuf {
        self.ticks += 1;
        self.record.event(8, self.ticks, head)
    }

    fn put(&mut self, cpu: u16) -> Result<()> {
        self.writer.write(cpu, &mut self.record)
    }

    fn finish(self) -> Result<Vec<u8>> {
        finish(self.writer)
    }

    /// `CSwitch` version 2: to, from, why and in which state the old thread is.
    fn switch(&mut self, cpu: u16, new: u32, old: u32, reason: u8, state: u8) -> Result<()> {
        let record = self.bare(0x0524, 2).u32(new).u32(old);
        record.u8(8).u8(8).u8(0).u8(0).u8(reason).u8(1).u8(state).u8(0).u32(0).u32(0);
        self.put(cpu)
    }

    fn ready(&mut self, cpu: u16, tid: u32) -> Result<()> {
        self.bare(0x0532, 2).u32(tid).zeros(4);
        self.put(cpu)
    }

    /// Interrupts: when they began.
    fn interrupt(&mut self, cpu: u16, hook: u16, initial: i64) -> Result<()> {
        self.bare(hook, 2).i64(initial).u64(0xFFFF_F800_0000_1000).u8(1).u16(3).u8(0);
        self.put(cpu)
    }

    fn virtual_call(&mut self, hook: u16, base: u64, size: u64, flags: u32) -> Result<()> {
        self.of(hook, 2, 100, 8).u64(base).u64(size).u32(100).u32(flags);
        self.put(0)
    }
}

const WAITING: u8 = 5;
const READY: u8 = 1;

fn opens() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    for i in 0..60_000u64 {
        let at = 0xFFFF_8000_0000_0000 + i * 0x100;
        out.of(0x0440, 3, 100, 8).u64(at).u64(at).u32(8).u32(0).u32(0).u32(0).utf16z("\\x");
        out.put(0)?;
        out.of(0x0460, 3, 100, 8).u64(1).u64(at).u64(0).u64(at + 1).u64(at).u32(0);
        out.put(0)?;
        out.of(0x0443, 3, 100, 8).u64(0).u64(at + 2).u64(at).u64(at).u32(8).u32(1).u32(0);
        out.put(0)?;
        out.of(0x1120, 2, 100, 8).u64(at).u32(i as u32 * 4).u16(i as u16).utf16z("");
        out.put(0)?;
        out.of(0x0916, 2, 100, 8).i64(0).u32(0).u32(0).u64(at).utf16z("\\k");
        out.put(0)?;
        out.bare(0x0E20, 2).u32(1).u32(i as u32).u64(16).u64(at);
        out.put(0)?;
        out.of(0x1021, 2, 100, 8).u64(1).u64(16).u64(at).u32(2);
        out.put(0)?;
        out.of(0x010C, 2, 100, 8).u64(at);
        out.put(0)?;
    }
    out.finish()
}

fn ends() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    for i in 0..60_000u64 {
        let at = 0xFFFF_8000_0000_0000 + i * 0x100;
        out.of(0x044C, 3, 100, 8).u64(at).u64(0).u32(0);
        out.put(0)?;
        out.of(0x0463, 3, 100, 8).i64(i64::MIN).u64(1).u64(at).u64(0).u64(at + 1).u64(at).u32(0);
        out.put(0)?;
        out.of(0x0442, 3, 100, 8).u64(at).u64(at).u64(at).u32(8);
        out.put(0)?;
        out.of(0x1121, 2, 100, 8).u64(at).u32(i as u32 * 4).u16(i as u16).utf16z("");
        out.put(0)?;
        out.of(0x0917, 2, 100, 8).i64(0).u32(0).u32(0).u64(at).utf16z("\\k");
        out.put(0)?;
        out.bare(0x0E22, 2).u32(1).u32(i as u32).u64(u64::MAX).u64(at);
        out.put(0)?;
        out.of(0x1024, 2, 100, 8).u64(1).u64(at).u32(2);
        out.put(0)?;
        out.bare(0x0F34, 2).u32(0xC000_0005);
        out.put(0)?;
        out.virtual_call(0x0263, at, 0, 0x8000)?;
    }
    out.finish()
}

fn enters() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    out.switch(0, 8, 0, 0, WAITING)?;
    for i in 0..100_000u64 {
        out.bare(0x0F33, 2).u64(0xFFFF_F800_0000_0000 + i % 5000 * 16);
        out.put(0)?;
        // Without a thread.
        out.bare(0x0F33, 2).u64(i);
        out.put(3)?;
        if i % 2 == 0 {
            out.switch(0, 4 * i as u32 + 4, 8, 6, WAITING)?;
        }
    }
    out.finish()
}

const REGION: u64 = 0x7000_0000_0000;
const COMMIT: u32 = 0x1000;
const RESERVE: u32 = 0x2000;
const DECOMMIT: u32 = 0x4000;

fn holes() -> Result<Vec<u8>> {
    const N: u64 = 40_000;
    let mut out = Out::new()?;
    out.virtual_call(0x0262, REGION, N * 0x2000, RESERVE)?;
    for i in 0..N {
        out.virtual_call(0x0262, REGION + i * 0x2000, 0x1000, COMMIT)?;
    }
    for _ in 0..N {
        out.virtual_call(0x0262, REGION, N * 0x2000, COMMIT)?;
    }
    for i in 0..N {
        // One page is given back and taken again with all others.
        out.virtual_call(0x0263, REGION + i * 0x1000, 0x1000, DECOMMIT)?;
        out.virtual_call(0x0262, REGION, N * 0x2000, COMMIT)?;
    }
    out.finish()
}

fn decommits() -> Result<Vec<u8>> {
    const N: u64 = 200_000;
    let mut out = Out::new()?;
    out.virtual_call(0x0262, 0, u64::MAX, COMMIT | RESERVE)?;
    for i in 0..N {
        out.virtual_call(0x0263, i * 0x2000, 0x1000, DECOMMIT)?;
    }
    for i in 0..N {
        out.virtual_call(0x0263, i * 0x2000 + 0x1000, 0, 0x8000)?;
    }
    out.finish()
}

fn interrupts() -> Result<Vec<u8>> {
    const N: i64 = 60_000;
    let mut out = Out::new()?;
    out.switch(0, 8, 0, 0, WAITING)?;
    out.switch(1, 12, 0, 0, WAITING)?;
    // A second passes, so that the trace has many slices.
    out.ticks += 3_000_000_000;
    let middle = out.ticks;
    for i in 0..N {
        // Each began before the one that ended before it.
        out.interrupt(0, 0x0F43, middle - i)?;
    }
    for i in 0..N {
        let initial = [i64::MIN, i64::MAX, 0, -1, out.ticks + 1, START][i as usize % 6];
        out.interrupt(1, 0x0F44, initial)?;
        out.interrupt(1, 0x0F32, START + i)?;
        out.interrupt(2, 0x0F42, START)?;
    }
    out.finish()
}

fn switches() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    for i in 0..150_000u32 {
        out.ready(1, 4 * i + 8)?;
        out.switch(0, 4 * i + 8, 4 * i + 4, 6, WAITING)?;
    }
    out.finish()
}

/// `MessageCheckDelay` of Win32k, with one field: the delay.
fn delay(out: &mut Out, tid: u32, ms: u32) -> Result<()> {
    let head = EventHead { provider: WIN32K, id: 38, tid, pid: 100, ..user_event(38, 0) };
    out.event(&head).u32(0).u32(ms).u32(0).u32(0);
    out.put(1)
}

const WIN32K: Guid = Guid::from_text("8c416c79-d49b-4f01-a467-e56d3aa8234c");

/// A description of an event: numbers of 32 bits (1), strings (0).
fn describe(out: &mut Out, provider: Guid, id: u16, fields: &[(&str, bool)]) -> Result<()> {
    let first = 112 + 24 * fields.len();
    let (mut texts, mut offsets) = (Vec::new(), Vec::new());
    for (name, _) in fields {
        offsets.push((first + texts.len()) as u64);
        texts.extend(name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    let properties: Vec<(u32, u16, u16, u16, u32)> =
        fields.iter().map(|(_, number)| (0, if *number { 8 } else { 1 }, 0, 1, 0)).collect();
    let mut info = event_info(id, &properties, &texts);
    info.splice(0..16, provider.0);
    for (i, offset) in offsets.into_iter().enumerate() {
        put(&mut info, 112 + 24 * i + 4, 4, offset);
    }
    out.ticks += 1;
    let head = ClassicHead { guid: EVENT_METADATA, opcode: 32, level: 0, version: 0, tid: 8, pid: 4 };
    out.record.full(8, out.ticks, &head).bytes(&info);
    out.put(0)
}

fn wakes() -> Result<Vec<u8>> {
    const THREADS: u32 = 300;
    let mut out = Out::new()?;
    describe(&mut out, WIN32K, 38, &[("Flags", true), ("DelayTimeMs", true), ("A", true), ("B", true)])?;
    for i in 0..60_000u32 {
        // Each thread wakes the one before it, all in one tick, and waits.
        let tid = |i: u32| 4 * (i % THREADS) + 8;
        out.ticks -= i64::from(i % 3 != 0) * 2;
        out.ready(0, tid(i + 1))?;
        out.switch(0, tid(i + 1), tid(i), 6, WAITING)?;
        if i % 4 == 0 {
            delay(&mut out, tid(i), 10)?;
        }
    }
    out.finish()
}

fn stuck_path() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    describe(&mut out, WIN32K, 38, &[("Flags", true), ("DelayTimeMs", true), ("A", true), ("B", true)])?;
    for i in 0..100u32 {
        let state = if i % 2 == 0 { READY } else { WAITING };
        out.switch(0, 8, 0, 0, WAITING)?;
        out.ticks += 100;
        out.switch(0, 0, 8, 0, WAITING)?;
        out.ticks += 100;
        // It leaves another processor, too, at which it never was.
        out.switch(1, 0, 8, 0, state)?;
        out.ticks -= 1;
        delay(&mut out, 8, 1)?;
        out.ready(1, 8)?;
        out.ticks += 100;
        out.switch(0, 8, 0, 0, WAITING)?;
        out.ticks += 100;
        out.switch(0, 0, 8, 0, WAITING)?;
    }
    out.finish()
}

fn processors() -> Result<Vec<u8>> {
    let mut out = Out { writer: writer(1024)?, record: RecordBuf::new(), ticks: START };
    for i in 0..30_000u32 {
        let cpu = (i * 7919) as u16;
        out.ticks = if i % 1000 == 999 { i64::MAX - 40_000 + i64::from(i) } else { START + i64::from(i) };
        out.switch(cpu, 4 * i + 4, 0, 0, WAITING)?;
        out.interrupt(cpu, 0x0F44, out.ticks - 1)?;
    }
    out.finish()
}

fn topology() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    for _ in 0..40 {
        for hook in [0x0B18u16, 0x0B1A, 0x0B1B] {
            out.of(hook, 2, 4, 8).u32(u32::MAX).bytes(&[0xFF; 60_000]);
            out.put(0)?;
            out.of(hook, 2, 4, 8).u32(u32::MAX).zeros(60_000);
            out.put(0)?;
        }
    }
    out.interrupt(60_000, 0x0F44, 0)?;
    out.finish()
}

fn alpc() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    for i in 0..60_000u32 {
        let tid = 4 * (i % 1000) + 8;
        out.of(0x1A21, 2, 100, tid).u32(7);
        out.put(0)?;
        out.of(0x1A23, 2, 100, tid).u32(7);
        out.put(0)?;
        if i % 3 == 0 {
            out.of(0x1A22, 2, 200, tid + 1).u32(7);
            out.put(0)?;
        }
        out.of(0x1A25, 2, 100, tid).u32(0);
        out.put(0)?;
        // And one that is always another.
        out.of(0x1A21, 2, 100, tid).u32(1000 + i);
        out.put(0)?;
    }
    out.finish()
}

fn intervals() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    for (activity, thread) in [(PROVIDER, 8u32), (Guid::ZERO, 8), (Guid::ZERO, 0)] {
        for opcode in [1u8, 2] {
            for i in 0..30_000u32 {
                let tid = if thread == 0 { 4 * i + 4 } else { thread };
                let head = EventHead { opcode, activity, tid, task: 3, ..user_event(1, 0) };
                out.event(&head).u32(i);
                out.put(0)?;
            }
        }
    }
    out.finish()
}

fn wide_fields() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    // An array of bytes, each of which is a set of 8 bits with long names.
    let name: Vec<u8> = "Map\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut info = event_info(7, &[(0x20, 4, 0, 250, 112 + 24)], &name);
    let head = ClassicHead { guid: EVENT_METADATA, opcode: 32, level: 0, version: 0, tid: 8, pid: 4 };
    for opcode in [1, 2] {
        put(&mut info, 32 + 5, 1, opcode);
        put(&mut info, 32 + 6, 2, 3);
        out.record.full(8, START, &head).bytes(&info);
        out.put(0)?;
    }
    let mut map = vec![0u8; 16 + 8 * 8];
    put(&mut map, 4, 4, 2);
    put(&mut map, 8, 4, 8);
    let at = map.len() as u64;
    put(&mut map, 0, 4, at);
    map.extend(&name);
    let at = map.len() as u64;
    map.extend([b'v', 0].repeat(511));
    map.extend([0, 0]);
    for bit in 0..8usize {
        put(&mut map, 16 + 8 * bit, 4, at);
        put(&mut map, 16 + 8 * bit + 4, 4, 1 << bit);
    }
    let mut data = PROVIDER.0.to_vec();
    data.extend(map);
    out.record.full(8, START + 1, &ClassicHead { opcode: 33, ..head }).bytes(&data);
    out.put(0)?;
    for i in 0..4000u32 {
        let head = EventHead { opcode: 1 + (i % 2) as u8, task: 3, ..user_event(7, 0) };
        out.event(&head).bytes(&[0xFF; 250]);
        out.put(0)?;
    }
    out.finish()
}

fn long_keys() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    let long = format!("\\REGISTRY\\MACHINE\\{}", "k".repeat(29_000));
    for kcb in 1..4u64 {
        out.of(0x0916, 2, 100, 8).i64(0).u32(0).u32(0).u64(kcb).utf16z(&format!("{long}{kcb}"));
        out.put(0)?;
    }
    for i in 0..30_000u64 {
        out.of(0x090B, 2, 100, 8).i64(START).u32(0).u32(0).u64(1 + i % 3).utf16z(&format!("{i}"));
        out.put(0)?;
    }
    out.finish()
}

const DNS: Guid = Guid::from_text("1c95126e-7eea-49a9-a3fe-a378b03ddb4d");

fn dns_head(id: u16, tid: u32) -> EventHead {
    EventHead { provider: DNS, tid, pid: 100, ..user_event(id, 0) }
}

fn describe_dns(out: &mut Out) -> Result<()> {
    let (name, ty) = (("QueryName", false), ("QueryType", true));
    describe(out, DNS, 3006, &[name, ty, ("QueryOptions", true)])?;
    describe(out, DNS, 3008, &[name, ty, ("QueryStatus", true), ("QueryResults", false)])?;
    describe(out, DNS, 3010, &[name, ty, ("DnsServerIpAddress", false)])
}

fn dns() -> Result<Vec<u8>> {
    const N: u32 = 60_000;
    let mut out = Out::new()?;
    describe_dns(&mut out)?;
    for i in 0..N {
        out.event(&dns_head(3006, 4 * i + 4)).utf16z("a.b").u32(1).u32(0);
        out.put(0)?;
    }
    for i in 0..N {
        out.event(&dns_head(3008, 4 * i + 4)).utf16z("a.b").u32(1).u32(0).utf16z("1.2.3.4");
        out.put(0)?;
    }
    out.finish()
}

fn dns_servers() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    describe_dns(&mut out)?;
    let long = "s".repeat(30_000);
    for i in 0..1000u32 {
        for thread in 0..60 {
            out.event(&dns_head(3006, 4 * thread + 4)).utf16z(&format!("{i}.b")).u32(1).u32(0);
            out.put(0)?;
            if i < 50 && thread % 4 == 0 {
                let server = format!("{}{thread}", long);
                out.event(&dns_head(3010, 4)).utf16z(&format!("{i}.b")).u32(1).utf16z(&server);
                out.put(0)?;
            }
        }
        for thread in 0..60 {
            let head = dns_head(3008, 4 * thread + 4);
            out.event(&head).utf16z(&format!("{i}.b")).u32(1).u32(0).utf16z("");
            out.put(0)?;
        }
    }
    out.finish()
}

fn tcp(out: &mut Out, op: u8, number: u32) -> Result<()> {
    let hook = 0x0600 | u16::from(op);
    out.of(hook, 2, 100, 8).u32(100).u32(1).u32(0x0100_007F).u32(number).u16(1).u16(2);
    if op == 12 {
        out.record.zeros(8 + 4 + 4);
    }
    out.record.u32(0).u64(0);
    out.put(0)
}

fn connections() -> Result<Vec<u8>> {
    const MOST: u32 = 262_144;
    let mut out = Out::new()?;
    for i in 0..MOST {
        tcp(&mut out, 12, i)?;
    }
    for i in 0..20_000 {
        tcp(&mut out, 13, MOST - 1 + i)?;
        tcp(&mut out, 12, MOST + i)?;
    }
    out.finish()
}

fn owners() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    for i in 0..30_000u32 {
        let pid = 4 * i + 4;
        out.of(0x1120, 2, pid, pid).u64(1).u32(4).u16(i as u16).utf16z("");
        out.put(0)?;
        out.of(0x0262, 2, pid, pid).u64(REGION).u64(0x1000).u32(pid).u32(COMMIT | RESERVE);
        out.put(0)?;
        out.of(0x1021, 2, pid, pid).u64(1).u64(16).u64(2).u32(2);
        out.put(0)?;
        out.of(0x020B, 2, pid, pid).u64(REGION).u64(REGION);
        out.put(0)?;
        out.of(0x090B, 2, pid, pid).i64(START).u32(0).u32(0).u64(0).utf16z("x");
        out.put(0)?;
    }
    out.finish()
}

fn long_delays() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    describe(&mut out, WIN32K, 38, &[("Flags", true), ("DelayTimeMs", true), ("A", true), ("B", true)])?;
    for i in 0..20_000u32 {
        out.switch(0, 8 * (1 + i % 2), 8 * (2 - i % 2), 6, WAITING)?;
    }
    for _ in 0..20_000 {
        delay(&mut out, 8, u32::MAX)?;
    }
    out.finish()
}

fn argument_list() -> Result<Vec<u8>> {
    let mut out = Out::new()?;
    out.switch(0, 8, 0, 0, WAITING)?;
    out.bare(0x0F33, 2).u64(0xFFFF_F800_0000_0000);
    out.put(0)?;
    for i in 0..60_000u64 {
        out.of(0x0440, 3, 100, 8).u64(i).u64(i).u32(8).u32(0).u32(0).u32(0).utf16z(&format!("\\{i}"));
        out.put(0)?;
    }
    out.bare(0x0F34, 2).u32(0);
    out.put(0)?;
    out.finish()
}
