//! The tables that bring events. All of them share the fields of [`Common`].

use crate::value::{Dist, Exact, Time};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use toml::Value;

/// One text or several.
#[derive(Clone, Debug, Default)]
pub(crate) struct OneOrMany(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<OneOrMany, D::Error> {
        match Value::deserialize(d)? {
            Value::String(one) => Ok(OneOrMany(vec![one])),
            Value::Integer(n) => Ok(OneOrMany(vec![n.to_string()])),
            other => other
                .try_into()
                .map(OneOrMany)
                .map_err(|_| D::Error::custom("expected a text or a list of texts")),
        }
    }
}

/// Frames, outermost first: a list, or one text with `;` between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Frames {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Frames, D::Error> {
        let OneOrMany(list) = OneOrMany::deserialize(d)?;
        let parts = list.iter().flat_map(|t| t.split(';')).map(str::trim).filter(|t| !t.is_empty());
        Ok(Frames(parts.map(String::from).collect()))
    }
}

/// A stack with its weight.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Weighted {
    #[serde(default)]
    pub(crate) weight: Option<f64>,
    pub(crate) frames: Frames,
}

/// On and off phases.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    pub(crate) on: Time,
    pub(crate) off: Time,
}

/// Processors: a number, a list, or a text like `"0-3,8"`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpus(pub(crate) Vec<u16>);

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Cpus, D::Error> {
        let parts: Vec<String> = match Value::deserialize(d)? {
            Value::Array(items) => items.iter().map(number_text).collect(),
            other => vec![number_text(&other)],
        };
        let mut cpus = Vec::new();
        for part in parts.iter().flat_map(|p| p.split(',')).map(str::trim) {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            match (low.trim().parse::<u16>(), high.trim().parse::<u16>()) {
                (Ok(low), Ok(high)) if low <= high && high < 2048 => cpus.extend(low..=high),
                _ => {
                    return Err(D::Error::custom(format!(
                        "{part:?} is no processor; write 3, [0, 2] or \"0-3,8\""
                    )));
                }
            }
        }
        Ok(Cpus(cpus))
    }
}

/// A number or a text as text.
fn number_text(value: &Value) -> String {
    match value {
        Value::Integer(n) => n.to_string(),
        Value::String(text) => text.clone(),
        other => other.type_str().to_string(),
    }
}

/// The fields that every event table has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    pub(crate) process: Option<OneOrMany>,
    pub(crate) thread: Option<OneOrMany>,
    pub(crate) cpus: Option<Cpus>,
    pub(crate) from: Option<Time>,
    pub(crate) to: Option<Time>,
    pub(crate) at: Option<Vec<Time>>,
    pub(crate) rate: Option<Dist>,
    pub(crate) every: Option<Dist>,
    pub(crate) count: Option<u64>,
    pub(crate) total: Option<Time>,
    pub(crate) arrival: Option<String>,
    pub(crate) burst: Option<Burst>,
    pub(crate) stack: Option<Frames>,
    pub(crate) stacks: Vec<Weighted>,
    pub(crate) stack_style: Option<String>,
    pub(crate) blocks: bool,
}

/// Moments: one or a list.
pub(crate) fn moments<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<Time>>, D::Error> {
    let one = |v: Value| v.try_into::<Time>().map_err(|e| D::Error::custom(e.message().trim().to_string()));
    match Value::deserialize(d)? {
        Value::Array(items) => items.into_iter().map(one).collect::<Result<_, _>>().map(Some),
        single => one(single).map(|t| Some(vec![t])),
    }
}

/// `[[files]]`: file names that exist without any operation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Files {
    pub(crate) names: Vec<String>,
    pub(crate) cause: Option<bool>,
}

/// A callback of another filter, inside one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InnerCallback {
    pub(crate) routine: Option<String>,
    pub(crate) major: Option<u32>,
    pub(crate) post: bool,
    pub(crate) duration: Option<Dist>,
    pub(crate) inside: Vec<InnerCallback>,
}

macro_rules! event_tables {
    ($($(#[$doc:meta])* $name:ident { $($field:ident : $kind:ty),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name {
            process: Option<OneOrMany>,
            #[serde(alias = "threads")]
            thread: Option<OneOrMany>,
            #[serde(alias = "cpu")]
            cpus: Option<Cpus>,
            from: Option<Time>,
            to: Option<Time>,
            #[serde(deserialize_with = "moments")]
            at: Option<Vec<Time>>,
            rate: Option<Dist>,
            every: Option<Dist>,
            count: Option<u64>,
            total: Option<Time>,
            arrival: Option<String>,
            burst: Option<Burst>,
            stack: Option<Frames>,
            stacks: Vec<Weighted>,
            stack_style: Option<String>,
            blocks: bool,
            pub(crate) cause: Option<bool>,
            $(pub(crate) $field: $kind,)*
        }
        impl $name {
            /// The shared fields.
            pub(crate) fn common(&self) -> Common {
                let Self { process, thread, cpus, from, to, at, rate, every, count, total, arrival, burst, stack, stacks,
                    stack_style, blocks, .. } = self.clone();
                Common { process, thread, cpus, from, to, at, rate, every, count, total, arrival, burst, stack, stacks,
                    stack_style, blocks }
            }
        }
    )* };
}

