//! .NET methods: what was compiled or listed in a rundown, and where it stands in memory.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// .NET methods by address.
    pub table CLR_METHOD: ClrMethodRow = "clr_method" {
        version: 1, evidence: Verified("PerfView baselines of net.4.5.2.x64 and net.4.5.x86"),
        /// Process.
        upid: i32 [None, Process],
        /// Namespace and type.
        namespace: Option<Sym> [None, Name],
        /// Method.
        name: Option<Sym> [None, Name],
        /// Signature.
        signature: Option<Sym> [None, Name],
        /// First address of its code.
        start_address: i64 [Address, Address],
        /// Bytes of code.
        size_bytes: i64 [Bytes, Bytes],
        /// Compiled at run time (else ahead of time).
        jitted: bool [None, Flag],
        /// Dynamic method.
        dynamic: bool [None, Flag],
        /// Generic method.
        generic: bool [None, Flag],
        /// When it was loaded, if that happened in the trace.
        load_ns: Option<i64> [Ns, Time],
        /// `MethodID` of the runtime.
        method_id: i64 [Address, Address],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CLR_METHOD],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Methods { rows: TableBuilder::new(memory) }),
};

struct Methods {
    rows: TableBuilder<ClrMethodRow>,
}

impl Analysis for Methods {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        for method in end.model.clr.all() {
            self.rows.push(ClrMethodRow {
                upid: method.upid as i32,
                namespace: method.namespace,
                name: method.name,
                signature: method.signature,
                start_address: method.start as i64,
                size_bytes: i64::from(method.size),
                jitted: method.flags & 8 != 0,
                dynamic: method.flags & 1 != 0,
                generic: method.flags & 2 != 0,
                load_ns: method.load_ns,
                method_id: method.method_id as i64,
            });
        }
        Ok(vec![self.rows.into()])
    }
}
