//! What `follow` and `live` share: arguments, the loop, what is shown.

use super::show::{Show, Sink};
use crate::commands::serve::reader::{EVENTS, write_part};
use crate::exit::{self, Exit};
use crate::open::{TraceArgs, size};
use crate::options::time::duration;
use crate::report::quality;
use crate::rules::RuleArgs;
use crate::symbol_args::{SymbolArgs, compact_cache};
use anyhow::Context as _;
use clap::{Args as _, FromArgMatches as _};
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::Ledger;
use etwhy_etl::read::EtlFile;
use etwhy_input::{InputError, Kind, SNIFF_LEN, WantedFiles, sniff};
use etwhy_live::anomalies::LATE_BUFFERS;
use etwhy_live::{Fired, FollowOptions, Follower, Look, Looks, Range, StopWhen, Watch};
use etwhy_record::run::Trigger;
use etwhy_rules::Rule;
use etwhy_symbols::{NameStyle, Resolver};
use etwhy_table::{Database, Memory};
use etwhy_trace::Symbols;
use etwhy_trace::identity::{Identity, Machine};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is asked of a trace that is followed.
#[derive(clap::Args, Clone, Debug)]
pub struct FollowArgs {
    /// Length of the window that is looked at
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    window: i64,
    /// Most bytes of the trace in a window
    #[arg(long, value_name = "SIZE", default_value = "512MB", value_parser = size)]
    most: u64,
    /// Show what one process does: processors, waits and who ended them, files, registry, windows that do not answer
    #[arg(long, value_name = "NAME|PID")]
    process: Option<String>,
    /// Print JSON: one line for each window, and for each look at its last seconds
    #[arg(long, conflicts_with_all = ["open", "port"])]
    json: bool,
    /// Open the page in a browser: timeline, findings with their history, all tables of the window
    #[arg(long, conflicts_with = "process")]
    pub(super) open: bool,
    /// Port to listen on (0: any that is free): serve the page, whose address is printed, and open no browser without --open
    #[arg(long, value_name = "PORT", conflicts_with = "process")]
    pub(super) port: Option<u16>,
    /// Save the last window as a trace when following ends: its buffers as they are, and those that say who is who
    #[arg(long, value_name = "FILE", conflicts_with_all = ["open", "port"])]
    save: Option<PathBuf>,
    /// Follow for another process of this program
    #[arg(long, hide = true)]
    pub(super) worker: bool,
    /// Stop when this finding is found (`etwhy rules` lists them). Exit code 0 if it was, 1 if the trace ended without it
    #[arg(long, value_name = "ID")]
    until_finding: Vec<String>,
    /// Stop when this happens (several: the first of them): `finding:ID`, `event:PROVIDER`, `event:PROVIDER/ID` (or a name, or
    /// `/ID/FIELD=VALUE`), `start:NAME` or `exit:NAME` (a process). Exit code 0 if it did, 1 if the trace ended without it
    #[arg(long, value_name = "TRIGGER", value_parser = etwhy_live::trigger)]
    stop_when: Vec<Trigger>,
    /// A file of the same session, of which the header is taken (clock, machine) if what is followed begins without one: the first
    /// segment of the recording
    #[arg(long, value_name = "FILE", conflicts_with_all = ["save", "open", "port"])]
    header: Option<PathBuf>,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Folders or files of provider manifests (.man, .xml)
    #[arg(long, value_name = "DIR")]
    manifests: Vec<PathBuf>,
    /// Threads to use
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
}

/// How long to wait for buffers that have not come.
const NAP: Duration = Duration::from_millis(100);
/// How long a processor without buffers is waited for: sessions that are followed flush theirs once a second.
const SLACK_NS: i64 = 1_000_000_000;
/// How late a buffer may come and still be put where it belongs, although the window has passed its beginning.
const PATIENCE_NS: i64 = 10_000_000_000;
/// From one window to the next one of a recording that is played as fast as possible.
const STEP_NS: i64 = 1_000_000_000;

/// How fast a recording is played again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// So many times faster than it was recorded.
    Times(f64),
    /// As fast as windows can be looked at: one each second of the trace.
    Most,
}

