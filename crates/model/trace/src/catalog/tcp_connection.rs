//! TCP connections, and who talks with whom how much.
//!
//! # How it is computed
//! `TcpIp` events of the kernel (`Microsoft-Windows-Kernel-Network` where the trace has no kernel events: the same
//! events under other names, never both together) are put together by their two endpoints. `Connect` or `Accept`
//! begins a new connection of the same endpoints, and so does an event of another process when the one before has
//! ended; without any of these, the connection was there before the trace. The `connid` of the events is zero in real traces of Windows 7 and 8 and is not used.
//!
//! `startime` and `endtime` of a send are undocumented. In two real traces they are units of 100 ms since boot, from the
//! send to its end; `slowest_send_ns` is the largest difference, and therefore no finer than 100 ms.
//!
//! # What fools it
//! `Disconnect` is logged when this side disconnects; data may come in afterwards and still counts. `receive` counts
//! what TCP delivers; `TCPCopy` tells of the same bytes again when they are copied, and is only counted. A connect that
//! fails (`Fail`) names no endpoints: see table `network`, `op=fail`. There is no event when a connect begins, so how
//! long it took is not known; `first_response_ns` is from the first send to the first data after it.

use super::network::ends;
use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{PAYLOAD_TOO_SHORT, TCP_CONNECTIONS_CUT};
use crate::event::{Context, Event, Fields, Select, What};
use etwhy_base::Guid;
use etwhy_decode::Value;
use etwhy_decode::kernel::events::{TcpIp, UdpIp};
use etwhy_table::{Memory, Strings, Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

define_table! {
    /// TCP connections that had any event.
    pub table TCP_CONNECTION: TcpConnectionRow = "tcp_connection" {
        version: 1, evidence: Verified("sends, receives and accepts of net.4.5.2.x64 and net.4.5.x86, counted by dissect.etl; connects and retransmissions rest on documentation"),
        /// First event.
        start_ns: i64 [Ns, Time],
        /// Last event.
        ts_ns: i64 [Ns, Time],
        /// From connect or accept to disconnect, if both lie in the trace.
        dur_ns: Option<i64> [Ns, Duration],
        /// client (connect), server (accept), or none when it began before the trace.
        role: Option<Sym> [None, Kind],
        /// Connect or accept.
        open_ns: Option<i64> [Ns, Time],
        /// First disconnect.
        disconnect_ns: Option<i64> [Ns, Time],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Local address and port.
        local: Sym [None, Name],
        /// Remote address and port.
        remote: Sym [None, Name],
        /// Local port.
        local_port: i32 [None, Other],
        /// Remote port.
        remote_port: i32 [None, Other],
        /// IP version, 4 or 6.
        ip: i32 [None, Kind],
        /// Bytes sent.
        sent_bytes: i64 [Bytes, Bytes],
        /// Bytes received.
        received_bytes: i64 [Bytes, Bytes],
        /// Sends.
        sends: i64 [Count, Count],
        /// Receives.
        receives: i64 [Count, Count],
        /// Copies of data that had been received before anybody asked for it (`TCPCopy`).
        copies: i64 [Count, Count],
        /// Retransmissions.
        retransmits: i64 [Count, Count],
        /// Attempts to connect again (`Reconnect`).
        reconnects: i64 [Count, Count],
        /// From the first send to the first data that came in after it.
        first_response_ns: Option<i64> [Ns, Duration],
        /// Longest time of one send, in steps of 100 ms.
        slowest_send_ns: Option<i64> [Ns, Duration],
        /// Maximum segment size, as agreed at the start.
        mss: Option<i32> [Bytes, Other],
    }
}

define_table! {
    /// Network use by process and remote address, TCP and UDP.
    pub table NETWORK_USAGE: NetworkUsageRow = "network_usage" {
        version: 1, evidence: Documented,
        /// Process.
        upid: Option<i32> [None, Process],
        /// tcp or udp.
        protocol: Sym [None, Kind],
        /// Remote address without port.
        remote: Sym [None, Name],
        /// Bytes sent.
        sent_bytes: i64 [Bytes, Bytes],
        /// Bytes received.
        received_bytes: i64 [Bytes, Bytes],
        /// Sends.
        sends: i64 [Count, Count],
        /// Receives.
        receives: i64 [Count, Count],
        /// Connections opened, by connect or accept.
        connections: i64 [Count, Count],
        /// Retransmissions.
        retransmits: i64 [Count, Count],
        /// First event.
        first_ns: i64 [Ns, Time],
        /// Last event.
        last_ns: i64 [Ns, Time],
    }
}

/// `Microsoft-Windows-Kernel-Network`.
const KERNEL_NETWORK: Guid = Guid::from_text("7dd42a49-5329-4832-8dfd-43d979153a88");
const SEND: u8 = TcpIp::SendIPV4.opcode;
const RECEIVE: u8 = TcpIp::RecvIPV4.opcode;
const CONNECT: u8 = TcpIp::ConnectIPV4.opcode;
const DISCONNECT: u8 = TcpIp::DisconnectIPV4.opcode;
const RETRANSMIT: u8 = TcpIp::RetransmitIPV4.opcode;
const ACCEPT: u8 = TcpIp::AcceptIPV4.opcode;
const RECONNECT: u8 = TcpIp::ReconnectIPV4.opcode;
const COPY: u8 = TcpIp::TCPCopyIPV4.opcode;
const UDP: u8 = 0x40;
const MANIFEST: u8 = 0x80;

macro_rules! selects {
    ($($op:ident $v4:ident $v6:ident)*) => {
        &[
            // Events of the provider have the types of the kernel's as their ids, datagrams 32 more.
            $(
                Select::new(What::Kernel(TcpIp::$v4), $op),
                Select::new(What::Kernel(TcpIp::$v6), $op),
                Select::new(What::Manifest(KERNEL_NETWORK, TcpIp::$v4.opcode as u16), MANIFEST | $op),
                Select::new(What::Manifest(KERNEL_NETWORK, TcpIp::$v6.opcode as u16), MANIFEST | $op),
            )*
            Select::new(What::Kernel(UdpIp::SendIPV4), UDP | SEND),
            Select::new(What::Kernel(UdpIp::RecvIPV4), UDP | RECEIVE),
            Select::new(What::Kernel(UdpIp::SendIPV6), UDP | SEND),
            Select::new(What::Kernel(UdpIp::RecvIPV6), UDP | RECEIVE),
            Select::new(What::Manifest(KERNEL_NETWORK, 42), MANIFEST | UDP | SEND),
            Select::new(What::Manifest(KERNEL_NETWORK, 43), MANIFEST | UDP | RECEIVE),
            Select::new(What::Manifest(KERNEL_NETWORK, 58), MANIFEST | UDP | SEND),
            Select::new(What::Manifest(KERNEL_NETWORK, 59), MANIFEST | UDP | RECEIVE),
        ]
    };
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&TCP_CONNECTION, &NETWORK_USAGE],
    selects: selects!(
        SEND SendIPV4 SendIPV6
        RECEIVE RecvIPV4 RecvIPV6
        CONNECT ConnectIPV4 ConnectIPV6
        DISCONNECT DisconnectIPV4 DisconnectIPV6
        RETRANSMIT RetransmitIPV4 RetransmitIPV6
        ACCEPT AcceptIPV4 AcceptIPV6
        RECONNECT ReconnectIPV4 ReconnectIPV6
        COPY TCPCopyIPV4 TCPCopyIPV6
    ),
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Connections { sources: [Source::new(memory), Source::new(memory)] }),
};

