//! Processes: every instance that the trace names, by start, rundown or mere mention.
//!
//! # How it is computed
//! Start and end come from `Process` events of the kernel or of Microsoft-Windows-Kernel-Process. The parent is
//! the instance that had the parent's id when the child was made; ids are used again, so it is bound when all
//! instances are known. `exit_name` is the exit code's `NTSTATUS` name (source: MS-ERREF) where it has the form
//! of one.
//!
//! Nothing in a trace says when a program is ready. Two moments come near it: `load_ns` ends with the initial
//! burst of image loads, `startup_ns` with the first request for a window message (Microsoft-Windows-Win32k,
//! `AppMessagePump/Start`), which is where `WaitForInputIdle` would let its caller go on if no message is there.
//!
//! # What fools it
//! An exit code is what somebody chose: a program may return the number of a status, and `TerminateProcess`
//! passes any number. A process that ran before the trace may have had a parent that ended before it began, whose
//! id another process got: then that one is shown. The burst of loads ends at the first pause of 100 ms, which
//! is our choice; a slow disk can make such a pause within it.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{FIRST_FILE_ABSENT, PROCESSES_WITHOUT_NAME};
use crate::event::{Context, Event};
use crate::exit_code;
use crate::model::process::Process;
use etwhy_etl::read::without_first_file;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Process instances. Windows reuses process ids: `upid` is unique over the trace, `pid` is not.
    pub table PROCESS: ProcessRow = "process" {
        version: 2, evidence: Verified("PerfView baselines; corpus traces of Windows 7 to 11"),
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
        /// Parents, the outermost first, as `name (pid) > name (pid)`; at most 16.
        ancestry: Option<Sym> [None, Message],
        /// How many parents are known.
        depth: i32 [Count, Count],
        /// Start, if the process started within the trace.
        start_ns: Option<i64> [Ns, Time],
        /// End, if the process ended within the trace.
        end_ns: Option<i64> [Ns, Time],
        /// Lifetime, if start and end lie in the trace.
        dur_ns: Option<i64> [Ns, Duration],
        /// Exit status, if it ended.
        exit_status: Option<i32> [Hex32, Status],
        /// Name of the exit status (`STATUS_ACCESS_VIOLATION`), or the number.
        exit_name: Option<Sym> [None, Name],
        /// How it ended: running (not yet), normal (0), error (what else a program returns), crash (by the status of an exception, of a
        /// fault, or of a program that could not be loaded), killed (Ctrl+C, end of session, debugger, hung window).
        exit_kind: Option<Sym> [None, Kind],
        /// From start to the end of the initial image loads, if it started within the trace.
        load_ns: Option<i64> [Ns, Duration],
        /// From start to the first request for a window message, where recorded.
        startup_ns: Option<i64> [Ns, Duration],
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
        /// Services that run in it, separated by commas.
        services: Option<Sym> [None, Name],
        /// Images that it loaded, as far as the trace tells; none if it tells of none.
        images: Option<i32> [Count, Count],
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
        let parents = end.model.processes.parents();
        let hosted = end.model.services.hosted(&end.model.processes);
        let names: Vec<(Option<Sym>, Option<Sym>)> =
            (0..end.model.processes.all().len() as u32).map(|upid| name_and_path(end, upid)).collect();
        for (upid, process) in end.model.processes.all().iter().enumerate() {
            let (name, path) = names.get(upid).copied().unwrap_or_default();
            unnamed += u64::from(name.is_none());
            // As people see it: whoever shows process numbers finds the text in the pool.
            let label = format!("{} ({})", name.map_or("[unknown]", |n| end.strings.get(n)), process.pid);
            end.strings.intern(&label);
            let known = name.and_then(|n| etwhy_knowledge::category_of(end.strings.get(n), ""));
            let services = hosted.get(&(upid as u32)).map(|list| services_text(end, list));
            let parent = parents.get(upid).copied().flatten();
            let mut line = ancestors(&parents, upid as u32);
            // Idle is the parent of System by its id only.
            line.retain(|&u| end.model.processes.get(u).is_some_and(|p| p.pid != 0));
            let ancestry = (!line.is_empty()).then(|| {
                let parents: Vec<String> = line
                    .iter()
                    .rev()
                    .map(|&u| {
                        let name = names.get(u as usize).and_then(|n| n.0).unwrap_or(unknown);
                        let pid = end.model.processes.get(u).map_or(0, |p| p.pid);
                        format!("{} ({pid})", end.strings.get(name))
                    })
                    .collect();
                end.strings.intern(&parents.join(" > "))
            });
            let exit = process.exit_status.filter(|_| process.end_ns.is_some());
            let (burst, images) =
                initial_loads(end.model.images.for_process(Some(upid as u32)), end, process);
            let exit_kind = match (process.end_ns, exit) {
                (None, _) => Some("running").filter(|_| process.described),
                (Some(_), code) => code.map(|c| exit_code::kind(c as u32)),
            };
            self.rows.push(ProcessRow {
                upid: upid as i32,
                pid: process.pid as i32,
                name: name.unwrap_or(unknown),
                parent_upid: parent.map(|p| p as i32),
                parent_pid: process.parent_pid.map(|p| p as i32),
                ancestry,
                depth: line.len() as i32,
                start_ns: process.start_ns,
                end_ns: process.end_ns,
                dur_ns: lifetime(process),
                exit_status: exit,
                exit_name: exit.map(|c| end.strings.intern(&exit_code::name(c as u32))),
                exit_kind: exit_kind.map(|k| end.strings.intern(k)),
                load_ns: burst,
                startup_ns: process.start_ns.zip(process.pump_ns).map(|(s, p)| p.saturating_sub(s).max(0)),
                session_id: process.session_id,
                user_sid: process.user_sid,
                path,
                command_line: process.command_line,
                package: process.package,
                services,
                images,
                unique_key: process.unique_key as i64,
                wow64: process.described.then_some(process.flags & 2 != 0),
                vendor: known.map(|k| end.strings.intern(k.vendor)),
                category: known.map(|k| end.strings.intern(k.category)),
                first_ns: process.first_ns,
                last_ns: process.last_ns,
            });
        }
        end.ledger.count(&PROCESSES_WITHOUT_NAME, unnamed);
        if unnamed > 0 {
            end.ledger.count(&FIRST_FILE_ABSENT, without_first_file(end.files));
        }
        Ok(vec![self.rows.into()])
    }
}

