//! `[[task]]`: what threads do step by step, and the things that they wait for.

use super::{Cpus, Frames, OneOrMany};
use crate::value::{Dist, Time};
use serde::Deserialize;

/// `[[lock]]`: one thread has it, the others wait in a row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Lock {
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
    pub(crate) cause: Option<bool>,
}

/// `[[queue]]`: items that threads put and take.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Queue {
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
    pub(crate) items: u64,
    pub(crate) cause: Option<bool>,
}

/// `[[disk]]`: transfers wait for those before them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DiskQueue {
    pub(crate) number: u32,
    pub(crate) service: Option<Dist>,
    pub(crate) depth: Option<u32>,
    pub(crate) cause: Option<bool>,
}

/// One step of a task: one of the first ten fields says what, the others how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    pub(crate) run: Option<Dist>,
    pub(crate) sleep: Option<Dist>,
    pub(crate) acquire: Option<String>,
    pub(crate) release: Option<String>,
    pub(crate) put: Option<String>,
    pub(crate) take: Option<String>,
    pub(crate) read: Option<OneOrMany>,
    pub(crate) write: Option<OneOrMany>,
    pub(crate) flush: Option<OneOrMany>,
    pub(crate) fault: Option<OneOrMany>,
    pub(crate) stack: Option<Frames>,
    pub(crate) items: Option<Dist>,
    pub(crate) size: Option<Dist>,
    pub(crate) offset: Option<Dist>,
    pub(crate) service: Option<Dist>,
    pub(crate) disk: Option<u32>,
}

impl Step {
    /// True if it reads, writes or flushes a file.
    pub(crate) fn is_file(&self) -> bool {
        self.read.is_some() || self.write.is_some() || self.flush.is_some()
    }
}

/// A time range in which records are lost.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Loss {
    pub(crate) from: Option<Time>,
    pub(crate) to: Option<Time>,
    pub(crate) cpus: Option<Cpus>,
    pub(crate) kind: Option<String>,
    pub(crate) burst: Option<super::Burst>,
}
