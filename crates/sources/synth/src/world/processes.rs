//! Processes and threads, with ids.

use super::{Facts, Images};
use crate::error::{Result, SourceText, one_of};
use crate::hash_text;
use crate::model::{self, Common, OneOrMany, Text};
use crate::value::{Draw, Time};
use etwhy_base::rng::{Xoshiro, mix};
use std::collections::HashSet;
use std::ops::Range;

/// One process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) ppid: u32,
    pub(crate) session: u32,
    pub(crate) sid: Vec<u8>,
    pub(crate) command_line: String,
    pub(crate) exit_code: i32,
    pub(crate) narrow: bool,
    pub(crate) package: String,
    pub(crate) app_id: String,
    /// Nanoseconds; `None`: it ran already.
    pub(crate) start: Option<i64>,
    /// Nanoseconds; `None`: it runs on.
    pub(crate) end: Option<i64>,
    /// Image, loaded when, unloaded when; `None` as above.
    pub(crate) images: Vec<(usize, Option<i64>, Option<i64>)>,
    pub(crate) threads: Vec<usize>,
    /// Rundown records at the start and at the end of the trace.
    pub(crate) rundown: (bool, bool),
    pub(crate) services: Vec<String>,
    /// The stack of samples that have no other.
    pub(crate) somewhere: Option<usize>,
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) process: usize,
    pub(crate) priority: u8,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) start_address: Option<String>,
    pub(crate) service_tag: u32,
    pub(crate) narrow: bool,
}

/// All of them. Process 0 is Idle, process 1 is System; thread 0 is the idle thread.
#[derive(Default)]
pub(crate) struct Processes {
    pub(crate) list: Vec<Process>,
    pub(crate) threads: Vec<Thread>,
    next_pid: u32,
    /// Pids that tables name.
    given_pids: HashSet<u32>,
    given_tids: HashSet<u32>,
    next_tid: u32,
}

/// Largest number of copies of a process or thread.
const MOST: u32 = 100_000;
/// LocalSystem, S-1-5-18.
const SYSTEM_SID: &str = "S-1-5-18";
/// An ordinary user.
const USER_SID: &str = "S-1-5-21-1004336348-1177238915-682003330-1001";

impl Processes {
    pub(crate) fn build(
        text: &Text,
        facts: &Facts,
        images: &mut Images,
        place: &SourceText,
    ) -> Result<Processes> {
        let mut all = Processes { next_pid: 1000, next_tid: 5000, ..Processes::default() };
        all.built_in(facts, images);
        for p in text.process.iter().map(toml::Spanned::get_ref) {
            let copies = if p.reuse_ids { 1 } else { p.count.unwrap_or(1).min(MOST) };
            all.given_pids.extend(p.pid.iter().flat_map(|pid| (0..copies).map(|n| pid.wrapping_add(4 * n))));
        }
        let threads = text.process.iter().flat_map(|p| &p.get_ref().threads.0);
        all.given_tids = threads.filter_map(|thread| thread.tid).collect();
        let mut children = Vec::new();
        for table in &text.process {
            let p = table.get_ref();
            let first = all.list.len();
            if p.name.eq_ignore_ascii_case("System") || p.name.eq_ignore_ascii_case("Idle") {
                let at = usize::from(p.name.eq_ignore_ascii_case("System"));
                all.add_threads(at, p, facts, 0, None);
                continue;
            }
            all.add(p, facts, images).map_err(|e| place.error(Some(table.span()), e))?;
            children.push((table, first..all.list.len()));
        }
        all.parents(children, place)?;
        all.thread_ids_are_distinct().map_err(|e| place.error(None, e))?;
        Ok(all)
    }

