//! DNS queries: what was asked, by whom, how long it took and what came back.
//!
//! # How it is computed
//! Microsoft-Windows-DNS-Client tells in the asking process when a query is called (3006) and when it has completed
//! (3008). The two are put together by process, name and type: of several open ones the same thread's, else the oldest.
//! The DNS Client service tells in its own process which servers it asks for the name (3010) and whether its cache
//! knew it (3018); this is added to every open query of that name and type. Windows 7 has none of these events.
//!
//! Layouts: the provider's manifest as registered on Windows 10 and 11; no public trace holds these events.
//!
//! # What fools it
//! Two processes that ask for the same name at the same time share the servers that are shown. Programs with a
//! resolver of their own (browsers with DNS over HTTPS) do not appear.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{INTERVALS_BEYOND_LIMIT, PAYLOAD_TOO_SHORT};
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_table::{Strings, Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// DNS queries of programs.
    pub table DNS_QUERY: DnsQueryRow = "dns_query" {
        version: 1, evidence: Documented,
        /// When it was called; none if that was before the trace or was not recorded.
        start_ns: Option<i64> [Ns, Time],
        /// When it completed; none if it did not within the trace.
        ts_ns: Option<i64> [Ns, Time],
        /// How long it took.
        dur_ns: Option<i64> [Ns, Duration],
        /// Process that asked.
        upid: Option<i32> [None, Process],
        /// Thread that asked; the one that got the answer if that is all that is known.
        utid: Option<i32> [None, Thread],
        /// Name.
        name: Sym [None, Name],
        /// Type of record, by name where it has one: A, AAAA, PTR, ...
        query_type: Sym [None, Kind],
        /// Status of the answer (Win32 and DNS error codes).
        status: Option<i32> [None, Status],
        /// Name of the status.
        status_name: Option<Sym> [None, Name],
        /// The answer, as Windows prints it.
        results: Option<Sym> [None, Message],
        /// The service's cache knew it; none if nothing tells.
        cached: Option<bool> [None, Flag],
        /// Servers that were asked meanwhile, separated by commas.
        servers: Option<Sym> [None, Name],
        /// Queries that were sent to servers meanwhile.
        sent: i32 [Count, Count],
        /// Query options.
        options: Option<i64> [Address, Flag],
    }
}

/// `Microsoft-Windows-DNS-Client`.
const DNS_CLIENT: Guid = Guid::from_text("1c95126e-7eea-49a9-a3fe-a378b03ddb4d");
const CALLED: u8 = 6;
const COMPLETED: u8 = 8;
const SENT: u8 = 10;
const CACHE: u8 = 18;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&DNS_QUERY],
    selects: &[
        Select::new(What::Manifest(DNS_CLIENT, 3006), CALLED),
        Select::new(What::Manifest(DNS_CLIENT, 3008), COMPLETED),
        Select::new(What::Manifest(DNS_CLIENT, 3010), SENT),
        Select::new(What::Manifest(DNS_CLIENT, 3018), CACHE),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Queries { rows: TableBuilder::new(memory), open: HashMap::default(), count: 0 }),
};

struct Queries {
    rows: TableBuilder<DnsQueryRow>,
    /// Open queries by name in lower case and type.
    open: HashMap<(Sym, u32), Vec<Query>>,
    count: usize,
}

#[derive(Clone, Default)]
struct Query {
    start: Option<i64>,
    upid: Option<u32>,
    utid: Option<u32>,
    name: Sym,
    options: Option<i64>,
    cached: Option<bool>,
    servers: Vec<Sym>,
    sent: i32,
}

/// What a completion says.
struct Answer {
    ns: i64,
    status: Option<u32>,
    results: Option<Sym>,
}

/// Queries in flight at a time, and servers of one.
const MAX_OPEN: usize = 65_536;
const MAX_SERVERS: usize = 16;
/// Queries of one name and type in flight: an answer is compared with all of them.
const MAX_ALIKE: usize = 1024;
/// Bytes of an address of a server; nothing longer is one.
const MAX_ADDRESS: usize = 256;

/// Names of record types (IANA's registry), the common ones.
fn type_name(number: u32) -> String {
    let known = match number {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        35 => "NAPTR",
        64 => "SVCB",
        65 => "HTTPS",
        255 => "ANY",
        _ => return format!("TYPE{number}"),
    };
    known.to_owned()
}

/// Names of statuses: DNS codes of winerror.h, and Win32 errors.
fn status_name(status: u32) -> Option<&'static str> {
    Some(match status {
        9001 => "DNS_ERROR_RCODE_FORMAT_ERROR",
        9002 => "DNS_ERROR_RCODE_SERVER_FAILURE",
        9003 => "DNS_ERROR_RCODE_NAME_ERROR",
        9004 => "DNS_ERROR_RCODE_NOT_IMPLEMENTED",
        9005 => "DNS_ERROR_RCODE_REFUSED",
        9501 => "DNS_INFO_NO_RECORDS",
        9502 => "DNS_ERROR_BAD_PACKET",
        9701 => "DNS_ERROR_RECORD_DOES_NOT_EXIST",
        9852 => "DNS_ERROR_NO_DNS_SERVERS",
        _ => return etwhy_knowledge::win32_error_name(status),
    })
}

