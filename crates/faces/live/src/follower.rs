//! Reads a trace while it is written, and gives the tables of a window.

use crate::anomalies::{LATE_BUFFERS, REFUSED, REPLACED, TIME_DOUBTED};
use crate::arrivals::{Arrivals, Marks};
use crate::error::{LiveError, Result};
use crate::folder;
use crate::options::FollowOptions;
use crate::part::{Part, Span, read};
use etwhy_base::time::unix_ns;
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::Ledger;
use etwhy_etl::abi::logfile::{MODE_CIRCULAR, MODE_NEW_FILE};
use etwhy_etl::read::{EtlFile, Growth, Held, OpenOptions, Timeline, forget_before};
use etwhy_table::Memory;
use etwhy_trace::{Base, Output, Symbols};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A window, in order keys and in nanoseconds since 1970 (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Order key of its begin.
    pub from: i64,
    /// Order key of its end, exclusive.
    pub to: i64,
    /// Its begin in nanoseconds since the start of the trace.
    pub from_ns: i64,
    /// Its end in nanoseconds since the start of the trace.
    pub to_ns: i64,
    /// UTC of the start of the trace, in nanoseconds since 1970.
    pub start_unix_ns: i64,
}

/// What a look at the files brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Buffers that are new.
    pub buffers: usize,
    /// Files that were replaced or cut off.
    pub replaced: usize,
}

enum Place {
    /// One file.
    File(PathBuf),
    /// The traces of a folder whose names begin so.
    Folder(PathBuf, String),
    /// A finished file that is played again, with the buffers that were not written yet.
    Replay(Held),
}

/// A trace that is followed.
pub struct Follower {
    place: Place,
    paths: Vec<PathBuf>,
    files: Vec<EtlFile>,
    timeline: Timeline,
    base: Base,
    /// What trackers know before the last seconds of the window, once somebody has asked for those.
    last: Option<Base>,
    /// Order key at which the last seconds begin that were asked for latest.
    last_from: i64,
    symbols: Symbols,
    /// Schemas that the user gave.
    decoder: Decoder,
    options: FollowOptions,
    arrivals: Arrivals,
    /// Up to which order key tables were given.
    complete: i64,
    replaced: u64,
    /// Files of a folder that the system does not let us read.
    refused: BTreeMap<PathBuf, etwhy_etl::Error>,
    ended: bool,
    /// Files that were kept although they are past, because those behind them do not say who is who.
    needed: usize,
    /// Files that are past and were left out, as they were then: one that has changed since is another.
    past: BTreeMap<PathBuf, Stand>,
}

/// Size of a file and when it was written.
type Stand = (u64, Option<SystemTime>);

fn stand(path: &Path) -> Option<Stand> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok()))
}

impl Follower {
    /// Follows a file, or the traces of a folder. A file that holds nothing yet is waited for.
    ///
    /// # Errors
    /// If there is no such file, or if it cannot be followed.
    pub fn new(path: &Path, options: FollowOptions, symbols: Symbols, decoder: Decoder) -> Result<Follower> {
        let meta =
            std::fs::metadata(path).map_err(|source| LiveError::Io { path: path.to_owned(), source })?;
        if meta.is_dir() {
            return Follower::of_folder(path, "", options, symbols, decoder);
        }
        let mut follower = Follower::at(Place::File(path.into()), options, symbols, decoder);
        follower.poll()?;
        Ok(follower)
    }

    /// Follows the traces of a folder whose names begin so.
    ///
    /// # Errors
    /// Those of [`Follower::poll`].
    pub fn of_folder(
        path: &Path,
        begins: &str,
        options: FollowOptions,
        symbols: Symbols,
        decoder: Decoder,
    ) -> Result<Follower> {
        let place = Place::Folder(path.into(), begins.to_owned());
        let mut follower = Follower::at(place, options, symbols, decoder);
        follower.poll()?;
        match follower.refused.pop_first() {
            // Waiting for others would look as if there were none.
            Some((_, error)) if follower.files.is_empty() => Err(error.into()),
            _ => Ok(follower),
        }
    }

