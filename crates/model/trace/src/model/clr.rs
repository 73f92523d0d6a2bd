//! .NET methods by address: what the runtime compiled (`MethodLoadVerbose`) and what its rundown lists.

use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_table::Sym;
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

pub(crate) fn event(event: &Event<'_>, cx: &mut Context<'_>) {
    let fields = event.fields();
    let Some(pid) = event.pid() else { return };
    let upid = cx.model.processes.at(pid, event.ns);
    let (start, size) = (fields.u64("MethodStartAddress"), fields.u64("MethodSize"));
    let method_id = fields.u64("MethodID");
    if start == 0 || size == 0 {
        return;
    }
    // The rundown repeats what the load said; a method compiled again has another address.
    if cx.model.clr.known.contains_key(&(upid, start, method_id)) {
        return;
    }
    let loaded = event.tag == LOAD && event.record.guid() == Some(RUNTIME);
    let method = Method {
        upid,
        start,
        size: u32::try_from(size).unwrap_or(u32::MAX),
        method_id,
        namespace: cx.sym_or_none(fields.text("MethodNamespace")),
        name: cx.sym_or_none(fields.text("MethodName")),
        signature: cx.sym_or_none(fields.text("MethodSignature")),
        flags: fields.u64("MethodFlags") as u32,
        load_ns: loaded.then_some(event.ns),
        seen_ns: event.ns,
    };
    let number = cx.model.clr.all.len() as u32;
    cx.model.clr.known.insert((upid, start, method_id), number);
    cx.model.clr.all.push(method);
}
