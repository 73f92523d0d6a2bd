//! .NET lock contention: how long threads waited for monitors.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::model::clr::RUNTIME;
use etwhy_table::{TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// .NET monitor contention, from `ContentionStart` to `ContentionStop` of a thread.
    pub table CLR_CONTENTION: ClrContentionRow = "clr_contention" {
        version: 1, evidence: Verified("PerfView baseline of net.4.5.x86"),
        /// Start of the wait.
        ts_ns: i64 [Ns, Time],
        /// How long it took; none if its end was not recorded.
        dur_ns: Option<i64> [Ns, Duration],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Thread that waited.
        utid: Option<i32> [None, Thread],
        /// Contention in native code of the runtime (else managed).
        native: bool [None, Flag],
    }
}

const START: u8 = 81;
const STOP: u8 = 91;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CLR_CONTENTION],
    selects: &[
        Select::new(What::Manifest(RUNTIME, 81), START),
        Select::new(What::Manifest(RUNTIME, 91), STOP),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Contention { rows: TableBuilder::new(memory), open: HashMap::default() }),
};

struct Contention {
    rows: TableBuilder<ClrContentionRow>,
    /// Open wait per thread: start, process, native.
    open: HashMap<u32, (i64, Option<u32>, bool)>,
}

impl Contention {
    fn push(&mut self, utid: u32, (start, upid, native): (i64, Option<u32>, bool), end: Option<i64>) {
        self.rows.push(ClrContentionRow {
            ts_ns: start,
            dur_ns: end.map(|end| end.saturating_sub(start)),
            upid: upid.map(|u| u as i32),
            utid: Some(utid as i32),
            native,
        });
    }
}

impl Analysis for Contention {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(utid), upid) = (cx.utid(event), cx.upid(event)) else { return };
        let native = event.fields().u64("ContentionFlags") == 1;
        let before = self.open.remove(&utid);
        if event.tag == START {
            if let Some(unfinished) = before {
                self.push(utid, unfinished, None);
            }
            self.open.insert(utid, (event.ns, upid, native));
        } else if let Some(open) = before {
            self.push(utid, open, Some(event.ns));
        }
    }

    fn finish(mut self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(utid, wait)| (wait.0, *utid));
        for (utid, wait) in open {
            self.push(utid, wait, None);
        }
        Ok(vec![self.rows.into()])
    }
}
