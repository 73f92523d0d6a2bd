//! System calls, registry, network, marks.

use super::{Cx, Head, Kind, Site, events, name_of, one_of_names};
use crate::engine::{Engine, Pause, Source, Switch};
use crate::error::Result;
use crate::model::{Frames, Mark, Network, OneOrMany, Registry, Syscall};
use crate::value::Dist;
use crate::world::World;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events as kernel;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

struct Calls {
    /// Stacks whose only frame is the service's start.
    functions: Vec<(String, usize)>,
    status: Option<Dist>,
    wait: Option<Dist>,
    why: Switch,
    ready: Dist,
    by: Vec<usize>,
}

pub(crate) fn syscall(t: &Syscall, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let mut functions = Vec::new();
    let names =
        if t.function.0.is_empty() { vec!["NtDelayExecution".to_string()] } else { t.function.0.clone() };
    for name in names {
        let full = if name.contains('!') { name.clone() } else { format!("ntoskrnl.exe!{name}") };
        let frames = Frames(vec![full + "+0x0"]);
        let stack = w.stacks.intern(&frames, 1, &mut w.images, &mut w.processes);
        functions.push((name, stack.map_err(|e| site.fail(w, e))?));
    }
    let mut why = Switch::WAITING;
    if let Some(reason) = &t.wait_reason {
        why.reason = Switch::reason(reason).map_err(|e| site.fail(w, e))?;
    }
    let place = w.place.clone();
    let by = match &t.readied_by {
        Some(name) if name.contains('/') => {
            w.processes.select(None, Some(&OneOrMany(vec![name.clone()])), &place, &site.span)?
        }
        Some(name) => w.processes.select(Some(&OneOrMany(vec![name.clone()])), None, &place, &site.span)?,
        None => Vec::new(),
    };
    let duration = t.duration.clone().or_else(|| Some(Dist::constant(2e-6)));
    let ready = t.ready.clone().unwrap_or(Dist::constant(5e-6));
    let kind = Calls { functions, status: t.status.clone(), wait: t.wait.clone(), why, ready, by };
    events(site, w, duration, Box::new(kind))
}

impl Kind for Calls {
    fn holds(&self) -> bool {
        true
    }

    /// SysCallEnter now, SysCallExit after the duration. With `wait` the thread leaves its processor in the
    /// middle of the call and exits wherever it goes on.
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let Some((name, stack)) = cx.turn(&self.functions).cloned() else { return Ok(()) };
        let stack = cx.engine.world.stacks.list.get(stack);
        let address = stack.and_then(|s| s.kernel.first()).copied().unwrap_or(0);
        cx.kernel(Head::Perf, kernel::PerfInfo::SysClEnter, 2, 0, |r| r.ptr(address))?;
        cx.stack(0)?;
        let status = cx.whole(&self.status, 0) as u32;
        let process = cx.process_name();
        let began = cx.now;
        let exit = Exit { name, process, began, status, thread: cx.thread };
        let wait = self.wait.as_ref().map(|w| w.ns(&mut cx.draw()));
        let (cpu, thread, duration) = (cx.cpu, cx.thread, cx.duration);
        let may_wait = cx.engine.switches && cx.engine.cpus.brief_until(cpu).is_some();
        match wait {
            Some(wait) if may_wait => {
                let rest = duration - duration / 2;
                let ready = self.ready.ns(&mut cx.draw());
                let (why, by, stack) = (self.why, cx.turn(&self.by).copied(), cx.table_stack());
                let pause = Pause { thread, cpu, from: began + duration / 2, wait, ready, why, by, stack };
                cx.engine.block(
                    pause,
                    Box::new(move |e, cpu| {
                        let end = e.now + rest;
                        e.keep_busy(thread, end + 2000);
                        e.cpus.set_brief(cpu, end + 2000);
                        e.end_run_at(end + 2000, cpu, thread);
                        e.at(end, Box::new(move |e| exit.happen(e, cpu)));
                        Ok(())
                    }),
                );
            }
            _ => cx.engine.at(began + duration + wait.unwrap_or(0), Box::new(move |e| exit.happen(e, cpu))),
        }
        Ok(())
    }
}