impl Speed {
    /// Reads `10`, `0.5`, `max`.
    ///
    /// # Errors
    /// If it is neither a positive number nor `max`.
    pub fn parse(text: &str) -> Result<Speed, String> {
        match text.parse::<f64>() {
            Ok(times) if times > 0.0 && times.is_finite() => Ok(Speed::Times(times)),
            _ if text == "max" => Ok(Speed::Most),
            _ => Err(format!("`{text}` is no speed; try 1, 10 or max")),
        }
    }
}

impl FollowArgs {
    fn options(&self) -> anyhow::Result<FollowOptions> {
        let header = self.header.as_deref().map(EtlFile::read_header).transpose().context("--header")?;
        Ok(FollowOptions {
            window_ns: Some(self.window.max(STEP_NS)),
            window_bytes: self.most,
            slack_ns: SLACK_NS,
            patience_ns: PATIENCE_NS,
            threads: self.threads.max(1),
            header,
        })
    }

    fn symbols(&self, path: &Path) -> anyhow::Result<Symbols> {
        let sources = self.symbols.options(&[path.to_owned()], true);
        let locators = self.symbols.path()?.locators(sources);
        Ok(Symbols::with_resolver(Resolver::new(locators, compact_cache()), NameStyle::Short))
    }

    fn decoder(&self) -> Decoder {
        let options = DecoderOptions { manifests: self.manifests.clone(), tmf: Vec::new() };
        Decoder::new(&options, &mut Ledger::new())
    }

    /// Findings over traces.
    pub(super) fn rules(&self) -> anyhow::Result<Vec<Rule>> {
        Ok(self.rules.load()?.into_iter().filter(|rule| rule.over == etwhy_rules::Subject::Trace).collect())
    }

    /// How all of a file that is followed is read.
    pub(super) fn trace_args(&self, path: &Path) -> TraceArgs {
        TraceArgs {
            traces: vec![path.to_owned()],
            demo: false,
            symbols: self.symbols.clone(),
            names: NameStyle::Short,
            manifests: self.manifests.clone(),
            tmf: Vec::new(),
            knowledge: Vec::new(),
            tags: Vec::new(),
            loggers: Vec::new(),
            memory: None,
            threads: Some(self.threads),
            temp_dir: None,
            max_unpacked: None,
            max_unpack_ratio: None,
            merge: false,
            recursive: false,
            chunk: None,
            quiet: true,
        }
    }

    fn watch(&self) -> anyhow::Result<Watch> {
        crate::knowledge::load(&[])?;
        let rules = self.rules()?;
        let tables = crate::commands::sql::tables_of(rules.iter().flat_map(Rule::words));
        let memory = Memory::with_budget(self.most.max(256_000_000), None);
        let mut watch = Watch::new(rules, tables, self.process.clone(), memory);
        if self.worker {
            // Panels may ask for all; single events take longer than everything else.
            let all = crate::catalog::specs().map(|spec| spec.name.to_string());
            watch.also_of_whole(all.filter(|name| name != EVENTS));
        }
        Ok(watch)
    }