    /// Two threads that live at the same time have ids of their own.
    fn thread_ids_are_distinct(&self) -> std::result::Result<(), String> {
        let mut lives: Vec<(u32, i64, i64, &str)> = self
            .threads
            .iter()
            .filter(|thread| self.given_tids.contains(&thread.tid))
            .map(|t| (t.tid, t.start.unwrap_or(i64::MIN), t.end.unwrap_or(i64::MAX), t.name.as_str()))
            .collect();
        lives.sort_unstable();
        for (one, two) in lives.iter().zip(lives.iter().skip(1)) {
            if one.0 == two.0 && two.1 < one.2 {
                return Err(format!(
                    "tid {}: threads {} and {} have it at the same time",
                    one.0, one.3, two.3
                ));
            }
        }
        Ok(())
    }

    fn built_in(&mut self, facts: &Facts, images: &mut Images) {
        let sid = parse_sid(SYSTEM_SID).unwrap_or_default();
        let rundown = (true, true);
        let mut idle = Process { name: "Idle".into(), session: u32::MAX, sid, rundown, ..Process::default() };
        idle.threads.push(0);
        let mut system = Process { name: "System".into(), pid: 4, ..idle.clone() };
        for name in ["ntoskrnl.exe", "hal.dll"] {
            let module = images.get(name, false, Some(true));
            system.images.push((module, None, None));
        }
        let narrow = facts.pointer_size == 4;
        idle.narrow = narrow;
        system.narrow = narrow;
        system.threads = vec![1];
        self.list = vec![idle, system];
        self.threads.push(Thread { name: "idle".into(), ..Thread::default() });
        self.threads.push(Thread {
            name: "system".into(),
            tid: 8,
            pid: 4,
            process: 1,
            priority: 8,
            ..Thread::default()
        });
    }

