//! Providers by session: who was enabled where, when and by whom.
//!
//! # How it is computed
//! Microsoft-Windows-Kernel-EventTracing tells when a provider is enabled to a session (14) and disabled (15), in
//! the process that asked for it, and in answer to a request for its state which providers are enabled (26, with the
//! number of the session, whose name events 10, 11 and 20 tell). Lists of tools (`--loggers`) add what was enabled
//! when they were printed.
//!
//! # What fools it
//! Enables from before the trace are seen only in a list or a state. Windows 7 and 8 tell neither level nor
//! keywords.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::logger_text::ListedLogger;
use etwhy_base::Guid;
use etwhy_etl::abi::guids::KERNEL_EVENT_TRACING;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Providers enabled to sessions.
    pub table LOGGER_PROVIDER: LoggerProviderRow = "logger_provider" {
        version: 1, evidence: Verified("enables in net.4.5.2.x64 and net.4.5.x86 as PerfView shows them"),
        /// When; none in lists.
        ts_ns: Option<i64> [Ns, Time],
        /// Session.
        session: Option<Sym> [None, Name],
        /// enabled, disabled, or listed (enabled when that was printed or asked for).
        action: Sym [None, Kind],
        /// Provider.
        provider: Sym [None, Name],
        /// GUID of the provider, if it is known.
        guid: Option<Sym> [None, Guid],
        /// Level.
        level: Option<i32> [None, Other],
        /// Keywords any of which an event must have.
        keyword_any: Option<i64> [Address, Flag],
        /// Keywords all of which an event must have.
        keyword_all: Option<i64> [Address, Flag],
        /// `EVENT_ENABLE_PROPERTY_*` bits.
        property: Option<i32> [Hex32, Flag],
        /// Process that asked for it (table `process`).
        upid: Option<i32> [None, Process],
        /// Thread that asked for it.
        utid: Option<i32> [None, Thread],
        /// Who says so: event or text.
        source: Sym [None, Kind],
    }
}

const ENABLE: u8 = 14;
const DISABLE: u8 = 15;
const STATE: u8 = 26;
const SESSION: u8 = 20;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&LOGGER_PROVIDER],
    selects: &[
        Select::new(What::Manifest(KERNEL_EVENT_TRACING, 14), ENABLE),
        Select::new(What::Manifest(KERNEL_EVENT_TRACING, 15), DISABLE),
        Select::new(What::Manifest(KERNEL_EVENT_TRACING, 26), STATE),
        Select::new(What::Manifest(KERNEL_EVENT_TRACING, 10), SESSION),
        Select::new(What::Manifest(KERNEL_EVENT_TRACING, 11), SESSION),
        Select::new(What::Manifest(KERNEL_EVENT_TRACING, 20), SESSION),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Enables { rows: TableBuilder::new(memory), names: HashMap::default(), guids: Vec::new() })
    },
};

struct Enables {
    rows: TableBuilder<LoggerProviderRow>,
    /// Name of the session with that number.
    names: HashMap<u32, Sym>,
    /// Providers, by the provisional number that their rows have.
    guids: Vec<Provider>,
}

struct Provider {
    guid: Guid,
    /// Number of the session where only that is said.
    session: Result<Sym, u32>,
}

/// Windows numbers sessions with 16 bits.
const MAX_SESSIONS: usize = 65_536;

impl Analysis for Enables {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let name = fields.non_empty("SessionName").map(|n| cx.sym(n));
        let id = fields.u32("LoggerId");
        if event.tag == SESSION {
            if let (Some(name), Some(id)) = (name, id)
                && self.names.len() < MAX_SESSIONS
            {
                self.names.insert(id, name);
            }
            return;
        }
        let Some(guid) = fields.guid("ProviderName").or_else(|| fields.guid("GUID")) else {
            cx.ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
            return;
        };
        // Names of providers and numbered sessions are known at the end.
        let number = Sym::provisional(self.guids.len() as u32);
        self.guids.push(Provider { guid, session: name.ok_or(id.unwrap_or(u32::MAX)) });
        let hex = |name: &str| fields.get(name).and_then(etwhy_decode::Value::as_u64);
        self.rows.push(LoggerProviderRow {
            ts_ns: Some(event.ns),
            session: Some(number),
            action: cx.sym(match event.tag {
                ENABLE => "enabled",
                DISABLE => "disabled",
                _ => "listed",
            }),
            provider: number,
            guid: Some(number),
            level: fields.u32("Level").map(|l| l as i32),
            keyword_any: hex("MatchAnyKeyword").map(|k| k as i64),
            keyword_all: hex("MatchAllKeyword").map(|k| k as i64),
            property: fields.u32("EnableProperty").map(|p| p as i32),
            upid: cx.upid(event).map(|u| u as i32),
            utid: cx.utid(event).map(|u| u as i32),
            source: cx.sym("event"),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut known: HashMap<Guid, (Sym, Sym)> = HashMap::default();
        let mut texts: Vec<(Option<Sym>, Sym, Sym)> = Vec::with_capacity(self.guids.len());
        for provider in &self.guids {
            let session = match provider.session {
                Ok(name) => Some(name),
                Err(id) => self.names.get(&id).copied(),
            };
            let (name, guid) = *known.entry(provider.guid).or_insert_with(|| {
                let guid = provider.guid.to_string();
                let name = end.decoder.provider_name(provider.guid);
                (end.strings.intern(name.as_deref().unwrap_or(&guid)), end.strings.intern(&guid))
            });
            texts.push((session, name, guid));
        }
        self.rows.remap_text("session", |n| texts.get(n? as usize)?.0)?;
        self.rows.remap_text("provider", |n| Some(texts.get(n? as usize)?.1))?;
        self.rows.remap_text("guid", |n| Some(texts.get(n? as usize)?.2))?;
        for (logger, provider) in
            end.inputs.all::<ListedLogger>().iter().flat_map(|l| l.providers.iter().map(move |p| (l, p)))
        {
            let name =
                provider.guid.filter(|g| provider.name.is_empty() || provider.name.contains(&g.to_string()));
            let name = name.and_then(|g| end.decoder.provider_name(g));
            self.rows.push(LoggerProviderRow {
                ts_ns: None,
                session: Some(end.strings.intern(&logger.name)),
                action: end.strings.intern("listed"),
                provider: end.strings.intern(name.as_deref().unwrap_or(&provider.name)),
                guid: provider.guid.map(|g| end.strings.intern(&g.to_string())),
                level: provider.level,
                keyword_any: provider.keyword_any.map(|k| k as i64),
                keyword_all: provider.keyword_all.map(|k| k as i64),
                property: None,
                upid: None,
                utid: None,
                source: end.strings.intern("text"),
            });
        }
        Ok(vec![self.rows.into()])
    }
}
