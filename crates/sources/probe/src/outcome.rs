//! Results as a file: what was measured, on which machine, and who was seen.

use crate::machine::Machine;
use crate::run::Made;
use crate::sample::Sample;
use crate::who::{Product, Seen, Suspect};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Name and version of the form. A new field keeps it; one that changes its meaning or goes makes a new version.
pub const SCHEMA: &str = "etwhy.probe/1";

/// Largest file of results that is read: a run with default sizes makes some hundred KB.
const MOST_BYTES: u64 = 512 << 20;

/// Everything that one `etwhy probe run` gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of etwhy.
    pub version: String,
    /// When it began, seconds since 1970 (UTC).
    pub started_utc_s: u64,
    /// How long it took.
    pub took_ns: u64,
    /// The machine.
    pub machine: Machine,
    /// Security products that were found running.
    pub products: Vec<Product>,
    /// Probes, in the order in which they ran.
    pub probes: Vec<ProbeOutcome>,
}

/// What one probe gave, in one state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProbeOutcome {
    /// Name of the probe.
    pub probe: String,
    /// `on` or `off` where `--ab` changed the machine's state before it; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Parameters with their values.
    pub parameters: BTreeMap<String, String>,
    /// Rows of `probe_run`.
    pub samples: Vec<Sample>,
    /// What the user should know of them.
    pub notes: Vec<String>,
    /// Why it ended early; empty if it did not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ended: String,
    /// Who was seen at work meanwhile, the likeliest first.
    pub suspects: Vec<Suspect>,
}

impl ProbeOutcome {
    /// What a run of a probe gave, and who was seen meanwhile.
    pub fn new(probe: &str, made: Made, seen: Seen) -> ProbeOutcome {
        let mut samples = made.samples;
        seen.timeline.fill(&mut samples, made.start, &seen.suspects);
        let mut notes = made.notes;
        notes.extend(seen.notes);
        ProbeOutcome {
            probe: probe.to_owned(),
            state: String::new(),
            parameters: made.parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            samples,
            notes,
            ended: made.error.as_ref().map(ToString::to_string).unwrap_or_default(),
            suspects: seen.suspects,
        }
    }
}

impl Outcome {
    /// Reads a file of results.
    ///
    /// # Errors
    /// A sentence that names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Outcome, String> {
        let named = |what: String| format!("{}: {what}", path.display());
        let size = std::fs::metadata(path).map_err(|e| named(e.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(named(format!("{size} bytes; results of probes have at most {MOST_BYTES}")));
        }
        let text = std::fs::read(path).map_err(|e| named(e.to_string()))?;
        Outcome::parse(&text).map_err(named)
    }

    /// Results from the text of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Outcome, String> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let none = "no results of probes (`etwhy probe run … --output FILE` writes them)";
        // Of what is no object nobody wants to know how it differs from one.
        let is_object = text.trim_ascii_start().starts_with(b"{");
        let head: Head = serde_json::from_slice(text).map_err(|error| {
            if is_object && !error.is_data() {
                format!("{none}, or damaged: {error}")
            } else {
                none.to_owned()
            }
        })?;
        match head.schema.as_str() {
            SCHEMA => serde_json::from_slice(text).map_err(|e| format!("damaged results of probes: {e}")),
            newer if newer.starts_with("etwhy.probe/") => {
                Err(format!("written as {newer}; this program reads {SCHEMA}, a newer one is needed"))
            }
            _ => Err(none.to_owned()),
        }
    }
}
