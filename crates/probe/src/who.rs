//! Who it is: security products that run, and who was at work while a probe ran.

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
    /// `process`, `fanotify listener`, `minifilter`, `tracer`.
    pub kind: String,
    /// What speaks against it, most telling first; each a sentence that says where it was seen.
    pub evidence: Vec<String>,
    /// CPU time that it took while the probe ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Time that the probe's threads stood waiting for it, as far as it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ns: Option<u64>,
    /// `proven` (the probe was seen waiting for it), `likely` (it must answer what the probe asks), `possible` (it was busy
    /// meanwhile).
    pub confidence: String,
}

/// Looks around while a probe runs.
pub struct Watch {}

impl Watch {
    /// Begins to look.
    pub fn start() -> Watch {
        Watch {}
    }

    /// Ends it, and says who was seen.
    pub fn finish(self) -> Vec<Suspect> {
        Vec::new()
    }
}

/// Security products that run on this machine.
pub fn products() -> Vec<Product> {
    Vec::new()
}
