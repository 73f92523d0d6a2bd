//! ALPC messages: which thread asked which, how long it took to be heard, and how long it waited for the answer.
//!
//! # How it is computed
//! Events name a message id and nothing else: ALPC-Send-Message, -Receive-Message, -Wait-For-Reply, and without an id
//! -Wait-For-New-Message (with the name of the port) and -Unwait. A row is one message. A send begins it, the next
//! receive of the same id by another process, or another thread of the same process, is the server's. A send of the
//! same id by the process that received it is the reply, and the receive of that by the client's process completes the
//! round trip. The port is the one that the receiving thread last waited on.
//!
//! Threads are those of the header or, where the header names none, the ones that the context switches put on the
//! processor.
//!
//! # What fools it
//! How the kernel assigns message ids is not documented; that a reply has the id of its request, and that ids are used
//! again when a message is done, follows from how ALPC is described (Windows Internals), not from a trace that was seen.
//! A datagram that was received and whose id the *same* process then uses for a message of its own looks like a reply. A
//! thread that waits on several ports may receive from another than the one named. Where the thread of a send is
//! unknown, the send begins a message; so does a reply whose request is not in the trace (lost buffers, or sent before it
//! began): sender and receiver are right, but `client` is then the one who was asked. Messages that span a place where buffers may be missing are not paired
//! (`alpc_pairs_doubtful`).
//!
//! The layouts rest on documentation (the MOF of class ALPC); no real trace with these events was at hand.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{ALPC_DOUBTFUL, PAYLOAD_TOO_SHORT};
use crate::attribution::Actor;
use crate::event::{Context, Event, Select};
use crate::finish::process_later;
use crate::model::stack::NO_STACK;
use etwhy_decode::kernel::events::ALPC;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// ALPC messages, with their replies.
    pub table ALPC: AlpcRow = "alpc" {
        title: "ALPC messages", version: 1,
        /// When it was sent; null if that was not seen.
        send_ns: Option<i64> [Ns, Time],
        /// When it was received.
        receive_ns: Option<i64> [Ns, Time],
        /// When the receiver replied.
        reply_ns: Option<i64> [Ns, Time],
        /// When the sender received the reply.
        reply_receive_ns: Option<i64> [Ns, Time],
        /// From send to receive: until the server has heard.
        latency_ns: Option<i64> [Ns, Duration],
        /// From receive to reply: the server's work.
        server_ns: Option<i64> [Ns, Duration],
        /// From send to the receive of the reply.
        round_trip_ns: Option<i64> [Ns, Duration],
        /// How long the sending thread waited for the reply (from Wait-For-Reply to Unwait, or to the reply).
        wait_ns: Option<i64> [Ns, Duration],
        /// Id of the message; it is used again.
        message_id: i32 [Hex32, Other],
        /// Port on which the receiver waited.
        port: Option<Sym> [None, Name],
        /// Process that sent it.
        client_upid: Option<i32> [None, Process],
        /// Thread that sent it.
        client_utid: Option<i32> [None, Thread],
        /// Process that received it.
        server_upid: Option<i32> [None, Process],
        /// Thread that received it.
        server_utid: Option<i32> [None, Thread],
        /// Stack of the send (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
    }
}

const SEND: u8 = ALPC::ALPC_Send_Message.opcode;
const RECEIVE: u8 = ALPC::ALPC_Receive_Message.opcode;
const WAIT_REPLY: u8 = ALPC::ALPC_Wait_For_Reply.opcode;
const UNWAIT: u8 = ALPC::ALPC_Unwait.opcode;

/// Messages that may be under way at once. More than this are written as they are, oldest knowledge first; a real
/// machine has thousands.
const MOST_OPEN: usize = 1 << 18;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&ALPC],
    selects: &[
        Select::kernel(ALPC::ALPC_Send_Message, &["MessageID"]),
        Select::kernel(ALPC::ALPC_Receive_Message, &["MessageID"]),
        Select::kernel(ALPC::ALPC_Wait_For_Reply, &["MessageID"]),
        Select::kernel(ALPC::ALPC_Wait_For_New_Message, &["IsServerPort"]),
        Select::kernel(ALPC::ALPC_Unwait, &[]),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(Messages {
            rows: TableBuilder::new(memory),
            open: HashMap::default(),
            waits: HashMap::default(),
            ports: HashMap::default(),
        })
    },
};

/// A message under way.
#[derive(Clone, Copy)]
struct Message {
    ticket: i32,
    client: Option<u32>,
    server: Option<u32>,
    send: Option<i64>,
    receive: Option<i64>,
    reply: Option<i64>,
    reply_receive: Option<i64>,
    wait: Option<i64>,
    wait_end: Option<i64>,
    port: Option<Sym>,
    /// Processor of the last of these events.
    cpu: u16,
}

struct Messages {
    rows: TableBuilder<AlpcRow>,
    /// By id.
    open: HashMap<u32, Message>,
    /// Message for whose reply a thread waits.
    waits: HashMap<u32, u32>,
    /// Port on which a thread waited last.
    ports: HashMap<u32, Sym>,
}

fn span(from: Option<i64>, to: Option<i64>) -> Option<i64> {
    Some(to?.saturating_sub(from?))
}

impl Messages {
    fn push(&mut self, id: u32, m: &Message) {
        self.rows.push(AlpcRow {
            send_ns: m.send,
            receive_ns: m.receive,
            reply_ns: m.reply,
            reply_receive_ns: m.reply_receive,
            latency_ns: span(m.send, m.receive),
            server_ns: span(m.receive, m.reply),
            round_trip_ns: span(m.send, m.reply_receive),
            wait_ns: span(m.wait, m.wait_end.or(m.reply_receive)),
            message_id: id as i32,
            port: m.port,
            client_upid: m.client.map(process_later),
            client_utid: m.client.map(|u| u as i32),
            server_upid: m.server.map(process_later),
            server_utid: m.server.map(|u| u as i32),
            stack_id: Some(m.ticket),
        });
    }

