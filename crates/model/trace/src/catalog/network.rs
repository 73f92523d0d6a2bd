//! Network: TCP and UDP sends, receives, connects, disconnects and retransmissions.
//!
//! # How it is computed
//! One row for each `TcpIp` and `UdpIp` event of the kernel, or, where the trace has none of these, for each event of
//! `Microsoft-Windows-Kernel-Network`, which tells the same. Table `tcp_connection` puts them together.
//!
//! The events name a source and a destination. With TCP the source is this machine, in receives too; a received UDP
//! datagram names its sender as the source. Real traces show both.
//!
//! # What fools it
//! A program that receives what it sent itself (loopback, its own broadcast) stands on both ends.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_decode::format::format_value;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events::{TcpIp, UdpIp};
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// TCP and UDP events, one row each.
    pub table NETWORK: NetworkRow = "network" {
        sorted_by: "ts_ns", version: 1, evidence: Verified("PerfView baselines; IPv4 TCP rests on documentation"),
        /// When.
        ts_ns: i64 [Ns, Time],
        /// tcp or udp.
        protocol: Sym [None, Kind],
        /// send, receive, connect, disconnect, retransmit, accept, reconnect, copy or fail.
        op: Sym [None, Kind],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Bytes.
        size_bytes: i64 [Bytes, Bytes],
        /// Local address and port; of a received datagram the address that it was sent to (which may be a broadcast).
        local: Option<Sym> [None, Name],
        /// Remote address and port.
        remote: Option<Sym> [None, Name],
        /// Remote port.
        remote_port: Option<i32> [None, Other],
        /// Why a connect failed (`op=fail`): the names of TcpIp_Fail's codes.
        failure: Option<Sym> [None, Message],
        /// IP version, 4 or 6.
        ip: i32 [None, Kind],
        /// Connection id.
        connection: i64 [Address, Address],
        /// Processor.
        cpu: i32 [None, Cpu],
    }
}

const OPS: [(KernelEvent, &str); 9] = [
    (TcpIp::SendIPV4, "send"),
    (TcpIp::RecvIPV4, "receive"),
    (TcpIp::ConnectIPV4, "connect"),
    (TcpIp::DisconnectIPV4, "disconnect"),
    (TcpIp::RetransmitIPV4, "retransmit"),
    (TcpIp::AcceptIPV4, "accept"),
    (TcpIp::ReconnectIPV4, "reconnect"),
    (TcpIp::Fail, "fail"),
    (TcpIp::TCPCopyIPV4, "copy"),
];
/// Types of IPv6 are those of IPv4 and 16.
const V6: u8 = TcpIp::SendIPV6.opcode - TcpIp::SendIPV4.opcode;
const UDP: u8 = 0x40;
const MANIFEST: u8 = 0x80;
/// `Proto` of failures over IPv6.
const AF_INET6: u32 = 23;

/// `Microsoft-Windows-Kernel-Network`.
const KERNEL_NETWORK: Guid = Guid::from_text("7dd42a49-5329-4832-8dfd-43d979153a88");

/// Failure codes, from 1 (Microsoft's documentation of `TcpIp_Fail` and `UdpIp_Fail`).
const FAILURES: [&str; 6] = [
    "ERROR_INSUFFICIENT_RESOURCES",
    "ERROR_TOO_MANY_ADDRESSES",
    "ERROR_ADDRESS_EXISTS",
    "ERROR_INVALID_ADDRESS",
    "ERROR_OTHER",
    "ERROR_TIMEWAIT_ADDRESS_EXIST",
];

macro_rules! selects {
    ($($v4:ident $v6:ident)*) => {
        &[
            $(
                Select::kernel(TcpIp::$v4, &[]),
                Select::kernel(TcpIp::$v6, &[]),
                tcp_by_manifest(TcpIp::$v4),
                tcp_by_manifest(TcpIp::$v6),
            )*
            Select::kernel(TcpIp::Fail, &[]),
            tcp_by_manifest(TcpIp::Fail),
            udp(UdpIp::SendIPV4),
            udp(UdpIp::RecvIPV4),
            udp(UdpIp::Fail),
            udp(UdpIp::SendIPV6),
            udp(UdpIp::RecvIPV6),
            udp_by_manifest(UdpIp::SendIPV4),
            udp_by_manifest(UdpIp::RecvIPV4),
            udp_by_manifest(UdpIp::Fail),
            udp_by_manifest(UdpIp::SendIPV6),
            udp_by_manifest(UdpIp::RecvIPV6),
        ]
    };
}