    /// Whether a recording of several files can be followed so.
    ///
    /// # Errors
    /// If the last window of it is to be saved, or a condition makes no sense.
    pub fn refuse(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.save.is_none() && self.header.is_none(),
            "--save and --header are for a single file: the recording stays in its folder, and `etwhy why FOLDER --at 14:03` opens what was \
             recorded then"
        );
        self.stop(&mut self.watch()?, false).map(drop)
    }

    /// What is waited for.
    fn stop(&self, watch: &mut Watch, from_start: bool) -> anyhow::Result<StopWhen> {
        let findings = self.until_finding.iter().cloned().map(Trigger::Finding);
        let all: Vec<Trigger> = findings.chain(self.stop_when.iter().cloned()).collect();
        for trigger in &all {
            if let Trigger::Finding(id) = trigger
                && !watch.asks(id)
            {
                let rules = self.rules()?;
                let meant = crate::catalog::meant(id, rules.iter().map(|rule| rule.id.as_str()));
                anyhow::bail!("there is no finding `{id}` over traces{meant}; `etwhy rules` lists all");
            }
        }
        let stop = StopWhen::new(all, from_start);
        watch.also(stop.tables());
        Ok(stop)
    }

    /// With the default of every option, to wait for these.
    fn waiting_for(triggers: &[Trigger]) -> anyhow::Result<FollowArgs> {
        let command = FollowArgs::augment_args(clap::Command::new("follow"));
        let args = FollowArgs::from_arg_matches(&command.try_get_matches_from(["follow"])?)?;
        Ok(FollowArgs { stop_when: triggers.to_vec(), ..args })
    }

    /// Whether these can be waited for.
    ///
    /// # Errors
    /// If there is no such finding.
    pub fn check(triggers: &[Trigger]) -> anyhow::Result<()> {
        let args = FollowArgs::waiting_for(triggers)?;
        args.stop(&mut args.watch()?, false).map(drop)
    }

    /// Reads the files of a folder whose names begin so, while they are written, until one of the triggers is met; functions get no
    /// names.
    ///
    /// # Errors
    /// Those of reading them.
    pub fn wait(triggers: &[Trigger], folder: &Path, begins: &str) -> anyhow::Result<Fired> {
        let args = FollowArgs::waiting_for(triggers)?;
        let mut watch = args.watch()?;
        let mut stop = args.stop(&mut watch, true)?;
        let follower =
            Follower::of_folder(folder, begins, args.options()?, Symbols::new(&[]), args.decoder())?;
        let mut looks = Looks::new(follower, watch, Symbols::new(&[]));
        loop {
            let polled = looks.follower.poll()?;
            if polled.buffers + polled.replaced > 0 {
                looks.came();
            }
            while let Some(look) = looks.due()? {
                if let Some(fired) = stop.check(&look, looks.watch.history()) {
                    return Ok(fired);
                }
            }
            std::thread::sleep(NAP);
        }
    }

    /// Follows or plays, in lines, on a screen or on the page.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn run(&self, name: &'static str, what: &What) -> anyhow::Result<Exit> {
        if self.worker {
            return self.worker(what);
        }
        what.check()?;
        if let Some(to) = &self.save {
            // Said before what is to be saved has passed.
            etwhy_export::spare_recording(to).with_context(|| to.display().to_string())?;
        }
        if let What::Recorded(_) = what {
            // With the process that records.
            etwhy_child::end_with_standard_input(|| etwhy_scratch::exit(Exit::Done as i32));
        }
        if self.open || self.port.is_some() {
            return self.page(name, what);
        }
        self.watched(what, Box::new(Show::new(self.json, &what.path().display().to_string())))
    }

    /// Follows or plays, and shows windows there.
    pub(super) fn watched(&self, what: &What, show: Box<dyn Sink>) -> anyhow::Result<Exit> {
        match what {
            What::Grows(path, patience) => self.follow(path, *patience, false, show),
            What::Recorded(path) => self.follow(path, None, true, show),
            What::Replay(path, speed) => self.replay(path, *speed, show),
        }
    }

    /// Follows a file or folder until it ends, until a condition is met, or until nothing came for `patience`. Conditions are of what comes from
    /// now on, or `from_start` of all.
    ///
    /// # Errors
    /// Those of reading it.
    fn follow(
        &self,
        path: &Path,
        patience: Option<Duration>,
        from_start: bool,
        show: Box<dyn Sink>,
    ) -> anyhow::Result<Exit> {
        let mut watch = self.watch()?;
        let stop = self.stop(&mut watch, from_start)?;
        let follower = Follower::new(path, self.options()?, self.symbols(path)?, self.decoder())?;
        let mut run = self.begun(stop, Looks::new(follower, watch, self.symbols(path)?), show);
        let mut last = Instant::now();
        let mut machine = OneMachine::default();
        loop {
            let polled = run.looks.follower.poll()?;
            if !from_start {
                machine.check(run.looks.follower.files())?;
            }
            if polled.buffers + polled.replaced > 0 {
                last = Instant::now();
                run.looks.came();
            }
            let single = path.is_file();
            let over = polled.buffers == 0
                && ((single && run.looks.follower.is_closed())
                    || patience.is_some_and(|most| last.elapsed() >= most));
            if over {
                run.looks.follower.end()?;
                if run.looks.follower.files().is_empty() {
                    // What keeps other commands from reading it is what is wrong with it.
                    self.trace_args(path).open()?;
                }
            }
            let fired = if over { run.now()? } else { run.due()? };
            if let Some(fired) = fired {
                return run.stopped(&fired);
            }
            if over {
                return run.ended();
            }
            std::thread::sleep(NAP);
        }
    }

    /// Plays a finished recording again.
    ///
    /// # Errors
    /// Those of reading it.
    fn replay(&self, path: &Path, speed: Speed, show: Box<dyn Sink>) -> anyhow::Result<Exit> {
        let mut watch = self.watch()?;
        let stop = self.stop(&mut watch, true)?;
        anyhow::ensure!(
            self.header.is_none(),
            "a finished recording has its own header: --header is for `etwhy follow`"
        );
        let follower = Follower::replay(path, self.options()?, self.symbols(path)?, self.decoder())?;
        let mut run = self.begun(stop, Looks::new(follower, watch, self.symbols(path)?), show);
        let first = run.looks.follower.next_ns().unwrap_or(0);
        let begin = Instant::now();
        let mut step = first;
        while !run.looks.follower.has_ended() {
            let until = match speed {
                Speed::Most => {
                    step = step.saturating_add(STEP_NS).max(run.looks.follower.next_ns().unwrap_or(0));
                    step
                }
                Speed::Times(times) => {
                    let elapsed = begin.elapsed().as_nanos() as f64 * times;
                    first.saturating_add(elapsed as i64)
                }
            };
            if run.looks.follower.play(until).buffers > 0 {
                run.looks.came();
            }
            let is_whole = speed == Speed::Most || run.looks.follower.has_ended();
            if let Some(fired) = if is_whole { run.now()? } else { run.due()? } {
                return run.stopped(&fired);
            }
            if !is_whole {
                std::thread::sleep(NAP);
            }
        }
        run.ended()
    }

    fn begun(&self, stop: StopWhen, looks: Looks, show: Box<dyn Sink>) -> Run {
        let waits = !(self.until_finding.is_empty() && self.stop_when.is_empty());
        Run { stop, looks, show, waits, save: self.save.clone(), last: None, in_part: None }
    }
}

