//! Which rows of a table belong to a service, for `--service`.
//!
//! A row with a thread belongs to the services that the thread's `SubProcessTag` names. Rows that name a process only
//! belong to all services of that process: services that share an `svchost.exe` cannot be distinguished there. Threads of
//! pools carry the tag of what they do at the moment only while that is recorded (`SubProcessTagChanged`); a thread that
//! worked for several services counts for each of them all the time.

use anyhow::bail;
use etwhy_table::{Database, Pattern, Role, TableSpec};
use etwhy_trace::catalog::{process::ProcessRow, service::ServiceRow, thread::ThreadRow};

/// For each thread whether it works for a service that the filter means (`;` separates, `!` excludes, wildcards), and for each
/// process whether it hosts one.
///
/// # Errors
/// If no service of that name is known.
pub fn wanted(db: &Database, filter: &str) -> anyhow::Result<(Vec<bool>, Vec<bool>)> {
    let (threads, processes) = (db.read_or_empty::<ThreadRow>(), db.read_or_empty::<ProcessRow>());
    let threads = hits(threads.iter().map(|row| row.service()), filter);
    let processes = hits(processes.iter().map(|row| row.services()), filter);
    if !threads.contains(&true) && !processes.contains(&true) {
        bail!(
            "no service matches `{filter}`; `etwhy dump service` lists those that the trace names (it names none \
             unless a kernel session wrote its system configuration at the end)"
        );
    }
    Ok((threads, processes))
}

fn hits<'t>(services: impl Iterator<Item = Option<&'t str>>, filter: &str) -> Vec<bool> {
    let pattern = Pattern::parse(filter);
    let hit = |name: &str| !name.is_empty() && pattern.matches(name);
    services.map(|services| services.unwrap_or("").split(", ").any(hit)).collect()
}

/// The rows of some services.
pub struct Services {
    /// Rows of table `service` itself.
    rows: Option<Vec<bool>>,
    threads: Option<(usize, Vec<bool>)>,
    processes: Option<(usize, Vec<bool>)>,
}

impl Services {
    /// Those whose names match the filter (`;` separates, `!` excludes, wildcards).
    ///
    /// # Errors
    /// If the table has neither threads nor processes, or no service of that name is known.
    pub fn matching(db: &Database, spec: &TableSpec, filter: &str) -> anyhow::Result<Services> {
        let column = |role: Role| spec.columns.iter().position(|c| c.role == role);
        let (thread, process) = (column(Role::Thread), column(Role::Process));
        if thread.is_none() && process.is_none() {
            bail!("table `{}` has neither threads nor processes, so --service says nothing", spec.name);
        }
        let (threads, processes) = wanted(db, filter)?;
        // Without tags of threads the process is all there is.
        let threads =
            thread.map(|c| (c, threads)).filter(|(_, wanted)| wanted.contains(&true) || process.is_none());
        let own = db.read_or_empty::<ServiceRow>();
        let rows = (spec.name == "service").then(|| hits(own.iter().map(|row| Some(row.name())), filter));
        Ok(Services { rows, threads, processes: process.map(|c| (c, processes)) })
    }

    /// Whether a row belongs to one of them; `number` reads a column of that row.
    pub fn wants(&self, row: u32, number: &impl Fn(usize) -> Option<i64>) -> bool {
        if let Some(rows) = &self.rows {
            return rows.get(row as usize).copied().unwrap_or(false);
        }
        let hit = |(column, wanted): &(usize, Vec<bool>)| {
            let id = usize::try_from(number(*column)?).ok()?;
            wanted.get(id).copied()
        };
        // A row of a table with threads whose thread is not known belongs to nobody for certain.
        match (&self.threads, &self.processes) {
            (Some(threads), _) => hit(threads).unwrap_or(false),
            (None, Some(processes)) => hit(processes).unwrap_or(false),
            (None, None) => false,
        }
    }
}