    /// A message is done, or nothing more will be known of it.
    fn done(&mut self, id: u32) {
        if let Some(message) = self.open.remove(&id) {
            self.push(id, &message);
        }
    }

    fn all_done(&mut self) {
        let mut left: Vec<(u32, Message)> = std::mem::take(&mut self.open).into_iter().collect();
        left.sort_unstable_by_key(|(id, m)| (m.send.or(m.receive), *id));
        for (id, message) in left {
            self.push(id, &message);
        }
    }

    fn begin(&mut self, id: u32, message: Message) {
        self.done(id);
        if self.open.len() >= MOST_OPEN {
            self.all_done();
        }
        self.open.insert(id, message);
    }

    fn send(&mut self, id: u32, actor: Option<Actor>, event: &Event<'_>, cx: &mut Context<'_>) {
        let process = actor.and_then(|a| cx.model.upid_of(a.utid));
        if let Some(message) = self.open.get_mut(&id)
            && let (Some(receive), Some(server), None) = (message.receive, message.server, message.reply)
            && process.is_some()
            && cx.model.upid_of(server) == process
            // Of two threads of one process the receiver replies.
            && (message.client.and_then(|c| cx.model.upid_of(c)) != process
                || actor.is_some_and(|a| message.client != Some(a.utid)))
        {
            if cx.model.cpus.parted((message.cpu, receive), (event.record.cpu, event.ns)) {
                cx.ledger.count(&ALPC_DOUBTFUL, 1);
            } else {
                (message.reply, message.cpu) = (Some(event.ns), event.record.cpu);
                return;
            }
        }
        let message = Message {
            ticket: cx.actor_stack(event, actor),
            client: actor.map(|a| a.utid),
            server: None,
            send: Some(event.ns),
            receive: None,
            reply: None,
            reply_receive: None,
            wait: None,
            wait_end: None,
            port: None,
            cpu: event.record.cpu,
        };
        self.begin(id, message);
    }

    fn receive(&mut self, id: u32, actor: Option<Actor>, event: &Event<'_>, cx: &mut Context<'_>) {
        let ns = event.ns;
        let port = actor.and_then(|a| self.ports.get(&a.utid)).copied();
        let process = |utid: Option<u32>| utid.and_then(|u| cx.model.upid_of(u));
        let utid = actor.map(|a| a.utid);
        if let Some(message) = self.open.get_mut(&id) {
            let since = message.reply.or(message.send).unwrap_or(ns);
            if cx.model.cpus.parted((message.cpu, since), (event.record.cpu, ns)) {
                cx.ledger.count(&ALPC_DOUBTFUL, 1);
            } else if message.reply.is_some() {
                // The reply reaches the client: the same process, be it another thread.
                let clients = process(message.client);
                if utid.is_none() || clients.is_none() || clients == process(utid) {
                    message.reply_receive = Some(ns);
                    // The wait that the reply ends is told by the Unwait that follows; the message is complete without.
                    self.done(id);
                    return;
                }
            } else if message.receive.is_none() && (utid.is_none() || utid != message.client) {
                (message.receive, message.server, message.port) = (Some(ns), utid, port);
                message.cpu = event.record.cpu;
                return;
            }
        }
        let message = Message {
            ticket: NO_STACK,
            client: None,
            server: utid,
            send: None,
            receive: Some(ns),
            reply: None,
            reply_receive: None,
            wait: None,
            wait_end: None,
            port,
            cpu: event.record.cpu,
        };
        self.begin(id, message);
    }
}

impl Analysis for Messages {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let actor = cx.actor(event);
        if event.tag == UNWAIT {
            let waited = actor.and_then(|a| Some((a, self.waits.remove(&a.utid)?)));
            if let Some((actor, id)) = waited
                && let Some(message) = self.open.get_mut(&id).filter(|m| m.client == Some(actor.utid))
            {
                // An Unwait of a later wait does not end one whose own Unwait may be lost.
                let cpu = event.record.cpu;
                let unseen = |wait| cx.model.may_have_run_unseen(cpu, actor.utid, wait, event.ns);
                if message.wait.is_some_and(unseen) {
                    cx.ledger.count(&ALPC_DOUBTFUL, 1);
                } else {
                    message.wait_end = message.wait_end.or(Some(event.ns));
                }
            }
            return;
        }
        let Some(number) = event.u64(0) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let id = number as u32;
        match event.tag {
            SEND => self.send(id, actor, event, cx),
            RECEIVE => self.receive(id, actor, event, cx),
            WAIT_REPLY => {
                let Some(actor) = actor else { return };
                if let Some(message) = self.open.get_mut(&id).filter(|m| m.client == Some(actor.utid)) {
                    message.wait = message.wait.or(Some(event.ns));
                    self.waits.insert(actor.utid, id);
                }
            }
            _ => {
                let port = cx.sym_or_none(event.fields().text("PortName"));
                if let (Some(actor), Some(port)) = (actor, port) {
                    self.ports.insert(actor.utid, port);
                }
            }
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        self.all_done();
        end.stacks_of(&mut self.rows, "stack_id")?;
        end.processes_of(&mut self.rows, "client_upid")?;
        end.processes_of(&mut self.rows, "server_upid")?;
        Ok(vec![self.rows.into()])
    }
}