    fn add(&mut self, p: &model::Process, facts: &Facts, images: &mut Images) -> Result<(), String> {
        if p.name.is_empty() {
            return Err("a process needs a name, e.g. name = \"app.exe\"".into());
        }
        let rundown = match p.rundown.as_deref().unwrap_or("both") {
            "both" => (true, true),
            "start" => (true, false),
            "end" => (false, true),
            "none" => (false, false),
            other => return Err(format!("rundown = {other:?}: allowed are both, start, end and none")),
        };
        let bits = p.bits.unwrap_or(if p.wow64 == Some(true) { 32 } else { 8 * facts.pointer_size });
        if !matches!(bits, 32 | 64) {
            return Err(format!("bits = {bits}: allowed are 32 and 64"));
        }
        let system = p.session == Some(0) || !p.services.is_empty();
        let sid = match p.sid.as_deref() {
            Some(text) => {
                parse_sid(text).ok_or(format!("sid = {text:?} is no SID; write it like {SYSTEM_SID}"))?
            }
            None => parse_sid(if system { SYSTEM_SID } else { USER_SID }).unwrap_or_default(),
        };
        if p.count.unwrap_or(1) > MOST {
            return Err(format!("count = {}: allowed are up to {MOST}", p.count.unwrap_or(1)));
        }
        let copies = p.count.map_or(1, |n| ((f64::from(n) * facts.counts).round() as u32).clamp(1, MOST));
        let mut rng = Xoshiro::seeded(facts.seed ^ hash_text(&p.name));
        let mut shift = 0;
        let first_tid = self.next_tid;
        for copy in 0..copies {
            let mut draw = Draw { rng: &mut rng, n: copy.into(), x: f64::from(copy) / f64::from(copies) };
            let life = p.life.as_ref().map(|l| l.ns(&mut draw));
            let gap = p.every.as_ref().map_or(0, |e| e.ns(&mut draw));
            let scaled = |t: Time| (t.0 * facts.stretch * 1e9) as i64;
            let when = |t: Time| scaled(t) + shift;
            // Of many copies each lives as long as written, whatever the scale.
            let end = match (life, p.start, p.end) {
                (Some(life), start, _) => Some(start.map_or(0, when) + life),
                (None, Some(start), Some(end)) if p.count.is_some() => {
                    Some(when(start) + (end.0 * 1e9) as i64 - (start.0 * 1e9) as i64)
                }
                (None, _, end) => end.map(when),
            };
            let at = self.list.len();
            let pid = match (p.pid, copy) {
                (Some(pid), n) if !p.reuse_ids => pid.wrapping_add(4 * n),
                (Some(pid), _) => pid,
                (None, n) if n > 0 && p.reuse_ids => self.list.last().map_or(0, |q| q.pid),
                (None, _) => self.free_pid(),
            };
            if p.pid.is_some()
                && self.list.iter().any(|q| q.pid == pid && q.end.is_none() && p.start.is_none())
            {
                return Err(format!("pid {pid} is taken already"));
            }
            let narrow = bits == 32;
            let exe = images.get(&p.name, narrow, Some(false));
            if let (Some(path), Some(module)) = (&p.path, images.modules.get_mut(exe)) {
                module.path.clone_from(path);
            }
            let path = images.modules.get(exe).map_or_else(String::new, |m| m.path.clone());
            let command = p.command_line.clone().unwrap_or_else(|| format!("\"{path}\""));
            let mut list = vec![(exe, p.start.map(when), end)];
            if narrow && facts.pointer_size == 8 {
                list.push((images.get("ntdll.dll", false, Some(false)), p.start.map(when), end));
            }
            list.push((images.get("ntdll.dll", narrow, Some(false)), p.start.map(when), end));
            for image in &p.images {
                let module = images.get(&image.name, narrow, None);
                if list.iter().any(|l| l.0 == module) {
                    continue;
                }
                let load = image.load.or(p.start).map(when);
                list.push((module, load, image.unload.map(when).or(end)));
            }
            self.list.push(Process {
                name: p.name.clone(),
                pid,
                ppid: 4,
                session: p.session.unwrap_or(u32::from(!system)),
                sid: sid.clone(),
                command_line: command,
                exit_code: p.exit_code.unwrap_or(0),
                narrow,
                package: p.package.clone().unwrap_or_default(),
                app_id: p.app_id.clone().unwrap_or_default(),
                start: p.start.map(when),
                end,
                images: list,
                threads: Vec::new(),
                rundown,
                services: p.services.clone(),
                somewhere: None,
            });
            // Copies with the ids of the one before have its thread ids too.
            let ids = p.reuse_ids.then_some(first_tid);
            self.add_threads(at, p, facts, shift, ids);
            if self.list.get(at).is_some_and(|p| p.threads.is_empty()) {
                self.add_thread(
                    at,
                    &model::Thread { name: "main".into(), ..model::Thread::default() },
                    facts,
                    shift,
                );
            }
            // One after the other, unless a gap is given: starts that far apart.
            shift += if p.every.is_some() { gap } else { life.unwrap_or(0) };
        }
        Ok(())
    }

    fn free_pid(&mut self) -> u32 {
        loop {
            self.next_pid += 4;
            if !self.given_pids.contains(&self.next_pid) {
                return self.next_pid;
            }
        }
    }

    fn add_threads(
        &mut self,
        process: usize,
        p: &model::Process,
        facts: &Facts,
        shift: i64,
        ids: Option<u32>,
    ) {
        if let Some(first) = ids {
            self.next_tid = first;
        }
        for thread in &p.threads.0 {
            for _ in 0..thread.count.unwrap_or(1).min(MOST) {
                self.add_thread(process, thread, facts, shift);
            }
        }
    }