struct Connections {
    /// The kernel's events, and those of the provider.
    sources: [Source; 2],
}

struct Source {
    rows: TableBuilder<TcpConnectionRow>,
    usage_rows: TableBuilder<NetworkUsageRow>,
    open: HashMap<(SocketAddr, SocketAddr), Connection>,
    usage: BTreeMap<(Option<u32>, bool, IpAddr), Usage>,
    used: bool,
}

#[derive(Clone, Copy, Default)]
struct Connection {
    upid: Option<u32>,
    first: i64,
    last: i64,
    role: Option<&'static str>,
    open: Option<i64>,
    disconnect: Option<i64>,
    sent: i64,
    received: i64,
    sends: i64,
    receives: i64,
    copies: i64,
    retransmits: i64,
    reconnects: i64,
    first_send: Option<i64>,
    response: Option<i64>,
    /// In steps of [`STEP_NS`].
    slowest: Option<u32>,
    mss: Option<i32>,
}

#[derive(Clone, Copy, Default)]
struct Usage {
    sent: i64,
    received: i64,
    sends: i64,
    receives: i64,
    connections: i64,
    retransmits: i64,
    first: i64,
    last: i64,
}

/// Unit of `startime` and `endtime`: two traces whose boot time is known show it, see above.
const STEP_NS: i64 = 100_000_000;

