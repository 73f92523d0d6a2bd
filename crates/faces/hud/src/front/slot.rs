//! A trace that was opened: what its process does, and where it can be asked.

use super::said::{Facts, Said};
use crate::fault::Fault;
use etwhy_child::{How, Wanted};
use etwhy_scratch::Scratch;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ChildStdin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ts_rs::TS;

/// What a process reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// A file or folder; none: all that the command line names, as one trace.
    pub path: Option<PathBuf>,
    /// Which of the recordings in it; none: the first, and the others are told.
    pub number: Option<usize>,
}

/// How far a trace is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "TraceStage")]
pub enum Stage {
    /// Others are read first.
    #[default]
    Waiting,
    /// It is being read.
    Reading,
    /// Its verdict stands; tables are being made.
    Verdict,
    /// All of it is there.
    Ready,
    /// It could not be read.
    Failed,
    /// It was there, and its process ended.
    Ended,
    /// It was closed.
    Closed,
}

impl Stage {
    /// True while its process works on it.
    pub const fn is_under_way(self) -> bool {
        matches!(self, Stage::Waiting | Stage::Reading | Stage::Verdict)
    }
}

/// A trace that was opened.
pub struct Slot {
    /// What people call it.
    pub name: String,
    /// What is read; two for a comparison.
    pub sources: Vec<Source>,
    /// The one file or folder that is read, with its real name.
    real: Option<PathBuf>,
    /// The page sent it, or standard input was it.
    sent: bool,
    /// The file of one that was sent, until it is closed. Other traces may lie in it, too.
    keep: Mutex<Option<Arc<Scratch>>>,
    state: Mutex<State>,
}

/// What is known of it now.
#[derive(Default)]
pub(super) struct State {
    pub(super) stage: Stage,
    pub(super) doing: String,
    pub(super) done: u64,
    pub(super) total: u64,
    pub(super) error: Option<String>,
    pub(super) in_part: bool,
    pub(super) facts: Facts,
    /// Counts the processes that it had: what an earlier one says no longer counts.
    run: u64,
    process: Option<Process>,
}

/// The process. It ends when this is dropped: its standard input does.
pub(super) struct Process {
    pub(super) token: String,
    pub(super) port: u16,
    pub(super) _input: ChildStdin,
    pub(super) _wanted: Wanted,
}

/// Where its process can be asked.
pub(super) struct Address {
    pub(super) port: u16,
    pub(super) token: String,
}

impl Slot {
    /// A trace that is going to be read.
    pub fn new(name: String, sources: Vec<Source>, keep: Option<Arc<Scratch>>) -> Slot {
        let real = match sources.as_slice() {
            [Source { path: Some(path), .. }] if keep.is_none() => path.canonicalize().ok(),
            _ => None,
        };
        Slot { name, sources, real, sent: keep.is_some(), keep: Mutex::new(keep), state: Mutex::default() }
    }

    /// True for a file that the page sent: nothing lies beside it for long.
    pub fn is_sent(&self) -> bool {
        self.sent
    }