/// What is followed.
pub enum What {
    /// A file or folder that grows, until nothing came for so long.
    Grows(PathBuf, Option<Duration>),
    /// The folder of a recording that has just begun.
    Recorded(PathBuf),
    /// A finished file, played again.
    Replay(PathBuf, Speed),
}

impl What {
    /// The file or folder.
    pub fn path(&self) -> &Path {
        let (What::Grows(path, _) | What::Recorded(path) | What::Replay(path, _)) = self;
        path
    }

    /// A file that is something else is called what it is, as by every other command. What does not tell is left to the reader.
    fn check(&self) -> anyhow::Result<()> {
        let path = self.path();
        let mut head = Vec::new();
        if path.is_file()
            && let Ok(file) = File::open(path)
        {
            let _ = file.take(SNIFF_LEN as u64).read_to_end(&mut head);
        }
        match sniff(&head) {
            kind @ Kind::Foreign(_) => {
                Err(InputError::NotATrace { file: path.to_owned(), kind, wanted: WantedFiles::Traces }.into())
            }
            _ => Ok(()),
        }
    }
}

/// A trace that is followed, and what is done with it.
struct Run {
    looks: Looks,
    stop: StopWhen,
    show: Box<dyn Sink>,
    /// A condition is waited for.
    waits: bool,
    /// Where the last window goes.
    save: Option<PathBuf>,
    last: Option<[i64; 2]>,
    /// What could not be read, if anything, up to the last window.
    in_part: Option<String>,
}

/// The machine that all files of a folder are of.
#[derive(Default)]
struct OneMachine {
    machine: Machine,
    seen: BTreeSet<PathBuf>,
}