/// Connections that are kept open. A busy server has some ten thousand; beyond this those that have disconnected are
/// closed, and all if these are few.
const MAX_OPEN: usize = 262_144;
/// Pairs of process and address.
const MAX_USAGE: usize = 1_048_576;

/// An address and a port.
pub(crate) fn endpoint(fields: &Fields<'_>, address: &str, port: &str) -> Option<SocketAddr> {
    let address = match fields.get(address)? {
        Value::IPv4(bytes) => IpAddr::V4(Ipv4Addr::from(*bytes)),
        Value::IPv6(bytes) => IpAddr::V6(Ipv6Addr::from(*bytes)),
        _ => return None,
    };
    let port = u16::try_from(fields.get(port)?.as_u64()?).ok()?;
    Some(SocketAddr::new(address, port))
}

impl Analysis for Connections {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let op = event.tag & !(UDP | MANIFEST);
        let udp = event.tag & UDP != 0;
        let [local, local_port, remote, remote_port] = ends(udp && op == RECEIVE);
        let (Some(local), Some(remote)) =
            (endpoint(&fields, local, local_port), endpoint(&fields, remote, remote_port))
        else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let pid = fields.u32("PID").or(event.pid()).filter(|&p| p != u32::MAX);
        let upid = pid.map(|pid| cx.model.processes.at(pid, event.ns));
        let size = i64::from(fields.u32("size").unwrap_or(0));
        let [kernel, manifest] = &mut self.sources;
        let source = if event.tag & MANIFEST == 0 { kernel } else { manifest };
        source.used = true;
        source.count(upid, udp, remote.ip(), op, size, event.ns);
        if udp {
            return;
        }
        let ends = (local, remote);
        if source.open.len() >= MAX_OPEN && !source.open.contains_key(&ends) {
            source.make_room(cx);
        }
        // A connection ends with its process, whether or not its end was logged.
        let outlived = |old: &Connection| match (old.upid, upid) {
            (Some(old), Some(new)) if old != new => {
                cx.model.processes.get(old).is_some_and(|p| p.end_ns.is_some_and(|end| end <= event.ns))
            }
            _ => false,
        };
        if (matches!(op, CONNECT | ACCEPT) || source.open.get(&ends).is_some_and(outlived))
            && let Some(old) = source.open.remove(&ends)
        {
            source.push(&ends, &old, cx.strings);
        }
        let connection =
            source.open.entry(ends).or_insert(Connection { first: event.ns, ..Connection::default() });
        connection.add(op, size, event.ns, &fields);
        connection.upid = connection.upid.or(upid);
    }

    fn finish(self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let [kernel, manifest] = self.sources;
        let source = if kernel.used { kernel } else { manifest };
        source.finish(end.strings)
    }
}

impl Connection {
    fn add(&mut self, op: u8, size: i64, ns: i64, fields: &Fields<'_>) {
        self.last = ns;
        match op {
            SEND => {
                self.sends += 1;
                self.sent = self.sent.saturating_add(size);
                self.first_send = self.first_send.or(Some(ns));
                if let (Some(start), Some(end)) = (fields.u32("startime"), fields.u32("endtime")) {
                    self.slowest = self.slowest.max(end.checked_sub(start));
                }
            }
            RECEIVE => {
                self.receives += 1;
                self.received = self.received.saturating_add(size);
                if self.response.is_none() {
                    self.response = self.first_send.map(|send| ns.saturating_sub(send));
                }
            }
            CONNECT | ACCEPT => {
                self.role = Some(if op == CONNECT { "client" } else { "server" });
                self.open = Some(ns);
                self.mss = fields.u32("mss").filter(|&m| m > 0).map(|m| m as i32);
            }
            DISCONNECT => self.disconnect = self.disconnect.or(Some(ns)),
            RETRANSMIT => self.retransmits += 1,
            RECONNECT => self.reconnects += 1,
            COPY => self.copies += 1,
            _ => {}
        }
    }
}