/// The return of a system call.
struct Exit {
    name: String,
    process: String,
    began: i64,
    status: u32,
    thread: usize,
}

impl Exit {
    fn happen(self, e: &mut Engine, cpu: u16) -> io::Result<()> {
        if let Some(until) = e.interrupted_until(cpu).filter(|_| e.switches) {
            // A thread does not return while a DPC or ISR has its processor.
            let after = until + 400;
            if e.cpus.brief_until(cpu).is_some() {
                e.hold_run(cpu);
                e.cpus.set_brief(cpu, after + 2000);
                e.end_run_at(after + 2000, cpu, self.thread);
            }
            e.keep_busy(self.thread, after + 2000);
            e.at(after, Box::new(move |e| self.happen(e, cpu)));
            return Ok(());
        }
        let (pointer, wall, status) = (e.pointer(), e.now - self.began, self.status);
        for (table, name) in [("syscall", &self.name), ("syscall_process", &self.process)] {
            e.tally(table, name, &[("count", 1), ("total_ns", wall)]);
        }
        e.add(cpu, e.now, |r, t| r.perfinfo(pointer, kernel::PerfInfo::SysClExit.hook, 2, t).u32(status))
    }
}

struct Reg {
    ops: Vec<KernelEvent>,
    keys: Vec<usize>,
    values: Vec<String>,
    /// Opens name the key relative to this one.
    base: Option<usize>,
    status: Option<Dist>,
}

const REGISTRY_OPS: [(&str, KernelEvent); 16] = [
    ("create", kernel::Registry::Create),
    ("open", kernel::Registry::Open),
    ("delete", kernel::Registry::Delete),
    ("query", kernel::Registry::Query),
    ("set_value", kernel::Registry::SetValue),
    ("delete_value", kernel::Registry::DeleteValue),
    ("query_value", kernel::Registry::QueryValue),
    ("enum_key", kernel::Registry::EnumerateKey),
    ("enum_value", kernel::Registry::EnumerateValueKey),
    ("query_multiple_value", kernel::Registry::QueryMultipleValue),
    ("set_information", kernel::Registry::SetInformation),
    ("flush", kernel::Registry::Flush),
    ("close", kernel::Registry::Close),
    ("set_security", kernel::Registry::SetSecurity),
    ("query_security", kernel::Registry::QuerySecurity),
    ("virtualize", kernel::Registry::Virtualize),
];

/// `HKLM\...` and its relatives as the kernel names them.
fn kernel_key(name: &str) -> String {
    const ROOTS: [(&str, &str); 6] = [
        ("HKLM\\", "\\REGISTRY\\MACHINE\\"),
        ("HKEY_LOCAL_MACHINE\\", "\\REGISTRY\\MACHINE\\"),
        ("HKU\\", "\\REGISTRY\\USER\\"),
        ("HKEY_USERS\\", "\\REGISTRY\\USER\\"),
        ("HKCU\\", "\\REGISTRY\\USER\\S-1-5-21-1004336348-1177238915-682003330-1001\\"),
        ("HKEY_CURRENT_USER\\", "\\REGISTRY\\USER\\S-1-5-21-1004336348-1177238915-682003330-1001\\"),
    ];
    let root = ROOTS.iter().find_map(|(short, long)| Some(format!("{long}{}", name.strip_prefix(short)?)));
    root.unwrap_or_else(|| name.to_string())
}

