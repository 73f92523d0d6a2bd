//! What is done every second: losses, taken sessions, rotation, ends.

use super::explain::explain;
use super::journal::{Entry, Journal, Kind, Mode, Phase, State};
use super::start::{bytes, describe_taken, plan};
use super::system::{Code, Live, Refused};
use super::{RESERVE, Recorder, Watch};
use std::path::PathBuf;

/// Most sessions of one kind: whoever ends more than that means it.
const MOST_SESSIONS: usize = 8;

/// What a step has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tick {
    /// The recording goes on; this has happened.
    Goes(Vec<String>),
    /// The recording has ended by itself: its sessions are stopped, its files wait for [`Recorder::collect`].
    Ended(Vec<String>),
    /// Another command has ended it.
    Gone,
}

impl Recorder<'_> {
    /// One step of the guard. Call it every second or more often.
    ///
    /// # Errors
    /// If the journal cannot be read or written, or sessions cannot be stopped at the end.
    pub fn tick(&mut self, watch: &mut Watch) -> Result<Tick, Refused> {
        let Some(mut journal) = self.machine.load().map_err(Refused)? else { return Ok(Tick::Gone) };
        if journal.phase != Phase::Running {
            // Who ends it fetches the files.
            return Ok(Tick::Gone);
        }
        let before = journal.clone();
        let mut said = Vec::new();
        for at in 0..journal.sessions.len() {
            self.guard(&mut journal, at, &mut said)?;
        }
        self.rotate(&mut journal, &mut said)?;
        let ends = self.ends(&journal, watch);
        said.append(&mut watch.troubles());
        let now = self.machine.now_ms();
        said.iter().chain(&ends).for_each(|text| journal.remark(now, text));
        for text in &said {
            // Into the trace too. It is said already: a trace that takes no marks is no reason to end.
            let _ = self.sessions.mark(text);
        }
        if journal != before {
            self.save(&journal)?;
        }
        let Some(why) = ends else { return Ok(Tick::Goes(said)) };
        said.push(why);
        said.extend(self.finish(&mut journal)?);
        Ok(Tick::Ended(said))
    }

    /// Looks after one session: starts another one if it is not ours any more, and says losses.
    fn guard(&mut self, journal: &mut Journal, at: usize, said: &mut Vec<String>) -> Result<(), Refused> {
        // Names are told in a moment: a session that was left by a crash in that moment needs no other in its place.
        let guarded = |e: &&Entry| e.state == State::Running && e.kind != Kind::Names;
        let Some(entry) = journal.sessions.get(at).filter(guarded).cloned() else {
            return Ok(());
        };
        let lost = match self.sessions.query(&entry.name) {
            Ok(live) if entry.is(&live) => {
                if let Some(entry) = journal.sessions.get_mut(at) {
                    changes(entry, &live, said);
                }
                return Ok(());
            }
            Ok(live) => format!("lost: {}", describe_taken(&live)),
            Err(Code::NO_SUCH_SESSION) => format!("lost: somebody has stopped the session `{}`", entry.name),
            // Windows does not tell now; it may in a second.
            Err(_) => return Ok(()),
        };
        if let Some(entry) = journal.sessions.get_mut(at) {
            entry.state = State::Lost;
        }
        said.push(lost);
        if journal.sessions.iter().filter(|e| e.kind == entry.kind).count() >= MOST_SESSIONS {
            said.push(format!(
                "{MOST_SESSIONS} sessions were ended by somebody else: no further one is started; what is there stays"
            ));
            return Ok(());
        }
        if entry.kind == Kind::Kernel && !self.machine.has_private_kernel_sessions() {
            said.push(
                "this Windows has no private kernel sessions (Windows 8 and later have): only providers are recorded from here on".to_owned(),
            );
            return Ok(());
        }
        let plan = plan(&journal.profiles, &journal.programs, journal.mode, journal.size)?;
        match self.begin(journal, &plan, entry.kind, true, said) {
            Ok(()) => said.push(match entry.kind {
                Kind::Kernel => {
                    "recording goes on in a private kernel session; what happened in between is missing"
                        .to_owned()
                }
                Kind::User | Kind::Names => {
                    "recording goes on in a new session; what happened in between is missing".to_owned()
                }
            }),
            Err(failure) => said.push(format!("no new session: {}", failure.refused())),
        }
        Ok(())
    }

    /// Goes on in new files when it is time, and deletes the oldest ones.
    fn rotate(&mut self, journal: &mut Journal, said: &mut Vec<String>) -> Result<(), Refused> {
        let Mode::Rotate { every_ms, keep } = journal.mode else { return Ok(()) };
        let now = self.machine.now_ms();
        if now.saturating_sub(journal.segment_ms) < every_ms {
            return Ok(());
        }
        self.next_segment(journal, said)?;
        self.make_room(journal, keep, said);
        Ok(())
    }

    /// Goes on in new files.
    pub(super) fn next_segment(
        &mut self,
        journal: &mut Journal,
        said: &mut Vec<String>,
    ) -> Result<(), Refused> {
        journal.segment_ms = self.machine.now_ms();
        let plan = plan(&journal.profiles, &journal.programs, journal.mode, journal.size)?;
        for at in 0..journal.sessions.len() {
            let Some(entry) = journal.sessions.get(at).filter(|e| e.state == State::Running).cloned() else {
                continue;
            };
            let Some(next) = next_file(&entry) else { continue };
            let Ok(live) = self.sessions.query(&entry.name) else { continue };
            if !entry.is(&live) {
                continue;
            }
            // Written down first: `NT Kernel Logger` is known by its file.
            if let Some(entry) = journal.sessions.get_mut(at) {
                entry.files.push(next.clone());
            }
            self.save(journal)?;
            let flags = if entry.kind == Kind::Kernel { plan.flags() } else { 0 };
            if let Err(code) = self.sessions.change_file(live.handle, &next, flags) {
                if let Some(entry) = journal.sessions.get_mut(at) {
                    entry.files.pop();
                }
                said.push(format!("no new file of `{}`: {}", entry.name, explain(code)));
                continue;
            }
            // The change sets the flag word, and may take the other masks with it.
            if entry.kind == Kind::Kernel && plan.masks.iter().skip(1).any(|mask| *mask != 0) {
                let _ = self.sessions.set_masks(live.handle, plan.masks);
            }
        }
        Ok(())
    }

    /// Deletes the oldest files that nobody wants kept until the rest is small enough.
    fn make_room(&mut self, journal: &mut Journal, keep: u64, said: &mut Vec<String>) {
        let mut total = 0_u64;
        // Newest first, so that what is beyond the bound is the oldest.
        let mut old: Vec<(usize, PathBuf)> = Vec::new();
        let longest = journal.sessions.iter().map(|e| e.files.len()).max().unwrap_or(0);
        for back in 0..longest {
            for (at, entry) in journal.sessions.iter().enumerate() {
                let Some(file) = entry.files.len().checked_sub(back + 1).and_then(|n| entry.files.get(n))
                else {
                    continue;
                };
                total = total.saturating_add(self.machine.file_bytes(file).unwrap_or(0));
                let is_current = back == 0;
                if total > keep && !is_current && !journal.kept.contains(file) {
                    old.push((at, file.clone()));
                }
            }
        }
        for (at, file) in old {
            match self.machine.remove(&file) {
                Ok(()) => {
                    if let Some(entry) = journal.sessions.get_mut(at) {
                        entry.files.retain(|f| *f != file);
                    }
                }
                Err(why) => said.push(format!("{}: cannot be deleted: {why}", file.display())),
            }
        }
    }

    /// Why the recording ends now, if it does.
    fn ends(&mut self, journal: &Journal, watch: &mut Watch) -> Option<String> {
        if journal.until_ms.is_some_and(|until| self.machine.now_ms() >= until) {
            return Some("the time is over".to_owned());
        }
        if !matches!(journal.mode, Mode::Ring { .. })
            && let Some(free) = self.machine.free_bytes(&journal.folder)
            && free < RESERVE
        {
            return Some(format!(
                "{} has {} left: recording ends before the disk is full",
                journal.folder.display(),
                bytes(free)
            ));
        }
        watch.fired(self.machine)
    }
}

/// Says what has changed about a session of ours.
fn changes(entry: &mut Entry, live: &Live, said: &mut Vec<String>) {
    let lost = live.events_lost.saturating_add(live.buffers_lost);
    // Each doubling is said, not each second.
    if lost > entry.lost.saturating_mul(2) {
        entry.lost = lost;
        said.push(format!(
            "`{}` has lost {} events and {} buffers so far: the disk is too slow, or the profile too rich",
            entry.name, live.events_lost, live.buffers_lost
        ));
    }
    if live.flags != entry.flags {
        said.push(format!(
            "somebody has changed what `{}` records: flags {:#010x}, before {:#010x}",
            entry.name, live.flags, entry.flags
        ));
        entry.flags = live.flags;
    }
}

/// The file after the newest: `…-001.etl`, `…-002.etl`. None in memory.
fn next_file(entry: &Entry) -> Option<PathBuf> {
    let newest = entry.files.last()?;
    let stem = newest.file_stem()?.to_str()?;
    let (head, number) = stem.rsplit_once('-')?;
    let number: u32 = number.parse().ok()?;
    Some(newest.with_file_name(format!("{head}-{:03}.etl", number.saturating_add(1))))
}
