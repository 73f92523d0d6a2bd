//! What could not be decoded, and which file would describe it.
//!
//! # How it is computed
//! Kinds of events that nothing describes (`event_type.decoded_by` is none), by provider and by how their records are described:
//!
//! * `manifest`: events of manifest-based providers and of EventSource. Providers of Windows have their manifest as a resource of a
//!   DLL; PerfView writes it as XML on a machine that has the provider
//!   (<https://github.com/microsoft/perfview/blob/main/documentation/TraceEvent/TraceEventProgrammersGuide.md>), and `--manifests` reads
//!   that.
//! * `wpp`: messages whose formats are in the private PDB of the program. `tracepdb` of the Windows Driver Kit writes them as a TMF file
//!   that is named by the message GUID (<https://learn.microsoft.com/windows-hardware/drivers/devtest/tracepdb-commands>), and `--tmf`
//!   reads that.
//! * `classic`, `kernel`, `tracelogging`, `unknown`: no file would help.
//!
//! Providers are named by what the trace says, by manifests, and by the public names that ship with the program
//! (`crates/formats/decode/src/builtin`); others stand with their GUID.
//!
//! # What fools it
//! A manifest of another version of the provider may lack events or describe other layouts. Events that are described and do not fit
//! their description are not here: see `ledger`, and `event_type.verified`.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_base::Guid;
use etwhy_decode::EventKey;
use etwhy_decode::schema::DecodedBy;
use etwhy_etl::abi::guids::WRITTEN_BY_MERGE;
use etwhy_table::{Sym, TableBuilder, define_table};
use std::collections::BTreeMap;
use std::sync::Arc;

define_table! {
    /// Providers whose events could not be decoded, and which file would describe them.
    pub table UNDECODED: UndecodedRow = "undecoded" {
        version: 1, evidence: Verified("an independent reader's counts for every trace of the corpus"),
        /// Provider; its GUID if no name is known.
        provider: Sym [None, Name],
        /// Provider GUID; class GUID of classic events; message GUID of WPP messages.
        guid: Option<Sym> [None, Guid],
        /// What should describe it: manifest, wpp, classic, kernel, tracelogging, unknown.
        kind: Sym [None, Kind],
        /// Kinds of events that nothing describes.
        event_types: i64 [Count, Count],
        /// Their events.
        count: i64 [Count, Count],
        /// Bytes of their records, headers included.
        bytes: i64 [Bytes, Bytes],
        /// Share of all events of the trace.
        share_percent: Option<f64> [Percent, Other],
        /// Why they could not be decoded.
        reason: Sym [None, Message],
        /// What would describe them; none if no file would.
        needs: Option<Sym> [None, Message],
        /// Option that reads it.
        option: Option<Sym> [None, Kind],
        /// Command that writes it on a Windows machine that has the provider, or the PDB.
        command: Option<Sym> [None, Message],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&UNDECODED],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Undecoded { rows: TableBuilder::new(memory) }),
};

struct Undecoded {
    rows: TableBuilder<UndecodedRow>,
}

/// What should describe an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Manifest,
    Wpp,
    Classic,
    Kernel,
    TraceLogging,
    Unknown,
}

/// What is told of a kind.
struct Advice {
    kind: &'static str,
    reason: &'static str,
    needs: Option<String>,
    option: Option<&'static str>,
    command: Option<String>,
}

impl Kind {
    fn of(key: &EventKey) -> Kind {
        match key {
            EventKey::Event { .. } => Kind::Manifest,
            EventKey::Wpp { .. } | EventKey::WppComponent { .. } => Kind::Wpp,
            EventKey::Classic { .. } => Kind::Classic,
            EventKey::Kernel { .. } => Kind::Kernel,
            EventKey::TraceLogging { .. } => Kind::TraceLogging,
            EventKey::Unknown { .. } | EventKey::Other => Kind::Unknown,
        }
    }

    fn advice(self, provider: &str, guid: Option<Guid>) -> Advice {
        let nothing = |kind, reason| Advice { kind, reason, needs: None, option: None, command: None };
        match self {
            Kind::Manifest => Advice {
                kind: "manifest",
                reason: "neither the trace nor etwhy has the provider's manifest, or it lacks these events",
                needs: Some(format!("manifest of {provider}")),
                option: Some("--manifests"),
                command: typed(provider)
                    .map(|name| format!("PerfView /nogui userCommand DumpRegisteredManifest {name}")),
            },
            Kind::Wpp => Advice {
                kind: "wpp",
                reason: "the formats of WPP messages are in the PDB of the program that wrote them",
                needs: guid.map(|guid| format!("{guid}.tmf")),
                option: guid.map(|_| "--tmf"),
                command: guid.map(|_| "tracepdb -f PROGRAM.pdb -p FOLDER".to_owned()),
            },
            Kind::Classic => nothing("classic", "the layout of this classic (MOF) class is not public"),
            Kind::Kernel => nothing("kernel", "the layout of this kernel event is not public"),
            Kind::TraceLogging => {
                nothing("tracelogging", "the description that the record brings along is damaged")
            }
            Kind::Unknown => nothing("unknown", "the header of the record does not say whose it is"),
        }
    }
}