    fn add_thread(&mut self, process: usize, t: &model::Thread, facts: &Facts, shift: i64) {
        let Some(owner) = self.list.get(process) else { return };
        let when = |t: Time| (t.0 * facts.stretch * 1e9) as i64 + shift;
        let tid = t.tid.unwrap_or_else(|| {
            self.next_tid += 4;
            while self.given_tids.contains(&self.next_tid) {
                self.next_tid += 4;
            }
            self.next_tid
        });
        let thread = Thread {
            name: t.name.clone(),
            tid,
            pid: owner.pid,
            process,
            priority: t.priority.unwrap_or(8),
            start: t.start.map(when).or(owner.start),
            end: t.end.map(when).or(owner.end),
            start_address: t.start_address.clone(),
            service_tag: t.service_tag.unwrap_or(0),
            narrow: owner.narrow,
        };
        let at = self.threads.len();
        self.threads.push(thread);
        if let Some(owner) = self.list.get_mut(process) {
            owner.threads.push(at);
        }
    }

    /// Sets parent ids when all processes are known: those of the processes that each table made.
    fn parents(
        &mut self,
        children: Vec<(&toml::Spanned<model::Process>, Range<usize>)>,
        place: &SourceText,
    ) -> Result<()> {
        for (table, made) in children {
            let Some(parent) = &table.get_ref().parent else { continue };
            let found = self.find(parent).into_iter().next();
            let ppid = match found.and_then(|at| self.list.get(at)) {
                Some(process) => process.pid,
                None => parent.parse().map_err(|_| place.error(Some(table.span()), self.unknown(parent)))?,
            };
            self.list.iter_mut().take(made.end).skip(made.start).for_each(|child| child.ppid = ppid);
        }
        Ok(())
    }

    /// Processes called `name`, or with this pid, or `name#2` for the second of that name.
    pub(crate) fn find(&self, name: &str) -> Vec<usize> {
        if let Ok(pid) = name.parse::<u32>() {
            return self.positions(|p| p.pid == pid);
        }
        if let Some((name, n)) = name.split_once('#').and_then(|(a, n)| Some((a, n.parse::<usize>().ok()?))) {
            return self.find(name).into_iter().skip(n.saturating_sub(1)).take(1).collect();
        }
        self.positions(|p| p.name.eq_ignore_ascii_case(name))
    }

    fn positions(&self, wanted: impl Fn(&Process) -> bool) -> Vec<usize> {
        self.list.iter().enumerate().filter(|(_, p)| wanted(p)).map(|(i, _)| i).collect()
    }

    fn unknown(&self, name: &str) -> String {
        let mut names: Vec<&str> = self.list.iter().map(|p| p.name.as_str()).collect();
        names.dedup();
        format!("unknown process {name:?}; this scenario has {}", one_of(names))
    }

    /// Threads that a table names; all threads of its processes when it names none. Empty when it names no
    /// process at all.
    pub(crate) fn select(
        &self,
        process: Option<&OneOrMany>,
        thread: Option<&OneOrMany>,
        place: &SourceText,
        span: &Range<usize>,
    ) -> Result<Vec<usize>> {
        let fail = |message: String| place.error(Some(span.clone()), message);
        let mut owners = Vec::new();
        for name in process.iter().flat_map(|p| &p.0) {
            let found = self.find(name);
            if found.is_empty() {
                return Err(fail(self.unknown(name)));
            }
            owners.extend(found);
        }
        let threads_of = |at: usize| self.list.get(at).map(|p| p.threads.as_slice()).unwrap_or(&[]);
        let Some(names) = thread else {
            return Ok(owners.iter().flat_map(|&at| threads_of(at)).copied().collect());
        };
        let mut list = Vec::new();
        for name in &names.0 {
            let (owners, wanted) = match name.split_once('/') {
                Some((process, thread)) => (self.find(process), thread),
                None => (owners.clone(), name.as_str()),
            };
            let pool: Vec<usize> = if owners.is_empty() && process.is_none() {
                (0..self.threads.len()).collect()
            } else {
                owners.iter().flat_map(|&at| threads_of(at)).copied().collect()
            };
            let tid = wanted.parse::<u32>().ok();
            let matches =
                |t: &Thread| t.name.eq_ignore_ascii_case(wanted) || wanted == "*" || Some(t.tid) == tid;
            let found: Vec<usize> =
                pool.iter().copied().filter(|&i| self.threads.get(i).is_some_and(matches)).collect();
            if found.is_empty() {
                let mut names: Vec<&str> =
                    pool.iter().filter_map(|&i| self.threads.get(i)).map(|t| t.name.as_str()).collect();
                names.dedup();
                names.truncate(30);
                return Err(fail(format!(
                    "unknown thread {name:?}; write process/thread; known here: {}",
                    one_of(names)
                )));
            }
            list.extend(found);
        }
        Ok(list)
    }

