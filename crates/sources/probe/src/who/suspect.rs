//! Suspects, and how sure that is.

use serde::{Deserialize, Serialize};

/// A security product, or a part of one, that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Its name: `ClamAV on-access scanner`.
    pub name: String,
    /// Who makes it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// `process`, `fanotify listener`, `minifilter`, `service`.
    pub kind: String,
    /// Version, where the system tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How it was found, so that anybody can look: `/proc/123/fdinfo/4: mask 8030000`.
    pub evidence: String,
}

/// Somebody who was at work while a probe ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// Name of the program or driver.
    pub name: String,
    /// Number of the process; absent for drivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// `process`, `fanotify listener`, `minifilter`, `tracer`, `library inside this program`, `code inside this program`.
    pub kind: String,
    /// What speaks against it, most telling first; each a sentence that says where it was seen.
    pub evidence: Vec<String>,
    /// CPU time that it took while the probe ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Time that the probe's threads stood waiting for it, as far as it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ns: Option<u64>,
    /// `proven` (the probe was seen waiting for it), `likely` (it must answer what the probe asks), `possible` (for a
    /// reason that the evidence says: a known product or somebody who is told of what the probe does was at work, a library inside the
    /// program replaces what the probe calls or is a known product's, somebody had the processor or disk that the probe was short of).
    pub confidence: String,
}

/// The probe was seen waiting for it.
pub const PROVEN: &str = "proven";

/// It must answer what the probe asks, or it works for somebody who must.
pub const LIKELY: &str = "likely";

/// It is a known product that was at work, is told of what the probe does, or had the processor or disk that the probe was short of.
pub const POSSIBLE: &str = "possible";