pub(crate) fn registry(t: &Registry, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let names = t.op.clone().map_or_else(|| vec!["query_value".to_string()], |l| l.0);
    let ops = names.iter().map(|n| one_of_names("op", n, &REGISTRY_OPS)).collect::<Result<Vec<_>, _>>();
    let keys = t.key.clone().map_or_else(|| vec!["HKLM\\SOFTWARE\\Synthetic".to_string()], |l| l.0);
    let kind = Reg {
        ops: ops.map_err(|e| site.fail(w, e))?,
        keys: keys.iter().map(|k| w.keys.intern(&kernel_key(k))).collect(),
        base: t.base.as_ref().map(|k| w.keys.intern(&kernel_key(k))),
        values: t.value.clone().map_or_else(|| vec!["Value".to_string()], |l| l.0),
        status: t.status.clone(),
    };
    let duration = t.duration.clone().or_else(|| Some(Dist::constant(10e-6)));
    events(site, w, duration, Box::new(kind))
}

impl Kind for Reg {
    fn holds(&self) -> bool {
        true
    }

    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let op = cx.turn(&self.ops).copied().unwrap_or(kernel::Registry::QueryValue);
        let key = cx.turn(&self.keys).copied().unwrap_or(0);
        let full = cx.engine.world.keys.name(key).to_string();
        // Opens name the key relative to an open one (0: the full path); others name the value.
        let (kcb, name) = match op {
            kernel::Registry::Create | kernel::Registry::Open => {
                match self.base.map(|b| (b, cx.engine.world.keys.name(b))) {
                    Some((base, start)) if full.starts_with(&format!("{start}\\")) => (
                        cx.engine.world.keys.address(base),
                        full.get(start.len() + 1..).unwrap_or_default().to_string(),
                    ),
                    _ => (0, full),
                }
            }
            kernel::Registry::SetValue | kernel::Registry::DeleteValue | kernel::Registry::QueryValue => {
                (cx.engine.world.keys.address(key), cx.turn(&self.values).cloned().unwrap_or_default())
            }
            _ => (cx.engine.world.keys.address(key), String::new()),
        };
        let status = cx.whole(&self.status, 0) as u32;
        let (initial, index) = (cx.ticks(0), (cx.n % 16) as u32);
        let after = cx.duration;
        cx.kernel(Head::System, op, 2, after, |r| {
            r.i64(initial).u32(status).u32(index).ptr(kcb).utf16z(&name)
        })?;
        let figures = [("count", 1), ("total_ns", cx.duration)];
        cx.count("registry", name_of(&REGISTRY_OPS, op), &figures);
        cx.count("registry", "", &figures);
        cx.stack(after)
    }
}

struct Net {
    udp: bool,
    ops: Vec<[KernelEvent; 2]>,
    size: Dist,
    local: SocketAddr,
    remotes: Vec<SocketAddr>,
}

/// Operations over IPv4 and IPv6.
const TCP_OPS: [(&str, [KernelEvent; 2]); 8] = [
    ("send", [kernel::TcpIp::SendIPV4, kernel::TcpIp::SendIPV6]),
    ("receive", [kernel::TcpIp::RecvIPV4, kernel::TcpIp::RecvIPV6]),
    ("connect", [kernel::TcpIp::ConnectIPV4, kernel::TcpIp::ConnectIPV6]),
    ("disconnect", [kernel::TcpIp::DisconnectIPV4, kernel::TcpIp::DisconnectIPV6]),
    ("retransmit", [kernel::TcpIp::RetransmitIPV4, kernel::TcpIp::RetransmitIPV6]),
    ("accept", [kernel::TcpIp::AcceptIPV4, kernel::TcpIp::AcceptIPV6]),
    ("reconnect", [kernel::TcpIp::ReconnectIPV4, kernel::TcpIp::ReconnectIPV6]),
    ("copy", [kernel::TcpIp::TCPCopyIPV4, kernel::TcpIp::TCPCopyIPV6]),
];

const UDP_OPS: [(&str, [KernelEvent; 2]); 2] = [
    ("send", [kernel::UdpIp::SendIPV4, kernel::UdpIp::SendIPV6]),
    ("receive", [kernel::UdpIp::RecvIPV4, kernel::UdpIp::RecvIPV6]),
];

