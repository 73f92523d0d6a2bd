//! What `follow` and `live` share: arguments, the loop, what is shown.

use super::show::Show;
use crate::exit::Exit;
use crate::open::size;
use crate::options::time::duration;
use crate::rules::RuleArgs;
use crate::symbol_args::{SymbolArgs, compact_cache};
use clap::{Args as _, FromArgMatches as _};
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::Ledger;
use etwhy_live::{Fired, FollowOptions, Follower, Pace, StopWhen, Watch};
use etwhy_record::run::Trigger;
use etwhy_symbols::{NameStyle, Resolver};
use etwhy_table::Memory;
use etwhy_trace::Symbols;
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
    /// Print JSON: one line for each window
    #[arg(long)]
    json: bool,
    /// Stop when this finding is found (`etwhy rules list` has the names). Exit code 0 if it was, 1 if the trace ended without it
    #[arg(long, value_name = "ID")]
    until_finding: Vec<String>,
    /// Stop when this happens (several: the first of them): `finding:ID`, `event:PROVIDER`, `event:PROVIDER/ID` (or a name, or
    /// `/ID/FIELD=VALUE`), `start:NAME` or `exit:NAME` (a process). Exit code 0 if it did, 1 if the trace ended without it
    #[arg(long, value_name = "TRIGGER", value_parser = etwhy_live::trigger)]
    stop_when: Vec<Trigger>,
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
const NAP: Duration = Duration::from_millis(200);
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
    fn options(&self) -> FollowOptions {
        FollowOptions {
            window_ns: Some(self.window.max(STEP_NS)),
            window_bytes: self.most,
            slack_ns: SLACK_NS,
            patience_ns: PATIENCE_NS,
            threads: self.threads.max(1),
        }
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

    fn watch(&self) -> anyhow::Result<Watch> {
        crate::knowledge::load(&[])?;
        let rules: Vec<_> =
            self.rules.load()?.into_iter().filter(|rule| rule.over == etwhy_rules::Subject::Trace).collect();
        let tables = crate::commands::sql::tables_of(rules.iter().flat_map(etwhy_rules::Rule::words));
        let memory = Memory::with_budget(self.most.max(256_000_000), None);
        Ok(Watch::new(rules, tables, self.process.clone(), memory))
    }

    /// What is waited for.
    fn stop(&self, watch: &mut Watch, from_start: bool) -> anyhow::Result<StopWhen> {
        let findings = self.until_finding.iter().cloned().map(Trigger::Finding);
        let all: Vec<Trigger> = findings.chain(self.stop_when.iter().cloned()).collect();
        for trigger in &all {
            if let Trigger::Finding(id) = trigger
                && !watch.asks(id)
            {
                anyhow::bail!("there is no finding `{id}` over traces; `etwhy rules list` has all");
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
        let mut follower =
            Follower::of_folder(folder, begins, args.options(), Symbols::new(&[]), args.decoder())?;
        let (mut pace, mut news) = (Pace::new(), true);
        loop {
            let polled = follower.poll()?;
            news |= polled.buffers + polled.replaced > 0;
            if news && pace.left().is_zero() {
                let begin = Instant::now();
                news = false;
                let look = watch.look(&mut follower)?;
                if let Some(fired) = look.and_then(|look| stop.check(&look, watch.history())) {
                    return Ok(fired);
                }
                pace.done(begin);
            }
            std::thread::sleep(NAP);
        }
    }

    /// Follows a file or folder until it ends, until a condition is met, or until nothing came for `patience`.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn follow(&self, path: &Path, patience: Option<Duration>) -> anyhow::Result<Exit> {
        let mut watch = self.watch()?;
        let stop = self.stop(&mut watch, false)?;
        let follower = Follower::new(path, self.options(), self.symbols(path)?, self.decoder())?;
        let show = Show::new(self.json, &path.display().to_string());
        let mut run = Run { stop, follower, watch, show, waits: self.waits() };
        let mut pace = Pace::new();
        let mut last = Instant::now();
        let mut news = true;
        loop {
            let polled = run.follower.poll()?;
            if polled.buffers + polled.replaced > 0 {
                (last, news) = (Instant::now(), true);
            }
            let single = path.is_file();
            let over = polled.buffers == 0
                && ((single && run.follower.is_closed())
                    || patience.is_some_and(|most| last.elapsed() >= most));
            if over {
                run.follower.end()?;
            }
            if over || (news && pace.left().is_zero()) {
                let begin = Instant::now();
                news = false;
                if let Some(fired) = run.look()? {
                    return run.stopped(&fired);
                }
                pace.done(begin);
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
    pub fn replay(&self, path: &Path, speed: Speed) -> anyhow::Result<Exit> {
        let mut watch = self.watch()?;
        let stop = self.stop(&mut watch, true)?;
        let follower = Follower::replay(path, self.options(), self.symbols(path)?, self.decoder())?;
        let show = Show::new(self.json, &path.display().to_string());
        let mut run = Run { stop, follower, watch, show, waits: self.waits() };
        let first = run.follower.next_ns().unwrap_or(0);
        let (begin, mut pace) = (Instant::now(), Pace::new());
        let mut step = first;
        while !run.follower.has_ended() {
            let (until, wait) = match speed {
                Speed::Most => {
                    step = step.saturating_add(STEP_NS).max(run.follower.next_ns().unwrap_or(0));
                    (step, Duration::ZERO)
                }
                Speed::Times(times) => {
                    let elapsed = begin.elapsed().as_nanos() as f64 * times;
                    (first.saturating_add(elapsed as i64), pace.left())
                }
            };
            run.follower.play(until);
            if !wait.is_zero() && !run.follower.has_ended() {
                std::thread::sleep(wait.min(NAP));
                continue;
            }
            let looked = Instant::now();
            if let Some(fired) = run.look()? {
                return run.stopped(&fired);
            }
            pace.done(looked);
        }
        run.ended()
    }

    fn waits(&self) -> bool {
        !(self.until_finding.is_empty() && self.stop_when.is_empty())
    }
}

/// A trace that is followed, and what is done with it.
struct Run {
    follower: Follower,
    watch: Watch,
    stop: StopWhen,
    show: Show,
    /// A condition is waited for.
    waits: bool,
}

impl Run {
    /// Looks at the window and shows it; gives the condition that it meets.
    fn look(&mut self) -> anyhow::Result<Option<Fired>> {
        let Some(look) = self.watch.look(&mut self.follower)? else {
            self.show.nothing_yet()?;
            return Ok(None);
        };
        let fired = self.stop.check(&look, self.watch.history());
        self.show.window(&look, &self.watch, &self.follower, fired.as_ref())?;
        Ok(fired)
    }

    fn stopped(self, fired: &Fired) -> anyhow::Result<Exit> {
        self.show.stopped(fired)?;
        Ok(Exit::Done)
    }

    fn ended(self) -> anyhow::Result<Exit> {
        self.show.ended(self.waits)?;
        Ok(if self.waits { Exit::InPart } else { Exit::Done })
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