    /// Plays a finished file again: [`Follower::play`] says up to which moment it was written.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn replay(
        path: &Path,
        options: FollowOptions,
        symbols: Symbols,
        decoder: Decoder,
    ) -> Result<Follower> {
        let mut file = EtlFile::open(path, path, &OpenOptions { chunk: Some(1 << 20) })?;
        let held = file.hold_back();
        let mut follower = Follower::at(Place::Replay(held), options, symbols, decoder);
        follower.files.push(file);
        follower.paths.push(path.to_owned());
        follower.set_timeline();
        Ok(follower)
    }

    fn at(place: Place, options: FollowOptions, symbols: Symbols, decoder: Decoder) -> Follower {
        Follower {
            place,
            paths: Vec::new(),
            files: Vec::new(),
            timeline: Timeline::read(&[], &mut Ledger::new()),
            base: Base::new(decoder.clone()),
            last: None,
            last_from: i64::MIN,
            symbols,
            decoder,
            options,
            arrivals: Arrivals::default(),
            complete: i64::MIN,
            replaced: 0,
            refused: BTreeMap::new(),
            ended: false,
            needed: 0,
            past: BTreeMap::new(),
        }
    }

    /// Files that are followed.
    pub fn files(&self) -> &[EtlFile] {
        &self.files
    }

    /// Their paths.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// When the next buffer of a recording that is played again was written, in nanoseconds since the start of the trace.
    pub fn next_ns(&self) -> Option<i64> {
        let Place::Replay(held) = &self.place else { return None };
        Some(self.timeline.ticks_to_ns(0, held.next_ticks()?))
    }

    /// The recording that is played again goes on to `until_ns` since the start of the trace.
    pub fn play(&mut self, until_ns: i64) -> Polled {
        // Wrong times may lie behind all that nanoseconds can count.
        let until = if until_ns == i64::MAX { i64::MAX } else { self.timeline.ns_to_key(until_ns) };
        let Place::Replay(held) = &mut self.place else { return Polled::default() };
        let Some(file) = self.files.first_mut() else { return Polled::default() };
        // The clock of a single file counts its keys.
        let buffers = file.release(held, until);
        self.ended |= held.next_ticks().is_none();
        self.note_arrivals(0, buffers);
        Polled { buffers, replaced: 0 }
    }

    /// No more buffers will come: what is left of the files is judged as it stands, and nothing is waited for.
    ///
    /// # Errors
    /// Those of [`Follower::poll`].
    pub fn end(&mut self) -> Result<Polled> {
        self.ended = true;
        self.poll()
    }

    /// True once no more buffers are expected.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// True if every file was closed by its session, and no new one is there.
    pub fn is_closed(&self) -> bool {
        let closed = |file: &EtlFile| file.header().end_time != 0 && file.header().buffers_written != 0;
        self.ended || (!self.files.is_empty() && self.files.iter().all(closed))
    }

    /// Looks for what came since the last time.
    ///
    /// # Errors
    /// If the system refuses, or if what is there cannot be followed.
    pub fn poll(&mut self) -> Result<Polled> {
        let mut polled = Polled::default();
        let paths = match &self.place {
            Place::Replay(_) => return Ok(polled),
            Place::File(path) => vec![path.clone()],
            Place::Folder(path, begins) => folder::traces(path, begins)?,
        };
        let is_folder = matches!(self.place, Place::Folder(..));
        self.refused.retain(|path, _| paths.contains(path));
        for number in 0..self.files.len() {
            let (Some(file), Some(path)) = (self.files.get_mut(number), self.paths.get(number)) else {
                continue;
            };
            if !paths.contains(path) {
                // Its buffers can still be read where the system allows; new ones do not come.
                continue;
            }
            let grown = file.grow(path, self.ended);
            if grown.is_ok() {
                self.refused.remove(path);
            }
            match grown {
                Ok(Growth::Buffers(0)) => {}
                Ok(Growth::Buffers(count)) => {
                    polled.buffers += count;
                    self.note_arrivals(number, count);
                }
                Ok(Growth::Replaced) => polled.replaced += 1,
                // One file does not end a recording of many: it is asked again, or gone from the folder by then.
                Err(error @ etwhy_etl::Error::Io { .. }) if is_folder => {
                    self.refused.insert(path.clone(), error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if polled.replaced > 0 {
            self.replaced += polled.replaced as u64;
            self.begin_again(paths.clone())?;
        }
        self.past.retain(|path, _| paths.contains(path));
        for path in paths {
            let is_past = self.past.get(&path).is_some_and(|then| stand(&path).as_ref() == Some(then));
            if !self.paths.contains(&path) && !is_past {
                polled.buffers += self.add(path)?;
            }
        }
        Ok(polled)
    }

    /// Opens another file, if it holds something already.
    fn add(&mut self, path: PathBuf) -> Result<usize> {
        let file = match EtlFile::open_growing(&path, &path, self.options.header.as_ref()) {
            Ok(file) => file,
            Err(error @ etwhy_etl::Error::Io { .. }) if matches!(self.place, Place::Folder(..)) => {
                self.refused.insert(path, error);
                return Ok(0);
            }
            Err(error @ etwhy_etl::Error::Io { .. }) => return Err(error.into()),
            // Nothing but a first piece was written yet; or it is no trace, which a user hears of a single file.
            Err(error) => {
                let is_file = matches!(self.place, Place::File(_));
                let has_begun = std::fs::metadata(&path).is_ok_and(|meta| meta.len() >= FIRST_BUFFER);
                return if is_file && has_begun { Err(error.into()) } else { Ok(0) };
            }
        };
        if file.header().log_file_mode & MODE_CIRCULAR != 0 && file.header().end_time == 0 {
            let why = "a circular file overwrites its oldest buffers and cannot be followed; `etwhy why` reads it once its \
                       session has stopped, and sessions that write new files (--rotate) can be followed";
            if matches!(self.place, Place::File(_)) {
                return Err(LiveError::NotFollowed { path, why: why.to_owned() });
            }
            return Ok(0);
        }
        self.refused.remove(&path);
        let count = file.buffers().len();
        self.files.push(file);
        self.paths.push(path.clone());
        let before = self.timeline.clone();
        self.set_timeline();
        if !self.timeline.counts_like(&before) {
            self.last = None;
        }
        if self.base.at() != i64::MIN && !self.timeline.counts_like(&before) {
            // It began earlier than all others: times would count from another zero.
            let paths = self.paths.clone();
            self.begin_again(paths)?;
            return Ok(count);
        }
        if self.timeline.is_shared() != before.is_shared() {
            // What came before has other keys now.
            self.complete = i64::MIN;
            self.arrivals.begin_again();
            for number in 0..self.files.len() {
                let count = self.files.get(number).map_or(0, |file| file.buffers().len());
                self.note_arrivals(number, count);
            }
            return Ok(count);
        }
        self.note_arrivals(self.files.len().saturating_sub(1), count);
        Ok(count)
    }

    /// Forgets everything and reads these files from their beginning.
    fn begin_again(&mut self, paths: Vec<PathBuf>) -> Result<()> {
        self.files.clear();
        self.paths.clear();
        self.last = None;
        self.base = Base::new(self.decoder.clone());
        self.arrivals.begin_again();
        self.complete = i64::MIN;
        for path in paths {
            self.add(path)?;
        }
        Ok(())
    }

    fn set_timeline(&mut self) {
        self.timeline = Timeline::read(&self.files, &mut Ledger::new());
    }

    fn note_arrivals(&mut self, number: usize, count: usize) {
        let Some(file) = self.files.get(number) else { return };
        let index = u16::try_from(number).unwrap_or(u16::MAX);
        let window = self.base.at();
        let last = self.last.as_ref().map_or(window, Base::at);
        let marks = Marks { complete: self.complete, window, last };
        self.arrivals.came((index, file), count, &self.timeline, marks);
    }

    /// The window that can be asked now; `None` if nothing has come yet.
    pub fn window(&self) -> Option<Window> {
        let to = match self.ended {
            true => self.arrivals.newest_of_all(self.closed_ns(), &self.timeline)?.saturating_add(1),
            false => self.arrivals.complete(self.processors(), &self.timeline, self.options.slack_ns)?,
        };
        let ns = |key: i64| self.timeline.key_to_ns(key);
        if ns(to) <= 0 {
            return None;
        }
        let earliest = self.options.window_ns.map_or(i64::MIN, |window| {
            let begin = ns(to).saturating_sub(window);
            if begin <= 0 { i64::MIN } else { self.timeline.ns_to_key(begin) }
        });
        let from = earliest.max(self.within_bytes(to)).max(self.base.at());
        let from_ns = if from == i64::MIN { 0 } else { ns(from) };
        let start_unix_ns = self.timeline.start_unix_ns();
        Some(Window { from, to, from_ns, to_ns: ns(to), start_unix_ns })
    }

    /// When the sessions ended, if all of them said so, in nanoseconds since the start of the trace.
    fn closed_ns(&self) -> Option<i64> {
        let ends = self.files.iter().map(|file| file.header().end_time);
        let last = ends.clone().max().filter(|_| ends.clone().all(|end| end != 0))?;
        Some(unix_ns(last).saturating_sub(self.timeline.start_unix_ns()))
    }

    /// Processors of the machine.
    fn processors(&self) -> usize {
        self.files.iter().map(|file| file.header().processors as usize).max().unwrap_or(1)
    }

    /// From which order key on buffers fit into the bytes of the window.
    fn within_bytes(&self, to: i64) -> i64 {
        let mut all: Vec<(i64, u64)> = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            let entries = file.buffers().iter();
            all.extend(entries.filter_map(|entry| {
                let key = self.timeline.ticks_to_key(number, entry.first_ticks?);
                (key < to).then_some((key, u64::from(entry.end)))
            }));
        }
        all.sort_unstable();
        let mut sum = 0u64;
        for (key, bytes) in all.into_iter().rev() {
            sum = sum.saturating_add(bytes);
            if sum > self.options.window_bytes {
                return key;
            }
        }
        i64::MIN
    }

    /// Moves on to the window that can be asked now: what lies before it is given to trackers and forgotten. `None` if nothing has
    /// come yet.
    ///
    /// # Errors
    /// If files that have to be read again cannot be.
    pub fn advance(&mut self) -> Result<Option<Window>> {
        let Some(window) = self.window() else { return Ok(None) };
        self.drop_past_files(&window)?;
        let Some(window) = self.window() else { return Ok(None) };
        let threads = self.options.threads;
        let past = window.from.min(self.kept_from(&window));
        if past != i64::MIN {
            self.base.advance(&self.files, &self.timeline, &mut self.symbols, threads, past);
            forget_before(&mut self.files, &self.timeline, self.base.at());
        }
        self.complete = self.complete.max(window.to);
        Ok(Some(window))
    }

    /// From which order key on buffers are kept: a processor that writes seldom may still fill one that begins before the window.
    fn kept_from(&self, window: &Window) -> i64 {
        let oldest = self.within_bytes(window.to);
        self.behind(window, self.options.patience_ns).max(oldest).min(window.from)
    }

    /// Up to where trackers may be shown what lies before a part: what every processor has written past, and at most `patience_ns`
    /// before it begins.
    fn behind(&self, part: &Window, patience_ns: i64) -> i64 {
        if self.ended {
            return part.from;
        }
        let oldest = self.timeline.ns_to_key(part.from_ns.saturating_sub(patience_ns));
        self.arrivals.passed_by_all(self.processors()).map_or(oldest, |key| key.max(oldest)).min(part.from)
    }

    /// The last `length_ns` of the window that [`Follower::advance`] gave; `None` if that is less than twice as long. What trackers
    /// know at its beginning moves on with it, so that reading it costs nothing for the rest of the window.
    pub fn last(&mut self, window: &Window, length_ns: i64) -> Option<Window> {
        if window.length_ns() < length_ns.saturating_mul(2) {
            return None;
        }
        let from = self.timeline.ns_to_key(window.to_ns.saturating_sub(length_ns)).max(window.from);
        let last = Window { from, from_ns: self.timeline.key_to_ns(from), ..*window };
        let known = self.last.take().filter(|known| known.at() >= self.base.at() && known.at() <= last.from);
        let mut known = known.unwrap_or_else(|| {
            self.arrivals.late_for_last = 0;
            self.base.copy()
        });
        let (threads, to) = (self.options.threads, self.behind(&last, LAST_PATIENCE_NS));
        known.advance(&self.files, &self.timeline, &mut self.symbols, threads, to);
        (self.last, self.last_from) = (Some(known), from);
        Some(last)
    }

    /// Buffers that came too late for the last seconds are put where they belong when those are asked next.
    pub fn renew_last(&mut self) {
        if self.arrivals.late_for_last > 0 {
            self.last = None;
        }
    }

    /// Leaves out the files whose sessions had ended before the window, if those that are left begin with who is who: what
    /// trackers know then grows with a segment and not with the days.
    fn drop_past_files(&mut self, window: &Window) -> Result<()> {
        let past = |(number, file): (usize, &EtlFile)| {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            let ends = self.arrivals.end_of(number);
            file.header().end_time != 0
                && file.header().log_file_mode & MODE_NEW_FILE == 0
                && ends.is_some_and(|end| end < window.from)
        };
        let mut gone: Vec<bool> = self.files.iter().enumerate().map(past).collect();
        // Files of one session need the first of them, which says who is who.
        let kept = self.files.iter().zip(&gone).filter(|(_, gone)| !**gone);
        let sessions: Vec<i64> = kept.map(|(file, _)| file.header().start_time).collect();
        for (file, gone) in self.files.iter().zip(&mut gone) {
            *gone &= !sessions.contains(&file.header().start_time);
        }
        let count = gone.iter().filter(|gone| **gone).count();
        if count <= self.needed || count == self.files.len() || !matches!(self.place, Place::Folder(..)) {
            return Ok(());
        }
        let known = self.base.holds().1[0];
        let (files, paths, timeline) =
            (std::mem::take(&mut self.files), std::mem::take(&mut self.paths), self.timeline.clone());
        // One that was deleted meanwhile can only be read as it was opened.
        let left = paths.iter().zip(&gone).filter(|(_, gone)| !**gone).map(|(path, _)| path);
        let mut reopened = Vec::new();
        for path in left.clone() {
            match EtlFile::open_growing(path, path, self.options.header.as_ref()) {
                Ok(file) => reopened.push(file),
                Err(_) => {
                    (self.files, self.paths) = (files, paths);
                    return Ok(());
                }
            }
        }
        let left: Vec<PathBuf> = left.cloned().collect();
        let now = Timeline::read(&reopened, &mut Ledger::new());
        if now.is_shared() != timeline.is_shared() {
            // What has come would have other keys.
            (self.files, self.paths, self.timeline, self.needed) = (files, paths, timeline, count);
            return Ok(());
        }
        let mut base = Base::new(self.decoder.clone());
        base.advance(&reopened, &now, &mut self.symbols, self.options.threads, window.from);
        if base.holds().1[0] * 4 < known {
            // They do not say who was there before.
            (self.files, self.paths, self.timeline, self.needed) = (files, paths, timeline, count);
            return Ok(());
        }
        let kept: Vec<u16> = (0..).zip(&gone).filter(|(_, gone)| !**gone).map(|(number, _)| number).collect();
        self.arrivals.renumber(&kept);
        let gone = paths.iter().zip(&gone).filter(|(_, gone)| **gone).map(|(path, _)| path);
        self.past.extend(gone.filter_map(|path| Some((path.clone(), stand(path)?))));
        (self.files, self.paths, self.timeline, self.base, self.needed) = (reopened, left, now, base, 0);
        self.last = None;
        Ok(())
    }

    /// The tables of the window that [`Follower::advance`] gave, or of its last seconds, up to its end.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn tables(&mut self, window: &Window, tables: &BTreeSet<String>, memory: &Memory) -> Result<Output> {
        let (span, rests) = (self.span(window), self.rests_on_last(window));
        let base = self.last.as_ref().filter(|_| rests).unwrap_or(&self.base);
        read(&self.files, &self.timeline, base, &span, (tables, memory), &mut self.symbols)
    }

    /// The window that [`Follower::advance`] gave, to be read while more comes.
    pub fn part(&self, window: &Window) -> Part {
        Part {
            files: self.files.clone(),
            timeline: self.timeline.clone(),
            base: self.last.as_ref().filter(|_| self.rests_on_last(window)).unwrap_or(&self.base).copy(),
            span: self.span(window),
        }
    }

    /// Whether what trackers know before the last seconds is used for this window: it is nearer to the beginning. Buffers that came too late
    /// for it are missing there, so that only the last seconds rest on it then.
    fn rests_on_last(&self, window: &Window) -> bool {
        let whole = self.arrivals.late_for_last == 0 || window.from == self.last_from;
        let known = self.last.as_ref().map(Base::at);
        whole && known.is_some_and(|at| (self.base.at()..=window.from).contains(&at))
    }

    fn span(&self, window: &Window) -> Span {
        let mut ledger = Ledger::new();
        // What it says of the clocks of the files is true of each window.
        let _ = Timeline::read(&self.files, &mut ledger);
        let late_for_last = if self.rests_on_last(window) { self.arrivals.late_for_last } else { 0 };
        ledger.count(&LATE_BUFFERS, self.arrivals.too_late + late_for_last);
        ledger.count(&REPLACED, self.replaced);
        ledger.count(&REFUSED, self.refused.len() as u64);
        let doubted = self.arrivals.leaps_behind(window.to);
        ledger.count(&TIME_DOUBTED, doubted);
        // What lies behind the end of a recording that is over has a wrong time.
        let end = if self.ended && doubted == 0 { i64::MAX } else { window.to };
        Span { from: window.from, end, threads: self.options.threads, ledger }
    }

    /// Buffers that came late, and by how many nanoseconds the worst of them.
    pub fn lateness(&self) -> (u64, i64) {
        (self.arrivals.late, self.arrivals.latest_ns)
    }

    /// Buffers of which a part came when nobody could see it any more.
    pub fn too_late(&self) -> u64 {
        self.arrivals.too_late
    }

    /// Buffers of which a part came too late for the last seconds, but not for the window.
    pub fn late_for_last(&self) -> u64 {
        self.arrivals.late_for_last
    }

    /// What trackers hold: bytes of texts, and numbers of processes, threads and files.
    pub fn holds(&self) -> (usize, [usize; 3]) {
        self.base.holds()
    }
}

/// How late a buffer may come and still be put where it belongs in the last seconds: sessions that are followed flush theirs once a
/// second.
const LAST_PATIENCE_NS: i64 = 2_000_000_000;
/// No session has smaller buffers than this.
const FIRST_BUFFER: u64 = 4096;

/// Schemas of nobody.
pub fn no_schemas() -> Decoder {
    Decoder::new(&DecoderOptions::default(), &mut Ledger::new())
}