impl OneMachine {
    /// Refuses a file of another machine than those before: their processes and times would be mixed. Another boot is none.
    fn check(&mut self, files: &[EtlFile]) -> anyhow::Result<()> {
        for file in files {
            if self.seen.contains(file.shown()) {
                continue;
            }
            let machine = Identity::from_file(file).machine;
            let differences = self.machine.differences(&machine);
            if let Some(difference) = differences.iter().find(|difference| difference.fact != BOOT) {
                anyhow::bail!(
                    "{}: of another machine than the files before it ({}); follow a folder of one machine, or a single file: \
                     `etwhy why FOLDER` answers finished traces of several machines one by one",
                    file.shown().display(),
                    difference.text
                );
            }
            self.machine.learn(&machine);
            self.seen.insert(file.shown().to_owned());
        }
        Ok(())
    }
}

/// What [`Machine::differences`] calls another boot.
const BOOT: &str = "boot time";

/// What could not be read of the files of a window, if anything. What came too late to be followed is no fault of theirs.
fn in_part(db: &Database) -> Option<String> {
    let of_files = quality::ledger(db).iter().any(|a| exit::is_missing(a) && a.name != LATE_BUFFERS.name);
    if of_files { exit::in_part(db) } else { None }
}

impl Run {
    /// Looks as often as that may be, and shows what was seen; gives the condition that it meets.
    fn due(&mut self) -> anyhow::Result<Option<Fired>> {
        if self.last.is_none() && self.looks.follower.window().is_none() {
            self.show.nothing_yet()?;
        }
        while let Some(look) = self.looks.due()? {
            if let Some(fired) = self.seen(&look)? {
                return Ok(Some(fired));
            }
        }
        Ok(None)
    }

    /// Looks now, whatever it takes.
    fn now(&mut self) -> anyhow::Result<Option<Fired>> {
        let mut looks: Vec<Look> = self.looks.under_way()?.into_iter().collect();
        looks.extend(self.looks.now()?);
        for look in &looks {
            if let Some(fired) = self.seen(look)? {
                return Ok(Some(fired));
            }
        }
        Ok(None)
    }

    /// Shows what was seen.
    fn seen(&mut self, look: &Look) -> anyhow::Result<Option<Fired>> {
        self.last = Some([look.sum.whole.from_ns, look.sum.whole.to_ns]);
        if look.sum.range == Range::Whole {
            self.in_part = in_part(&look.db);
        }
        let fired = self.stop.check(look, self.looks.watch.history());
        self.show.window(look, &self.looks.watch, &self.looks.follower, fired.as_ref())?;
        Ok(fired)
    }

    /// Saves the last window, if that is wanted.
    fn save(&self) -> anyhow::Result<()> {
        let (Some(to), Some(range)) = (&self.save, self.last) else { return Ok(()) };
        let [path] = self.looks.follower.paths() else {
            anyhow::bail!("--save: the window lies in several files, which are traces already");
        };
        etwhy_export::replace_file(to, |out| {
            write_part(path, range, out)
                .map(|_| ())
                .map_err(|error| std::io::Error::other(format!("{error:#}")).into())
        })?;
        let [from, to_s] = range.map(|ns| ns as f64 / 1e9);
        say!("etwhy: saved; read it with `etwhy why {} --from {from:.3}s --to {to_s:.3}s`", to.display());
        Ok(())
    }

    fn stopped(mut self, fired: &Fired) -> anyhow::Result<Exit> {
        self.show.stopped(fired)?;
        self.save()?;
        Ok(Exit::Done)
    }

    fn ended(mut self) -> anyhow::Result<Exit> {
        if self.last.is_none() && !self.waits {
            say!("etwhy: nothing came that could be shown");
        } else {
            self.show.ended(self.waits)?;
        }
        self.save()?;
        if let Some(text) = &self.in_part {
            say!("etwhy: {text}");
        }
        Ok(if self.waits || self.in_part.is_some() { Exit::InPart } else { Exit::Done })
    }
}

#[cfg(test)]
mod tests {
    use super::Speed;

    #[test]
    fn speeds() {
        assert_eq!(Speed::parse("10"), Ok(Speed::Times(10.0)));
        assert_eq!(Speed::parse("max"), Ok(Speed::Most));
        for none in ["0", "-1", "NaN", "inf", "fast", ""] {
            assert!(Speed::parse(none).is_err(), "{none}");
        }
    }
}
