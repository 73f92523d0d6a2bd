//! Which processes work behind one call: ALPC messages that servers send while they serve another one.
//!
//! # How it is computed
//!
//! From `alpc`. A message that a thread sends while it serves another message, between receive and reply, belongs to
//! that one: the chain goes on. Messages with the same chain of processes are summed. `own_ns` is a server's time
//! without that of the messages it sent meanwhile; CPU time is that of the whole process, by samples, else by
//! context switches.
//!
//! # What fools it
//!
//! A server that hands the work to another of its threads breaks the chain: what that thread calls begins a chain of its own.
//! A message without a reply (a datagram, or one whose reply was lost) ends its chain: how long it was served is not known. One that is
//! still served when the trace ends keeps it: neither its client nor its server has exchanged another message since. (A reply to what was asked
//! before the trace looks like a message without one, but who replied serves the next.)
//! Ports are not told from each other, and RPC over other transports (named pipes, TCP) is not ALPC.
//! `own_ns` is time, not CPU time: the server may have waited for something else.

use crate::derive::DerivedSpec;
use crate::fold::{freeze, id};
use crate::operators::add;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::{
    alpc::AlpcRow, process::ProcessRow, stack_cost::StackCostRow, thread::ThreadRow,
    thread_time::ThreadTimeRow, unobserved::UnobservedRow,
};
use foldhash::HashMap;

define_table! {
    /// Chains of processes that call each other over ALPC, one row for each link.
    pub table SERVICE_CHAIN: ServiceChainRow = "service_chain" {
        version: 1,
        /// Process whose call began the chain.
        root_upid: Option<i32> [None, Process],
        /// The processes from the first to this one, `a.exe > svchost.exe (Service) > b.exe`.
        chain: Sym [None, Name],
        /// Links before this one; 0 for the first process itself.
        depth: i32 [Count, Count],
        /// Process of this link.
        upid: Option<i32> [None, Other],
        /// Name of the process.
        process: Sym [None, Name],
        /// Services that its threads worked for, else those that run in it.
        service: Option<Sym> [None, Name],
        /// Messages that it answered; for the first process those that it sent.
        calls: i64 [Count, Count],
        /// From send to reply, as its caller saw it.
        round_trip_ns: i64 [Ns, Duration],
        /// From receive to reply.
        server_ns: i64 [Ns, Duration],
        /// Part of `server_ns` in which it did not wait for the next link.
        own_ns: i64 [Ns, Duration],
        /// CPU time of the whole process in the trace; null where neither samples nor context switches tell.
        process_cpu_ns: Option<i64> [Ns, Duration],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&SERVICE_CHAIN],
    reads: reads::<(ProcessRow, ThreadRow, AlpcRow, StackCostRow, ThreadTimeRow, UnobservedRow)>,
    on_demand: false,
    make,
};

/// Links of a chain, and different chains; a hostile trace has as many as it likes.
const MOST_DEPTH: i32 = 32;
const MOST_NODES: usize = 1 << 16;

struct Message {
    send: i64,
    receive: Option<i64>,
    reply: Option<i64>,
    round_trip: i64,
    server: i64,
    client: (i64, i64),
    of: (i64, i64),
}

/// A link with its chain.
struct Node {
    parent: Option<u32>,
    root: i64,
    upid: i64,
    service: Option<Sym>,
    depth: i32,
    calls: i64,
    round_trip: i64,
    server: i64,
    nested: i64,
}

#[derive(Default)]
struct Names {
    process: Vec<(String, String)>,
    service: HashMap<i64, String>,
    cpu: HashMap<i64, i64>,
}

impl Names {
    fn read(db: &Database) -> Names {
        let mut out = Names::default();
        for row in &db.read_or_empty::<ProcessRow>() {
            out.process.push((row.name().to_owned(), row.services().unwrap_or("").to_owned()));
        }
        for row in &db.read_or_empty::<ThreadRow>() {
            if let Some(service) = row.service() {
                out.service.insert(row.utid(), service.to_owned());
            }
        }
        let mut sampled: HashMap<i64, i64> = HashMap::default();
        for row in db.read_or_empty::<StackCostRow>().iter().filter(|&row| row.class() == "thread") {
            add(sampled.entry(row.upid().unwrap_or(-1)).or_default(), row.weight_ns());
        }
        if sampled.is_empty() {
            for row in &db.read_or_empty::<ThreadTimeRow>() {
                add(sampled.entry(row.upid().unwrap_or(-1)).or_default(), row.cpu_ns());
            }
        }
        out.cpu = sampled;
        out
    }

