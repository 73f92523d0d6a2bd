//! The process of a trace, from its start to its end.

use super::Front;
use super::said::Said;
use super::slot::{Process, Slot, Source, in_words};
use crate::guard;
use etwhy_child::{Lines, Watched};
use etwhy_export::is_unsafe;
use std::io::{Read, Write as _};
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// Bytes of a line that a process says.
const LINE: usize = 64 << 10;
/// Lines that are kept of what it says on standard error.
const SAID: usize = 40;

/// How many traces are read at a time; the others wait.
#[derive(Default)]
pub(super) struct Turns {
    busy: Mutex<usize>,
    free: Condvar,
}

/// A turn, given back when it is dropped.
struct Turn<'t>(&'t Turns);

impl Turns {
    fn take(&self) -> Turn<'_> {
        // A pass keeps several processors busy.
        let most = (thread::available_parallelism().map_or(1, usize::from) / 4).max(1);
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        while *busy >= most {
            busy = self.free.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        *busy = busy.saturating_add(1);
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut busy = self.0.busy.lock().unwrap_or_else(PoisonError::into_inner);
        *busy = busy.saturating_sub(1);
        self.0.free.notify_one();
    }
}

impl Front {
    /// Reads a trace, unless that is under way or done.
    pub fn read(self: &Arc<Self>, slot: &Arc<Slot>) {
        let Some(run) = slot.begin() else { return };
        self.tell();
        let (front, own) = (Arc::clone(self), Arc::clone(slot));
        let begun = thread::Builder::new().name("trace".to_owned()).spawn(move || {
            if let Err(error) = whole_life(&front, &own, run) {
                own.ended(run, format!("no process can be started for it: {error}"));
            }
            front.tell();
        });
        if let Err(error) = begun {
            slot.ended(run, format!("no process can be started for it: {error}"));
            self.tell();
        }
    }
}

fn whole_life(front: &Arc<Front>, slot: &Arc<Slot>, run: u64) -> std::io::Result<()> {
    let turn = front.turns.take();
    // What was sent stays as long as a process has it: Windows removes no file that is open.
    let _kept = slot.kept();
    if slot.is_over(run) {
        return Ok(());
    }
    let token = guard::token().map_err(std::io::Error::other)?;
    let mut command = front.launcher.command(&slot.sources);
    // What a pass took goes back to the system. glibc keeps it otherwise: of a trace of 1 GB the process that waited for questions held 1 GB of which
    // it used a third.
    command.env("MALLOC_MMAP_THRESHOLD_", "262144").env("MALLOC_TRIM_THRESHOLD_", "262144");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (says, errors) = (child.stdout.take(), child.stderr.take());
    let mut input = take_input(&mut child)?;
    let (watched, wanted) = Watched::new(child);
    // It never stands on a command line, which others can read.
    let told = writeln!(input, "{token}").and_then(|()| input.flush());
    if told.is_ok() && !slot.began(run, Process { token, port: 0, _input: input, _wanted: wanted }) {
        return watched.wait(&front.limits).map(|_| ());
    }
    front.tell();
    let errors = errors.map(|pipe| thread::spawn(move || last_words(pipe)));
    let how = thread::scope(|scope| {
        scope.spawn(move || {
            let mut turn = Some(turn);
            for line in says.into_iter().flat_map(|pipe| Lines::new(pipe, LINE)) {
                // What is no line of ours came from a library, or from a trace that took over the process.
                let Ok(said) = serde_json::from_str::<Said>(&line) else { continue };
                if let Said::Recordings { names } = &said {
                    front.add_recordings(slot, names);
                }
                if slot.hear(run, said) {
                    turn = None;
                }
                front.tell();
            }
            drop(turn);
        });
        watched.wait(&front.limits)
    });
    let said = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
    if let Some(how) = how? {
        slot.ended(run, in_words(how, front.limits.memory, &said));
    }
    Ok(())
}

fn take_input(child: &mut Child) -> std::io::Result<std::process::ChildStdin> {
    child.stdin.take().ok_or_else(|| std::io::Error::other("it has no standard input"))
}

/// Hands on what a process says on standard error; the last of it.
fn last_words(pipe: impl Read) -> String {
    let mut last: Vec<String> = Vec::new();
    for line in Lines::new(pipe, LINE) {
        // A trace that took over the process must not reach the terminal.
        let line = harmless(&line);
        let _ = writeln!(std::io::stderr(), "{line}");
        last.push(line);
        if last.len() > SAID {
            last.remove(0);
        }
    }
    last.join("\n")
}

/// A line without what acts on terminals or turns the text around it.
fn harmless(line: &str) -> String {
    line.chars().map(|c| if is_unsafe(c) { ' ' } else { c }).collect()
}

impl Front {
    /// The other recordings of what a trace was given as.
    fn add_recordings(self: &Arc<Self>, of: &Arc<Slot>, names: &[String]) {
        let [Source { path, number: None }] = of.sources.as_slice() else { return };
        for (number, name) in names.iter().enumerate().skip(1) {
            let source = Source { path: path.clone(), number: Some(number) };
            if self.slots().iter().all(|slot| slot.sources != [source.clone()]) {
                let _ = self.add(name.clone(), vec![source], of.kept());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn last_words_do_nothing() {
        assert_eq!(super::harmless("a\u{1b}[2J\u{202e}b\u{2066}\u{200b}\u{9b}\u{feff}c"), "a [2J b    c");
        assert_eq!(super::harmless("Größe 日本"), "Größe 日本");
    }
}