/// Events of the provider have the types of the kernel's as their ids.
const fn tcp_by_manifest(event: KernelEvent) -> Select {
    Select::new(What::Manifest(KERNEL_NETWORK, event.opcode as u16), MANIFEST | event.opcode)
}

const fn udp(event: KernelEvent) -> Select {
    Select::new(What::Kernel(event), UDP | event.opcode)
}

/// Ids of datagrams are 32 more than the kernel's types.
const fn udp_by_manifest(event: KernelEvent) -> Select {
    Select::new(What::Manifest(KERNEL_NETWORK, event.opcode as u16 + 32), MANIFEST | UDP | event.opcode)
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&NETWORK],
    selects: selects!(
        SendIPV4 SendIPV6
        RecvIPV4 RecvIPV6
        ConnectIPV4 ConnectIPV6
        DisconnectIPV4 DisconnectIPV6
        RetransmitIPV4 RetransmitIPV6
        AcceptIPV4 AcceptIPV6
        ReconnectIPV4 ReconnectIPV6
        TCPCopyIPV4 TCPCopyIPV6
    ),
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Network { rows: TableBuilder::new(memory), manifest_rows: TableBuilder::new(memory) })
    },
};

/// Fields of the local and of the remote end. TCP and sends name this machine as the source, in receives too. A
/// received datagram has its sender there: in three real traces queries go from here to a server and come back with
/// addresses swapped, and broadcasts of many senders arrive at one destination.
pub(crate) fn ends(received_datagram: bool) -> [&'static str; 4] {
    match received_datagram {
        false => ["saddr", "sport", "daddr", "dport"],
        true => ["daddr", "dport", "saddr", "sport"],
    }
}

struct Network {
    rows: TableBuilder<NetworkRow>,
    /// Those of the provider, which repeat what the kernel's tell.
    manifest_rows: TableBuilder<NetworkRow>,
}

impl Analysis for Network {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let op = event.tag & !(UDP | MANIFEST);
        let v6 = op >= TcpIp::SendIPV6.opcode;
        let op = if v6 { op - V6 } else { op };
        let name = OPS.iter().find(|(event, _)| event.opcode == op).map_or("other", |(_, name)| name);
        let endpoint = |address: &str, port: &str| {
            let mut text = String::new();
            let address = fields.get(address)?;
            if v6 {
                text.push('[');
            }
            format_value(&mut text, address, None);
            text.push_str(if v6 { "]:" } else { ":" });
            format_value(&mut text, fields.get(port)?, None);
            Some(text)
        };
        let [local_address, local_port, remote_address, remote_port] =
            ends(event.tag & UDP != 0 && op == UdpIp::RecvIPV4.opcode);
        let (local, remote) = (endpoint(local_address, local_port), endpoint(remote_address, remote_port));
        let pid = fields.u32("PID").or(event.pid());
        let upid = pid.filter(|&p| p != u32::MAX).map(|pid| cx.model.processes.at(pid, event.ns));
        let failure = fields.u32("FailureCode").and_then(|code| {
            let name = FAILURES.get((code as usize).checked_sub(1)?)?;
            Some(cx.sym(name))
        });
        let rows = if event.tag & MANIFEST == 0 { &mut self.rows } else { &mut self.manifest_rows };
        rows.push(NetworkRow {
            ts_ns: event.ns,
            protocol: cx.sym(if event.tag & UDP != 0 { "udp" } else { "tcp" }),
            op: cx.sym(name),
            upid: upid.map(|u| u as i32),
            size_bytes: fields.u64("size") as i64,
            local: local.map(|t| cx.sym(&t)),
            remote: remote.map(|t| cx.sym(&t)),
            remote_port: fields.u32(remote_port).map(|p| p as i32),
            failure,
            ip: if v6 || fields.u32("Proto") == Some(AF_INET6) { 6 } else { 4 },
            connection: fields.u64("connid") as i64,
            cpu: i32::from(event.record.cpu),
        });
    }

    fn finish(self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let own = self.rows.rows() > 0;
        Ok(vec![if own { self.rows.into() } else { self.manifest_rows.into() }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_received_datagram_comes_from_its_source() {
        assert_eq!(ends(false), ["saddr", "sport", "daddr", "dport"]);
        assert_eq!(ends(true), ["daddr", "dport", "saddr", "sport"]);
    }
}
