//! What follows from what was seen.

use super::busy;
use super::fanotify::Listener;
use super::waits::{FEW_LOOKS, For, Wait};
use super::watched::Watched;
use crate::who::suspect::{LIKELY, POSSIBLE, PROVEN, Suspect};
use crate::who::timeline::Seen;
use crate::words::time;
use std::collections::HashMap;

/// Judges.
pub fn judge(watched: &Watched) -> Seen {
    let cpu = watched.after.since(&watched.before);
    let mut seen = Seen::default();
    listeners(watched, &cpu, &mut seen);
    tracers(watched, &cpu, &mut seen);
    file_systems(watched, &mut seen);
    watched.inside.judge(&mut seen);
    busy::judge(watched, &cpu, &mut seen);
    notes(watched, &mut seen);
    seen
}

fn cpu_words(cpu: Option<&u64>) -> Option<String> {
    cpu.filter(|ns| **ns > 0).map(|ns| format!("it had {} of CPU time meanwhile", time(*ns as f64)))
}

fn waiting_words(wait: &Wait, what: For, all: u64) -> String {
    let mut text = format!(
        "threads of the probe were seen waiting for {} in {} of {all} looks, {} in all (/proc/self/task/*/wchan)",
        what.words(),
        wait.looks,
        time(wait.ns as f64)
    );
    if let Some(innermost) = wait.stack.iter().position(|frame| For::from_function(frame) == what) {
        let frames: Vec<&str> = wait.stack.iter().skip(innermost).take(6).map(String::as_str).collect();
        text.push_str(&format!("; kernel stack: {}", frames.join(" < ")));
    }
    text
}

fn listeners(watched: &Watched, cpu: &HashMap<u32, u64>, seen: &mut Seen) {
    let wait = watched.waits.for_(For::Listener);
    let waited = wait.looks >= FEW_LOOKS;
    let must_ask: Vec<(&(u32, i32), &Listener)> =
        watched.listeners.found.iter().filter(|(_, l)| l.permits && (l.covers.is_some() || waited)).collect();
    // Of those that can hold the probe up, those whose marks cover its place come first.
    let covering: Vec<u32> =
        must_ask.iter().filter(|(_, l)| covers_with_question(l)).map(|((pid, _), _)| *pid).collect();
    // Whom this user may not look into may be it as well.
    let all_seen = watched.listeners.hidden == 0;
    let alone = |pid: u32| {
        if !all_seen {
            false
        } else if covering.is_empty() {
            must_ask.iter().all(|((p, _), _)| *p == pid)
        } else {
            covering.iter().all(|p| *p == pid)
        }
    };
    let mut named = Vec::new();
    for ((pid, fd), listener) in &watched.listeners.found {
        let asks = covers_with_question(listener);
        let may_be = listener.permits && waited && covering.is_empty();
        if !asks && !may_be && listener.covers.is_none() {
            continue;
        }
        // One whose marks are elsewhere is never proven: it answers for some place, and nothing says that it is this one.
        let confidence = match (asks, may_be) {
            (true, _) if waited && alone(*pid) => PROVEN,
            (true, _) | (false, true) => LIKELY,
            (false, false) => POSSIBLE,
        };
        let mut evidence = Vec::new();
        if waited && (asks || may_be) {
            evidence.push(waiting_words(&wait, For::Listener, watched.waits.looks()));
        }
        evidence.push(match listener.covers {
            Some((mark, how)) => {
                format!("it {} on {how} (/proc/{pid}/fdinfo/{fd}: mask {:x})", mark.words(), mark.mask)
            }
            None => format!(
                "it must allow file accesses; which of its {} marks covers the probe's folder is not told (/proc/{pid}/fdinfo/{fd})",
                listener.marks
            ),
        });
        evidence.extend(cpu_words(cpu.get(pid)));
        // A process with several listeners is one suspect.
        if named.contains(pid) {
            continue;
        }
        named.push(*pid);
        seen.suspects.push(Suspect {
            name: listener.name.clone(),
            process: Some(*pid),
            kind: "fanotify listener".to_owned(),
            evidence,
            cpu_ns: cpu.get(pid).copied(),
            blocked_ns: (waited && confidence != POSSIBLE && alone(*pid)).then_some(wait.ns),
            confidence: confidence.to_owned(),
        });
    }
    if waited && must_ask.is_empty() {
        seen.suspects.push(Suspect {
            name: "a fanotify listener (run as root to see which)".to_owned(),
            process: None,
            kind: "fanotify listener".to_owned(),
            evidence: vec![
                waiting_words(&wait, For::Listener, watched.waits.looks()),
                "no listener was found among the processes that this user may look into".to_owned(),
            ],
            cpu_ns: None,
            blocked_ns: Some(wait.ns),
            confidence: PROVEN.to_owned(),
        });
    }
}

fn covers_with_question(listener: &Listener) -> bool {
    listener.covers.is_some_and(|(mark, _)| mark.permits())
}

