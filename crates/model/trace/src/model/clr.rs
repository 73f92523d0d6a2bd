//! .NET methods by address: what the runtime compiled (`MethodLoadVerbose`) and what its rundown lists.

use super::process::Processes;
use crate::event::fields::Event;
use crate::event::select::{Select, What};
use etwhy_base::Guid;
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;

/// `Microsoft-Windows-DotNETRuntime`.
pub const RUNTIME: Guid = Guid::from_text("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
/// `Microsoft-Windows-DotNETRuntimeRundown`.
pub const RUNDOWN: Guid = Guid::from_text("a669021c-c450-4609-a035-5af59af4df18");

const LOAD: u8 = 1;
const DYNAMIC_LOAD: u8 = 2;

pub(crate) const SELECTS: &[Select] = &[
    Select::new(What::Manifest(RUNTIME, 143), LOAD),
    // Unload carries the same facts: enough when the load was before the trace.
    Select::new(What::Manifest(RUNTIME, 144), DYNAMIC_LOAD),
    Select::new(What::Manifest(RUNDOWN, 143), LOAD),
    Select::new(What::Manifest(RUNDOWN, 144), LOAD),
];

/// One method body in memory.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// Process instance.
    pub upid: u32,
    /// First address of its code.
    pub start: u64,
    /// Bytes of code.
    pub size: u32,
    /// `MethodID` of the runtime.
    pub method_id: u64,
    /// Namespace and type.
    pub namespace: Option<Sym>,
    /// Name.
    pub name: Option<Sym>,
    /// Signature.
    pub signature: Option<Sym>,
    /// `MethodFlags`: 1 dynamic, 2 generic, 4 has shared generic code, 8 jitted.
    pub flags: u32,
    /// When it was loaded; `None` for rundown at the end.
    pub load_ns: Option<i64>,
    /// When this was first said.
    pub seen_ns: i64,
}

/// All methods.
#[derive(Clone, Debug, Default)]
pub struct Methods {
    all: Vec<Method>,
    known: HashMap<(u32, u64, u64), u32>,
}

impl Methods {
    /// All methods in the order in which they were first named.
    pub fn all(&self) -> &[Method] {
        &self.all
    }

    /// Number of the body of a method (by process and `MethodID`) that begins at `start`.
    pub(crate) fn number(&self, upid: u32, start: u64, method_id: u64) -> Option<u32> {
        self.known.get(&(upid, start, method_id)).copied()
    }
}

pub(crate) fn event(
    event: &Event<'_>,
    methods: &mut Methods,
    processes: &mut Processes,
    strings: &mut Strings,
) {
    let fields = event.fields();
    let Some(pid) = event.pid() else { return };
    let upid = processes.at(pid, event.ns);
    let (start, size) = (fields.u64("MethodStartAddress"), fields.u64("MethodSize"));
    let method_id = fields.u64("MethodID");
    if start == 0 || size == 0 {
        return;
    }
    // The rundown repeats what the load said; a method compiled again has another address.
    if methods.known.contains_key(&(upid, start, method_id)) {
        return;
    }
    let loaded = event.tag == LOAD && event.record.guid() == Some(RUNTIME);
    let method = Method {
        upid,
        start,
        size: u32::try_from(size).unwrap_or(u32::MAX),
        method_id,
        namespace: strings.intern_non_empty(&fields.text("MethodNamespace")),
        name: strings.intern_non_empty(&fields.text("MethodName")),
        signature: strings.intern_non_empty(&fields.text("MethodSignature")),
        flags: fields.u64("MethodFlags") as u32,
        load_ns: loaded.then_some(event.ns),
        seen_ns: event.ns,
    };
    let number = methods.all.len() as u32;
    methods.known.insert((upid, start, method_id), number);
    methods.all.push(method);
}