    fn of(&self, upid: i64) -> (&str, &str) {
        let found = usize::try_from(upid).ok().and_then(|at| self.process.get(at));
        found.map_or(("[unknown]", ""), |(name, services)| (name.as_str(), services.as_str()))
    }
}

fn messages(db: &Database) -> Vec<Message> {
    let mut out = Vec::new();
    for row in &db.read_or_empty::<AlpcRow>() {
        let (Some(send), Some(client_thread), Some(of)) =
            (row.send_ns(), row.client_utid(), row.server_upid())
        else {
            continue;
        };
        out.push(Message {
            send,
            receive: row.receive_ns(),
            reply: row.reply_ns(),
            round_trip: row.round_trip_ns().unwrap_or(0),
            server: row.server_ns().unwrap_or(0),
            client: (row.client_upid().unwrap_or(-1), client_thread),
            of: (of, row.server_utid().unwrap_or(-1)),
        });
    }
    out.sort_by_key(|message| message.send);
    out
}

/// What each thread did last.
#[derive(Default)]
struct Last {
    /// As server: when it received or replied.
    served: HashMap<i64, i64>,
    /// As server or client.
    any: HashMap<i64, i64>,
}

impl Last {
    fn read(db: &Database) -> Last {
        let mut out = Last::default();
        let later = |of: &mut HashMap<i64, i64>, thread: Option<i64>, ns: Option<i64>| {
            if let Some((thread, ns)) = thread.zip(ns) {
                let last = of.entry(thread).or_insert(ns);
                *last = ns.max(*last);
            }
        };
        for row in &db.read_or_empty::<AlpcRow>() {
            for ns in [row.receive_ns(), row.reply_ns()] {
                later(&mut out.served, row.server_utid(), ns);
                later(&mut out.any, row.server_utid(), ns);
            }
            for ns in [row.send_ns(), row.reply_receive_ns()] {
                later(&mut out.any, row.client_utid(), ns);
            }
        }
        out
    }
}

