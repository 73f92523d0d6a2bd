//! .NET compilation at run time: how long each method took.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::model::clr::RUNTIME;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Methods compiled at run time, from `MethodJittingStarted` to `MethodLoadVerbose`.
    pub table CLR_JIT: ClrJitRow = "clr_jit" {
        version: 1, evidence: Verified("PerfView baselines of net.4.5.2.x64 and net.4.5.x86"),
        /// Start of the compilation.
        ts_ns: i64 [Ns, Time],
        /// How long it took.
        dur_ns: i64 [Ns, Duration],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Thread that compiled.
        utid: Option<i32> [None, Thread],
        /// Namespace and type.
        namespace: Option<Sym> [None, Name],
        /// Method.
        name: Option<Sym> [None, Name],
        /// Signature.
        signature: Option<Sym> [None, Name],
        /// Bytes of intermediate code.
        il_bytes: i64 [Bytes, Bytes],
        /// Bytes of native code.
        native_bytes: i64 [Bytes, Bytes],
    }
}

const STARTED: u8 = 145;
const LOADED: u8 = 143;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CLR_JIT],
    selects: &[
        Select::new(What::Manifest(RUNTIME, 145), STARTED),
        Select::new(What::Manifest(RUNTIME, 143), LOADED),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Jit { rows: TableBuilder::new(memory), open: HashMap::default() }),
};

struct Jit {
    rows: TableBuilder<ClrJitRow>,
    /// Start and size of the intermediate code by (process, method).
    open: HashMap<(u32, u64), (i64, i64)>,
}

impl Analysis for Jit {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(upid) = cx.upid(event) else { return };
        let fields = event.fields();
        let method = (upid, fields.u64("MethodID"));
        if event.tag == STARTED {
            self.open.insert(method, (event.ns, fields.u64("MethodILSize") as i64));
            return;
        }
        let Some((start, il_bytes)) = self.open.remove(&method) else { return };
        let utid = cx.utid(event);
        self.rows.push(ClrJitRow {
            ts_ns: start,
            dur_ns: event.ns.saturating_sub(start),
            upid: Some(upid as i32),
            utid: utid.map(|u| u as i32),
            namespace: cx.sym_or_none(fields.text("MethodNamespace")),
            name: cx.sym_or_none(fields.text("MethodName")),
            signature: cx.sym_or_none(fields.text("MethodSignature")),
            il_bytes,
            native_bytes: fields.u64("MethodSize") as i64,
        });
    }

    fn finish(self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        Ok(vec![self.rows.into()])
    }
}
