//! Services: names, states and where they run.
//!
//! # How it is computed
//! One row per `SystemConfig/Services` record (all versions), which the kernel session writes when it ends and
//! merging keeps. The process is the instance that had the id when the record was written. Threads belong to a
//! service by their `SubProcessTag`, see column `service` of table `thread`.
//!
//! # What fools it
//! A service that stopped before the records were written has no process here, though it ran in the trace.
//! Before Windows 7 (versions 0 and 1) states and tags were not recorded.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use crate::model::service::state_name;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Services of the machine, running or not.
    pub table SERVICE: ServiceRow = "service" {
        version: 1, evidence: Verified("records of the corpus, counted by dissect.etl"),
        /// Key name of the service.
        name: Sym [None, Name],
        /// Display name.
        display_name: Option<Sym> [None, Message],
        /// State: stopped, start pending, running, ...; none where it was not recorded.
        state: Option<Sym> [None, Kind],
        /// Process that hosts it (table `process`).
        upid: Option<i32> [None, Process],
        /// Process id, if it runs.
        pid: Option<i32> [None, Pid],
        /// Tag that its threads carry (`SubProcessTag`).
        tag: Option<i32> [None, Other],
        /// Image name of its process, as recorded.
        process_name: Option<Sym> [None, Other],
        /// Group of its `svchost.exe` (`-k`).
        svchost_group: Option<Sym> [None, Kind],
        /// Group by which the system starts it.
        load_order_group: Option<Sym> [None, Kind],
        /// Threads that carry its tag.
        threads: i32 [Count, Count],
        /// When the record was written.
        ts_ns: i64 [Ns, Time],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&SERVICE],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Services { rows: TableBuilder::new(memory) }),
};

struct Services {
    rows: TableBuilder<ServiceRow>,
}

impl Analysis for Services {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut host: HashMap<u32, u32> = HashMap::default();
        for (upid, services) in end.model.services.hosted(&end.model.processes) {
            host.extend(services.into_iter().map(|number| (number, upid)));
        }
        let mut threads: HashMap<(u32, u32), i32> = HashMap::default();
        for thread in end.model.threads.all() {
            let pid = thread.upid.and_then(|u| end.model.processes.get(u)).map_or(0, |p| p.pid);
            for &tag in &thread.service_tags {
                *threads.entry((pid, tag)).or_default() += 1;
            }
        }
        for (number, service) in end.model.services.all().iter().enumerate() {
            let state = service
                .state
                .map(|state| state_name(state).map_or_else(|| format!("state {state}"), str::to_owned));
            self.rows.push(ServiceRow {
                name: service.name,
                display_name: service.display_name,
                state: state.map(|s| end.strings.intern(&s)),
                upid: host.get(&(number as u32)).map(|&u| u as i32),
                pid: Some(service.pid as i32).filter(|_| service.pid != 0),
                tag: Some(service.tag as i32).filter(|_| service.tag != 0),
                process_name: service.process_name,
                svchost_group: service.svchost_group,
                load_order_group: service.load_order_group,
                threads: threads.get(&(service.pid, service.tag)).copied().unwrap_or(0),
                ts_ns: service.ns,
            });
        }
        Ok(vec![self.rows.into()])
    }
}