impl Analysis for Queries {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let (Some(name), Some(kind)) = (fields.non_empty("QueryName"), fields.u32("QueryType")) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let key = (cx.sym(name.trim_end_matches('.').to_lowercase()), kind);
        match event.tag {
            CALLED => {
                let query = Query {
                    start: Some(event.ns),
                    upid: cx.upid(event),
                    utid: cx.utid(event),
                    name: cx.sym(&name),
                    options: fields.i64("QueryOptions"),
                    ..Query::default()
                };
                if self.count >= MAX_OPEN {
                    cx.ledger.count(&INTERVALS_BEYOND_LIMIT, 1);
                    return;
                }
                let list = self.open.entry(key).or_default();
                // One call tells of itself for each network that it asks.
                let network = fields.u32("IsNetworkQuery").unwrap_or(0) != 0;
                if network && list.iter().any(|q| q.utid == query.utid) {
                    return;
                }
                if list.len() >= MAX_ALIKE {
                    cx.ledger.count(&INTERVALS_BEYOND_LIMIT, 1);
                    return;
                }
                list.push(query);
                self.count += 1;
            }
            COMPLETED => {
                let (upid, utid) = (cx.upid(event), cx.utid(event));
                let found = self.open.get_mut(&key).and_then(|list| {
                    let own = list.iter().position(|q| q.utid == utid && utid.is_some());
                    let at = own.or_else(|| list.iter().position(|q| q.upid == upid))?;
                    Some(list.remove(at))
                });
                if self.open.get(&key).is_some_and(Vec::is_empty) {
                    self.open.remove(&key);
                }
                self.count -= usize::from(found.is_some());
                let name = cx.sym(&name);
                let query = found.unwrap_or(Query {
                    upid,
                    utid,
                    name,
                    options: fields.i64("QueryOptions"),
                    ..Query::default()
                });
                let answer = Answer {
                    ns: event.ns,
                    status: fields.u32("QueryStatus"),
                    results: cx.sym_or_none(fields.text("QueryResults")),
                };
                self.push(&query, kind, Some(answer), cx.strings);
            }
            SENT => {
                let server = fields.non_empty("DnsServerIpAddress").filter(|s| s.len() <= MAX_ADDRESS);
                let server = server.map(|s| cx.sym(s));
                for query in self.open.get_mut(&key).into_iter().flatten() {
                    query.sent = query.sent.saturating_add(1);
                    query.cached = Some(false);
                    if let Some(server) = server
                        && !query.servers.contains(&server)
                        && query.servers.len() < MAX_SERVERS
                    {
                        query.servers.push(server);
                    }
                }
            }
            _ => {
                let hit = fields.u32("Status") == Some(0);
                for query in self.open.get_mut(&key).into_iter().flatten() {
                    query.cached = query.cached.or(Some(hit));
                }
            }
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let open = std::mem::take(&mut self.open);
        let mut left: Vec<(u32, Query)> =
            open.into_iter().flat_map(|((_, kind), list)| list.into_iter().map(move |q| (kind, q))).collect();
        left.sort_by_key(|(kind, q)| (q.start, q.utid, q.name, *kind));
        for (kind, query) in left {
            self.push(&query, kind, None, end.strings);
        }
        Ok(vec![self.rows.into()])
    }
}

impl Queries {
    fn push(&mut self, query: &Query, kind: u32, answer: Option<Answer>, strings: &mut Strings) {
        let ns = answer.as_ref().map(|a| a.ns);
        let status = answer.as_ref().and_then(|a| a.status);
        let servers: Vec<&str> = query.servers.iter().map(|&s| strings.get(s)).collect();
        let servers = (!servers.is_empty()).then(|| servers.join(", "));
        self.rows.push(DnsQueryRow {
            start_ns: query.start,
            ts_ns: ns,
            dur_ns: query.start.zip(ns).map(|(start, end)| end.saturating_sub(start).max(0)),
            upid: query.upid.map(|u| u as i32),
            utid: query.utid.map(|u| u as i32),
            name: query.name,
            query_type: strings.intern(&type_name(kind)),
            status: status.map(|s| s as i32),
            status_name: status.and_then(status_name).map(|n| strings.intern(n)),
            results: answer.and_then(|a| a.results),
            cached: query.cached,
            servers: servers.map(|s| strings.intern(&s)),
            sent: query.sent,
            options: query.options,
        });
    }
}