/// A name as it is typed in a command prompt; none if it has characters that a shell could take for more.
fn typed(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if name.is_empty() || name.starts_with(['-', '/']) || !name.chars().all(|c| plain(c) || c == ' ') {
        return None;
    }
    Some(if name.contains(' ') { format!("\"{name}\"") } else { name.to_owned() })
}

#[derive(Default)]
struct Sum {
    provider: Arc<str>,
    types: i64,
    count: i64,
    bytes: i64,
}

impl Analysis for Undecoded {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        // Providers without a GUID (messages of WPP components) are told apart by their name.
        /// Kind, and who wrote it, as far as that is known.
        type Writer = (Kind, Option<Guid>, Option<Arc<str>>);
        let mut sums: BTreeMap<Writer, Sum> = BTreeMap::new();
        let mut all = 0_i64;
        for index in 0..end.types.len() as u32 {
            let (Some(ty), Some(info)) = (end.types.get(index), end.types.describe(index, end.decoder))
            else {
                continue;
            };
            all = all.saturating_add(number(info.count));
            // What a merge adds describes other events, or is read elsewhere.
            let added = info.guid.is_some_and(|guid| WRITTEN_BY_MERGE.contains(&guid));
            if info.decoded_by != DecodedBy::None || added {
                continue;
            }
            let name = info.guid.is_none().then(|| Arc::clone(&info.provider));
            let sum = sums.entry((Kind::of(&ty.key), info.guid, name)).or_default();
            sum.provider = info.provider;
            sum.types += 1;
            sum.count = sum.count.saturating_add(number(info.count));
            sum.bytes = sum.bytes.saturating_add(number(info.bytes));
        }
        let mut list: Vec<_> = sums.into_iter().collect();
        list.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(&b.0)));
        for ((kind, guid, _), sum) in list {
            let advice = kind.advice(&sum.provider, guid);
            let mut text = |text: &str| end.strings.intern(text);
            self.rows.push(UndecodedRow {
                provider: text(&sum.provider),
                guid: guid.map(|guid| text(&guid.to_string())),
                kind: text(advice.kind),
                event_types: sum.types,
                count: sum.count,
                bytes: sum.bytes,
                share_percent: (all > 0).then(|| sum.count as f64 * 100.0 / all as f64),
                reason: text(advice.reason),
                needs: advice.needs.as_deref().map(&mut text),
                option: advice.option.map(&mut text),
                command: advice.command.as_deref().map(&mut text),
            });
        }
        Ok(vec![self.rows.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_what_an_option_reads() {
        let guid = Guid::from_text("2818ef08-6a54-396f-2244-5a6ea4a98cf0");
        let wpp = Kind::Wpp.advice("2818ef08-6a54-396f-2244-5a6ea4a98cf0", Some(guid));
        assert_eq!(wpp.needs.as_deref(), Some("2818ef08-6a54-396f-2244-5a6ea4a98cf0.tmf"));
        assert_eq!(wpp.option, Some("--tmf"));
        // A component has no GUID, and formats are found by that only.
        assert!(Kind::Wpp.advice("WPP component 0x3", None).option.is_none());
        let manifest = Kind::Manifest.advice("Microsoft-Windows-HttpService", None);
        assert_eq!(
            manifest.command.as_deref(),
            Some("PerfView /nogui userCommand DumpRegisteredManifest Microsoft-Windows-HttpService")
        );
        for kind in [Kind::Classic, Kind::Kernel, Kind::TraceLogging, Kind::Unknown] {
            let advice = kind.advice("anything", Some(guid));
            assert!(advice.option.is_none() && advice.needs.is_none() && advice.command.is_none());
        }
    }

    #[test]
    fn names_that_a_shell_could_take_for_more_are_not_to_be_typed() {
        assert_eq!(
            typed("Microsoft-Windows-User Profiles Service").as_deref(),
            Some("\"Microsoft-Windows-User Profiles Service\"")
        );
        for name in ["", "a&calc", "a|b", "%PATH%", "/nogui", "-x", "a\"b", "a\nb", "$(x)", "`x`"] {
            assert_eq!(typed(name), None, "{name}");
        }
    }
}
