//! How receive side scaling (RSS) should be set up on this machine: a plan for each network card.
//!
//! # How it is computed
//!
//! RSS spreads the packets of a card over a power of two of cores, uses one hyper-thread of each, and should stay on the card's own
//! NUMA node. So cards are dealt to nodes evenly, and each gets the largest power of two of cores that lets all cards of
//! a node have cores of their own. With 24 logical processors, two nodes, two threads per core and six cards that is three
//! cards per node, two cores each, from cores 0, 2, 4, 6, 8, 10. The registry counts logical processors: with two threads per core
//! the base *processor* is twice the base core.
//!
//! Traces record cards (`trace.nics`) and NUMA nodes, but neither threads per core nor the node of a card:
//!
//! * Threads per core: if the network's DPCs are hot on several processors and all of these are even, RSS skips the odd ones, which
//!   are hyper-threads (`threads_basis` is `seen`); if odd ones are hot too, there are none (`seen`). Else two are assumed.
//! * The node of a card is assumed; `Get-NetAdapterRss` shows it (`NumaNode`).
//! * Without recorded cards one is assumed.
//!
//! # What fools it
//!
//! Cards that are listed and not plugged in. Virtual adapters, tunnels and loopbacks are left out by their names. Members of a team
//! should not share cores, which is what the plan gives. On virtual machines the host's switch decides.

use crate::derive::DerivedSpec;
use crate::derived::interrupt_spread::InterruptSpreadRow;
use crate::fold::freeze_plain;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::cpu_time::CpuRow;
use etwhy_trace::catalog::trace::TraceRow;
use std::collections::BTreeMap;

define_table! {
    /// A plan for receive side scaling: processors for each network card.
    ///
    /// Empty if the processors are not known.
    pub table RSS_ADVICE: RssAdviceRow = "rss_advice" {
        version: 1,
        /// Number of the card in the plan.
        nic: i32 [None, Other],
        /// The card; null if none is recorded.
        name: Option<Sym> [None, Name],
        /// Cards in the plan.
        nics: i32 [Count, Count],
        /// recorded or assumed: where the number of cards comes from.
        nics_basis: Sym [None, Kind],
        /// Hyper-threads of a core.
        threads_per_core: i32 [Count, Count],
        /// seen (in where the network's DPCs ran) or assumed.
        threads_basis: Sym [None, Kind],
        /// Node on which the plan puts the card: `*NumaNodeId`.
        numa_node: i32 [None, Other],
        /// Processor group: `*RssBaseProcGroup`.
        group: i32 [None, Other],
        /// First core, counted over the machine.
        base_core: i32 [None, Other],
        /// First logical processor in its group: `*RssBaseProcNumber`.
        base_processor: i32 [None, Other],
        /// Last logical processor in its group: `*RssMaxProcNumber`.
        max_processor: i32 [None, Other],
        /// Cores, a power of two: `*MaxRssProcessors`.
        max_rss_processors: i32 [Count, Count],
        /// First cores of all cards, in order.
        base_cores: Sym [None, Message],
        /// First logical processors of all cards, in order.
        base_processors: Sym [None, Message],
        /// What to set in the registry for all cards: where, which values, and what to do then.
        registry: Sym [None, Message],
        /// The same as commands for PowerShell.
        commands: Sym [None, Message],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&RSS_ADVICE],
    reads: reads::<(TraceRow, CpuRow, InterruptSpreadRow)>,
    on_demand: false,
    make,
};

/// A logical processor.
#[derive(Clone, Copy)]
struct Processor {
    group: i32,
    number: i32,
}

/// Where one card goes.
#[derive(Debug, PartialEq, Eq)]
struct RssPlacement {
    node: i32,
    group: i32,
    base_core: i32,
    base_processor: i32,
    max_processor: i32,
    cores: i32,
}

/// The class of network adapters: a key of four digits for each (`NetCfgInstanceId` and `DriverDesc` say whose), with strings.
const WHERE_TO_SET: &str = r"In the adapter's four-digit key under HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318} (its DriverDesc names the adapter), set these strings and then restart the adapter";

