//! Processes: every instance that the trace names, by start, rundown or mere mention.

use crate::anomalies::PROCESSES_WITHOUT_NAME;
use crate::engine::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Process instances. Windows reuses process ids: `upid` is unique over the trace, `pid` is not.
    pub table PROCESS: ProcessRow = "process" {
        version: 1, evidence: Verified("PerfView baselines; corpus traces of Windows 7 to 11"),
        /// Number of the instance.
        upid: i32 [None, Process],
        /// Process id.
        pid: i32 [None, Pid],
        /// Image name; `[unknown]` when neither start nor rundown was recorded.
        name: Sym [None, Name],
        /// Instance of the parent, if it is known.
        parent_upid: Option<i32> [None, Other],
        /// Process id of the parent, as recorded.
        parent_pid: Option<i32> [None, Other],
        /// Start, if the process started within the trace.
        start_ns: Option<i64> [Ns, Time],
        /// End, if the process ended within the trace.
        end_ns: Option<i64> [Ns, Time],
        /// Exit status, if it ended.
        exit_status: Option<i32> [Hex32, Status],
        /// Terminal session.
        session_id: Option<i32> [None, Other],
        /// SID of its user.
        user_sid: Option<Sym> [None, Other],
        /// Full path of its executable, from its image events.
        path: Option<Sym> [None, Path],
        /// Command line.
        command_line: Option<Sym> [None, Message],
        /// Package of a store app.
        package: Option<Sym> [None, Name],
        /// Services that run in it, separated by blanks.
        services: Option<Sym> [None, Name],
        /// Address of its kernel object.
        unique_key: i64 [Address, Address],
        /// A 32-bit process on 64-bit Windows.
        wow64: Option<bool> [None, Flag],
        /// Vendor of the program, from the knowledge base.
        vendor: Option<Sym> [None, Name],
        /// Category of the program (antivirus, edr, browser, ...), from the knowledge base.
        category: Option<Sym> [None, Kind],
        /// First event that names it.
        first_ns: i64 [Ns, Time],
        /// Last event that names it.
        last_ns: i64 [Ns, Time],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&PROCESS],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Processes { rows: TableBuilder::new(memory) }),
};

struct Processes {
    rows: TableBuilder<ProcessRow>,
}

impl Analysis for Processes {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let unknown = end.strings.intern("[unknown]");
        let mut unnamed = 0;
        for (upid, process) in end.model.processes.all().iter().enumerate() {
            let path = main_image(end, upid as u32, process.name);
            let file = path.map(|p| crate::resolve::base_name(end.strings.get(p)).to_owned());
            let file = file.map(|f| end.strings.intern(&f));
            // The kernel cuts image names at 14 or 15 characters; the image itself has the whole name.
            let whole = process.name.zip(file).filter(|(name, file)| {
                let (name, file) = (end.strings.get(*name), end.strings.get(*file));
                name.len() >= 14 && file.to_lowercase().starts_with(&name.to_lowercase())
            });
            let name = whole.map(|(_, file)| file).or(process.name).or(file).or_else(|| match process.pid {
                0 => Some(end.strings.intern("Idle")),
                4 => Some(end.strings.intern("System")),
                _ => None,
            });
            unnamed += u64::from(name.is_none());
            // As people see it: whoever shows process numbers finds the text in the pool.
            let label = format!("{} ({})", name.map_or("[unknown]", |n| end.strings.get(n)), process.pid);
            end.strings.intern(&label);
            let known = name.and_then(|n| etwhy_knowledge::category_of(end.strings.get(n), ""));
            let mut services: Vec<&str> = end
                .model
                .system
                .services
                .iter()
                .filter(|((pid, _), _)| *pid == process.pid && process.pid != 0)
                .map(|(_, name)| name.as_str())
                .collect();
            services.sort_unstable();
            let services = (!services.is_empty()).then(|| end.strings.intern(&services.join(" ")));
            self.rows.push(ProcessRow {
                upid: upid as i32,
                pid: process.pid as i32,
                name: name.unwrap_or(unknown),
                parent_upid: process.parent_upid.map(|p| p as i32),
                parent_pid: process.parent_pid.map(|p| p as i32),
                start_ns: process.start_ns,
                end_ns: process.end_ns,
                exit_status: process.exit_status.filter(|_| process.end_ns.is_some()),
                session_id: process.session_id,
                user_sid: process.user_sid,
                path,
                command_line: process.command_line,
                package: process.package,
                services,
                unique_key: process.unique_key as i64,
                wow64: process.described.then_some(process.flags & 2 != 0),
                vendor: known.map(|k| end.strings.intern(k.vendor)),
                category: known.map(|k| end.strings.intern(k.category)),
                first_ns: process.first_ns,
                last_ns: process.last_ns,
            });
        }
        end.ledger.count(&PROCESSES_WITHOUT_NAME, unnamed);
        Ok(vec![self.rows.into()])
    }
}

/// Path of the process's executable: its image of the same name, or its first `.exe`.
fn main_image(end: &mut Finish<'_>, upid: u32, name: Option<Sym>) -> Option<Sym> {
    let images = end.model.images.of(Some(upid));
    let all = end.model.images.all();
    let paths = || images.iter().filter_map(|&n| all.get(n as usize)?.path);
    let name = name.map(|n| end.strings.get(n).to_lowercase());
    let is_named = |path: &Sym| {
        let file = crate::resolve::base_name(end.strings.get(*path)).to_lowercase();
        name.as_ref()
            .is_some_and(|name| file == *name || (name.len() >= 14 && file.starts_with(name.as_str())))
    };
    let is_exe = |path: &Sym| end.strings.get(*path).to_lowercase().ends_with(".exe");
    let path = paths().find(is_named).or_else(|| if name.is_none() { paths().find(is_exe) } else { None })?;
    let text = end.model.volumes.drive_path(end.strings.get(path));
    Some(end.strings.intern(&text))
}
