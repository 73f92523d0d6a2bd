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

use crate::engine::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_decode::format::format_value;
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

const OPS: [(u8, &str); 9] = [
    (10, "send"),
    (11, "receive"),
    (12, "connect"),
    (13, "disconnect"),
    (14, "retransmit"),
    (15, "accept"),
    (16, "reconnect"),
    (17, "fail"),
    (18, "copy"),
];
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
    ($($op:literal)*) => {
        &[
            $(
                Select::new(What::Kernel(6, $op), $op),
                Select::new(What::Kernel(6, $op + 16), $op + 16),
                Select::new(What::Manifest(KERNEL_NETWORK, $op), MANIFEST | $op),
                Select::new(What::Manifest(KERNEL_NETWORK, $op + 16), MANIFEST | ($op + 16)),
            )*
            Select::new(What::Manifest(KERNEL_NETWORK, 42), MANIFEST | UDP | 10),
            Select::new(What::Manifest(KERNEL_NETWORK, 43), MANIFEST | UDP | 11),
            Select::new(What::Manifest(KERNEL_NETWORK, 49), MANIFEST | UDP | 17),
            Select::new(What::Manifest(KERNEL_NETWORK, 58), MANIFEST | UDP | 26),
            Select::new(What::Manifest(KERNEL_NETWORK, 59), MANIFEST | UDP | 27),
            Select::new(What::Kernel(8, 10), UDP | 10),
            Select::new(What::Kernel(8, 11), UDP | 11),
            Select::new(What::Kernel(8, 17), UDP | 17),
            Select::new(What::Kernel(8, 26), UDP | 26),
            Select::new(What::Kernel(8, 27), UDP | 27),
        ]
    };
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&NETWORK],
    selects: selects!(10 11 12 13 14 15 16 17 18),
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
        let (v6, op) = if op >= 26 { (true, op - 16) } else { (false, op) };
        let name = OPS.iter().find(|(number, _)| *number == op).map_or("other", |(_, name)| name);
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
        let [local_address, local_port, remote_address, remote_port] = ends(event.tag & UDP != 0 && op == 11);
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