impl Source {
    fn new(memory: &Memory) -> Source {
        Source {
            rows: TableBuilder::new(memory),
            usage_rows: TableBuilder::new(memory),
            open: HashMap::default(),
            usage: BTreeMap::new(),
            used: false,
        }
    }

    fn count(&mut self, upid: Option<u32>, udp: bool, remote: IpAddr, op: u8, size: i64, ns: i64) {
        let key = (upid, udp, remote);
        if self.usage.len() >= MAX_USAGE && !self.usage.contains_key(&key) {
            return;
        }
        let usage = self.usage.entry(key).or_insert(Usage { first: ns, ..Usage::default() });
        usage.last = ns;
        match op {
            SEND => {
                usage.sends += 1;
                usage.sent = usage.sent.saturating_add(size);
            }
            RECEIVE => {
                usage.receives += 1;
                usage.received = usage.received.saturating_add(size);
            }
            CONNECT | ACCEPT => usage.connections += 1,
            RETRANSMIT => usage.retransmits += 1,
            _ => {}
        }
    }

    fn make_room(&mut self, cx: &mut Context<'_>) {
        let mut gone: Vec<_> = self.open.extract_if(|_, c| c.disconnect.is_some()).collect();
        // Room for one would have all of them looked at again for the next one.
        if gone.len() < MAX_OPEN / 8 {
            cx.ledger.count(&TCP_CONNECTIONS_CUT, self.open.len() as u64);
            gone.extend(self.open.drain());
        }
        self.push_all(gone, cx.strings);
    }

    fn push_all(&mut self, mut gone: Vec<((SocketAddr, SocketAddr), Connection)>, strings: &mut Strings) {
        gone.sort_unstable_by_key(|(ends, c)| (c.first, *ends));
        for (ends, connection) in gone {
            self.push(&ends, &connection, strings);
        }
    }

    fn push(&mut self, (local, remote): &(SocketAddr, SocketAddr), c: &Connection, strings: &mut Strings) {
        self.rows.push(TcpConnectionRow {
            start_ns: c.first,
            ts_ns: c.last,
            dur_ns: c.open.zip(c.disconnect).map(|(open, close)| close.saturating_sub(open).max(0)),
            role: c.role.map(|r| strings.intern(r)),
            open_ns: c.open,
            disconnect_ns: c.disconnect,
            upid: c.upid.map(|u| u as i32),
            local: strings.intern(&local.to_string()),
            remote: strings.intern(&remote.to_string()),
            local_port: i32::from(local.port()),
            remote_port: i32::from(remote.port()),
            ip: if local.is_ipv6() { 6 } else { 4 },
            sent_bytes: c.sent,
            received_bytes: c.received,
            sends: c.sends,
            receives: c.receives,
            copies: c.copies,
            retransmits: c.retransmits,
            reconnects: c.reconnects,
            first_response_ns: c.response,
            slowest_send_ns: c.slowest.map(|steps| i64::from(steps).saturating_mul(STEP_NS)),
            mss: c.mss,
        });
    }

    fn finish(mut self, strings: &mut Strings) -> etwhy_table::Result<Vec<Filled>> {
        let open: Vec<_> = self.open.drain().collect();
        self.push_all(open, strings);
        for ((upid, udp, remote), usage) in std::mem::take(&mut self.usage) {
            self.usage_rows.push(NetworkUsageRow {
                upid: upid.map(|u| u as i32),
                protocol: strings.intern(if udp { "udp" } else { "tcp" }),
                remote: strings.intern(&remote.to_string()),
                sent_bytes: usage.sent,
                received_bytes: usage.received,
                sends: usage.sends,
                receives: usage.receives,
                connections: usage.connections,
                retransmits: usage.retransmits,
                first_ns: usage.first,
                last_ns: usage.last,
            });
        }
        Ok(vec![self.rows.into(), self.usage_rows.into()])
    }
}
