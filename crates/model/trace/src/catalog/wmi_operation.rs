//! WMI operations: which program asks what.
//!
//! # How it is computed
//! Microsoft-Windows-WMI-Activity tells of each operation when the service begins it (event 11), with the process that
//! asked. The method and the query are parts of its text: `Start IWbemServices::ExecQuery - root\cimv2 : SELECT …`.
//!
//! Layout: as the provider's manifest of Windows 10 and 11 publishes it; no public trace holds these events.
//!
//! # What fools it
//! Queries from other machines have the id of a process there: they are no process of this trace. What an operation costs
//! shows as processor time of `WmiPrvSE.exe`, which serves many.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// WMI operations that were begun.
    pub table WMI_OPERATION: WmiOperationRow = "wmi_operation" {
        sorted_by: "ts_ns", version: 1, evidence: Documented,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Process that asked; null for other machines.
        upid: Option<i32> [None, Process],
        /// Method: ExecQuery, GetObject, CreateInstanceEnum, ...
        method: Sym [None, Kind],
        /// What was asked, mostly a query.
        query: Option<Sym> [None, Name],
        /// Namespace.
        namespace: Option<Sym> [None, Path],
        /// User that asked.
        user: Option<Sym> [None, Name],
        /// Machine that asked, if it is another one.
        machine: Option<Sym> [None, Name],
    }
}

/// `Microsoft-Windows-WMI-Activity`.
const WMI: Guid = Guid::from_text("1418ef04-b0b4-4623-bf7e-d74ab47bbdaa");

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&WMI_OPERATION],
    selects: &[Select::new(What::Manifest(WMI, 11), 0)],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Operations { rows: TableBuilder::new(memory) }),
};

struct Operations {
    rows: TableBuilder<WmiOperationRow>,
}

/// Method and query of the text.
fn parts(text: &str) -> (&str, &str) {
    let (head, query) = text.split_once(" : ").unwrap_or((text, ""));
    let call = head.split(" - ").next().unwrap_or(head);
    let method = call.rsplit("::").next().unwrap_or(call);
    (method.trim(), query.trim())
}

impl Analysis for Operations {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let Some(text) = fields.non_empty("Operation") else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let local = fields.u32("IsLocal").is_none_or(|local| local != 0);
        let pid = fields.u32("ClientProcessId").filter(|&pid| local && pid != 0);
        let (method, query) = parts(&text);
        let machine = fields.non_empty("ClientMachine").filter(|_| !local);
        self.rows.push(WmiOperationRow {
            ts_ns: event.ns,
            upid: pid.map(|pid| cx.model.processes.at(pid, event.ns) as i32),
            method: cx.sym(method),
            query: (!query.is_empty()).then(|| cx.sym(query)),
            namespace: fields.non_empty("NamespaceName").map(|name| cx.sym(name)),
            user: fields.non_empty("User").map(|name| cx.sym(name)),
            machine: machine.map(|name| cx.sym(name)),
        });
    }

    fn finish(self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        Ok(vec![self.rows.into()])
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_text_comes_apart() {
        let text =
            r"Start IWbemServices::ExecQuery - root\cimv2 : SELECT * FROM Win32_Process WHERE a = ' : '";
        assert_eq!(super::parts(text), ("ExecQuery", "SELECT * FROM Win32_Process WHERE a = ' : '"));
        assert_eq!(super::parts("Start IWbemServices::Connect"), ("Connect", ""));
        assert_eq!(super::parts(""), ("", ""));
    }
}