/// Time from start to end, if both lie in the trace.
pub(crate) fn lifetime(process: &Process) -> Option<i64> {
    let (start, end) = process.start_ns.zip(process.end_ns)?;
    Some(end.saturating_sub(start).max(0))
}

/// A pause between two image loads that ends the initial burst. Loads of one start follow each other within
/// milliseconds, with a few tens for a disk that turns.
const PAUSE_NS: i64 = 100_000_000;

/// From the start of a process to the last of its initial image loads, and how many images it has at all.
pub(crate) fn initial_loads(
    images: &[u32],
    end: &Finish<'_>,
    process: &Process,
) -> (Option<i64>, Option<i32>) {
    let all = end.model.images.all();
    let mut loads: Vec<i64> = images.iter().filter_map(|&n| all.get(n as usize)?.load_ns).collect();
    loads.sort_unstable();
    (process.start_ns.and_then(|start| burst(start, &loads)), Some(images.len() as i32).filter(|&n| n > 0))
}

fn burst(start: i64, loads: &[i64]) -> Option<i64> {
    let mut last = None;
    for &load in loads.iter().filter(|&&l| l >= start) {
        if load.saturating_sub(last.unwrap_or(start)) > PAUSE_NS {
            break;
        }
        last = Some(load);
    }
    Some(last?.saturating_sub(start))
}

/// The parents of a process, the nearest first. Hostile traces may have circles.
fn ancestors(parents: &[Option<u32>], upid: u32) -> Vec<u32> {
    const MOST: usize = 16;
    let mut line = Vec::new();
    let mut at = upid;
    while let Some(parent) = parents.get(at as usize).copied().flatten() {
        if parent == upid || line.contains(&parent) || line.len() == MOST {
            break;
        }
        line.push(parent);
        at = parent;
    }
    line
}