fn nodes(db: &Database, names: &Names, strings: &mut Strings) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut known: HashMap<(Option<u32>, i64, Option<Sym>), u32> = HashMap::default();
    // What each thread serves: receive, reply, link. One at a time, and messages come in order of their sending.
    let mut serving: HashMap<i64, Vec<(i64, i64, u32)>> = HashMap::default();
    let messages = messages(db);
    let last = Last::read(db);
    let lossy = !db.read_or_empty::<UnobservedRow>().is_empty();
    let still_served = |message: &Message, receive: i64| {
        let waits = last.any.get(&message.client.1) == Some(&message.send);
        !lossy && waits && last.served.get(&message.of.1) == Some(&receive)
    };
    for message in messages {
        let list = serving.entry(message.client.1).or_default();
        list.retain(|(_, reply, _)| *reply >= message.send);
        let open = list.iter().filter(|(receive, _, _)| *receive <= message.send);
        let parent = open.max_by_key(|(receive, _, _)| *receive).map(|(_, _, node)| *node);
        let mut node = |parent: Option<u32>, upid: i64, service: Option<Sym>, nodes: &mut Vec<Node>| {
            let full = nodes.len() >= MOST_NODES;
            let (depth, root) = parent
                .and_then(|p| nodes.get(p as usize))
                .map_or((0, upid), |p| (p.depth.saturating_add(1), p.root));
            if let Some(found) = known.get(&(parent, upid, service)) {
                return Some(*found);
            }
            if full || depth > MOST_DEPTH {
                return None;
            }
            let number = nodes.len() as u32;
            known.insert((parent, upid, service), number);
            let (calls, round_trip, server, nested) = (0, 0, 0, 0);
            nodes.push(Node { parent, root, upid, service, depth, calls, round_trip, server, nested });
            Some(number)
        };
        let mut service = |thread: i64, upid: i64| {
            let own = names.service.get(&thread).map_or(names.of(upid).1, String::as_str);
            (!own.is_empty()).then(|| strings.intern(own))
        };
        let parent = match parent {
            Some(parent) => Some(parent),
            None => {
                let service = service(message.client.1, message.client.0);
                node(None, message.client.0, service, &mut nodes)
            }
        };
        let Some(parent) = parent else { continue };
        let service = service(message.of.1, message.of.0);
        let Some(number) = node(Some(parent), message.of.0, service, &mut nodes) else { continue };
        if let Some(parent) = nodes.get_mut(parent as usize) {
            add(&mut parent.nested, message.round_trip);
            if parent.depth == 0 {
                parent.calls += 1;
                add(&mut parent.round_trip, message.round_trip);
            }
        }
        if let Some(link) = nodes.get_mut(number as usize) {
            link.calls += 1;
            add(&mut link.round_trip, message.round_trip);
            add(&mut link.server, message.server);
        }
        let until =
            |receive: i64| message.reply.or_else(|| still_served(&message, receive).then_some(i64::MAX));
        if let Some((receive, reply)) = message.receive.and_then(|receive| Some((receive, until(receive)?))) {
            // Nobody serves more than a few at a time; of a damaged trace the last ones are kept.
            let list = serving.entry(message.of.1).or_default();
            if list.len() >= 64 {
                list.remove(0);
            }
            list.push((receive, reply, number));
        }
    }
    nodes
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<ServiceChainRow>::new(memory);
    let mut strings = Strings::new();
    if !db.read_or_empty::<AlpcRow>().is_empty() {
        let names = Names::read(db);
        let nodes = nodes(db, &names, &mut strings);
        let mut chains: Vec<Sym> = Vec::with_capacity(nodes.len());
        let mut out: Vec<ServiceChainRow> = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let (name, _) = names.of(node.upid);
            let mut label = name.to_owned();
            if let Some(service) = node.service {
                label.push_str(&format!(" ({})", strings.get(service)));
            }
            let before = node.parent.and_then(|p| chains.get(p as usize)).copied();
            let chain = before.map_or(label.clone(), |b| format!("{} > {label}", strings.get(b)));
            let chain = strings.intern(&chain);
            chains.push(chain);
            out.push(ServiceChainRow {
                root_upid: id(node.root),
                chain,
                depth: node.depth,
                upid: id(node.upid),
                process: strings.intern(name),
                service: node.service,
                calls: node.calls,
                round_trip_ns: node.round_trip,
                server_ns: node.server,
                own_ns: if node.depth == 0 { 0 } else { node.server.saturating_sub(node.nested).max(0) },
                process_cpu_ns: (!names.cpu.is_empty())
                    .then(|| names.cpu.get(&node.upid).copied().unwrap_or(0)),
            });
        }
        out.sort_by_key(|row| (row.depth != 0, std::cmp::Reverse(row.round_trip_ns)));
        for row in out {
            rows.push(row);
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{derived, shown, table};
    use etwhy_table::Value;

    #[test]
    fn who_replied_and_serves_the_next_is_no_client_that_waits() {
        use Value::{I64 as N, Null, Text as T};
        let mut db = Database::new();
        let process = |name, upid| vec![T(name), N(upid)];
        let processes = [process("query.exe", 0), process("svchost.exe", 1), process("host.exe", 2)];
        db.insert(table("process", "name upid", &processes));
        let message =
            |send: i64, reply: Option<i64>, (client, asks): (i64, i64), (server, serves): (i64, i64)| {
                let (replied, back) = (reply.map_or(Null, N), reply.map_or(Null, |ns| N(ns + 1)));
                vec![N(send), N(send + 1), replied, back, N(client), N(asks), N(server), N(serves)]
            };
        let columns =
            "send_ns receive_ns reply_ns reply_receive_ns client_upid client_utid server_upid server_utid";
        let messages = [
            // The reply to what was asked before the trace.
            message(10, None, (1, 10), (0, 20)),
            message(20, Some(25), (0, 20), (1, 10)),
            // Served until the end of the trace, with the help of another one.
            message(30, None, (0, 20), (1, 10)),
            message(32, Some(40), (1, 10), (2, 30)),
        ];
        db.insert(table("alpc", columns, &messages));
        derived(&mut db, &["service_chain"]);
        let mut chains = shown(db.get("service_chain").unwrap(), "chain", 1);
        chains.sort();
        assert_eq!(
            chains,
            [
                "query.exe",
                "query.exe > svchost.exe",
                "query.exe > svchost.exe > host.exe",
                "svchost.exe",
                "svchost.exe > query.exe",
            ]
        );
    }
}