pub(crate) fn network(t: &Network, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    let fail = |e: String| site.fail(w, e);
    let protocols = [("tcp", false), ("udp", true)];
    let udp = one_of_names("protocol", t.protocol.as_deref().unwrap_or("tcp"), &protocols).map_err(fail)?;
    let names = t.op.clone().map_or_else(|| vec!["send".to_string()], |l| l.0);
    let allowed = if udp { &UDP_OPS[..] } else { &TCP_OPS };
    let ops = names.iter().map(|n| one_of_names("op", n, allowed)).collect::<Result<Vec<_>, _>>();
    let address = |text: &str| {
        let parsed = text.parse::<SocketAddr>();
        parsed.map_err(|_| fail(format!("{text:?} is no address; write 10.0.0.1:443 or [::1]:443")))
    };
    let remotes = t.remote.clone().map_or_else(|| vec!["93.184.216.34:443".to_string()], |l| l.0);
    let remotes = remotes.iter().map(|r| address(r)).collect::<Result<Vec<_>>>()?;
    let wide = remotes.iter().any(SocketAddr::is_ipv6);
    let local =
        t.local.clone().unwrap_or_else(|| if wide { "[fe80::1]:50000" } else { "10.0.0.2:50000" }.into());
    let local = address(&local)?;
    if remotes.iter().any(|r| r.is_ipv6() != local.is_ipv6()) {
        return Err(fail("local and remote must both be IPv4 or both IPv6".into()));
    }
    let kind = Net {
        udp,
        ops: ops.map_err(fail)?,
        size: t.size.clone().unwrap_or(Dist::constant(1460.0)),
        local,
        remotes,
    };
    events(site, w, None, Box::new(kind))
}

impl Kind for Net {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let Some(&op) = cx.turn(&self.ops) else { return Ok(()) };
        let remote = cx.turn(&self.remotes).copied().unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
        let size = self.size.whole(&mut cx.draw()) as u32;
        let (pid, local, n, udp) = (cx.pid, self.local, cx.n as u32, self.udp);
        let millis = (cx.now / 1_000_000) as u32;
        let event = op[usize::from(local.is_ipv6())];
        // A received datagram names its sender as the source; everything of TCP names this machine.
        let (destination, source) = if op == UDP_OPS[1].1 { (local, remote) } else { (remote, local) };
        cx.kernel(Head::Perf, event, 2, 0, |r| {
            r.u32(pid).u32(size);
            for address in [destination.ip(), source.ip()] {
                match address {
                    IpAddr::V4(ip) => r.bytes(&ip.octets()),
                    IpAddr::V6(ip) => r.bytes(&ip.octets()),
                };
            }
            // Ports are in network order.
            r.bytes(&destination.port().to_be_bytes()).bytes(&source.port().to_be_bytes());
            match op[0] {
                kernel::TcpIp::SendIPV4 => r.u32(millis).u32(millis).u32(n),
                kernel::TcpIp::ConnectIPV4 | kernel::TcpIp::AcceptIPV4 => {
                    r.u16(1460).u16(1).u16(0).u16(1).u32(65535).u16(8).u16(8).u32(n)
                }
                _ => r.u32(n),
            };
            r.ptr(u64::from(remote.port()))
        })?;
        cx.count(
            "network",
            name_of(if udp { &UDP_OPS[..] } else { &TCP_OPS }, op),
            &[("count", 1), ("bytes", size.into())],
        );
        cx.stack(0)
    }
}

struct Marks(Vec<String>);

pub(crate) fn mark(t: &Mark, site: &Site, w: &mut World) -> Result<Box<dyn Source>> {
    if t.text.0.is_empty() {
        return Err(site.fail(w, "a mark needs text = \"...\""));
    }
    events(site, w, None, Box::new(Marks(t.text.0.clone())))
}

impl Kind for Marks {
    fn emit(&mut self, cx: &mut Cx) -> io::Result<()> {
        let text = cx.turn(&self.0).cloned().unwrap_or_default();
        cx.kernel(Head::Perf, kernel::PerfInfo::Mark, 0, 0, |r| r.text_z(&text))?;
        cx.engine.tally("mark", &text, &[("count", 1)]);
        Ok(())
    }
}