/// More cards than any machine has.
const MOST_NICS: usize = 64;

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<RssAdviceRow>::new(memory);
    let mut strings = Strings::new();
    let nodes = nodes(db);
    let recorded = cards(db);
    let (threads, seen) = threads(db);
    let count = recorded.len().clamp(1, MOST_NICS);
    let plan = plan(&nodes, threads, count);
    let list = |of: &dyn Fn(&RssPlacement) -> i32| {
        plan.iter().map(|place| of(place).to_string()).collect::<Vec<_>>().join(", ")
    };
    let name = |at: usize| recorded.get(at).map(String::as_str);
    let cores = strings.intern(&list(&|p| p.base_core));
    let processors = strings.intern(&list(&|p| p.base_processor));
    let registry: Vec<String> = plan
        .iter()
        .enumerate()
        .map(|(at, p)| {
            let whose = name(at).map_or_else(String::new, |name| format!("{name}: "));
            format!(
                "{whose}*RssBaseProcNumber={}, *RssBaseProcGroup={}, *MaxRssProcessors={}, *NumaNodeId={}",
                p.base_processor, p.group, p.cores, p.node
            )
        })
        .collect();
    let commands: Vec<String> = plan
        .iter()
        .enumerate()
        .map(|(at, p)| {
            // Names come from the trace: a quote in them would end the text of the command.
            let who = name(at).map_or("-Name '*'".to_owned(), |name| {
                format!("-InterfaceDescription '{}'", name.replace('\'', "''"))
            });
            format!(
                "Set-NetAdapterRss {who} -BaseProcessorGroup {} -BaseProcessorNumber {} -MaxProcessors {} -NumaNode {}",
                p.group, p.base_processor, p.cores, p.node
            )
        })
        .collect();
    let registry = strings.intern(&format!("{WHERE_TO_SET}: {}", registry.join("; ")));
    let commands = strings.intern(&commands.join("; "));
    let basis = |known, word| if known { word } else { "assumed" };
    let nics_basis = strings.intern(basis(!recorded.is_empty(), "recorded"));
    let threads_basis = strings.intern(basis(seen, "seen"));
    for (at, place) in plan.iter().enumerate() {
        rows.push(RssAdviceRow {
            nic: at as i32,
            name: name(at).map(|name| strings.intern(name)),
            nics: count as i32,
            nics_basis,
            threads_per_core: threads as i32,
            threads_basis,
            numa_node: place.node,
            group: place.group,
            base_core: place.base_core,
            base_processor: place.base_processor,
            max_processor: place.max_processor,
            max_rss_processors: place.cores,
            base_cores: cores,
            base_processors: processors,
            registry,
            commands,
        });
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

/// Processors by node, in order.
fn nodes(db: &Database) -> BTreeMap<i32, Vec<Processor>> {
    let mut nodes: BTreeMap<i32, Vec<Processor>> = BTreeMap::new();
    for row in &db.read_or_empty::<CpuRow>() {
        let narrow = |n: Option<i64>| n.and_then(|n| i32::try_from(n).ok());
        let Ok(cpu) = i32::try_from(row.cpu()) else { continue };
        let processor = Processor {
            group: narrow(row.group()).unwrap_or(0),
            number: narrow(row.number()).unwrap_or(cpu),
        };
        nodes.entry(narrow(row.numa_node()).unwrap_or(0)).or_default().push(processor);
    }
    nodes
}

/// Network cards that are not virtual, in order.
fn cards(db: &Database) -> Vec<String> {
    const VIRTUAL: [&str; 14] = [
        "loopback",
        "isatap",
        "teredo",
        "6to4",
        "tunnel",
        "virtual",
        "wan miniport",
        "bluetooth",
        "kernel debug",
        "wi-fi",
        "wireless",
        "hyper-v",
        "multiplexor",
        "tap-",
    ];
    let mut cards = Vec::new();
    if let Some(nics) = db.read_or_empty::<TraceRow>().first().and_then(|trace| trace.nics()) {
        for card in nics.lines().map(str::trim).filter(|card| !card.is_empty()) {
            let lower = card.to_lowercase();
            if !VIRTUAL.iter().any(|word| lower.contains(word)) && cards.len() < MOST_NICS {
                cards.push(card.to_owned());
            }
        }
    }
    cards
}

/// Threads per core, and whether the trace shows them.
fn threads(db: &Database) -> (usize, bool) {
    let mut hot: Vec<i64> = Vec::new();
    for row in db.read_or_empty::<InterruptSpreadRow>().iter().filter(|&row| row.class() == "dpc") {
        if row.module().is_some_and(|m| m.eq_ignore_ascii_case("ndis.sys")) {
            hot.extend(row.hot_processors().split(", ").filter_map(|n| n.parse::<i64>().ok()));
        }
    }
    match hot.len() {
        0 | 1 => (2, false),
        _ if hot.iter().all(|cpu| cpu % 2 == 0) => (2, true),
        _ => (1, true),
    }
}

/// Deals cards to nodes, and the cores of each node to its cards.
fn plan(nodes: &BTreeMap<i32, Vec<Processor>>, threads: usize, nics: usize) -> Vec<RssPlacement> {
    let mut plan = Vec::new();
    let mut first_core = 0;
    let nodes_count = nodes.len().max(1);
    for (at, (&node, processors)) in nodes.iter().enumerate() {
        let cores: Vec<Processor> = processors.iter().copied().step_by(threads.max(1)).collect();
        let here = nics / nodes_count + usize::from(at < nics % nodes_count);
        let share = (cores.len() / here.max(1)).max(1);
        // NDIS gives a card 16 processors at most by default.
        let each = (1usize << share.ilog2()).min(16);
        for card in 0..here {
            // More cards than cores: they share.
            let base = (card * each) % cores.len().max(1);
            let last = (base + each - 1).min(cores.len().saturating_sub(1));
            let (Some(low), Some(high)) = (cores.get(base), cores.get(last)) else { continue };
            plan.push(RssPlacement {
                node,
                group: low.group,
                base_core: (first_core + base) as i32,
                base_processor: low.number,
                max_processor: high.number,
                cores: each as i32,
            });
        }
        first_core += cores.len();
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{derived, shown, table};
    use etwhy_testkit::Are as _;

    fn machine(nodes: i32, each: i32) -> BTreeMap<i32, Vec<Processor>> {
        let of = |node: i32| {
            (node * each..(node + 1) * each).map(|number| Processor { group: 0, number }).collect()
        };
        (0..nodes).map(|node| (node, of(node))).collect()
    }

    #[test]
    fn the_registry_is_one_sentence_with_its_key() {
        use etwhy_table::Value::I64 as N;
        let mut db = Database::new();
        let processors: Vec<_> = (0..4).map(|cpu| vec![N(cpu), N(0)]).collect();
        db.insert(table("cpu", "cpu numa_node", &processors));
        derived(&mut db, &["rss_advice"]);
        let told = shown(db.get("rss_advice").unwrap(), "registry", 1);
        told.are(&[
            r"In the adapter's four-digit key under HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318} (its DriverDesc names the adapter), set these strings and then restart the adapter: *RssBaseProcNumber=0, *RssBaseProcGroup=0, *MaxRssProcessors=2, *NumaNodeId=0",
        ]);
    }

    #[test]
    fn six_cards_on_two_nodes_get_two_cores_each() {
        let plan = plan(&machine(2, 12), 2, 6);
        let of = |get: fn(&RssPlacement) -> i32| plan.iter().map(get).collect::<Vec<_>>();
        assert_eq!(of(|p| p.base_core), [0, 2, 4, 6, 8, 10]);
        assert_eq!(of(|p| p.base_processor), [0, 4, 8, 12, 16, 20]);
        assert_eq!(of(|p| p.max_processor), [2, 6, 10, 14, 18, 22]);
        assert_eq!(of(|p| p.node), [0, 0, 0, 1, 1, 1]);
        assert_eq!(of(|p| p.cores), [2; 6]);
    }

    #[test]
    fn a_power_of_two_of_cores_on_one_node() {
        let one = plan(&machine(2, 12), 1, 1);
        one.are(&[RssPlacement {
            node: 0,
            group: 0,
            base_core: 0,
            base_processor: 0,
            max_processor: 7,
            cores: 8,
        }]);
        let crowded = plan(&machine(1, 2), 2, 3);
        assert_eq!(crowded.iter().map(|p| p.base_core).collect::<Vec<_>>(), [0, 0, 0]);
        assert!(plan(&BTreeMap::new(), 2, 3).is_empty());
    }
}
