//! .NET lock contention: how long threads waited for monitors.
//!
//! # How it is computed
//! `ContentionStart` and `ContentionStop` of a thread. A thread waits for one monitor at a time, but may have to wait for a lock of the runtime's own
//! meanwhile: managed and native waits are paired apart.
//!
//! # What fools it
//! Where the end of a wait was not recorded, or buffers are missing between the two events, the duration is unknown: sums of durations are lower
//! bounds then, and the ledger counts such waits.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{CLR_WAITS_DOUBTFUL, CLR_WAITS_UNPAIRED};
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
    /// Open wait per thread, managed and native apart: start and process.
    open: HashMap<(u32, bool), Start>,
}

/// Start of a wait, and its process.
type Start = (i64, Option<u32>);

impl Contention {
    fn push(&mut self, (utid, native): (u32, bool), (start, upid): Start, end: Option<i64>) {
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
        let wait = (utid, native);
        let before = self.open.remove(&wait);
        if event.tag == START {
            if let Some(unfinished) = before {
                cx.ledger.count(&CLR_WAITS_UNPAIRED, 1);
                self.push(wait, unfinished, None);
            }
            self.open.insert(wait, (event.ns, upid));
        } else if let Some(open) = before {
            let doubtful = cx.model.may_have_run_unseen(event.record.cpu, utid, open.0, event.ns);
            cx.ledger.count(&CLR_WAITS_DOUBTFUL, u64::from(doubtful));
            self.push(wait, open, (!doubtful).then_some(event.ns));
        }
    }

    fn finish(mut self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(wait, start)| (start.0, *wait));
        for (wait, start) in open {
            self.push(wait, start, None);
        }
        Ok(vec![self.rows.into()])
    }
}