    /// The file of one that was sent, as long as it is there: it stays while somebody holds this.
    pub(super) fn kept(&self) -> Option<Arc<Scratch>> {
        self.keep.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if its file went with its end: it cannot be read again.
    pub(super) fn is_gone(&self) -> bool {
        self.sent && self.kept().is_none()
    }

    /// True if nobody wants it any more.
    pub(super) fn is_closed(&self) -> bool {
        self.state().stage == Stage::Closed
    }

    /// What is read, if that is one file or folder of this machine.
    pub(super) fn path(&self) -> Option<&std::path::Path> {
        self.real.as_deref()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew; the number of this run. None if it is under way or there.
    pub(super) fn begin(&self) -> Option<u64> {
        let mut state = self.state();
        let first = state.run == 0;
        if !first && (state.stage.is_under_way() || state.stage == Stage::Ready) {
            return None;
        }
        let (run, facts) = (state.run.saturating_add(1), state.facts.clone());
        *state = State { run, facts, ..State::default() };
        Some(run)
    }

    /// True if nobody waits for this run.
    pub(super) fn is_over(&self, run: u64) -> bool {
        let state = self.state();
        state.run != run || state.stage == Stage::Closed
    }

    /// Its process began; false if nobody waits for it any more.
    pub(super) fn began(&self, run: u64, process: Process) -> bool {
        let mut state = self.state();
        let wanted = state.run == run && state.stage == Stage::Waiting;
        if wanted {
            state.stage = Stage::Reading;
            state.process = Some(process);
        }
        wanted
    }

    /// Takes note of what its process says; true if it will say nothing more that others wait for.
    pub(super) fn hear(&self, run: u64, said: Said) -> bool {
        let mut state = self.state();
        if state.run != run || !(state.stage.is_under_way() || state.stage == Stage::Ready) {
            return true;
        }
        match said {
            // Also of a part that is read again.
            Said::Doing { what, done, total } => (state.doing, state.done, state.total) = (what, done, total),
            Said::Grown(facts) if state.stage == Stage::Ready => state.facts = *facts,
            _ if state.stage == Stage::Ready => {}
            // Only what can be asked grows.
            Said::Grown(_) => {}
            Said::Identity { trace_id } => state.facts.trace_id = trace_id,
            Said::Recordings { .. } => {}
            Said::Verdict(ready) | Said::Ready(ready) if !state.listens_on(ready.port) => {
                state.stage = Stage::Failed;
                state.error = Some(format!("its process named port {}, which cannot be its own", ready.port));
                state.process = None;
            }
            Said::Verdict(ready) => {
                state.stage = Stage::Verdict;
                state.facts = ready.facts;
            }
            Said::Ready(ready) => {
                state.stage = Stage::Ready;
                (state.facts, state.in_part) = (ready.facts, ready.in_part);
            }
            Said::Failed { text } => {
                state.stage = Stage::Failed;
                state.error = Some(text);
                state.process = None;
            }
        }
        !state.stage.is_under_way()
    }

    /// Its process ended, for a reason that people are told.
    pub(super) fn ended(&self, run: u64, why: String) {
        let mut state = self.state();
        if state.run != run || matches!(state.stage, Stage::Closed | Stage::Failed) {
            return;
        }
        state.stage = if state.stage == Stage::Ready { Stage::Ended } else { Stage::Failed };
        state.error = Some(why);
        state.process = None;
    }

    /// Ends its process, gives back its memory, and removes its file if it was sent: as soon as no process holds it, which who gets it back
    /// may wait for.
    pub fn close(&self) -> Option<Arc<Scratch>> {
        let mut state = self.state();
        state.stage = Stage::Closed;
        state.process = None;
        drop(state);
        self.keep.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Where this question can be asked.
    pub(super) fn address(&self, question: &str) -> Result<Address, Fault> {
        let state = self.state();
        let may = match state.stage {
            Stage::Ready => true,
            // What is known as soon as the verdict stands: the tables that it was made of are enough for lanes.
            Stage::Verdict => matches!(question, "report" | "report_file" | "lanes"),
            _ => false,
        };
        match &state.process {
            Some(process) if may => Ok(Address { port: process.port, token: process.token.clone() }),
            _ => Err(Fault::NotNow(format!("{}: {}", self.name, state.in_words()))),
        }
    }
}

/// The first port that a system gives to who asks for any: what is below belongs to services.
const FIRST_PORT: u16 = 1024;

impl State {
    /// Takes note of the port that its process says it has. False if that is none that the system gave it, or another one than before: a trace
    /// that took over its process must not have questions sent to services of this machine, as far as that can be told.
    fn listens_on(&mut self, port: u16) -> bool {
        let Some(process) = &mut self.process else { return true };
        let fits = port >= FIRST_PORT && (process.port == 0 || process.port == port);
        if fits {
            process.port = port;
        }
        fits
    }

    fn in_words(&self) -> String {
        let error = self.error.as_deref().unwrap_or("its process ended");
        match self.stage {
            Stage::Waiting => "is read after others".to_owned(),
            Stage::Reading | Stage::Verdict => "is still being read".to_owned(),
            Stage::Ready => "its process ended".to_owned(),
            Stage::Failed => format!("could not be read: {error}"),
            Stage::Ended => format!("has to be read again: {error}"),
            Stage::Closed => "was closed".to_owned(),
        }
    }
}

/// How a process ended, for people.
pub(super) fn in_words(how: How, memory: Option<u64>, said: &str) -> String {
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("");
    let last = if last.is_empty() { String::new() } else { format!(" It said: {last}") };
    match how {
        How::TooLarge => {
            let most = memory.map(|most| format!(" {} MB", most / 1_000_000)).unwrap_or_default();
            format!(
                "its process took more memory than{most} and was ended; serve it with --memory 2GB, leave tables out with --without, or \
                 raise --memory-limit"
            )
        }
        How::Exited(code) => format!("its process ended with exit code {code}.{last}"),
        How::Crashed | How::TooLong => format!("its process ended by a fault.{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::said::Ready;

    #[test]
    fn what_was_sent_is_there_until_it_is_closed() {
        let scratch = Arc::new(Scratch::new(None).unwrap());
        let folder = scratch.path().to_path_buf();
        // Two recordings of one file.
        let slots = [Some(Arc::clone(&scratch)), Some(scratch)]
            .map(|keep| Slot::new("a.zip".to_owned(), Vec::new(), keep));
        let held = slots[1].kept();
        drop(slots[0].close());
        assert!(slots[0].is_closed() && slots[0].is_gone() && slots[0].is_sent());
        assert!(folder.exists() && !slots[1].is_gone());
        drop(slots[1].close());
        assert!(folder.exists(), "its process has it");
        drop(held);
        assert!(!folder.exists());
        assert!(!Slot::new("b.etl".to_owned(), Vec::new(), None).is_gone());
    }

    #[test]
    fn what_an_earlier_process_says_no_longer_counts() {
        let slot = Slot::new("a.etl".to_owned(), Vec::new(), None);
        let ready = || Said::Ready(Ready { port: 1, in_part: false, facts: Facts::default() });
        let first = slot.begin().unwrap();
        assert!(slot.begin().is_none(), "it is under way");
        slot.ended(first, "a fault".to_owned());
        assert_eq!(slot.state().stage, Stage::Failed);
        let second = slot.begin().unwrap();
        assert!(slot.hear(first, ready()) && slot.state().stage == Stage::Waiting);
        assert!(slot.hear(second, ready()) && slot.state().stage == Stage::Ready);
        assert!(slot.begin().is_none(), "it is there");
        slot.ended(first, "late".to_owned());
        assert_eq!(slot.state().stage, Stage::Ready);
        slot.ended(second, "killed".to_owned());
        assert_eq!(slot.state().stage, Stage::Ended);
        assert!(slot.address("sql").is_err_and(|fault| fault.to_string().contains("read again: killed")));
        slot.close();
        assert_eq!(slot.state().stage, Stage::Closed);
    }
}