fn tracers(watched: &Watched, cpu: &HashMap<u32, u64>, seen: &mut Seen) {
    let wait = watched.waits.for_(For::Tracer);
    for (pid, name) in &watched.tracers.ptrace {
        let waited = wait.looks >= FEW_LOOKS;
        let mut evidence = vec![format!("it traces this program (TracerPid {pid} in /proc/self/status)")];
        if waited {
            evidence.insert(0, waiting_words(&wait, For::Tracer, watched.waits.looks()));
        }
        evidence.extend(cpu_words(cpu.get(pid)));
        seen.suspects.push(Suspect {
            name: name.clone(),
            process: Some(*pid),
            kind: "tracer".to_owned(),
            evidence,
            cpu_ns: cpu.get(pid).copied(),
            blocked_ns: waited.then_some(wait.ns),
            confidence: if waited { PROVEN } else { LIKELY }.to_owned(),
        });
    }
    for (instance, events) in &watched.tracers.events {
        let first: Vec<&str> = events.iter().take(4).map(String::as_str).collect();
        seen.suspects.push(Suspect {
            name: "kernel tracing".to_owned(),
            process: None,
            kind: "tracer".to_owned(),
            evidence: vec![format!(
                "{} events are recorded, among them {} ({instance}/set_event)",
                events.len(),
                first.join(", ")
            )],
            cpu_ns: None,
            blocked_ns: None,
            confidence: POSSIBLE.to_owned(),
        });
    }
    for (pid, holder) in watched.tracers.ebpf.iter().filter(|(_, holder)| !holder.kinds.is_empty()) {
        let kinds: Vec<&str> = holder.kinds.iter().copied().collect();
        let mut evidence =
            vec![format!("it holds eBPF programs of these kinds: {} (/proc/{pid}/fdinfo)", kinds.join(", "))];
        evidence.extend(cpu_words(cpu.get(pid)));
        seen.suspects.push(Suspect {
            name: holder.name.clone(),
            process: Some(*pid),
            kind: "eBPF".to_owned(),
            evidence,
            cpu_ns: cpu.get(pid).copied(),
            blocked_ns: None,
            confidence: POSSIBLE.to_owned(),
        });
    }
}

/// Waiting for those that have no process we know.
fn file_systems(watched: &Watched, seen: &mut Seen) {
    for what in [For::Supervisor, For::Fuse, For::Server, For::Audit] {
        let wait = watched.waits.for_(what);
        if wait.looks < FEW_LOOKS {
            continue;
        }
        seen.suspects.push(Suspect {
            name: what.words().to_owned(),
            process: None,
            kind: if what == For::Audit || what == For::Supervisor { "tracer" } else { "file system" }
                .to_owned(),
            evidence: vec![waiting_words(&wait, what, watched.waits.looks())],
            cpu_ns: None,
            blocked_ns: Some(wait.ns),
            confidence: PROVEN.to_owned(),
        });
    }
}

fn notes(watched: &Watched, seen: &mut Seen) {
    let all = watched.took.as_nanos() as f64;
    let waits = &watched.waits.of_probe;
    let total: u64 = waits.values().map(|wait| wait.ns).sum();
    if total as f64 > all * 0.05 {
        let mut by_reason: Vec<(&str, u64)> =
            waits.iter().map(|(function, wait)| (function.as_str(), wait.ns)).collect();
        by_reason.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let parts: Vec<String> = by_reason
            .iter()
            .take(3)
            .filter(|(_, ns)| *ns * 20 >= total)
            .map(|(function, ns)| {
                let what = match For::from_function(function) {
                    For::Other => String::new(),
                    known => format!(" ({})", known.words()),
                };
                format!("{:.0} % in {function}{what}", *ns as f64 / total.max(1) as f64 * 100.0)
            })
            .collect();
        seen.notes.push(format!(
            "the probe's thread was seen waiting {:.0} % of the time: {}",
            total as f64 / all * 100.0,
            parts.join(", ")
        ));
    }
    if !watched.waits.told && watched.waits.looks() > 100 {
        seen.notes.push("where threads wait was never told here (/proc/self/task/*/wchan)".to_owned());
    }
    if watched.listeners.hidden > 0 {
        seen.notes.push(format!(
            "{} processes of other users could not be looked into: only root sees who listens to file accesses",
            watched.listeners.hidden
        ));
    }
    if watched.tracers.seccomp_filters > 0 {
        seen.notes.push(format!(
            "{} seccomp filter(s) check each system call of this program (a container, or who started it, set them)",
            watched.tracers.seccomp_filters
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fanotify::{Mark, On};
    use super::*;

    /// A listener that must allow opens, on the probe's folder or elsewhere, and so many looks that found the probe waiting for one.
    fn judged(covers: bool, looks: u64, hidden: usize) -> Suspect {
        let mark = Mark { on: On::Inode(1, 1), mask: 0x1_0000 };
        let listener = Listener {
            name: "scannerd".into(),
            permits: true,
            marks: 1,
            covers: covers.then_some((mark, "the probe's folder")),
        };
        let mut watched = Watched::default();
        watched.listeners.found.insert((5_000_001, 3), listener);
        watched.listeners.hidden = hidden;
        let wait = Wait { looks, ns: looks * 1_000_000, stack: Vec::new() };
        watched.waits.by_function.insert("fanotify_handle_event".into(), wait);
        judge(&watched).suspects.into_iter().find(|suspect| suspect.name == "scannerd").unwrap()
    }

    #[test]
    fn proven_is_who_asks_here_and_nobody_else_could() {
        assert_eq!(judged(true, 10, 0).confidence, PROVEN);
        assert_eq!(judged(true, 1, 0).confidence, LIKELY);
        // Some process could not be looked into: that may be the one.
        assert_eq!(judged(true, 10, 7).confidence, LIKELY);
        assert_eq!(judged(true, 10, 7).blocked_ns, None);
        // Its marks are elsewhere, as far as they are told.
        assert_eq!(judged(false, 10, 0).confidence, LIKELY);
        assert_eq!(judged(false, 10, 7).confidence, LIKELY);
    }
}
