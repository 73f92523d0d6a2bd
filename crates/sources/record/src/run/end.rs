//! What other commands do with a recording: tell, mark, save, stop, cancel.

use super::Recorder;
use super::explain::explain;
use super::journal::{Entry, Journal, Kind, Mode, Phase, State, is_of_etwhy, target};
use super::start::{Failure, plan};
use super::system::{Code, Live, Provided, Refused};
use std::path::{Path, PathBuf};

/// Milliseconds between two looks at a session that still writes its state.
const LOOK_MS: u64 = 500;
/// Most looks at it: ten seconds.
const MOST_LOOKS: u32 = 20;

/// A recording and what Windows says of its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The journal.
    pub journal: Journal,
    /// Each session of it that is ours and runs.
    pub live: Vec<(Entry, Option<Live>)>,
    /// Bytes of its files.
    pub bytes: u64,
}

impl Recorder<'_> {
    fn journal(&mut self) -> Result<Journal, Refused> {
        let none = || Refused("there is no recording: `etwhy record start PROFILE` begins one".to_owned());
        self.machine.load().map_err(Refused)?.ok_or_else(none)
    }

    /// How the recording is; none if there is none.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn status(&mut self) -> Result<Option<Status>, Refused> {
        let Some(journal) = self.machine.load().map_err(Refused)? else { return Ok(None) };
        let live = journal.sessions.iter().filter(|entry| is_told(entry));
        let live = live.map(|entry| (entry.clone(), self.ours(entry).ok().flatten())).collect();
        let files = journal.sessions.iter().flat_map(|e| &e.files).chain(&journal.kept);
        let mut files: Vec<&PathBuf> = files.collect();
        files.sort();
        files.dedup();
        let bytes = files.into_iter().filter_map(|file| self.machine.file_bytes(file)).sum();
        Ok(Some(Status { journal, live, bytes }))
    }

    /// The session of an entry, if it runs and is ours.
    pub(super) fn ours(&mut self, entry: &Entry) -> Result<Option<Live>, Code> {
        match self.sessions.query(&entry.name) {
            Ok(live) => Ok(Some(live).filter(|live| entry.is(live))),
            Err(Code::NO_SUCH_SESSION) => Ok(None),
            Err(code) => Err(code),
        }
    }

    /// Writes a text into the recording.
    ///
    /// # Errors
    /// If there is none, or Windows refuses.
    pub fn mark(&mut self, text: &str) -> Result<(), Refused> {
        let mut journal = self.journal()?;
        self.sessions.mark(text).map_err(|code| Refused(explain(code)))?;
        let now = self.machine.now_ms();
        journal.remark(now, &format!("mark: {text}"));
        self.save(&journal)
    }

    /// Keeps what was recorded until now, and goes on: writes a flight recorder to files; keeps the files of a rotating recording
    /// from being deleted. Gives the files.
    ///
    /// # Errors
    /// If there is nothing to keep, or Windows refuses.
    pub fn keep(&mut self) -> Result<Vec<PathBuf>, Refused> {
        let mut journal = self.journal()?;
        match journal.mode {
            Mode::File => Err(Refused(
                "everything is kept in files anyhow: `etwhy record stop -o FILE` ends the recording"
                    .to_owned(),
            )),
            // Who is who is told by another session: behind the end nobody would end that one.
            _ if journal.phase != Phase::Running => Err(Refused(
                "the recording is not running: `etwhy record stop -o FILE` collects what it has".to_owned(),
            )),
            Mode::Ring { .. } => {
                let (files, _) = self.write_ring(&mut journal)?;
                self.save(&journal)?;
                Ok(files)
            }
            Mode::Rotate { .. } => {
                let mut said = Vec::new();
                let files: Vec<PathBuf> = journal.sessions.iter().flat_map(|e| &e.files).cloned().collect();
                for file in &files {
                    if !journal.kept.contains(file) {
                        journal.kept.push(file.clone());
                    }
                }
                self.next_segment(&mut journal, &mut said)?;
                self.save(&journal)?;
                match said.into_iter().next() {
                    Some(why) => Err(Refused(why)),
                    None => Ok(files),
                }
            }
        }
    }

    /// Writes what the sessions have in memory to files of their own, and who is who to another. Gives the files, and what the user should know.
    fn write_ring(&mut self, journal: &mut Journal) -> Result<(Vec<PathBuf>, Option<String>), Refused> {
        let count = journal.kept.len();
        let mut files = Vec::new();
        for entry in journal.sessions.clone() {
            if entry.kind == Kind::Names {
                continue;
            }
            let live = self.ours(&entry).map_err(|code| Refused(explain(code)))?;
            let Some(live) = live else { continue };
            let name =
                format!("{}-{}-save-{:03}.etl", journal.number(), entry.kind.word(), count + files.len() + 1);
            let file = journal.folder.join(name);
            journal.kept.push(file.clone());
            self.save(journal)?;
            let done = self.sessions.flush(live.handle, Some(&file));
            done.map_err(|code| Refused(format!("`{}`: {}", entry.name, explain(code))))?;
            files.push(file);
        }
        let said = match self.write_names(journal)? {
            Ok(file) => {
                files.push(file);
                None
            }
            Err(why) => Some(format!(
                "names of processes, images and files are missing where they began before what is kept in memory: {why}"
            )),
        };
        let now = self.machine.now_ms();
        said.iter().for_each(|text| journal.remark(now, text));
        Ok((files, said))
    }

    /// Has the kernel tell who is who. A session does that when it begins and when it ends, and in memory the beginning is overwritten; so another
    /// session begins and ends, after the memory was written, so that no event is in both. Gives its file, or why there is none.
    fn write_names(&mut self, journal: &mut Journal) -> Result<Result<PathBuf, String>, Refused> {
        let plan = match plan(&journal.profiles, &journal.programs, journal.mode, journal.size) {
            Ok(plan) => plan,
            Err(why) => return Ok(Err(why.0)),
        };
        // One that a crash has left.
        let is_left =
            |e: &&Entry| e.kind == Kind::Names && matches!(e.state, State::Intended | State::Running);
        for at in 0..journal.sessions.len() {
            let Some(left) = journal.sessions.get(at).filter(is_left).cloned() else { continue };
            match self.stop_one(&left) {
                Ok(state) => {
                    if let Some(left) = journal.sessions.get_mut(at) {
                        left.state = state;
                    }
                }
                Err(code) => return Ok(Err(explain(code))),
            }
        }
        match self.begin(journal, &plan, Kind::Names, true, &mut Vec::new()) {
            Ok(()) => {}
            Err(Failure::Windows(code)) => return Ok(Err(explain(code))),
            Err(Failure::Journal(why)) => return Err(why),
        }
        let Some(entry) = journal.sessions.last().cloned() else {
            return Ok(Err(explain(Code::NO_SUCH_SESSION)));
        };
        let stopped = self.stop_one(&entry);
        if let (Ok(state), Some(entry)) = (stopped, journal.sessions.last_mut()) {
            entry.state = state;
        }
        let told = match (stopped, entry.files.first()) {
            (Ok(State::Stopped), Some(file)) => {
                journal.kept.push(file.clone());
                Ok(file.clone())
            }
            (Err(code), _) => Err(explain(code)),
            _ => Err(explain(Code::NO_SUCH_SESSION)),
        };
        self.save(journal)?;
        Ok(told)
    }

    /// Ends the recording; its files stay where they are until [`Recorder::collect`].
    ///
    /// # Errors
    /// If there is none, if it waits for a start of Windows, or a session cannot be stopped: then it can be tried again.
    pub fn stop(&mut self) -> Result<Journal, Refused> {
        let mut journal = self.journal()?;
        if journal.phase == Phase::Boot {
            self.booted(&mut journal)?;
        }
        if journal.phase != Phase::Stopped {
            self.finish(&mut journal)?;
        }
        Ok(journal)
    }

    /// Has providers tell their state, and stops all sessions of ours. Gives what the user should know.
    pub(super) fn finish(&mut self, journal: &mut Journal) -> Result<Option<String>, Refused> {
        let mut said = None;
        if journal.phase == Phase::Running {
            self.last_words(journal);
            if matches!(journal.mode, Mode::Ring { .. }) {
                (_, said) = self.write_ring(journal)?;
            }
        }
        journal.phase = Phase::Stopping;
        self.save(journal)?;
        self.stop_sessions(journal)?;
        journal.phase = Phase::Stopped;
        self.save(journal)?;
        Ok(said)
    }

    /// State of providers: names of .NET methods, connections, sessions.
    fn last_words(&mut self, journal: &Journal) {
        // A journal of profiles that this program does not have ends without.
        let Ok(plan) = plan(&journal.profiles, &journal.programs, journal.mode, journal.size) else { return };
        let asked: Vec<_> = plan.providers.iter().filter_map(|p| Some((p, p.at_stop?))).collect();
        if asked.is_empty() {
            return;
        }
        let running = journal.sessions.iter().rev().filter(|e| e.kind == Kind::User);
        for entry in running.cloned().collect::<Vec<_>>() {
            let Ok(Some(live)) = self.ours(&entry) else { continue };
            for (provider, keywords) in &asked {
                // Providers may have gone with their program; the rest of the recording does not suffer.
                let _ = self.sessions.enable(live.handle, provider, Provided::State(*keywords));
            }
            self.wait_until_written(&entry);
        }
    }

    /// Waits until a session writes nothing more, or ten seconds.
    fn wait_until_written(&mut self, entry: &Entry) {
        let mut before = None;
        for _ in 0..MOST_LOOKS {
            self.machine.pause(LOOK_MS);
            let Ok(Some(live)) = self.ours(entry) else { return };
            let _ = self.sessions.flush(live.handle, None);
            if before == Some(live.buffers_written) {
                return;
            }
            before = Some(live.buffers_written);
        }
    }

    /// Stops what is ours. Somebody else's sessions are left alone, whatever their name is.
    pub(super) fn stop_sessions(&mut self, journal: &mut Journal) -> Result<(), Refused> {
        let mut failed = None;
        for at in 0..journal.sessions.len() {
            let Some(entry) = journal.sessions.get(at).filter(|e| e.state != State::Stopped).cloned() else {
                continue;
            };
            match self.stop_one(&entry) {
                Ok(state) => {
                    if let Some(entry) = journal.sessions.get_mut(at) {
                        entry.state = state;
                    }
                }
                Err(code) => failed = Some(format!("`{}` cannot be stopped: {}", entry.name, explain(code))),
            }
        }
        self.save(journal)?;
        failed.map_or(Ok(()), |why| Err(Refused(why)))
    }

    /// Stops the session of an entry, if it runs and is ours.
    fn stop_one(&mut self, entry: &Entry) -> Result<State, Code> {
        match self.ours(entry)? {
            Some(live) => match self.sessions.stop(live.handle) {
                Ok(()) | Err(Code::NO_SUCH_SESSION) => Ok(State::Stopped),
                Err(code) => Err(code),
            },
            None => Ok(State::Lost),
        }
    }

    /// Moves the files of a recording that has ended to where the user wants them, and forgets the recording. The files of a
    /// rotating recording stay in its folder. Gives the files, that of the kernel's events first.
    ///
    /// # Errors
    /// If the recording has not ended, if a file is there already and is not to be replaced, or one cannot be moved: then it can be
    /// tried again with another place.
    pub fn collect(&mut self, output: &Path, replace: bool) -> Result<Vec<PathBuf>, Refused> {
        let journal = self.journal()?;
        if journal.phase != Phase::Stopped {
            return Err(Refused("the recording has not ended".to_owned()));
        }
        let saved = journal.kept.iter().map(|file| (kind_of(file), file.clone()));
        let written: Vec<(Kind, PathBuf)> = match journal.mode {
            Mode::Ring { .. } => saved.collect(),
            _ => {
                let all = journal.sessions.iter().flat_map(|e| e.files.iter().map(|f| (e.kind, f.clone())));
                all.collect()
            }
        };
        let mut found: Vec<(Kind, PathBuf)> = written
            .into_iter()
            .filter(|(_, file)| self.machine.file_bytes(file).is_some_and(|n| n > 0))
            .collect();
        found.sort_by_key(|(kind, _)| *kind != Kind::Kernel);
        let files = match journal.mode {
            Mode::Rotate { .. } => found.into_iter().map(|(_, file)| file).collect(),
            _ => self.move_to(&found, output, replace)?,
        };
        self.machine.clear().map_err(Refused)?;
        Ok(files)
    }

    /// Moves files that [`Recorder::keep`] has written to where the user wants them, and forgets them.
    ///
    /// # Errors
    /// If one is there already and is not to be replaced, if one cannot be moved, or if they are those of a rotating recording, which
    /// stay.
    pub fn take(&mut self, saved: &[PathBuf], output: &Path, replace: bool) -> Result<Vec<PathBuf>, Refused> {
        let mut journal = self.journal()?;
        if !matches!(journal.mode, Mode::Ring { .. }) {
            return Err(Refused(
                "the files of a rotating recording stay in its folder, where they are kept: leave out -o"
                    .to_owned(),
            ));
        }
        let saved: Vec<(Kind, PathBuf)> = saved.iter().map(|file| (kind_of(file), file.clone())).collect();
        let files = self.move_to(&saved, output, replace)?;
        journal.kept.retain(|file| saved.iter().all(|(_, taken)| taken != file));
        self.save(&journal)?;
        Ok(files)
    }

    /// Moves files: the first of the kernel's to `output`, others beside it.
    fn move_to(
        &mut self,
        found: &[(Kind, PathBuf)],
        output: &Path,
        replace: bool,
    ) -> Result<Vec<PathBuf>, Refused> {
        let mut seen: Vec<Kind> = Vec::new();
        let targets: Vec<PathBuf> = found
            .iter()
            .map(|(kind, _)| {
                seen.push(*kind);
                target(*kind, seen.iter().filter(|other| *other == kind).count(), output)
            })
            .collect();
        if !replace {
            self.must_be_new(&targets)?;
        }
        for ((_, file), target) in found.iter().zip(&targets) {
            self.machine
                .move_file(file, target)
                .map_err(|why| Refused(format!("{}: cannot be written: {why}", target.display())))?;
        }
        Ok(targets)
    }

    /// Refuses what would take the place of a file.
    pub(super) fn must_be_new(&mut self, targets: &[PathBuf]) -> Result<(), Refused> {
        match targets.iter().find(|target| self.machine.file_bytes(target).is_some()) {
            Some(taken) => {
                Err(Refused(format!("{} is there already: name another file, or --force", taken.display())))
            }
            None => Ok(()),
        }
    }

    /// Ends the recording and deletes its files; without one ends sessions and removes keys of etwhy that a lost journal has left over. Gives what
    /// was ended.
    ///
    /// # Errors
    /// If a session cannot be stopped.
    pub fn cancel(&mut self) -> Result<Vec<String>, Refused> {
        if let Some(mut journal) = self.machine.load().map_err(Refused)? {
            if journal.phase == Phase::Boot {
                self.disarm(&journal)?;
                journal.sessions.iter_mut().for_each(|entry| self.find_numbered(entry));
            }
            journal.phase = Phase::Stopping;
            self.save(&journal)?;
            self.stop_sessions(&mut journal)?;
            self.remove_files(&journal);
            self.machine.clear().map_err(Refused)?;
            return Ok(journal.sessions.into_iter().filter(is_told).map(|e| e.name).collect());
        }
        let live = self.sessions.list().map_err(|code| Refused(explain(code)))?;
        let mut ended = Vec::new();
        for left in live.into_iter().filter(is_of_etwhy) {
            let done = self.sessions.stop(left.handle);
            done.map_err(|code| Refused(format!("`{}` cannot be stopped: {}", left.name, explain(code))))?;
            ended.push(left.name);
        }
        for left in self.machine.boots().map_err(Refused)? {
            self.remove_key(&left.key)?;
            ended.push(left.key);
        }
        Ok(ended)
    }

    pub(super) fn remove_files(&mut self, journal: &Journal) {
        for file in journal.sessions.iter().flat_map(|e| &e.files).chain(&journal.kept) {
            // What is not there needs no deleting; what cannot be deleted is a file in a folder of ours.
            let _ = self.machine.remove(file);
        }
    }
}

/// Whether a session is worth telling of: one that named what is there, and has ended, is not.
fn is_told(entry: &Entry) -> bool {
    entry.kind != Kind::Names || entry.state != State::Stopped
}

/// What a saved file holds, by its name.
fn kind_of(file: &Path) -> Kind {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let named =
        [Kind::User, Kind::Names].into_iter().find(|kind| name.contains(&format!("-{}-", kind.word())));
    named.unwrap_or(Kind::Kernel)
}