    /// A table without a window of its own has that of its threads' lives.
    pub(crate) fn within_life(&self, c: &Common, threads: &[usize], stretch: f64) -> Common {
        let life = || threads.iter().map(|t| self.thread(*t));
        let seconds = |ns: i64| Time(ns as f64 / 1e9 / stretch);
        let start = life().map(|t| t.start).min().flatten().map(seconds);
        let end = if life().any(|t| t.end.is_none()) { None } else { life().filter_map(|t| t.end).max() };
        Common { from: c.from.or(start), to: c.to.or(end.map(seconds)), ..c.clone() }
    }

    pub(crate) fn thread(&self, at: usize) -> &Thread {
        const IDLE: &Thread = &Thread {
            name: String::new(),
            tid: 0,
            pid: 0,
            process: 0,
            priority: 0,
            start: None,
            end: None,
            start_address: None,
            service_tag: 0,
            narrow: false,
        };
        self.threads.get(at).unwrap_or(IDLE)
    }
}

impl Process {
    /// Kernel address that stands for the process (`UniqueProcessKey`).
    pub(crate) fn key(&self) -> u64 {
        0xFFFF_9D00_0000_0000
            | mix(u64::from(self.pid) << 32 | self.start.unwrap_or(0) as u64 & 0xFFFF) & 0xFF_FFFF_FFC0
    }
}

/// The bytes of `S-1-5-18`.
pub(crate) fn parse_sid(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.strip_prefix("S-")?.split('-');
    let revision: u8 = parts.next()?.parse().ok()?;
    let authority: u64 = parts.next()?.parse().ok()?;
    let subs: Vec<u32> = parts.map(|p| p.parse().ok()).collect::<Option<_>>()?;
    if subs.len() > 15 || authority >> 48 != 0 {
        return None;
    }
    let mut sid = vec![revision, subs.len() as u8];
    sid.extend(authority.to_be_bytes().into_iter().skip(2));
    sid.extend(subs.into_iter().flat_map(u32::to_le_bytes));
    Some(sid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sids_have_their_bytes() {
        assert_eq!(parse_sid("S-1-5-18"), Some(vec![1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]));
        assert_eq!(parse_sid("X-1"), None);
    }

    #[test]
    fn processes_of_one_name_have_the_parents_of_their_tables() {
        let text = "[[process]]\nname = 'a.exe'\n[[process]]\nname = 'b.exe'\n\
            [[process]]\nname = 'c.exe'\nparent = 'b.exe'\n[[process]]\nname = 'a.exe'\nparent = 'a.exe'\n\
            [[process]]\nname = 'c.exe'\nparent = 'a.exe'\ncount = 2\n";
        let text: Text = toml::from_str(text).unwrap();
        let process =
            |(name, pid): (&str, u32)| Process { name: name.into(), pid, ppid: 4, ..Process::default() };
        let made = [("a.exe", 10), ("b.exe", 20), ("c.exe", 30), ("a.exe", 40), ("c.exe", 50), ("c.exe", 60)];
        let mut all = Processes { list: made.map(process).into(), ..Processes::default() };
        let children = text.process.iter().zip([0..1, 1..2, 2..3, 3..4, 4..6]).collect();
        all.parents(children, &SourceText::default()).unwrap();
        assert_eq!(all.list.iter().map(|p| p.ppid).collect::<Vec<_>>(), [4, 4, 20, 10, 10, 10]);
    }
}
