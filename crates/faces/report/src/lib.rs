//! The verdict as a document.
//!
//! [`Report`] is everything that `etwhy why` says. It is made from tables and from the outcomes of findings, and written as
//! JSON ([`json`]), in words ([`document()`]) or as one HTML file ([`html`]). The JSON has a versioned schema,
//! `docs/reference/why.schema.json`.
#![forbid(unsafe_code)]

pub mod bill;
pub mod charts;
pub mod document;
pub mod example;
pub mod flame;
pub mod html;
pub mod json;
pub mod quality;
pub mod several;

pub use bill::{BillRow, energy_unit, unobserved};
pub use charts::Charts;
pub use document::{Form, document};
pub use quality::{LedgerLine, Quality};

use etwhy_analysis::activity::Activity;
use etwhy_analysis::clr::ClrProcess;
use etwhy_analysis::cpu::Cpu;
use etwhy_analysis::disk::Disk;
use etwhy_rules::{Answer, Outcome};
use etwhy_table::Database;
use serde::{Deserialize, Serialize};

/// Name and version of the schema. A new field keeps it; one that changes meaning or goes makes a new version.
pub const SCHEMA: &str = "etwhy.why/1";

/// A question that the trace cannot answer.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    /// What cannot be determined.
    pub question: String,
    /// Why not.
    pub because: String,
    /// The command that prints the recording that would tell.
    pub record: String,
}

/// Everything that `why` says.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// One sentence.
    pub sentence: String,
    /// How good the trace is.
    pub quality: Quality,
    /// The answers to all findings: found ones first, the worst and costliest first.
    pub findings: Vec<Outcome>,
    /// What each culprit cost, the costliest first.
    pub bill: Vec<BillRow>,
    /// Where the CPU went.
    pub cpu: Cpu,
    /// .NET by process.
    pub clr: Vec<ClrProcess>,
    /// Disks.
    pub disk: Disk,
    /// What a trace without kernel events shows; null of others.
    pub activity: Option<Activity>,
    /// What cannot be determined.
    pub cannot_tell: Vec<Missing>,
    /// What charts show. Only in the HTML report: all of it stands in tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charts: Option<Charts>,
}

impl Report {
    /// Reads from tables what charts show.
    pub fn add_charts(&mut self, db: &Database) {
        self.charts = Some(Charts::read(db));
    }

    /// Of how many patterns that were asked for how many cannot be determined.
    pub fn open(&self) -> Open {
        let undetermined =
            self.findings.iter().filter(|outcome| outcome.answer == Answer::CannotTell).count();
        Open { undetermined, asked: self.findings.len() }
    }
}

/// How much of what was asked a trace has no answer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Patterns that cannot be determined.
    pub undetermined: usize,
    /// Patterns that were asked for.
    pub asked: usize,
}

impl Open {
    /// That nothing was found, which says little where little can be determined.
    pub fn nothing_found(self) -> String {
        match (self.undetermined, self.asked) {
            (0, 0) => "nothing asked".to_owned(),
            (0, _) => "nothing found".to_owned(),
            (n, all) if n == all => format!("cannot tell: none of {all} patterns can be determined"),
            (n, all) => format!("nothing found; {n} of {all} patterns cannot be determined"),
        }
    }
}