fn services_text(end: &mut Finish<'_>, numbers: &[u32]) -> Sym {
    let all = end.model.services.all();
    let mut names: Vec<&str> =
        numbers.iter().filter_map(|&n| Some(end.strings.get(all.get(n as usize)?.name))).collect();
    names.sort_unstable();
    names.dedup();
    let text = names.join(", ");
    end.strings.intern(&text)
}

/// Name and path of a process.
pub(crate) fn name_and_path(end: &mut Finish<'_>, upid: u32) -> (Option<Sym>, Option<Sym>) {
    let Some(process) = end.model.processes.get(upid) else { return (None, None) };
    let path = main_image(end, upid, process.name);
    let file = path.map(|p| crate::model::image::base_name(end.strings.get(p)).to_owned());
    let file = file.map(|f| end.strings.intern(&f));
    // The kernel cuts image names at 14 or 15 characters; the image itself has the whole name, and so has the command line.
    let started = process.command_line.map(|line| program(end.strings.get(line)).to_owned());
    let started = started.map(|program| end.strings.intern(&program));
    let whole = [file, started].into_iter().flatten().find(|whole| {
        let name = process.name.map(|name| end.strings.get(name).to_lowercase());
        let whole = end.strings.get(*whole).to_lowercase();
        name.is_some_and(|name| name.len() >= 14 && whole.starts_with(&name))
    });
    let name = whole.or(process.name).or(file).or_else(|| match process.pid {
        0 => Some(end.strings.intern("Idle")),
        4 => Some(end.strings.intern("System")),
        _ => None,
    });
    (name, path)
}

/// File name of the program that a command line starts.
fn program(command_line: &str) -> &str {
    let line = command_line.trim_start();
    let path = match line.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => line.split(' ').next(),
    };
    crate::model::image::base_name(path.unwrap_or(line))
}

/// Path of the process's executable: its image of the same name, or its first `.exe`.
fn main_image(end: &mut Finish<'_>, upid: u32, name: Option<Sym>) -> Option<Sym> {
    let images = end.model.images.for_process(Some(upid));
    let all = end.model.images.all();
    let paths = || images.iter().filter_map(|&n| all.get(n as usize)?.path);
    let name = name.map(|n| end.strings.get(n).to_lowercase());
    let is_named = |path: &Sym| {
        let file = crate::model::image::base_name(end.strings.get(*path)).to_lowercase();
        name.as_ref()
            .is_some_and(|name| file == *name || (name.len() >= 14 && file.starts_with(name.as_str())))
    };
    let is_exe = |path: &Sym| end.strings.get(*path).to_lowercase().ends_with(".exe");
    let path = paths().find(is_named).or_else(|| if name.is_none() { paths().find(is_exe) } else { None })?;
    let text = end.model.volumes.drive_path(end.strings.get(path));
    Some(end.strings.intern(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_names_its_program() {
        assert_eq!(program(r#""C:\Program Files\A B\CompatTelRunner.exe" -m:x"#), "CompatTelRunner.exe");
        assert_eq!(program(r"C:\Windows\system32\SearchIndexer.exe /Embedding"), "SearchIndexer.exe");
        assert_eq!(program(""), "");
    }

    #[test]
    fn the_initial_burst_ends_at_the_first_pause() {
        let ms = |n: i64| n * 1_000_000;
        assert_eq!(burst(ms(10), &[ms(11), ms(14), ms(90), ms(300)]), Some(ms(80)));
        assert_eq!(burst(ms(10), &[ms(200)]), None);
        assert_eq!(burst(ms(10), &[ms(1)]), None);
    }

    #[test]
    fn circles_end() {
        assert_eq!(ancestors(&[Some(1), Some(2), None], 0), [1, 2]);
        assert_eq!(ancestors(&[Some(1), Some(0)], 0), [1]);
        assert_eq!(ancestors(&[Some(1), Some(2), Some(1)], 0), [1, 2]);
    }
}