event_tables! {
    /// CPU use that the sampler sees.
    Samples {
        busy: Option<Dist>, cpu_percent: Option<Dist>, cpu_time: Option<Time>,
        priority: Option<u8>, in_dpc: bool, in_isr: bool, wait_reason: Option<String>,
    }
    /// Running, waiting and getting ready, with context switches.
    ThreadActivity {
        run: Option<Dist>, wait: Option<Dist>, ready: Option<Dist>, wait_reason: Option<String>,
        readied_by: Option<String>, dpc: Option<String>, dpc_cpus: Option<Cpus>, dpc_time: Option<Dist>, ready_stack: Option<Frames>, wait_stack: Option<Frames>, priority: Option<u8>,
        wait_mode: Option<String>,
    }
    /// DPCs and ISRs.
    Interrupt {
        routine: Option<String>, duration: Option<Dist>, kind: Option<String>, vector: Option<u16>,
        message: Option<u32>, claimed: Option<bool>,
    }
    /// System calls: enter and exit.
    Syscall {
        function: OneOrMany, duration: Option<Dist>, status: Option<Dist>, wait: Option<Dist>,
        wait_reason: Option<String>, ready: Option<Dist>, readied_by: Option<String>,
    }
    /// Calls between processes.
    Alpc {
        servers: OneOrMany, service: Vec<Dist>, server_stacks: Vec<Frames>, ready: Option<Dist>,
        duration: Option<Dist>, port: Option<String>, messages: Option<bool>, header: Option<String>,
    }
    /// Disk reads, writes and flushes.
    DiskIo {
        op: Option<String>, disk: Option<u32>, size: Option<Dist>, offset: Option<Dist>, file: Option<OneOrMany>,
        duration: Option<Dist>, flags: Option<u32>, init: Option<bool>,
    }
    /// Hard faults.
    HardFault { file: Option<OneOrMany>, size: Option<Dist>, offset: Option<Dist>, duration: Option<Dist> }
    /// Soft faults.
    PageFault { op: Option<String>, address: Option<Dist> }
    /// Address space taken and given back.
    VirtualAlloc { decommit: Option<Dist>, size: Option<Dist>, flags: Option<OneOrMany>, free_after: Option<Dist>, leak: Option<f64>, address: Option<Dist> }
    /// File system operations with their ends.
    FileIo {
        op: Option<OneOrMany>, file: Option<OneOrMany>, size: Option<Dist>, offset: Option<Dist>, duration: Option<Dist>,
        status: Option<Dist>, options: Option<u32>, pattern: Option<String>, info_class: Option<u32>,
    }
    /// Callbacks of file system filters.
    Minifilter {
        routine: Option<String>, major: Option<u32>, post: bool, duration: Option<Dist>, file: Option<OneOrMany>, status: Option<u32>,
        inside: Vec<InnerCallback>,
    }
    /// Registry operations.
    Registry { base: Option<String>, op: Option<OneOrMany>, key: Option<OneOrMany>, value: Option<OneOrMany>, duration: Option<Dist>, status: Option<Dist> }
    /// TCP and UDP.
    Network {
        protocol: Option<String>, op: Option<OneOrMany>, size: Option<Dist>, local: Option<String>,
        remote: Option<OneOrMany>,
    }
    /// Kernel pool.
    Pool { tag: Option<String>, size: Option<Dist>, paged: bool, free_after: Option<Dist>, leak: Option<f64>, free_by: Option<OneOrMany>, free_stack: Option<Frames> }
    /// Handles.
    Handle { object_type: Option<String>, close_after: Option<Dist>, leak: Option<f64> }
    /// Marks.
    Mark { text: OneOrMany }
    /// Garbage collections.
    Gc { generation: Option<Dist>, pause: Option<Dist>, reason: Option<u32>, heap: Option<Dist>, background: bool, promoted: Option<Dist> }
    /// .NET exceptions.
    Exception { kind: OneOrMany, message: Option<OneOrMany>, hresult: Option<u32> }
    /// .NET lock contention.
    Contention { duration: Option<Dist> }
    /// Methods that get compiled while the trace runs.
    Jit { methods: OneOrMany, started: bool, duration: Option<Dist>, size: Option<Dist> }
    /// Any kernel event, by its layout.
    Generic {
        r#type: Option<String>, group: Option<u8>, op: Option<u8>, version: Option<u8>, header: Option<String>,
        fields: BTreeMap<String, Value>, payload: Option<String>,
    }
    /// A TraceLogging event.
    TraceLogging {
        provider: String, guid: Option<String>, name: String, fields: BTreeMap<String, Value>, level: Option<u8>,
        keyword: Option<Exact>, opcode: Option<u8>, activity: Option<String>,
    }
    /// What threads do, step by step.
    Task { steps: Vec<super::Step>, ready: Option<Dist> }
    /// Working sets of processes.
    WorkingSet { bytes: Option<Dist>, private: Option<Dist>, commit: Option<Dist> }
    /// An event of a manifest provider, its payload given field by field.
    ManifestEvent {
        provider: String, id: u16, version: u8, channel: u8, level: Option<u8>, opcode: u8, task: u16,
        keyword: Option<Exact>, activity: Option<String>, related_activity: Option<String>, fields: Vec<Value>, payload: Option<String>,
    }
}
